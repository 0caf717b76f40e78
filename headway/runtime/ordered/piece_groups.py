"""State of buckets in pieces, through Spark's transformWithState: a batch writes what it changes.

The pieces of a bucket are lists of state, to which Spark's RocksDB store adds without reading or
writing the others. State, timers and offsets are committed together, as in any stateful query.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from headway.runtime.ordered.bucket import BUCKET, BucketState
from headway.runtime.ordered.bucket_call import BucketCall
from headway.runtime.ordered.pieces import Pieces, added

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    from pyspark.sql import DataFrame

_HEAD = "layout string, passed_us long, wakes_ms long"
_TIME_MODES = {None: "none", "event": "eventTime", "processing": "processingTime"}


def with_pieces(by_bucket: DataFrame, call: BucketCall) -> DataFrame:
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
            now_ms = None
            if call.clock == "event":
                now_ms = times.getCurrentWatermarkInMs()
            elif call.clock == "processing":
                now_ms = times.getCurrentProcessingTimeInMs()
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
