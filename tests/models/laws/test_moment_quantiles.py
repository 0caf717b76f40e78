"""Quantiles from moments: what each match makes of a uniform wait, and bounds that must hold."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headway.models.arrays import Array
from headway.models.laws.distributions import uniform_plus_lognormal_quantile
from headway.models.laws.gamma import gamma_quantile
from headway.models.laws.moment_quantiles import (
    MomentMatch,
    cantelli_quantile_bound,
    normal_quantile,
    quantile_from_moments,
    uniform_wait_moments,
    uniform_wait_quantile_bound,
)

level = st.floats(0.001, 0.999)
positive = st.floats(0.01, 100.0)


def error_of_p99(match: MomentMatch, mean: float, cv: float) -> float:
    """Of a wait uniform on 1 plus a lognormal, against the exact convolution."""
    sd, third = mean * cv, mean**3 * (3.0 * cv**4 + cv**6)
    exact = uniform_plus_lognormal_quantile(0.99, 1.0, mean, sd)
    total = uniform_wait_moments(1.0, mean, sd, third)
    matched = quantile_from_moments(0.99, total.mean, total.variance, match, total.third_central)
    return float(matched / exact - 1.0)


@pytest.mark.parametrize(
    ("mean", "cv", "errors"),
    [
        (0.2, 0.05, (0.152, 0.366, 0.293, 0.152, 2.00)),
        (0.5, 0.2, (0.067, 0.195, 0.151, 0.070, 1.52)),
        (0.8, 0.05, (0.091, 0.171, 0.142, 0.090, 1.32)),
        (0.8, 0.5, (-0.111, 0.036, -0.015, -0.003, 1.25)),
    ],
)
def test_error_of_each_match_on_a_wait_and_a_duration(
    mean: float, cv: float, errors: tuple[float, ...]
) -> None:
    found = [error_of_p99(match, mean, cv) for match in MomentMatch]
    assert found == pytest.approx(errors, abs=0.007)


def test_worked_example() -> None:
    total = uniform_wait_moments(10.0, 5.0, 1.0)
    sd = np.sqrt(total.variance)
    assert float(normal_quantile(0.99, total.mean, sd)) == pytest.approx(17.11, abs=5e-3)
    assert float(cantelli_quantile_bound(0.99, total.mean, sd)) == pytest.approx(40.4, abs=5e-2)


def test_moments_of_the_sum_by_sampling() -> None:
    random = np.random.default_rng(3)
    sample = random.uniform(0.0, 2.0, 400_000) + random.gamma(4.0, 0.5, 400_000)
    total = uniform_wait_moments(2.0, 2.0, 1.0, 1.0)
    assert float(total.mean) == pytest.approx(sample.mean(), abs=0.01)
    assert float(total.variance) == pytest.approx(sample.var(), rel=0.01)
    assert float(total.third_central) == pytest.approx(
        ((sample - sample.mean()) ** 3).mean(), rel=0.05
    )


@pytest.mark.parametrize(
    ("match", "quantile"),
    [
        (MomentMatch.NORMAL, lambda q: normal_quantile(q, 2.0, 0.6)),
        (MomentMatch.GAMMA, lambda q: gamma_quantile(q, 2.0, 0.3)),
        (MomentMatch.SHIFTED_GAMMA, lambda q: gamma_quantile(q, 2.0, 0.3)),
        (MomentMatch.LOGNORMAL, lambda q: uniform_plus_lognormal_quantile(q, 0.0, 2.0, 0.6)),
    ],
)
def test_a_match_is_exact_for_its_own_law(
    match: MomentMatch, quantile: Callable[[Array], Array]
) -> None:
    q = np.array([0.01, 0.5, 0.99])
    third_of_gamma = 2.0 * 8.0 * 0.3**4
    found = quantile_from_moments(q, 2.0, 0.36, match, third_of_gamma)
    assert found == pytest.approx(quantile(q), rel=1e-7)


@given(st.sampled_from(MomentMatch), level, level, positive, st.floats(0.0, 3.0))
@example(MomentMatch.SHIFTED_GAMMA, 0.25, 0.5, 1.0, 1e-116)
def test_quantiles_are_ordered_and_never_nan(
    match: MomentMatch, one: float, other: float, mean: float, cv: float
) -> None:
    q = np.sort(np.array([one, other]))
    variance = (cv * mean) ** 2
    value = quantile_from_moments(q, mean, variance, match, 2.0 * mean**3 * cv**4)
    assert np.all(np.isfinite(value))
    assert value[0] <= value[1] + 1e-9 * abs(float(value[1]))
    assert np.all(value <= cantelli_quantile_bound(q, mean, cv * mean) + 1e-8 * mean)


@pytest.mark.parametrize("match", MomentMatch)
def test_unbounded_moments_and_constants(match: MomentMatch) -> None:
    mean, variance = np.array([np.inf, 1.0, 3.0]), np.array([np.inf, np.inf, 0.0])
    value = quantile_from_moments(0.99, mean, variance, match, 0.0)
    assert value.tolist() == [np.inf, np.inf, 3.0]


def two_point_law(q: float, mean: float, sd: float) -> tuple[Array, Array]:
    """The law that attains Cantelli's bound at q."""
    place = np.array([mean - sd * np.sqrt((1 - q) / q), mean + sd * np.sqrt(q / (1 - q))])
    return place, np.array([q, 1.0 - q])


@given(level, positive, st.floats(0.0, 50.0))
def test_two_points_attain_cantelli(q: float, mean: float, sd: float) -> None:
    place, weight = two_point_law(q, mean, sd)
    assert weight @ place == pytest.approx(mean, rel=1e-9)
    assert weight @ (place - mean) ** 2 == pytest.approx(sd**2, rel=1e-6, abs=1e-9)
    assert float(cantelli_quantile_bound(q, mean, sd)) == pytest.approx(float(place[1]))


@given(level, level, st.floats(0.0, 100.0), positive, st.floats(0.0, 50.0))
def test_the_bound_holds_for_every_law_tried(
    q: float, other: float, interval: float, mean: float, sd: float
) -> None:
    bound = float(uniform_wait_quantile_bound(q, interval, mean, sd))
    slack = 1e-8 * (mean + interval + sd)
    exact = float(uniform_plus_lognormal_quantile(q, interval, mean, sd))
    assert exact <= bound + slack
    # A law on two points, wherever they are: P(wait + D > bound) is a sum of two ramps.
    place, weight = two_point_law(other, mean, sd)
    below = (bound + slack - place) / max(interval, 1e-12)
    assert weight @ (1.0 - np.clip(below, 0.0, 1.0)) <= 1.0 - q + 1e-8


@given(level, st.floats(0.0, 100.0), positive, st.floats(0.0, 50.0))
def test_the_bound_is_the_lowest_of_those_known(
    q: float, interval: float, mean: float, sd: float
) -> None:
    bound = float(uniform_wait_quantile_bound(q, interval, mean, sd))
    slack = 1e-8 * (mean + interval + sd)
    total = uniform_wait_moments(interval, mean, sd)
    assert bound <= float(cantelli_quantile_bound(q, mean, sd)) + interval + slack
    assert bound <= float(cantelli_quantile_bound(q, total.mean, np.sqrt(total.variance))) + slack


def test_limits_of_the_bound() -> None:
    q = np.array([0.1, 0.5, 0.99])
    assert uniform_wait_quantile_bound(q, 10.0, 5.0, 0.0) == pytest.approx(5.0 + 10.0 * q)
    alone = cantelli_quantile_bound(q, 5.0, 1.0)
    assert uniform_wait_quantile_bound(q, 0.0, 5.0, 1.0) == pytest.approx(alone)
    assert uniform_wait_quantile_bound(q, 1e-9, 5.0, 1.0) == pytest.approx(alone, rel=1e-8)
    assert uniform_wait_quantile_bound(q, 1.0, np.inf, np.inf).tolist() == [np.inf] * 3


@pytest.mark.parametrize(
    ("mean", "cv", "error"),
    [(0.2, 0.05, 0.013), (0.5, 0.2, 0.318), (0.8, 0.05, 0.067), (0.8, 0.5, 0.927)],
)
def test_the_bound_is_far_nearer_than_cantelli(mean: float, cv: float, error: float) -> None:
    exact = uniform_plus_lognormal_quantile(0.99, 1.0, mean, cv * mean)
    bound = uniform_wait_quantile_bound(0.99, 1.0, mean, cv * mean)
    assert float(bound / exact - 1.0) == pytest.approx(error, abs=2e-3)


def test_everything_broadcasts() -> None:
    q, mean = np.array([[0.5], [0.99]]), np.array([1.0, 2.0, 3.0])
    for match in MomentMatch:
        assert quantile_from_moments(q, mean, 0.25, match, 0.1).shape == (2, 3)
    assert uniform_wait_quantile_bound(q, mean, 1.0, 0.5).shape == (2, 3)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="strictly"):
        normal_quantile(1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="sd non-negative"):
        cantelli_quantile_bound(0.5, 1.0, -1.0)
    with pytest.raises(ValueError, match="variance"):
        quantile_from_moments(0.5, 1.0, float("nan"), MomentMatch.NORMAL)
    with pytest.raises(ValueError, match="positive mean"):
        quantile_from_moments(0.5, -1.0, 1.0, MomentMatch.GAMMA)
    with pytest.raises(ValueError, match="third_central"):
        quantile_from_moments(0.5, 1.0, 1.0, MomentMatch.SHIFTED_GAMMA)
    with pytest.raises(ValueError, match="interval"):
        uniform_wait_quantile_bound(0.5, -1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="interval and sd"):
        uniform_wait_moments(1.0, 1.0, -1.0)
