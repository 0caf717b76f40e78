"""The prices that a bound is made of, and the quick ways to a plan that it proves good enough."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from headway.fleet import plan_fleet as module
from headway.fleet import relaxation
from headway.fleet.billing import bill_of, limits_broken, nodes_needed
from headway.fleet.moves import with_better_moves
from headway.fleet.nouns import Fleet, FleetOffer, FleetPlan, Supply
from headway.fleet.plan_fleet import plan_fleet
from headway.fleet.problem import Columns, Goal, Solved, columns_where, solve
from headway.fleet.reduced_cost import gains, highest_node_prices, reduced_costs
from tests.fleet.fleets import a_nightly_fleet, a_random_fleet, cheapest
from tests.fleet.test_plan_fleet import a_fleet


@pytest.mark.parametrize("seed", range(30))
def test_no_nodes_are_paid_for_with_less_than_the_highest_prices(seed: int) -> None:
    fleet = a_random_fleet(seed)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        pattern = rng.exponential(size=fleet.num_periods) * (rng.random(fleet.num_periods) < 0.8)
        price = highest_node_prices(fleet, pattern)
        nodes = rng.integers(0, 40, size=(len(fleet.supplies), fleet.num_periods))
        bill = bill_of(fleet, nodes)
        assert np.all((price * bill.nodes).sum(axis=1) <= bill.cost_by_offer * (1 + 1e-9) + 1e-9)


@pytest.mark.parametrize(
    ("purchasing", "expected"),
    [
        ((0.0, False), 1.0),
        ((0.5, False), 0.7),
        ((0.0, True), 0.6),
        # Half of what is there all day is spot for 0.4; what is committed covers the other half.
        ((0.5, True), 0.5),
        ((1.0, True), 0.4),
    ],
)
def test_nodes_that_are_there_all_day_cost_what_they_are_paid_with(
    purchasing: tuple[float, bool], expected: float
) -> None:
    spot_ratio, commitments = purchasing
    fleet = a_fleet(spot_ratio=spot_ratio, commitments=commitments)
    price = highest_node_prices(fleet, np.ones(24))
    assert price[0] == pytest.approx(np.full(24, expected))


@pytest.mark.parametrize("seed", range(40))
def test_reduced_costs_give_a_bound_from_any_columns(seed: int) -> None:
    for a_small_fleet in (a_random_fleet, a_nightly_fleet):
        fleet, best = a_small_fleet(seed), cheapest(a_small_fleet, seed)
        rng = np.random.default_rng(seed)
        chosen = np.zeros_like(fleet.allowed)
        for job, row in enumerate(fleet.allowed):
            chosen[job, rng.choice(np.flatnonzero(row))] = True
        solved = solve(fleet, columns_where(chosen), Goal(), integer=False)
        if best is None or solved is None:
            continue
        assert solved.value + gains(reduced_costs(fleet, solved, chosen)[0]).sum() <= best * (
            1 + 1e-6
        )


@pytest.mark.parametrize("seed", range(30))
def test_moves_never_make_a_plan_more_expensive(seed: int) -> None:
    fleet = a_random_fleet(seed, num_jobs=8)
    rng = np.random.default_rng(seed)
    chosen = np.array([rng.choice(np.flatnonzero(row)) for row in fleet.allowed])
    price = np.array([fleet.offers[supply.offer].price for supply in fleet.supplies])
    moved = with_better_moves(fleet, chosen, price[:, None] * fleet.hours)
    assert fleet.allowed[np.arange(len(moved)), moved].all()
    if not np.array_equal(moved, chosen):
        before, after = (nodes_needed(fleet, each) for each in (chosen, moved))
        cost = bill_of(fleet, after).cost_per_day
        assert not limits_broken(fleet, after, cost)
        broken = limits_broken(fleet, before, bill_of(fleet, before).cost_per_day)
        assert broken or cost < bill_of(fleet, before).cost_per_day


def test_moves_fill_nodes() -> None:
    """Three jobs of three and one of one: two nodes of five, where one of them was alone."""
    supplies = (a_fleet().supplies[0], replace(a_fleet().supplies[0], units_per_node=6))
    offers = (a_fleet().offers[0], FleetOffer(name="m", cores=24, price=1.4))
    units = np.full((3, 2, 24), 3)
    fleet = a_fleet(supplies=(supplies[0], replace(supplies[1], offer=1)), offers=offers,
                    units=units, allowed=np.ones((3, 2), dtype=bool))  # fmt: skip
    price = np.array([[1.0], [1.4]]) * np.ones(24)
    moved = with_better_moves(fleet, np.array([0, 0, 1]), price)
    # Two of the jobs fill a node of six; the third alone has one of four.
    assert sorted(moved.tolist()) == [0, 1, 1]


def a_large_fleet(seed: int, **purchasing: Any) -> Fleet:
    """Two hundred jobs that follow the day and forty offers: more pairs than a small fleet has."""
    rng = np.random.default_rng(seed)
    num_jobs, num_offers = 200, 40
    cores = rng.choice([4, 8, 16], size=num_offers)
    price = cores * rng.uniform(0.8, 1.2, num_offers)
    offers = tuple(
        FleetOffer(
            name=f"n{at}",
            cores=int(cores[at]),
            price=float(price[at]),
            spot_price=float(0.35 * price[at]),
            committed_price=float(0.63 * price[at]),
        )
        for at in range(num_offers)
    )
    curve = 0.6 + 0.4 * np.cos((np.arange(24) - rng.uniform(0, 24, (num_jobs, 1))) / 12 * np.pi)
    peak = rng.lognormal(2.0, 1.0, (num_jobs, 1))
    speed = rng.choice([0.8, 1.0, 1.2], size=num_offers)
    units = np.ceil(peak[:, :, None] * curve[:, None, :] / speed[None, :, None]).astype(np.int64)
    allowed = rng.random((num_jobs, num_offers)) < 0.7
    allowed[:, 0] = True
    return Fleet(
        jobs=tuple(f"j{at}" for at in range(num_jobs)),
        weights=np.ones(num_jobs),
        offers=offers,
        supplies=tuple(
            Supply(pool="p", zone="-", offer=at, shared=True, units_per_node=int(cores[at]) // 4)
            for at in range(num_offers)
        ),
        units=units,
        allowed=allowed,
        period_of=np.arange(24),
        hours=np.ones(24),
        **purchasing,
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_with_commitments_the_relaxation_takes_few_rounds(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes that are not used once looked free at some hours, and columns were added in vain."""
    rounds: list[bool] = []

    def counted(*args: object, **options: object) -> object:
        rounds.append(bool(options["integer"]))
        return solve(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "solve", counted)
    monkeypatch.setattr(relaxation, "solve", counted)
    fleet = a_large_fleet(seed, spot_ratio=0.3, commitments=True)
    plan = plan_fleet(fleet, gap_ratio=0.02)
    assert isinstance(plan, FleetPlan)
    assert plan.gap_ratio <= 0.02
    assert len(rounds) <= 8
    assert not any(rounds)


def test_a_relaxation_that_is_not_solved_in_time_still_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An end of rounds is no error: every round has a bound that holds."""
    fleet = a_large_fleet(1, spot_ratio=0.3, commitments=True)
    best = plan_fleet(fleet, gap_ratio=0.02)
    monkeypatch.setattr(relaxation, "_MOST_ROUNDS", 1)
    first = plan_fleet(fleet, gap_ratio=0.02)
    assert isinstance(best, FleetPlan)
    assert isinstance(first, FleetPlan)
    assert first.bound_per_day <= best.bill.cost_per_day
    assert best.bound_per_day <= first.bill.cost_per_day


def test_where_rounding_breaks_a_quota_the_columns_of_the_relaxation_are_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Whole numbers among all pairs of a job and an offer take a minute in a large fleet.
    fleet = a_large_fleet(1)
    asked: list[int] = []

    def solve_counted(
        fleet: Fleet, columns: Columns, goal: Goal, *, integer: bool, **limits: Any
    ) -> Solved | None:
        if integer:
            asked.append(len(columns[0]))
        return solve(fleet, columns, goal, integer=integer, **limits)

    monkeypatch.setattr(module, "solve", solve_counted)
    monkeypatch.setattr(module, "_rounded", lambda fleet, relaxed: None)
    plan = plan_fleet(fleet, gap_ratio=0.01)
    assert isinstance(plan, FleetPlan)
    assert plan.gap_ratio <= 0.01
    assert asked
    assert max(asked) < fleet.allowed.sum() / 2
