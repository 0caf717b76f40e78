"""The search space of a plan: nodes and settings."""

from __future__ import annotations

import math

from headway.assumptions.planning import MOST_PARTITIONS_OF_PLAN, PARTITIONS_PER_SLOT, TRIGGERS_S
from headway.domain import JobProfile, NodeType
from headway.domain.checks import require_count
from headway.domain.configuration import TaskCores, task_slots
from headway.lazy_classes import dataclass
from headway.limits import MOST_INT


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSpace:
    """Nodes of a type, or without one those that a question describes, and their executors.

    ``min_nodes`` are needed for instance for their memory. ``task_cpus`` are the cores that a task
    occupies, and ``tasks_per_executor`` the most tasks at once on an executor, if something other
    than cores limits them. The heap is ``executor_memory_bytes``, used as given; None leaves it to
    the plan, or to Spark. With ``lower_memory`` a plan may give an executor less than it ran with,
    down to the measured need. Of a query, ``shuffle_partitions`` and ``trigger_s`` may be fixed,
    for instance by an existing checkpoint; None is free.

    >>> SearchSpace(max_nodes=3, executors_per_node=2, cores_per_executor=4).num_slots(2)
    16
    """

    max_nodes: int
    min_nodes: int = 1
    executors_per_node: int = 1
    cores_per_executor: int = 1
    task_cpus: TaskCores = 1
    tasks_per_executor: int | None = None
    node_type: NodeType | None = None
    executor_memory_bytes: int | None = None
    lower_memory: bool = False
    shuffle_partitions: int | None = None
    trigger_s: float | None = None

    def __post_init__(self) -> None:
        counts = ("max_nodes", "min_nodes", "executors_per_node", "cores_per_executor")
        require_count(MOST_INT, **{name: getattr(self, name) for name in counts})
        if not 0 < self.task_cpus <= self.cores_per_executor:
            raise ValueError(
                f"task_cpus is {self.task_cpus}, cores_per_executor {self.cores_per_executor}"
            )
        if self.min_nodes > self.max_nodes:
            raise ValueError(f"min_nodes is {self.min_nodes}, max_nodes {self.max_nodes}")
        if self.shuffle_partitions is not None:
            require_count(MOST_INT, shuffle_partitions=self.shuffle_partitions)
        if self.trigger_s is not None and not 0 <= self.trigger_s < math.inf:
            raise ValueError(
                f"trigger_s is {self.trigger_s}; expected 0 (as fast as possible) or more"
            )

    @property
    def core_speed_ratio(self) -> float:
        """Speed of the cores over that of the profiled ones."""
        return 1.0 if self.node_type is None else self.node_type.core_speed_ratio

    def cost_per_hour(self, nodes: int) -> float | None:
        """Price of a number of nodes; None if unknown."""
        return None if self.node_type is None else self.node_type.cost_per_hour(nodes)

    def num_slots(self, nodes: int) -> int:
        """Task slots of a number of nodes."""
        return task_slots(
            nodes * self.executors_per_node,
            self.cores_per_executor,
            self.task_cpus,
            self.tasks_per_executor,
        )

    def partition_choices(self, profile: JobProfile, nodes: int) -> tuple[int, ...]:
        """Shuffle partitions to try: powers of two, multiples of the slots, and today's."""
        today = profile.todays_partitions
        if self.shuffle_partitions is not None:
            return (self.shuffle_partitions,)
        if not any(stage.tasks_rule == "shuffle" for stage in profile.stages):
            return (profile.baseline.shuffle_partitions,)
        slots = self.num_slots(nodes)
        max_partitions = min(4 * slots, MOST_PARTITIONS_OF_PLAN.value)
        powers = {2**exponent for exponent in range(max_partitions.bit_length())}
        multiples = {
            slots * per_slot
            for per_slot in PARTITIONS_PER_SLOT.value
            if slots * per_slot <= max_partitions
        }
        return tuple(sorted(powers | multiples | ({today} if today else set())))

    def trigger_choices_s(self, profile: JobProfile, limit_s: float) -> tuple[float, ...]:
        """Trigger intervals to try under a latency limit, including today's."""
        if self.trigger_s is not None:
            return (self.trigger_s,)
        choices = {*TRIGGERS_S.value, profile.baseline.trigger_s}
        # A row waits up to the interval, and half of it on average.
        return tuple(sorted(choice for choice in choices if choice < 2 * limit_s))
