"""Maxima against published values, closed forms and samples."""

from __future__ import annotations

import numpy as np
import pytest

from headway.models.laws.order_statistics import (
    max_correlated_normal,
    max_lognormal,
    max_normal,
    max_normal_chen_tyler,
    max_normal_gumbel,
)


@pytest.mark.parametrize(
    ("n", "mean", "sd"),
    [
        (1, 0.0, 1.0),
        (2, 0.564190, 0.825645),
        (3, 0.84628, 0.74797),
        (10, 1.53875, 0.58681),
        (40, 2.16078, 0.47749),
        (200, 2.74604, 0.40090),
        (1000, 3.24144, 0.35136),
    ],
)
def test_golden_max_normal(n: int, mean: float, sd: float) -> None:
    assert max_normal(n) == pytest.approx((mean, sd), abs=1e-5)


def test_max_of_two_normals_is_known_exactly() -> None:
    assert max_normal(2).mean == pytest.approx(1.0 / np.sqrt(np.pi), rel=1e-12)
    assert max_normal(2).sd == pytest.approx(np.sqrt(1.0 - 1.0 / np.pi), rel=1e-12)


@pytest.mark.parametrize("cv", [0.05, 0.5, 1.0, 5.0, 50.0])
def test_one_lognormal_has_its_own_moments(cv: float) -> None:
    assert max_lognormal(1, cv) == pytest.approx((1.0, cv), rel=1e-8)


def test_without_noise_the_maximum_is_the_value() -> None:
    assert max_lognormal(64, 0.0) == pytest.approx((1.0, 0.0))


def test_little_noise_makes_lognormals_normal() -> None:
    normal = max_normal(32)
    assert max_lognormal(32, 1e-5) == pytest.approx(
        (1.0 + 1e-5 * normal.mean, 1e-5 * normal.sd), rel=1e-4
    )


@pytest.mark.parametrize(("n", "cv"), [(4, 0.3), (16, 1.0), (64, 0.1)])
def test_samples_agree(n: int, cv: float) -> None:
    sigma2 = float(np.log1p(cv * cv))
    normal = np.random.default_rng(n).standard_normal((60_000, n)).max(axis=1)
    sample = np.exp(np.sqrt(sigma2) * normal - sigma2 / 2.0)
    moments = max_lognormal(n, cv)
    assert moments.mean == pytest.approx(sample.mean(), abs=5.0 * sample.std() / 60_000**0.5)
    assert moments.sd == pytest.approx(sample.std(), rel=0.04)


def test_the_maximum_grows_with_n_and_with_cv() -> None:
    means = [[max_lognormal(n, cv).mean for cv in (0.1, 0.3, 1.0)] for n in (1, 2, 8, 100, 10**6)]
    assert np.all(np.diff(means, axis=0) > 0.0)
    assert np.all(np.diff(means, axis=1)[1:] > 0.0)


def test_chen_tyler_stays_within_its_error() -> None:
    counts = np.array([2.0, 5.0, 20.0, 100.0, 1000.0])
    mean, sd = max_normal_chen_tyler(counts)
    exact = np.array([max_normal(int(count)) for count in counts])
    assert mean / exact[:, 0] - 1.0 == pytest.approx(
        [0.062, 0.008, -0.005, -0.007, -0.007], abs=1e-3
    )
    assert sd == pytest.approx(exact[:, 1], rel=0.006)


@pytest.mark.parametrize(
    ("n", "of_mean", "of_sd"),
    [
        (2, 0.327, 0.319),
        (3, 0.165, 0.157),
        (5, 0.099, 0.069),
        (10, 0.060, 0.019),
        (20, 0.040, -0.002),
        (50, 0.026, -0.013),
        (100, 0.020, -0.016),
        (200, 0.015, -0.017),
        (500, 0.011, -0.018),
        (1000, 0.009, -0.018),
    ],
)
def test_error_of_the_constants_of_the_paper(n: int, of_mean: float, of_sd: float) -> None:
    mean, sd = max_normal_gumbel(n)
    exact = max_normal(n)
    assert float(mean) / exact.mean - 1.0 == pytest.approx(of_mean, abs=1e-3)
    assert float(sd) / exact.sd - 1.0 == pytest.approx(of_sd, abs=1e-3)


def test_the_constants_of_the_paper_are_right_in_the_limit() -> None:
    errors = [float(max_normal_gumbel(n)[0]) / max_normal(n).mean - 1.0 for n in (10**6, 10**12)]
    assert 0.0 < errors[1] < errors[0] < 0.003


@pytest.mark.parametrize(("correlation", "mean", "sd"), [(0.6, 1.372, 0.835), (0.2, 1.933, 0.619)])
def test_a_common_factor_against_simulation(correlation: float, mean: float, sd: float) -> None:
    random = np.random.default_rng(8)
    factor = np.sqrt(correlation) * random.standard_normal((40_000, 1))
    own = np.sqrt(1.0 - correlation) * random.standard_normal((40_000, 40))
    largest = (factor + own).max(axis=1)
    found = max_correlated_normal(40, correlation)
    assert found == pytest.approx((mean, sd), rel=0.006)
    assert found.mean == pytest.approx(largest.mean(), abs=5.0 * found.sd / 200.0)
    assert found.sd == pytest.approx(largest.std(), rel=0.02)


def test_limits_of_the_correlation() -> None:
    assert max_correlated_normal(40, 0.0) == pytest.approx(max_normal(40))
    assert max_correlated_normal(40, 1.0) == (0.0, 1.0)
    assert max_correlated_normal(1, 0.3) == pytest.approx((0.0, 1.0), abs=1e-12)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="num_values"):
        max_normal(0)
    with pytest.raises(ValueError, match="cv"):
        max_lognormal(3, float("nan"))
    with pytest.raises(ValueError, match="above 1"):
        max_normal_chen_tyler(1.0)
    with pytest.raises(ValueError, match="at least 2"):
        max_normal_gumbel(1.5)
    with pytest.raises(ValueError, match="correlation"):
        max_correlated_normal(3, -0.1)
