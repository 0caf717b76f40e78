"""Intervals: how often they hold the true value, over samples with known parameters."""

from __future__ import annotations

import numpy as np
import pytest

from headway.models.arrays import Array
from headway.models.estimation.bootstrap import (
    PredictionInterval,
    Predictor,
    bootstrap_interval,
    line_fit,
    stratified_draws,
)
from headway.models.estimation.regression import lag_one_correlation
from headway.models.laws.distributions import lognormal_quantile, uniform_plus_lognormal_quantile
from tests.models.estimation.batches import (
    FIXED_S,
    PER_ROW_S,
    correlated_scores,
    from_scores,
    mean_s,
    two_loads,
)

NOISE, PLANNED_ROWS, TRIGGER_S = 0.1, 1.2e4, 8.0
TRUE = np.array([[FIXED_S, PER_ROW_S, NOISE]])


def predictions(parameters: Array) -> Array:
    """Mean duration, p99 of the duration, and p99 of the latency with a wait for the trigger."""
    mean = parameters[:, 0] + parameters[:, 1] * PLANNED_ROWS
    noise = np.maximum(parameters[:, 2], 1e-9)
    return np.column_stack(
        [
            mean,
            lognormal_quantile(0.99, mean, noise),
            uniform_plus_lognormal_quantile(0.99, TRIGGER_S, mean, noise * mean),
        ]
    )


def without_the_wait(parameters: Array) -> Array:
    """The first two, which take less time."""
    mean = parameters[:, 0] + parameters[:, 1] * PLANNED_ROWS
    quantile = lognormal_quantile(0.99, mean, np.maximum(parameters[:, 2], 1e-9))
    return np.column_stack([mean, quantile])


def sample(num_batches: int, phi: float, seed: int) -> tuple[Array, Array]:
    """Two loads, one after the other; noise lasts within each."""
    random = np.random.default_rng([seed, num_batches])
    score = correlated_scores(random, phi, (2, num_batches // 2)).ravel()
    rows = two_loads(num_batches)
    return rows, mean_s(rows) * from_scores(score, NOISE)


def interval(
    num_batches: int,
    phi: float,
    assumed: float | None,
    seed: int,
    predictor: Predictor = predictions,
    num_draws: int = 100,
) -> PredictionInterval:
    rows, duration = sample(num_batches, phi, seed)
    setting = np.repeat([0, 1], num_batches // 2)
    if assumed is None:
        runs = [duration[setting == run] for run in (0, 1)]
        assumed = lag_one_correlation([run / run.mean() - 1.0 for run in runs])
    return bootstrap_interval(
        setting,
        line_fit(rows, duration, setting, assumed),
        predictor,
        autocorrelation=assumed,
        num_draws=num_draws,
        seed=seed,
    )


def coverage(
    num_batches: int,
    phi: float,
    assumed: float | None,
    num_samples: int,
    predictor: Predictor = predictions,
) -> tuple[Array, Array, Array]:
    """Shares of samples whose interval, and whose upper value, hold the truth; mean width, %."""
    true = predictor(TRUE)[0]
    found = [interval(num_batches, phi, assumed, seed, predictor) for seed in range(num_samples)]
    inside = [(one.low <= true) & (true <= one.high) for one in found]
    above = [one.upper >= true for one in found]
    width = [(one.high / one.low) ** 0.5 - 1.0 for one in found]
    return np.mean(inside, axis=0), np.mean(above, axis=0), 100.0 * np.mean(width, axis=0)


def test_draws_keep_settings_and_are_even() -> None:
    setting = np.array([2, 0, 0, 7, 0, 2])
    draws = stratified_draws(setting, 30_000, seed=1)
    assert np.all(setting[draws] == setting)
    assert np.bincount(draws[:, 1], minlength=6) / 30_000 == pytest.approx(
        [0, 1 / 3, 1 / 3, 0, 1 / 3, 0], abs=0.01
    )
    assert np.corrcoef(draws[:, 1], draws[:, 2])[0, 1] == pytest.approx(0.0, abs=0.02)


def test_the_same_seed_gives_the_same_interval() -> None:
    one, other = interval(20, 0.0, 0.0, seed=5), interval(20, 0.0, 0.0, seed=5)
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_the_error_of_a_mean_is_that_of_its_sample() -> None:
    """With one setting and a mean the bootstrap is known in closed form."""
    duration = np.random.default_rng(2).uniform(4.0, 6.0, 30)
    found = bootstrap_interval(
        np.zeros(30, dtype=int),
        lambda draws: duration[draws].mean(axis=1, keepdims=True),
        lambda parameters: parameters[:, 0],
        noise_parameter=None,
        num_draws=20_000,
        seed=3,
    )
    student = 1.69913  # t of 29 degrees of freedom at 0.95
    reach = student * float(duration.std(ddof=1)) / 30**0.5
    assert float(found.estimate) == pytest.approx(float(duration.mean()))
    assert float(found.high - found.estimate) == pytest.approx(reach, rel=0.04)
    assert float(found.estimate - found.low) == pytest.approx(reach, rel=0.04)
    assert found.upper == found.high


@pytest.mark.parametrize("num_batches", [10, 40])
def test_intervals_hold_the_truth(num_batches: int) -> None:
    inside, above, _ = coverage(num_batches, 0.0, 0.0, 100, without_the_wait)
    assert np.all(np.abs(inside - 0.9) < 0.09)  # three standard errors
    assert np.all(above > 0.88)


def test_lasting_noise_widens_intervals() -> None:
    plain, lasting = interval(40, 0.3, 0.0, seed=1), interval(40, 0.3, 0.5, seed=1)
    assert np.all(lasting.low < plain.low)
    assert np.all(lasting.upper > plain.upper)


def test_levels_are_nested() -> None:
    rows, duration = sample(20, 0.0, seed=1)
    setting = np.repeat([0, 1], 10)
    highs = [
        bootstrap_interval(
            setting, line_fit(rows, duration), predictions, level=level, num_draws=50, seed=1
        ).high
        for level in (0.5, 0.8, 0.9, 0.99)
    ]
    assert np.all(np.diff(highs, axis=0) > 0.0)


def test_without_noise_there_is_nothing_between_the_ends() -> None:
    rows = two_loads(20)
    found = bootstrap_interval(
        np.repeat([0, 1], 10), line_fit(rows, mean_s(rows)), predictions, num_draws=30, seed=1
    )
    assert found.high == pytest.approx(found.low, rel=1e-6)


def test_unstable_draws_open_the_upper_end() -> None:
    rows, duration = sample(20, 0.0, seed=1)

    def sometimes(parameters: Array) -> Array:
        steep = parameters[:, 1] > PER_ROW_S
        return np.column_stack([np.where(steep, np.inf, 3.0), parameters[:, 0]])

    found = bootstrap_interval(
        np.repeat([0, 1], 10), line_fit(rows, duration), sometimes, num_draws=50, seed=1
    )
    assert (found.low[0], found.high[0], found.upper[0]) == (3.0, np.inf, np.inf)
    assert np.isfinite(found.high[1])
    assert not np.any(np.isnan(found))


def test_refusals() -> None:
    rows, duration = sample(20, 0.0, seed=1)
    fit = line_fit(rows, duration)
    setting = np.repeat([0, 1], 10)
    with pytest.raises(ValueError, match="num_draws"):
        bootstrap_interval(setting, fit, predictions, num_draws=2, seed=1)
    with pytest.raises(ValueError, match="level"):
        bootstrap_interval(setting, fit, predictions, level=1.0, seed=1)
    with pytest.raises(ValueError, match="positive values"):
        bootstrap_interval(setting, fit, lambda line: line[:, 0] * np.nan, seed=1)
    with pytest.raises(ValueError, match="too few batches"):
        bootstrap_interval(np.arange(20), fit, predictions, seed=1)
    with pytest.raises(ValueError, match="at least one batch"):
        stratified_draws(np.zeros(0, dtype=int), 10, seed=1)


@pytest.mark.statistical
@pytest.mark.parametrize("num_batches", [10, 20, 40])
@pytest.mark.parametrize("phi", [0.0, 0.3, 0.5])
def test_table_of_coverage(num_batches: int, phi: float) -> None:
    inside, above, _ = coverage(num_batches, phi, phi, num_samples=1000)
    assert np.all((inside > 0.87) & (inside < 0.93))
    assert np.all((above > 0.91) & (above < 0.975))


@pytest.mark.statistical
@pytest.mark.parametrize("num_batches", [10, 20, 40])
@pytest.mark.parametrize("phi", [0.0, 0.3, 0.5])
def test_table_of_coverage_with_estimated_correlation(num_batches: int, phi: float) -> None:
    inside, _, _ = coverage(num_batches, phi, None, 400, without_the_wait)
    # Ten batches do not tell their correlation: it has to be known from elsewhere.
    assert np.all(inside > {10: 0.65, 20: 0.75, 40: 0.85}[num_batches])
