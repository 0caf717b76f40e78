"""Calls about DStreams applications: predict a setting, plan for the fewest nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from headway.api.arguments import (
    DEFAULT_PLATFORM,
    confidence_level,
    count,
    flag,
    node_types_from,
    positive_rate_per_s,
    positive_seconds,
    refuse_node_cores,
    require_profile,
    require_room_for_tasks,
)
from headway.api.deadlines import executor_cores_on, executors_that_fit, profiled_heap_bytes
from headway.domain import Deadline, Metric, NodeType, Promise, Target, parse_promise
from headway.errors import InputError, argument
from headway.limits import MOST_CORES, MOST_EXECUTORS, MOST_NODES
from headway.units import counted

if TYPE_CHECKING:
    from headway.domain import ApplicationProfile
    from headway.domain.dstreams import DStreamsAnswer, DStreamsPrediction

_MOST_JOBS = 1000


def predict_dstreams(
    profile: ApplicationProfile | str | Path,
    *,
    rate: float | str | None = None,
    batch_interval: float | str | None = None,
    executors: int | None = None,
    cores: int | None = None,
    concurrent_jobs: int | None = None,
    task_cpus: int | None = None,
) -> DStreamsPrediction:
    """Latency of a DStreams application at a setting; by default everything is as profiled.

    Parameters
    ----------
    profile : ApplicationProfile or path
        The application, as ``headway profile`` makes it of its log.
    rate : float or str
        Input rate, records per second or e.g. ``"50k/s"``.
    batch_interval : float or str
        That of the ``StreamingContext``, seconds or e.g. ``"2s"``.
    executors, cores, task_cpus : int
        Executors, cores per executor, cores per task.
    concurrent_jobs : int
        Jobs that run at the same time, ``spark.streaming.concurrentJobs``.

    Raises
    ------
    InputError
        If a value is invalid, or the profile does not contain what this needs.
    """
    from headway.planner.dstreams_batches import DStreamsBatches
    from headway.planner.dstreams_prediction import predicted

    batches = DStreamsBatches.of(_application(profile))
    profiled_setting = batches.seen
    setting = replace(
        profiled_setting,
        executors=_or(executors, profiled_setting.executors, "executors", MOST_EXECUTORS),
        cores_per_executor=_or(cores, profiled_setting.cores_per_executor, "cores", MOST_CORES),
        task_cpus=_or(task_cpus, profiled_setting.task_cpus, "task_cpus", MOST_CORES),
        concurrent_jobs=_or(
            concurrent_jobs, profiled_setting.concurrent_jobs, "concurrent_jobs", _MOST_JOBS
        ),
        batch_interval_s=_interval_s(batch_interval) or profiled_setting.batch_interval_s,
    )
    require_room_for_tasks(setting.cores_per_executor, setting.task_cpus)
    if not setting.num_slots:
        raise InputError(
            f"{counted(setting.num_receivers, 'receiver')} hold every slot of "
            f"{counted(setting.executors, 'executor')}; give more {argument('executors')} or "
            f"{argument('cores')}"
        )
    return predicted(batches, setting, batches.load_of(_rate_per_s(rate)))


def plan_dstreams(
    profile: ApplicationProfile | str | Path,
    *,
    rate: float | str | None,
    target: Promise | Deadline | str,
    max_nodes: int = 50,
    node_cores: int | None = None,
    cores: int | None = None,
    batch_interval: float | str | None = None,
    concurrent_jobs: int | None = None,
    confidence: float = 0.95,
    node_types: Sequence[NodeType | str] = (),
    catalog: str | Path | None = None,
    task_cpus: int | None = None,
    lower_memory: bool = False,
    platform: str = DEFAULT_PLATFORM,
) -> DStreamsAnswer:
    """The fewest nodes with which a DStreams application meets a target for its rows.

    Parameters
    ----------
    profile, rate, batch_interval, concurrent_jobs
        As for :func:`predict_dstreams`; without an interval, others than the profiled one are
        tried, too.
    target : promise or str
        A `Target` for the latency of rows, e.g. ``"p99 <= 5s"``.
    max_nodes, node_cores, cores, confidence, node_types, catalog, task_cpus, platform
        As for :func:`headway.api.plan`; one node type at most.
    lower_memory : bool
        As for :func:`headway.api.plan`.

    Raises
    ------
    InputError
        If a value is invalid, or the target is not for DStreams. A target that cannot be met is no
        error: the answer then has ``feasible=False``, and the nearest setting.
    """
    from headway.planner.dstreams import DStreamsSpace
    from headway.planner.dstreams import plan_dstreams as search
    from headway.planner.dstreams_batches import DStreamsBatches

    job = _application(profile)
    profiled_setting = DStreamsBatches.of(job).seen
    types = node_types_from(node_types, catalog, platform)
    if len(types) > 1:
        raise InputError("DStreams are planned for one node type at a time; name one")
    refuse_node_cores(node_cores, types)
    confidence = confidence_level(confidence)
    node_type = types[0] if types else None
    per_task = _or(task_cpus, profiled_setting.task_cpus, "task_cpus", MOST_CORES)
    default_cores = profiled_setting.cores_per_executor
    if node_type is not None:
        per_node = node_type.cores
        default_cores = executor_cores_on(node_type, default_cores, per_task)
    per_executor = _or(cores, default_cores, "cores", MOST_CORES)
    if node_type is None:
        per_node = _or(node_cores, per_executor, "node_cores", MOST_CORES)
    require_room_for_tasks(per_executor, per_task)
    heap_bytes = profiled_heap_bytes(
        job, per_executor, lower_memory=flag(lower_memory, "lower_memory")
    )
    return search(
        job,
        _rate_per_s(rate),
        _latency_target(target),
        DStreamsSpace(
            max_nodes=count(max_nodes, "max_nodes", MOST_NODES),
            executors_per_node=executors_that_fit(
                job, node_type, per_node, per_executor, heap_bytes
            ),
            cores_per_executor=per_executor,
            task_cpus=per_task,
            concurrent_jobs=_or(
                concurrent_jobs, profiled_setting.concurrent_jobs, "concurrent_jobs", _MOST_JOBS
            ),
            batch_interval_s=_interval_s(batch_interval),
            node_type=node_type,
            executor_memory_bytes=heap_bytes,
        ),
        confidence=confidence,
    )


def _application(profile: ApplicationProfile | str | Path) -> ApplicationProfile:
    if isinstance(profile, str | Path):
        from headway.formats.profile_file import load_application_profile

        return load_application_profile(profile)
    require_profile(profile)
    return profile


def _or(value: int | None, profiled: int, name: str, max_value: int) -> int:
    return profiled if value is None else count(value, name, max_value)


def _interval_s(batch_interval: float | str | None) -> float | None:
    return None if batch_interval is None else positive_seconds(batch_interval, "batch_interval")


def _rate_per_s(rate: float | str | None) -> float | None:
    if rate is None:
        return None
    return positive_rate_per_s(rate)


def _latency_target(target: Promise | Deadline | str) -> Target:
    promise = parse_promise(target) if isinstance(target, str) else target
    if not isinstance(promise, Target) or promise.metric is not Metric.TUPLE:
        raise InputError(
            f"target '{promise}': of DStreams the latency of rows is planned, e.g. 'p99 <= 5s'; "
            "their windows, their recovery and bursts are not modelled"
        )
    return promise
