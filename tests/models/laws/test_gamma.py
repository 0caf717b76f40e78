"""The gamma distribution against mpmath, closed forms and limits."""

from __future__ import annotations

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import trapezoid

from headway.models.laws.distributions import lognormal_cdf
from headway.models.laws.gamma import (
    gamma_cdf,
    gamma_partial_expectation,
    gamma_quantile,
    shifted_gamma_quantile,
)
from headway.models.laws.normal import ndtri

level = st.floats(1e-4, 1.0 - 1e-4)
positive = st.floats(0.01, 1e3)


@pytest.mark.parametrize("cv", [0.01, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("score", [-2.0, 0.0, 0.5, 3.0])
def test_against_mpmath(cv: float, score: float) -> None:
    with mpmath.workdps(40):
        shape, x = mpmath.mpf(1) / mpmath.mpf(cv) ** 2, 2 * max(1 + cv * score, 0.01)
        below = mpmath.gammainc(shape, 0, x * shape / 2, regularized=True)
        next_below = mpmath.gammainc(shape + 1, 0, x * shape / 2, regularized=True)
        partial = x * below - 2 * next_below
    assert float(gamma_cdf(float(x), 2.0, cv)) == pytest.approx(float(below), rel=1e-9)
    found = float(gamma_partial_expectation(float(x), 2.0, cv))
    assert found == pytest.approx(float(partial), rel=1e-7, abs=1e-12)


def test_exponential() -> None:
    q = np.array([0.0, 0.1, 0.99, 1.0])
    assert gamma_quantile(q, 3.0, 1.0)[:3] == pytest.approx(-3.0 * np.log1p(-q[:3]))
    assert gamma_quantile(1.0, 3.0, np.array([1.0, 1e-3])).tolist() == [np.inf, np.inf]
    assert gamma_quantile(0.0, 3.0, 1e-3) == 0.0
    assert gamma_quantile(np.array([0.0, 1.0]), 3.0, 0.0).tolist() == [3.0, 3.0]


def test_a_constant_is_a_step() -> None:
    assert gamma_cdf(np.array([-1.0, 4.999, 5.001]), 5.0, 0.0).tolist() == [0.0, 0.0, 1.0]
    assert float(gamma_quantile(0.99, 5.0, 0.0)) == 5.0
    assert float(gamma_partial_expectation(6.0, 5.0, 0.0)) == pytest.approx(1.0)


def test_partial_expectation_is_the_integral_of_the_cdf() -> None:
    grid = np.linspace(0.0, 7.0, 20_001)
    integral = trapezoid(gamma_cdf(grid, 5.0, 0.7), grid)
    assert float(gamma_partial_expectation(7.0, 5.0, 0.7)) == pytest.approx(integral, rel=1e-6)


@pytest.mark.parametrize("cv", [0.99e-4, 1.01e-4])
def test_both_sides_of_the_narrowest_gamma_agree(cv: float) -> None:
    x = 5.0 * (1.0 + cv * np.array([-2.0, 0.0, 1.0]))
    assert gamma_cdf(x, 5.0, cv) == pytest.approx(lognormal_cdf(x, 5.0, cv), abs=3e-5)


@pytest.mark.parametrize("cv", [0.0099, 0.0101])
def test_both_expansions_of_the_quantile_agree(cv: float) -> None:
    with mpmath.workdps(30):
        shape = mpmath.mpf(1) / mpmath.mpf(cv) ** 2
        for q in (1e-6, 0.5, 0.999):
            value = float(gamma_quantile(q, 1.0, cv))
            back = mpmath.gammainc(shape, 0, value * shape, regularized=True)
            assert float(back) == pytest.approx(q, rel=1e-6)


def test_the_narrowest_quantiles_keep_their_digits() -> None:
    # Scipy's inverse is a third of its probability off here.
    skewed = ndtri(1e-6) + 1e-4 * (ndtri(1e-6) ** 2 - 1.0) / 3.0
    assert float(gamma_quantile(1e-6, 1.0, 1e-4)) == pytest.approx(1.0 + 1e-4 * skewed, rel=1e-11)


@given(level, positive, st.floats(0.0, 5.0))
def test_quantile_inverts_the_cdf(q: float, mean: float, cv: float) -> None:
    value = gamma_quantile(q, mean, cv)
    assert np.isfinite(value)
    # Below the smallest number there is nothing to tell apart.
    if cv > 1e-6 and value > 1e-300:
        # A narrow law is as steep as it is narrow.
        assert float(gamma_cdf(value, mean, cv)) == pytest.approx(q, abs=1e-6 + 1e-9 / cv)


@given(level, positive, st.floats(1e-3, 3.0))
def test_a_gamma_is_the_shifted_gamma_of_its_skewness(q: float, mean: float, cv: float) -> None:
    shifted = shifted_gamma_quantile(q, mean, cv * mean, 2.0 * cv)
    assert float(shifted) == pytest.approx(float(gamma_quantile(q, mean, cv)), abs=1e-8 * mean)


@given(level, st.floats(-50.0, 50.0))
def test_reflection(q: float, skewness: float) -> None:
    there = float(shifted_gamma_quantile(q, 0.0, 1.0, skewness))
    back = -float(shifted_gamma_quantile(1.0 - q, 0.0, 1.0, -skewness))
    assert there == pytest.approx(back, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_skewness_vanishes_smoothly(sign: float) -> None:
    q = np.array([1e-6, 0.01, 0.5, 0.99, 1.0 - 1e-6])
    below, above = (
        shifted_gamma_quantile(q, 0.0, 1.0, sign * skew) for skew in (0.0199999999, 0.0200000001)
    )
    assert below == pytest.approx(above, abs=2e-9)
    assert shifted_gamma_quantile(q, 0.0, 1.0, 0.0) == pytest.approx(ndtri(q), abs=1e-15)


@pytest.mark.parametrize("skewness", [-1.5, -0.2, 0.4, 3.0])
def test_the_shifted_gamma_has_the_moments_asked_for(skewness: float) -> None:
    # Moments as integrals of the quantile over all probabilities, crowded at both ends.
    place = np.linspace(-6.0, 6.0, 4001)
    q = 1.0 / (1.0 + np.exp(-(place**3) / 6.0))
    q = q[(q > 0.0) & (q < 1.0 - 1e-15)]
    value = shifted_gamma_quantile(q, 5.0, 2.0, skewness)
    mean = trapezoid(value, q)
    moments = [trapezoid((value - mean) ** power, q) for power in (2, 3)]
    assert mean == pytest.approx(5.0, abs=1e-3)
    assert moments == pytest.approx([4.0, 8.0 * skewness], rel=2e-3)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="mean must be positive"):
        gamma_cdf(1.0, 0.0, 1.0)
    with pytest.raises(ValueError, match="cv non-negative"):
        gamma_partial_expectation(1.0, 1.0, float("nan"))
    with pytest.raises(ValueError, match="q must lie in"):
        gamma_quantile(1.5, 1.0, 1.0)
    with pytest.raises(ValueError, match="strictly"):
        shifted_gamma_quantile(1.0, 1.0, 1.0, 0.0)
    with pytest.raises(ValueError, match="finite"):
        shifted_gamma_quantile(0.5, 1.0, 1.0, float("inf"))
