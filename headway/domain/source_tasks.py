"""What decides how many tasks read the source of a stream."""

from __future__ import annotations

import math
from dataclasses import dataclass

from headway.domain.checks import require_count
from headway.limits import MOST_CORES, MOST_INT, MOST_LONG, MOST_PARTITIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultParallelism:
    """Spark's default parallelism: one for each core, unless it is set.

    Parameters
    ----------
    stated : int or None, >= 1
        What ``spark.default.parallelism`` sets it to; None: one for each core.
    at_least : int, >= 1
        Its minimum where cores decide: 2 on a cluster, 1 in local mode.
    cores_per_slot_ratio : float, > 0
        Cores for each task that runs at the same time.

    Examples
    --------
    >>> DefaultParallelism().number(num_slots=4), DefaultParallelism(stated=3).number(num_slots=4)
    (4, 3)
    """

    stated: int | None = None
    at_least: int = 1
    cores_per_slot_ratio: float = 1.0

    def __post_init__(self) -> None:
        if self.stated is not None:
            require_count(MOST_INT, stated=self.stated)
        require_count(MOST_CORES, at_least=self.at_least)
        if not 0 < self.cores_per_slot_ratio <= MOST_CORES:
            raise ValueError(
                f"cores_per_slot_ratio is {self.cores_per_slot_ratio}; expected above 0, at most "
                f"{MOST_CORES}"
            )

    def number(self, num_slots: int) -> int:
        """Default parallelism at a number of slots."""
        return self.stated or max(round(num_slots * self.cores_per_slot_ratio), self.at_least)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSplits:
    """Spark's rule for the tasks that read files: small ones are packed, large ones may be split.

    Parameters
    ----------
    file_rows, file_bytes : float, > 0
        Mean content of a file.
    max_split_bytes, open_cost_bytes : int, >= 1
        ``spark.sql.files.maxPartitionBytes`` and ``spark.sql.files.openCostInBytes``.
    splits_files : bool
        Whether a file may be read by several tasks; compressed text and some formats may not.

    Examples
    --------
    >>> FileSplits(file_rows=100.0, file_bytes=1e5, max_split_bytes=2**27, open_cost_bytes=2**22)
    FileSplits(file_rows=100.0, file_bytes=100000.0, max_split_bytes=134217728, ...)
    """

    file_rows: float
    file_bytes: float
    max_split_bytes: int
    open_cost_bytes: int
    splits_files: bool = False

    def __post_init__(self) -> None:
        for name in ("file_rows", "file_bytes"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} is {getattr(self, name)}; expected more than 0")
        require_count(
            MOST_LONG, max_split_bytes=self.max_split_bytes, open_cost_bytes=self.open_cost_bytes
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSplits:
    """Kafka's ``maxRecordsPerPartition``: a task for so many rows of each topic partition.

    Parameters
    ----------
    topic_partitions : int, >= 1
        Topic partitions that have rows.
    max_records : int, >= 1
        Maximum rows of a task.

    Examples
    --------
    >>> RecordSplits(topic_partitions=4, max_records=1000)
    RecordSplits(topic_partitions=4, max_records=1000)
    """

    topic_partitions: int
    max_records: int

    def __post_init__(self) -> None:
        require_count(MOST_PARTITIONS, topic_partitions=self.topic_partitions)
        require_count(MOST_LONG, max_records=self.max_records)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTasks:
    """The rule of a source whose number of tasks follows the cores or the rows of a batch.

    Either ``records``, or ``parallelism``: alone, it is the number of tasks; with ``files``, it
    decides the size of a split. A stage that reads the source ``num_scans`` times, as a union with
    itself does, has so many times the tasks.

    Examples
    --------
    >>> SourceTasks(parallelism=DefaultParallelism()).follows_rows
    False
    """

    parallelism: DefaultParallelism | None = None
    files: FileSplits | None = None
    records: RecordSplits | None = None
    num_scans: int = 1

    def __post_init__(self) -> None:
        require_count(MOST_PARTITIONS, num_scans=self.num_scans)
        if (self.parallelism is None) == (self.records is None):
            raise ValueError("the rule of a source has either parallelism or records")
        if self.files is not None and self.parallelism is None:
            raise ValueError("the rule of files needs the parallelism")

    @property
    def follows_rows(self) -> bool:
        """Whether the rows of a batch decide, too, not the cores alone."""
        return self.files is not None or self.records is not None
