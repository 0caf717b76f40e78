"""Nodes that a plan may buy: by node type, the executors that fill one, and their heap."""

from __future__ import annotations

import math
from collections.abc import Callable

from headway.api.arguments import executors_by_cores, node_types_of, require_room_for_tasks
from headway.domain import Job, NodeType
from headway.domain.configuration import idle_cores
from headway.domain.question import PlanQuestion
from headway.errors import InputError
from headway.planner.enumeration import (
    affordable_nodes,
    require_prices,
    suitable,
    too_expensive_text,
    too_few_cores_text,
)
from headway.planner.memory import beside_heap_bytes
from headway.planner.profiled_memory import profiled_memory
from headway.planner.question import SearchSpace
from headway.units import counted, parse_size_bytes, spark_memory_text


def spaces_of(
    job: Job,
    question: PlanQuestion,
    with_room: Callable[[SearchSpace], SearchSpace | str] = lambda nodes: nodes,
) -> tuple[list[SearchSpace], tuple[str, ...]]:
    """Nodes of each kind that a question offers, and why node types are unsuitable.

    ``with_room`` limits their numbers to those with room for the job, or says why none has it.
    """
    types = node_types_of(question)
    require_prices(question.objective, types, question.budget_per_hour)

    def offer_of(node_type: NodeType) -> SearchSpace | str:
        nodes = _nodes_of(job, question, node_type)
        return nodes if isinstance(nodes, str) else with_room(nodes)

    if types:
        return suitable(types, offer_of)
    space = with_room(_described_nodes(job, question))
    if isinstance(space, str):
        raise InputError(space)
    return [space], ()


def _described_nodes(job: Job, question: PlanQuestion) -> SearchSpace:
    """The nodes of a question without node types."""
    cores = question.cores or job.slots.cores_per_executor or 1
    task_cpus = question.task_cpus or job.slots.task_cpus
    require_room_for_tasks(cores, task_cpus)
    return SearchSpace(
        max_nodes=question.max_nodes,
        executors_per_node=executors_by_cores(question.node_cores or cores, cores),
        cores_per_executor=cores,
        task_cpus=task_cpus,
        executor_memory_bytes=_heap_bytes(job, question, cores),
    )


def _nodes_of(job: Job, question: PlanQuestion, node_type: NodeType) -> SearchSpace | str:
    """The nodes of a type, or why they are unsuitable."""
    max_nodes = affordable_nodes(question.max_nodes, node_type, question.budget_per_hour)
    if max_nodes < 1:
        return too_expensive_text(node_type, question.budget_per_hour)
    task_cpus = question.task_cpus or job.slots.task_cpus
    cores = question.cores or _executor_cores_on(
        node_type, job.slots.cores_per_executor or 1, task_cpus
    )
    if cores > node_type.cores:
        return too_few_cores_text(node_type, cores)
    if task_cpus > cores:
        return f"an executor of {counted(cores, 'core')} has no room for a task of {task_cpus:g}"
    heap_bytes = _heap_bytes(job, question, cores)
    executors_per_node = _executors_that_fit(job, node_type, cores, heap_bytes)
    if executors_per_node < 1:
        assert heap_bytes is not None  # nothing else takes memory
        return (
            f"too little memory for an executor of {counted(cores, 'core')} with a heap of "
            f"{spark_memory_text(heap_bytes)} and its overhead"
        )
    return SearchSpace(
        max_nodes=max_nodes,
        executors_per_node=executors_per_node,
        cores_per_executor=cores,
        task_cpus=task_cpus,
        node_type=node_type,
        executor_memory_bytes=heap_bytes,
    )


def _heap_bytes(job: Job, question: PlanQuestion, cores: int) -> int | None:
    """The heap of an executor with this number of cores, in whole MiB; None leaves it to Spark.

    Unless it is fixed, it grows with the cores, and is less than profiled only if that is allowed.
    """
    if question.executor_memory_bytes is not None:
        return question.executor_memory_bytes
    memory = profiled_memory(job.application)
    if not memory.is_heap_set:
        return None
    mebibyte = parse_size_bytes("1m")
    heap_bytes = memory.heap_bytes * cores / (job.slots.cores_per_executor or cores)
    if not question.lower_memory:
        heap_bytes = max(heap_bytes, memory.heap_bytes)
    return math.ceil(heap_bytes / mebibyte) * mebibyte


def _executors_that_fit(job: Job, node_type: NodeType, cores: int, heap_bytes: int | None) -> int:
    """Executors that fit on a node: by its cores, and by its memory if both are known."""
    num_by_cores = node_type.cores // cores
    if node_type.executors_per_node is not None:
        return min(node_type.executors_per_node, num_by_cores)
    if node_type.memory_bytes is None or heap_bytes is None:
        return num_by_cores
    container_bytes = heap_bytes + beside_heap_bytes(job.application, heap_bytes)
    return min(num_by_cores, node_type.memory_bytes // container_bytes)


def _executor_cores_on(node_type: NodeType, profiled_cores: int, task_cpus: float) -> int:
    """Cores of executors that fill a node, are like the profiled ones, and fit whole tasks."""
    if node_type.executors_per_node is not None:
        return node_type.cores // node_type.executors_per_node
    all_cores = node_type.cores
    divisors = [cores for cores in range(1, all_cores + 1) if all_cores % cores == 0]
    return min(
        [cores for cores in divisors if not idle_cores(cores, task_cpus)] or [all_cores],
        key=lambda cores: (abs(math.log(cores / profiled_cores)), cores),
    )
