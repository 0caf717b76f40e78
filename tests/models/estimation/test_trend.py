"""Growth is found where batches grow, and hardly ever where they do not."""

from __future__ import annotations

import numpy as np
import pytest

from headway.models.arrays import Array
from headway.models.estimation.trend import trend_of
from headway.models.estimation.warm_up import slow_start_length, slower_start_length
from tests.seeds import seeds

WARM_UP = 1.0 + 4.0 * 0.6 ** np.arange(100.0)


def noisy(level: Array, seed: int, spread_ratio: float = 0.1, lasting: float = 0.5) -> Array:
    """Durations around a level, with noise that lasts from one batch to the next."""
    random = np.random.default_rng(seed)
    noise = random.normal(size=len(level))
    for place in range(1, len(level)):
        noise[place] = lasting * noise[place - 1] + np.sqrt(1 - lasting**2) * noise[place]
    return level * np.exp(spread_ratio * noise)


def grows(durations: Array) -> bool:
    return trend_of(np.arange(float(len(durations))), durations).is_growth


def test_growth_is_found_where_it_is() -> None:
    level = np.linspace(1.0, 3.0, 100)
    assert sum(grows(noisy(level, seed)) for seed in range(100)) >= 95


@pytest.mark.parametrize("seed", seeds(10, 200))
def test_steady_batches_do_not_grow(seed: int) -> None:
    # A part of the seeds that is in the random noise may look like growth, but none of these.
    assert not grows(noisy(np.ones(100), seed, 0.15))


@pytest.mark.parametrize(
    "level",
    [
        pytest.param(np.linspace(1.0, 1.1, 100), id="by a tenth"),
        pytest.param(2.0 - np.exp(-np.arange(100.0) / 10.0), id="levels off"),
        pytest.param(1.0 + (np.arange(100) >= 20), id="a step"),
        pytest.param(WARM_UP, id="warm-up"),
        pytest.param(1.5 + np.sin(np.arange(100.0) / 8.0), id="waves"),
        pytest.param(np.linspace(3.0, 1.0, 100), id="falls"),
    ],
)
def test_what_is_no_growth(level: Array) -> None:
    for seed in range(20):
        assert not grows(noisy(level, seed, 0.02))


def test_the_line_is_that_of_the_growth() -> None:
    at_s = 10.0 * np.arange(200.0)
    trend = trend_of(at_s, noisy(np.linspace(0.7, 3.2, 200), 3, 0.05))
    assert trend.first == pytest.approx(0.7, rel=0.2)
    assert trend.last == pytest.approx(3.2, rel=0.1)
    assert trend.later_share == pytest.approx(0.5, abs=0.1)


def test_outliers_are_no_growth() -> None:
    durations = np.ones(50)
    durations[40:43] = 30.0
    assert not grows(noisy(durations, 1, 0.05))


@pytest.mark.parametrize("seed", seeds(10, 200))
def test_the_fast_half_of_growing_batches_is_not_cut(seed: int) -> None:
    growing = noisy(np.linspace(1.0, 4.0, 80), seed, 0.05)
    assert slow_start_length(growing) <= 8
    assert slower_start_length(np.log(growing / 2.0), np.zeros(80)) <= 8


@pytest.mark.parametrize("seed", seeds(10, 200))
def test_a_warm_up_before_growth_is_cut(seed: int) -> None:
    level = np.linspace(1.0, 4.0, 80)
    level[:3] *= (12.0, 6.0, 3.0)
    assert 2 <= slow_start_length(noisy(level, seed, 0.05)) <= 8


def test_a_start_that_is_faster_is_no_warm_up() -> None:
    step = noisy(np.where(np.arange(60) >= 20, 1.5, 1.0), 2, 0.05)
    assert slow_start_length(step) == 0
