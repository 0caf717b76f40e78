"""Fewer load cases, the same plans."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headway.fleet.billing import bill_of, nodes_needed
from headway.fleet.plan_fleet import compact
from tests.fleet.fleets import a_random_fleet
from tests.fleet.test_plan_fleet import a_fleet


def test_hours_that_are_alike_are_one() -> None:
    units = a_fleet().units.copy()
    units[:, :, 8:18] = 5
    small = compact(a_fleet(units=units))
    assert small.num_periods == 2
    assert sorted(small.hours.tolist()) == [10.0, 14.0]


def test_of_one_size_for_the_day_only_cases_that_may_decide_are_left() -> None:
    units = a_fleet(2).units.copy()
    units[0, 0, 3], units[1, 0, 9] = 9, 9
    fixed = a_fleet(2, units=units, period_of=np.zeros(24, dtype=int), hours=np.array([24.0]))
    assert compact(fixed).units.shape[2] == 2


@pytest.mark.parametrize("seed", range(30))
def test_every_assignment_costs_what_it_did(seed: int) -> None:
    fleet = a_random_fleet(seed, num_cases=4)
    fleet = replace(fleet, units=np.minimum(fleet.units, 2))
    small = compact(fleet)
    assert small.hours.sum() == pytest.approx(fleet.hours.sum())
    rng = np.random.default_rng(seed)
    for _ in range(10):
        chosen = rng.integers(-1, len(fleet.supplies), size=len(fleet.jobs))
        costs = [bill_of(each, nodes_needed(each, chosen)).cost_per_day for each in (fleet, small)]
        assert costs[0] == pytest.approx(costs[1])
