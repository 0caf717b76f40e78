"""From the places of jobs to nodes, and from nodes to the cost of a day; exact, in integers."""

from __future__ import annotations

import numpy as np

from headway.fleet.nouns import Array, Bill, Fleet, Whole

_TOLERANCE = 1e-6


def nodes_needed(fleet: Fleet, supply_of: Whole) -> Whole:
    """The fewest nodes of each supply and period that can run its jobs: (S, P).

    A supply of -1 means that the job is not served. Reserve nodes for failures are included only in
    periods in which a job of the supply has work. In dedicated supplies, they are part of a job's
    units in the same way.
    """
    nodes = np.zeros((len(fleet.supplies), fleet.num_periods), dtype=np.int64)
    for supply_index in np.unique(supply_of[supply_of >= 0]).tolist():
        members = np.flatnonzero(supply_of == supply_index)
        nodes[supply_index] = nodes_of_supply(fleet, supply_index, members)
    return nodes


def nodes_of_supply(fleet: Fleet, supply_index: int, members: Whole) -> Whole:
    """The fewest nodes of one supply that can run some jobs, by their indices: (P,)."""
    supply, nodes = fleet.supplies[supply_index], np.zeros(fleet.num_periods, dtype=np.int64)
    load = fleet.units[members, supply_index, :].sum(axis=0)
    np.maximum.at(nodes, fleet.period_of, -(-load // supply.units_per_node))
    return nodes + np.where(nodes > 0, supply.failures, 0) if supply.shared else nodes


def bill_of(fleet: Fleet, nodes: Whole, like: Bill | None = None) -> Bill:
    """The cheapest purchase of the nodes of each supply and period.

    Offers are optimised one by one: as much spot as allowed if it is cheaper, and as many committed
    nodes until one more would cost more than it saves. Those with as many nodes as in the bill
    ``like``, of a fleet with the same offers, are paid for as there.
    """
    by_offer = np.zeros((len(fleet.offers), fleet.num_periods), dtype=np.int64)
    np.add.at(by_offer, fleet.offer_of, nodes)
    if like is None:
        spot = np.zeros_like(by_offer)
        committed = np.zeros(len(fleet.offers), dtype=np.int64)
        cost = np.zeros(len(fleet.offers))
        is_known = np.zeros(len(fleet.offers), dtype=bool)
    else:
        spot, committed, cost = like.spot.copy(), like.committed.copy(), like.cost_by_offer.copy()
        is_known = (by_offer == like.nodes).all(axis=1)
    for offer_index in np.flatnonzero(~is_known).tolist():
        committed[offer_index], spot[offer_index], cost[offer_index] = _cheapest(
            fleet, offer_index, by_offer[offer_index]
        )
    return Bill(
        nodes=by_offer,
        spot=spot,
        committed=committed,
        cost_per_day=float(cost.sum()),
        cost_by_offer=cost,
    )


def _cheapest(fleet: Fleet, offer_index: int, nodes: Whole) -> tuple[int, Whole, float]:
    """Committed nodes, spot nodes in each period, and the cost of a day."""
    options = [0]
    offer = fleet.offers[offer_index]
    if fleet.commitments and offer.committed_price is not None:
        # The cost is convex in the committed nodes, with kinks only where they cover a period.
        max_spot = np.floor(fleet.spot_ratio * nodes + _TOLERANCE).astype(np.int64)
        options = sorted({0, *nodes.tolist(), *(nodes - max_spot).tolist()})
    purchases = [(*_paid(fleet, offer_index, nodes, option), option) for option in options]
    cost, spot, option = min(purchases, key=lambda purchase: (purchase[0], purchase[2]))
    return option, spot, cost


def _paid(fleet: Fleet, offer_index: int, nodes: Whole, committed: int) -> tuple[float, Whole]:
    """The cost of a day with a number of committed nodes, and the spot nodes in each period."""
    offer, hours = fleet.offers[offer_index], fleet.hours
    spot = np.zeros_like(nodes)
    uncommitted = np.maximum(nodes - committed, 0)
    spot_price = offer.spot_price
    if fleet.spot_ratio > 0 and spot_price is not None and spot_price < offer.price:
        max_spot = np.floor(fleet.spot_ratio * nodes + _TOLERANCE).astype(np.int64)
        spot = np.minimum(max_spot, uncommitted)
    hourly = (uncommitted - spot) * offer.price + spot * (spot_price or 0.0)
    paid_always = committed * (offer.committed_price or 0.0) * hours.sum()
    return float(hourly @ hours + paid_always), spot


def limits_broken(fleet: Fleet, nodes: Whole, cost_per_day: float) -> list[str]:
    """The limits that a plan exceeds, as text; none for a correct plan. The cost is with fees."""
    broken = [
        f"{quota.label}: {peak_use:g} {quota.unit} of {quota.limit:g}"
        for quota in fleet.quotas
        if (peak_use := float((quota.weights @ nodes).max())) > quota.limit + _TOLERANCE
    ]
    budget = fleet.budget_per_day
    if budget is not None and cost_per_day > budget * (1 + _TOLERANCE) + _TOLERANCE:
        broken.append(f"budget: {cost_per_day:.2f} of {budget:.2f} a day")
    return broken


def cost_by_job(fleet: Fleet, supply_of: Whole, nodes: Whole, bill: Bill) -> Array:
    """Cost of each job per day: by its share of the units of its supply, period by period.

    All nodes of one kind have their average cost, regardless of how each is paid for. Reserve and
    idle nodes of a pool are shared like the rest. The costs add up to the bill.
    """
    offers, hours = fleet.offer_of, fleet.hours
    node_hours = bill.nodes @ hours
    per_node_hour = np.divide(
        bill.cost_by_offer, node_hours, out=np.zeros_like(bill.cost_by_offer), where=node_hours > 0
    )
    job_costs = np.zeros(len(fleet.jobs))
    for supply_index in np.unique(supply_of[supply_of >= 0]).tolist():
        members = np.flatnonzero(supply_of == supply_index)
        cost = float(nodes[supply_index] @ hours) * per_node_hour[offers[supply_index]]
        peaks = np.zeros((len(members), fleet.num_periods))
        for row, job in enumerate(members):
            np.maximum.at(peaks[row], fleet.period_of, fleet.units[job, supply_index, :])
        share = peaks @ hours
        total = float(share.sum())
        job_costs[members] = cost * (share / total if total > 0 else 1.0 / len(members))
    return job_costs
