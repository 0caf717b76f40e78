"""The latency of a job at a setting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, cast, overload

from headway.api.arguments import (
    any_job,
    arrivals_from,
    job_from,
    require_room_for_tasks,
    require_startable_tasks,
)
from headway.api.file_kinds import is_pipeline
from headway.domain import (
    AdvisedRun,
    Configuration,
    Finding,
    FindingCode,
    Job,
    JobProfile,
    Prediction,
    Target,
)
from headway.domain.argument import JobKind, question_for, takes
from headway.domain.configuration import TaskCores
from headway.domain.later import later, with_changes
from headway.domain.question import PredictQuestion, RunQuestion, asks_for_real_time
from headway.errors import InputError, argument
from headway.formats.profile_file import load_stream_profile
from headway.lazy_names import loads_when_called
from headway.limits import SHORTEST_TRIGGER_S

if TYPE_CHECKING:
    from headway.api.pipelines import AnyPipeline, AnyPipelinePrediction
    from headway.domain import ApplicationProfile
    from headway.domain.dstreams import DStreamsPrediction
    from headway.domain.real_time import RealTimePrediction


#: What predicts jobs of each kind; only its module is loaded.
_PREDICTORS = {
    JobKind.QUERY: loads_when_called("headway.api.predict.predict_query"),
    JobKind.REAL_TIME: loads_when_called("headway.api.real_time.predict_in_real_time"),
    JobKind.DSTREAMS: loads_when_called("headway.api.dstreams.predict_application"),
    JobKind.PIPELINE: loads_when_called("headway.api.pipelines.predict_pipeline"),
}


class SettingOptions(TypedDict, total=False):
    """A setting, as the library takes it."""

    trigger: float | str | None
    cores: int | None
    partitions: int | None
    task_cpus: TaskCores | None


class RunOptions(SettingOptions, total=False):
    """A setting that runs at a rate, as the library takes it."""

    rate: float | str | None
    executors: int | None


class JobOptions(SettingOptions, total=False):
    """Arguments that plans and predictions share, as the library takes them."""

    queries: Sequence[str]
    source_partitions: int | None
    path: float | str | None
    concurrent_jobs: int | None


class PredictOptions(JobOptions, RunOptions, total=False):
    """Arguments of a prediction, as the library takes them."""

    max_offsets: int | None
    min_offsets: int | None
    max_trigger_delay: float | str | None
    jvm_age: float | str | None


@overload
def predict(profile: AnyPipeline, *, rate: float | str | None = ...) -> AnyPipelinePrediction: ...


@overload
def predict(
    profile: JobProfile | str | Path,
    *,
    mode: Literal["real-time"],
    **options: Unpack[PredictOptions],
) -> RealTimePrediction: ...


@overload
def predict(profile: JobProfile | str | Path, **options: Unpack[PredictOptions]) -> Prediction: ...


@overload
def predict(
    profile: ApplicationProfile, **options: Unpack[PredictOptions]
) -> DStreamsPrediction: ...


@takes(PredictQuestion)
def predict(profile: Any, **options: Any) -> Any:
    """Predict the latency of a job at a setting; by default everything is as profiled.

    Parameters
    ----------
    profile : JobProfile, ApplicationProfile, MicroBatchPipeline, OrderedPipeline or path
        The job: a streaming query, a DStreams application, or a pipeline, which takes only
        ``rate``. Event logs are profiled first.
    queries : sequence of str
        Names or ids of the queries of event logs; all by default.
    rate : float or str
        Input rate, records per second or e.g. ``"50k/s"``.
    trigger : float or str
        Trigger interval, seconds or e.g. ``"2s"``; 0 is as fast as possible. The batch interval of
        DStreams, the batch length of Real-Time Mode.
    executors, cores, partitions, max_offsets : int
        Executors, cores per executor, shuffle partitions, rate limit per batch.
    min_offsets : int
        Minimum rows per batch (``minOffsetsPerTrigger`` of Kafka): a trigger waits for them, for
        ``max_trigger_delay`` at most.
    max_trigger_delay : float or str
        How long a trigger waits (``maxTriggerDelay``); 15 minutes by default.
    source_partitions : int
        Tasks that read the source: its partitions, or input splits. Tables that do not change are
        no source.
    task_cpus : float
        Cores per task (``spark.task.cpus``).
    jvm_age : float or str
        Time since the executors started, seconds or e.g. ``"5min"``; a young JVM is slower.
    mode, path, concurrent_jobs
        As in :func:`headway.plan`. What means nothing for a kind of job is refused.

    Raises
    ------
    InputError
        If a value is invalid, or not for jobs of this kind.
    """
    kind, job = predicted_job(profile, options)
    return predict_job(kind, job, options)


def predicted_job(profile: Any, options: Mapping[str, Any]) -> tuple[JobKind, Any]:
    """The job to predict, read if it is a file, and its kind; a job that ends is refused."""
    if is_pipeline(profile):
        return JobKind.PIPELINE, profile
    if asks_for_real_time(options):
        return JobKind.REAL_TIME, job_from(profile, queries=options.get("queries"))
    job: Job = any_job(profile, options.get("queries"), load_stream_profile)
    if job.job_kind is not JobKind.DSTREAMS:
        job = job_from(cast("JobProfile", job))
    return job.job_kind, job


def predict_job(kind: JobKind, job: Any, options: Mapping[str, Any]) -> Any:
    """Predict a job of a known kind; errors are those of `predict`."""
    question = question_for(kind, PredictQuestion, options)
    if kind is not JobKind.PIPELINE:
        require_startable_tasks(job, question.task_cpus)
    return _PREDICTORS[kind](job, question)


def predict_query(job: JobProfile, question: PredictQuestion) -> Prediction:
    """Predict a streaming query in micro-batches."""
    from headway.models.job.predict import predict as predict_setting
    from headway.models.job.restart import restart_at
    from headway.planner.tasks import why_no_room

    job = at_source_partitions(job, question.source_partitions)
    configuration = configuration_of(job.baseline, question)
    if question.max_offsets is not None:
        configuration = replace(configuration, max_offsets_per_trigger=question.max_offsets)
    arrivals = arrivals_from(job, question.rate_per_s)
    waits = tuple(_held_back(configuration, question, arrivals.rate_per_s))
    if waits:
        configuration = replace(configuration, trigger_s=waits[0].numbers["interval_s"])
    no_room = why_no_room(job, *configuration.size)
    if no_room is not None:
        raise InputError(f"{no_room}; give more {argument('executors')} or {argument('cores')}")
    prediction = predict_setting(job, configuration, arrivals, jvm_age_s=question.jvm_age_s)
    prediction = with_changes(
        prediction,
        findings=(*waits, *prediction.findings),
        source_partitions=question.source_partitions,
        restart=restart_at(replace(job, arrivals=arrivals), configuration)
        if prediction.stable
        else None,
    )
    return with_next_run(prediction, job, is_by_job=question.jvm_age_s is None)


def _held_back(
    configuration: Configuration, question: PredictQuestion, rate_per_s: float
) -> Iterator[Finding]:
    """How triggers wait for a minimum of rows, if one was given."""
    from headway.models.batches.intervals import held_back_trigger_s

    if question.min_offsets is None:
        if question.max_trigger_delay_s is not None:
            raise InputError(
                f"{argument('max_trigger_delay')} is how long a trigger waits for the rows of "
                f"{argument('min_offsets')}, which is missing; give both"
            )
        return
    max_rows = configuration.max_offsets_per_trigger
    if max_rows is not None and question.min_offsets > max_rows:
        limit = f"the profiled rate limit of {max_rows}"
        if question.max_offsets is not None:
            limit = f"{argument('max_offsets')} {max_rows}"
        raise InputError(
            f"{argument('min_offsets')} {question.min_offsets} is more than {limit}, which Kafka's "
            "source refuses; expected a minimum that is not above the maximum"
        )
    trigger_s = configuration.trigger_s
    interval_s = held_back_trigger_s(
        trigger_s, rate_per_s, question.min_offsets, question.max_trigger_delay_s
    )
    if interval_s > trigger_s and interval_s >= SHORTEST_TRIGGER_S:
        numbers = {"min_rows": question.min_offsets, "interval_s": interval_s}
        yield Finding(code=FindingCode.TRIGGERS_WAIT, numbers=numbers | {"trigger_s": trigger_s})


def at_source_partitions(job: JobProfile, source_partitions: int | None) -> JobProfile:
    """The job with its source read by a given number of tasks; None leaves them as profiled.

    A job is refused if no stage of it has a task for each part of its source.
    """
    from headway.planner.tasks import with_source_partitions

    is_stated = source_partitions is not None
    if is_stated and not any(stage.reads_source for stage in job.stages):
        raise InputError(
            f"{argument('source_partitions')} {source_partitions}: no stage of the profile reads "
            "the source of the stream, so they decide nothing; leave it out"
        )
    return with_source_partitions(job, source_partitions)


def with_next_run(
    prediction: Prediction,
    job: JobProfile,
    target: Target | None = None,
    *,
    is_by_job: bool = False,
) -> Prediction:
    """The prediction with the run that would narrow it most, which is computed when first read.

    With a target, the run narrows the statistic of that target. ``is_by_job``: the prediction is
    that of the job as it is, and need not be made again.
    """

    def next_run() -> AdvisedRun | None:
        from headway.models.job.advice import SettingLatency

        setting = SettingLatency.of(prediction, target)
        if is_by_job:
            setting = replace(setting, interval_s=setting.interval_in(prediction))
        return setting.next_run(job)

    return with_changes(prediction, next_run=later(next_run))


def configuration_of(baseline: Configuration, question: RunQuestion) -> Configuration:
    """The baseline with the values that a question gives, if executors have room for a task."""
    values = {
        "executors": question.executors,
        "cores_per_executor": question.cores,
        "shuffle_partitions": question.shuffle_partitions,
        "task_cpus": question.task_cpus,
        "trigger_s": question.trigger_s,
    }
    require_room_for_tasks(
        question.cores or baseline.cores_per_executor, question.task_cpus or baseline.task_cpus
    )
    changes: dict[str, Any] = {key: value for key, value in values.items() if value is not None}
    return replace(baseline, **changes)
