"""Stages of an application without streaming queries -> its profile: batch, or DStreams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from headway.domain import Coverage
from headway.domain.application_profile import ApplicationProfile
from headway.domain.configuration import Cluster, task_slots
from headway.errors import EventLogError
from headway.profiler import schema
from headway.profiler.application import application_stages, dstreams
from headway.profiler.application.application_stages import StageSums, is_instant, recorded_stages
from headway.profiler.contents import ApplicationFacts
from headway.profiler.coverage import gaps
from headway.profiler.rows import Record
from headway.profiler.streaming.batch_samples import covered_s
from headway.profiler.streaming.observations import memory_of
from headway.profiler.streaming.slots import USUAL_PROFILE, limit_in_words
from headway.profiler.streaming.summarize import application_of
from headway.sparkconf import task_cpus_of, task_limit
from headway.units import counted

_RECORD_NEXT_TIME = (
    "record the application from its start to its end (spark.eventLog.enabled=true) "
    "and profile that log"
)


def profile_application(
    facts: ApplicationFacts, stage_runs: Sequence[Record], coverage: Coverage, version: str
) -> ApplicationProfile:
    """The profile of a batch or DStreams application.

    EventLogError if no stage with a finished task is recorded, or for DStreams no complete batch.
    """
    application = application_of(facts)
    stages = application_stages.stage_sums(stage_runs)
    listed = application_stages.heaviest(stages)
    if not listed:
        if _ran_no_job(facts, stages, coverage):
            raise EventLogError(
                f"application {application.id}: it ran no Spark job from its start to its end, so "
                "executors would change nothing; profile a run that has jobs"
            )
        fault = "no stage is on record"
        if stages:
            fault = f"none of its {len(stages)} stages on record has a finished task with metrics"
        raise EventLogError(f"application {application.id}: {fault}; {_RECORD_NEXT_TIME}")
    is_dstreams = any(stage.dstream_batch_s is not None for stage in stages)
    steady = dstreams.steady_batches(stages) if is_dstreams else None
    if is_dstreams and steady is None:
        raise EventLogError(
            f"application {application.id}: none of its DStreams batches is complete: stages "
            f"failed or have no recorded end; {_RECORD_NEXT_TIME}"
        )
    endless = dstreams.receivers(stages) if is_dstreams else []
    start_s, end_s = _lifetime(facts, stages)
    busy_s = covered_s(stage.span_s for stage in stages if stage not in endless and stage.span_s)
    cluster, notes = _cluster(facts, start_s, end_s)
    if not is_dstreams:
        cluster = _with_limit(cluster, facts, stage_runs, notes)
    if (damaged := application_stages.num_damaged(stage_runs)) > 0:
        notes.append(f"{counted(damaged, 'stage')} left out of all sums: their times make no sense")
    in_profile = [stage for batch in steady.typical for stage in batch.stages] if steady else listed
    last_job_failed = None
    if not is_dstreams:
        last_job_failed = _last_job_if_failed(facts, stages)
        notes += _failure_notes(facts, stages, last_job_failed)
    ids = {stage.stage_id for stage in in_profile}
    unlisted = [stage for stage in stages if stage.stage_id not in ids]
    return ApplicationProfile(
        headway_version=version,
        kind="dstreams" if is_dstreams else "batch",
        application=application,
        cluster=cluster,
        started=f"{datetime.fromtimestamp(start_s, UTC):%Y-%m-%dT%H:%M:%SZ}",
        duration_s=end_s - start_s,
        driver_only_s=max(end_s - start_s - busy_s, 0.0),
        num_jobs=max(
            facts.ids_of(schema.JOB_START).num_distinct, facts.ids_of(schema.JOB_END).num_distinct
        ),
        num_jobs_failed=facts.num_failed_jobs,
        last_job_failed=last_job_failed,
        dstreams=dstreams.dstreams_profile(steady, len(endless)) if steady else None,
        stages=dstreams.typical_stages(steady)
        if steady
        else recorded_stages(listed, stages, start_s),
        other_stages=application_stages.other_stages(
            unlisted, None if is_dstreams else application_stages.longest_chain_s(stages)
        ),
        memory=memory_of(stages),
        coverage=coverage,
        notes=(
            *notes,
            *(dstreams.dstreams_notes(steady) if steady else _stage_notes(stages, listed)),
            *gaps(coverage),
        ),
    )


def _lifetime(facts: ApplicationFacts, stages: Sequence[StageSums]) -> tuple[float, float]:
    """Start and end of the application; without a recorded one, that of its stages."""
    spans = [stage.span_s for stage in stages if stage.span_s is not None]
    starts_s = [facts.started_s, *(start_s for start_s, _ in spans)]
    ends_s = [facts.ended_s, *(end_s for _, end_s in spans)]
    return min(filter(is_instant, starts_s)), max(filter(is_instant, ends_s))


def _cluster(facts: ApplicationFacts, start_s: float, end_s: float) -> tuple[Cluster, list[str]]:
    """The executors during the lifetime of an application, and notes about them.

    Executors that ran tasks but have no recorded start count as present all the time.
    """

    def within(at_s: float | None, otherwise_s: float) -> float:
        return otherwise_s if at_s is None or not start_s <= at_s <= end_s else at_s

    spans = [
        (within(executor.added_s, start_s), within(executor.removed_s, end_s))
        for executor in facts.executors
    ]
    recorded_ids = {executor.executor_id for executor in facts.executors}
    unknown = facts.task_executor_ids - recorded_ids
    spans += [(start_s, end_s)] * len(unknown)
    # Tasks ran, so there was an executor, whatever the log lacks.
    spans = spans or [(start_s, end_s)]
    cores = sorted(executor.num_cores for executor in facts.executors if executor.num_cores > 0)
    notes = []
    if not cores:
        notes.append(
            "the cores of the executors are unknown: no ExecutorAdded event is on record; "
            "profile a log that starts with the application"
        )
    elif cores[0] != cores[-1]:
        notes.append(f"executors have {cores[0]} to {cores[-1]} cores; the median is used for all")
    # One that was removed at once counts at that instant.
    peak_executors = max(
        sum(since_s <= at_s < until_s or since_s == at_s for since_s, until_s in spans)
        for at_s, _ in spans
    )
    present_s = sum(max(until_s - since_s, 0.0) for since_s, until_s in spans)
    per_executor = max(int(np.median(cores)), 1) if cores else None
    per_task = task_cpus_of(facts.properties)
    cluster = Cluster(
        executors=peak_executors,
        executors_mean=present_s / (end_s - start_s) if end_s > start_s else float(peak_executors),
        cores_per_executor=per_executor,
        # Executors with fewer cores than a task needs ran none.
        task_cpus=per_task if per_executor is None else min(per_task, per_executor),
    )
    return cluster, notes


def _with_limit(
    cluster: Cluster, facts: ApplicationFacts, stage_runs: Sequence[Record], notes: list[str]
) -> Cluster:
    """The cluster with the most tasks at once on an executor, if settings limit them.

    Stages whose resource profile asks for something else are only named.
    """
    others = {stage["resource_profile_id"] for stage in stage_runs} - {USUAL_PROFILE}
    if others:
        listed = ", ".join(map(str, sorted(others)))
        notes.append(
            f"stages ran with resource profiles of the job's code ({listed}), by which their tasks "
            "may have had other slots than by the settings; plans count those of the settings"
        )
    cores, limit = cluster.cores_per_executor, task_limit(facts.properties)
    if cores is None or limit is None or others:
        return cluster
    num_tasks, at_once = limit[0], max(stage["most_at_once"] or 0 for stage in stage_runs)
    if num_tasks >= task_slots(1, cores, cluster.task_cpus) or at_once > num_tasks:
        return cluster
    notes.append(limit_in_words(limit, cores))
    return replace(cluster, tasks_per_executor=num_tasks)


def _ran_no_job(facts: ApplicationFacts, stages: Sequence[StageSums], coverage: Coverage) -> bool:
    """Whether the log has all of an application without a job."""
    is_cut = coverage.compacted or coverage.missing_parts or coverage.lost_events
    is_whole = coverage.has_start and coverage.has_end and not is_cut
    return is_whole and not stages and not facts.ids_of(schema.JOB_START).num_distinct


def _last_job_if_failed(facts: ApplicationFacts, stages: Sequence[StageSums]) -> int | None:
    """The number of the last job, by the stages on record, if one of its stages failed."""
    last = max((stage.job_id for stage in stages if stage.job_id is not None), default=None)
    is_failed = any(stage.failed for stage in stages if stage.job_id == last)
    return last if facts.num_failed_jobs and is_failed else None


def _failure_notes(
    facts: ApplicationFacts, stages: Sequence[StageSums], last_job_failed: int | None
) -> Iterator[str]:
    """Which jobs failed, and what was done again."""
    num_failed = facts.num_failed_jobs
    early = "the run may have ended early"
    if last_job_failed is None and num_failed:
        yield f"{counted(num_failed, 'job')} failed"
    elif num_failed == 1:
        yield f"the last job failed: {early}"
    elif num_failed:
        yield f"{counted(num_failed, 'job')} failed, the last one among them: {early}"
    num_tasks = sum(stage.num_failed for stage in stages)
    if num_tasks:
        again = [stage for stage in stages if stage.num_attempts > 1]
        of_stages = f" ({counted(len(again), 'stage')} ran again)" if again else ""
        yield (
            f"attempts of tasks that failed or were stopped: {num_tasks:,}{of_stages}; what they "
            "took is part of the run time"
        )


def _stage_notes(stages: Sequence[StageSums], listed: Sequence[StageSums]) -> list[str]:
    num_finished = sum(stage.num_finished > 0 for stage in stages)
    if num_finished <= len(listed):
        return []
    share = sum(stage.task_time_s for stage in listed) / sum(s.task_time_s for s in stages)
    return [f"{len(listed)} of {num_finished} stages are listed, with {share:.1%} of the task time"]
