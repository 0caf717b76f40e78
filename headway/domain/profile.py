"""What is known of a job after its logs were read."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

from headway.domain.configuration import Arrivals, Configuration

PROFILE_SCHEMA = "headway.profile/v1"


def _require_not_negative(where: str, **values: float) -> None:
    for name, value in values.items():
        if not 0 <= value < math.inf:
            raise ValueError(f"{where}: {name} is {value}; expected 0 or more")


class TasksRule(StrEnum):
    """What decides how many tasks a stage has."""

    SOURCE = "source"
    SHUFFLE = "shuffle"


class Separation(StrEnum):
    """How the fixed cost of a task was told from its cost per row, best first.

    BATCHES compares batches of different size, TASKS the tasks of the same batch that had
    different shares of the rows; PARTS, where all tasks are alike, takes what Spark reports of a
    task's fixed work (launch, deserialization, state commit) and charges the rest to the rows.
    """

    BATCHES = "batches"
    TASKS = "tasks"
    PARTS = "parts"


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverPhase:
    """One step of a micro-batch on the driver, in Spark's order [s]."""

    name: str
    mean_s: float
    sd_s: float

    def __post_init__(self) -> None:
        _require_not_negative(f"phase {self.name}", mean_s=self.mean_s, sd_s=self.sd_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsLaw:
    """Rows that enter a stage when ``n`` rows enter the batch: ``scale * n ** exponent``.

    An exponent below 1 is a partial aggregation that meets the same keys again.

    Examples
    --------
    >>> RowsLaw(scale=2.0, exponent=1.0).rows(50.0)
    100.0
    """

    scale: float
    exponent: float

    def __post_init__(self) -> None:
        if not self.scale >= 0 or not 0 <= self.exponent <= 1:
            raise ValueError(
                f"rows law is {self.scale} * n ** {self.exponent}; "
                "expected scale >= 0 and an exponent in [0, 1]"
            )

    def rows(self, batch_rows: float) -> float:
        """Rows that enter the stage of a batch of ``batch_rows`` rows."""
        return float(self.scale * batch_rows**self.exponent)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageProfile:
    """One stage of the batch and what its tasks cost.

    Stages of one ``level`` compete for the slots; levels follow each other. A task takes
    ``task_fixed_s + task_per_row_s * rows + task_per_partition_s * shuffle_partitions`` [s]: the
    last for stages that write for an exchange, a file or buffer for each reader.
    ``task_noise_ratio`` is the coefficient of variation of tasks of the same batch.
    """

    name: str
    level: int
    tasks_rule: TasksRule
    num_source_tasks: int | None = None
    rows: RowsLaw
    task_fixed_s: float
    task_per_row_s: float
    task_per_partition_s: float = 0.0
    task_noise_ratio: float
    separation: Separation

    def __post_init__(self) -> None:
        if (self.num_source_tasks is None) != (self.tasks_rule is TasksRule.SHUFFLE):
            raise ValueError(
                f"stage {self.name}: num_source_tasks belongs to the rule 'source' only"
            )
        if self.num_source_tasks is not None and self.num_source_tasks < 1:
            raise ValueError(f"stage {self.name}: num_source_tasks is below 1")
        _require_not_negative(
            f"stage {self.name}",
            level=self.level,
            task_fixed_s=self.task_fixed_s,
            task_per_row_s=self.task_per_row_s,
            task_per_partition_s=self.task_per_partition_s,
            task_noise_ratio=self.task_noise_ratio,
        )

    def num_tasks(self, shuffle_partitions: int) -> int:
        """Tasks of the stage at a number of shuffle partitions."""
        return shuffle_partitions if self.num_source_tasks is None else self.num_source_tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class DurationNoise:
    """Spread of batch durations around the model, as shares of the duration.

    ``batch_ratio`` is the coefficient of variation of batches of one run; it multiplies the whole
    duration, since a slow moment of the machine slows the driver and the tasks alike.
    ``autocorrelation`` is the share of that variance that lasts over several batches;
    ``run_to_run_ratio`` is the spread (standard deviation of the logarithm) between runs of a
    setting, which no number of batches of one run can reveal.
    """

    batch_ratio: float
    autocorrelation: float
    run_to_run_ratio: float

    def __post_init__(self) -> None:
        _require_not_negative(
            "noise", batch_ratio=self.batch_ratio, run_to_run_ratio=self.run_to_run_ratio
        )
        if not 0 <= self.autocorrelation < 1:
            raise ValueError(
                f"noise: autocorrelation is {self.autocorrelation}; expected 0 or more, below 1"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How durations fall while the JVM compiles what runs often.

    A batch takes ``(age / reference_age_s) ** -exponent`` times what it takes at the reference
    age; ages are seconds since the executors started.

    Examples
    --------
    >>> Drift(exponent=0.5, reference_age_s=400.0).factor(100.0)
    2.0
    """

    exponent: float
    reference_age_s: float

    def __post_init__(self) -> None:
        if not 0 <= self.exponent <= 1 or not self.reference_age_s > 0:
            raise ValueError(
                f"drift is (age / {self.reference_age_s}) ** -{self.exponent}; "
                "expected an exponent in [0, 1] and a positive age"
            )

    def factor(self, jvm_age_s: float) -> float:
        """Duration at an age over duration at the reference age."""
        return float((jvm_age_s / self.reference_age_s) ** -self.exponent)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedSetting:
    """One query run that the profile was fitted on."""

    query_id: str
    query_name: str | None = None
    configuration: Configuration
    rate_per_s: float
    num_batches: int
    num_batches_cut: int
    jvm_age_s: float
    rows_per_batch_low: float
    rows_per_batch_high: float
    batch_duration_mean_s: float
    batch_duration_sd_s: float
    modelled_duration_mean_s: float

    def __post_init__(self) -> None:
        if not self.rate_per_s > 0 or self.num_batches < 1:
            raise ValueError(f"setting {self.query_id}: expected a positive rate and some batches")
        if not 0 <= self.rows_per_batch_low <= self.rows_per_batch_high:
            raise ValueError(f"setting {self.query_id}: the range of rows per batch is reversed")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryShape:
    """What the query is made of, as far as its progress tells."""

    sources: tuple[str, ...]
    sink: str
    stateful_operators: tuple[str, ...] = ()
    state_rows: int = 0
    watermarked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """The Spark application that wrote the log."""

    id: str
    name: str
    spark_version: str
    executor_memory: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProfile:
    """Everything that prediction and planning need to know of one streaming job.

    Read and written as YAML by :mod:`headway.spec.profile_file`.
    """

    schema: str = PROFILE_SCHEMA
    headway_version: str
    applications: tuple[Application, ...]
    shape: QueryShape
    arrivals: Arrivals
    driver_phases: tuple[DriverPhase, ...]
    stages: tuple[StageProfile, ...]
    noise: DurationNoise
    drift: Drift
    settings: tuple[ObservedSetting, ...]
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        if not self.settings:
            raise ValueError("a profile needs at least one observed setting")
        if not self.stages:
            raise ValueError("a profile needs at least one stage")
        if not self.applications:
            raise ValueError("a profile needs at least one application")
        levels = [stage.level for stage in self.stages]
        if levels != sorted(levels):
            raise ValueError("the stages of a profile are listed by level, lowest first")

    @property
    def baseline(self) -> Configuration:
        """The setting that stands for what is not asked: the one seen last."""
        return self.settings[-1].configuration

    @property
    def rows_per_batch_range(self) -> tuple[float, float]:
        """Fewest and most rows of a batch that were seen in steady state."""
        return (
            min(setting.rows_per_batch_low for setting in self.settings),
            max(setting.rows_per_batch_high for setting in self.settings),
        )
