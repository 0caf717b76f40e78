"""Effective batches against sums over all pairs and against played runs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.models.estimation.autocorrelation import (
    effective_batches,
    mean_inflation,
    run_evidence,
)
from tests.models.estimation.batches import correlated_scores


@given(st.integers(1, 60), st.floats(0.0, 0.95))
def test_inflation_equals_the_sum_over_all_pairs(num_batches: int, phi: float) -> None:
    place = np.arange(num_batches)
    correlation = phi ** np.abs(place - place[:, np.newaxis])
    expected = correlation.sum() / num_batches
    assert float(mean_inflation(num_batches, phi)) == pytest.approx(expected, rel=1e-9)


@given(st.floats(1, 1e6), st.floats(0.0, 0.99), st.floats(0.0, 0.99))
def test_correlation_never_adds_batches(num_batches: float, one: float, other: float) -> None:
    low, high = sorted((one, other))
    less = float(effective_batches(num_batches, low))
    more = float(effective_batches(num_batches, high))
    assert 1.0 - 1e-6 <= more <= less * (1.0 + 1e-9) <= num_batches * (1.0 + 2e-9)


@pytest.mark.parametrize("phi", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("lengths", [[5, 5], [20, 20], [3, 12, 30]])
def test_evidence_equals_the_moments_of_quadratic_forms(phi: float, lengths: list[int]) -> None:
    spare, squares, true = 0.0, 0.0, 0.0
    for length in lengths:
        place = np.arange(length)
        correlation = phi ** np.abs(place - place[:, np.newaxis]).astype(float)
        about_mean = (np.eye(length) - 1.0 / length) @ correlation
        spare += float(np.trace(about_mean))
        squares += float(np.trace(about_mean @ about_mean))
        true += float(correlation.sum())
    found = run_evidence(np.array(lengths, dtype=float), phi)
    assert found.variance_factor == pytest.approx(true / spare, rel=1e-9)
    assert found.degrees_of_freedom == pytest.approx(spare**2 / squares, rel=1e-9)


def test_evidence_meets_played_runs() -> None:
    runs = correlated_scores(np.random.default_rng(1), 0.5, (40_000, 2, 8))
    within = runs.var(axis=2).mean(axis=1)  # what resampling within runs makes of the noise
    found = run_evidence(np.array([8.0, 8.0]), 0.5)
    of_mean = 16.0 * float(runs.mean(axis=(1, 2)).var())
    assert found.variance_factor == pytest.approx(of_mean / float(within.mean()), rel=0.03)
    degrees = 2.0 * float(within.mean()) ** 2 / float(within.var())
    assert found.degrees_of_freedom == pytest.approx(degrees, rel=0.05)


def test_independent_batches_count_in_whole() -> None:
    found = run_evidence(np.array([10.0, 10.0]), 0.0)
    assert found == pytest.approx((20 / 18, 18.0))


def test_nothing_left_is_told() -> None:
    assert run_evidence(np.array([1.0, 1.0]), 0.0) == (np.inf, 0.0)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="autocorrelation"):
        mean_inflation(10.0, 1.0)
    with pytest.raises(ValueError, match="num_batches"):
        effective_batches(0.0, 0.1)
    with pytest.raises(ValueError, match="at least one run"):
        run_evidence(np.zeros(0), 0.0)
