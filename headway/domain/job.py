"""The interfaces of a job and of its answer, of any kind.

Structured Streaming queries and batch jobs implement these protocols, as new kinds must.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from headway.domain.argument import JobKind
    from headway.domain.backlog import EndingJob
    from headway.domain.configuration import TaskCores
    from headway.domain.declared import Provenance
    from headway.domain.finding import Finding
    from headway.domain.node_type import NodeType
    from headway.domain.plan import Change
    from headway.domain.plan_parts import MemoryPlan, PlannedSetting
    from headway.domain.prediction import Prediction
    from headway.domain.profile import Application
    from headway.domain.target import AnyPromise, Deadline, Target


class Slots(Protocol):
    """Executors, and the tasks that they run at the same time; None if not recorded."""

    @property
    def executors(self) -> int:
        """Number of executors."""

    @property
    def cores_per_executor(self) -> int | None:
        """Cores of each."""

    @property
    def task_cpus(self) -> TaskCores:
        """Cores per task."""

    @property
    def tasks_per_executor(self) -> int | None:
        """Most tasks at once on an executor if something other than cores limits them."""

    @property
    def num_slots(self) -> int | None:
        """Tasks that run at the same time, as `task_slots` counts them."""


class Job(Protocol):
    """A job by its profile: a `JobProfile` or an `ApplicationProfile`."""

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
    def slots(self) -> Slots:
        """The current values of the job: as profiled last, or declared."""

    @property
    def provenance(self) -> Provenance:
        """Whether the figures were measured or declared."""

    def for_deadline(self, deadline: Deadline, rows: float | None = None) -> EndingJob:
        """The job as one that ends; ``rows`` are the backlog that a streaming query reads.

        Raises
        ------
        InputError
            If it does not end by itself, or has no backlog but is given one.
        """

    def require_can_promise(self, promise: AnyPromise) -> None:
        """Refuse targets that jobs of this kind cannot have.

        Raises
        ------
        InputError
            Names the target, why such a job cannot have it, and one that it can have.
        """


class JobTime(Protocol):
    """Time of a job on a number of slots: the time of its target, as expected and as planned.

    For a batch job it is the run time. All times are in seconds.
    """

    @property
    def seen_slots(self) -> int:
        """Slots of the recorded run."""

    @property
    def modelled_ratio(self) -> float:
        """The recorded time over the modelled one, by which the model is scaled."""

    def mean_s(self, slots: int, core_speed_ratio: float) -> float:
        """The expected time, on cores of a speed relative to the profiled ones."""

    def planned_s(self, slots: int, core_speed_ratio: float, confidence: float) -> float:
        """The time that is exceeded with at most the remaining probability."""

    def spread_ratio(self, slots: int, core_speed_ratio: float) -> float:
        """Standard deviation of the logarithm of the true over the expected time."""

    def kept_probability(self, slots: int, core_speed_ratio: float, limit_s: float) -> float:
        """Probability that the time is at most a limit."""

    def least_s(self, slots: int, core_speed_ratio: float, confidence: float) -> float:
        """Lower bound of the planned time; quick to compute."""

    def parts_s(self, slots: int, core_speed_ratio: float) -> Mapping[str, float]:
        """The expected time by part."""

    def floor_s(self, core_speed_ratio: float) -> float:
        """Lower bound of the expected time on any number of slots."""

    def is_calibrated(self, slots: int) -> bool:
        """Whether this number of slots is within the calibrated range of the profile."""

    def findings(self, slots: int) -> Iterable[Finding]:
        """Findings about a plan with this number of slots."""


class Answer(Protocol):
    """The result of planning a job: the plan if it is ``feasible``, else the nearest one.

    Implemented by `Plan` and `InfeasiblePlan`, `DeadlinePlan` and `InfeasibleDeadlinePlan`,
    `DStreamsPlan` and `InfeasibleDStreamsPlan`.
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

        Raises
        ------
        InputError
            If the plan does not predict it.
        """
