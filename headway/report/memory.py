"""The memory of an executor as a table: each part, its size and its source."""

from __future__ import annotations

from headway.domain.plan_parts import MemoryPlan
from headway.units import spark_memory_text


def memory_rows(memory: MemoryPlan) -> list[tuple[str, str, str]]:
    """How the memory of an executor is derived: what, how much, and from which source.

    Parameters
    ----------
    memory : MemoryPlan
        Memory of one executor of a plan.

    Returns
    -------
    list of tuple of str
        A row for each part: its name, its size, and its source.

    Examples
    --------
    >>> mebibyte = 2**20
    >>> memory = MemoryPlan(
    ...     heap_bytes=1024 * mebibyte,
    ...     overhead_bytes=384 * mebibyte,
    ...     needed_heap_bytes=480 * mebibyte,
    ...     native_bytes=0,
    ...     parts={"Spark": 300 * mebibyte, "state": 100 * mebibyte, "headroom": 80 * mebibyte},
    ...     reason="as requested",
    ... )
    >>> for row in memory_rows(memory):
    ...     print(*row, sep=" | ")
    Spark | 300m | reserved
    state | 100m | recorded
    headroom | 80m |
    heap needed | 480m | their sum
    heap planned | 1g | as requested
    memory overhead | 384m |
    container | 1408m | total
    """
    peak_source = (
        "peak of one JVM with the driver" if memory.is_measured_locally else "measured peak"
    )
    # Without peaks, what is needed is known from the record of the state.
    sources = {} if "tasks" in memory.parts else {"Spark": "reserved", "state": "recorded"}
    rows = [
        (
            name,
            spark_memory_text(size),
            "" if name == "headroom" else sources.get(name, peak_source),
        )
        for name, size in memory.parts.items()
        if size
    ]
    if memory.parts:
        rows.append(("heap needed", spark_memory_text(memory.needed_heap_bytes), "their sum"))
    if memory.profiled_heap_bytes is not None:
        text = spark_memory_text(memory.profiled_heap_bytes)
        rows.append(("heap profiled", text, memory.profiled_heap))
    rows.append(("heap planned", spark_memory_text(memory.heap_bytes), memory.reason))
    non_heap_parts = (
        ("memory overhead", memory.overhead_bytes, ""),
        ("of which state", memory.native_bytes, "RocksDB"),
        ("off-heap memory", memory.off_heap_bytes, "as profiled"),
        ("Python workers", memory.python_bytes, "as profiled, per core"),
    )
    rows += [(name, spark_memory_text(size), why) for name, size, why in non_heap_parts if size]
    return [*rows, ("container", spark_memory_text(memory.container_bytes), "total")]
