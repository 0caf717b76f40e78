"""The forecast of a rate, held against what the streams were drawn from."""

from __future__ import annotations

import numpy as np
import pytest

from headway.assumptions.forecasts import LEAST_SPREAD_RATIO
from headway.assumptions.live import BIN_S
from headway.models.estimation.forecast import (
    RateForecast,
    error_spread,
    trend_line,
    with_arrivals,
    with_bin,
)


def after(rates: list[float]) -> RateForecast:
    found = RateForecast()
    for rate in rates:
        found = with_bin(found, rate)
    return found


def noisy(mean: float, ratio: float, num: int, seed: int = 1) -> list[float]:
    random = np.random.default_rng(seed)
    return [mean * (1.0 + ratio * float(one)) for one in random.standard_normal(num)]


def test_the_line_is_that_of_least_squares() -> None:
    random = np.random.default_rng(3)
    rates = (1000.0 + 20.0 * np.arange(40) + 5.0 * random.standard_normal(40)).tolist()
    slope, level = np.polyfit(np.arange(-29, 1), rates[-30:], 1)
    found_level, found_slope = trend_line(rates)
    assert found_slope == pytest.approx(slope, rel=1e-9)
    assert found_level == pytest.approx(level, rel=1e-9)


def test_noise_has_a_trend_as_rarely_as_three_standard_errors_say() -> None:
    found = [trend_line(noisy(1000.0, 0.1, 30, seed))[1] != 0.0 for seed in range(2000)]
    assert np.mean(found) < 0.012  # Student's t of 28 degrees: 0.0056


def test_the_spread_is_that_of_the_noise_and_a_jump_does_not_widen_it() -> None:
    errors = noisy(0.0, 0.0, 0) + (0.1 * np.random.default_rng(5).standard_normal(400)).tolist()
    assert error_spread(errors) == pytest.approx(0.1, rel=0.1)
    assert error_spread([*errors, 5.0, 6.0]) == pytest.approx(error_spread(errors), rel=0.02)
    assert error_spread([0.0] * 20) == LEAST_SPREAD_RATIO.value


def test_a_jump_is_certain_after_two_bins_and_drops_what_was_before() -> None:
    calm = after(noisy(1000.0, 0.03, 60))
    once = with_bin(calm, 3000.0)
    twice = with_bin(once, 3050.0)
    assert not once.is_jump
    assert twice.is_jump
    assert twice.level_per_s() == pytest.approx(3025.0)
    assert not with_bin(twice, 3000.0).is_jump


def test_one_odd_bin_is_no_jump_and_neither_are_two_on_different_sides() -> None:
    calm = after(noisy(1000.0, 0.03, 60))
    assert not with_bin(with_bin(calm, 3000.0), 1000.0).is_jump
    assert not with_bin(with_bin(calm, 3000.0), 200.0).is_jump


def test_noise_jumps_seldom() -> None:
    found = RateForecast()
    jumps = 0
    for rate in noisy(1000.0, 0.1, 4000, seed=7):
        found = with_bin(found, rate)
        jumps += found.is_jump
    assert jumps <= 4


def test_a_longer_mean_is_taken_where_it_foresees_better() -> None:
    found = after(noisy(1000.0, 0.2, 600, seed=2))
    short = np.mean(found.rates_per_s[-8:])
    assert abs(found.level_per_s() - 1000.0) < abs(short - 1000.0) or found.level_per_s() != short
    # A walk is foreseen best by its last values.
    steps = np.random.default_rng(4).standard_normal(600)
    walk = after((5000.0 + 150.0 * np.cumsum(steps)).clip(500.0).tolist())
    if walk.line()[1] == 0.0:
        assert walk.level_per_s() == pytest.approx(np.mean(walk.rates_per_s[-8:]))


def test_a_trend_is_continued() -> None:
    found = after([1000.0 + 10.0 * number for number in range(60)])
    assert found.forecast_per_s(4 * BIN_S.value) == pytest.approx(1590.0 + 40.0)


def test_counts_between_two_looks_are_even_and_no_row_is_lost() -> None:
    random = np.random.default_rng(8)
    at_s = np.cumsum(random.uniform(0.5, 40.0, 400))
    rows = np.cumsum(random.uniform(0.0, 5000.0, 400))
    found, rates = RateForecast(), 0.0
    for moment, count in zip(at_s.tolist(), rows.tolist(), strict=True):
        before = found.num_bins
        found = with_arrivals(found, moment, count)
        closed = found.num_bins - before
        rates += sum(found.rates_per_s[-closed:]) if closed else 0.0
        found = RateForecast(
            rates_per_s=found.rates_per_s[-2:], num_bins=found.num_bins, seen_s=found.seen_s,
            seen_rows=found.seen_rows, bin_s=found.bin_s, bin_rows=found.bin_rows,
        )  # fmt: skip
    assert found.num_bins == int((at_s[-1] - at_s[0]) // BIN_S.value)
    until = at_s[0] + found.num_bins * BIN_S.value
    expected = float(np.interp(until, at_s, rows)) - rows[0]
    assert rates * BIN_S.value == pytest.approx(expected, rel=0.05)


def test_a_count_that_falls_begins_anew() -> None:
    found = with_arrivals(with_arrivals(RateForecast(), 0.0, 0.0), 60.0, 6000.0)
    again = with_arrivals(found, 75.0, 10.0)
    assert again.rates_per_s == ()
    assert again.seen_rows == 10.0


def test_noise_that_lasts_for_some_bins_has_few_trends() -> None:
    found = []
    for seed in range(600):
        minutes = np.repeat(noisy(1000.0, 0.2, 8, seed), 4)[:30]
        found.append(trend_line(minutes.tolist())[1] != 0.0)
    # Taken as independent, they had one in every seventh case.
    assert np.mean(found) < 0.05


def test_a_fall_is_a_jump_in_noise_too() -> None:
    calm = after(noisy(1000.0, 0.25, 60, seed=3))
    assert 0.2 < calm.spread_ratio < 0.35
    assert with_bin(with_bin(calm, 150.0), 150.0).is_jump
    assert not with_bin(with_bin(calm, 500.0), 500.0).is_jump
    assert not with_bin(with_bin(calm, 2000.0), 2000.0).is_jump


def test_nothing_jumps_before_the_noise_is_known() -> None:
    young = after([1000.0] * 5)
    assert not young.tells_spread
    assert not with_bin(with_bin(young, 3000.0), 3000.0).is_jump
    assert after([1000.0] * 9).tells_spread
