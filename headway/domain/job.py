"""The interfaces of a job and of its answer, of any kind.

Structured Streaming queries and batch jobs implement these protocols, as new kinds must.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from headway.domain.argument import JobKind
    from headway.domain.configuration import Cluster, Configuration
    from headway.domain.declared import Provenance
    from headway.domain.finding import Finding
    from headway.domain.node_type import NodeType
    from headway.domain.plan import Change
    from headway.domain.plan_parts import MemoryPlan, PlannedSetting
    from headway.domain.prediction import Prediction
    from headway.domain.profile import Application
    from headway.domain.target import AnyPromise, Target


class Job(Protocol):
    """A job by its profile: a `JobProfile`, an `ApplicationProfile`, or a `StreamBacklog`."""

    @property
    def application(self) -> Application:
        """The Spark application of the last profiled run."""

    @property
    def called(self) -> str:
        """Its kind, in words."""

    @property
    def job_kind(self) -> JobKind:
        """Its kind, as far as different kinds can be asked different things."""

    @property
    def applications(self) -> tuple[Application, ...]:
        """Those of all profiled runs, the last one last."""

    @property
    def slots(self) -> Configuration | Cluster:
        """The current executors of the job: as profiled last, or declared."""

    @property
    def provenance(self) -> Provenance:
        """Whether the figures were measured or declared."""

    def require_can_promise(self, promise: AnyPromise) -> None:
        """Refuse targets that jobs of this kind cannot have.

        Raises InputError, which names the target, why such a job cannot have it, and one that it
        can have.
        """


class Answer(Protocol):
    """The result of planning a job: the plan if it is ``feasible``, else the nearest one.

    Implemented by `Plan` and `InfeasiblePlan`, `DeadlinePlan` and `DStreamsPlan`.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def feasible(self) -> bool:
        """Whether every target is met."""

    @property
    def ends(self) -> bool:
        """Whether the job ends by itself, as batch jobs do."""

    @property
    def promises(self) -> tuple[AnyPromise, ...]:
        """The targets; first the one that the plan refers to."""

    @property
    def rate_per_s(self) -> float | None:
        """Input rate of the plan; None for jobs without one. [records/s]"""

    @property
    def nodes(self) -> int:
        """Nodes to buy."""

    @property
    def executors(self) -> int:
        """The executors on them."""

    @property
    def cores_per_executor(self) -> int:
        """Cores of each executor."""

    @property
    def target(self) -> Target | None:
        """The latency target that the plan refers to; None for jobs without one."""

    @property
    def prediction(self) -> Prediction | None:
        """Prediction of a stream's latencies; None for jobs without."""

    @property
    def max_rate_per_s(self) -> float | None:
        """Max rate of this setting within its targets; None for jobs without a rate."""

    @property
    def expected_s(self) -> float | None:
        """Expected time of the first target [s]; None if it is unavailable."""

    @property
    def planned_s(self) -> float:
        """Time of the first target at the planned confidence [s]."""

    @property
    def cost(self) -> float | None:
        """Its cost, per hour or per run; None without prices."""

    @property
    def confidence(self) -> float:
        """The confidence level of the durations."""

    @property
    def calibrated(self) -> bool:
        """Whether it is within the calibrated range of the profile."""

    @property
    def binding(self) -> tuple[str, ...]:
        """Its binding constraints."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Cautions and notes about it."""

    @property
    def node_type(self) -> NodeType | None:
        """Node type of the plan."""

    @property
    def memory(self) -> MemoryPlan | None:
        """Memory of an executor; None if it was not planned."""

    @property
    def spark_conf(self) -> Mapping[str, str]:
        """Spark configuration."""

    @property
    def query_options(self) -> Mapping[str, str]:
        """Options that a streaming query needs besides it; empty for other jobs."""

    @property
    def settings(self) -> tuple[PlannedSetting, ...]:
        """Each key with its value in the profiled run."""

    @property
    def changes(self) -> tuple[Change, ...]:
        """Differences from the profiled run."""

    @property
    def spark_version(self) -> str | None:
        """Spark version of the last profiled run."""

    @property
    def provenance(self) -> Provenance:
        """Whether it is based on measured figures or on declared ones."""

    def most_s(self, promise: AnyPromise) -> float:
        """Upper end of the time that a target limits, according to this plan [s].

        Raises InputError if the plan does not predict it.
        """
