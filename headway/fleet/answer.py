"""The whole answer for a fleet: its plan, what its promises cost, and how it grows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headway.fleet.nouns import Fleet, FleetPlan, Infeasible, ShadowPrice


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetPrice:
    """What a job's promise costs against one that is a quarter looser: at least so much."""

    job: str
    promise: str
    looser: str
    saves_per_day: float
    is_all: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthPoint:
    """The plan at a date, the rates having grown by a ratio since the catalogue's."""

    month: str
    ratio: float
    plan: FleetPlan | Infeasible


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """The answer for a fleet, and what it was made of.

    ``fleet`` has the needs that were planned for; of several scenarios those of the largest in each
    hour. ``scenarios`` says in words how ranges were taken.
    """

    name: str
    currency: str
    prices_of: str
    fleet: Fleet
    plan: FleetPlan | Infeasible
    why_impossible: Mapping[str, str]
    scenarios: str
    gap_asked_ratio: float
    target_prices: tuple[TargetPrice, ...] = ()
    shadow_prices: tuple[ShadowPrice, ...] = ()
    growth: tuple[GrowthPoint, ...] = ()

    @property
    def feasible(self) -> bool:
        """Whether every job is served within the limits."""
        return isinstance(self.plan, FleetPlan) and bool((self.plan.supply_of >= 0).all())
