"""Declared figures -> profiles, for jobs that have no log yet.

The middle of each range is the expected value; the ranges are kept, and a plan uses their upper
ends. The profile contains no invented run.
"""

from __future__ import annotations

import math
from dataclasses import replace

import headway.domain as domain
from headway.assumptions.predictions import (
    DECLARED_BATCH_JOB_TASK_CV,
    DECLARED_BATCH_NOISE_RATIO,
    DECLARED_TASK_NOISE_RATIO,
    DECLARED_TRIGGER_S,
)
from headway.assumptions.resources import SPARK_PARTITIONS
from headway.domain import (
    ApplicationProfile,
    Cluster,
    Coverage,
    DeclaredWork,
    MemoryProfile,
    RecordedStage,
    Share,
)
from headway.domain.configuration import task_slots
from headway.models.stages.dag import StageDag, run_time
from headway.models.stages.schedule import JobStage
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


_EPOCH = "1970-01-01T00:00:00Z"


def declared_application(
    name: str,
    declared: DeclaredBatch,
    deadline_s: float,
    *,
    end: str | None = None,
    work_ratio: float = 1.0,
) -> ApplicationProfile:
    """The profile for declared figures.

    Each figure is taken as exact at the ``end`` of its range, ``mid`` or ``high``; by default the
    ranges are kept. ``work_ratio`` is its work over the declared work. [-]

    >>> from headway.spec.forms.quantities import Quantity
    >>> declared = DeclaredBatch(work_s=Quantity.exactly(36_000.0), num_tasks=400, num_stages=2)
    >>> profile = declared_application("nightly", declared, 1800.0)
    >>> profile.cluster.executors, len(profile.stages)
    (5, 2)
    """
    work, driver = declared.work_s.scaled(work_ratio), declared.driver_s
    if end is not None:
        work = Quantity.exactly(getattr(work, end))
        driver = Quantity.exactly(getattr(driver, end))
    work_s, driver_s = work.mid, driver.mid
    cores = declared.cores_per_executor
    max_executors = math.ceil(declared.num_tasks / cores)
    executors = min(max(math.ceil(work_s / deadline_s / cores), 1), max_executors)
    task_s = work_s / (declared.num_tasks * declared.num_stages)
    dag = StageDag(
        stages=tuple(
            JobStage(
                num_tasks=declared.num_tasks,
                mean_s=task_s,
                cv=DECLARED_BATCH_JOB_TASK_CV.value,
                parents=(stage_index - 1,) if stage_index else (),
            )
            for stage_index in range(declared.num_stages)
        )
    )
    stages_s = run_time(dag, task_slots(executors, cores)).mean_s
    everything = Share(seen=1, expected=1)
    return ApplicationProfile(
        headway_version=__version__,
        kind="batch",
        application=application_of(name, declared),
        cluster=Cluster(
            executors=executors, executors_mean=float(executors), cores_per_executor=cores
        ),
        started=_EPOCH,
        duration_s=driver_s + stages_s,
        driver_only_s=driver_s,
        num_jobs=1,
        num_jobs_failed=0,
        stages=tuple(
            _stage(stage_index, declared.num_tasks, task_s, stages_s / declared.num_stages)
            for stage_index in range(declared.num_stages)
        ),
        memory=MemoryProfile(peak_task_bytes=0),
        coverage=Coverage(
            tasks=everything,
            stages=everything,
            jobs=everything,
            batches=everything,
            executors=everything,
            has_start=True,
            has_end=True,
        ),
        declared=DeclaredWork(work=stated(work), driver=stated(driver)),
    )


def _stage(stage_index: int, num_tasks: int, task_s: float, duration_s: float) -> RecordedStage:
    return RecordedStage(
        id=stage_index,
        job=0,
        parents=(stage_index - 1,) if stage_index else (),
        num_tasks=num_tasks,
        num_finished=num_tasks,
        num_failed=0,
        num_attempts=1,
        task_mean_s=task_s,
        task_sd_s=DECLARED_BATCH_JOB_TASK_CV.value * task_s,
        task_max_s=2.0 * task_s,
        task_fixed_s=0.0,
        submitted_s=stage_index * duration_s,
        completed_s=(stage_index + 1) * duration_s,
        rows_read=0,
        rows_written=0,
        input_bytes=0,
        shuffle_read_bytes=0,
        shuffle_write_bytes=0,
        peak_task_bytes=0,
        spilled_bytes=0,
        gc_ratio=0.0,
    )
