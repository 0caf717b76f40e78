"""Small random fleets, and the plan that trying everything finds."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np

from headway.fleet.billing import bill_of, limits_broken, nodes_needed
from headway.fleet.nouns import Fleet, FleetOffer, Quota, Supply


def a_random_fleet(seed: int, *, num_jobs: int = 4, num_cases: int = 3) -> Fleet:
    """A fleet of a few jobs, offers and supplies, some of its limits tight."""
    rng = np.random.default_rng(seed)
    offers = tuple(
        FleetOffer(
            name=f"n{at}",
            cores=int(cores),
            price=float(np.round(cores * rng.uniform(0.8, 1.2), 3)),
            spot_price=float(np.round(cores * 0.4, 3)) if rng.random() < 0.7 else None,
            committed_price=float(np.round(cores * 0.7, 3)) if rng.random() < 0.7 else None,
        )
        for at, cores in enumerate(rng.choice([2, 4, 8], size=3, replace=False))
    )
    supplies = []
    for place in range(int(rng.integers(2, 5))):
        shared = bool(rng.random() < 0.6)
        supplies.append(
            Supply(
                pool=f"p{place}",
                zone=str(rng.choice(["-", "a", "b"])),
                offer=int(rng.integers(3)),
                shared=shared,
                units_per_node=int(rng.integers(1, 5)) if shared else 1,
                failures=int(rng.integers(0, 2)) if shared else 0,
            )
        )
    fixed = bool(rng.random() < 0.5)
    units = rng.integers(0, 7, size=(num_jobs, len(supplies), num_cases))
    allowed = rng.random((num_jobs, len(supplies))) < 0.8
    allowed[np.arange(num_jobs), rng.integers(len(supplies), size=num_jobs)] = True
    dedicated = [place for place, supply in enumerate(supplies) if not supply.shared]
    if fixed:
        units[:, dedicated, :] = units[:, dedicated, :].max(axis=2, keepdims=True)
    quotas = []
    if rng.random() < 0.6:
        weights = (rng.random(len(supplies)) < 0.6).astype(float)
        quotas.append(
            Quota(name="q", unit="nodes", weights=weights, limit=float(rng.integers(2, 15)))
        )
    return Fleet(
        jobs=tuple(f"j{at}" for at in range(num_jobs)),
        weights=np.round(rng.uniform(0.5, 2.0, num_jobs), 2),
        offers=offers,
        supplies=tuple(supplies),
        units=units,
        allowed=allowed,
        period_of=np.zeros(num_cases, int) if fixed else np.arange(num_cases),
        hours=np.array([24.0]) if fixed else np.full(num_cases, 24.0 / num_cases),
        quotas=tuple(quotas),
        spot_ratio=float(rng.choice([0.0, 0.3, 1.0])),
        commitments=bool(rng.random() < 0.5),
        budget_per_day=float(rng.uniform(200, 1500)) if rng.random() < 0.4 else None,
    )


def a_nightly_fleet(seed: int) -> Fleet:
    """A fleet of small jobs that run for an hour or two, in pools of which nodes may fail.

    What is held in reserve for them costs many times what they need themselves.
    """
    rng = np.random.default_rng(seed)
    fleet = a_random_fleet(seed, num_jobs=int(rng.integers(1, 5)), num_cases=24)
    supplies = tuple(
        replace(
            supply,
            shared=True,
            units_per_node=int(rng.integers(8, 65)),
            failures=int(rng.integers(1, 9)),
        )
        for supply in fleet.supplies
    )
    num_jobs, num_supplies, num_cases = fleet.units.shape
    start = rng.integers(num_cases, size=(num_jobs, 1))
    busy = (np.arange(num_cases) - start) % num_cases < rng.integers(1, 3, size=(num_jobs, 1))
    units = rng.integers(1, 4, size=(num_jobs, num_supplies, 1)) * busy[:, None, :]
    return replace(
        fleet,
        supplies=supplies,
        units=units,
        quotas=tuple(replace(quota, limit=float(rng.integers(2, 16))) for quota in fleet.quotas),
        budget_per_day=float(rng.uniform(50, 1500)) if rng.random() < 0.4 else None,
    )


def cheapest_by_trying(fleet: Fleet) -> float | None:
    """The cost of the cheapest plan that serves every job; None where there is none."""
    costs = []
    for chosen in _choices(fleet, with_none=False):
        nodes = nodes_needed(fleet, chosen)
        cost = bill_of(fleet, nodes).cost_per_day
        if not limits_broken(fleet, nodes, cost):
            costs.append(cost)
    return min(costs, default=None)


@cache
def cheapest(of: Callable[[int], Fleet], seed: int) -> float | None:
    """The same for the fleet of a seed, which several tests ask for."""
    return cheapest_by_trying(of(seed))


def most_served_by_trying(fleet: Fleet) -> tuple[float, float]:
    """The most weight that can be served, and the least that it costs."""
    found = []
    for chosen in _choices(fleet, with_none=True):
        nodes = nodes_needed(fleet, chosen)
        cost = bill_of(fleet, nodes).cost_per_day
        if not limits_broken(fleet, nodes, cost):
            found.append((-round(float(fleet.weights[chosen >= 0].sum()), 9), cost))
    weight, cost = min(found)
    return -weight, cost


def _choices(fleet: Fleet, *, with_none: bool) -> list[np.ndarray]:
    each = [
        [*np.flatnonzero(fleet.allowed[job]).tolist(), *([-1] if with_none else [])]
        for job in range(len(fleet.jobs))
    ]
    return [np.array(choice, dtype=np.int64) for choice in itertools.product(*each)]
