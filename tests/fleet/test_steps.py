"""Executors by a frontier: the fewest that carry a rate."""

from __future__ import annotations

import pytest

from headway.fleet.steps import Steps

STEPS = Steps(points=((1, 800.0), (2, 1500.0), (4, 2900.0)))


@pytest.mark.parametrize(
    ("rate_per_s", "executors"), [(0.0, 1), (800.0, 1), (801.0, 2), (1600.0, 4), (2901.0, None)]
)
def test_the_fewest_that_carry_a_rate(rate_per_s: float, executors: int | None) -> None:
    assert STEPS.executors_for(rate_per_s) == executors
