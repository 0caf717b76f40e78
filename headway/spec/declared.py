"""Declared figures -> profiles, for jobs that have no log yet.

The middle of each range is the expected value; the ranges are kept, and a plan uses their upper
ends. The profile contains no invented run.
"""

from __future__ import annotations

from dataclasses import replace

import headway.domain as domain
from headway.assumptions.predictions import (
    DECLARED_BATCH_NOISE_RATIO,
    DECLARED_TASK_NOISE_RATIO,
    DECLARED_TRIGGER_S,
)
from headway.assumptions.resources import SPARK_PARTITIONS
from headway.spec.forms.quantities import Quantity
from headway.spec.kinds.jobs import DeclaredBatch, DeclaredStream
from headway.spec.kinds.rates import Rate, peak_rate
from headway.units import spark_memory_text
from headway.version import __version__


def declared_profile(name: str, declared: DeclaredStream, rate: Rate) -> domain.JobProfile:
    """The profile for declared figures.

    >>> from headway.spec.forms.quantities import Quantity
    >>> declared = DeclaredStream(task_per_row_s=Quantity.exactly(2e-5), source_partitions=12)
    >>> profile = declared_profile("orders", declared, Quantity.exactly(5000.0))
    >>> profile.stages[0].num_source_tasks, profile.provenance, profile.settings
    (12, 'declared', ())
    """
    partitions = declared.shuffle_partitions
    per_row = [declared.task_per_row_s]
    if declared.shuffle_task_per_row_s is not None:
        per_row.append(declared.shuffle_task_per_row_s)
    return domain.JobProfile(
        headway_version=__version__,
        applications=(application_of(name, declared),),
        shape=domain.QueryShape(
            sources=("declared",),
            sink="declared",
            stateful_operators=("declared",) if declared.stateful else (),
        ),
        arrivals=domain.Arrivals(rate_per_s=peak_rate(rate).mid),
        driver_phases=(
            domain.DriverPhase(
                name="query_planning",
                mean_s=declared.driver_s.mid,
                sd_s=declared.driver_s.mid * DECLARED_BATCH_NOISE_RATIO.value,
            ),
        ),
        stages=_stages(declared),
        noise=domain.DurationNoise(
            batch_ratio=DECLARED_BATCH_NOISE_RATIO.value, autocorrelation=0.0, run_to_run_ratio=0.0
        ),
        drift=domain.Drift(exponent=0.0, reference_age_s=300.0),
        settings=(),
        declared=domain.DeclaredCosts(
            driver=stated(declared.driver_s),
            task_fixed=stated(declared.task_fixed_s),
            task_per_row=tuple(map(stated, per_row)),
            configuration=domain.Configuration(
                executors=1,
                cores_per_executor=declared.cores_per_executor,
                shuffle_partitions=SPARK_PARTITIONS.value if partitions is None else partitions,
                trigger_s=DECLARED_TRIGGER_S.value,
            ),
            partitions_are_stated=partitions is not None,
        ),
    )


def application_of(name: str, declared: DeclaredStream | DeclaredBatch) -> domain.Application:
    memory_bytes = declared.executor_memory_bytes
    return domain.Application(
        id="declared",
        name=name,
        spark_version=declared.spark_version,
        executor_memory=None if memory_bytes is None else spark_memory_text(memory_bytes),
    )


def stated(quantity: Quantity) -> domain.StatedRange:
    return domain.StatedRange(low_s=quantity.low, mid_s=quantity.mid, high_s=quantity.high)


def _stages(declared: DeclaredStream) -> tuple[domain.StageProfile, ...]:
    source_stage = domain.StageProfile(
        name="source",
        level=0,
        tasks_rule="source",
        num_source_tasks=declared.source_partitions,
        rows=domain.RowsLaw(scale=1.0, exponent=1.0),
        task_fixed_s=declared.task_fixed_s.mid,
        task_per_row_s=declared.task_per_row_s.mid,
        task_noise_ratio=DECLARED_TASK_NOISE_RATIO.value,
        separation="parts",
    )
    if declared.shuffle_task_per_row_s is None:
        return (source_stage,)
    shuffle_stage = replace(
        source_stage,
        name="shuffle",
        level=1,
        tasks_rule="shuffle",
        num_source_tasks=None,
        rows=domain.RowsLaw(scale=declared.shuffle_ratio, exponent=1.0),
        task_per_row_s=declared.shuffle_task_per_row_s.mid,
    )
    return (source_stage, shuffle_stage)
