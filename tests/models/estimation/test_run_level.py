"""What of a run is news: scores are white, and false alarms as rare as stated, whatever lasts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headway.assumptions.live import FALSE_ALARM_S, FALSE_LEVEL_RATIO
from headway.domain import DurationNoise
from headway.models.arrays import Array
from headway.models.estimation.cost_drift import batches_to_find, drift_found
from headway.models.estimation.run_level import innovations_of, lasting_score, noise_at_most
from tests.models.estimation.batches import correlated_scores, from_scores, mean_s


def a_noise(
    lasting: float = 0.0, *, between_runs: float = 0.0, persistence: float = 0.95, cv: float = 0.1
) -> DurationNoise:
    return DurationNoise(
        batch_ratio=cv,
        autocorrelation=lasting,
        run_to_run_ratio=between_runs,
        persistence_ratio=persistence,
    )


def log_ratios(noise: DurationNoise, num_runs: int, num_batches: int, seed: int) -> Array:
    """Runs that differ by their level, by noise that lasts, and by noise that does not."""
    random = np.random.default_rng(seed)
    shape = (num_runs, num_batches)
    log_variance = math.log1p(noise.batch_ratio**2)
    slow = correlated_scores(random, noise.persistence_ratio, shape)
    fresh = random.standard_normal(shape)
    score = math.sqrt(noise.autocorrelation) * slow
    score += math.sqrt(1.0 - noise.autocorrelation) * fresh
    level = noise.run_to_run_ratio * random.standard_normal((num_runs, 1))
    return np.asarray(level + math.sqrt(log_variance) * score - 0.5 * log_variance)


NOISES = [
    a_noise(between_runs=0.1),
    a_noise(0.5, between_runs=0.12),
    a_noise(0.9, between_runs=0.15),
    a_noise(0.999999, between_runs=0.0, persistence=0.6),
]


@pytest.mark.parametrize("noise", NOISES)
def test_scores_are_white_whatever_lasts(noise: DurationNoise) -> None:
    runs = log_ratios(noise, 300, 200, seed=3)
    scores = np.array([innovations_of(run, np.ones(200), noise)[0] for run in runs])
    assert scores.mean() == pytest.approx(0.0, abs=0.02)
    assert scores.std() == pytest.approx(1.0, abs=0.015)
    for lag in (1, 5, 20):
        assert np.mean(scores[:, lag:] * scores[:, :-lag]) == pytest.approx(0.0, abs=0.02)


def test_scores_are_standard_for_lognormal_durations() -> None:
    random = np.random.default_rng(4)
    rows = random.uniform(1e3, 2e4, 20_000)
    duration = mean_s(rows) * from_scores(random.standard_normal(20_000), 0.3)
    noise = a_noise(cv=0.3)
    scores, _ = innovations_of(np.log(duration / mean_s(rows)), mean_s(rows), noise)
    assert scores.mean() == pytest.approx(0.0, abs=0.03)
    assert scores.std() == pytest.approx(1.0, abs=0.02)


def test_noise_that_does_not_grow_with_the_duration_counts_in_short_batches() -> None:
    noise = DurationNoise(
        batch_ratio=0.05, autocorrelation=0.0, run_to_run_ratio=0.0, added_sd_s=0.03
    )
    expected_s = np.repeat([0.2, 20.0], 3000)
    spread = np.sqrt(np.log1p(0.05**2 + (0.03 / expected_s) ** 2))
    values = spread * np.random.default_rng(5).standard_normal(6000) - 0.5 * spread**2
    scores, _ = innovations_of(values, expected_s, noise)
    assert scores[:3000].std() == pytest.approx(1.0, abs=0.05)
    assert scores[3000:].std() == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("noise", [a_noise(), a_noise(0.5), a_noise(0.999999, persistence=0.6)])
def test_what_is_left_of_a_shift(noise: DurationNoise) -> None:
    spread = math.sqrt(math.log1p(noise.batch_ratio**2))
    shifted = np.full(400, spread - 0.5 * spread**2)
    scores, _ = innovations_of(shifted, np.ones(400), noise)
    assert scores[-1] == pytest.approx(lasting_score(1.0, noise), rel=1e-6)


def test_the_level_of_a_run_is_known_as_well_as_its_batches_tell_it() -> None:
    noise = a_noise(between_runs=0.2)
    runs = log_ratios(noise, 400, 25, seed=6)
    level = np.array([innovations_of(run, np.ones(25), noise)[1][-1] for run in runs])
    # Its variance is that of runs, less what is still unknown.
    log_variance = math.log1p(0.1**2)
    unknown = 1.0 / (1.0 / 0.2**2 + 25.0 / log_variance)
    assert level.std() == pytest.approx(math.sqrt(0.2**2 - unknown), rel=0.1)


@pytest.mark.parametrize("noise", NOISES)
def test_false_alarms_are_as_rare_as_stated(noise: DurationNoise) -> None:
    """Runs of 800 batches, so long apart that one false alarm comes in 4,000."""
    num_runs, num_batches, run_length = 250, 800, 4000.0
    alarms = sum(
        drift_found(
            np.zeros(num_batches), np.exp(run), fixed_s=1.0, per_row_s=0.0, noise=noise,
            interval_s=FALSE_ALARM_S.value / run_length,
        )
        is not None
        for run in log_ratios(noise, num_runs, num_batches, seed=7)
    )  # fmt: skip
    stated = 1.0 - math.exp(-num_batches / run_length) + FALSE_LEVEL_RATIO.value
    error = math.sqrt(stated * (1.0 - stated) / num_runs)
    assert stated / 4.0 <= alarms / num_runs <= stated + 3.0 * error


def test_noise_that_few_batches_tell_raises_no_more_alarms_than_stated() -> None:
    """Profiles of ten batches: their estimate taken for the noise itself finds drifts in noise."""
    random = np.random.default_rng(11)
    true_ratio, num_runs, num_free = 0.1, 200, 9

    def alarms(least_free: float) -> float:
        found = 0
        for _ in range(num_runs):
            seen = float(np.std(true_ratio * random.standard_normal(num_free + 1), ddof=1))
            taken = noise_at_most(seen, least_free, FALSE_LEVEL_RATIO.value)
            noise = DurationNoise(batch_ratio=taken, autocorrelation=0.0, run_to_run_ratio=0.2)
            run = np.exp(true_ratio * random.standard_normal(400) - 0.5 * true_ratio**2)
            found += drift_found(
                np.zeros(400), run, fixed_s=1.0, per_row_s=0.0, noise=noise, interval_s=10.0
            ) is not None  # fmt: skip
        return found / num_runs

    stated = FALSE_LEVEL_RATIO.value + 400 * 10.0 / FALSE_ALARM_S.value
    most = stated + 3.0 * math.sqrt(stated / num_runs)
    assert alarms(1e9) > most
    assert alarms(num_free) <= most


@pytest.mark.parametrize("noise", NOISES[:3])
def test_a_drift_by_three_tenths_is_found_within_the_stated_delay(noise: DurationNoise) -> None:
    num_before, num_runs = 600, 60
    runs = log_ratios(noise, num_runs, num_before + 1500, seed=8)
    runs[:, num_before:] += math.log(1.3)
    stated = batches_to_find(
        1.3, expected_s=1.0, noise=noise, interval_s=10.0, num_before=num_before
    )
    delays = []
    for run in runs:
        found = drift_found(
            np.zeros(len(run)), np.exp(run), fixed_s=1.0, per_row_s=0.0, noise=noise,
            interval_s=10.0,
        )  # fmt: skip
        assert found is not None
        (batch, _), _ = found
        if batch >= num_before:
            delays.append(batch + 1 - num_before)
    assert len(delays) >= 0.9 * num_runs
    assert 0.7 * stated <= float(np.mean(delays)) <= 1.3 * stated


def test_a_run_that_lies_as_far_off_as_runs_do_is_no_drift_and_one_far_beyond_is() -> None:
    noise = a_noise(between_runs=0.1)
    batches = np.exp(log_ratios(a_noise(), 1, 500, seed=9)[0])
    how = {"fixed_s": 1.0, "per_row_s": 0.0, "noise": noise, "interval_s": 1.0}
    assert drift_found(np.zeros(500), 1.15 * batches, **how) is None  # type: ignore[arg-type]
    found = drift_found(np.zeros(500), 1.6 * batches, **how)  # type: ignore[arg-type]
    assert found is not None
    (batch, first_batch), _ = found
    assert first_batch == 0
    assert batch < 10


def test_one_batch_is_no_drift() -> None:
    noise = a_noise(between_runs=0.1)
    batches = np.exp(log_ratios(a_noise(), 1, 300, seed=10)[0])
    batches[100] *= 20.0
    how = {"fixed_s": 1.0, "per_row_s": 0.0, "noise": noise, "interval_s": 10.0}
    assert drift_found(np.zeros(300), batches, **how) is None  # type: ignore[arg-type]


def test_refusals() -> None:
    with pytest.raises(ValueError, match="num_free above 0"):
        noise_at_most(0.1, 0, 0.01)
    with pytest.raises(ValueError, match="positive modelled durations"):
        innovations_of(np.zeros(1), np.zeros(1), a_noise())
    with pytest.raises(ValueError, match="need noise"):
        lasting_score(1.0, a_noise(cv=0.0))
