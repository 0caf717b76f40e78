"""A plan made cheaper by giving up supplies that few jobs use: each costs what it rounds up to."""

from __future__ import annotations

import numpy as np

from headway.fleet.billing import bill_of, limits_broken, nodes_needed
from headway.fleet.nouns import Array, Fleet, Whole


def estimated_cost(fleet: Fleet) -> Array:
    """What a job would cost a day on each supply if nodes could be cut; inf where it cannot run."""
    price = np.array([fleet.offers[supply.offer].price for supply in fleet.supplies])
    per_unit = price / np.array([supply.units_per_node for supply in fleet.supplies])
    case_hours = (
        fleet.hours[fleet.period_of]
        / np.bincount(fleet.period_of, minlength=fleet.num_periods)[fleet.period_of]
    )
    estimate = (fleet.units @ case_hours) * per_unit
    return np.where(fleet.allowed, estimate, np.inf)


def with_fewer_open(fleet: Fleet, chosen: Whole) -> Whole:
    """The plan with each supply closed whose jobs are served for less by those left open.

    Supplies are tried once each, the one with the least to do first. A plan that breaks a limit
    stays as it is unless one with fewer supplies keeps them all.

    Parameters
    ----------
    fleet : Fleet
        The fleet.
    chosen : (J,) array of int
        Place of each job's supply.
    """
    estimate = estimated_cost(fleet)
    jobs = np.arange(len(fleet.jobs))
    best, best_cost = chosen, _cost(fleet, chosen)
    todo = np.bincount(chosen, weights=estimate[jobs, chosen], minlength=len(fleet.supplies))
    for place in np.argsort(todo, kind="stable"):
        members = np.flatnonzero(best == place)
        others = np.setdiff1d(best, [place])
        if not len(members) or not len(others):
            continue
        costs = estimate[np.ix_(members, others)]
        if not np.isfinite(costs.min(axis=1)).all():
            continue
        moved = best.copy()
        moved[members] = others[costs.argmin(axis=1)]
        cost = _cost(fleet, moved)
        if cost < best_cost:
            best, best_cost = moved, cost
    return best


def _cost(fleet: Fleet, chosen: Whole) -> float:
    """What a day costs; inf where a limit is broken."""
    nodes = nodes_needed(fleet, chosen)
    cost = bill_of(fleet, nodes).cost_per_day
    return float("inf") if limits_broken(fleet, nodes, cost) else cost
