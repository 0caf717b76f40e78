"""Cheaper plans: move jobs to where they fill nodes better, close supplies with few jobs."""

from __future__ import annotations

import numpy as np

from headway.fleet.billing import bill_of, limits_broken, nodes_needed
from headway.fleet.nouns import Array, Bill, Fleet, Whole

_MOST_MOVES = 400
_WORTHWHILE = 1e-9


def with_better_moves(fleet: Fleet, supply_of: Whole, node_price: Array) -> Whole:
    """The plan after the moves that save most, one at a time, among its supplies: (J,).

    ``node_price``, (S, P), is the assumed cost of a node of each supply in each period. The plan is
    unchanged, unless the new one costs less and exceeds no limit.
    """
    moved_supply_of, open_supplies = supply_of.copy(), np.unique(supply_of)
    position = np.searchsorted(open_supplies, supply_of)
    # Load cases of a period side by side, so that its largest is found at once.
    order = np.argsort(fleet.period_of, kind="stable")
    begins = np.flatnonzero(np.diff(fleet.period_of[order], prepend=-1))
    units = fleet.units[:, open_supplies, :][:, :, order]
    supplies = [fleet.supplies[supply_index] for supply_index in open_supplies.tolist()]
    per_node = np.array([supply.units_per_node for supply in supplies])[:, None]
    reserve = np.array([supply.failures * supply.shared for supply in supplies])[:, None]
    price = node_price[open_supplies]
    jobs = np.arange(len(supply_of))
    load = np.zeros(units.shape[1:], dtype=np.int64)
    np.add.at(load, position, units[jobs, position])

    def cost_of(loads: Whole, supply_indices: slice | Whole) -> Array:
        """Cost of the nodes for some loads, (..., L), of some supplies."""
        needed = np.maximum.reduceat(-(-loads // per_node[supply_indices]), begins, axis=-1)
        nodes = needed + np.where(needed > 0, reserve[supply_indices], 0)
        return np.asarray((nodes * price[supply_indices]).sum(axis=-1))

    for _ in range(_MOST_MOVES):
        cost = cost_of(load, slice(None))
        job_units = units[jobs, position]
        saves = cost[position] - cost_of(load[position] - job_units, position)
        adds = cost_of(load + units, slice(None)) - cost
        adds[~fleet.allowed[:, open_supplies]] = np.inf
        adds[jobs, position] = np.inf
        net = saves - adds.min(axis=1)
        job = int(np.argmax(net))
        if net[job] <= _WORTHWHILE:
            break
        best_supply = int(np.argmin(adds[job]))
        load[position[job]] -= job_units[job]
        load[best_supply] += units[job, best_supply]
        position[job], moved_supply_of[job] = best_supply, open_supplies[best_supply]
    before, bill = _billed(fleet, supply_of)
    after, _ = _billed(fleet, moved_supply_of, bill)
    return moved_supply_of if after < before else supply_of


def estimated_cost(fleet: Fleet) -> Array:
    """Cost of a job per day on each supply with fractional nodes; inf where it cannot run."""
    per_unit = fleet.hourly_prices / fleet.units_per_node
    case_hours = (
        fleet.hours[fleet.period_of]
        / np.bincount(fleet.period_of, minlength=fleet.num_periods)[fleet.period_of]
    )
    estimate = (fleet.units @ case_hours) * per_unit
    return np.where(fleet.allowed, estimate, np.inf)


def with_fewer_open(fleet: Fleet, supply_of: Whole) -> Whole:
    """The plan without supplies whose jobs cost less on the remaining ones.

    Each supply is tried once, the least loaded first. A plan that exceeds a limit stays unchanged
    unless one with fewer supplies is within all limits.
    """
    estimate = estimated_cost(fleet)
    jobs = np.arange(len(fleet.jobs))
    best, (best_cost, bill) = supply_of, _billed(fleet, supply_of)
    load_cost = np.bincount(
        supply_of, weights=estimate[jobs, supply_of], minlength=len(fleet.supplies)
    )
    for supply_index in np.argsort(load_cost, kind="stable"):
        members = np.flatnonzero(best == supply_index)
        others = np.setdiff1d(best, [supply_index])
        if not len(members) or not len(others):
            continue
        costs = estimate[np.ix_(members, others)]
        if not np.isfinite(costs.min(axis=1)).all():
            continue
        moved = best.copy()
        moved[members] = others[costs.argmin(axis=1)]
        cost, moved_bill = _billed(fleet, moved, bill)
        if cost < best_cost:
            best, best_cost, bill = moved, cost, moved_bill
    return best


def _billed(fleet: Fleet, supply_of: Whole, like: Bill | None = None) -> tuple[float, Bill]:
    """Cost of a day, inf if a limit is exceeded, and its bill, by that of a similar plan."""
    nodes = nodes_needed(fleet, supply_of)
    bill = bill_of(fleet, nodes, like)
    is_broken = limits_broken(fleet, nodes, bill.cost_per_day + fleet.all_fees_per_day)
    return float("inf") if is_broken else bill.cost_per_day, bill
