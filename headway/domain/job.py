"""What every room asks of a job and of its answer, of whatever kind.

Structured Streaming queries and batch jobs implement these protocols; so does what is to come.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from headway.domain.declared import Provenance
    from headway.domain.finding import Finding
    from headway.domain.node_type import NodeType
    from headway.domain.plan import Change
    from headway.domain.plan_parts import PlannedSetting
    from headway.domain.prediction import Prediction
    from headway.domain.profile import Application
    from headway.domain.target import AnyPromise, Target


class Slots(Protocol):
    """Executors, and the tasks that they run at the same time; None where it is not on record."""

    @property
    def executors(self) -> int:
        """How many there are."""

    @property
    def cores_per_executor(self) -> int | None:
        """Cores of each."""

    @property
    def task_cpus(self) -> int:
        """Cores that a task takes."""

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
        """What it is, in words."""

    @property
    def applications(self) -> tuple[Application, ...]:
        """Those of all profiled runs, the last one last."""

    @property
    def slots(self) -> Slots:
        """What the job has today: as it was profiled last, or declared."""

    @property
    def provenance(self) -> Provenance:
        """Whether the figures were measured or declared."""

    def require_can_promise(self, promise: AnyPromise) -> None:
        """Refuse what jobs of the kind cannot promise.

        Raises
        ------
        InputError
            Names the promise, why it is none of such a job, and one that is.
        """


class JobTime(Protocol):
    """What a job costs on slots: the time that its promise is about, as expected and as planned.

    Of a batch job the run time. All times are in seconds.
    """

    @property
    def seen_slots(self) -> int:
        """Slots of the run on record."""

    @property
    def modelled_ratio(self) -> float:
        """The time on record over the modelled one, by which the model is scaled."""

    def mean_s(self, slots: int, core_speed_ratio: float) -> float:
        """The expected time, on cores so many times as fast as those profiled."""

    def planned_s(self, slots: int, core_speed_ratio: float, confidence: float) -> float:
        """The time that is exceeded with at most the remaining probability."""

    def spread_ratio(self, slots: int, core_speed_ratio: float) -> float:
        """Standard deviation of the logarithm of the true over the expected time."""

    def kept_probability(self, slots: int, core_speed_ratio: float, limit_s: float) -> float:
        """Probability that the time is at most a limit."""

    def least_s(self, slots: int, core_speed_ratio: float, confidence: float) -> float:
        """What the planned time cannot come below; quick to tell."""

    def parts_s(self, slots: int, core_speed_ratio: float) -> Mapping[str, float]:
        """The expected time, split."""

    def floor_s(self, core_speed_ratio: float) -> float:
        """What the expected time does not come below on any number of slots."""

    def is_calibrated(self, slots: int) -> bool:
        """Whether the profile speaks for so many slots."""

    def findings(self, slots: int) -> Iterable[Finding]:
        """What speaks against a plan of so many slots."""


class Answer(Protocol):
    """What comes of planning a job: what to run where it is ``feasible``, else the nearest to it.

    Implemented by `Plan` and `InfeasiblePlan`, `DeadlinePlan` and `InfeasibleDeadlinePlan`,
    `DStreamsPlan` and `InfeasibleDStreamsPlan`.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def feasible(self) -> bool:
        """Whether every promise is kept."""

    @property
    def ends(self) -> bool:
        """Whether what is planned ends by itself, as batch jobs do."""

    @property
    def promises(self) -> tuple[AnyPromise, ...]:
        """What was asked for; first the promise that is planned by."""

    @property
    def rate_per_s(self) -> float | None:
        """Arrivals that were planned for; None where nothing arrives. [records/s]"""

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
        """The latency that is planned by; None of jobs that promise none."""

    @property
    def prediction(self) -> Prediction | None:
        """What is expected of a stream's latencies; None of jobs without."""

    @property
    def max_rate_per_s(self) -> float | None:
        """The most that this setting takes within its promises; None where nothing arrives."""

    @property
    def expected_s(self) -> float | None:
        """What the first promise is about, as expected [s]; None where it is unavailable."""

    @property
    def planned_s(self) -> float:
        """What the first promise is about, at the planned confidence [s]."""

    @property
    def cost(self) -> float | None:
        """What it costs, by the hour or by the run; None without prices."""

    @property
    def confidence(self) -> float:
        """The confidence level of the durations."""

    @property
    def calibrated(self) -> bool:
        """Whether the profile speaks for it."""

    @property
    def binding(self) -> tuple[str, ...]:
        """What limits it."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What speaks against it, or must be known of it."""

    @property
    def node_type(self) -> NodeType | None:
        """What is bought."""

    @property
    def spark_conf(self) -> Mapping[str, str]:
        """Spark configuration."""

    @property
    def query_options(self) -> Mapping[str, str]:
        """What a streaming query is given beside it; empty for other jobs."""

    @property
    def settings(self) -> tuple[PlannedSetting, ...]:
        """Each key beside what it was in the profiled run."""

    @property
    def changes(self) -> tuple[Change, ...]:
        """What differs from the profiled run."""

    @property
    def spark_version(self) -> str | None:
        """The Spark of the last profiled run."""

    @property
    def provenance(self) -> Provenance:
        """Whether it rests on measured figures or on declared ones."""

    def most_s(self, promise: AnyPromise) -> float:
        """The most that what a promise is about takes by this plan [s].

        Raises
        ------
        InputError
            If the plan does not tell of it.
        """
