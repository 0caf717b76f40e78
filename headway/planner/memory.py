"""Memory of an executor, from measured peaks."""

from __future__ import annotations

from dataclasses import dataclass

from headway.assumptions.resources import (
    HEAP_ROOM_RATIO,
    LARGEST_USEFUL_HEAP_BYTES,
    LEAST_HEAP_BYTES,
    LEAST_OVERHEAD_BYTES,
    OVERHEAD_RATIO,
    PYTHON_OVERHEAD_RATIO,
    RESERVED_BYTES,
    UNIFIED_RATIO,
)
from headway.domain import Application, JobProfile, MemoryPlan, NodeType
from headway.domain.configuration import task_slots
from headway.planner.profiled_memory import MemoryRule, ProfiledMemory, profiled_memory
from headway.sparkconf.container import usual_overhead_bytes
from headway.units import parse_size_bytes

_MIB = parse_size_bytes("1m")
_NO_RULE = MemoryRule()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryNeed:
    """Memory need of an executor of a plan [bytes]; ``parts`` add up to ``heap_bytes``."""

    heap_bytes: int
    native_bytes: int
    parts: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class BesideHeap:
    """Memory of an executor besides its heap: a fixed number of bytes, and a share of the heap."""

    native_bytes: int
    python_bytes: int
    overhead_ratio: float
    off_heap_bytes: int = 0
    least_overhead_bytes: int = 0

    def overhead_bytes(self, heap_bytes: int) -> int:
        """Overhead of a container, including native state; at least what was set [bytes]."""
        return max(
            overhead_bytes(heap_bytes, self.native_bytes, self.overhead_ratio),
            self.least_overhead_bytes,
        )

    def container_bytes(self, heap_bytes: int) -> int:
        """Container size of an executor with a given heap [bytes]."""
        non_heap_bytes = self.overhead_bytes(heap_bytes) + self.python_bytes + self.off_heap_bytes
        return heap_bytes + non_heap_bytes

    def largest_heap_bytes(self, room_bytes: int) -> int:
        """The largest heap, in whole MiB, whose container fits [bytes]."""
        remaining_bytes = room_bytes - self.python_bytes - self.off_heap_bytes
        by_ratio = (remaining_bytes - self.native_bytes) / (1.0 + self.overhead_ratio)
        least_overhead_bytes = max(
            LEAST_OVERHEAD_BYTES.value + self.native_bytes, self.least_overhead_bytes
        )
        return int(min(by_ratio, remaining_bytes - least_overhead_bytes)) // _MIB * _MIB


def beside_heap(profile: JobProfile, native_bytes: int, cores_per_executor: int) -> BesideHeap:
    """Memory of an executor of a job besides its heap.

    Notes
    -----
    theory.md (P10).
    """
    profiled = profiled_memory(profile.applications[-1])
    allowed = profiled.python_bytes if profile.shape.python_operators else 0
    usual_ratio = PYTHON_OVERHEAD_RATIO.value if allowed is None else OVERHEAD_RATIO.value
    python_bytes = -(-(allowed or 0) * cores_per_executor // profile.baseline.cores_per_executor)
    return BesideHeap(
        native_bytes=native_bytes,
        python_bytes=_whole_mib(python_bytes),
        overhead_ratio=usual_ratio if profiled.overhead_ratio is None else profiled.overhead_ratio,
        off_heap_bytes=profiled.off_heap_bytes,
        least_overhead_bytes=profiled.overhead_bytes or 0,
    )


def beside_heap_bytes(application: Application, heap_bytes: int) -> int:
    """Memory that Spark reserves in an application's container besides the heap [bytes].

    From the settings of the profiled run: overhead, Python workers, off-heap memory.
    """
    profiled = profiled_memory(application)
    ratio = OVERHEAD_RATIO.value if profiled.overhead_ratio is None else profiled.overhead_ratio
    overhead = max(overhead_bytes(heap_bytes, 0, ratio), profiled.overhead_bytes or 0)
    return overhead + (profiled.python_bytes or 0) + profiled.off_heap_bytes


def memory_need(profile: JobProfile, executors: int, slots_per_executor: int) -> MemoryNeed | None:
    """Memory need of an executor, from measurements; None if neither peak nor state is recorded.

    Parameters
    ----------
    profile : JobProfile
        The job, with its peaks of tasks and heap, and its state.
    executors : int, >= 1
        Executors that share the state.
    slots_per_executor : int, >= 1
        Tasks that an executor runs at the same time.

    Notes
    -----
    **(P10)** Heap of an executor: the sum of Spark's own 300 MiB and the program (the measured peak
    minus tasks and state); `c` tasks with the largest measured peak, or what keeps them from
    spilling in 0.6 of the heap if that is more; and its share of the state, if the state store
    keeps it on the heap; plus a fifth. Besides the heap: a tenth of it, at least 384 MiB, and the
    share of the state in RocksDB. Python workers get what `spark.executor.pyspark.memory` allowed
    them in the profiled run, in proportion to the cores. If it was not set, their memory is
    unknown, and the tenth becomes the 0.4 that Spark itself uses for Python on Kubernetes.
    Executors share the state evenly, so each needs less with more nodes, and the fewest nodes by
    memory are found by bisection. A node's memory is given to its executors, up to a heap of 31
    GiB. No heap is smaller than that of the profiled run (Spark's default of 1 GiB if it set none),
    unless that is allowed and the peak is that of an executor; in a local run, driver and executor
    are one JVM. Overhead and off-heap memory that the profiled run set are kept.

    State in Spark's default store is on the heap, that of RocksDB outside of it. Without peaks, a
    recorded state is a lower bound: what Spark reserves, the share of the state, and the fifth.
    """
    memory, baseline = profile.memory, profile.baseline
    on_heap_bytes = heap_state_bytes(profile)
    native_bytes = -(-(_state_bytes(profile) - on_heap_bytes) // executors)
    if memory is None:
        if not _state_bytes(profile):
            return None
        parts = {"Spark": RESERVED_BYTES.value, "state": -(-on_heap_bytes // executors)}
        return _with_headroom(parts, native_bytes)
    tasks_bytes = slots_per_executor * memory.peak_task_bytes
    base_bytes = RESERVED_BYTES.value
    if memory.peak_heap_bytes is not None:
        seen_slots = task_slots(1, baseline.cores_per_executor, baseline.task_cpus)
        seen_tasks_bytes = seen_slots * memory.peak_task_bytes
        program_bytes = (
            memory.peak_heap_bytes - seen_tasks_bytes - on_heap_bytes // baseline.executors
        )
        base_bytes = max(base_bytes, program_bytes)
    # Execution memory is in the unified part of the heap, and spills if that is too small.
    unspilled_bytes = round(tasks_bytes / UNIFIED_RATIO.value) + RESERVED_BYTES.value - base_bytes
    parts = {
        "Spark and the program": base_bytes,
        "tasks": max(tasks_bytes, unspilled_bytes),
        "state": -(-on_heap_bytes // executors),
    }
    return _with_headroom(parts, native_bytes)


def _with_headroom(parts: dict[str, int], native_bytes: int) -> MemoryNeed:
    headroom = round((HEAP_ROOM_RATIO.value - 1.0) * sum(parts.values()))
    parts = {**parts, "headroom": headroom}
    return MemoryNeed(heap_bytes=sum(parts.values()), native_bytes=native_bytes, parts=parts)


def heap_state_bytes(profile: JobProfile) -> int:
    """Recorded state that executors keep on their heaps, together [bytes]."""
    return 0 if _is_rocksdb(profile) else _state_bytes(profile)


def _state_bytes(profile: JobProfile) -> int:
    return 0 if profile.state is None else profile.state.memory_bytes


def overhead_bytes(
    heap_bytes: int, native_bytes: int, overhead_ratio: float = OVERHEAD_RATIO.value
) -> int:
    """Memory besides the heap as Spark computes it, plus the native state.

    Examples
    --------
    >>> overhead_bytes(8 * 2**30, 0) == round(0.8 * 2**30)
    True
    """
    return usual_overhead_bytes(heap_bytes, overhead_ratio) + native_bytes


def least_heap_bytes(profile: JobProfile, need: MemoryNeed | None, rule: MemoryRule) -> int:
    """The minimum heap of an executor in a plan, in whole MiB [bytes].

    It is the measured need, and at least the heap that the executor ran with. A measurement lowers
    the heap only with ``rule.may_lower``, and only if it is of an executor, not of a JVM that was
    both driver and executor.
    """
    if rule.heap_bytes is not None:
        return rule.heap_bytes
    profiled = profiled_memory(profile.applications[-1])
    measured_bytes = (
        LEAST_HEAP_BYTES.value if need is None else max(need.heap_bytes, LEAST_HEAP_BYTES.value)
    )
    if rule.may_lower and profile.memory is not None and not profiled.is_local:
        return _whole_mib(measured_bytes)
    return _whole_mib(max(measured_bytes, profiled.heap_bytes))


def memory_plan(
    profile: JobProfile,
    node_type: NodeType | None,
    executors_per_node: int,
    executors: int,
    cores_per_executor: int,
    rule: MemoryRule = _NO_RULE,
    task_cpus: float = 1,
) -> MemoryPlan | None:
    """The memory of an executor; None if neither measurement, node type nor user determines it.

    A node's memory is given to its executors, up to the heap beyond which pointers get larger.
    Without a node type, an executor gets what it had, or what it needs if that is more.
    """
    need = memory_need(profile, executors, task_slots(1, cores_per_executor, task_cpus))
    non_heap = beside_heap(profile, 0 if need is None else need.native_bytes, cores_per_executor)
    least_bytes = least_heap_bytes(profile, need, rule)
    profiled = profiled_memory(profile.applications[-1])
    if rule.heap_bytes is not None:
        heap, reason = rule.heap_bytes, "as requested"
    elif node_type is not None and node_type.memory_bytes is not None:
        room = node_type.memory_bytes // executors_per_node
        useful = max(LARGEST_USEFUL_HEAP_BYTES.value, least_bytes)
        heap, reason = min(non_heap.largest_heap_bytes(room), useful), "what fits on the node"
    elif need is None or (profile.memory is None and _is_enough(profiled.heap_bytes, need)):
        return None
    else:
        heap, reason = least_bytes, _reason(profile, need, profiled, least_bytes)
    return MemoryPlan(
        heap_bytes=heap,
        overhead_bytes=non_heap.overhead_bytes(heap),
        needed_heap_bytes=LEAST_HEAP_BYTES.value
        if need is None
        else max(need.heap_bytes, LEAST_HEAP_BYTES.value),
        native_bytes=non_heap.native_bytes,
        parts={} if need is None else need.parts,
        python_bytes=non_heap.python_bytes,
        off_heap_bytes=non_heap.off_heap_bytes,
        profiled_heap_bytes=profiled.heap_bytes if profile.declared is None else None,
        profiled_heap=profiled.heap_words if profile.declared is None else "",
        reason=reason,
        is_measured_locally=profile.memory is not None and profiled.is_local,
    )


def _is_enough(heap_bytes: int, need: MemoryNeed) -> bool:
    """Whether a heap, and the overhead that Spark itself adds to it, hold what is known."""
    return need.heap_bytes <= heap_bytes and not need.native_bytes


def _reason(
    profile: JobProfile, need: MemoryNeed, profiled: ProfiledMemory, least_bytes: int
) -> str:
    """Reason for the heap of an executor."""
    if profile.memory is None:
        return (
            profiled.heap_words
            if least_bytes <= profiled.heap_bytes
            else "recorded state plus headroom"
        )
    if least_bytes < profiled.heap_bytes:
        return "measured peak plus headroom, lowered as allowed"
    if least_bytes > profiled.heap_bytes or need.heap_bytes >= profiled.heap_bytes:
        return "measured peak plus headroom"
    return f"{profiled.heap_words}; more than needed, but not lowered"


def fewest_nodes_by_memory(
    profile: JobProfile,
    node_type: NodeType | None,
    executors_per_node: int,
    cores_per_executor: int,
    max_nodes: int,
    rule: MemoryRule = _NO_RULE,
    task_cpus: float = 1,
) -> int | None:
    """The fewest nodes whose executors have enough memory; None if no number has.

    State is shared by all executors, so each needs less with more nodes. A heap that is fixed holds
    at least the share of the state, whatever the node.
    """
    memory_bytes = None if node_type is None else node_type.memory_bytes
    room = None if memory_bytes is None else memory_bytes // executors_per_node

    def fits(nodes: int) -> bool:
        executors = nodes * executors_per_node
        if rule.heap_bytes is not None:
            share = -(-heap_state_bytes(profile) // executors)
            if share and RESERVED_BYTES.value + share > rule.heap_bytes:
                return False
        if room is None:
            return True
        needed = needed_container_bytes(profile, executors, cores_per_executor, rule, task_cpus)
        return needed <= room

    if not fits(max_nodes):
        return None
    low, high = 0, max_nodes
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def needed_container_bytes(
    profile: JobProfile,
    executors: int,
    cores_per_executor: int,
    rule: MemoryRule = _NO_RULE,
    task_cpus: float = 1,
) -> int:
    """The minimum container size for an executor [bytes]."""
    need = memory_need(profile, executors, task_slots(1, cores_per_executor, task_cpus))
    native_bytes = 0 if need is None else need.native_bytes
    non_heap = beside_heap(profile, native_bytes, cores_per_executor)
    return non_heap.container_bytes(least_heap_bytes(profile, need, rule))


def _whole_mib(size_bytes: int) -> int:
    return -(-size_bytes // _MIB) * _MIB


def _is_rocksdb(profile: JobProfile) -> bool:
    return "rocksdb" in (profile.pins.state_store or "").lower()
