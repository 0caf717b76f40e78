"""What Spark passes to a bucket of rows, and takes from it, whichever operator calls it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headway.errors import HeadwayError
from headway.runtime.ordered.bucket import ROWS, BucketBatch, BucketState, OrderedStep, run_bucket
from headway.runtime.ordered.kept_state import Clock
from headway.runtime.ordered.pieces import as_bytes, as_table
from headway.runtime.ordered.plain_rows import arrived_table, leaving_columns, leaving_frame
from headway.units import US_PER_MS

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    from pyspark.sql.types import StructType

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
