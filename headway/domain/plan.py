"""The answer: what to run, on how many nodes, and why not fewer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Literal, TypeAlias

import headway.domain.plan_parts as parts
from headway.assumptions.planning import CONFIDENCE
from headway.domain.checks import require_count
from headway.domain.configuration import Arrivals, Configuration
from headway.domain.declared import DeclaredCosts, Provenance
from headway.domain.finding import Finding
from headway.domain.later import made_when_asked
from headway.domain.node_type import NodeType, Objective
from headway.domain.prediction import LatencyDistribution, Prediction
from headway.domain.result import Result
from headway.domain.target import AnyPromise, Promise, Target
from headway.domain.writes import PlannedWrites
from headway.errors import InputError
from headway.lazy_classes import dataclass
from headway.limits import MOST_INT


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierPoint:
    """The max rate within target of a number of nodes, and its setting.

    For a plan's ``chosen``, the highest rate that its own setting sustains, with its rate limit.
    """

    nodes: int
    sustainable_rate_per_s: float
    configuration: Configuration | None
    calibrated: bool
    cost_per_hour: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRate:
    """What a plan for another rate would be; without nodes if none meets the targets there.

    ``predicted`` is the distribution of the latency that the target is about.
    """

    rate_per_s: float = field(metadata={"exact": True})
    nodes: int | None = None
    node_type: str | None = None
    cost_per_hour: float | None = None
    bill_per_hour: float | None = None
    configuration: Configuration | None = None
    predicted: LatencyDistribution | None = field(default=None, metadata={"key": "predicted_s"})
    planned_latency_s: float | None = None

    @property
    def cost(self) -> float | None:
        """The bill of an hour: nodes and, where they are priced, write requests."""
        return self.cost_per_hour if self.bill_per_hour is None else self.bill_per_hour


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """A neighbour of the plan and the number that rules it out."""

    change: str
    configuration: Configuration
    reason: str
    latency_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One setting that differs from the profiled one."""

    setting: str
    before: str
    after: str
    applies: parts.Applies


@made_when_asked(
    *("frontier", "binding", "sensitivities", "advice", "chosen", "kept_probability", "skew"),
    *("rates", "most_on_nodes", "first_advice"),
)
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class _StreamAnswer(Result):
    """What `Plan` and `InfeasiblePlan` have in common: a setting, and what is known of it.

    What explains the setting is computed when it is first read.

    ``planned_latency_s`` is the latency of the target at the planned confidence, so above the
    predicted one. ``chosen`` is the plan's own setting with its own maximum rate within target; a
    point of the ``frontier`` with as many nodes may be of another setting that carries more:
    ``most_on_nodes`` is that point alone, which takes no search among more nodes. ``first_advice``
    is the first of ``advice`` alone. ``also`` are further targets besides ``target``.
    ``budget_per_hour`` is given if it limits the number of nodes. ``refused_node_types`` has the
    reason for each node type that is unsuitable.
    ``declared`` are the figures of a plan that was not made from a profiled run. ``findings`` are
    cautions and notes about it. ``kept_probability`` is that of all targets together (P23); None in
    files of earlier versions. ``skew`` is the effect of the heaviest key on its stage, None if no
    key is known to be heavy. ``rates`` are plans for other rates in short, if no rate was given.
    ``cost_per_hour`` is that of the nodes; ``writes`` are the files that the query writes and what
    their requests cost, and ``driver`` what the driver does and gets: both None if the setting is
    not stable, or in files of earlier versions. ``source_partitions`` are the tasks that read the
    source, if the plan is for a stated number of them; None: as many as in the profiled run.
    """

    result_kind = "plan"
    ends: ClassVar[Literal[False]] = False
    target: Target
    arrivals: Arrivals = field(metadata={"exact": True})
    nodes: int
    configuration: Configuration
    prediction: Prediction
    planned_latency_s: float
    frontier: tuple[FrontierPoint, ...]
    binding: tuple[str, ...]
    changes: tuple[Change, ...]
    spark_conf: Mapping[str, str]
    query_options: Mapping[str, str]
    confidence: float = field(default=CONFIDENCE.value, metadata={"exact": True})
    also: tuple[Promise, ...] = ()
    objective: Objective = "nodes"
    node_type: NodeType | None = None
    cost_per_hour: float | None = None
    budget_per_hour: float | None = None
    refused_node_types: tuple[str, ...] = ()
    settings: tuple[parts.PlannedSetting, ...] = ()
    memory: parts.MemoryPlan | None = None
    optimality: parts.Optimality | None = None
    sensitivities: tuple[parts.Sensitivity, ...] = ()
    advice: tuple[parts.Advice, ...] = ()
    durations: parts.PlannedDurations | None = None
    spark_version: str | None = None
    chosen: FrontierPoint | None = None
    findings: tuple[Finding, ...] = ()
    declared: DeclaredCosts | None = None
    kept_probability: float | None = None
    skew: parts.PlannedSkew | None = None
    rates: tuple[PlannedRate, ...] = ()
    most_on_nodes: FrontierPoint | None = field(default=None, metadata={"key": None})
    first_advice: parts.Advice | None = field(default=None, metadata={"key": None})
    writes: PlannedWrites | None = None
    driver: parts.PlannedDriver | None = None
    source_partitions: int | None = None

    def __post_init__(self) -> None:
        require_count(MOST_INT, nodes=self.nodes, source_partitions=self.source_partitions)

    @property
    def verdict(self) -> parts.Verdict | None:
        if self.kept_probability is None:
            return None
        return parts.Verdict.of(self.kept_probability, self.confidence)

    @property
    def promises(self) -> tuple[Promise, ...]:
        """The targets; first the one that the plan refers to."""
        return (self.target, *self.also)

    @property
    def rate_per_s(self) -> float:
        """Input rate of the plan [records/s]."""
        return self.arrivals.rate_per_s

    @property
    def executors(self) -> int:
        return self.configuration.executors

    @property
    def cores_per_executor(self) -> int:
        return self.configuration.cores_per_executor

    @property
    def max_rate_per_s(self) -> float | None:
        return None if self.chosen is None else self.chosen.sustainable_rate_per_s

    @property
    def expected_s(self) -> float | None:
        """The predicted latency [s]; None if it is not quoted."""
        distribution = self.prediction.latency(self.target.metric)
        return (
            None if distribution is None else distribution.statistics_s.get(self.target.statistic)
        )

    @property
    def planned_s(self) -> float:
        """Time of the first target at the planned confidence [s]."""
        return self.planned_latency_s

    @property
    def cost(self) -> float | None:
        """The bill of an hour: the nodes, and requests and space of a store if they are priced."""
        store_cost_per_hour = None if self.writes is None else self.writes.bill_per_hour
        if self.cost_per_hour is None or store_cost_per_hour is None:
            return self.cost_per_hour
        return self.cost_per_hour + store_cost_per_hour

    @property
    def calibrated(self) -> bool:
        return self.prediction.calibrated

    @property
    def provenance(self) -> Provenance:
        return "measured" if self.declared is None else "declared"

    def most_s(self, promise: AnyPromise) -> float:
        """Upper end of a latency [s]; the plan's own latency is at the plan's confidence."""
        if not isinstance(promise, Target):
            raise InputError(f"target '{promise}': expected a latency, e.g. 'p99 <= 2s'")
        if (self.target.metric, self.target.quantile) == (promise.metric, promise.quantile):
            return self.planned_latency_s
        distribution = self.prediction.latency(promise.metric)
        if distribution is None:
            raise InputError(f"target '{promise}': the plan predicts no such latency")
        if promise.statistic not in distribution.statistics_s:
            fault = f"target '{promise}': expected one of {', '.join(distribution.statistics_s)}"
            raise InputError(fault)
        interval = distribution.intervals90_s.get(promise.statistic)
        return distribution.statistics_s[promise.statistic] if interval is None else interval.high


@made_when_asked("rejected", "rules", "after_start")
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Plan(_StreamAnswer):
    """The fewest nodes that meet a target at a rate, and why fewer do not suffice.

    ``after_start`` says whether the target is met while the JVM is young.
    """

    feasible: ClassVar[Literal[True]] = True
    rejected: tuple[Rejection, ...] = ()
    rules: tuple[parts.RuleOfThumb, ...] = ()
    after_start: parts.AfterStart | None = None


@made_when_asked("nearest", "needs")
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class InfeasiblePlan(_StreamAnswer):
    """No setting meets the targets: the nearest plan, and what would have to be relaxed.

    The setting is the one with the lowest latency at the requested rate if one is stable, otherwise
    the one with the highest rate within target. ``floor_s`` is the lowest latency of any setting at
    that rate, ``physical_floor_s`` the bound for any number of nodes, ``needs`` what each target
    needs alone.
    """

    feasible: ClassVar[Literal[False]] = False
    floor_s: float
    physical_floor_s: float | None = None
    nearest: tuple[parts.NearestTarget, ...] = ()
    needs: tuple[parts.PromiseNeed, ...] = ()


#: What comes of planning a stream; ``feasible`` tells which it is.
StreamAnswer: TypeAlias = Plan | InfeasiblePlan
