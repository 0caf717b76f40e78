"""Maxima against published values, closed forms and samples."""

from __future__ import annotations

import numpy as np
import pytest

from headway.models.laws.distributions import (
    cv_with_largest,
    max_lognormal,
    max_normal,
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
def test_the_largest_is_that_of_a_sample(n: int, cv: float) -> None:
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


def test_refusals() -> None:
    with pytest.raises(ValueError, match="num_values"):
        max_normal(0)
    with pytest.raises(ValueError, match="cv"):
        max_lognormal(3, float("nan"))


@pytest.mark.parametrize("num_values", [2, 10, 100, 10_000])
@pytest.mark.parametrize("cv", [0.05, 0.4, 1.7])
def test_the_cv_is_found_again_from_the_largest_value(num_values: int, cv: float) -> None:
    largest = max_lognormal(num_values, cv).mean
    assert cv_with_largest(num_values, largest, highest_cv=3.0) == pytest.approx(cv, abs=1e-3)
    assert cv_with_largest(num_values, largest, highest_cv=0.9 * cv) == 0.9 * cv


@pytest.mark.parametrize("largest", [0.0, 0.5, 1.0])
def test_a_largest_value_up_to_the_mean_leaves_no_variation(largest: float) -> None:
    assert cv_with_largest(20, largest, highest_cv=1.0) < 1e-3
    assert cv_with_largest(20, largest, highest_cv=0.0) == 0.0
