"""Maxima of any law against mpmath, closed forms, and samples."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammainccinv

from headway.models.arrays import Array
from headway.models.laws.distributions import lognormal_cdf, lognormal_quantile
from headway.models.laws.maxima import (
    Parents,
    max_general,
    max_of_different,
    max_of_different_quantile,
    max_quantile,
)
from headway.models.laws.normal import ndtr, ndtri
from headway.models.laws.order_statistics import max_lognormal, max_normal

COUNTS = (1, 2, 3, 10, 1000, 10**6)


def normal_upper(prob: Array) -> Array:
    return -ndtri(prob)


def exponential_upper(prob: Array) -> Array:
    return -np.log(prob)


def exponential(num_values: int, mean: float) -> Parents:
    return Parents(num_values, lambda x: np.exp(-np.maximum(x, 0.0) / mean))


def harmonic(num_values: int, power: int = 1) -> float:
    return float(np.sum(1.0 / np.arange(1.0, num_values + 1.0) ** power))


@pytest.mark.parametrize("n", COUNTS)
def test_normal_parent_against_mpmath(n: int) -> None:
    def density(z: mpmath.mpf) -> mpmath.mpf:
        return n * mpmath.npdf(z) * mpmath.ncdf(z) ** (n - 1)

    ends = [-10, -3, 0, 2, 4, 5, 6, 8, 12]
    mean = mpmath.quad(lambda z: z * density(z), ends)
    variance = mpmath.quad(lambda z: (z - mean) ** 2 * density(z), ends)
    expected = (float(mean), float(mpmath.sqrt(variance)))
    assert max_general(n, normal_upper) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert max_normal(n) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("n", COUNTS)
def test_exponential_parent_has_harmonic_moments(n: int) -> None:
    expected = (harmonic(n), harmonic(n, 2) ** 0.5)
    assert max_general(n, exponential_upper) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n", COUNTS)
def test_uniform_parent_has_beta_moments(n: int) -> None:
    expected = (n / (n + 1.0), np.sqrt(n / (n + 2.0)) / (n + 1.0))
    assert max_general(n, lambda prob: 1.0 - prob) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("n", COUNTS)
def test_pareto_parent_has_gamma_moments(n: int) -> None:
    def moment(power: float) -> float:
        with mpmath.workdps(40):
            log_ratio = mpmath.loggamma(n + 1) - mpmath.loggamma(n + 1 - mpmath.mpf(power))
            return float(mpmath.exp(log_ratio) * mpmath.gamma(1 - mpmath.mpf(power)))

    expected = (moment(0.25), float(np.sqrt(moment(0.5) - moment(0.25) ** 2)))
    assert max_general(n, lambda prob: prob**-0.25) == pytest.approx(expected, rel=1e-9)


def test_moments_that_do_not_exist_are_infinite() -> None:
    only_mean = max_general(3, lambda prob: prob ** (-1.0 / 1.5))
    assert np.isfinite(only_mean.mean)
    assert only_mean.sd == np.inf
    assert max_general(3, lambda prob: prob**-1.0) == (np.inf, np.inf)


@pytest.mark.parametrize(("n", "cv"), [(1, 0.5), (32, 0.3), (32, 1.0), (10_000, 2.0)])
def test_lognormal_parent_meets_its_own_quadrature(n: int, cv: float) -> None:
    def upper(prob: Array) -> Array:
        width = np.sqrt(np.log1p(cv * cv))
        value: Array = np.exp(-width * ndtri(prob) - width * width / 2.0)
        return value

    assert max_general(n, upper) == pytest.approx(max_lognormal(n, cv), rel=1e-9)


@pytest.mark.parametrize(
    ("n", "cv", "of_mean", "of_sd"), [(32, 0.3, -0.088, -0.45), (32, 1.0, -0.29, -0.77)]
)
def test_what_a_normal_in_place_of_a_lognormal_costs(
    n: int, cv: float, of_mean: float, of_sd: float
) -> None:
    exact, normal = max_lognormal(n, cv), max_normal(n)
    assert (1.0 + cv * normal.mean) / exact.mean - 1.0 == pytest.approx(of_mean, abs=0.006)
    assert cv * normal.sd / exact.sd - 1.0 == pytest.approx(of_sd, abs=0.006)


def test_what_a_normal_in_place_of_a_gamma_costs() -> None:
    exact = max_general(
        256, lambda prob: np.asarray(gammainccinv(4.0, prob) / 4.0, dtype=np.float64)
    )
    assert (1.0 + 0.5 * max_normal(256).mean) / exact.mean - 1.0 == pytest.approx(-0.2, abs=0.01)
    assert 0.5 * max_normal(256).sd / exact.sd - 1.0 == pytest.approx(-0.52, abs=0.01)


@pytest.mark.parametrize("upper", [normal_upper, exponential_upper, lambda prob: 1.0 - prob])
def test_the_largest_of_one_is_the_value(upper: Callable[[Array], Array]) -> None:
    q = np.array([0.01, 0.5, 0.999])
    assert max_quantile(q, 1, upper) == pytest.approx(upper(1.0 - q), abs=1e-12)


@pytest.mark.parametrize("n", COUNTS)
def test_quantiles_of_the_largest_exponential(n: int) -> None:
    with mpmath.workdps(40):
        exact = [
            float(-mpmath.log(1 - mpmath.mpf(q) ** (mpmath.mpf(1) / n))) for q in (0.01, 0.999)
        ]
    assert max_quantile(np.array([0.01, 0.999]), n, exponential_upper) == pytest.approx(
        exact, rel=1e-12
    )
    # The same from the exceedance.
    alike = max_of_different_quantile(np.array([0.01, 0.999]), (exponential(n, 1.0),), 0.0, 60.0)
    assert alike == pytest.approx(exact, rel=1e-8)


def test_the_largest_of_different_exponentials_by_enumeration() -> None:
    means = (1.0, 1.0, 1.0, 2.0, 5.0)
    # Inclusion and exclusion: of every subset the least is exponential again.
    exact = [0.0, 0.0]
    for chosen in product((False, True), repeat=len(means)):
        rates = [1.0 / mean for mean, used in zip(means, chosen, strict=True) if used]
        if rates:
            sign = (-1.0) ** (len(rates) + 1)
            exact[0] += sign / sum(rates)
            exact[1] += sign * 2.0 / sum(rates) ** 2
    found = max_of_different(
        (exponential(3, 1.0), exponential(1, 2.0), exponential(1, 5.0)), 0.0, 300.0
    )
    assert found == pytest.approx((exact[0], (exact[1] - exact[0] ** 2) ** 0.5), rel=1e-7)


def test_different_lognormals_by_sampling() -> None:
    laws = ((8, 1.0, 0.3), (4, 2.0, 0.1), (1, 1.5, 1.0))
    random = np.random.default_rng(4)
    largest = np.max(
        [
            lognormal_quantile(random.random((n, 40_000)), mean, cv).max(axis=0)
            for n, mean, cv in laws
        ],
        axis=0,
    )

    def parents(n: int, mean: float, cv: float) -> Parents:
        return Parents(n, lambda x: 1.0 - lognormal_cdf(x, mean, cv))

    found = max_of_different(tuple(parents(*law) for law in laws), 0.0, 100.0)
    noise = largest.std() / 200.0
    assert found.mean == pytest.approx(largest.mean(), abs=4.0 * noise)
    assert found.sd == pytest.approx(largest.std(), rel=0.03)
    q = np.array([0.1, 0.5, 0.99])
    quantile = max_of_different_quantile(q, tuple(parents(*law) for law in laws), 0.0, 100.0)
    assert quantile == pytest.approx(np.quantile(largest, q), rel=0.03)


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.floats(0.001, 0.999))
def test_maxima_grow_with_n_and_their_quantiles_are_ordered(one: int, other: int, q: float) -> None:
    few, many = sorted((one, other))
    for upper in (normal_upper, exponential_upper):
        assert max_general(few, upper).mean <= max_general(many, upper).mean + 1e-12
        levels = np.array([q, 0.5 + q / 2.0])
        low, high = max_quantile(levels, few, upper)
        assert low < high
        assert max_quantile(q, few, upper) <= max_quantile(q, many, upper) + 1e-12


@given(st.integers(1, 50), st.floats(0.1, 10.0), st.floats(0.01, 0.99))
def test_one_more_value_never_makes_the_largest_smaller(n: int, mean: float, q: float) -> None:
    alone, joined = (exponential(n, 1.0),), (exponential(n, 1.0), exponential(1, mean))
    of_alone, of_joined = (
        float(max_of_different_quantile(q, laws, 0.0, 400.0)) for laws in (alone, joined)
    )
    assert of_alone <= of_joined * (1.0 + 1e-9)
    assert of_joined >= float(max_of_different_quantile(q, joined[1:], 0.0, 400.0)) * (1.0 - 1e-9)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="num_values"):
        max_general(0, normal_upper)
    with pytest.raises(ValueError, match="finite"):
        max_general(2, lambda prob: np.full_like(prob, np.nan))
    with pytest.raises(ValueError, match="finite"):
        max_general(2, lambda prob: ndtri(1.0 - prob))
    with pytest.raises(ValueError, match="strictly"):
        max_quantile(1.0, 2, normal_upper)
    with pytest.raises(ValueError, match="at least one"):
        max_of_different((), 0.0, 1.0)
    with pytest.raises(ValueError, match="at least one value"):
        max_of_different((exponential(0, 1.0),), 0.0, 1.0)
    with pytest.raises(ValueError, match="between low and high"):
        max_of_different((exponential(3, 1.0),), 0.0, 5.0)
    with pytest.raises(ValueError, match="between low and high"):
        max_of_different((Parents(2, lambda x: 1.0 - ndtr(x)),), 0.0, 40.0)
