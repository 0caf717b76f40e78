"""How adaptive execution merges small shuffle partitions into fewer tasks."""

from __future__ import annotations

from dataclasses import dataclass

from headway.domain.checks import require_count, require_not_negative
from headway.domain.configuration import TaskCores, check_task_cores
from headway.limits import MOST_CORES, MOST_INT, MOST_LONG, MOST_PARTITIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class Coalescing:
    """Spark's rule for the tasks of a stage behind an exchange that it may coalesce.

    Parameters
    ----------
    exchange_bytes_per_row : float, >= 0
        Bytes that the stage reads from the exchange per row that enters it.
    advisory_bytes : int, >= 1
        Size that a task should have (``spark.sql.adaptive.advisoryPartitionSizeInBytes``).
    smallest_bytes : int, >= 1
        Least size of a task (``spark.sql.adaptive.coalescePartitions.minPartitionSize``).
    parallelism : int or None, >= 1
        Tasks that it aims at, where they reach the least size; None: one for each core.
    task_cpus : TaskCores, > 0
        Cores per task, by which slots count as cores.
    initial_partitions : int or None, >= 1
        Partitions before merging, if they are not the shuffle partitions
        (``spark.sql.adaptive.coalescePartitions.initialPartitionNum``).

    Examples
    --------
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
        if self.parallelism is not None:
            require_count(MOST_INT, parallelism=self.parallelism)
        if self.initial_partitions is not None:
            require_count(MOST_PARTITIONS, initial_partitions=self.initial_partitions)

    def aimed_tasks(self, num_slots: int) -> int:
        """Tasks that it aims at, where they reach the least size."""
        return self.parallelism or max(round(num_slots * self.task_cpus), 1)

    def most_tasks(self, shuffle_partitions: int) -> int:
        """Tasks without coalescing."""
        return self.initial_partitions or shuffle_partitions
