"""What decides how many tasks a stage has: the rule of its source, or of its exchange."""

from __future__ import annotations

import math

from headway.domain.checks import require_count, require_not_negative
from headway.domain.configuration import TaskCores, check_task_cores
from headway.lazy_classes import dataclass
from headway.limits import MOST_CORES, MOST_INT, MOST_LONG, MOST_PARTITIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class Coalescing:
    """How adaptive execution merges small shuffle partitions: Spark's rule for a stage's tasks.

    Per row that enters the stage it reads ``exchange_bytes_per_row`` from the exchange. A task
    should have ``advisory_bytes`` (``spark.sql.adaptive.advisoryPartitionSizeInBytes``), and has at
    least ``smallest_bytes`` (``spark.sql.adaptive.coalescePartitions.minPartitionSize``).
    ``parallelism`` is the number of tasks that it aims at, where they reach the least size; None:
    one for each core, of which a slot has ``task_cpus``. ``initial_partitions`` are the partitions
    before merging, if they are not the shuffle partitions
    (``spark.sql.adaptive.coalescePartitions.initialPartitionNum``).

    >>> rule = Coalescing(exchange_bytes_per_row=100.0, advisory_bytes=2**26, smallest_bytes=2**20)
    >>> rule.aimed_tasks(num_slots=8), rule.most_tasks(shuffle_partitions=64)
    (8, 64)
    """

    exchange_bytes_per_row: float
    advisory_bytes: int
    smallest_bytes: int
    parallelism: int | None = None
    task_cpus: TaskCores = 1
    initial_partitions: int | None = None

    def __post_init__(self) -> None:
        require_not_negative("coalescing", exchange_bytes_per_row=self.exchange_bytes_per_row)
        require_count(
            MOST_LONG, advisory_bytes=self.advisory_bytes, smallest_bytes=self.smallest_bytes
        )
        check_task_cores(self, MOST_CORES)
        require_count(MOST_INT, parallelism=self.parallelism)
        require_count(MOST_PARTITIONS, initial_partitions=self.initial_partitions)

    def aimed_tasks(self, num_slots: int) -> int:
        """Tasks that it aims at, where they reach the least size."""
        return self.parallelism or max(round(num_slots * self.task_cpus), 1)

    def most_tasks(self, shuffle_partitions: int) -> int:
        """Tasks without coalescing."""
        return self.initial_partitions or shuffle_partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultParallelism:
    """Spark's default parallelism: one for each core, unless it is set.

    ``stated`` is what ``spark.default.parallelism`` sets it to. Where cores decide, it is
    ``at_least`` 2 on a cluster, 1 in local mode, with ``cores_per_slot_ratio`` cores for each task
    that runs at the same time.

    >>> DefaultParallelism().number(num_slots=4), DefaultParallelism(stated=3).number(num_slots=4)
    (4, 3)
    """

    stated: int | None = None
    at_least: int = 1
    cores_per_slot_ratio: float = 1.0

    def __post_init__(self) -> None:
        require_count(MOST_INT, stated=self.stated)
        require_count(MOST_CORES, at_least=self.at_least)
        if not 0 < self.cores_per_slot_ratio <= MOST_CORES:
            raise ValueError(
                f"cores_per_slot_ratio is {self.cores_per_slot_ratio}; expected above 0, at most "
                f"{MOST_CORES}"
            )

    def number(self, num_slots: int) -> int:
        return self.stated or max(round(num_slots * self.cores_per_slot_ratio), self.at_least)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSplits:
    """Spark's rule for the tasks that read files: small ones are packed, large ones may be split.

    ``file_rows`` and ``file_bytes`` are the mean content of a file, ``max_split_bytes`` and
    ``open_cost_bytes`` are ``spark.sql.files.maxPartitionBytes`` and
    ``spark.sql.files.openCostInBytes``. ``splits_files`` says whether several tasks may read a
    file, as compressed text and some formats do not allow.
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
    """Kafka's ``maxRecordsPerPartition``: a task for ``max_records`` rows of each topic partition.

    ``topic_partitions`` are those that have rows.
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
