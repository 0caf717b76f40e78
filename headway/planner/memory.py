"""Memory of an executor, from measured peaks."""

from __future__ import annotations

from bisect import bisect_left

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
from headway.domain import Application, JobProfile, MemoryPlan, RocksDbMemory
from headway.domain.configuration import task_slots
from headway.lazy_classes import dataclass
from headway.models.job.rocksdb_memory import rocksdb_memory
from headway.planner.profiled_memory import ProfiledMemory, profiled_memory, state_in_rocksdb
from headway.planner.question import SearchSpace
from headway.sparkconf.container import usual_overhead_bytes
from headway.units import parse_size_bytes

_MIB = parse_size_bytes("1m")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryNeed:
    """Memory need of an executor of a plan [bytes].

    ``parts`` add up to ``heap_bytes``. Besides the heap, a container has a fixed number of bytes,
    and a share of the heap; overhead and off-heap memory that were set are those of ``profiled``.
    """

    heap_bytes: int
    parts: dict[str, int]
    native_bytes: int
    python_bytes: int
    overhead_ratio: float
    profiled: ProfiledMemory
    rocksdb: RocksDbMemory | None = None

    def overhead_bytes(self, heap_bytes: int) -> int:
        """Overhead of a container, including native state; at least what was set [bytes]."""
        computed_bytes = overhead_bytes(heap_bytes, self.native_bytes, self.overhead_ratio)
        return max(computed_bytes, self.profiled.overhead_bytes or 0)

    def container_bytes(self, heap_bytes: int) -> int:
        """Container size of an executor with a given heap [bytes]."""
        beside_bytes = self.python_bytes + self.profiled.off_heap_bytes
        return heap_bytes + self.overhead_bytes(heap_bytes) + beside_bytes

    def largest_heap_bytes(self, room_bytes: int) -> int:
        """The largest heap, in whole MiB, whose container fits [bytes]."""
        remaining_bytes = room_bytes - self.python_bytes - self.profiled.off_heap_bytes
        by_ratio = (remaining_bytes - self.native_bytes) / (1.0 + self.overhead_ratio)
        least_overhead_bytes = max(
            LEAST_OVERHEAD_BYTES.value + self.native_bytes, self.profiled.overhead_bytes or 0
        )
        return int(min(by_ratio, remaining_bytes - least_overhead_bytes)) // _MIB * _MIB


def beside_heap_bytes(application: Application, heap_bytes: int) -> int:
    """Memory that Spark reserves in an application's container besides the heap [bytes].

    From the settings of the profiled run: overhead, Python workers, off-heap memory.
    """
    profiled = profiled_memory(application)
    ratio = OVERHEAD_RATIO.value if profiled.overhead_ratio is None else profiled.overhead_ratio
    overhead = max(overhead_bytes(heap_bytes, 0, ratio), profiled.overhead_bytes or 0)
    return overhead + (profiled.python_bytes or 0) + profiled.off_heap_bytes


def memory_need(profile: JobProfile, space: SearchSpace, executors: int) -> MemoryNeed:
    """Memory need of an executor, from measurements; no heap if no peak or state is recorded.

    The profile has the peaks of tasks and heap, and the state, which ``executors`` share; the space
    has the cores of an executor, and those of a task.

    **(P10)** Heap of an executor: the sum of Spark's own 300 MiB and the program (the measured peak
    minus tasks and state); `c` tasks with the largest measured peak, or what keeps them from
    spilling in 0.6 of the heap if that is more; and its share of the state at the planned rate
    (E36), if the state store keeps it on the heap; plus a fifth. Besides the heap: a tenth of it,
    at least 384 MiB, and the share of the state in RocksDB. Python workers get what
    `spark.executor.pyspark.memory` allowed them in the profiled run, in proportion to the cores. If
    it was not set, their memory is unknown, and the tenth becomes the 0.4 that Spark itself uses
    for Python on Kubernetes. Executors share the state evenly, so each needs less with more nodes,
    and the fewest nodes by memory are found by bisection. A node's memory is given to its
    executors, up to a heap of 31 GiB. No heap is smaller than that of the profiled run (Spark's
    default of 1 GiB if it set none), unless that is allowed and the peak is that of an executor; in
    a local run, driver and executor are one JVM. Overhead and off-heap memory that the profiled run
    set are kept.

    State in Spark's default store is on the heap, that of RocksDB outside of it, with the bound of
    (Z1) if what its stores wrote is on record, else as much as they held. Without peaks, a
    recorded state is a lower bound: what Spark reserves, the share of the state, and the fifth.
    """
    parts = _heap_parts(profile, space, executors)
    profiled = profiled_memory(profile.applications[-1])
    allowed = profiled.python_bytes if profile.shape.python_operators else 0
    usual_ratio = PYTHON_OVERHEAD_RATIO.value if allowed is None else OVERHEAD_RATIO.value
    profiled_cores = profile.baseline.cores_per_executor
    in_rocksdb = state_in_rocksdb(profile, executors)
    rocksdb = None if in_rocksdb is None else rocksdb_memory(in_rocksdb)
    held_bytes = -(-(profile.state_memory_bytes - heap_state_bytes(profile)) // executors)
    return MemoryNeed(
        heap_bytes=sum(parts.values()),
        parts=parts,
        native_bytes=held_bytes if rocksdb is None else rocksdb.native_bytes,
        rocksdb=rocksdb,
        python_bytes=_whole_mib(-(-(allowed or 0) * space.cores_per_executor // profiled_cores)),
        overhead_ratio=usual_ratio if profiled.overhead_ratio is None else profiled.overhead_ratio,
        profiled=profiled,
    )


def _heap_parts(profile: JobProfile, space: SearchSpace, executors: int) -> dict[str, int]:
    """What an executor has on its heap, with the headroom; nothing if nothing is known."""
    memory, baseline = profile.memory, profile.baseline
    state_bytes = -(-heap_state_bytes(profile) // executors)
    if memory is None:
        if not profile.state_memory_bytes:
            return {}
        parts = {"Spark": RESERVED_BYTES.value, "state": state_bytes}
    else:
        slots = task_slots(1, space.cores_per_executor, space.task_cpus)
        tasks_bytes, base_bytes = slots * memory.peak_task_bytes, RESERVED_BYTES.value
        if memory.peak_heap_bytes is not None:
            seen_slots = task_slots(1, baseline.cores_per_executor, baseline.task_cpus)
            seen_tasks_bytes = seen_slots * memory.peak_task_bytes
            seen_state_bytes = profile.state.memory_bytes if profile.state else 0
            on_heap_bytes = 0 if profile.is_rocksdb else seen_state_bytes
            program_bytes = (
                memory.peak_heap_bytes - seen_tasks_bytes - on_heap_bytes // baseline.executors
            )
            base_bytes = max(base_bytes, program_bytes)
        # Execution memory is in the unified part of the heap, and spills if that is too small.
        unified_bytes = round(tasks_bytes / UNIFIED_RATIO.value)
        unspilled_bytes = unified_bytes + RESERVED_BYTES.value - base_bytes
        parts = {
            "Spark and the program": base_bytes,
            "tasks": max(tasks_bytes, unspilled_bytes),
            "state": state_bytes,
        }
    return {**parts, "headroom": round((HEAP_ROOM_RATIO.value - 1.0) * sum(parts.values()))}


def heap_state_bytes(profile: JobProfile) -> int:
    """State at the planned rate that executors keep on their heaps, together [bytes]."""
    return 0 if profile.is_rocksdb else profile.state_memory_bytes


def overhead_bytes(
    heap_bytes: int, native_bytes: int, overhead_ratio: float = OVERHEAD_RATIO.value
) -> int:
    """Memory besides the heap as Spark computes it, plus the native state.

    >>> overhead_bytes(8 * 2**30, 0) == round(0.8 * 2**30)
    True
    """
    return usual_overhead_bytes(heap_bytes, overhead_ratio) + native_bytes


def least_heap_bytes(profile: JobProfile, need: MemoryNeed, space: SearchSpace) -> int:
    """The minimum heap of an executor in a plan, in whole MiB [bytes].

    It is the measured need, and at least the heap that the executor ran with. A measurement lowers
    the heap only with ``space.lower_memory``, and only if it is of an executor, not of a JVM that
    was both driver and executor.
    """
    if space.executor_memory_bytes is not None:
        return space.executor_memory_bytes
    measured_bytes = max(need.heap_bytes, LEAST_HEAP_BYTES.value)
    if space.lower_memory and profile.memory is not None and not need.profiled.is_local:
        return _whole_mib(measured_bytes)
    return _whole_mib(max(measured_bytes, need.profiled.heap_bytes))


def memory_plan(profile: JobProfile, space: SearchSpace, executors: int) -> MemoryPlan | None:
    """The memory of an executor; None if neither measurement, node type nor user determines it.

    A node's memory is given to its executors, up to the heap beyond which pointers get larger.
    Without a node type, an executor gets what it had, or what it needs if that is more.
    """
    need = memory_need(profile, space, executors)
    least_bytes, profiled = least_heap_bytes(profile, need, space), need.profiled
    if space.executor_memory_bytes is not None:
        heap, reason = space.executor_memory_bytes, "as requested"
    elif (room := _room_bytes(space)) is not None:
        useful = max(LARGEST_USEFUL_HEAP_BYTES.value, least_bytes)
        heap, reason = min(need.largest_heap_bytes(room), useful), "what fits on the node"
    elif (
        profile.memory is None and need.heap_bytes <= profiled.heap_bytes and not need.native_bytes
    ):
        # Its heap, and the overhead that Spark itself adds to it, hold what is known.
        return None
    else:
        heap, reason = least_bytes, _reason(profile, need, least_bytes)
    return MemoryPlan(
        heap_bytes=heap,
        overhead_bytes=need.overhead_bytes(heap),
        needed_heap_bytes=max(need.heap_bytes, LEAST_HEAP_BYTES.value),
        native_bytes=need.native_bytes,
        parts=need.parts,
        python_bytes=need.python_bytes,
        off_heap_bytes=profiled.off_heap_bytes,
        profiled_heap_bytes=profiled.heap_bytes if profile.declared is None else None,
        profiled_heap=profiled.heap_words if profile.declared is None else "",
        reason=reason,
        is_measured_locally=profile.memory is not None and profiled.is_local,
        rocksdb=need.rocksdb,
    )


def _reason(profile: JobProfile, need: MemoryNeed, least_bytes: int) -> str:
    """Reason for the heap of an executor."""
    profiled = need.profiled
    if profile.memory is None:
        is_more = least_bytes > profiled.heap_bytes
        return "recorded state plus headroom" if is_more else profiled.heap_words
    if least_bytes < profiled.heap_bytes:
        return "measured peak plus headroom, lowered as allowed"
    if least_bytes > profiled.heap_bytes or need.heap_bytes >= profiled.heap_bytes:
        return "measured peak plus headroom"
    return f"{profiled.heap_words}; more than needed, but not lowered"


def fewest_nodes_by_memory(profile: JobProfile, space: SearchSpace) -> int | None:
    """The fewest nodes whose executors have enough memory; None if no number has.

    State is shared by all executors, so each needs less with more nodes. A heap that is fixed holds
    at least the share of the state, whatever the node.
    """
    room, heap_bytes = _room_bytes(space), space.executor_memory_bytes

    def fits(nodes: int) -> bool:
        executors = nodes * space.executors_per_node
        if heap_bytes is not None:
            share = -(-heap_state_bytes(profile) // executors)
            if share and RESERVED_BYTES.value + share > heap_bytes:
                return False
        return room is None or needed_container_bytes(profile, space, executors) <= room

    if not fits(space.max_nodes):
        return None
    return bisect_left(range(1, space.max_nodes), True, key=fits) + 1


def _room_bytes(space: SearchSpace) -> int | None:
    """Memory of a node for each executor; None if unknown [bytes]."""
    memory_bytes = None if space.node_type is None else space.node_type.memory_bytes
    return None if memory_bytes is None else memory_bytes // space.executors_per_node


def needed_container_bytes(profile: JobProfile, space: SearchSpace, executors: int) -> int:
    """The minimum container size for an executor [bytes]."""
    need = memory_need(profile, space, executors)
    return need.container_bytes(least_heap_bytes(profile, need, space))


def _whole_mib(size_bytes: int) -> int:
    return -(-size_bytes // _MIB) * _MIB
