"""What a log tells of a batch job: the graph of its stages, and whether the run is all there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from headway.assumptions.logs import LEAST_TASKS_RATIO, LEAST_USUAL_RATIO
from headway.domain import ApplicationProfile, Finding, FindingCode, RecordedStage, Share
from headway.domain.application_profile import SAME_MOMENT_S
from headway.errors import InputError
from headway.models.laws.distributions import cv_with_largest
from headway.models.stages.dag import StageDag
from headway.models.stages.schedule import JobStage
from headway.units import counted

# A profile may say that nothing takes time.
_SHORTEST_S = 1e-9


def batch_graph(profile: ApplicationProfile) -> StageDag:
    """The graph of the stages, whose longest tasks are no longer than recorded (P16).

    Of declared stages no longest task was seen.
    """
    stages = tuple(job_stages(profile.stages))
    if profile.provenance == "measured":
        stages = tuple(map(_with_recorded_longest, stages, profile.stages))
    return StageDag(stages=stages)


def job_stages(stages: Sequence[RecordedStage]) -> Iterator[JobStage]:
    """The stages with their parents; one without recorded parents waits for the last ended one."""
    completed_s = [stage.completed_s for stage in stages]
    for index, stage in enumerate(stages):
        parents = stage.parents
        if not parents:
            begun_s = stage.submitted_s + SAME_MOMENT_S
            completed = [earlier for earlier in range(index) if completed_s[earlier] <= begun_s]
            last = max(completed, key=completed_s.__getitem__, default=None)
            parents = () if last is None else (last,)
        mean_s = max(stage.task_mean_s, _SHORTEST_S)
        yield JobStage(
            num_tasks=stage.num_tasks,
            mean_s=mean_s,
            cv=min((stage.task_sd_s or 0.0) / mean_s, 10.0),
            parents=parents,
        )


def longest_chain_s(profile: ApplicationProfile, dag: StageDag) -> float:
    """Time of the longest chain of stages if each takes its longest recorded task [s].

    0 for declared stages. A task that outlived its stage, such as the slower one of two copies,
    was not waited for.
    """
    if profile.provenance == "declared":
        return 0.0
    ends_s: list[float] = []
    for stage, recorded in zip(dag.stages, profile.stages, strict=True):
        begun_s = max((ends_s[parent] for parent in stage.parents), default=0.0)
        span_s = recorded.completed_s - recorded.submitted_s
        ends_s.append(begun_s + min(recorded.task_max_s, span_s))
    return max(ends_s)


def is_complete(profile: ApplicationProfile) -> bool:
    """Whether the log contains the whole run, but for a few tasks, and no failure ended it."""
    coverage = profile.coverage
    is_whole = coverage.has_start and coverage.has_end and not coverage.compacted
    return (
        is_whole
        and profile.last_job_failed is None
        and not coverage.missing_parts
        and _tasks_in_log(profile).ratio >= LEAST_USUAL_RATIO.value
    )


def require_tasks(profile: ApplicationProfile) -> None:
    """Refuse the log of a run of which too few tasks finished, by an InputError."""
    tasks = _tasks_in_log(profile)
    if tasks.ratio < LEAST_TASKS_RATIO.value:
        raise InputError(
            f"application {profile.application.id}: only {tasks.seen:,} of "
            f"{counted(tasks.expected, 'task')} finished in the log, too few to tell how long the "
            "job takes; profile the log of a finished run"
        )


def incomplete_log(profile: ApplicationProfile) -> Finding:
    """What the log lacks, of one that is not complete."""
    coverage, tasks = profile.coverage, _tasks_in_log(profile)
    failed = {} if profile.last_job_failed is None else {"last_job_failed": 1.0}
    return Finding(
        code=FindingCode.LOG_INCOMPLETE,
        numbers={
            "missing_tasks": tasks.expected - tasks.seen,
            "expected_tasks": tasks.expected,
            "has_start": float(coverage.has_start and not coverage.compacted),
            "has_end": float(coverage.has_end),
            **failed,
        },
    )


def _with_recorded_longest(stage: JobStage, recorded: RecordedStage) -> JobStage:
    """The stage, its tasks varying by no more than their longest one shows.

    A few tasks that take much longer than many short ones have the standard deviation of a
    lognormal whose longest value is several times theirs.
    """
    longest = recorded.task_max_s / stage.mean_s
    return replace(stage, cv=cv_with_largest(recorded.num_finished, longest, highest_cv=stage.cv))


def _tasks_in_log(profile: ApplicationProfile) -> Share:
    """Tasks that finished in the log, of those that must have run: by their ids, or by stages."""
    num_tasks = sum(stage.num_tasks for stage in profile.stages)
    num_finished = sum(min(stage.num_finished, stage.num_tasks) for stage in profile.stages)
    of_stages = Share(seen=num_finished, expected=num_tasks)
    return min(profile.coverage.tasks, of_stages, key=lambda share: share.ratio)
