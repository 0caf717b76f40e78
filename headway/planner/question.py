"""The question of a plan: the job with its stream, targets, confidence, and what may be chosen."""

from __future__ import annotations

import math
from dataclasses import replace

from headway.assumptions.planning import MOST_PARTITIONS_OF_PLAN, PARTITIONS_PER_SLOT, TRIGGERS_S
from headway.domain import (
    Burst,
    CatchUp,
    DuringBurst,
    JobProfile,
    Metric,
    NodeType,
    Objective,
    Promise,
    Target,
)
from headway.domain.checks import require_count
from headway.domain.configuration import TaskCores, task_slots
from headway.domain.question import Checkpoint
from headway.domain.switches import Switch
from headway.domain.writes import StorePrice
from headway.lazy_classes import dataclass
from headway.limits import MOST_INT
from headway.models.job.declared import figures_at
from headway.models.laws.normal import ndtri

NO_LIMIT_S = 1e9
"""A limit that is never binding [s]."""
_ANY_LATENCY = Target(metric=Metric.TUPLE, quantile=None, limit_s=NO_LIMIT_S)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question to the search; the profile carries the arrivals that are planned for.

    Declared figures in it are at the end of their ranges for the confidence. ``also`` are further
    targets; a setting meets the question if it meets all of them. ``checkpoint`` is what the query
    starts from; with a new one, today's partitions are not preferred. ``store_price`` is what write
    requests cost, if known; the bill of nodes and requests is then ``most_bill_per_hour`` at most.
    ``retention_s`` is how long the source keeps rows if that is given. A setting may write
    ``most_files_per_hour``. ``allowed`` are the switches that a plan may turn.
    """

    profile: JobProfile
    target: Target
    space: SearchSpace
    confidence: float
    also: tuple[Promise, ...] = ()
    objective: Objective = "nodes"
    checkpoint: Checkpoint | None = None
    store_price: StorePrice | None = None
    most_bill_per_hour: float = math.inf
    retention_s: float | None = None
    most_files_per_hour: float = math.inf
    allowed: tuple[Switch, ...] = ()

    def __post_init__(self) -> None:
        if not 0.5 <= self.confidence < 1:
            raise ValueError(f"confidence is {self.confidence}; expected 0.5 or more, and below 1")

    @property
    def rate_per_s(self) -> float:
        """Arrivals that are planned for [records/s]."""
        return self.profile.arrivals.rate_per_s

    @property
    def promises(self) -> tuple[Promise, ...]:
        """The first target and all further targets."""
        return (self.target, *self.also)

    def with_limit(self, promise_index: int, limit_s: float) -> Question:
        """The same question with another limit of the target at an index of `promises`."""
        if promise_index == 0:
            return replace(self, target=replace(self.target, limit_s=limit_s))
        relaxed = with_limit(self.also[promise_index - 1], limit_s)
        return replace(
            self, also=(*self.also[: promise_index - 1], relaxed, *self.also[promise_index:])
        )

    def of_alone(self, promise: Promise) -> Question:
        """The same job and space with one target only, whatever is written and what that costs.

        In place of a budget for the bill, the lowest bill is sought.
        """
        lax = replace(
            self,
            also=(),
            objective="cost" if math.isfinite(self.most_bill_per_hour) else self.objective,
            most_bill_per_hour=math.inf,
            most_files_per_hour=math.inf,
        )
        if isinstance(promise, Target):
            return replace(lax, target=promise)
        return replace(lax, target=_ANY_LATENCY, also=(promise,))

    @property
    def latency_targets(self) -> tuple[Target, ...]:
        """The first target, and all further targets on latency."""
        return (self.target, *(promise for promise in self.also if isinstance(promise, Target)))

    @property
    def minimises_bill(self) -> bool:
        """Whether the lowest bill of nodes and requests is sought."""
        return self.objective == "cost" and self.store_price is not None

    @property
    def minimises_nodes(self) -> bool:
        """Whether the fewest nodes are sought; for a lower bill or latency, more may be taken."""
        return self.objective != "latency" and not self.minimises_bill

    @property
    def has_windows(self) -> bool:
        """Whether a target is on the latency of windows."""
        return any(target.metric is Metric.WINDOW for target in self.latency_targets)

    @property
    def of_change(self) -> tuple[DuringBurst | CatchUp, ...]:
        """Targets on outages and bursts."""
        return tuple(promise for promise in self.also if not isinstance(promise, Target))

    def at_confidence(self, confidence: float) -> Question:
        """The same question at another confidence level.

        Declared figures are taken at the end of their ranges for this level: theory.md (P19).
        """
        profile = figures_at(self.profile, float(ndtri(confidence)))
        return replace(self, profile=profile, confidence=confidence)

    def with_state(self) -> Question:
        """The question from the existing checkpoint, unless it says otherwise."""
        is_free = self.checkpoint is None and self.space.shuffle_partitions is None
        keeps_state = is_free and self.profile.todays_partitions is not None
        return replace(self, checkpoint="existing") if keeps_state else self

    def at_profiled_trigger(self) -> Question:
        """The question at the trigger interval of the profile, unless it fixes another."""
        if self.space.trigger_s is not None:
            return self
        return self.at_trigger(self.profile.baseline.trigger_s)

    def at_trigger(self, trigger_s: float | None) -> Question:
        """The question with a fixed trigger interval; None leaves it to the plan."""
        return replace(self, space=replace(self.space, trigger_s=trigger_s))

    def at_rate(self, rate_per_s: float) -> Question:
        """The same question for another stream of the same kind."""
        arrivals = replace(self.profile.arrivals, rate_per_s=rate_per_s)
        return replace(self, profile=replace(self.profile, arrivals=arrivals))


def with_limit(promise: Promise, limit_s: float) -> Promise:
    """The same target with another limit."""
    if isinstance(promise, DuringBurst):
        return replace(promise, target=replace(promise.target, limit_s=limit_s))
    return replace(promise, limit_s=limit_s)


def burst_of(promise: Promise) -> Burst | None:
    """The burst that a target is about, if any."""
    return None if isinstance(promise, Target) else promise.burst
