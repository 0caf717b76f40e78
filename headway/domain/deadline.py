"""The answer for a batch job: how many nodes it takes to be done in time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headway.domain.declared import DeclaredWork
from headway.domain.finding import Finding
from headway.domain.node_type import NodeType
from headway.domain.plan import Change
from headway.domain.plan_parts import PlannedSetting
from headway.domain.target import Deadline


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadlinePoint:
    """Run time of the job on a number of nodes: expected, and at the planned confidence [s]."""

    nodes: int
    mean_s: float
    planned_s: float
    cost_per_run: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadlinePlan:
    """The fewest nodes, or the lowest cost, with which a batch job keeps its deadline.

    Not feasible, ``nodes`` are those of the shortest run. ``floor_s`` is what no number of nodes
    comes below: the longest chain of stages, and the driver. ``modelled_ratio`` is the observed
    run time over the modelled one at the profiled slots, by which the model is scaled.
    ``calibrated`` is False where the job was profiled on far more or fewer slots, or not at all;
    ``warnings`` then say so. ``changes`` are the settings that differ from the profiled ones.
    ``task_cpus`` are the cores that a task takes. ``settings`` hold each key beside what it was.
    ``declared`` are the figures of a job that was not profiled. ``findings`` say why a row of the
    frontier is worse than one of fewer nodes.
    """

    deadline: Deadline
    feasible: bool
    nodes: int
    executors: int
    cores_per_executor: int
    run: DeadlinePoint
    frontier: tuple[DeadlinePoint, ...]
    floor_s: float
    modelled_ratio: float
    confidence: float = field(metadata={"exact": True})
    node_type: NodeType | None
    binding: tuple[str, ...]
    spark_conf: Mapping[str, str]
    warnings: tuple[str, ...]
    calibrated: bool = True
    changes: tuple[Change, ...] = ()
    spark_version: str | None = None
    task_cpus: int = 1
    settings: tuple[PlannedSetting, ...] = ()
    declared: DeclaredWork | None = None
    findings: tuple[Finding, ...] = ()
