"""Calls for jobs that end: the nodes that a deadline needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from headway.api.arguments import (
    DEFAULT_PLATFORM,
    confidence_level,
    count,
    deadline_in,
    executors_by_cores,
    flag,
    heap_bytes,
    node_types_from,
    one_of,
    positive_rows,
    refuse_node_cores,
    require_profile,
    require_room_for_tasks,
)
from headway.assumptions.planning import CONFIDENCE, MOST_NODES_OF_PLAN
from headway.domain import (
    BatchAnswer,
    Deadline,
    EndingJob,
    Job,
    JobProfile,
    NodeType,
    Objective,
)
from headway.errors import InputError, argument
from headway.limits import MOST_CORES, MOST_NODES
from headway.units import counted, parse_size_bytes, spark_memory_text


def plan_deadline(
    profile: JobProfile | EndingJob | str | Path,
    *,
    target: Deadline | str,
    rows: float | str | None = None,
    max_nodes: int = MOST_NODES_OF_PLAN.value,
    node_cores: int | None = None,
    cores: int | None = None,
    node_types: Sequence[NodeType | str] = (),
    catalog: str | Path | None = None,
    objective: Objective | str = Objective.NODES,
    confidence: float = CONFIDENCE.value,
    executor_memory_bytes: int | None = None,
    lower_memory: bool = False,
    platform: str = DEFAULT_PLATFORM,
    task_cpus: int | None = None,
) -> BatchAnswer:
    """The fewest nodes, or the lowest cost of a run, with which a job that ends meets its deadline.

    Parameters
    ----------
    profile : ApplicationProfile, JobProfile or path
        The job, as ``headway profile`` makes it of a log without a streaming query, or of a query
        that read a backlog and ended.
    target : Deadline or str
        The deadline, e.g. ``"deadline <= 10m"``.
    rows : float or str, optional
        Rows of the backlog, e.g. ``"40M"``; by default those that the profiled query read.
    max_nodes, node_cores, cores, node_types, catalog, objective, confidence, platform
        As for :func:`headway.api.plan`.
    executor_memory_bytes : int, optional
        Heap of an executor. By default that of the profiled run, in proportion to the cores if a
        planned executor has more of them. [bytes]
    lower_memory : bool
        Scale the heap by the cores also if an executor has fewer of them; otherwise none gets less
        than in the profiled run.
    task_cpus : int, optional
        Cores that a task takes (``spark.task.cpus``); as profiled by default.

    Raises
    ------
    InputError
        If a value is invalid, or the profile is that of a job that does not end by itself.
    """
    from headway.planner.deadline import (
        DeadlineSpace,
        plan_for_deadline,
        with_room_for_state,
    )

    deadline = deadline_in(target)
    if deadline is None:
        raise InputError(
            f"{argument('target')} is {target!r}; expected a text such as 'deadline <= 10m'"
        )
    job = _job_of(profile, deadline, None if rows is None else positive_rows(rows))
    confidence = confidence_level(confidence)
    max_nodes = count(max_nodes, "max_nodes", MOST_NODES)
    fixed_heap_bytes = heap_bytes(executor_memory_bytes)
    flag(lower_memory, "lower_memory")
    for value, name, max_value in (
        (node_cores, "node_cores", MOST_CORES),
        (cores, "cores", MOST_CORES),
        (task_cpus, "task_cpus", MOST_CORES),
    ):
        if value is not None:
            count(value, name, max_value)
    chosen_objective = one_of(Objective, objective, "objective")
    types = node_types_from(node_types, catalog, platform)
    if chosen_objective is Objective.COST and (
        not types or any(node_type.price_per_hour is None for node_type in types)
    ):
        raise InputError(
            f"{argument('objective')} cost needs the price of every node type "
            f"({argument('node_types')})"
        )
    refuse_node_cores(node_cores, types)
    profiled_cores = job.slots.cores_per_executor or 1
    per_task = task_cpus or job.slots.task_cpus
    node_layouts: list[tuple[NodeType | None, int, int]] = [
        (
            node_type,
            node_type.cores,
            cores or executor_cores_on(node_type, profiled_cores, per_task),
        )
        for node_type in types
    ]
    if not types:
        node_layouts = [(None, node_cores or cores or profiled_cores, cores or profiled_cores)]
    spaces = []
    for node_type, per_node, per_executor in node_layouts:
        require_room_for_tasks(per_executor, per_task)
        executor_heap_bytes = fixed_heap_bytes or profiled_heap_bytes(
            job, per_executor, lower_memory=lower_memory
        )
        space = DeadlineSpace(
            max_nodes=max_nodes,
            executors_per_node=executors_that_fit(
                job, node_type, per_node, per_executor, executor_heap_bytes
            ),
            cores_per_executor=per_executor,
            task_cpus=per_task,
            tasks_per_executor=job.slots.tasks_per_executor,
            node_type=node_type,
            executor_memory_bytes=executor_heap_bytes,
        )
        spaces.append(with_room_for_state(space, job))
    return plan_for_deadline(
        job, deadline, spaces, confidence=confidence, objective=chosen_objective
    )


def _job_of(
    profile: JobProfile | EndingJob | str | Path, deadline: Deadline, rows: float | None
) -> EndingJob:
    if isinstance(profile, str | Path):
        from headway.formats.profile_file import load_any_profile

        profile = load_any_profile(profile)
    require_profile(profile)
    return profile.for_deadline(deadline, rows)


def profiled_heap_bytes(job: Job, cores: int, *, lower_memory: bool) -> int | None:
    """The heap of an executor with this number of cores, in whole MiB; None leaves it to Spark.

    It grows with the cores, and is less than in the profiled run only if that is allowed.
    """
    from headway.planner.profiled_memory import profiled_memory

    memory = profiled_memory(job.application)
    if not memory.is_heap_set:
        return None
    mebibyte = parse_size_bytes("1m")
    profiled_cores = job.slots.cores_per_executor
    proportional_bytes = (
        memory.heap_bytes if profiled_cores is None else memory.heap_bytes * cores / profiled_cores
    )
    wanted_bytes = (
        proportional_bytes if lower_memory else max(proportional_bytes, memory.heap_bytes)
    )
    return math.ceil(wanted_bytes / mebibyte) * mebibyte


def executors_that_fit(
    job: Job,
    node_type: NodeType | None,
    node_cores: int,
    cores: int,
    heap_bytes: int | None,
) -> int:
    """Executors that fit on a node: by its cores, and by its memory if both are known."""
    from headway.planner.memory import beside_heap_bytes

    num_by_cores = executors_by_cores(node_cores, cores)
    if node_type is None:
        return num_by_cores
    if node_type.executors_per_node is not None:
        return min(node_type.executors_per_node, num_by_cores)
    if node_type.memory_bytes is None or heap_bytes is None:
        return num_by_cores
    container_bytes = heap_bytes + beside_heap_bytes(job.application, heap_bytes)
    if container_bytes > node_type.memory_bytes:
        raise InputError(
            f"a node {node_type.name} has no room for an executor of {counted(cores, 'core')} "
            f"with a heap of {spark_memory_text(heap_bytes)} and its overhead; give a larger "
            f"node or fewer {argument('cores')}"
        )
    return min(num_by_cores, node_type.memory_bytes // container_bytes)


def executor_cores_on(node_type: NodeType, profiled_cores: int, task_cpus: int) -> int:
    """Cores of executors that fill a node, are like the profiled ones, and fit whole tasks."""
    if node_type.executors_per_node is not None:
        return node_type.cores // node_type.executors_per_node
    core_choices = [
        cores for cores in range(1, node_type.cores + 1) if node_type.cores % cores == 0
    ]
    core_choices = [cores for cores in core_choices if cores % task_cpus == 0] or [node_type.cores]
    return min(core_choices, key=lambda cores: (abs(math.log(cores / profiled_cores)), cores))
