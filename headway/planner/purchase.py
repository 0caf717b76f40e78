"""Offers: each node type with the executors that fill it, or why it is unsuitable."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from headway.domain import Finding, FindingCode, JobProfile, NodeType
from headway.domain.configuration import idle_cores
from headway.domain.switches import Switch
from headway.errors import InputError
from headway.lazy_classes import dataclass
from headway.models.job.calibration import widened
from headway.planner.enumeration import (
    affordable_nodes,
    suitable,
    too_expensive_text,
    too_few_cores_text,
)
from headway.planner.memory import fewest_nodes_by_memory, heap_state_bytes, needed_container_bytes
from headway.planner.question import Question, SearchSpace
from headway.units import counted, spark_memory_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The question on the nodes of a type, or on the executors of the space without one.

    ``budget_per_hour`` is set if a budget, not the space, limits the number of nodes. The job of
    the question has ``switches`` turned; ``unturned`` is the job without them, if any are allowed.
    """

    question: Question
    budget_per_hour: float | None = None
    switches: tuple[Switch, ...] = ()
    unturned: JobProfile | None = None

    @property
    def node_type(self) -> NodeType | None:
        """Type of the nodes, if there is one."""
        return self.question.space.node_type


def offers_of(
    question: Question,
    node_types: Sequence[NodeType],
    *,
    cores_per_executor: int | None,
    budget_per_hour: float | None,
) -> tuple[list[Offer], tuple[str, ...]]:
    """The node types that can run the job, and why the others cannot.

    The space of the question applies to all, except for the executors of a node, whose cores may be
    fixed; without node types, it is the offer itself. Raises InputError if none of them can run it.
    """
    if not node_types:
        return [_space_itself(question)], ()
    return suitable(
        node_types,
        lambda node_type: _offer(question, node_type, cores_per_executor, budget_per_hour),
    )


def _space_itself(question: Question) -> Offer:
    """The offer without node types, whose memory is unknown; a fixed heap must hold the state."""
    space = question.space
    fewest = fewest_nodes_by_memory(question.profile, space)
    if fewest is None:
        raise InputError(_heap_too_small(question.profile, space))
    space = replace(space, min_nodes=max(fewest, space.min_nodes))
    return Offer(question=replace(question, space=space))


def _heap_too_small(profile: JobProfile, space: SearchSpace) -> str:
    heap_bytes = space.executor_memory_bytes
    assert heap_bytes is not None
    share = heap_state_bytes(profile) // (space.max_nodes * space.executors_per_node)
    return (
        f"a heap of {spark_memory_text(heap_bytes)} is too small for the recorded state, of which "
        f"{spark_memory_text(share)} are in each executor even on "
        f"{counted(space.max_nodes, 'node')}"
    )


def reserve_findings(node_type: NodeType) -> Iterator[Finding]:
    """Parts of a node that are reserved and unavailable to Spark, if any."""
    if node_type.reserve_text is None:
        return
    numbers = {"cores": node_type.cores, "reserved_cores": node_type.reserved_cores}
    if node_type.memory_bytes is not None and node_type.reserved_memory_bytes:
        numbers["memory_bytes"] = node_type.memory_bytes
        numbers["reserved_memory_bytes"] = node_type.reserved_memory_bytes
    names = {"node_type": node_type.name}
    if node_type.reserved_by is not None:
        names["reserved_by"] = node_type.reserved_by
    yield Finding(code=FindingCode.NODE_RESERVE, numbers=numbers, names=names)


def _offer(
    question: Question,
    node_type: NodeType,
    cores_per_executor: int | None,
    budget_per_hour: float | None,
) -> Offer | str:
    """The offer, or why there is none."""
    max_nodes = affordable_nodes(question.space.max_nodes, node_type, budget_per_hour)
    if max_nodes < 1:
        return too_expensive_text(node_type, budget_per_hour)
    task_cpus = question.space.task_cpus
    spaces = [
        replace(
            question.space,
            node_type=node_type,
            max_nodes=max_nodes,
            executors_per_node=per_node,
            cores_per_executor=cores,
        )
        for per_node, cores in _shapes(question.profile, node_type, cores_per_executor, task_cpus)
        if cores >= task_cpus
    ]
    if not spaces:
        return too_few_cores_text(node_type, max(cores_per_executor or 1, task_cpus))
    for space in spaces:
        fewest = fewest_nodes_by_memory(question.profile, space)
        if fewest is not None:
            enough = replace(space, min_nodes=max(fewest, space.min_nodes))
            profile = at_core_speed(question.profile, node_type.core_speed_ratio)
            return Offer(
                question=replace(question, profile=profile, space=enough),
                budget_per_hour=budget_per_hour if max_nodes < question.space.max_nodes else None,
            )
    widest, per_node = spaces[-1], spaces[-1].executors_per_node
    needed_bytes = needed_container_bytes(question.profile, widest, max_nodes * per_node)
    lowered = replace(widest, lower_memory=True)
    least_bytes = needed_container_bytes(question.profile, lowered, max_nodes * per_node)
    if node_type.memory_bytes is None or needed_bytes <= node_type.memory_bytes // per_node:
        return _heap_too_small(question.profile, widest)
    return (
        f"too little memory: an executor of {counted(widest.cores_per_executor, 'core')} needs "
        f"{spark_memory_text(needed_bytes)} even on {counted(max_nodes, 'node')}, but a node of "
        f"{spark_memory_text(node_type.memory_bytes)} has only "
        f"{spark_memory_text(node_type.memory_bytes // per_node)} for it"
        + (
            "; the profiled run had as much, but needed less: a plan that may lower the memory fits"
            if least_bytes < needed_bytes
            else ""
        )
    )


def _shapes(
    profile: JobProfile, node_type: NodeType, cores_per_executor: int | None, task_cpus: float
) -> list[tuple[int, int]]:
    """Executors per node and cores of each, best first: full nodes, executors like today's.

    Then fewer and larger executors, since the fixed memory of each executor is then needed less
    often. Executors whose cores divide into whole tasks precede those that leave cores idle.
    """
    if cores_per_executor is not None:
        per_node = node_type.cores // cores_per_executor
        if node_type.executors_per_node is not None:
            per_node = min(per_node, node_type.executors_per_node)
        return [(per_node, cores_per_executor)] if per_node else []
    if node_type.executors_per_node is not None:
        return [(node_type.executors_per_node, node_type.cores // node_type.executors_per_node)]
    today = profile.baseline.cores_per_executor
    full = [cores for cores in range(1, node_type.cores + 1) if node_type.cores % cores == 0]
    full = [cores for cores in full if not idle_cores(cores, task_cpus)] or full
    nearest = min(full, key=lambda cores: (abs(math.log(cores / today)), cores))
    return [(node_type.cores // cores, cores) for cores in full if cores >= nearest]


def at_core_speed(profile: JobProfile, core_speed_ratio: float) -> JobProfile:
    """The job on cores that are faster or slower than the profiled ones.

    Driver time between tasks is unchanged, since it is mostly waiting for storage.

    **(P11)** Cores of relative speed `s`: task times are divided by `s`, driver phases are
    unchanged; the spread of (P2) gets an additional `σ log _2 s`. Cost is nodes times price. Each
    of several node types has its own fewest nodes, and the objective decides between them.
    """
    if core_speed_ratio == 1.0:
        return profile
    stages = tuple(
        replace(
            stage,
            task_fixed_s=stage.task_fixed_s / core_speed_ratio,
            task_per_row_s=stage.task_per_row_s / core_speed_ratio,
            task_per_partition_s=stage.task_per_partition_s / core_speed_ratio,
            task_per_state_row_s=stage.task_per_state_row_s / core_speed_ratio,
        )
        for stage in profile.stages
    )
    spread = float(widened(profile.noise.run_to_run_ratio, math.log2(core_speed_ratio)))
    declared = profile.declared
    if declared is not None:
        ratio = 1.0 / core_speed_ratio
        declared = replace(
            declared,
            task_fixed=declared.task_fixed.scaled(ratio),
            task_per_row=tuple(cost.scaled(ratio) for cost in declared.task_per_row),
        )
    return replace(
        profile,
        stages=stages,
        noise=replace(profile.noise, run_to_run_ratio=spread),
        declared=declared,
    )
