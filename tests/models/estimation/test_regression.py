"""Estimation: known parameters come back from synthetic data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.assumptions.predictions import (
    POOLED_RUNS,
    POOLED_SPREAD_RATIO,
    USUAL_RUN_TO_RUN_RATIO,
)
from headway.models.arrays import Array
from headway.models.estimation.regression import (
    drift_exponent,
    driver_drift_exponent,
    is_spread,
    is_spread_within,
    lag_one_correlation,
    power_law,
    relative_huber,
    run_to_run_ratio,
)
from headway.models.estimation.warm_up import warm_up_length
from tests.models.estimation.batches import lognormal


def two_loads(num_batches: int) -> Array:
    return np.tile([5000.0, 15000.0], num_batches // 2)


def line(rows: Array) -> Array:
    return np.column_stack([np.ones_like(rows), rows])


def test_a_warm_up_is_cut_where_it_ends() -> None:
    random = np.random.default_rng(1)
    age = np.arange(200.0)
    series = lognormal(random, 0.05, 200) * (1.0 + 2.0 * np.exp(-age / 8.0))
    assert 20 <= warm_up_length(series) <= 60


def test_a_steady_series_is_left_almost_whole() -> None:
    cuts = [warm_up_length(lognormal(np.random.default_rng(seed), 0.1, 100)) for seed in range(30)]
    assert np.median(cuts) <= 10


def test_a_warm_up_is_never_more_than_half() -> None:
    assert warm_up_length(np.linspace(10.0, 1.0, 31)) == 15
    assert warm_up_length(np.array([9.0, 1.0, 1.0])) == 0
    assert warm_up_length(np.array([])) == 0


@given(values=st.lists(st.floats(0.1, 10.0), min_size=1, max_size=60))
def test_a_cut_lies_within_the_first_half(values: list[float]) -> None:
    assert 0 <= warm_up_length(np.array(values)) <= len(values) // 2


def test_two_loads_are_spread_from_a_ratio_of_five_thirds() -> None:
    assert not is_spread(np.array([1.0, 1.6]))
    assert is_spread(np.array([1.0, 1.7]))
    assert not is_spread(np.zeros(4))


def test_spread_within_batches_is_a_mean_of_variances() -> None:
    assert is_spread_within(np.array([0.0, 18.0]), np.array([10.0, 10.0]))
    assert not is_spread_within(np.array([0.0, 8.0]), np.array([10.0, 10.0]))
    assert not is_spread_within(np.array([1.0]), np.array([0.0]))


def test_a_line_is_found_exactly_without_noise() -> None:
    rows = two_loads(10)
    found = relative_huber(line(rows), 2.0 + 3e-4 * rows, np.ones(10))
    assert found == pytest.approx([2.0, 3e-4], rel=1e-9)


def test_a_line_is_found_under_noise_without_bias() -> None:
    rows = two_loads(60)
    found = np.array(
        [
            relative_huber(
                line(rows),
                (2.0 + 3e-4 * rows) * lognormal(np.random.default_rng(seed), 0.1, 60),
                np.ones(60),
            )
            for seed in range(80)
        ]
    )
    assert found.mean(axis=0) == pytest.approx([2.0, 3e-4], rel=0.02)
    # Section 10.1 of the design note finds 6.1% and 4.9% with outliers.
    assert np.std(found, axis=0) / [2.0, 3e-4] == pytest.approx([0.05, 0.045], abs=0.02)


def test_outliers_do_not_pull_the_line() -> None:
    rows = two_loads(60)
    found = []
    for seed in range(40):
        random = np.random.default_rng(seed)
        duration_s = (2.0 + 3e-4 * rows) * lognormal(random, 0.1, 60)
        duration_s = duration_s + (random.random(60) < 0.05) * random.exponential(20.0, 60)
        found.append(relative_huber(line(rows), duration_s, np.ones(60)))
    at_10k = np.array(found) @ [1.0, 10000.0]
    assert np.median(at_10k) == pytest.approx(5.0, rel=0.03)
    assert np.sqrt(np.mean((at_10k / 5.0 - 1.0) ** 2)) < 0.06


def test_coefficients_are_never_negative() -> None:
    rows = two_loads(20)
    falling = 10.0 - 3e-4 * rows
    found = relative_huber(line(rows), falling, np.ones(20))
    assert found[1] == 0.0
    assert falling.min() <= found[0] <= falling.max()


def test_weights_count_as_repetitions() -> None:
    random = np.random.default_rng(5)
    rows = two_loads(20)
    duration_s = (2.0 + 3e-4 * rows) * lognormal(random, 0.2, 20)
    weights = np.tile([1.0, 3.0], 10)
    repeated = np.repeat(np.arange(20), weights.astype(int))
    # Huber's scale is a plain median, which weights do not move: tame noise leaves all at one.
    weighted = relative_huber(line(rows), duration_s, weights)
    assert weighted == pytest.approx(
        relative_huber(line(rows)[repeated], duration_s[repeated], np.ones(len(repeated))),
        rel=0.03,
    )


@given(scale=st.floats(1e-3, 1e3), exponent=st.floats(0.0, 1.0))
def test_a_power_law_comes_back(scale: float, exponent: float) -> None:
    x = np.array([100.0, 1000.0, 5000.0])
    law = power_law(x, scale * x**exponent, np.array([1.0, 2.0, 3.0]))
    assert law.scale == pytest.approx(scale, rel=1e-6)
    assert law.exponent == pytest.approx(exponent, abs=1e-8)


def test_a_noisy_power_law_comes_back() -> None:
    random = np.random.default_rng(2)
    x = random.uniform(1e3, 1e5, 400)
    law = power_law(x, 3.5 * x**0.7 * lognormal(random, 0.1, 400), np.ones(400))
    assert law.exponent == pytest.approx(0.7, abs=0.02)
    assert law.scale * 1e4**law.exponent == pytest.approx(3.5 * 1e4**0.7, rel=0.02)


def test_a_power_law_is_kept_between_constant_and_proportional() -> None:
    x = np.array([1.0, 10.0])
    assert power_law(x, x**2, np.ones(2)).exponent == 1.0
    assert power_law(x, 1 / x, np.ones(2)).exponent == 0.0


def test_one_load_is_taken_as_proportional() -> None:
    law = power_law(np.array([100.0, 101.0]), np.array([50.0, 50.5]), np.ones(2))
    assert law.exponent == 1.0
    assert law.scale == pytest.approx(0.5)


def nearly_one_size(random: np.random.Generator) -> Array:
    return np.rint(1e4 * lognormal(random, 0.04, 100))


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
def test_batches_of_nearly_one_size_show_how_rows_follow_them(exponent: float) -> None:
    random = np.random.default_rng(3)
    x = nearly_one_size(random)
    # As behind a partial aggregate: by the number of keys, not by chance.
    y = np.rint(400.0 * (x / 1e4) ** exponent * lognormal(random, 0.002, 100))
    assert power_law(x, y, np.full(100, 0.01)).exponent == pytest.approx(exponent, abs=0.05)


def test_batches_of_nearly_one_size_and_rows_by_chance_are_taken_as_proportional() -> None:
    random = np.random.default_rng(4)
    x = nearly_one_size(random)
    assert power_law(x, np.rint(400.0 * lognormal(random, 0.3, 100)), np.ones(100)).exponent == 1.0
    # Of a few rows, whole numbers hide how they follow the batch.
    assert power_law(x, np.rint(3.0 * x / 1e4), np.ones(100)).exponent == 1.0
    # One batch differs, as the last before the end of a backlog.
    one_differs = np.append(np.full(99, 1e4), 9e3)
    assert power_law(one_differs, np.full(100, 400.0), np.ones(100)).exponent == 1.0


def autocorrelated(random: np.random.Generator, correlation: float, size: int) -> Array:
    values = random.standard_normal(size)
    for place in range(1, size):
        fresh = np.sqrt(1 - correlation**2) * values[place]
        values[place] = correlation * values[place - 1] + fresh
    return values


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.6])
@pytest.mark.parametrize(("num_runs", "size"), [(1, 40), (4, 25), (2, 400)])
def test_correlation_comes_back_on_average(correlation: float, num_runs: int, size: int) -> None:
    random = np.random.default_rng(3)
    found = []
    for _ in range(200):
        runs = [autocorrelated(random, correlation, size) for _ in range(num_runs)]
        found.append(lag_one_correlation([values - values.mean() for values in runs]))
    # None below zero: for independent batches what is cut off lifts the average.
    spread = np.sqrt(1 / (num_runs * size))
    assert np.mean(found) == pytest.approx(correlation, abs=0.03 + 0.5 * spread)


def test_correlation_has_bounds() -> None:
    assert lag_one_correlation([np.array([1.0, -1.0] * 20)]) == 0.0
    assert lag_one_correlation([np.repeat([1.0, -1.0], 500)]) == 0.9
    assert lag_one_correlation([np.ones(5)]) == 0.0
    assert lag_one_correlation([]) == 0.0
    assert 0 <= lag_one_correlation([np.zeros(50)]) <= 0.1


FRESH = np.array([True])


@pytest.mark.parametrize("exponent", [0.0, 0.1, 0.4])
def test_drift_comes_back_from_one_long_run(exponent: float) -> None:
    random = np.random.default_rng(4)
    log_age = np.log(np.linspace(30.0, 1200.0, 400))
    log_ratio = -exponent * log_age + 0.05 * random.standard_normal(400)
    found = drift_exponent(log_ratio, log_age, np.zeros(400, dtype=int), FRESH)
    assert found == pytest.approx(exponent, abs=0.01)


def test_drift_is_distinguished_from_differences_of_few_runs() -> None:
    log_age = np.log(np.array([100.0] * 20 + [1000.0] * 20))
    run = np.repeat([0, 1], 20)
    # The later run is faster, but two runs differ by chance.
    log_ratio = np.where(run == 0, 0.1, -0.1) + 0.01 * np.tile([1.0, -1.0], 20)
    assert drift_exponent(log_ratio, log_age, run, FRESH.repeat(2)) == pytest.approx(0.0, abs=1e-9)


def test_many_runs_tell_drift_between_them() -> None:
    ages = np.log(np.geomspace(60.0, 6000.0, 8))
    run = np.repeat(np.arange(8), 10)
    noise = 0.01 * np.tile([1.0, -1.0], 40)
    found = drift_exponent(-0.2 * ages[run] + noise, ages[run], run, ~FRESH.repeat(8))
    assert found == pytest.approx(0.2, abs=0.01)


def test_drift_stays_between_none_and_a_half() -> None:
    log_age = np.log(np.linspace(30.0, 1200.0, 100))
    run = np.zeros(100, dtype=int)
    assert drift_exponent(0.3 * log_age, log_age, run, FRESH) == 0.0
    assert drift_exponent(-3.0 * log_age, log_age, run, FRESH) == 0.5
    # One batch tells nothing.
    assert drift_exponent(np.array([0.3]), np.array([5.0]), np.array([0]), FRESH) == 0.0


def test_little_evidence_of_drift_is_drawn_to_none() -> None:
    log_age = np.log(np.linspace(100.0, 110.0, 5))
    noise = 0.1 * np.array([1.0, -2.0, 0.0, 2.0, -1.0])
    log_ratio = -0.4 * (log_age - log_age.mean()) + noise
    assert 0.0 <= drift_exponent(log_ratio, log_age, np.zeros(5, int), FRESH) < 0.05


def test_the_first_minutes_of_a_query_in_an_old_jvm_are_no_drift() -> None:
    # Its own code falls by a tenth in three minutes, in which the JVM hardly becomes older.
    log_age = np.log(np.linspace(600.0, 780.0, 180))
    log_ratio = -0.04 * np.log(np.linspace(20.0, 200.0, 180))
    run = np.zeros(180, dtype=int)
    assert drift_exponent(log_ratio, log_age, run, FRESH) > 0.25
    assert drift_exponent(log_ratio, log_age, run, ~FRESH) == 0.0


def test_spread_between_runs_is_the_usual_until_many_are_seen() -> None:
    random = np.random.default_rng(6)
    two = np.zeros(2)
    long, short = {"num_effective": 1e9}, {"num_effective": 9.0}
    usual = USUAL_RUN_TO_RUN_RATIO.value
    assert run_to_run_ratio(two, 5, 0.3, **long) == pytest.approx(pooled(usual, 3))
    # Means of nine batches that differ by 0.3 lie 0.1 apart by chance.
    by_chance = np.hypot(usual, 0.1)
    assert run_to_run_ratio(two, 5, 0.3, **short) == pytest.approx(pooled(by_chance, 3))
    many = 0.2 * random.standard_normal(400)
    assert run_to_run_ratio(many, 5, 0.05, **long) == pytest.approx(0.2, rel=0.1)
    quiet = run_to_run_ratio(np.zeros(20), 5, 0.05, **long)
    assert quiet == pytest.approx(pooled(usual * np.sqrt(3 / 18), 18))


def test_what_a_fit_of_few_runs_leaves_unexplained_is_spread_between_them() -> None:
    left = run_to_run_ratio(np.array([0.2, -0.1, 0.0]), 5, 0.05, num_effective=1e9)
    own = np.sqrt((3 * USUAL_RUN_TO_RUN_RATIO.value**2 + 0.05) / 3)
    assert left == pytest.approx(pooled(own, 3))
    # Halfway at six runs, which leave four for the spread.
    six = run_to_run_ratio(np.full(6, 0.2), 5, 0.05, num_effective=1e9)
    own = np.sqrt((3 * USUAL_RUN_TO_RUN_RATIO.value**2 + 6 * 0.2**2) / 4)
    assert six == pytest.approx(np.sqrt((own**2 + POOLED_SPREAD_RATIO.value**2) / 2))


def pooled(own_ratio: float, num_runs: int) -> float:
    """Drawn to what other jobs show, beside a spread that stands for so many runs."""
    share = num_runs / (num_runs + POOLED_RUNS.value)
    return float(np.sqrt(share * own_ratio**2 + (1 - share) * POOLED_SPREAD_RATIO.value**2))


@pytest.mark.parametrize("exponent", [0.0, 0.1, 0.3])
def test_the_driver_has_a_drift_of_its_own(exponent: float) -> None:
    ages = np.log(np.geomspace(60.0, 3_000.0, 12))
    found = driver_drift_exponent(-exponent * ages, ages)
    assert found == pytest.approx(exponent, abs=0.02)
    # Of one run nothing is known but what is usual; of two that lie close, little.
    assert driver_drift_exponent(np.zeros(1), ages[:1]) == pytest.approx(0.1)
    close = driver_drift_exponent(np.array([0.3, 0.0]), np.log([100.0, 110.0]))
    assert close == pytest.approx(0.1, abs=0.15)


def three_runs(rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Tasks of 10 ms and 10 us a row in three runs, each off by a tenth as a whole."""
    rows = np.repeat([15e3, 30e3, 90e3], 8)
    off = np.repeat(np.exp(rng.normal(0.0, 0.1, 3)), 8)
    return rows, (0.010 + 1e-5 * rows) * off, np.full(24, 1 / 8)


def test_what_is_known_of_small_tasks_keeps_odd_runs_from_bending_the_line() -> None:
    prior = np.array([0.008, 0.0]), np.array([0.01, np.inf])
    rng = np.random.default_rng(1)
    errors = []
    for _ in range(200):
        rows, time_s, weights = three_runs(rng)
        terms = np.column_stack([np.ones_like(rows), rows])
        small = np.array([1.0, 2e3])
        estimates = [
            float(relative_huber(terms, time_s, weights, p) @ small) for p in (prior, None)
        ]
        errors.append(np.abs(np.log(np.array(estimates) / 0.030)))
    with_prior, without = np.mean(errors, axis=0)
    assert with_prior < 0.7 * without
    assert with_prior < 0.3


def test_data_that_tells_overrules_what_was_thought() -> None:
    rows = np.repeat([100.0, 1e5], 8)
    time_s = 0.2 + 1e-6 * rows
    prior = np.array([0.005, 0.0]), np.array([0.03, np.inf])
    fixed_s, per_row_s = relative_huber(
        np.column_stack([np.ones(16), rows]), time_s, np.full(16, 1 / 8), prior
    )
    assert fixed_s == pytest.approx(0.2, rel=0.3)
    assert fixed_s + 1e5 * per_row_s == pytest.approx(0.3, rel=0.1)
