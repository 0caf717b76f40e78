"""Noise of batches by their duration, recovered from runs that have it."""

from __future__ import annotations

import numpy as np
import pytest

from headway.domain import DurationNoise
from headway.models.arrays import Array
from headway.models.estimation.batch_noise import batch_spread, noise_ratio_at

SHORT_S, LONG_S = 0.1, 4.0


def residuals_of(ratio: float, added_sd_s: float, duration_s: float, count: int) -> Array:
    """Batches with this noise, all expected to take so long."""
    rng = np.random.default_rng(count)
    return np.asarray(np.hypot(ratio, added_sd_s / duration_s) * rng.standard_normal(count))


def spread_of(ratio: float, *counts: tuple[float, int]) -> tuple[float, float]:
    """Of runs of so long and so many batches, with the usual part that does not grow."""
    residuals = [residuals_of(ratio, 0.25 * ratio, *of_run) for of_run in counts]
    return batch_spread(residuals, [np.full(count, duration_s) for duration_s, count in counts])


@pytest.mark.parametrize("ratio", [0.05, 0.2])
def test_the_noise_of_short_and_of_long_batches_is_recovered(ratio: float) -> None:
    long_ratio, added_sd_s = spread_of(ratio, (SHORT_S, 4_000), (LONG_S, 4_000))
    assert long_ratio == pytest.approx(ratio, rel=0.05)
    assert added_sd_s == pytest.approx(0.25 * ratio, rel=0.05)


def test_a_run_with_many_batches_weighs_as_much_as_one_with_few() -> None:
    calm, wild = np.array([0.05, -0.05] * 200), np.array([0.3, -0.3] * 2_000)
    durations_s = [np.full(len(calm), LONG_S), np.full(len(wild), LONG_S)]
    ratio, _ = batch_spread([calm, wild], durations_s)
    assert ratio == pytest.approx(np.sqrt((0.05**2 + 0.3**2) / 2), rel=0.03)


def test_few_batches_are_drawn_towards_what_is_usual() -> None:
    few, _ = spread_of(0.4, (LONG_S, 5))
    assert 0.092 < few < 0.3
    assert spread_of(0.4, (LONG_S, 4_000))[0] == pytest.approx(0.4, rel=0.05)


def test_the_noise_of_a_batch_falls_with_its_duration_to_that_of_long_ones() -> None:
    noise = DurationNoise(
        batch_ratio=0.1, autocorrelation=0.0, run_to_run_ratio=0.1, added_sd_s=0.025
    )
    ratios = noise_ratio_at(noise, np.array([SHORT_S, 1.0, LONG_S]))
    assert np.all(np.diff(ratios) < 0.0)
    assert ratios[-1] == pytest.approx(0.1, rel=0.01)
    assert ratios[0] == pytest.approx(0.1 * np.hypot(1.0, 2.5))
