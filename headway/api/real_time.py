"""Calls for Real-Time Mode: predict a setting, plan for the fewest nodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headway.api.arguments import (
    arrivals_from,
    confidence_level,
    count,
    executors_by_cores,
    job_from,
    positive_seconds,
    promises_from,
    require_room_for_tasks,
)
from headway.assumptions.planning import CONFIDENCE, MOST_NODES_OF_PLAN
from headway.assumptions.real_time import BATCH_LENGTH_S, PATH_S
from headway.domain import JobProfile, Promise, Target
from headway.errors import InputError, argument
from headway.limits import MOST_CORES, MOST_EXECUTORS, MOST_NODES, MOST_PARTITIONS
from headway.units import counted

if TYPE_CHECKING:
    from headway.domain.real_time import RealTimePlan, RealTimePrediction


def predict_real_time(
    profile: JobProfile | str | Path,
    *,
    rate: float | str | None = None,
    trigger: float | str | None = None,
    executors: int | None = None,
    cores: int | None = None,
    partitions: int | None = None,
    source_partitions: int | None = None,
    task_cpus: int | None = None,
    path: float | str = PATH_S.value,
) -> RealTimePrediction:
    """Latency of a query in Real-Time Mode, from its profile in micro-batches.

    Parameters
    ----------
    profile : JobProfile or path
        The query.
    rate : float or str
        Input rate, records per second or e.g. ``"4k/s"``; as profiled by default.
    trigger : float or str
        Batch length, the argument of the real-time trigger; five minutes by default.
    executors : int
        By default as many as all tasks of all stages need.
    cores, partitions, source_partitions, task_cpus : int
        Cores per executor, shuffle partitions, source partitions, cores per task; as profiled by
        default.
    path : float or str
        Constant time of a row from the source and to the sink.

    Raises
    ------
    InputError
        If a value is invalid, or Spark cannot run the query in Real-Time Mode or has too few slots
        for it.
    """
    from headway.domain.real_time import RealTimeSetting
    from headway.models.real_time.stages import required_slots
    from headway.planner.real_time import predicted, stages_of
    from headway.planner.real_time_limits import require_batch_length, require_real_time

    job = job_from(profile)
    require_real_time(job)
    per_executor, per_task = _cores_of(job, cores, task_cpus)
    sources = _sources_of(job, source_partitions)
    shuffle = count(partitions or job.baseline.shuffle_partitions, "partitions", MOST_PARTITIONS)
    batch_length_s = BATCH_LENGTH_S.value
    if trigger is not None:
        batch_length_s = positive_seconds(trigger, "trigger")
    require_batch_length(batch_length_s)
    slots = required_slots(stages_of(job, sources, shuffle))
    num_needed = -(-slots // (per_executor // per_task))
    setting = RealTimeSetting(
        executors=num_needed
        if executors is None
        else count(executors, "executors", MOST_EXECUTORS),
        cores_per_executor=per_executor,
        source_partitions=sources,
        shuffle_partitions=shuffle,
        batch_length_s=batch_length_s,
        task_cpus=per_task,
    )
    if setting.executors < num_needed:
        raise InputError(
            f"Real-Time Mode: {counted(slots, 'task')} of all stages run at once, and "
            f"{counted(setting.executors, 'executor')} have {counted(setting.num_slots, 'slot')}; "
            f"expected {argument('executors')} {num_needed} or fewer {argument('partitions')} "
            "(Spark: CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT)"
        )
    rate_per_s = arrivals_from(job, rate).rate_per_s
    return predicted(job, setting, rate_per_s, positive_seconds(path, "path"))


def plan_real_time(
    profile: JobProfile | str | Path,
    *,
    rate: float | str,
    target: Target | str | Sequence[Promise | str],
    max_nodes: int = MOST_NODES_OF_PLAN.value,
    node_cores: int | None = None,
    cores: int | None = None,
    partitions: int | None = None,
    trigger: float | str | None = None,
    source_partitions: int | None = None,
    task_cpus: int | None = None,
    confidence: float = CONFIDENCE.value,
    path: float | str = PATH_S.value,
) -> RealTimePlan:
    """The fewest nodes that meet a target in Real-Time Mode.

    Parameters
    ----------
    profile, rate, cores, source_partitions, task_cpus, path
        As for :func:`predict_real_time`.
    target : Target or str, or several
        A latency of rows, e.g. ``"p99 <= 300ms"``, and with it ``"catch_up <= 5m after 1m"``.
    max_nodes, node_cores, confidence
        As for :func:`headway.plan`.
    partitions : int
        Shuffle partitions, if they are fixed.
    trigger : float or str
        Batch length, if it is fixed.

    Raises
    ------
    InputError
        If a value is invalid, or Spark cannot run the query in Real-Time Mode. A target that cannot
        be met is no error: the plan then has ``feasible=False``, and says why.
    """
    from headway.planner.real_time_limits import (
        require_batch_length,
        require_promises,
        require_real_time,
    )
    from headway.planner.real_time_search import RealTimeSpace, planned

    first, others = promises_from(target)
    job = job_from(profile, first)
    require_real_time(job, first)
    per_executor, per_task = _cores_of(job, cores, task_cpus)
    per_node = count(per_executor if node_cores is None else node_cores, "node_cores", MOST_CORES)
    confidence = confidence_level(confidence)
    batch_length_s = None if trigger is None else positive_seconds(trigger, "trigger")
    if batch_length_s is not None:
        require_batch_length(batch_length_s)
    space = RealTimeSpace(
        max_nodes=count(max_nodes, "max_nodes", MOST_NODES),
        executors_per_node=executors_by_cores(per_node, per_executor),
        cores_per_executor=per_executor,
        task_cpus=per_task,
        source_partitions=_sources_of(job, source_partitions),
        shuffle_partitions=None
        if partitions is None
        else count(partitions, "partitions", MOST_PARTITIONS),
        batch_length_s=batch_length_s,
        path_s=positive_seconds(path, "path"),
    )
    return planned(
        job,
        arrivals_from(job, rate).rate_per_s,
        first,
        space,
        further_targets=require_promises(others),
        confidence=confidence,
    )


def _cores_of(job: JobProfile, cores: int | None, task_cpus: int | None) -> tuple[int, int]:
    """Cores of an executor, and of a task."""
    baseline = job.baseline
    per_executor = count(
        baseline.cores_per_executor if cores is None else cores, "cores", MOST_CORES
    )
    per_task = count(
        baseline.task_cpus if task_cpus is None else task_cpus, "task_cpus", MOST_CORES
    )
    require_room_for_tasks(per_executor, per_task)
    return per_executor, per_task


def _sources_of(job: JobProfile, source_partitions: int | None) -> int:
    profiled = job.stages[0].num_source_tasks or 1
    return count(
        profiled if source_partitions is None else source_partitions,
        "source_partitions",
        MOST_PARTITIONS,
    )
