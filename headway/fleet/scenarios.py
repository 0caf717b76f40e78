"""Ranges as scenarios: drawn with a random seed, and combined by a rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from headway.domain import Z90
from headway.fleet.billing import nodes_needed
from headway.fleet.nouns import Array, Fleet, FleetPlan, Infeasible


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioPlan:
    """The plan of a rule for scenarios, and the fleet that it is for.

    The fleet is that of the plan's own scenario, or has the largest needs of those that it was
    planned for. ``num_carried`` is how many drawn scenarios it can run completely;
    ``worst_per_day`` is its excess cost in the worst one, ``num_short`` in how many it lacks nodes.
    """

    plan: FleetPlan | Infeasible
    fleet: Fleet
    num_carried: int = 0
    worst_per_day: float = 0.0
    num_short: int = 0


def drawn_ratios(spreads: Sequence[tuple[float, float]], count: int, seed: int) -> Array:
    """Factors on the middles of ranges, for each scenario and range: (count, n).

    ``spreads`` are low and high of each range over its middle; nine in ten draws are between them.
    They are of two halves of a lognormal around the middle, so that ranges may be asymmetric.

    >>> drawn_ratios([(1.0, 1.0)], 2, seed=1).tolist()
    [[1.0], [1.0]]
    """
    normal = np.random.default_rng(seed).standard_normal((count, len(spreads)))
    low = np.array([max(below, 1e-9) for below, _ in spreads])
    high = np.array([above for _, above in spreads])
    range_end = np.where(normal < 0, 1.0 / low, high)
    return np.asarray(np.exp(np.log(range_end) * normal / Z90))


def carries(fleet: Fleet, plan: FleetPlan) -> bool:
    """Whether the nodes of a plan can run the jobs of a fleet that differs only in its units."""
    needed = nodes_needed(fleet, plan.supply_of)
    runs = all(
        supply_index >= 0 and fleet.allowed[job, supply_index]
        for job, supply_index in enumerate(plan.supply_of)
    )
    return runs and bool(np.all(needed <= plan.nodes))


def merged(fleets: Sequence[Fleet]) -> Fleet:
    """One fleet with the load cases of all, so that a plan for it can run each of them."""
    return replace(
        fleets[0],
        units=np.concatenate([fleet.units for fleet in fleets], axis=2),
        period_of=np.concatenate([fleet.period_of for fleet in fleets]),
        allowed=np.logical_and.reduce([fleet.allowed for fleet in fleets]),
        fees_per_day=_highest_fees(fleets),
    )


def largest(fleets: Sequence[Fleet]) -> Fleet:
    """The fleet with the largest needs of all, job by job and hour by hour."""
    return replace(
        fleets[0],
        units=np.maximum.reduce([fleet.units for fleet in fleets]),
        allowed=np.logical_and.reduce([fleet.allowed for fleet in fleets]),
        fees_per_day=_highest_fees(fleets),
    )


def _highest_fees(fleets: Sequence[Fleet]) -> tuple[float, ...]:
    return tuple(np.maximum.reduce([fleet.fees for fleet in fleets]).tolist())


def least_heavy(fleets: Sequence[Fleet], confidence: float) -> list[Fleet]:
    """The scenarios that a chance constraint keeps: all except the heaviest few.

    A scenario that excludes a supply for a job is heavier than any that does not.
    """
    keep = int(np.ceil(confidence * len(fleets) - 1e-9))
    weight = [(-int(fleet.allowed.sum()), _weight(fleet)) for fleet in fleets]
    order = sorted(range(len(fleets)), key=lambda index: weight[index])
    return [fleets[index] for index in sorted(order[:keep])]


def plan_for_chance(
    fleets: Sequence[Fleet], confidence: float, solve: Callable[[Fleet], FleetPlan | Infeasible]
) -> ScenarioPlan:
    """The cheapest plan that can run all except the heaviest few scenarios."""
    kept_fleets = least_heavy(fleets, confidence)
    plan = solve(merged(kept_fleets))
    if not plan.feasible:
        return ScenarioPlan(plan=plan, fleet=largest(fleets))
    carried = sum(carries(fleet, plan) for fleet in fleets)
    return ScenarioPlan(plan=plan, fleet=largest(kept_fleets), num_carried=carried)


def plan_of_least_regret(
    fleets: Sequence[Fleet], shortage_ratio: float, solve: Callable[[Fleet], FleetPlan | Infeasible]
) -> ScenarioPlan:
    """Of the best plans of all scenarios, the one with the smallest worst regret.

    The regret of a plan in a scenario is its cost, plus ``shortage_ratio`` times the price of every
    node that is missing there, minus the cost of that scenario's own best plan.
    """
    plans = []
    for fleet in fleets:
        best_plan = solve(fleet)
        if not best_plan.feasible:
            return ScenarioPlan(plan=best_plan, fleet=largest(fleets))
        plans.append(best_plan)
    costs = np.array([plan.cost_per_day for plan in plans])
    # A row for each plan, a column for each scenario.
    missing = np.array([[_shortage_per_day(fleet, plan) for fleet in fleets] for plan in plans])
    worst = (costs[:, None] + shortage_ratio * missing - costs).max(axis=1)
    best_index = int(np.argmin(worst))
    return ScenarioPlan(
        plan=plans[best_index],
        fleet=fleets[best_index],
        worst_per_day=float(worst[best_index]),
        num_short=int(np.count_nonzero(missing[best_index])),
    )


def _shortage_per_day(fleet: Fleet, plan: FleetPlan) -> float:
    """Cost of the missing nodes of a plan on demand."""
    missing = np.maximum(nodes_needed(fleet, plan.supply_of) - plan.nodes, 0)
    return float(fleet.hourly_prices @ missing @ fleet.hours)


def _weight(fleet: Fleet) -> float:
    """Total need of a fleet: the cheapest place of each job, regardless of limits."""
    per_unit = fleet.hourly_prices / fleet.units_per_node
    cost = np.where(fleet.allowed, fleet.units.sum(axis=2) * per_unit, np.inf).min(axis=1)
    return float(np.where(np.isfinite(cost), cost, 0.0).sum())
