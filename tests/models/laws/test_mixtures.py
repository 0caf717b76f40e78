"""Durations with several modes against simulated pauses, integration and limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import trapezoid

from headway.models.arrays import Array
from headway.models.laws.distributions import (
    lognormal_quantile,
    uniform_plus_lognormal_cdf,
    uniform_plus_lognormal_quantile,
)
from headway.models.laws.mixtures import (
    DurationMixture,
    Mode,
    ModeFamily,
    mixture_of_sample,
    usual_and_slow,
    with_pauses,
)
from headway.models.laws.modes import SlowMode

level = st.floats(0.001, 0.999)
positive = st.floats(0.01, 100.0)
spread = st.floats(0.0, 2.0)
LEVELS = np.array([0.5, 0.95, 0.99])
# Mean, cv, probability and mean of a pause, its cv; the first is the design study's.
PAUSES = [
    (0.3, 0.1, 0.03, 0.5, 1.0),
    (0.3, 0.3, 0.03, 0.5, 1.0),
    (0.5, 0.2, 0.1, 1.0, 0.5),
    (0.8, 0.5, 0.02, 2.0, 1.0),
    (0.2, 0.05, 0.3, 0.1, 2.0),
]


def paused_durations_s(
    mean_s: float, cv: float, prob: float, pause_s: float, pause_cv: float, num: int, seed: int
) -> Array:
    """Lognormal durations, and pauses added to those that chance picks."""
    random = np.random.default_rng(seed)
    log_variance = np.log1p(cv * cv)
    usual = mean_s * np.exp(
        np.sqrt(log_variance) * random.standard_normal(num) - log_variance / 2.0
    )
    pause = random.gamma(pause_cv**-2, pause_s * pause_cv**2, num)
    durations_s: Array = usual + np.where(random.random(num) < prob, pause, 0.0)
    return durations_s


def after_a_wait(durations_s: Array, interval_s: float) -> Array:
    return durations_s + np.random.default_rng(99).uniform(0.0, interval_s, len(durations_s))


@pytest.mark.parametrize(("mean_s", "cv", "prob", "pause_s", "pause_cv"), PAUSES)
def test_pauses_against_simulation(
    mean_s: float, cv: float, prob: float, pause_s: float, pause_cv: float
) -> None:
    values = paused_durations_s(mean_s, cv, prob, pause_s, pause_cv, 400_000, 5)
    law = with_pauses(mean_s, cv * mean_s, pause_prob=prob, pause_mean_s=pause_s, pause_cv=pause_cv)
    assert float(law.mean_s) == pytest.approx(values.mean(), rel=0.01)
    assert float(law.variance_s2) == pytest.approx(values.var(), rel=0.04)
    waited = np.quantile(after_a_wait(values, 1.0), LEVELS)
    assert law.after_uniform_wait_quantile_s(LEVELS, 1.0) == pytest.approx(waited, rel=0.012)


@pytest.mark.statistical
@pytest.mark.parametrize(("mean_s", "cv", "prob", "pause_s", "pause_cv"), PAUSES)
def test_quantiles_of_pauses_within_their_error(
    mean_s: float, cv: float, prob: float, pause_s: float, pause_cv: float
) -> None:
    values = paused_durations_s(mean_s, cv, prob, pause_s, pause_cv, 8_000_000, 6)
    law = with_pauses(mean_s, cv * mean_s, pause_prob=prob, pause_mean_s=pause_s, pause_cv=pause_cv)
    levels = np.array([0.5, 0.95, 0.99, 0.999])
    waited = np.quantile(after_a_wait(values, 1.0), levels)
    assert law.after_uniform_wait_quantile_s(levels, 1.0) == pytest.approx(waited, rel=0.006)


@pytest.mark.statistical
@pytest.mark.parametrize(("mean_s", "cv", "prob", "pause_s", "pause_cv"), PAUSES[:3])
def test_a_thousand_batches_tell_their_quantiles(
    mean_s: float, cv: float, prob: float, pause_s: float, pause_cv: float
) -> None:
    truth = with_pauses(
        mean_s, cv * mean_s, pause_prob=prob, pause_mean_s=pause_s, pause_cv=pause_cv
    ).after_uniform_wait_quantile_s(LEVELS, 1.0)
    errors = np.array(
        [
            mixture_of_sample(
                paused_durations_s(mean_s, cv, prob, pause_s, pause_cv, 1000, seed)
            ).after_uniform_wait_quantile_s(LEVELS, 1.0)
            / truth
            - 1.0
            for seed in range(200)
        ]
    )
    assert np.abs(np.median(errors, axis=0)) == pytest.approx(np.zeros(3), abs=0.009)


def test_partial_expectation_is_the_integral_of_the_cdf() -> None:
    law = with_pauses(0.5, 0.1, pause_prob=0.1, pause_mean_s=1.0)
    grid = np.linspace(0.0, 4.0, 40_001)
    integral = trapezoid(law.cdf(grid), grid)
    assert float(law.partial_expectation_s(4.0)) == pytest.approx(integral, rel=1e-6)


def test_third_moment_by_integration() -> None:
    law = with_pauses(0.5, 0.1, pause_prob=0.1, pause_mean_s=1.0, pause_cv=0.5)
    grid = np.linspace(0.0, 30.0, 300_001)
    survival = 1.0 - law.cdf(grid)
    raw = [trapezoid(power * grid ** (power - 1) * survival, grid) for power in (1, 2, 3)]
    assert float(law.mean_s) == pytest.approx(raw[0], rel=1e-6)
    assert float(law.variance_s2) == pytest.approx(raw[1] - raw[0] ** 2, rel=1e-5)
    central = raw[2] - 3.0 * raw[0] * raw[1] + 2.0 * raw[0] ** 3
    assert float(law.third_central_s3) == pytest.approx(central, rel=1e-4)


def test_constants_with_exponential_pauses_are_exact() -> None:
    law = with_pauses(0.3, 0.0, pause_prob=0.2, pause_mean_s=0.5)
    x = np.array([0.29, 0.31, 0.8, 3.0])
    exact = np.where(x < 0.3, 0.0, 1.0 - 0.2 * np.exp(-(x - 0.3) / 0.5))
    assert law.cdf(x) == pytest.approx(exact, abs=1e-12)
    assert float(law.quantile_s(0.9)) == pytest.approx(0.3 + 0.5 * np.log(2.0))


@settings(max_examples=25)
@given(level, st.floats(0.0, 10.0), positive, spread)
def test_one_mode_is_its_own_law(q: float, interval: float, mean: float, cv: float) -> None:
    law = DurationMixture(modes=(Mode(mean_s=mean, sd_s=cv * mean),), weights=(1.0,))
    assert float(law.quantile_s(q)) == pytest.approx(float(lognormal_quantile(q, mean, cv)))
    waited = float(law.after_uniform_wait_quantile_s(q, interval))
    alone = float(uniform_plus_lognormal_quantile(q, interval, mean, cv * mean))
    assert waited == pytest.approx(alone, rel=1e-7)
    assert float(law.after_uniform_wait_cdf(waited, interval)) == pytest.approx(
        float(uniform_plus_lognormal_cdf(waited, interval, mean, cv * mean)), abs=1e-9
    )


@settings(max_examples=25)
@given(level, level, st.floats(0.0, 1.0), st.floats(1.0, 20.0), st.floats(0.01, 1.0))
def test_quantiles_are_ordered_and_invert(
    one: float, other: float, share: float, ratio: float, cv: float
) -> None:
    law = usual_and_slow(2.0, cv, SlowMode(share=share, ratio=ratio))
    q = np.sort(np.array([one, other]))
    for interval in (0.0, 3.0):
        value = law.after_uniform_wait_quantile_s(q, interval)
        assert np.all(np.isfinite(value))
        assert value[0] <= value[1] * (1.0 + 1e-9)
        assert law.after_uniform_wait_cdf(value, interval) == pytest.approx(q, abs=1e-6)
    assert law.after_uniform_wait_quantile_s(q, 0.0) == pytest.approx(law.quantile_s(q), rel=1e-6)


@settings(max_examples=25)
@given(level, st.floats(0.0, 0.9), st.floats(0.01, 0.1), positive, spread)
def test_more_pauses_are_never_faster(
    q: float, prob: float, more: float, pause_s: float, pause_cv: float
) -> None:
    fewer, many = (
        with_pauses(1.0, 0.2, pause_prob=share, pause_mean_s=pause_s, pause_cv=pause_cv)
        for share in (prob, prob + more)
    )
    assert float(fewer.mean_s) < float(many.mean_s)
    # A matched mode may begin a little below the usual one, never by more than it is worth.
    assert fewer.modes[1].offset_s >= 0.0
    assert float(fewer.quantile_s(q)) <= float(many.quantile_s(q)) + 0.02


def test_no_pause_is_the_usual_mode() -> None:
    law = with_pauses(1.0, 0.2, pause_prob=0.0, pause_mean_s=100.0)
    assert law.quantile_s(LEVELS) == pytest.approx(lognormal_quantile(LEVELS, 1.0, 0.2))


def test_outliers_become_a_mode_only_if_there_are_enough() -> None:
    values = np.concatenate([np.linspace(0.9, 1.1, 1000), np.full(4, 9.0)])
    assert len(mixture_of_sample(values).modes) == 1
    law = mixture_of_sample(np.append(values, [8.0, 7.0]))
    assert len(law.modes) == 2
    assert law.modes[1].family is ModeFamily.GAMMA
    assert float(law.mean_s) == pytest.approx(np.append(values, [8.0, 7.0]).mean())
    assert len(mixture_of_sample(np.concatenate([values[:200], np.full(9, 9.0)])).modes) == 1


def test_broadcasts() -> None:
    law = with_pauses(1.0, 0.2, pause_prob=np.array([0.0, 0.1, 0.5]), pause_mean_s=1.0)
    q = np.array([[0.5], [0.99]])
    assert law.quantile_s(q).shape == law.after_uniform_wait_quantile_s(q, 1.0).shape == (2, 3)
    assert law.mean_s.shape == law.variance_s2.shape == law.third_central_s3.shape == (3,)


def test_refusals() -> None:
    mode = Mode(mean_s=1.0, sd_s=0.1)
    with pytest.raises(ValueError, match="offset_s"):
        Mode(mean_s=1.0, sd_s=0.1, offset_s=1.0)
    with pytest.raises(ValueError, match="finite"):
        Mode(mean_s=np.inf, sd_s=0.1)
    with pytest.raises(ValueError, match="at least one mode"):
        DurationMixture(modes=(), weights=())
    with pytest.raises(ValueError, match="add up to 1"):
        DurationMixture(modes=(mode, mode), weights=(0.5, 0.6))
    with pytest.raises(ValueError, match="add up to 1"):
        with_pauses(1.0, 0.1, pause_prob=1.5, pause_mean_s=1.0)
    with pytest.raises(ValueError, match="pause_mean_s"):
        with_pauses(1.0, 0.1, pause_prob=0.5, pause_mean_s=0.0)
    with pytest.raises(ValueError, match="strictly"):
        DurationMixture(modes=(mode,), weights=(1.0,)).quantile_s(1.0)
    with pytest.raises(ValueError, match="interval_s"):
        DurationMixture(modes=(mode,), weights=(1.0,)).after_uniform_wait_cdf(1.0, -1.0)
    with pytest.raises(ValueError, match="two values"):
        mixture_of_sample(np.ones(1))
    with pytest.raises(ValueError, match="positive and finite"):
        mixture_of_sample(np.array([1.0, 0.0]))
