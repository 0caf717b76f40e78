"""Declared figures -> profiles, for jobs that have no log yet.

What people state stands for what would have been measured: the middle of each range is the mean,
and the range goes into the spread between runs, so that a plan keeps its distance from it.
"""

from __future__ import annotations

import math

from headway.domain import (
    Application,
    ApplicationProfile,
    Arrivals,
    Configuration,
    Drift,
    DriverPhase,
    DurationNoise,
    JobProfile,
    ObservedSetting,
    QueryShape,
    RowsLaw,
    Separation,
    StageProfile,
    TasksRule,
)
from headway.spec.forms.quantities import Quantity
from headway.spec.kinds.jobs import DeclaredStream
from headway.spec.kinds.rates import Rate, peak_rate
from headway.units import spark_memory_text
from headway.version import __version__

#: Least spread (of the logarithm) of durations that nobody measured: people are off by a quarter.
LEAST_SPREAD_RATIO = 0.25
NOTE = "declared figures: nothing of this job was measured"

_BATCH_NOISE_RATIO = 0.15
_TASK_NOISE_RATIO = 0.3
_NUM_DECLARED_EXECUTORS = 1
_TRIGGER_S = 1.0


def declared_profile(name: str, declared: DeclaredStream, rate: Rate) -> JobProfile:
    """The profile that declared figures amount to.

    Parameters
    ----------
    name : str
        The job's name.
    declared : DeclaredStream
        What is known of its cost.
    rate : Quantity, DailyCurve or RateTrace
        What arrives.

    Examples
    --------
    >>> from headway.spec.forms.quantities import Quantity
    >>> declared = DeclaredStream(task_per_row_s=Quantity.exactly(2e-5), source_partitions=12)
    >>> profile = declared_profile("orders", declared, Quantity.exactly(5000.0))
    >>> profile.stages[0].num_source_tasks, profile.noise.run_to_run_ratio
    (12, 0.25)
    """
    rate_per_s = peak_rate(rate).mid
    configuration = Configuration(
        executors=_NUM_DECLARED_EXECUTORS,
        cores_per_executor=declared.cores_per_executor,
        shuffle_partitions=declared.shuffle_partitions,
        trigger_s=_TRIGGER_S,
    )
    stages = _stages(declared)
    batch_rows = rate_per_s * _TRIGGER_S
    slots = configuration.num_slots
    duration_s = declared.driver_s.mid + sum(
        _stage_s(stage, batch_rows, declared.shuffle_partitions, slots) for stage in stages
    )
    return JobProfile(
        headway_version=__version__,
        applications=(
            Application(
                id="declared",
                name=name,
                spark_version=declared.spark_version,
                executor_memory=None
                if declared.executor_memory_bytes is None
                else spark_memory_text(declared.executor_memory_bytes),
            ),
        ),
        shape=QueryShape(
            sources=("declared",),
            sink="declared",
            stateful_operators=("declared",) if declared.stateful else (),
        ),
        arrivals=Arrivals(rate_per_s=rate_per_s),
        driver_phases=(
            DriverPhase(
                name="query_planning",
                mean_s=declared.driver_s.mid,
                sd_s=declared.driver_s.mid * _BATCH_NOISE_RATIO,
            ),
        ),
        stages=stages,
        noise=DurationNoise(
            batch_ratio=_BATCH_NOISE_RATIO,
            autocorrelation=0.0,
            run_to_run_ratio=_spread_ratio(declared),
        ),
        drift=Drift(exponent=0.0, reference_age_s=300.0),
        settings=(
            ObservedSetting(
                query_id="declared",
                configuration=configuration,
                rate_per_s=rate_per_s,
                num_batches=1,
                num_batches_cut=0,
                jvm_age_s=300.0,
                rows_per_batch_low=batch_rows,
                rows_per_batch_high=batch_rows,
                batch_duration_mean_s=duration_s,
                batch_duration_sd_s=duration_s * _BATCH_NOISE_RATIO,
                modelled_duration_mean_s=duration_s,
            ),
        ),
        notes=(NOTE,),
    )


def is_declared(profile: JobProfile | ApplicationProfile) -> bool:
    """Whether a profile was declared, not measured."""
    return NOTE in profile.notes


def _stages(declared: DeclaredStream) -> tuple[StageProfile, ...]:
    first = StageProfile(
        name="source",
        level=0,
        tasks_rule=TasksRule.SOURCE,
        num_source_tasks=declared.source_partitions,
        rows=RowsLaw(scale=1.0, exponent=1.0),
        task_fixed_s=declared.task_fixed_s.mid,
        task_per_row_s=declared.task_per_row_s.mid,
        task_noise_ratio=_TASK_NOISE_RATIO,
        separation=Separation.PARTS,
    )
    if declared.shuffle_task_per_row_s is None:
        return (first,)
    behind = StageProfile(
        name="shuffle",
        level=1,
        tasks_rule=TasksRule.SHUFFLE,
        rows=RowsLaw(scale=declared.shuffle_ratio, exponent=1.0),
        task_fixed_s=declared.task_fixed_s.mid,
        task_per_row_s=declared.shuffle_task_per_row_s.mid,
        task_noise_ratio=_TASK_NOISE_RATIO,
        separation=Separation.PARTS,
    )
    return (first, behind)


def _stage_s(stage: StageProfile, batch_rows: float, partitions: int, slots: int) -> float:
    """Roughly how long a stage takes: rows over the slots, and the waves' fixed cost."""
    num_tasks = stage.num_tasks(partitions)
    waves = math.ceil(num_tasks / slots)
    per_task = stage.task_fixed_s + stage.task_per_row_s * stage.rows.rows(batch_rows) / num_tasks
    return waves * per_task


def _spread_ratio(declared: DeclaredStream) -> float:
    ranges: list[Quantity | None] = [
        declared.task_per_row_s,
        declared.task_fixed_s,
        declared.driver_s,
        declared.shuffle_task_per_row_s,
    ]
    widest = max(each.spread_ratio for each in ranges if each is not None)
    return max(widest, LEAST_SPREAD_RATIO)
