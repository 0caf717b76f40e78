"""Functions that Spark calls for each bucket, of a stream's batch with state, or of a table.

The state of a bucket is one value, which each batch writes as a whole; or it is in pieces, through
Spark's transformWithState: lists of state, to which Spark's RocksDB store adds without reading or
writing the others. State, timers and offsets are committed together, as in any stateful query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from headway.errors import HeadwayError
from headway.runtime.given import F
from headway.runtime.ordered.bucket import (
    BUCKET,
    ROWS,
    BucketBatch,
    BucketState,
    OrderedStep,
    run_bucket,
)
from headway.runtime.ordered.kept_state import Clock
from headway.runtime.ordered.pieces import Pieces, added, as_bytes, as_table
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
_HEAD = "layout string, passed_us long, wakes_ms long"
_TIME_MODES = {None: "none", "event": "eventTime", "processing": "processingTime"}
COUNTED = ("tied", "late", "untimed")
"""Rows that a bucket counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketCall:
    """What Spark passes to a bucket of a stream, and takes from it.

    ``arriving`` is the Arrow schema of rows that are not packed, ``leaving`` the output columns
    that need not be packed; None means packed.
    """

    ordered_step: OrderedStep
    fingerprint: str
    clock: Clock | None
    arriving: Any
    leaving: StructType | None

    @property
    def columns(self) -> str:
        """Columns of the frames that a bucket returns, as a Spark schema."""
        output = [f"{ROWS} binary"] if self.leaving is None else leaving_columns(self.leaving)
        return ", ".join((*output, *(f"{name} long" for name in COUNTED)))

    def batch(
        self, frames: Iterable[pd.DataFrame], before: BucketState, now_ms: int | None
    ) -> tuple[BucketBatch, Iterator[pd.DataFrame]]:
        """Process the rows of a batch; frames of output follow, with the counts in the first."""
        if self.arriving is None:
            tables = unpacked_tables(frames)
        else:
            tables = [arrived_table(frame, self.arriving) for frame in frames if len(frame)]
        now_us = None if now_ms is None else US_PER_MS * now_ms
        batch = run_bucket(self.ordered_step, tables, before, now_us)
        return batch, self._frames(batch)

    def _frames(self, batch: BucketBatch) -> Iterator[pd.DataFrame]:
        counts = (batch.num_tied, batch.num_late, batch.num_untimed)
        if batch.output is None and not any(counts):
            return
        if self.leaving is None:
            frame = packed_frame(batch.output)
        else:
            frame = leaving_frame(batch.output, len(self.ordered_step.output))
        for name, count in zip(COUNTED, counts, strict=True):
            frame[name] = [count] + [0] * (len(frame) - 1)
        yield frame

    def now_ms(self, watermark_ms: Callable[[], int], start_ms: Callable[[], int]) -> int | None:
        """The time of its clock, the only one that Spark has for it."""
        match self.clock:
            case "event":
                return watermark_ms()
            case "processing":
                return start_ms()
        return None

    def require_own(self, layout: str) -> None:
        """Refuse the state of a bucket of another layout."""
        if layout != self.fingerprint:
            raise HeadwayError(
                "the state of this query is of another call of ordered: start it with the "
                "checkpoint that ordered was given"
            )


def unpacked_tables(frames: Iterable[pd.DataFrame]) -> list[Any]:
    """Packed rows of a bucket as tables; a woken bucket has none.

    No other column holds bytes. Not every operator of Spark passes the names of columns.
    """
    return [
        as_table(bytes(cell))
        for frame in frames
        for row in frame.itertuples(index=False, name=None)
        for cell in row
        if isinstance(cell, bytes | bytearray)
    ]


def packed_frame(output: Any) -> pd.DataFrame:
    """Output as one value of bytes."""
    import pandas as pd

    arrow_bytes = None if output is None else as_bytes(output)
    return pd.DataFrame({ROWS: pd.Series([arrow_bytes], dtype=object)})


def on_stream(by_bucket: DataFrame, call: BucketCall, counted_as: str) -> DataFrame:
    """Output of the buckets of a stream; Spark sums the counts in its progress."""
    if call.clock == "event":
        # Spark wakes a bucket by a column with a watermark, and drops rows that are late by this
        # column. Lateness is decided here by the time of each row, so this column is never late.
        never_late = f"{PREFIX}never_late"
        by_bucket = by_bucket.withColumn(never_late, F.expr(_NEVER_LATE))
        by_bucket = by_bucket.withMetadata(never_late, {WATERMARK: 0})
    results = (_with_pieces if call.ordered_step.logged else _with_states)(by_bucket, call)
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
    now_ms = call.now_ms(state.getCurrentWatermarkMs, state.getCurrentProcessingTimeMs)
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


def _with_pieces(by_bucket: DataFrame, call: BucketCall) -> DataFrame:
    """Frames of the buckets of a stream, whose rows are packed."""
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class BucketOfPieces(StatefulProcessor):
        """A bucket, called by Spark with its rows of a batch, or when its time has come."""

        def init(self, handle: Any) -> None:
            self.handle = handle
            self.head = handle.getValueState("head", _HEAD)
            self.states = handle.getListState("states", "piece binary")
            self.rows = handle.getListState("rows", "piece binary")

        def handleInputRows(  # noqa: N802
            self,
            key: Any,  # noqa: ARG002
            rows: Iterator[pd.DataFrame],
            timerValues: Any,
        ) -> Iterator[pd.DataFrame]:
            return self.batch(rows, timerValues, None)

        def handleExpiredTimer(  # noqa: N802
            self,
            key: Any,  # noqa: ARG002
            timerValues: Any,
            expiredTimerInfo: Any,
        ) -> Iterator[pd.DataFrame]:
            return self.batch([], timerValues, expiredTimerInfo.getExpiryTimeInMs())

        def close(self) -> None:
            """Nothing to close."""

        def batch(
            self, frames: Iterable[pd.DataFrame], times: Any, expired_ms: int | None
        ) -> Iterator[pd.DataFrame]:
            """Process a batch, and store what it changes; Spark deletes an expired timer."""
            before, wakes_ms = BucketState(), None
            head = self.head.get()
            if head is not None:
                layout, passed_us, wakes_ms = head
                call.require_own(layout)
                before = BucketState(
                    states=_read(self.states),
                    rows=_read(self.rows) if call.ordered_step.held else (),
                    passed_us=passed_us,
                )
            now_ms = call.now_ms(times.getCurrentWatermarkInMs, times.getCurrentProcessingTimeInMs)
            batch, output = call.batch(frames, before, now_ms)
            _write(self.states, before.states, batch.after.states)
            _write(self.rows, before.rows, batch.after.rows)
            next_ms = batch.wakes_ms
            if next_ms is not None and next_ms == expired_ms:
                # Spark called at the very time, not after it, and deletes this timer behind us.
                next_ms += 1
            new_head = (call.fingerprint, batch.after.passed_us, next_ms)
            if new_head != head:
                self.head.update(new_head)
            if next_ms != wakes_ms:
                if wakes_ms is not None and wakes_ms != expired_ms:
                    self.handle.deleteTimer(wakes_ms)
                if next_ms is not None:
                    self.handle.registerTimer(next_ms)
            return output

    by_key: Any = by_bucket.groupBy(BUCKET)
    frames: DataFrame = by_key.transformWithStateInPandas(
        BucketOfPieces(), call.columns, "append", _TIME_MODES[call.clock]
    )
    return frames


def _read(stored: Any) -> Pieces:
    return tuple(bytes(piece) for (piece,) in stored.get())


def _write(stored: Any, before: Pieces, after: Pieces) -> None:
    pieces = added(before, after)
    if pieces is None and not after:
        stored.clear()
    elif pieces is None:
        stored.put([(piece,) for piece in after])
    elif pieces:
        stored.appendList([(piece,) for piece in pieces])


def on_table(by_bucket: DataFrame, ordered_step: OrderedStep) -> DataFrame:
    """Output of the buckets of a table, packed: each is one batch, without initial state."""

    def on_bucket(frame: pd.DataFrame) -> pd.DataFrame:
        batch = run_bucket(ordered_step, unpacked_tables([frame]), BucketState())
        return packed_frame(batch.output)

    return by_bucket.groupBy(BUCKET).applyInPandas(on_bucket, f"{ROWS} binary")
