"""Drift of costs: found as soon, and falsely as seldom, as the formulas say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headway.assumptions.live import FACTOR_WEIGHT_RATIO
from headway.domain import DurationNoise
from headway.models.arrays import Array
from headway.models.estimation.cost_drift import (
    batches_to_find,
    cost_factor,
    drift_found,
    level_error_ratio,
)
from headway.models.estimation.drift import Alarm, Shift

NOISE, PHI = 0.1, 0.3
OF_RUNS = DurationNoise(
    batch_ratio=NOISE, autocorrelation=1.0 - 1e-9, run_to_run_ratio=0.003, persistence_ratio=PHI
)
FIXED_S, PER_ROW_S = 0.4, 1e-5


def batches(num: int, ratio: float, since: int, seed: int) -> tuple[Array, Array]:
    """Rows and durations with noise that lasts a little, costlier from a batch on."""
    random = np.random.default_rng(seed)
    log_sd = math.sqrt(math.log1p(NOISE**2))
    score = np.empty(num)
    score[0] = random.standard_normal()
    for place in range(1, num):
        score[place] = PHI * score[place - 1] + math.sqrt(1 - PHI**2) * random.standard_normal()
    rows = random.uniform(2e4, 2e5, num)
    factor = np.where(np.arange(num) >= since, ratio, 1.0)
    mean = (FIXED_S + PER_ROW_S * rows) * factor
    return rows, mean * np.exp(log_sd * score - 0.5 * log_sd**2)


def found(rows: Array, duration_s: Array, interval_s: float = 10.0) -> tuple[Alarm, Shift] | None:
    return drift_found(
        rows, duration_s, fixed_s=FIXED_S, per_row_s=PER_ROW_S, noise=OF_RUNS,
        interval_s=interval_s,
    )  # fmt: skip


def test_a_drift_is_found_when_and_as_what_it_is() -> None:
    drift = found(*batches(400, 1.25, 200, seed=1))
    assert drift is not None
    (batch, first_batch), shift = drift
    assert 190 <= first_batch <= 206
    assert 200 <= batch <= 240
    assert shift.kind == "everything"
    assert shift.ratio == pytest.approx(1.25, rel=0.03)


def test_the_delay_is_the_predicted_one() -> None:
    delays = []
    for seed in range(60):
        drift = found(*batches(500, 1.2, 100, seed))
        assert drift is not None
        (batch, _), _ = drift
        delays.append(batch - 99)
    predicted = batches_to_find(1.2, expected_s=1.0, noise=OF_RUNS, interval_s=10.0, num_before=100)
    # The sum is not at zero when the drift begins: a little sooner than from there.
    assert 0.7 * predicted <= float(np.mean(delays)) <= 1.15 * predicted


def test_without_a_drift_there_is_no_alarm_for_days() -> None:
    # A day of batches every ten seconds each: 60 days, one alarm in 30 days and sides of two.
    alarms = sum(found(*batches(8640, 1.0, 0, seed)) is not None for seed in range(60))
    assert alarms <= 6


def test_a_query_that_has_become_faster_is_found_too() -> None:
    drift = found(*batches(300, 0.75, 100, seed=3))
    assert drift is not None
    assert drift[1].ratio == pytest.approx(0.75, rel=0.05)


def test_the_factor_goes_to_the_new_costs_and_leaves_an_eighth_of_the_noise() -> None:
    rows, duration_s = batches(4000, 1.5, 0, seed=4)
    log_factor, seen = 0.0, []
    for one, took_s in zip(rows.tolist(), duration_s.tolist(), strict=True):
        log_factor = cost_factor(log_factor, took_s, FIXED_S + PER_ROW_S * one)
        seen.append(log_factor)
    late = np.array(seen[500:])
    assert float(np.exp(late.mean())) == pytest.approx(1.5, rel=0.02)
    # Noise that lasts from batch to batch leaves sqrt((1 + phi)/(1 - phi)) of it more.
    assert late.std() == pytest.approx(NOISE * math.sqrt(0.03 / 1.97 * 1.3 / 0.7), rel=0.35)


def test_arguments_outside_their_range_are_refused() -> None:
    with pytest.raises(ValueError, match="positive durations"):
        cost_factor(0.0, 0.0, 1.0)
    with pytest.raises(ValueError, match="interval_s"):
        found(*batches(10, 1.0, 0, 1), interval_s=0.0)
    with pytest.raises(ValueError, match="positive ratio"):
        batches_to_find(0.0, expected_s=1.0, noise=OF_RUNS, interval_s=1.0, num_before=10)


@pytest.mark.parametrize(("num_batches", "num_at_setting"), [(10, 0), (60, 60), (400, 40)])
def test_what_a_factor_is_off_by_is_what_draws_say(num_batches: int, num_at_setting: int) -> None:
    noise = DurationNoise(
        batch_ratio=0.1, autocorrelation=0.3, run_to_run_ratio=0.06, persistence_ratio=0.8
    )
    spread, num_runs = 0.1, 4000
    random = np.random.default_rng(3)
    of_run = 0.06 * random.standard_normal(num_runs)
    of_setting = math.sqrt(spread**2 - 0.06**2) * random.standard_normal(num_runs)
    lasting = random.standard_normal(num_runs)
    factor = np.zeros(num_runs)
    for place in range(num_batches):
        lasting = 0.8 * lasting + 0.6 * random.standard_normal(num_runs)
        own = of_setting if place >= num_batches - num_at_setting else 0.0
        fresh = math.sqrt(0.7) * random.standard_normal(num_runs)
        score = of_run + own + 0.1 * (fresh + math.sqrt(0.3) * lasting)
        factor += FACTOR_WEIGHT_RATIO.value * (score - factor)
    off = float(np.std(of_run + of_setting - factor))
    found = level_error_ratio(noise, spread, num_batches, num_at_setting)
    assert found == pytest.approx(min(off, spread), rel=0.06)


def test_nothing_is_known_less_than_by_the_profile() -> None:
    noise = DurationNoise(batch_ratio=0.5, autocorrelation=0.9, run_to_run_ratio=0.01)
    assert level_error_ratio(noise, 0.02, 500, 500) == 0.02
    with pytest.raises(ValueError, match="more batches"):
        level_error_ratio(noise, 0.02, 5, 6)


def test_batches_of_one_size_tell_little_of_those_of_another() -> None:
    noise = DurationNoise(batch_ratio=0.1, autocorrelation=0.0, run_to_run_ratio=0.06)
    known, of_small, new = (
        level_error_ratio(noise, 0.6, *each) for each in ((500, 500), (500, 500, 0.2), (0, 0))
    )
    assert known < 0.02
    assert of_small == pytest.approx(math.sqrt(0.6**2 - 0.2**2), rel=0.01)
    assert new == 0.6
