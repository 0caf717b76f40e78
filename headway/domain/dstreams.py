"""DStreams applications: what a user can set, what is expected of it, and the plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Literal

from headway.domain.checks import require_count, require_seconds
from headway.domain.configuration import TaskCores, check_task_cores, task_slots
from headway.domain.declared import Provenance
from headway.domain.finding import Finding
from headway.domain.node_type import NodeType
from headway.domain.plan import Change
from headway.domain.plan_parts import PlannedSetting
from headway.domain.prediction import LatencyDistribution
from headway.domain.result import Result
from headway.domain.target import AnyPromise, Target
from headway.errors import InputError
from headway.lazy_classes import dataclass
from headway.limits import MOST_INT


@dataclass(frozen=True, slots=True, kw_only=True)
class DStreamsSetting:
    """The settings of a DStreams application that Headway predicts for and plans.

    ``batch_interval_s`` is that of the ``StreamingContext``, ``concurrent_jobs`` is
    ``spark.streaming.concurrentJobs``, ``num_receivers`` are tasks that each occupy a slot
    permanently.

    >>> DStreamsSetting(
    ...     executors=2, cores_per_executor=4, batch_interval_s=1.0, num_receivers=1
    ... ).num_slots
    7
    """

    executors: int
    cores_per_executor: int
    batch_interval_s: float = field(metadata={"key": "trigger_s"})
    concurrent_jobs: int = 1
    task_cpus: TaskCores = 1
    num_receivers: int = field(default=0, metadata={"key": "receivers"})

    def __post_init__(self) -> None:
        require_count(
            MOST_INT,
            executors=self.executors,
            cores_per_executor=self.cores_per_executor,
            concurrent_jobs=self.concurrent_jobs,
        )
        check_task_cores(self, MOST_INT)
        require_seconds(batch_interval_s=self.batch_interval_s)

    @property
    def num_slots(self) -> int:
        """Tasks of batches that can run at the same time; none if receivers take all slots."""
        slots = task_slots(self.executors, self.cores_per_executor, self.task_cpus)
        return max(slots - self.num_receivers, 0)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DStreamsPrediction(Result):
    """Prediction for a setting of a DStreams application.

    ``processing_time`` is that of a batch, ``scheduling_delay`` its wait for the batches before it,
    ``tuple_latency`` from the arrival of a row to the end of its batch; ``phases_s`` splits its
    mean. The three are None if batches pile up, or if the setting is too close to that.
    ``overrun_probability`` is the share of batches that take longer than the interval. Rates are
    None if the log does not count rows. ``utilization_ratio`` is the share of time that the jobs
    which may run at the same time are busy, ``offered_load_ratio`` is above 1 if more arrives than
    they can do.
    """

    result_kind = "dstreams-prediction"
    stable: bool
    utilization_ratio: float = field(metadata={"key": "utilization"})
    offered_load_ratio: float = field(metadata={"key": "offered_load"})
    overrun_probability: float
    calibrated: bool
    provenance: Provenance = "measured"
    findings: tuple[Finding, ...] = field(metadata={"words": "warnings"})
    rate_per_s: float | None
    sustainable_rate_per_s: float | None
    processing_time: LatencyDistribution | None = field(metadata={"key": "batch_duration_s"})
    scheduling_delay: LatencyDistribution | None = field(metadata={"key": "scheduling_delay_s"})
    tuple_latency: LatencyDistribution | None = field(metadata={"key": "tuple_latency_s"})
    phases_s: Mapping[str, float]
    setting: DStreamsSetting = field(metadata={"key": "configuration"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DStreamsPoint:
    """Latency on a number of nodes: expected, and at the planned confidence [s].

    ``cost_per_hour`` is the price of the nodes; None without prices.
    """

    nodes: int
    batch_interval_s: float = field(metadata={"key": "trigger_s"})
    expected_s: float
    planned_s: float
    cost_per_hour: float | None = field(default=None, metadata={"key": None})

    @property
    def cost(self) -> float | None:
        return self.cost_per_hour


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DStreamsPlan(Result):
    """The fewest nodes with which a DStreams application meets a target.

    If it is not ``feasible``, the target cannot be met, and the setting is the one with the lowest
    planned latency. ``max_rate_per_s`` is the max rate of the setting within the target. The
    ``expected`` prediction has other parts than that of a query, memory is as profiled, or as
    given, and the batch interval is set in the application's code.
    """

    result_kind = "dstreams-plan"
    ends: ClassVar[Literal[False]] = False
    prediction: ClassVar[None] = None
    memory: ClassVar[None] = None
    query_options: ClassVar[Mapping[str, str]] = {}
    feasible: bool
    target: Target = field(metadata={"key": None})
    rate_per_s: float | None = field(
        metadata={"exact": True, "then": {"nodes": "nodes", "planned_latency_s": "planned_s"}}
    )
    point: DStreamsPoint = field(metadata={"key": None})
    max_rate_per_s: float | None = field(metadata={"then": {"cost_per_hour": "cost"}})
    setting: DStreamsSetting = field(metadata={"key": "configuration"})
    spark_conf: Mapping[str, str]
    binding: tuple[str, ...]
    frontier: tuple[DStreamsPoint, ...]
    changes: tuple[Change, ...]
    settings: tuple[PlannedSetting, ...]
    findings: tuple[Finding, ...] = field(metadata={"words": "warnings"})
    confidence: float = field(metadata={"exact": True})
    node_type: NodeType | None
    refused_node_types: tuple[str, ...] = ()
    spark_version: str | None = None
    expected: DStreamsPrediction = field(metadata={"key": "prediction"})

    @property
    def promises(self) -> tuple[Target]:
        return (self.target,)

    @property
    def nodes(self) -> int:
        return self.point.nodes

    @property
    def executors(self) -> int:
        return self.setting.executors

    @property
    def cores_per_executor(self) -> int:
        return self.setting.cores_per_executor

    @property
    def expected_s(self) -> float:
        """The expected latency [s]; ``inf`` if batches pile up."""
        return self.point.expected_s

    @property
    def planned_s(self) -> float:
        return self.point.planned_s

    @property
    def provenance(self) -> Provenance:
        return self.expected.provenance

    @property
    def calibrated(self) -> bool:
        return self.expected.calibrated

    @property
    def cost(self) -> float | None:
        """Of all nodes, for an hour; None without a price."""
        return None if self.node_type is None else self.node_type.cost_per_hour(self.nodes)

    def most_s(self, promise: AnyPromise) -> float:
        """The latency at the planned confidence [s]; it is known for that of the target only."""
        planned_statistic = (self.target.metric, self.target.quantile)
        if (
            not isinstance(promise, Target)
            or (promise.metric, promise.quantile) != planned_statistic
        ):
            raise InputError(f"target '{promise}': the plan is for {self.target} alone")
        return self.planned_s
