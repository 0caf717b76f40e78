"""Declared figures of a batch job -> its profile: equal stages that follow each other.

The profile needs a cluster and times of its stages, so it has those of a run with as many cores as
the work occupies until the deadline. A plan does not take them as measured.
"""

from __future__ import annotations

import math

from headway.assumptions.predictions import DECLARED_BATCH_JOB_TASK_CV
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
from headway.spec.declared import application_of, stated
from headway.spec.forms.quantities import Quantity
from headway.spec.kinds.jobs import DeclaredBatch
from headway.version import __version__

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
