"""What is known of a job from its logs."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import field, replace
from typing import ClassVar

import headway.domain.recorded as recorded
from headway.assumptions.predictions import USUAL_PERSISTENCE_RATIO
from headway.domain.argument import JobKind
from headway.domain.checks import require_not_negative, require_spread
from headway.domain.configuration import FIRST_WITH_FRACTIONS, Arrivals, Configuration, Drain
from headway.domain.declared import DeclaredCosts, Provenance
from headway.domain.growth import DurationGrowth, SlowGrowth, WarmUp
from headway.domain.result import Result
from headway.domain.stage import QueryShape, StageProfile
from headway.domain.target import AnyPromise, Deadline
from headway.errors import InputError
from headway.lazy_classes import dataclass
from headway.limits import MOST_RATIO

PROFILE_SCHEMA = "headway.profile/v1"
APPLICATION_PROFILE_SCHEMA = "headway.application-profile/v1"
CHECKPOINT_PHASES = ("wal_commit", "commit_offsets")
"""Files written and synced: the disk's, whatever the age of the JVM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverPhase:
    """One step of a micro-batch on the driver, in Spark's order [s]."""

    name: str
    mean_s: float
    sd_s: float

    def __post_init__(self) -> None:
        require_not_negative(f"phase {self.name}", mean_s=self.mean_s, sd_s=self.sd_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class DurationNoise:
    """Spread of batch durations around the model, relative to the duration.

    ``batch_ratio`` is the coefficient of variation of long batches of one run; it multiplies the
    whole duration, since a slow moment of the machine slows the driver and the tasks alike.
    ``added_sd_s`` is the part that does not grow with the duration. ``autocorrelation`` is the
    share of that variance that lasts, ``persistence_ratio`` what is left of it from one batch to
    the next; ``run_to_run_ratio`` is the standard deviation of the logarithm between runs of a
    setting, which no number of batches of one run can reveal. If batches fall into two modes,
    ``slow_batch_share`` of them take ``slow_batch_ratio`` times as long as the others; both are
    part of ``batch_ratio``.
    """

    batch_ratio: float
    autocorrelation: float
    run_to_run_ratio: float
    added_sd_s: float = 0.0
    slow_batch_share: float = 0.0
    slow_batch_ratio: float = 1.0
    persistence_ratio: float = USUAL_PERSISTENCE_RATIO.value

    def __post_init__(self) -> None:
        require_spread(
            "noise", batch_ratio=self.batch_ratio, run_to_run_ratio=self.run_to_run_ratio
        )
        require_not_negative("noise", added_sd_s=self.added_sd_s)
        if not 0 <= self.slow_batch_share < 1 or not 1 <= self.slow_batch_ratio <= MOST_RATIO:
            raise ValueError(
                f"noise: slow batches are {self.slow_batch_share} of all and take "
                f"{self.slow_batch_ratio} times as long; expected a share from 0 to below 1 and a "
                f"ratio from 1 to {MOST_RATIO:g}"
            )
        for name in ("autocorrelation", "persistence_ratio"):
            if not 0 <= (value := getattr(self, name)) < 1:
                raise ValueError(f"noise: {name} is {value}; expected 0 or more, below 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How durations decrease while the JVM compiles code that runs often.

    A batch takes ``(age / reference_age_s) ** -exponent`` times what it takes at the reference age;
    ages are seconds since the executors started. The work of the driver, except for the files of
    the checkpoint, additionally decreases by ``driver_exponent``.

    >>> Drift(exponent=0.5, reference_age_s=400.0).factor(100.0)
    2.0
    """

    exponent: float
    reference_age_s: float
    driver_exponent: float = 0.0

    def __post_init__(self) -> None:
        within = 0 <= self.exponent <= 1 and 0 <= self.driver_exponent <= 1
        if not within or not self.reference_age_s > 0:
            raise ValueError(
                f"drift is (age / {self.reference_age_s}) ** -{self.exponent}, of the driver "
                f"-{self.driver_exponent} beyond; expected exponents in [0, 1] and a positive age"
            )

    def factor(self, jvm_age_s: float) -> float:
        """Duration at an age over duration at the reference age."""
        return float((jvm_age_s / self.reference_age_s) ** -self.exponent)

    def driver_factor(self, jvm_age_s: float, oldest_s: float) -> float:
        """Time of the driver at an age, beyond `factor`, over that at the reference age.

        Beyond the age of the oldest profiled run as `JobProfile.age_factor` does.
        """
        within_s = min(jvm_age_s, oldest_s)
        won_ratio = self.driver_exponent * (1.0 - within_s / jvm_age_s)
        return float((within_s / self.reference_age_s) ** -self.driver_exponent) * (1.0 - won_ratio)


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """The Spark application that wrote the log, and its settings that may be shown."""

    id: str
    name: str
    spark_version: str
    java_version: str | None = None
    executor_memory: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def name_in_log(self) -> str:
        """Its name; empty if the log has none."""
        return "" if self.name == "unknown" else self.name

    @property
    def is_local(self) -> bool:
        """Whether driver and executors were one process, by the name that Spark gave it."""
        return self.id.startswith("local-")

    @property
    def release(self) -> tuple[int, int]:
        """Major and minor number of its Spark version; zeros if unknown."""
        return spark_release(self.spark_version) or (0, 0)


def spark_release(version: str) -> tuple[int, int] | None:
    """Major and minor number of a version of Spark; None if it does not begin with both.

    >>> spark_release("3.5.6-amzn-2"), spark_release("4.1"), spark_release("unknown")
    ((3, 5), (4, 1), None)
    """
    match = re.match(r"([0-9]+)\.([0-9]+)(?:\.|$)", version)
    return None if match is None else (int(match[1]), int(match[2]))


def has_fractions_of_cores(version: str) -> bool:
    """Whether tasks can have a fraction of a core (``spark.task.cpus``); so if it is unknown.

    >>> has_fractions_of_cores("4.3.0"), has_fractions_of_cores("4.2.1")
    (True, False)
    """
    return (spark_release(version) or FIRST_WITH_FRACTIONS) >= FIRST_WITH_FRACTIONS


def is_rocksdb(state_store: str | None) -> bool:
    """Whether a state store, by the name of its class, is RocksDB; False if it is unknown."""
    return "rocksdb" in (state_store or "").lower()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class JobProfile(Result):
    """Everything that prediction and planning need to know about one streaming job.

    A profile of figures that people ``declared`` has no observed setting. Checkpoint and source fix
    ``state_partitions``, ``source_partitions`` and ``state_store``; None if nothing does, or if it
    is unknown. If all batches had one size, the cost of a row is only known to be within
    ``row_cost_half_range_ratio`` of the one listed, above or below.
    """

    result_kind = "profile"
    called: ClassVar[str] = "a streaming query"
    job_kind: ClassVar[JobKind] = JobKind.QUERY
    schema: str = PROFILE_SCHEMA
    headway_version: str
    applications: tuple[Application, ...]
    shape: QueryShape
    arrivals: Arrivals
    driver_phases: tuple[DriverPhase, ...]
    stages: tuple[StageProfile, ...]
    noise: DurationNoise
    drift: Drift
    settings: tuple[recorded.ObservedSetting, ...]
    observed_arrivals: recorded.ObservedArrivals | None = None
    state: recorded.StateProfile | None = None
    memory: recorded.MemoryProfile | None = None
    state_partitions: int | None = field(default=None, metadata={"key": "pins.state_partitions"})
    source_partitions: int | None = field(default=None, metadata={"key": "pins.source_partitions"})
    state_store: str | None = field(default=None, metadata={"key": "pins.state_store"})
    coverage: recorded.Coverage | None = None
    notes: tuple[str, ...] = field(default=())
    declared: DeclaredCosts | None = None
    warm_up: WarmUp | None = None
    growth: DurationGrowth | None = None
    slow_growth: tuple[SlowGrowth, ...] = ()
    row_cost_half_range_ratio: float | None = None
    drain: Drain | None = None
    empty_batches: recorded.EmptyBatches | None = None

    def __post_init__(self) -> None:
        if not 0 <= (self.row_cost_half_range_ratio or 0.0) <= 1:
            raise ValueError(f"row cost range is {self.row_cost_half_range_ratio}; expected 0 to 1")
        if bool(self.settings) == (self.declared is not None):
            fault = "a profile needs at least one observed setting, or declared figures without any"
            raise ValueError(fault)
        if self.declared is not None and len(self.declared.task_per_row) != len(self.stages):
            raise ValueError("declared figures need one range of task_per_row for each stage")
        if not self.stages:
            raise ValueError("a profile needs at least one stage")
        if not self.applications:
            raise ValueError("a profile needs at least one application")
        levels = [stage.level for stage in self.stages]
        if levels != sorted(levels):
            raise ValueError("the stages of a profile are listed by level, lowest first")

    @property
    def provenance(self) -> Provenance:
        return "measured" if self.declared is None else "declared"

    @property
    def application(self) -> Application:
        return self.applications[-1]

    @property
    def is_rocksdb(self) -> bool:
        """Whether RocksDB is known to keep the state."""
        return is_rocksdb(self.state_store)

    @property
    def slots(self) -> Configuration:
        """The current executors of the job: as profiled last, or declared."""
        return self.baseline

    def require_can_promise(self, promise: AnyPromise) -> None:
        """Refuse a deadline, unless the profiled query read a backlog and ended."""
        if isinstance(promise, Deadline) and self.drain is None:
            raise InputError(
                f"target '{promise}': a streaming job has no end to meet; use a latency, e.g. "
                "'p99 <= 3s', or profile a run that read a backlog and ended "
                "(Trigger.AvailableNow)"
            )

    @property
    def baseline(self) -> Configuration:
        """The setting that is used unless another is given: the last observed or declared one."""
        if self.declared is not None:
            return self.declared.configuration
        return self.settings[-1].configuration

    @property
    def driver_s(self) -> float:
        """Mean time of the driver's phases of a batch [s]."""
        return sum(phase.mean_s for phase in self.driver_phases)

    @property
    def stage_work(self) -> Mapping[str, str]:
        return {stage.name: stage.work for stage in self.stages if stage.work is not None}

    @property
    def todays_partitions(self) -> int | None:
        """Current shuffle partitions of the query; None if they were not declared."""
        if self.declared is not None and not self.declared.partitions_are_stated:
            return None
        return self.baseline.shuffle_partitions

    @property
    def profiled_rate_per_s(self) -> float:
        """The rate of the last run, at which the state is on record [records/s]."""
        # A declared job has no profiled rate but the given one.
        return self.settings[-1].rate_per_s if self.settings else self.arrivals.rate_per_s

    @property
    def num_state_rows(self) -> float:
        """Rows of the state at the rate in question: theory.md (E36)."""
        return self.state_rows_at(self.arrivals.rate_per_s)

    def state_rows_at(self, rate_per_s: float) -> float:
        """Rows of the state at a rate: theory.md (E36)."""
        if self.state is None:
            return 0.0
        return self.state.rows_at(rate_per_s / self.profiled_rate_per_s)

    @property
    def num_held_rows(self) -> float:
        """Rows of the state whose cost is not one of the rows of a batch: theory.md (E29)."""
        return self.held_rows_at(self.arrivals.rate_per_s)

    def held_rows_at(self, rate_per_s: float) -> float:
        """The same at any rate: theory.md (E36)."""
        state, num_rows = self.state, self.state_rows_at(rate_per_s)
        if state is None or not self.shape.keeps_rows or not state.rows:
            return num_rows
        return num_rows * max(1.0 - (state.updated_rows or 0.0) / state.rows, 0.0)

    @property
    def state_memory_bytes(self) -> int:
        """Memory of the state at the rate in question [bytes]: as its rows, theory.md (E36)."""
        if self.state is None or not self.state.rows:
            return 0 if self.state is None else self.state.memory_bytes
        return math.ceil(self.state.memory_bytes * self.num_state_rows / self.state.rows)

    @property
    def state_growth_per_s(self) -> float:
        """How fast the state grows at the rate in question [rows/s]: theory.md (P21).

        One that follows the rate does not grow, whatever its last batches show.
        """
        if self.state is None or self.state.rate_exponent > 0:
            return 0.0
        return self.state.growth_per_s * self.arrivals.rate_per_s / self.settings[-1].rate_per_s

    def at_age(self, jvm_age_s: float) -> JobProfile:
        """The profile with the driver's phases at an age of the JVM: theory.md (E35).

        The effect of that age on the whole batch is `age_factor`. Before the steady part of a run
        in a fresh JVM there is no other effect.
        """
        warm_up = self.warm_up
        is_young = warm_up is not None and jvm_age_s < warm_up.steady_age_s
        if is_young or self.drift.driver_exponent == 0:
            return self
        factor = self.drift.driver_factor(jvm_age_s, self._oldest_s)
        return replace(
            self,
            driver_phases=tuple(
                phase
                if phase.name in CHECKPOINT_PHASES
                else replace(phase, mean_s=factor * phase.mean_s, sd_s=factor * phase.sd_s)
                for phase in self.driver_phases
            ),
        )

    @property
    def _oldest_s(self) -> float:
        return max((self.drift.reference_age_s, *(setting.jvm_age_s for setting in self.settings)))

    def age_factor(self, jvm_age_s: float) -> float:
        """Duration at an age of the JVM over that at the reference age of the drift.

        Beyond the oldest profiled run it continues as the inverse of the age, with the slope it has
        there: the gain from compilation ends, whereas a power law would never end. Before the
        steady part of a run in a fresh JVM it is the measured ratio of the first batches.
        """
        warm_up = self.warm_up
        if warm_up is not None and warm_up.points and jvm_age_s < warm_up.steady_age_s:
            return warm_up.ratio(jvm_age_s)
        oldest_s = self._oldest_s
        if jvm_age_s <= oldest_s:
            return self.drift.factor(jvm_age_s)
        won_ratio = self.drift.exponent * (1.0 - oldest_s / jvm_age_s)
        return self.drift.factor(oldest_s) * (1.0 - won_ratio)

    @property
    def rows_per_batch_range(self) -> tuple[float, float]:
        """Minimum and maximum rows of a batch that were seen in steady state."""
        return (
            min(setting.rows_per_batch_low for setting in self.settings),
            max(setting.rows_per_batch_high for setting in self.settings),
        )
