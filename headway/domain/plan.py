"""The answer: what to run, on how many nodes, and why not fewer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headway.assumptions.planning import CONFIDENCE
from headway.domain.configuration import Arrivals, Configuration
from headway.domain.declared import DeclaredCosts
from headway.domain.finding import Finding
from headway.domain.node_type import NodeType, Objective
from headway.domain.plan_parts import (
    Advice,
    AfterStart,
    Applies,
    MemoryPlan,
    NearestTarget,
    Optimality,
    PlannedDurations,
    PlannedSetting,
    PromiseNeed,
    RuleOfThumb,
    Sensitivity,
)
from headway.domain.prediction import Prediction
from headway.domain.target import Promise, Target


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierPoint:
    """The highest rate that a number of nodes sustains under the target, and its setting.

    Of a plan's ``chosen``, the highest rate that its own setting sustains, rate limit included.
    """

    nodes: int
    sustainable_rate_per_s: float
    configuration: Configuration | None
    calibrated: bool
    cost_per_hour: float | None = None


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
    applies: Applies


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The fewest nodes that keep a target at a rate; or, not feasible, the nearest that would do.

    When ``feasible`` is False, ``configuration`` and ``prediction`` are those of the nearest plan:
    the setting with the lowest latency at the asked rate if it is stable at all, otherwise the one
    that sustains the highest rate under the target. ``planned_latency_s`` is the latency the
    target is about at the planned confidence, so above the predicted one; ``floor_s``, of plans
    that are not feasible, the lowest that any setting reaches at the asked rate, and
    ``physical_floor_s`` what no number of nodes comes below.

    ``chosen`` is the plan's own setting with its own maximum rate within target; a point of the
    ``frontier`` with as many nodes may be of another setting that carries more. ``declared`` are
    the figures of a plan that was not made from a profiled run; ``after_start`` is what becomes of
    the promise of a feasible plan while the JVM is young.

    ``needs``, of plans that are not feasible, is what each promise takes by itself;
    ``budget_per_hour`` is there where it sets the most nodes.

    ``findings`` are what a reader of the headline must know of it.

    ``also`` are promises that hold beside ``target``. ``refused_node_types`` says of each node
    type that cannot do it, why.
    """

    target: Target
    arrivals: Arrivals
    feasible: bool
    nodes: int
    configuration: Configuration
    prediction: Prediction
    planned_latency_s: float
    frontier: tuple[FrontierPoint, ...]
    binding: tuple[str, ...]
    rejected: tuple[Rejection, ...]
    changes: tuple[Change, ...]
    spark_conf: Mapping[str, str]
    query_options: Mapping[str, str]
    floor_s: float | None
    warnings: tuple[str, ...]
    confidence: float = CONFIDENCE.value
    also: tuple[Promise, ...] = ()
    objective: Objective = Objective.NODES
    node_type: NodeType | None = None
    cost_per_hour: float | None = None
    refused_node_types: tuple[str, ...] = ()
    settings: tuple[PlannedSetting, ...] = ()
    memory: MemoryPlan | None = None
    optimality: Optimality | None = None
    physical_floor_s: float | None = None
    nearest: tuple[NearestTarget, ...] = ()
    needs: tuple[PromiseNeed, ...] = ()
    budget_per_hour: float | None = None
    sensitivities: tuple[Sensitivity, ...] = ()
    advice: tuple[Advice, ...] = ()
    rules: tuple[RuleOfThumb, ...] = ()
    durations: PlannedDurations | None = None
    spark_version: str | None = None
    chosen: FrontierPoint | None = None
    findings: tuple[Finding, ...] = ()
    declared: DeclaredCosts | None = None
    after_start: AfterStart | None = None
