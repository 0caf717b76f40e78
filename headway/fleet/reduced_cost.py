"""Cost of using a column beyond the linear relaxation, at prices that the relaxation allows.

Prices of units may be any at which no node can be bought for less. The resulting bound holds for
all of them, and is better the less any column costs below them. Prices of the relaxation are used
for the supplies that it uses. For the others it hardly determines prices, since any up to the
highest is equally good; they are derived from the costs of the used ones in each period.
"""

from __future__ import annotations

import numpy as np

from headway.fleet.nouns import Array, Fleet, Mask
from headway.fleet.problem import Solved, busy_periods

_LEAST = 1e-12
_HALVINGS = 60


def gains(least_below: Array) -> Array:
    """Maximum decrease of the value by each job with its best column: (J,), <= 0."""
    return np.asarray(np.minimum(least_below.min(axis=1), 0.0))


def reduced_costs(fleet: Fleet, solved: Solved, column_mask: Mask) -> tuple[Array, Array]:
    """What using a column costs beyond the relaxation over the chosen columns of ``column_mask``.

    For every column, (J, S): at the prices that make columns look least cheap, for a bound, and at
    the relaxation's own, at which no chosen column has a negative cost. It is ``inf`` where a job
    cannot run. The value of the relaxation plus the gains of all jobs is a lower bound for every
    plan.
    """
    unit_price = _prices_of_relaxation(fleet, solved)
    # Existing columns have no negative cost, including their part of the reserve.
    reduced = _beyond(fleet, solved, unit_price)
    reduced = np.where(column_mask, np.maximum(reduced, 0.0), reduced)
    reduced = _with_reserve(fleet, solved, column_mask, reduced, unit_price)
    unused = _supplies_of_unused_offers(fleet, solved)
    if not unused.any():
        return reduced, reduced
    least_below = reduced.copy()
    unit_price = _prices_like_those_used(fleet, solved)
    like_used = _beyond(fleet, solved, unit_price)
    like_used = _with_reserve(fleet, solved, np.zeros_like(column_mask), like_used, unit_price)
    # Both prices of an offer are allowed; the one that makes its columns look less cheap is used.
    for offer in np.unique(fleet.offer_of[unused]).tolist():
        supply_indices = np.flatnonzero(fleet.offer_of == offer)
        below = [
            np.minimum(column_costs[:, supply_indices], 0.0).sum()
            for column_costs in (reduced, like_used)
        ]
        if below[1] > below[0]:
            least_below[:, supply_indices] = like_used[:, supply_indices]
    return least_below, reduced


def _beyond(fleet: Fleet, solved: Solved, unit_price: Array) -> Array:
    priced = np.einsum("jsl,sl->js", fleet.units, unit_price)
    return np.where(fleet.allowed, priced - solved.serve_duals[:, None], np.inf)


def _prices_of_relaxation(fleet: Fleet, solved: Solved) -> Array:
    """The price of a unit in each load case, (S, L); for unused nodes, the highest possible."""
    room = np.maximum(solved.node_duals, 0.0) / fleet.units_per_node[:, None]
    in_cases = room[:, fleet.period_of] * _share(fleet, solved)
    return np.asarray(np.maximum(solved.load_duals, 0.0) + in_cases)


def _share(fleet: Fleet, solved: Solved) -> Array:
    """The share of each load case in the cost of a node of its period."""
    usual = np.maximum(solved.load_duals, 0.0).sum(axis=0) + _LEAST
    total = np.bincount(fleet.period_of, weights=usual, minlength=fleet.num_periods)
    return np.asarray(usual / total[fleet.period_of])


def _supplies_of_unused_offers(fleet: Fleet, solved: Solved) -> Mask:
    used = np.zeros(len(fleet.offers), dtype=bool)
    used[fleet.offer_of[solved.nodes.sum(axis=1) > _LEAST]] = True
    return np.asarray(~used[fleet.offer_of])


def _prices_like_those_used(fleet: Fleet, solved: Solved) -> Array:
    """Highest possible prices of units with the same pattern over periods as for used nodes.

    Quotas add their prices in each period.
    """
    per_node, offers = fleet.units_per_node, fleet.offer_of
    of_quotas = np.zeros_like(solved.nodes)
    for quota, dual in zip(fleet.quotas, solved.quota_duals, strict=True):
        of_quotas += quota.weights[:, None] * np.maximum(dual, 0.0)
    bought = node_prices(fleet, solved) - of_quotas
    price = np.array([offer.price for offer in fleet.offers])
    pattern = solved.nodes.sum(axis=1) @ (
        np.maximum(bought, 0.0) / np.maximum(price[offers], _LEAST)[:, None]
    )
    node_price = solved.cost_weight * highest_node_prices(fleet, pattern)[offers] + of_quotas
    unit_price = (node_price / per_node[:, None])[:, fleet.period_of]
    return np.asarray(unit_price * _share(fleet, solved))


def node_prices(fleet: Fleet, solved: Solved) -> Array:
    """Cost of a node of each supply in each period by the relaxation, (S, P), including quotas; for
    unused nodes, the highest possible.
    """
    by_period = np.zeros_like(solved.node_duals)
    np.add.at(by_period.T, fleet.period_of, np.maximum(solved.load_duals, 0.0).T)
    prices: Array = fleet.units_per_node[:, None] * by_period + np.maximum(solved.node_duals, 0.0)
    return prices


def highest_node_prices(fleet: Fleet, pattern: Array) -> Array:
    """The highest prices of a node of each offer, in proportion to a pattern over the periods.

    The pattern, (P,), is the cost of nodes in each period on any scale. For any numbers of nodes by
    period, the sum of these prices, (O, P), is at most the cost of buying them.

    Without commitments, a node of a period costs the price of its hours, with as much spot as
    allowed. A committed node is available in all periods, so the sum of its savings is at most its
    price, and the scale is found by bisection.
    """
    hours = fleet.hours
    price = np.array([offer.price for offer in fleet.offers])
    spot_price = np.array(
        [offer.price if offer.spot_price is None else offer.spot_price for offer in fleet.offers]
    )
    has_spot = (spot_price < price) & (fleet.spot_ratio > 0)
    spot_price = np.where(has_spot, spot_price, price)
    ratio = np.where(has_spot, fleet.spot_ratio, 0.0)[:, None]
    by_spot = spot_price[:, None] * hours
    dearest: Array = ratio * by_spot + (1.0 - ratio) * price[:, None] * hours
    committed = np.array(
        [
            np.inf if offer.committed_price is None else offer.committed_price
            for offer in fleet.offers
        ]
    )
    if not fleet.commitments or not np.any(committed < price):
        return dearest
    pattern = pattern if pattern.max() > 0 else hours
    all_day = np.where(committed < price, committed, np.inf) * hours.sum()
    busy = pattern > _LEAST * pattern.max()
    max_scale = (dearest[:, busy] / pattern[busy]).min(axis=1)
    low, high = np.zeros_like(max_scale), max_scale.copy()
    for halving in range(_HALVINGS):
        # The first try is the highest possible value.
        scale = high if halving == 0 else 0.5 * (low + high)
        node_price = scale[:, None] * pattern
        beyond_spot = np.maximum(
            (node_price - ratio * by_spot) / np.maximum(1.0 - ratio, _LEAST), 0.0
        )
        saved = np.where(node_price <= by_spot, node_price, beyond_spot)
        paid = saved.sum(axis=1) <= all_day
        low, high = np.where(paid, scale, low), np.where(paid, high, scale)
    prices: Array = np.minimum(low[:, None] * pattern, dearest)
    return prices


def _with_reserve(
    fleet: Fleet, solved: Solved, column_mask: Mask, reduced: Array, unit_price: Array
) -> Array:
    """Reduced costs, including what new columns would pay for the reserve of a supply.

    Reserve nodes are paid by the columns with work in a period. What existing columns do not pay
    may be charged to the others in any shares, first to those that look cheap.
    """
    column_costs = reduced.copy()
    per_node = fleet.units_per_node
    for supply_index, supply in enumerate(fleet.supplies):
        if not (supply.shared and supply.failures):
            continue
        price = np.zeros(fleet.num_periods)
        in_cases = supply.failures * per_node[supply_index] * unit_price[supply_index]
        np.add.at(price, fleet.period_of, in_cases)
        paid = (
            _paid_by_period(fleet, solved, supply_index, price)
            if column_mask[:, supply_index].any()
            else 0.0
        )
        unpaid = np.maximum(price - paid, 0.0)
        new_jobs = np.flatnonzero(
            (reduced[:, supply_index] < 0.0)
            & ~column_mask[:, supply_index]
            & fleet.allowed[:, supply_index]
        )
        if not len(new_jobs) or not unpaid.any():
            continue
        cheap = -reduced[new_jobs, supply_index]
        parts = busy_periods(fleet, new_jobs, supply_index) * unpaid
        charge = parts * (cheap / np.maximum(parts.sum(axis=1), _LEAST))[:, None]
        share = np.minimum(unpaid / np.maximum(charge.sum(axis=0), _LEAST), 1.0)
        column_costs[new_jobs, supply_index] += charge @ share
    return column_costs


def _paid_by_period(fleet: Fleet, solved: Solved, supply_index: int, price: Array) -> Array:
    """What existing columns pay for the reserve of a supply in each period."""
    paid = np.zeros(fleet.num_periods)
    group_of = solved.group_of[supply_index]
    for group in np.unique(group_of[group_of >= 0]).tolist():
        periods = group_of == group
        pays = solved.group_duals[group]
        paid[periods] = pays * price[periods] / max(price[periods].sum(), _LEAST)
    return paid
