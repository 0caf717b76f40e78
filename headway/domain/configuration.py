"""What a user can set, on what an application ran, and what arrives."""

from __future__ import annotations

import math
from dataclasses import field
from typing import Any, TypeAlias

import headway.limits as limits
from headway.domain.checks import require_count, require_not_negative
from headway.lazy_classes import dataclass

_DIGITS = 9  # beyond are those that quotients and products of fractions leave

TaskCores: TypeAlias = float
"""Cores of a task (``spark.task.cpus``): a whole number, or since Spark 4.3 a fraction."""
LEAST_TASK_CORES = 0.001
#: The first Spark that reads a fraction as the cores of a task; before, it does not start with one.
FIRST_WITH_FRACTIONS = (4, 3)


def check_task_cores(setting: Any, most_cores: int) -> None:
    """Refuse cores that no task can have; whole ones become integers, as Spark writes them."""
    task_cpus: TaskCores = setting.task_cpus
    if not LEAST_TASK_CORES <= task_cpus <= most_cores:
        raise ValueError(f"task_cpus is {task_cpus}; expected {LEAST_TASK_CORES:g} to {most_cores}")
    object.__setattr__(setting, "task_cpus", whole_or_fraction(task_cpus))


def _require_room_for_a_task(cores_per_executor: int, task_cpus: TaskCores) -> None:
    if task_cpus > cores_per_executor:
        fault = f"task_cpus is {task_cpus}, more than the {cores_per_executor} cores of an executor"
        raise ValueError(fault)


def whole_or_fraction(cores: float) -> TaskCores:
    """The same number of cores, as an integer if it is one.

    >>> whole_or_fraction(2.0), whole_or_fraction(0.5)
    (2, 0.5)
    """
    return int(cores) if cores == int(cores) else cores


def recorded_task_cores(cores: float) -> TaskCores:
    """Cores of a task as a log states them; Spark's default of one if they make no sense.

    >>> recorded_task_cores(0.25), recorded_task_cores(0.0)
    (0.25, 1)
    """
    return whole_or_fraction(cores) if LEAST_TASK_CORES <= cores <= limits.MOST_INT else 1


def idle_cores(cores_per_executor: int, task_cpus: TaskCores) -> float:
    """Cores of an executor that no task can use.

    >>> idle_cores(5, 2), idle_cores(4, 0.3)
    (1, 0.1)
    """
    used_cores = task_slots(1, cores_per_executor, task_cpus) * task_cpus
    return round(cores_per_executor - used_cores, _DIGITS)


def task_slots(
    executors: int,
    cores_per_executor: int,
    task_cpus: TaskCores = 1,
    tasks_per_executor: int | None = None,
) -> int:
    """Tasks that executors can run at the same time: the one place that counts them.

    ``task_cpus`` are the cores per task (``spark.task.cpus``): a task runs on one executor, so
    remaining cores of an executor stay idle. ``tasks_per_executor`` are the most tasks at once on
    an executor if something other than cores limits them, such as GPUs.

    Spark's ``TaskSchedulerImpl``: an offer gets tasks as long as enough cores for one are left.

    >>> task_slots(3, 4), task_slots(3, 4, task_cpus=2), task_slots(3, 5, task_cpus=2)
    (12, 6, 6)
    >>> task_slots(3, 1, task_cpus=2)
    0
    >>> task_slots(3, 4, tasks_per_executor=1), task_slots(3, 4, task_cpus=0.3)
    (3, 39)
    """
    of_cores = math.floor(round(cores_per_executor / task_cpus, _DIGITS))
    return executors * min(of_cores, of_cores if tasks_per_executor is None else tasks_per_executor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The settings of one streaming query that Headway predicts for and plans.

    Parameters
    ----------
    executors : int, >= 1
        Executors; local mode counts as one.
    cores_per_executor : int, >= task_cpus
        Cores of an executor.
    shuffle_partitions : int, >= 1
        Tasks after each exchange, and so partitions of the state.
    trigger_s : float, >= 0
        Trigger interval [s]; 0 is as fast as possible.
    max_offsets_per_trigger : int or None, >= 1
        Maximum number of records per batch; None is unlimited.
    task_cpus : TaskCores, > 0
        Cores per task (``spark.task.cpus``); remaining cores of an executor stay idle.
    tasks_per_executor : int or None, >= 1
        Most tasks at once on an executor, if something other than cores limits them.

    >>> configuration = Configuration(
    ...     executors=2, cores_per_executor=4, shuffle_partitions=8, trigger_s=1.0
    ... )
    >>> configuration.num_slots, configuration.size
    (8, (8, 8))
    """

    executors: int
    cores_per_executor: int
    shuffle_partitions: int
    trigger_s: float
    max_offsets_per_trigger: int | None = None
    task_cpus: TaskCores = 1
    tasks_per_executor: int | None = None

    def __post_init__(self) -> None:
        require_count(limits.MOST_EXECUTORS, executors=self.executors)
        require_count(limits.MOST_CORES, cores_per_executor=self.cores_per_executor)
        require_count(limits.MOST_PARTITIONS, shuffle_partitions=self.shuffle_partitions)
        check_task_cores(self, limits.MOST_CORES)
        require_count(limits.MOST_CORES, tasks_per_executor=self.tasks_per_executor)
        _require_room_for_a_task(self.cores_per_executor, self.task_cpus)
        shortest_s = limits.SHORTEST_TRIGGER_S
        if self.trigger_s != 0 and not shortest_s <= self.trigger_s <= limits.LONGEST_S:
            fault = (
                f"trigger_s is {self.trigger_s}; expected 0 (as fast as possible), or a "
                "millisecond to ten years"
            )
            raise ValueError(fault)
        require_count(limits.MOST_LONG, max_offsets_per_trigger=self.max_offsets_per_trigger)

    @property
    def num_slots(self) -> int:
        return task_slots(
            self.executors, self.cores_per_executor, self.task_cpus, self.tasks_per_executor
        )

    @property
    def size(self) -> tuple[int, int]:
        """Task slots and shuffle partitions, which the durations of batches depend on."""
        return self.num_slots, self.shuffle_partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The executors of an application; the cores of tasks and executors are as of `Configuration`.

    ``executors`` is their maximum number at one time, ``executors_mean`` the mean over the time of
    the application, ``cores_per_executor`` the median over them; None if none are recorded.

    >>> Cluster(executors=2, executors_mean=1.5, cores_per_executor=5, task_cpus=2).num_slots
    4
    """

    executors: int
    executors_mean: float
    cores_per_executor: int | None = None
    task_cpus: TaskCores = field(default=1, metadata={"formerly": "cpus_per_task"})
    tasks_per_executor: int | None = None

    def __post_init__(self) -> None:
        require_count(limits.MOST_INT, executors=self.executors)
        check_task_cores(self, limits.MOST_INT)
        require_count(limits.MOST_INT, cores_per_executor=self.cores_per_executor)
        require_count(limits.MOST_INT, tasks_per_executor=self.tasks_per_executor)
        if self.cores_per_executor is not None:
            _require_room_for_a_task(self.cores_per_executor, self.task_cpus)
        require_not_negative("cluster", executors_mean=self.executors_mean)

    @property
    def num_slots(self) -> int | None:
        """Tasks that could run at the same time; None if cores are not recorded."""
        if self.cores_per_executor is None:
            return None
        return task_slots(
            self.executors, self.cores_per_executor, self.task_cpus, self.tasks_per_executor
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """The stream that arrives, whether or not the query keeps up with it.

    Parameters
    ----------
    rate_per_s : float, > 0
        Mean arrival rate [records/s].
    dispersion_ratio : float, >= 0
        Variance over mean of the count in an interval; 1 is Poisson, 0 a constant rate.

    >>> Arrivals(rate_per_s=5000.0).dispersion_ratio
    1.0
    """

    rate_per_s: float
    dispersion_ratio: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.rate_per_s < math.inf:
            raise ValueError(f"rate_per_s is {self.rate_per_s}; expected a positive number")
        if not 0 <= self.dispersion_ratio < math.inf:
            raise ValueError(f"dispersion_ratio is {self.dispersion_ratio}; expected 0 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """The backlog that a query read before it ended, as with ``Trigger.AvailableNow``.

    The rate of the run is that at which it read, not that at which rows arrive. ``batch_rows`` are
    the rows of a usual batch, ``num_batches`` those that read something, and ``duration_s`` lasts
    from the start of the first to the end of the last of them.
    """

    backlog_rows: float
    batch_rows: float
    num_batches: int
    duration_s: float

    def __post_init__(self) -> None:
        if not (self.backlog_rows > 0 and 0 < self.duration_s <= limits.LONGEST_S):
            raise ValueError(
                f"a backlog of {self.backlog_rows:g} rows in {self.duration_s:g} s; "
                "expected both above 0"
            )
        require_count(limits.MOST_LONG, num_batches=self.num_batches)
        if not 0 < self.batch_rows <= self.backlog_rows:
            raise ValueError(
                f"batches of {self.batch_rows:g} rows of a backlog of {self.backlog_rows:g}; "
                "expected more than 0, and at most all of them"
            )
