"""Functions that Spark calls for each bucket, of a stream's batch with state, or of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from headway.errors import HeadwayError
from headway.runtime.ordered.bucket import BUCKET, ROWS, BucketState, OrderedStep, run_bucket
from headway.runtime.ordered.kept_state import as_bytes, as_table
from headway.runtime.ordered.plain_rows import arrived_table, leaving_columns, leaving_frame, left
from headway.runtime.sharing.aggregates import PREFIX
from headway.runtime.sharing.panes import WATERMARK
from headway.units import US_PER_MS

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.state import GroupState
    from pyspark.sql.types import StructType

_NEVER_LATE = "timestamp'2200-01-01'"
_COUNTED = ("tied", "late", "untimed")


def on_stream(
    by_bucket: DataFrame,
    ordered_step: OrderedStep,
    fingerprint: str,
    *,
    arriving: Any,
    leaving: StructType | None,
    counted_as: str,
) -> DataFrame:
    """Output of the buckets of a stream; Spark sums the counts in its progress.

    ``arriving`` is the Arrow schema of rows that are not packed, ``leaving`` the output columns
    that need not be packed; None means packed.
    """
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.streaming.state import GroupStateTimeout

    timeout = GroupStateTimeout.NoTimeout
    if ordered_step.held:
        # Spark wakes a bucket by a column with a watermark, and drops rows that are late by this
        # column. Lateness is decided here by the time of each row, so this column is never late.
        never_late = f"{PREFIX}never_late"
        by_bucket = by_bucket.withColumn(never_late, F.expr(_NEVER_LATE))
        by_bucket = by_bucket.withMetadata(never_late, {WATERMARK: 0})
        timeout = GroupStateTimeout.EventTimeTimeout
    counted = ", ".join(f"{name} long" for name in _COUNTED)
    columns = [f"{ROWS} binary"] if leaving is None else leaving_columns(leaving)
    results = by_bucket.groupBy(BUCKET).applyInPandasWithState(
        _of_stream(ordered_step, fingerprint, arriving, leaving is None),
        ", ".join((*columns, counted)),
        "layout string, states binary, rows binary",
        "append",
        timeout,
    )
    sums = [F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in _COUNTED]
    observed = results.observe(counted_as, *sums)
    return observed.select(ROWS) if leaving is None else left(observed, leaving)


def _of_stream(
    ordered_step: OrderedStep, fingerprint: str, arriving: Any, leave_packed: bool
) -> Callable[[Any, Iterable[pd.DataFrame], GroupState], Iterator[pd.DataFrame]]:
    """Called by Spark for each bucket of a batch, and for one that a watermark wakes."""
    columns = len(ordered_step.output)

    def on_bucket(
        key: Any,  # noqa: ARG001
        frames: Iterable[pd.DataFrame],
        state: GroupState,
    ) -> Iterator[pd.DataFrame]:
        before = BucketState()
        if state.exists:
            layout, states, rows = state.get
            if layout != fingerprint:
                raise HeadwayError(
                    "the state of this query is of another call of ordered: start it with the "
                    "checkpoint that ordered was given"
                )
            before = BucketState(states=_bytes(states), rows=_bytes(rows))
        watermark_us = US_PER_MS * state.getCurrentWatermarkMs() if ordered_step.held else None
        if arriving is None:
            tables = _unpacked(frames)
        else:
            tables = [arrived_table(frame, arriving) for frame in frames if len(frame)]
        batch = run_bucket(ordered_step, tables, before, watermark_us)
        state.update((fingerprint, batch.after.states, batch.after.rows))
        if batch.wakes_ms is not None:
            state.setTimeoutTimestamp(batch.wakes_ms)
        counts = (batch.num_tied, batch.num_late, batch.num_untimed)
        if batch.output is not None or any(counts):
            frame = _packed(batch.output) if leave_packed else leaving_frame(batch.output, columns)
            # Counts are in the first row.
            for name, count in zip(_COUNTED, counts, strict=True):
                frame[name] = [count] + [0] * (len(frame) - 1)
            yield frame

    return on_bucket


def on_table(by_bucket: DataFrame, ordered_step: OrderedStep) -> DataFrame:
    """Output of the buckets of a table, packed: each is one batch, without initial state."""

    def on_bucket(frame: pd.DataFrame) -> pd.DataFrame:
        return _packed(run_bucket(ordered_step, _unpacked([frame]), BucketState()).output)

    return by_bucket.groupBy(BUCKET).applyInPandas(on_bucket, f"{ROWS} binary")


def _unpacked(frames: Iterable[pd.DataFrame]) -> list[Any]:
    """Packed rows of a bucket as tables; a woken bucket has none."""
    return [
        as_table(bytes(arrow_bytes))
        for frame in frames
        for arrow_bytes in frame[ROWS]
        if isinstance(arrow_bytes, bytes | bytearray)
    ]


def _bytes(arrow_bytes: Any) -> bytes | None:
    return None if arrow_bytes is None else bytes(arrow_bytes)


def _packed(output: Any) -> pd.DataFrame:
    import pandas as pd

    arrow_bytes = None if output is None else as_bytes(output)
    return pd.DataFrame({ROWS: pd.Series([arrow_bytes], dtype=object)})
