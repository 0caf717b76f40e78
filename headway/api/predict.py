"""The latency of a job at a setting."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast, overload

from headway.api.arguments import (
    arrivals_from,
    count,
    job_from,
    positive_seconds,
    require_room_for_tasks,
    seconds,
)
from headway.api.pipelines import is_pipeline, predict_pipeline, refuse_for_pipelines
from headway.domain import AdvisedRun, Configuration, JobProfile, Prediction, Target
from headway.domain.later import later, with_changes
from headway.errors import InputError, argument
from headway.limits import MOST_CORES, MOST_EXECUTORS, MOST_LONG, MOST_PARTITIONS

if TYPE_CHECKING:
    from headway.api.pipelines import AnyPipeline, AnyPipelinePrediction


@overload
def predict(profile: AnyPipeline, *, rate: float | str | None = ...) -> AnyPipelinePrediction: ...


@overload
def predict(
    profile: JobProfile | str | Path,
    *,
    rate: float | str | None = ...,
    trigger: float | str | None = ...,
    executors: int | None = ...,
    cores: int | None = ...,
    partitions: int | None = ...,
    max_offsets: int | None = ...,
    source_partitions: int | None = ...,
    task_cpus: int | None = ...,
    jvm_age: float | str | None = ...,
) -> Prediction: ...


def predict(
    profile: JobProfile | AnyPipeline | str | Path,
    *,
    rate: float | str | None = None,
    trigger: float | str | None = None,
    executors: int | None = None,
    cores: int | None = None,
    partitions: int | None = None,
    max_offsets: int | None = None,
    source_partitions: int | None = None,
    task_cpus: int | None = None,
    jvm_age: float | str | None = None,
) -> Prediction | AnyPipelinePrediction:
    """Predict the latency of a job at a setting; by default everything is as profiled.

    Parameters
    ----------
    profile : JobProfile, MicroBatchPipeline, OrderedPipeline or path
        The job, or a pipeline, which takes only ``rate``; for the path of its spec file the result
        is that of `headway.api.pipelines.predict_pipeline`.
    rate : float or str
        Input rate, records per second or e.g. ``"50k/s"``.
    trigger : float or str
        Trigger interval, seconds or e.g. ``"2s"``; 0 is as fast as possible.
    executors, cores, partitions, max_offsets : int
        Executors, cores per executor, shuffle partitions, rate limit per batch.
    source_partitions : int
        Tasks that read the source: its partitions, or input splits. Tables that do not change are
        no source.
    task_cpus : int
        Cores per task (``spark.task.cpus``).
    jvm_age : float or str
        Time since the executors started, seconds or e.g. ``"5min"``; a young JVM is slower.

    Raises
    ------
    InputError
        If a value is invalid.
    """
    if is_pipeline(profile):
        refuse_for_pipelines(
            trigger=trigger, executors=executors, cores=cores, partitions=partitions,
            max_offsets=max_offsets, source_partitions=source_partitions, task_cpus=task_cpus,
            jvm_age=jvm_age,
        )  # fmt: skip
        return predict_pipeline(cast("AnyPipeline", profile), rate=rate)
    from headway.models.job.predict import predict as predict_setting

    job = job_from(cast("JobProfile | str | Path", profile))
    if source_partitions is not None:
        job = at_source_partitions(job, source_partitions)
    prediction = predict_setting(
        job,
        configuration_from(
            job.baseline,
            trigger=trigger,
            executors=executors,
            cores=cores,
            partitions=partitions,
            max_offsets=max_offsets,
            task_cpus=task_cpus,
        ),
        arrivals_from(job, rate),
        jvm_age_s=None if jvm_age is None else positive_seconds(jvm_age, "jvm_age"),
    )
    return with_next_run(prediction, job)


def at_source_partitions(job: JobProfile, source_partitions: int) -> JobProfile:
    """The job with its source read by a given number of tasks.

    Raises
    ------
    InputError
        If the number is invalid, or no stage of the job has a task for each part of its source.
    """
    from headway.planner.tasks import with_source_partitions

    num_source_tasks = count(source_partitions, "source_partitions", MOST_PARTITIONS)
    if not any(stage.reads_source for stage in job.stages):
        raise InputError(
            f"{argument('source_partitions')} {num_source_tasks}: no stage of the profile reads "
            "the source of the stream, so they decide nothing; leave it out"
        )
    return with_source_partitions(job, num_source_tasks)


def with_next_run(
    prediction: Prediction, job: JobProfile, target: Target | None = None
) -> Prediction:
    """The prediction with the run that would narrow it most, which is computed when first read.

    With a target, the run narrows the statistic of that target.
    """

    def next_run() -> AdvisedRun | None:
        from headway.models.job.advice import AskedSetting

        return AskedSetting.of(prediction, target).next_run(job)

    return with_changes(prediction, next_run=later(next_run))


def configuration_from(
    baseline: Configuration,
    *,
    trigger: float | str | None = None,
    executors: int | None = None,
    cores: int | None = None,
    partitions: int | None = None,
    max_offsets: int | None = None,
    task_cpus: int | None = None,
) -> Configuration:
    """The baseline with the given values replaced."""
    changes: dict[str, float] = {}
    for field, value, name, max_value in (
        ("executors", executors, "executors", MOST_EXECUTORS),
        ("cores_per_executor", cores, "cores", MOST_CORES),
        ("shuffle_partitions", partitions, "partitions", MOST_PARTITIONS),
        ("max_offsets_per_trigger", max_offsets, "max_offsets", MOST_LONG),
        ("task_cpus", task_cpus, "task_cpus", MOST_CORES),
    ):
        if value is not None:
            changes[field] = count(value, name, max_value)
    if trigger is not None:
        changes["trigger_s"] = seconds(trigger, "trigger")
    require_room_for_tasks(
        int(changes.get("cores_per_executor", baseline.cores_per_executor)),
        int(changes.get("task_cpus", baseline.task_cpus)),
    )
    return replace(baseline, **changes)  # type: ignore[arg-type]  # values checked field by field
