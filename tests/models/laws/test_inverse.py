"""The last integer at which an increasing function is last_met, wherever its search begins."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headway.models.laws.inverse import last_nonpositive, last_nonpositive_near


@pytest.mark.parametrize("seed", range(40))
def test_a_search_from_a_guess_ends_where_every_integer_says(seed: int) -> None:
    random = np.random.default_rng(seed)
    steepness = float(random.choice([1e-3, 0.3, 30.0]))
    values = np.cumsum(random.exponential(steepness, 60)) - random.uniform(-1.0, 61.0) * steepness
    values[random.integers(40, 80) :] = math.inf
    last_met = int((values <= 0.0).sum()) - 1
    asked: list[int] = []

    def excess(number: int) -> float:
        asked.append(number)
        return float(values[number])

    for guess in (-5, last_met - 3, last_met, last_met + 1, 59, 200):
        asked.clear()
        assert last_nonpositive_near(excess, -1, 60, guess=guess, slope=steepness) == last_met
        assert len(asked) == len(set(asked)) <= 20
    if 0 <= last_met < 59:
        assert last_nonpositive(excess, 0, 59, values[0], values[59]) == last_met
        near = last_nonpositive_near(
            excess, 0, 60, guess=last_met, slope=steepness, at_low=values[0]
        )
        assert near == last_met
    # A good guess and a good slope need little more than the two ends.
    asked.clear()
    last_nonpositive_near(excess, -1, 60, guess=last_met + 1, slope=steepness)
    assert len(asked) <= 8
