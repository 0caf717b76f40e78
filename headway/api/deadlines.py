"""Calls for jobs that end: the nodes that a deadline needs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

from headway.api.arguments import executors_by_cores, node_types_of, require_room_for_tasks
from headway.domain import NodeType, Objective
from headway.errors import InputError, argument
from headway.units import counted, parse_size_bytes, spark_memory_text

if TYPE_CHECKING:
    from headway.domain import BatchAnswer, Deadline, EndingJob, Job
    from headway.domain.question import PlanQuestion


def plan_ending(job: EndingJob, question: PlanQuestion) -> BatchAnswer:
    """The fewest nodes, or the lowest cost of a run, with which a job that ends meets its deadline.

    It is a batch job, or a streaming query that read a backlog and ended. Unless its heap is fixed,
    an executor has that of the profiled run, in proportion to the cores if it has more of them; it
    has less only with ``lower_memory``.

    Raises
    ------
    InputError
        If values contradict each other.
    """
    from headway.planner.deadline import (
        DeadlineSpace,
        plan_for_deadline,
        with_room_for_state,
    )

    (deadline,) = question.targets
    node_cores, cores, types = question.node_cores, question.cores, node_types_of(question)
    if question.objective is Objective.COST and (
        not types or any(node_type.price_per_hour is None for node_type in types)
    ):
        raise InputError(
            f"{argument('objective')} cost needs the price of every node type "
            f"({argument('node_types')})"
        )
    profiled_cores = job.slots.cores_per_executor or 1
    per_task = question.task_cpus or job.slots.task_cpus
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
        executor_heap_bytes = question.executor_memory_bytes or profiled_heap_bytes(
            job, per_executor, lower_memory=question.lower_memory
        )
        space = DeadlineSpace(
            max_nodes=question.max_nodes,
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
        job,
        cast("Deadline", deadline),
        spaces,
        confidence=question.confidence,
        objective=question.objective,
    )


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
