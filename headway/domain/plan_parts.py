"""The parts of a plan that say why it is so, what would change it, and what it is based on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Literal, TypeAlias

from headway.domain.checks import require_not_negative
from headway.domain.configuration import Configuration, TaskCores, task_slots
from headway.lazy_classes import dataclass

#: When a changed setting takes effect.
Applies: TypeAlias = Literal["live", "restart", "new application", "new checkpoint"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSetting:
    """One setting of the plan in Spark's terms; ``pinned_by`` says what fixes it.

    ``profiled`` is the value in the profiled run, None if unknown.
    """

    setting: str
    key: str
    value: str
    applies: Applies
    pinned_by: str | None = None
    profiled: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """What the planned latency would be with one thing changed; ``inf`` if over capacity.

    ``kind`` is ``knob`` for settings, ``input`` for given or measured values.
    """

    kind: str
    change: str
    latency_s: float
    keeps_target: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Something besides the settings that would help, and the resulting latency if known."""

    text: str
    latency_s: float | None = None


class Verdict(StrEnum):
    """Whether targets are met, at a confidence."""

    KEPT = "kept"
    NOT_KEPT = "not kept"
    TOO_CLOSE = "too close to tell"

    @classmethod
    def of(cls, probability: float, confidence: float) -> Verdict:
        """The verdict on targets that are met with a probability.

        >>> [str(Verdict.of(probability, 0.95)) for probability in (0.97, 0.71, 0.02)]
        ['kept', 'too close to tell', 'not kept']
        """
        if probability >= confidence:
            return cls.KEPT
        return cls.NOT_KEPT if probability <= 1.0 - confidence else cls.TOO_CLOSE


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """Time from the start of the process to the end of the first batch, in parts [s].

    ``jvm_s`` passes until an executor is there, ``session_s`` until the first batch begins;
    ``load_s`` and ``replay_s`` go to the snapshot of the state and the changes since, and
    ``first_batch_s`` to the rest of that batch.
    """

    jvm_s: float
    session_s: float
    load_s: float
    replay_s: float
    first_batch_s: float

    @property
    def total_s(self) -> float:
        """All of it."""
        return self.jvm_s + self.session_s + self.load_s + self.replay_s + self.first_batch_s


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterStart:
    """The target while the JVM is young.

    ``by_minute_s`` is the statistic of the target over the rows of each minute after a start, at
    the planned confidence, up to the minute that is like all later ones;
    ``expected_first_minute_s`` is that of the first minute without a margin, ``first_batch_s`` how
    long the first batch takes with it. The target is met from ``holds_from_minute`` on, counted
    from 1; None if that is unavailable, or later than the minutes that were computed. ``reason``
    says what the figures are based on, or why there are none, which is the ``evidence`` in short.
    ``restart`` is the time until the first batch has ended, at the planned confidence.
    """

    evidence: Literal["measured", "unavailable"]
    reason: str
    holds_from_minute: int | None = None
    by_minute_s: tuple[float, ...] = ()
    expected_first_minute_s: float | None = None
    first_batch_s: float | None = None
    restart: Restart | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOfThumb:
    """Setting of a rule of thumb, and its result for comparison with the plan."""

    rule: str
    nodes: int
    configuration: Configuration
    latency_s: float
    keeps_target: bool
    sustainable_rate_per_s: float
    cost_per_hour: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NearestTarget:
    """The nearest target that can be met if one part of it is relaxed.

    ``numbers`` has ``nodes``, and of the relaxed part ``limit_s``, ``rate_per_s``, ``trigger_s``,
    ``source_partitions``, ``confidence`` or ``quantile``.
    """

    gives_way: str
    text: str
    numbers: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseNeed:
    """What one target of several needs alone.

    ``within`` says whether that may be bought; ``most_nodes`` is the largest number of nodes that
    was tried. ``nodes`` is None if none of those meets it; ``reached_s`` is the value reached
    there, a latency or the time to catch up [s]. ``cost_per_hour`` is the cost of the nodes, and of
    write requests if these are priced. ``proved`` is false if ``nodes`` is None and not every
    number of nodes was tried.
    """

    promise: str
    within: bool
    most_nodes: int
    nodes: int | None = None
    node_type: str | None = None
    cost_per_hour: float | None = None
    reached_s: float | None = None
    proved: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimality:
    """How far a plan can be from the optimum.

    Below ``least_nodes`` nothing meets the target; the plan is ``proved`` to be the minimum if
    every number of nodes between was tried. ``relaxed_nodes`` is the bound of the convex
    relaxation, if requested.
    """

    least_nodes: int
    proved: bool
    relaxed_nodes: float | None = None

    def gap_ratio(self, nodes: int) -> float:
        """The share of its nodes by which a plan may exceed the optimum.

        >>> Optimality(least_nodes=8, proved=False).gap_ratio(10)
        0.2
        """
        return 0.0 if self.proved else (nodes - self.least_nodes) / nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class RocksDbMemory:
    """Memory of all stores of an executor in RocksDB: its bound, and what it may take at most.

    ``write_buffer_ratio`` and ``high_priority_ratio`` are the shares of the bound for write buffers
    and for indexes and filters. ``hit_ratio`` is the share of blocks that are found in memory, as
    RocksDB counts them: with those of indexes and filters.
    """

    bound_bytes: int
    write_buffer_ratio: float
    high_priority_ratio: float
    native_bytes: int
    hit_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan:
    """Memory of one executor [bytes].

    ``parts`` add up to ``needed_heap_bytes``, unless that is the minimum with which Spark runs;
    ``native_bytes`` is outside the heap (RocksDB).
    ``python_bytes`` is what Python workers may use (``spark.executor.pyspark.memory``); 0 if they
    use the overhead. ``off_heap_bytes`` is what Spark itself uses outside the heap
    (``spark.memory.offHeap.size``). ``profiled_heap_bytes`` is the heap of the profiled run, and
    ``profiled_heap`` its origin; ``reason`` explains ``heap_bytes``. ``is_measured_locally`` marks
    peaks of a JVM that was both driver and executor. ``rocksdb`` bounds ``native_bytes``; None if
    its rows are not recorded, or if there is none.
    """

    heap_bytes: int
    overhead_bytes: int
    needed_heap_bytes: int
    native_bytes: int
    parts: Mapping[str, int]
    python_bytes: int = 0
    off_heap_bytes: int = 0
    profiled_heap_bytes: int | None = None
    profiled_heap: str = ""
    reason: str = ""
    is_measured_locally: bool = False
    rocksdb: RocksDbMemory | None = None

    @property
    def container_bytes(self) -> int:
        """What the cluster manager reserves for the executor."""
        beside_heap_bytes = self.overhead_bytes + self.python_bytes + self.off_heap_bytes
        return self.heap_bytes + beside_heap_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTerm:
    """Time of a level that grows with the rows: ``per_row_s * scale * rows ** exponent`` [s]."""

    per_row_s: float
    scale: float
    exponent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelTime:
    """Time of one level of stages at the planned setting."""

    name: str
    fixed_s: float
    terms: tuple[StageTerm, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedDurations:
    """Batch durations at the planned setting: with it, a simulation needs no profile.

    ``planned_ratio`` is the factor on durations for the plan's confidence.
    """

    driver_s: float
    after_commit_s: float
    levels: tuple[LevelTime, ...]
    batch_noise_ratio: float
    autocorrelation: float
    run_to_run_ratio: float
    planned_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionChoice:
    """Time of a stage at a number of shuffle partitions, over batches and placements of keys."""

    shuffle_partitions: int
    largest_share: float
    mean_s: float
    p99_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSkew:
    """Effect of the heaviest key on a stage at a planned setting, whatever the targets are.

    ``planned`` is the stage at the planned shuffle partitions, ``best`` at the fewest with about
    the shortest p99, ``placed`` with the heaviest ``num_placed`` keys placed. Keys are known from a
    file; without one only the recorded share of the largest task is known, and neither
    ``hottest_key`` nor ``placed``. The rows of the heaviest key take ``serial_s`` per batch on any
    cluster; ``keeps_up`` says whether that leaves time within the trigger interval. ``work`` is
    what the stage computes, if it is known.
    """

    stage: str
    batch_rows: float
    num_slots: int
    planned: PartitionChoice
    best: PartitionChoice
    placed: PartitionChoice | None = None
    num_placed: int = 0
    hottest_key: str | None = None
    hottest_share: float
    serial_s: float
    keeps_up: bool
    work: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedResources:
    """What a plan assumes of the cluster that runs it, as one list; the executors are fixed.

    A file that is patched, and settings that a plan is compared with, must not contradict any of
    it. ``heap_bytes`` is None if the plan does not set the heap, the other sizes if it assumes
    none: it checks no memory, and what is set stays.

    >>> resources = PlannedResources(
    ...     nodes=1, executors=2, cores_per_executor=4, task_cpus=2, heap_bytes=8 * 2**30,
    ...     overhead_bytes=2**30, python_bytes=0, off_heap_bytes=0,
    ... )
    >>> resources.slots_per_executor, resources.num_cores
    (2, 8)
    """

    nodes: int
    executors: int
    cores_per_executor: int
    task_cpus: TaskCores
    heap_bytes: int | None = None
    overhead_bytes: int | None = None
    python_bytes: int | None = None
    off_heap_bytes: int | None = None

    @property
    def slots_per_executor(self) -> int:
        return task_slots(1, self.cores_per_executor, self.task_cpus)

    @property
    def num_cores(self) -> int:
        return self.executors * self.cores_per_executor

    @property
    def container_bytes(self) -> int | None:
        """Memory that is requested for an executor [bytes]; None if the plan assumes no size."""
        if self.heap_bytes is None or self.overhead_bytes is None:
            return None
        beside_bytes = (self.python_bytes or 0) + (self.off_heap_bytes or 0)
        return self.heap_bytes + self.overhead_bytes + beside_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedDriver:
    """The driver of one or several queries of an application: theory.md (U2)-(U4).

    Its queries keep ``busy_cores`` busy of ``cores``; ``needed_cores`` leave the room that it
    needs. As many queries of the same kinds as ``knee_queries`` saturate it, within the bounds with
    90% probability: beyond, batches no longer keep their triggers. ``heap_bytes`` is the heap to
    set. ``is_shared_with_tasks`` if driver and executor are one JVM, whose cores the tasks need,
    too.

    >>> driver = PlannedDriver(
    ...     num_queries=4, busy_cores=0.5, cores=1, needed_cores=1, knee_queries=8.0,
    ...     knee_low_queries=6.8, knee_high_queries=9.4, heap_bytes=2**30,
    ... )
    >>> driver.utilization_ratio, driver.is_saturated
    (0.5, False)
    """

    num_queries: int
    busy_cores: float
    cores: int
    needed_cores: int
    knee_queries: float
    knee_low_queries: float
    knee_high_queries: float
    heap_bytes: int
    is_shared_with_tasks: bool = False

    def __post_init__(self) -> None:
        require_not_negative("driver", busy_cores=self.busy_cores)
        if min(self.num_queries, self.cores, self.needed_cores) < 1:
            raise ValueError(
                f"driver: {self.num_queries} queries on {self.cores} cores, {self.needed_cores} "
                "needed; expected at least 1 of each"
            )
        if not 0 < self.knee_low_queries <= self.knee_queries <= self.knee_high_queries:
            raise ValueError(
                f"driver: saturated by {self.knee_queries:g} queries, from "
                f"{self.knee_low_queries:g} to {self.knee_high_queries:g}; expected positive "
                "numbers in order"
            )

    @property
    def utilization_ratio(self) -> float:
        """Share of time that its cores are busy; 1 or more if it is saturated."""
        return self.busy_cores / self.cores

    @property
    def is_saturated(self) -> bool:
        """Whether batches are not expected to keep their triggers."""
        return self.utilization_ratio >= 1.0
