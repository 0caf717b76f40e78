"""Rare slow batches: quantiles against sorted samples of waits and durations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.models.arrays import Array
from headway.models.estimation.rare_batches import (
    RareBatches,
    latency_bound_s,
    latency_quantile_with_rare_s,
    rare_batches,
)
from headway.models.laws.distributions import uniform_plus_lognormal_quantile
from tests.models.estimation.batches import lognormal

LEVELS = np.array([0.5, 0.95, 0.99])


def paused(random: np.random.Generator, num_batches: int) -> Array:
    """A collector stops three batches in a hundred for Exp(0.5 s) on top of 0.3 s."""
    usual = 0.3 * lognormal(random, 0.1, num_batches)
    return usual + (random.random(num_batches) < 0.03) * random.exponential(0.5, num_batches)


def played_quantiles(duration_s: Array, interval_s: float, seed: int) -> Array:
    wait = np.random.default_rng(seed).uniform(0.0, interval_s, len(duration_s))
    return np.asarray(np.quantile(wait + duration_s, LEVELS))


def test_a_split_keeps_the_moments() -> None:
    ratio = paused(np.random.default_rng(1), 3000) / 0.3
    parts = rare_batches(ratio)
    assert 0.015 < parts.share < 0.035
    rare = parts.threshold_ratio + parts.excess_ratio
    mean = (1.0 - parts.share) * parts.usual_ratio + parts.share * rare
    square = (1.0 - parts.share) * (parts.usual_ratio**2 + parts.usual_noise**2)
    square += parts.share * (rare**2 + parts.excess_noise**2)
    assert mean == pytest.approx(float(ratio.mean()))
    assert square == pytest.approx(float(np.mean(ratio**2)))


def test_few_batches_stay_one_kind() -> None:
    few = np.concatenate([np.tile([0.9, 1.0, 1.1], 90), np.full(8, 4.0)])
    assert rare_batches(few).share == 0.0
    scarce = np.concatenate([np.tile([0.9, 1.0, 1.1], 200), np.full(4, 4.0)])
    assert rare_batches(scarce).share == 0.0
    assert rare_batches(scarce).usual_noise == pytest.approx(float(scarce.std()))


def test_usual_noise_is_no_rare_batch() -> None:
    shares = [rare_batches(lognormal(np.random.default_rng(s), 0.1, 500)).share for s in range(30)]
    assert np.count_nonzero(shares) <= 1


def test_without_rare_batches_it_is_the_plain_law() -> None:
    parts = RareBatches(0.0, 1.0, 0.2, 1.0, 1.0, 0.2)
    found = latency_quantile_with_rare_s(LEVELS, 10.0, 5.0, parts)
    assert found == pytest.approx(uniform_plus_lognormal_quantile(LEVELS, 10.0, 5.0, 1.0), rel=1e-7)


def test_pauses_are_in_the_quantiles() -> None:
    true = played_quantiles(paused(np.random.default_rng(2), 1_000_000), 1.0, seed=3)
    ratio = paused(np.random.default_rng(4), 200_000) / 0.3
    found = latency_quantile_with_rare_s(LEVELS, 1.0, 0.3, rare_batches(ratio))
    assert found == pytest.approx(true, rel=0.012)
    one_kind = uniform_plus_lognormal_quantile(
        LEVELS, 1.0, 0.3 * float(ratio.mean()), 0.3 * float(ratio.std())
    )
    assert one_kind[1] / true[1] > 1.025


@settings(max_examples=80)
@given(
    st.floats(0.0, 20.0),
    st.floats(0.0, 0.5),
    st.floats(0.0, 0.5),
    st.floats(1.0, 10.0),
    st.floats(0.0, 2.0),
)
def test_quantiles_are_ordered_and_within_the_bound(
    interval_s: float, share: float, usual: float, ratio: float, rare: float
) -> None:
    parts = RareBatches(share, 1.0, usual, 1.5, ratio, rare * ratio)
    found = latency_quantile_with_rare_s(np.array([0.01, 0.5, 0.9, 0.99]), interval_s, 2.0, parts)
    assert np.all(np.isfinite(found))
    assert np.all(np.diff(found) >= 0.0)
    mean = (1.0 - share) + share * (1.5 + ratio)
    square = (1.0 - share) * (1.0 + usual**2) + share * ((1.5 + ratio) ** 2 + (rare * ratio) ** 2)
    sd = 2.0 * np.sqrt(max(square - mean**2, 0.0))
    bound = latency_bound_s(0.99, interval_s, 2.0 * mean, sd)
    assert found[-1] <= float(bound) * (1.0 + 1e-6)


def test_the_bound_is_met_by_the_worst_law() -> None:
    # Two atoms attain Cantelli's bound; the wait is at its end.
    q, mean, sd = 0.9, 2.0, 0.3
    high = mean + sd * np.sqrt(q / (1.0 - q))
    low = mean - sd * np.sqrt((1.0 - q) / q)
    assert (1.0 - q) * high + q * low == pytest.approx(mean)
    assert (1.0 - q) * (high - mean) ** 2 + q * (low - mean) ** 2 == pytest.approx(sd**2)
    assert float(latency_bound_s(q, 1.0, mean, sd)) == pytest.approx(1.0 + high)


@pytest.mark.parametrize(
    ("mean", "cv", "true", "bound"),
    [(0.2, 0.05, 1.191, 1.299), (0.5, 0.2, 1.603, 2.495), (0.8, 0.5, 2.756, 5.780)],
)
def test_published_bounds(mean: float, cv: float, true: float, bound: float) -> None:
    assert float(latency_bound_s(0.99, 1.0, mean, cv * mean)) == pytest.approx(bound, abs=1e-3)
    exact = uniform_plus_lognormal_quantile(0.99, 1.0, mean, cv * mean)
    assert float(exact) == pytest.approx(true, rel=5e-3)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="at least one"):
        rare_batches(np.zeros(0))
    with pytest.raises(ValueError, match="positive"):
        rare_batches(np.array([1.0, np.nan]))
    with pytest.raises(ValueError, match="strictly"):
        latency_quantile_with_rare_s(1.0, 1.0, 1.0, RareBatches(0.0, 1.0, 0.1, 1.0, 1.0, 0.1))
    with pytest.raises(ValueError, match="share"):
        latency_quantile_with_rare_s(0.5, 1.0, 1.0, RareBatches(1.5, 1.0, 0.1, 1.0, 1.0, 0.1))
    with pytest.raises(ValueError, match="not be 1"):
        latency_bound_s(1.0, 1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="mean_s > 0"):
        latency_bound_s(0.5, 1.0, 0.0, 1.0)
