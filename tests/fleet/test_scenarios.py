"""Ranges as scenarios: seeded, and what each rule promises."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headway.fleet.nouns import FleetPlan
from headway.fleet.plan_fleet import plan_fleet
from headway.fleet.scenarios import (
    carries,
    drawn_ratios,
    least_heavy,
    merged,
    plan_for_chance,
    plan_of_least_regret,
)
from tests.fleet.test_plan_fleet import a_fleet

SCALES = (1, 2, 2, 3, 9)


def scenarios() -> list:  # type: ignore[type-arg]
    return [a_fleet(units=a_fleet().units * scale) for scale in SCALES]


def test_the_same_seed_draws_the_same() -> None:
    spreads = [(0.5, 3.0), (1.0, 1.0)]
    first, second = (drawn_ratios(spreads, 400, seed=3) for _ in range(2))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, drawn_ratios(spreads, 400, seed=4))
    assert np.all(first[:, 1] == 1.0)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nine_draws_of_ten_lie_in_the_range(seed: int) -> None:
    drawn = drawn_ratios([(0.5, 3.0)], 4000, seed=seed)[:, 0]
    # Four standard errors of a share of 4000.
    assert np.mean((drawn >= 0.5) & (drawn <= 3.0)) == pytest.approx(0.9, abs=0.02)
    assert np.median(drawn) == pytest.approx(1.0, abs=0.05)


def test_a_chance_constraint_leaves_out_the_heaviest() -> None:
    fleets = scenarios()
    assert len(least_heavy(fleets, 0.8)) == 4
    found = plan_for_chance(fleets, 0.8, plan_fleet)
    assert isinstance(found.plan, FleetPlan)
    assert found.num_carried == 4
    assert carries(fleets[3], found.plan)
    assert not carries(fleets[4], found.plan)


def test_a_plan_for_all_carries_all() -> None:
    plan = plan_fleet(merged(scenarios()))
    assert isinstance(plan, FleetPlan)
    assert all(carries(fleet, plan) for fleet in scenarios())


def test_least_regret_is_that_of_trying_every_plan() -> None:
    fleets = scenarios()
    found = plan_of_least_regret(fleets, 5.0, plan_fleet)
    assert isinstance(found.plan, FleetPlan)
    # Dear shortages ask for the largest plan, cheap ones for a smaller.
    assert found.num_short == 0
    assert found.worst_per_day == pytest.approx((21 - 3) * 24)
    frugal = plan_of_least_regret(fleets, 1.01, plan_fleet)
    assert isinstance(frugal.plan, FleetPlan)
    assert frugal.plan.bill.cost_per_day < found.plan.bill.cost_per_day
    assert frugal.worst_per_day < found.worst_per_day


def test_a_supply_that_one_scenario_rules_out_is_not_used() -> None:
    first = a_fleet()
    second = replace(first, allowed=np.zeros_like(first.allowed))
    assert not merged([first, second]).allowed.any()
