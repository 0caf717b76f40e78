"""Files that micro-batches read and write: operators that count them, and the driver's counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from headway.profiler.ids import latest
from headway.profiler.plan_nodes import PlanNode, in_pre_order
from headway.profiler.schema import BatchOf, SqlUpdate

# Bounds memory regardless of how long a query ran.
_MOST_SCANS, _MOST_VALUES = 5_000, 50_000
_METRICS = ("number of files read", "size of files read")
_WRITTEN = "number of written files"


class FilesRead(msgspec.Struct):
    """Operators that read or write files in batches, and values of the driver's accumulators by id.

    ``scans`` are the accumulators of the number of files and of their bytes, and the batch;
    ``writers`` those of the number of files that actions in `foreachBatch` write.
    """

    scans: set[tuple[int, int, BatchOf]] = set()
    writers: set[tuple[int, BatchOf]] = set()
    values: dict[int, int] = {}

    def note_plan(self, plan: PlanNode, batch: BatchOf) -> None:
        """The plan of a batch, whose operators may read or write files."""
        for ids in _metrics_of_operators(plan):
            num_files_id, size_bytes_id, num_written_id = (
                ids.get(name) for name in (*_METRICS, _WRITTEN)
            )
            if num_files_id is not None and size_bytes_id is not None:
                self.scans.add((num_files_id, size_bytes_id, batch))
            if num_written_id is not None:
                self.writers.add((num_written_id, batch))

    def note_values(self, updates: SqlUpdate) -> None:
        accumulator_values = self.values
        for pair in updates.values or ():
            if pair is not None and len(pair) == 2:
                accumulator_id, value = pair
                if accumulator_id is None or value is None:
                    continue
                if value > accumulator_values.get(accumulator_id, 0):
                    accumulator_values[accumulator_id] = value

    def add(self, other: FilesRead) -> None:
        """Data from another part of the log."""
        self.scans |= other.scans
        self.writers |= other.writers
        for accumulator_id, value in other.values.items():
            self.values[accumulator_id] = max(value, self.values.get(accumulator_id, value))

    def leave_out_old(self) -> None:
        if len(self.scans) > _MOST_SCANS:
            self.scans = set(sorted(self.scans)[-_MOST_SCANS:])
        if len(self.writers) > _MOST_SCANS:
            self.writers = set(sorted(self.writers)[-_MOST_SCANS:])
        self.values = latest(self.values, _MOST_VALUES)

    def of_batches(self) -> dict[BatchOf, tuple[int, int]]:
        """Number and bytes of the files of each batch that reads files in one place; of several,
        no event shows which one is the stream's.
        """
        num_places = Counter(batch for _, _, batch in self.scans)
        files_by_batch = {
            batch: (self.values.get(num_files_id, 0), self.values.get(size_bytes_id, 0))
            for num_files_id, size_bytes_id, batch in self.scans
            if num_places[batch] == 1
        }
        return {batch: files for batch, files in sorted(files_by_batch.items()) if min(files) > 0}

    def written_by_batch(self) -> dict[BatchOf, int]:
        """Number of files that the actions of each batch wrote."""
        num_files = Counter[BatchOf]()
        for num_written_id, batch in sorted(self.writers):
            num_files[batch] += self.values.get(num_written_id, 0)
        return dict(num_files)


def _metrics_of_operators(plan: PlanNode) -> Iterator[dict[str | None, int | None]]:
    """The accumulators of each operator, by the name of the metric."""
    for node, _ in in_pre_order(plan):
        if node.metrics:
            yield {metric.name: metric.accumulator_id for metric in node.metrics if metric}
