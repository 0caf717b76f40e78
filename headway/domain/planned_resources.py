"""What a plan assumes of the cluster that runs it, as one list.

A file that is patched, and settings that a plan is compared with, must not contradict any of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from headway.domain.configuration import TaskCores, task_slots


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedResources:
    """Slots, cores and memory of a plan; the number of executors is fixed.

    Parameters
    ----------
    nodes, executors, cores_per_executor : int, >= 1
        Nodes, the executors on all of them, the cores of each executor and of each task.
    heap_bytes : int or None
        Heap of an executor [bytes]; None if the plan does not set it.
    overhead_bytes, python_bytes, off_heap_bytes : int or None
        Memory of a container besides the heap [bytes]. None if the plan does not assume a size:
        it checks no node's memory, and whatever is set stays.

    Examples
    --------
    >>> resources = PlannedResources(
    ...     nodes=1, executors=2, cores_per_executor=4, task_cpus=2, heap_bytes=8 * 2**30,
    ...     overhead_bytes=2**30, python_bytes=0, off_heap_bytes=0,
    ... )
    >>> resources.slots_per_executor, resources.num_cores
    (2, 8)
    """

    nodes: int
    executors: int
    cores_per_executor: int
    task_cpus: TaskCores
    heap_bytes: int | None = None
    overhead_bytes: int | None = None
    python_bytes: int | None = None
    off_heap_bytes: int | None = None

    @property
    def slots_per_executor(self) -> int:
        """Tasks that an executor runs at the same time."""
        return task_slots(1, self.cores_per_executor, self.task_cpus)

    @property
    def num_cores(self) -> int:
        """Cores of all executors."""
        return self.executors * self.cores_per_executor

    @property
    def container_bytes(self) -> int | None:
        """Memory that is requested for an executor [bytes]; None if the plan assumes no size."""
        if self.heap_bytes is None or self.overhead_bytes is None:
            return None
        beside_bytes = (self.python_bytes or 0) + (self.off_heap_bytes or 0)
        return self.heap_bytes + self.overhead_bytes + beside_bytes
