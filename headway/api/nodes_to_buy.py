"""Nodes that a plan may buy: by node type, the executors that fill one, and their heap."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headway.api.arguments import executors_by_cores, node_types_of, require_room_for_tasks
from headway.domain.configuration import idle_cores
from headway.errors import InputError, argument
from headway.units import counted, parse_size_bytes, spark_memory_text

if TYPE_CHECKING:
    from headway.domain import Job, NodeType
    from headway.domain.question import PlanQuestion


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesToBuy:
    """Nodes of a type, or without one those that the question describes, and their executors.

    ``heap_bytes`` is the heap of an executor; None leaves it to Spark.
    """

    node_type: NodeType | None
    max_nodes: int
    executors_per_node: int
    cores_per_executor: int
    task_cpus: float
    heap_bytes: int | None


def nodes_to_buy(job: Job, question: PlanQuestion) -> list[NodesToBuy]:
    """The nodes that a question offers for a job of any kind.

    Unless its heap is fixed, an executor has that of the profiled run, in proportion to the cores
    if it has more of them; it has less only with ``lower_memory``.

    Raises
    ------
    InputError
        If values contradict each other, a price is missing, or no node is within the budget.
    """
    from headway.planner.enumeration import require_prices, too_expensive_text

    types = node_types_of(question)
    require_prices(question.objective, types, question.budget_per_hour)
    offers = list(_offers(job, question, types or [None]))
    if not offers:
        why = "; ".join(
            f"{node_type.name}: {too_expensive_text(node_type, question.budget_per_hour)}"
            for node_type in types
        )
        raise InputError(f"no node type is within the budget: {why}")
    return offers


def _offers(
    job: Job, question: PlanQuestion, node_types: list[NodeType] | list[None]
) -> Iterator[NodesToBuy]:
    from headway.planner.enumeration import affordable_nodes

    profiled_cores = job.slots.cores_per_executor or 1
    task_cpus = question.task_cpus or job.slots.task_cpus
    for node_type in node_types:
        max_nodes = affordable_nodes(question.max_nodes, node_type, question.budget_per_hour)
        if max_nodes < 1:
            continue
        if node_type is None:
            cores = question.cores or profiled_cores
            node_cores = question.node_cores or cores
        else:
            cores = question.cores or executor_cores_on(node_type, profiled_cores, task_cpus)
            node_cores = node_type.cores
        require_room_for_tasks(cores, task_cpus)
        heap_bytes = question.executor_memory_bytes or profiled_heap_bytes(
            job, cores, lower_memory=question.lower_memory
        )
        yield NodesToBuy(
            node_type=node_type,
            max_nodes=max_nodes,
            executors_per_node=executors_that_fit(job, node_type, node_cores, cores, heap_bytes),
            cores_per_executor=cores,
            task_cpus=task_cpus,
            heap_bytes=heap_bytes,
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


def executor_cores_on(node_type: NodeType, profiled_cores: int, task_cpus: float) -> int:
    """Cores of executors that fill a node, are like the profiled ones, and fit whole tasks."""
    if node_type.executors_per_node is not None:
        return node_type.cores // node_type.executors_per_node
    core_choices = [
        cores for cores in range(1, node_type.cores + 1) if node_type.cores % cores == 0
    ]
    core_choices = [cores for cores in core_choices if not idle_cores(cores, task_cpus)] or [
        node_type.cores
    ]
    return min(core_choices, key=lambda cores: (abs(math.log(cores / profiled_cores)), cores))
