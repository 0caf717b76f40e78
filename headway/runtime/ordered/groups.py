"""Functions that Spark calls for each bucket, of a stream's batch with state, or of a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from headway.runtime.given import F
from headway.runtime.ordered.bucket import BUCKET, ROWS, BucketState, OrderedStep, run_bucket
from headway.runtime.ordered.bucket_call import (
    COUNTED,
    BucketCall,
    packed_frame,
    unpacked_tables,
)
from headway.runtime.ordered.piece_groups import with_pieces
from headway.runtime.ordered.pieces import Pieces
from headway.runtime.ordered.plain_rows import left
from headway.runtime.sharing.aggregates import PREFIX
from headway.runtime.sharing.panes import WATERMARK

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.state import GroupState

_NEVER_LATE = "timestamp'2200-01-01'"


def on_stream(by_bucket: DataFrame, call: BucketCall, counted_as: str) -> DataFrame:
    """Output of the buckets of a stream; Spark sums the counts in its progress."""
    if call.clock == "event":
        # Spark wakes a bucket by a column with a watermark, and drops rows that are late by this
        # column. Lateness is decided here by the time of each row, so this column is never late.
        never_late = f"{PREFIX}never_late"
        by_bucket = by_bucket.withColumn(never_late, F.expr(_NEVER_LATE))
        by_bucket = by_bucket.withMetadata(never_late, {WATERMARK: 0})
    results = (with_pieces if call.ordered_step.logged else _with_states)(by_bucket, call)
    sums = [F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in COUNTED]
    observed = results.observe(counted_as, *sums)
    return observed.select(ROWS) if call.leaving is None else left(observed, call.leaving)


def _with_states(by_bucket: DataFrame, call: BucketCall) -> DataFrame:
    """The state of a bucket as one value, which each batch writes as a whole."""
    from pyspark.sql.streaming.state import GroupStateTimeout

    timeouts = {
        None: GroupStateTimeout.NoTimeout,
        "event": GroupStateTimeout.EventTimeTimeout,
        "processing": GroupStateTimeout.ProcessingTimeTimeout,
    }
    return by_bucket.groupBy(BUCKET).applyInPandasWithState(
        partial(_on_states, call),
        call.columns,
        "layout string, states binary, rows binary",
        "append",
        timeouts[call.clock],
    )


def _on_states(
    call: BucketCall,
    key: Any,  # noqa: ARG001
    frames: Iterable[pd.DataFrame],
    state: GroupState,
) -> Iterator[pd.DataFrame]:
    """Called by Spark for each bucket of a batch, and for one whose time has come."""
    before = BucketState()
    if state.exists:
        layout, states, rows = state.get
        call.require_own(layout)
        before = BucketState(states=_pieces(states), rows=_pieces(rows))
    now_ms = None
    if call.clock == "event":
        now_ms = state.getCurrentWatermarkMs()
    elif call.clock == "processing":
        now_ms = state.getCurrentProcessingTimeMs()
    batch, output = call.batch(frames, before, now_ms)
    state.update((call.fingerprint, *map(_whole, (batch.after.states, batch.after.rows))))
    if batch.wakes_ms is not None and call.clock == "event":
        state.setTimeoutTimestamp(batch.wakes_ms)
    elif batch.wakes_ms is not None and now_ms is not None:
        state.setTimeoutDuration(max(batch.wakes_ms - now_ms, 1))
    yield from output


def _pieces(arrow_bytes: Any) -> Pieces:
    return () if arrow_bytes is None else (bytes(arrow_bytes),)


def _whole(pieces: Pieces) -> bytes | None:
    return pieces[0] if pieces else None


def on_table(by_bucket: DataFrame, ordered_step: OrderedStep) -> DataFrame:
    """Output of the buckets of a table, packed: each is one batch, without initial state."""

    def on_bucket(frame: pd.DataFrame) -> pd.DataFrame:
        batch = run_bucket(ordered_step, unpacked_tables([frame]), BucketState())
        return packed_frame(batch.output)

    return by_bucket.groupBy(BUCKET).applyInPandas(on_bucket, f"{ROWS} binary")
