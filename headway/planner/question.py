"""The question of a plan: the job with its stream, targets, search space, and confidence."""

from __future__ import annotations

import math
from dataclasses import replace

from headway.domain import (
    Burst,
    CatchUp,
    DuringBurst,
    JobProfile,
    Metric,
    Objective,
    Promise,
    Target,
)
from headway.domain.question import Checkpoint
from headway.domain.switches import Switch
from headway.domain.writes import StorePrice
from headway.lazy_classes import dataclass
from headway.models.job.declared import figures_at
from headway.models.laws.normal import ndtri
from headway.planner.space import SearchSpace

NO_LIMIT_S = 1e9
"""A limit that is never binding [s]."""
_ANY_LATENCY = Target(metric=Metric.TUPLE, quantile=None, limit_s=NO_LIMIT_S)


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
