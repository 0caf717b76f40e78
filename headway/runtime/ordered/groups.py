"""What Spark calls for each bucket, of a batch of a stream with its state, or of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from headway.errors import HeadwayError
from headway.runtime.ordered.bucket import (
    BUCKET,
    PREFIX,
    ROWS,
    BucketState,
    OrderedStep,
    run_bucket,
)
from headway.runtime.sharing.panes import WATERMARK
from headway.units import US_PER_MS

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.state import GroupState

_NEVER_LATE = "timestamp'2200-01-01'"
_COUNTED = ("tied", "late", "untimed")


def on_stream(
    by_bucket: DataFrame, ordered_step: OrderedStep, fingerprint: str, *, counted_as: str
) -> DataFrame:
    """Output of the buckets of a stream, packed; Spark sums what is counted in its progress."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.streaming.state import GroupStateTimeout

    timeout = GroupStateTimeout.NoTimeout
    if ordered_step.held:
        # Spark wakes a bucket by a column with a watermark. It leaves out rows that are late by
        # this column; which ones are is said here by the time of each row, so this is never late.
        never_late = f"{PREFIX}never_late"
        by_bucket = by_bucket.withColumn(never_late, F.expr(_NEVER_LATE))
        by_bucket = by_bucket.withMetadata(never_late, {WATERMARK: 0})
        timeout = GroupStateTimeout.EventTimeTimeout
    counted = ", ".join(f"{name} long" for name in _COUNTED)
    results = by_bucket.groupBy(BUCKET).applyInPandasWithState(
        _of_stream(ordered_step, fingerprint),
        f"{ROWS} binary, {counted}",
        "layout string, states binary, rows binary",
        "append",
        timeout,
    )
    sums = [F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in _COUNTED]
    return results.observe(counted_as, *sums).select(ROWS)


def _of_stream(
    ordered_step: OrderedStep, fingerprint: str
) -> Callable[[Any, Iterable[pd.DataFrame], GroupState], Iterator[pd.DataFrame]]:
    """What Spark calls for each bucket of a batch, and for one that a watermark wakes."""

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
        batch = run_bucket(ordered_step, _written(frames), before, watermark_us)
        state.update((fingerprint, batch.after.states, batch.after.rows))
        if batch.wakes_ms is not None:
            state.setTimeoutTimestamp(batch.wakes_ms)
        counts = (batch.num_tied, batch.num_late, batch.num_untimed)
        if batch.output is not None or any(counts):
            yield _frame(batch.output, **dict(zip(_COUNTED, counts, strict=True)))

    return on_bucket


def on_table(by_bucket: DataFrame, ordered_step: OrderedStep) -> DataFrame:
    """Output of the buckets of a table, packed."""
    return by_bucket.groupBy(BUCKET).applyInPandas(_of_table(ordered_step), f"{ROWS} binary")


def _of_table(ordered_step: OrderedStep) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """What Spark calls for each bucket of a table: one batch, from no state."""

    def on_bucket(frame: pd.DataFrame) -> pd.DataFrame:
        return _frame(run_bucket(ordered_step, _written([frame]), BucketState()).output)

    return on_bucket


def _written(frames: Iterable[pd.DataFrame]) -> list[bytes]:
    """Packed rows of a bucket; a bucket that was woken has none."""
    return [
        bytes(written)
        for frame in frames
        for written in frame[ROWS]
        if isinstance(written, bytes | bytearray)
    ]


def _bytes(written: Any) -> bytes | None:
    return None if written is None else bytes(written)


def _frame(output: bytes | None, **counts: int) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame({ROWS: pd.Series([output], dtype=object), **counts})
