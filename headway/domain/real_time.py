"""Real-Time Mode: what a user can set, what is expected of it, and the plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Literal

from headway.domain.checks import require_count, require_seconds
from headway.domain.configuration import TaskCores, check_task_cores, task_slots
from headway.domain.node_type import NodeType
from headway.domain.prediction import LatencyDistribution
from headway.domain.result import Result
from headway.domain.target import Promise, Target
from headway.lazy_classes import dataclass
from headway.limits import MOST_INT
from headway.units import spark_trigger_text


@dataclass(frozen=True, slots=True, kw_only=True)
class RealTimeSetting:
    """The settings of a query in Real-Time Mode that Headway predicts for and plans.

    All tasks of all stages run at once, for as long as a batch: ``batch_length_s`` is the argument
    of the trigger. ``shuffle_partitions`` are the tasks of each stage behind an exchange.

    >>> RealTimeSetting(
    ...     executors=7, cores_per_executor=4, source_partitions=8, shuffle_partitions=20,
    ...     batch_length_s=300.0
    ... ).num_slots
    28
    """

    executors: int
    cores_per_executor: int
    source_partitions: int
    shuffle_partitions: int
    batch_length_s: float = field(metadata={"key": "trigger_s"})
    task_cpus: TaskCores = 1

    def __post_init__(self) -> None:
        require_count(
            MOST_INT,
            executors=self.executors,
            cores_per_executor=self.cores_per_executor,
            source_partitions=self.source_partitions,
            shuffle_partitions=self.shuffle_partitions,
        )
        check_task_cores(self, MOST_INT)
        require_seconds(batch_length_s=self.batch_length_s)

    @property
    def num_slots(self) -> int:
        return task_slots(self.executors, self.cores_per_executor, self.task_cpus)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RealTimePrediction(Result):
    """Prediction for a query in Real-Time Mode.

    ``tuple_latency`` is from the source to the sink, with 90% intervals; None if the backlog grows.
    Its mean is the sum of ``path_s``, of ``stage_mean_s`` by stage, which includes the wait in the
    shuffle before it, and of ``gap_mean_s``. ``busy_ratio`` is that of the busiest task of each
    stage, ``num_slots_needed`` the tasks of all stages, ``gap_s`` the time between two batches in
    which nothing is read, and ``gap_share`` the share of the rows that it delays. ``stage_work``
    says what the stages compute, as far as it is known.
    """

    result_kind = "real-time-prediction"
    calibrated: ClassVar[Literal[False]] = False
    stable: bool = field(metadata={"then": {"calibrated": "calibrated"}})
    rate_per_s: float
    sustainable_rate_per_s: float
    num_slots_needed: int = field(metadata={"key": "slots_needed"})
    tuple_latency: LatencyDistribution | None = field(metadata={"key": "tuple_latency_s"})
    path_s: float
    stage_mean_s: Mapping[str, float] = field(metadata={"key": "stages_s"})
    gap_mean_s: float = field(metadata={"key": "gaps_s"})
    gap_s: float
    gap_share: float
    busy_ratio: Mapping[str, float] = field(metadata={"key": "busy"})
    setting: RealTimeSetting = field(metadata={"key": "configuration"})
    stage_work: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RealTimePlan(Result):
    """The fewest nodes with which a query meets its targets in Real-Time Mode.

    ``planned_s`` is the latency of the target at ``confidence``; if it is not ``feasible``, the
    setting is the nearest one. ``binding`` says why it is infeasible, or what determines the size.
    ``max_rate_per_s`` is the max rate of the setting within the targets.
    """

    result_kind = "real-time-plan"
    feasible: bool
    target: Target = field(metadata={"key": None})
    also: tuple[Promise, ...] = field(metadata={"key": None})
    rate_per_s: float = field(metadata={"exact": True})
    nodes: int
    planned_s: float = field(metadata={"key": "planned_latency_s"})
    max_rate_per_s: float | None = field(metadata={"then": {"cost_per_hour": "cost"}})
    node_type: NodeType | None
    refused_node_types: tuple[str, ...] = ()
    confidence: float = field(metadata={"exact": True})
    setting: RealTimeSetting = field(metadata={"key": "configuration"})
    spark_conf: Mapping[str, str] = field(metadata={"then": {"query_options": "code_options"}})
    binding: tuple[str, ...]
    keeps_state: bool = field(metadata={"key": None})
    spark_version: str
    expected: RealTimePrediction = field(metadata={"key": "prediction"})

    @property
    def code_options(self) -> Mapping[str, str]:
        trigger = spark_trigger_text(self.setting.batch_length_s)
        return {"outputMode": "update", "trigger.realTime": trigger}

    @property
    def calibrated(self) -> bool:
        return self.expected.calibrated

    @property
    def cost(self) -> float | None:
        """Price of all nodes per hour; None without a price."""
        return None if self.node_type is None else self.node_type.cost_per_hour(self.nodes)

    @property
    def promises(self) -> tuple[Promise, ...]:
        return (self.target, *self.also)
