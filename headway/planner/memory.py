"""Memory of an executor, from the peaks that were measured."""

from __future__ import annotations

from dataclasses import dataclass

from headway.domain import JobProfile, MemoryPlan, NodeType
from headway.units import parse_size_bytes

_MIB = parse_size_bytes("1m")
_RESERVED_BYTES = parse_size_bytes("300m")  # Spark keeps so much of every heap for itself
_UNIFIED_RATIO = 0.6  # spark.memory.fraction: execution and storage together
_HEADROOM_RATIO = 1.2  # a heap that is nearly full is collected all the time
_OVERHEAD_RATIO = 0.1  # spark.executor.memoryOverheadFactor
_LEAST_OVERHEAD_BYTES = parse_size_bytes("384m")
_LEAST_HEAP_BYTES = parse_size_bytes("450m")  # Spark refuses less
# Beyond, the JVM's pointers take twice the room.
_LARGEST_USEFUL_HEAP_BYTES = parse_size_bytes("31g")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryNeed:
    """What an executor of a plan needs [bytes]; ``parts`` adds up to ``heap_bytes``."""

    heap_bytes: int
    native_bytes: int
    parts: dict[str, int]


def memory_need(profile: JobProfile, executors: int, cores_per_executor: int) -> MemoryNeed | None:
    """What an executor needs, by what was measured; None where no peak is on record.

    Parameters
    ----------
    profile : JobProfile
        The job, with its peaks of tasks and heap, and its state.
    executors : int, >= 1
        Executors that share the state.
    cores_per_executor : int, >= 1
        Tasks that an executor runs side by side.

    Notes
    -----
    theory.md (P10). State in Spark's own store lies on the heap, that of RocksDB outside of it.
    """
    memory = profile.memory
    if memory is None:
        return None
    seen = profile.baseline
    state_bytes = 0 if profile.state is None else profile.state.memory_bytes
    on_heap = 0 if _is_rocksdb(profile) else state_bytes
    tasks_bytes = cores_per_executor * memory.peak_task_bytes
    base_bytes = _RESERVED_BYTES
    if memory.peak_heap_bytes is not None:
        seen_tasks_bytes = seen.cores_per_executor * memory.peak_task_bytes
        rest = memory.peak_heap_bytes - seen_tasks_bytes - on_heap // seen.executors
        base_bytes = max(base_bytes, rest)
    # Execution memory lives in the unified part of the heap, and spills where that is too small.
    unspilled_bytes = round(tasks_bytes / _UNIFIED_RATIO) + _RESERVED_BYTES - base_bytes
    parts = {
        "Spark and the program": base_bytes,
        "tasks": max(tasks_bytes, unspilled_bytes),
        "state": -(-on_heap // executors),
    }
    parts["headroom"] = round((_HEADROOM_RATIO - 1.0) * sum(parts.values()))
    native = -(-(state_bytes - on_heap) // executors)
    return MemoryNeed(heap_bytes=sum(parts.values()), native_bytes=native, parts=parts)


def overhead_bytes(heap_bytes: int, native_bytes: int) -> int:
    """What a container holds beside the heap, as Spark reckons it, and the native state.

    Examples
    --------
    >>> overhead_bytes(8 * 2**30, 0) == round(0.8 * 2**30)
    True
    """
    return max(round(_OVERHEAD_RATIO * heap_bytes), _LEAST_OVERHEAD_BYTES) + native_bytes


def memory_plan(
    profile: JobProfile,
    node_type: NodeType | None,
    executors_per_node: int,
    executors: int,
    cores_per_executor: int,
) -> MemoryPlan | None:
    """The memory to give an executor; None where neither measurement nor node type tells.

    A node's memory is given to its executors, up to the heap beyond which pointers grow; without
    a node type an executor gets what it had, or what it needs if that is more.
    """
    need = memory_need(profile, executors, cores_per_executor)
    native = 0 if need is None else need.native_bytes
    least = _LEAST_HEAP_BYTES if need is None else max(need.heap_bytes, _LEAST_HEAP_BYTES)
    if node_type is not None and node_type.memory_bytes is not None:
        room = node_type.memory_bytes // executors_per_node
        useful = max(_LARGEST_USEFUL_HEAP_BYTES, _whole_mib(least))
        heap = min(_largest_heap_bytes(room, native), useful)
    else:
        today = profile.applications[-1].executor_memory
        if need is None:
            return None
        heap = max(_whole_mib(least), 0 if today is None else parse_size_bytes(today))
    return MemoryPlan(
        heap_bytes=heap,
        overhead_bytes=overhead_bytes(heap, native),
        needed_heap_bytes=least,
        native_bytes=native,
        parts={} if need is None else need.parts,
    )


def fewest_nodes_by_memory(
    profile: JobProfile,
    node_type: NodeType,
    executors_per_node: int,
    cores_per_executor: int,
    max_nodes: int,
) -> int | None:
    """The fewest nodes whose executors have the memory they need, None if no number has.

    State is shared by all executors, so more nodes need less each.
    """
    if node_type.memory_bytes is None:
        return 1
    room = node_type.memory_bytes // executors_per_node

    def fits(nodes: int) -> bool:
        return (
            needed_container_bytes(profile, nodes * executors_per_node, cores_per_executor) <= room
        )

    if not fits(max_nodes):
        return None
    low, high = 0, max_nodes
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def needed_container_bytes(profile: JobProfile, executors: int, cores_per_executor: int) -> int:
    """The least container that an executor runs in [bytes]."""
    need = memory_need(profile, executors, cores_per_executor)
    if need is None:
        return _LEAST_HEAP_BYTES + overhead_bytes(_LEAST_HEAP_BYTES, 0)
    heap = max(need.heap_bytes, _LEAST_HEAP_BYTES)
    return heap + overhead_bytes(heap, need.native_bytes)


def _largest_heap_bytes(room: int, native: int) -> int:
    by_ratio = (room - native) / (1.0 + _OVERHEAD_RATIO)
    by_least = room - native - _LEAST_OVERHEAD_BYTES
    return int(min(by_ratio, by_least)) // _MIB * _MIB


def _whole_mib(size_bytes: int) -> int:
    return -(-size_bytes // _MIB) * _MIB


def _is_rocksdb(profile: JobProfile) -> bool:
    return "rocksdb" in (profile.pins.state_store or "").lower()
