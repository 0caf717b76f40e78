"""The answer for a job that ends: how many nodes it needs to meet its deadline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Literal, TypeAlias

from headway.domain.backlog import PlannedBacklog
from headway.domain.checks import require_count, require_seconds
from headway.domain.configuration import TaskCores, check_task_cores
from headway.domain.declared import DeclaredWork, Provenance
from headway.domain.finding import Finding
from headway.domain.node_type import NodeType
from headway.domain.plan import Change, StreamAnswer
from headway.domain.plan_parts import Advice, PlannedSetting, Verdict
from headway.domain.result import Result
from headway.domain.target import AnyPromise, Deadline
from headway.errors import InputError
from headway.lazy_classes import dataclass
from headway.limits import MOST_INT


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadlinePoint:
    """Run time of the job on a number of nodes: expected, and at the planned confidence [s]."""

    nodes: int
    mean_s: float
    planned_s: float
    cost_per_run: float | None = None

    def __post_init__(self) -> None:
        require_count(MOST_INT, nodes=self.nodes)
        require_seconds(mean_s=self.mean_s)

    @property
    def cost(self) -> float | None:
        return self.cost_per_run


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DeadlinePlan(Result):
    """The fewest nodes, or the lowest cost, with which a job that ends meets its deadline.

    If it is not ``feasible``, the deadline cannot be met, and ``nodes`` take the shortest run.

    ``floor_s`` is the lower bound for any number of nodes: the longest chain of stages, and the
    driver. ``modelled_ratio`` is the observed run time over the modelled one at the profiled slots,
    to which the model is scaled. ``calibrated`` is False if the job was profiled on far more or
    fewer slots, by an incomplete log, or not at all; ``findings`` then say so. ``changes`` are the
    settings that differ from the profiled ones. ``task_cpus`` are the cores per task. ``settings``
    contain each key with its profiled value. ``declared`` are the figures of a job that was not
    profiled. ``parts_s`` splits the expected run time; its values add up to it. ``findings`` also
    say why a row of the frontier is worse than one with fewer nodes. ``kept_probability`` is that
    of the deadline (P26), None in files of earlier versions and by an incomplete log; ``advice``
    says what would decide a verdict that is too close to tell. ``backlog`` is what a run reads if
    the job is a streaming query that ends. There is neither a rate nor a query with options, and
    memory is as profiled or given.
    """

    result_kind = "deadline-plan"
    ends: ClassVar[Literal[True]] = True
    rate_per_s: ClassVar[None] = None
    max_rate_per_s: ClassVar[None] = None
    target: ClassVar[None] = None
    prediction: ClassVar[None] = None
    memory: ClassVar[None] = None
    query_options: ClassVar[Mapping[str, str]] = {}
    feasible: bool
    deadline: Deadline
    nodes: int
    executors: int
    cores_per_executor: int
    run: DeadlinePoint
    frontier: tuple[DeadlinePoint, ...]
    floor_s: float
    modelled_ratio: float
    confidence: float = field(metadata={"exact": True})
    node_type: NodeType | None
    refused_node_types: tuple[str, ...] = ()
    binding: tuple[str, ...]
    spark_conf: Mapping[str, str]
    calibrated: bool = True
    changes: tuple[Change, ...] = ()
    spark_version: str | None = None
    task_cpus: TaskCores = 1
    settings: tuple[PlannedSetting, ...] = ()
    declared: DeclaredWork | None = None
    findings: tuple[Finding, ...] = ()
    parts_s: Mapping[str, float] = field(default_factory=dict)
    advice: tuple[Advice, ...] = ()
    kept_probability: float | None = None
    backlog: PlannedBacklog | None = None

    def __post_init__(self) -> None:
        require_count(MOST_INT, nodes=self.nodes, executors=self.executors)
        require_count(MOST_INT, cores_per_executor=self.cores_per_executor)
        check_task_cores(self, MOST_INT)

    @property
    def verdict(self) -> Verdict | None:
        """Whether the deadline is met at the planned confidence; for a feasible plan it is."""
        if self.kept_probability is None:
            return None
        return Verdict.of(self.kept_probability, self.confidence)

    @property
    def promises(self) -> tuple[Deadline]:
        return (self.deadline,)

    @property
    def expected_s(self) -> float:
        return self.run.mean_s

    @property
    def planned_s(self) -> float:
        return self.run.planned_s

    @property
    def cost(self) -> float | None:
        return self.run.cost_per_run

    @property
    def provenance(self) -> Provenance:
        return "measured" if self.declared is None else "declared"

    def most_s(self, promise: AnyPromise) -> float:
        """Run time at the planned confidence [s]; it is known for a deadline only."""
        if not isinstance(promise, Deadline):
            raise InputError(f"target '{promise}': a batch job has a deadline only")
        return self.planned_s


#: What comes of planning a batch job, and any job; ``ends`` tells which it is.
BatchAnswer: TypeAlias = DeadlinePlan
AnyAnswer: TypeAlias = StreamAnswer | BatchAnswer
