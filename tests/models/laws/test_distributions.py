"""Distributions against their definitions: integration, sampling, limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import trapezoid

from headway.models.laws.distributions import (
    bisect_increasing,
    gauss_legendre,
    lognormal_cdf,
    lognormal_partial_expectation,
    lognormal_quantile,
    uniform_plus_lognormal_cdf,
)
from tests.oracles.closed_forms import uniform_plus_lognormal_quantile

positive = st.floats(0.01, 1e3)
spread = st.floats(0.0, 3.0)
level = st.floats(0.001, 0.999)


def test_lognormal_matches_samples() -> None:
    sigma2 = float(np.log1p(0.5**2))
    normal = np.random.default_rng(5).standard_normal(400_000)
    sample = 5.0 * np.exp(np.sqrt(sigma2) * normal - sigma2 / 2.0)
    assert float(lognormal_cdf(6.0, 5.0, 0.5)) == pytest.approx((sample <= 6.0).mean(), abs=0.004)
    partial = np.maximum(6.0 - sample, 0.0).mean()
    assert float(lognormal_partial_expectation(6.0, 5.0, 0.5)) == pytest.approx(partial, rel=0.01)


def test_partial_expectation_is_the_integral_of_the_cdf() -> None:
    grid = np.linspace(0.0, 7.0, 20_001)
    integral = trapezoid(lognormal_cdf(grid, 5.0, 0.7), grid)
    assert float(lognormal_partial_expectation(7.0, 5.0, 0.7)) == pytest.approx(integral, rel=1e-6)


@given(level, positive, spread)
def test_quantile_inverts_the_cdf(q: float, mean: float, cv: float) -> None:
    value = lognormal_quantile(q, mean, cv)
    if cv > 1e-6:
        assert float(lognormal_cdf(value, mean, cv)) == pytest.approx(q, abs=1e-6)
    else:
        assert float(value) == pytest.approx(mean, rel=1e-4)


def test_a_constant_is_a_step() -> None:
    cdf = lognormal_cdf(np.array([-1.0, 0.0, 4.999, 5.001]), 5.0, 0.0)
    assert cdf.tolist() == [0.0, 0.0, 0.0, 1.0]
    assert float(lognormal_quantile(1.0, 5.0, 0.0)) == 5.0


@pytest.mark.parametrize(("q", "expected"), [(0.5, 10.0), (0.95, 14.7902), (0.99, 16.0303)])
def test_golden_uniform_plus_lognormal(q: float, expected: float) -> None:
    assert float(uniform_plus_lognormal_quantile(q, 10.0, 5.0, 1.0)) == pytest.approx(
        expected, rel=1e-4
    )


def test_uniform_plus_constant_is_uniform() -> None:
    quantiles = uniform_plus_lognormal_quantile(np.array([0.25, 0.5, 0.99]), 10.0, 5.0, 0.0)
    assert quantiles == pytest.approx([7.5, 10.0, 14.9])


def test_without_a_wait_the_duration_remains() -> None:
    x = np.array([3.0, 5.0, 8.0])
    assert uniform_plus_lognormal_cdf(x, 0.0, 5.0, 1.0) == pytest.approx(lognormal_cdf(x, 5.0, 0.2))
    tiny = uniform_plus_lognormal_cdf(x, 1e-6, 5.0, 1.0)
    assert tiny == pytest.approx(lognormal_cdf(x, 5.0, 0.2), abs=1e-6)


@given(level, level, st.floats(0.0, 100.0), positive, spread)
def test_quantiles_are_ordered_and_invert(
    one: float, other: float, interval: float, mean: float, cv: float
) -> None:
    q = np.sort(np.array([one, other]))
    value = uniform_plus_lognormal_quantile(q, interval, mean, cv * mean)
    assert np.all(np.isfinite(value))
    assert value[0] <= value[1] * (1.0 + 1e-9)
    if cv > 1e-3:
        assert uniform_plus_lognormal_cdf(value, interval, mean, cv * mean) == pytest.approx(
            q, abs=1e-5
        )


def test_bisection_solves_each_element() -> None:
    root = bisect_increasing(np.exp, np.array([1.0, 5.0]), np.full(2, -1.0), np.full(2, 9.0))
    assert root == pytest.approx([0.0, np.log(5.0)], abs=1e-8)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="strictly between"):
        uniform_plus_lognormal_quantile(1.0, 1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="interval_s"):
        uniform_plus_lognormal_cdf(1.0, -1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="q must"):
        lognormal_quantile(1.1, 1.0, 1.0)
    with pytest.raises(ValueError, match="brackets"):
        bisect_increasing(np.exp, np.ones(1), np.ones(1), np.full(1, np.inf))


@pytest.mark.parametrize("num_nodes", [1, 2, 3, 5, 24, 96, 201])
def test_nodes_and_weights_are_those_of_numpy(num_nodes: int) -> None:
    node, weight = gauss_legendre(num_nodes)
    nodes, weights = np.polynomial.legendre.leggauss(num_nodes)
    np.testing.assert_allclose(node, nodes, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(weight, weights, rtol=1e-12, atol=1e-14)
    assert weight.sum() == pytest.approx(2.0, rel=1e-14)
