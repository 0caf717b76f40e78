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
    moves = _Moves(fleet, supply_of.copy(), node_price)
    for _ in range(_MOST_MOVES):
        if not moves.make_best():
            break
    before, bill = _billed(fleet, supply_of)
    after, _ = _billed(fleet, moves.chosen, bill)
    return moves.chosen if after < before else supply_of


class _Moves:
    """A plan under construction: loads of the open supplies, and their nodes."""

    def __init__(self, fleet: Fleet, supply_of: Whole, node_price: Array) -> None:
        # Load cases of a period side by side, so that its largest is found at once.
        order = np.argsort(fleet.period_of, kind="stable")
        self._begins = np.flatnonzero(np.diff(fleet.period_of[order], prepend=-1))
        self.chosen, self._open = supply_of, np.unique(supply_of)
        self._place = np.searchsorted(self._open, supply_of)
        self._units = fleet.units[:, self._open, :][:, :, order]
        self._allowed = fleet.allowed[:, self._open]
        supplies = [fleet.supplies[supply_index] for supply_index in self._open.tolist()]
        self._per_node = np.array([supply.units_per_node for supply in supplies])[:, None]
        self._reserve = np.array([supply.failures * supply.shared for supply in supplies])[:, None]
        self._price = node_price[self._open]
        self._jobs = np.arange(len(supply_of))
        self._load = np.zeros(self._units.shape[1:], dtype=np.int64)
        np.add.at(self._load, self._place, self._units[self._jobs, self._place])

    def make_best(self) -> bool:
        """Make the move that saves most; False if none saves anything."""
        cost = self._cost_of(self._load, slice(None))
        job_units = self._units[self._jobs, self._place]
        without = self._cost_of(self._load[self._place] - job_units, self._place)
        saves = cost[self._place] - without
        adds = self._cost_of(self._load + self._units, slice(None)) - cost
        adds[~self._allowed] = np.inf
        adds[self._jobs, self._place] = np.inf
        net = saves - adds.min(axis=1)
        job = int(np.argmax(net))
        if net[job] <= _WORTHWHILE:
            return False
        best_supply = int(np.argmin(adds[job]))
        self._load[self._place[job]] -= job_units[job]
        self._load[best_supply] += self._units[job, best_supply]
        self._place[job], self.chosen[job] = best_supply, self._open[best_supply]
        return True

    def _cost_of(self, load: Whole, supply_indices: slice | Whole) -> Array:
        """Cost of the nodes for some loads, (..., L), of some supplies."""
        needed = np.maximum.reduceat(
            -(-load // self._per_node[supply_indices]), self._begins, axis=-1
        )
        nodes = needed + np.where(needed > 0, self._reserve[supply_indices], 0)
        cost: Array = (nodes * self._price[supply_indices]).sum(axis=-1)
        return cost


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
