"""What earlier days say about the rate: when it is used, and what it is made of."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headway.models.estimation.daily_rates import DailyRates, with_rows

DAY, SLOT_S, DAY_S = 288, 300.0, 86400.0
EIGHT = 96
"""The slot that begins at eight o'clock."""


def days_of(num_days: int, noise_ratio: float, *, high: float = 300.0, seed: int = 1) -> DailyRates:
    """Working hours from eight to four at another rate than the rest of the day."""
    draw = np.random.default_rng(seed)
    rates = {}
    for slot in range(num_days * DAY):
        level = high if EIGHT <= slot % DAY < 2 * EIGHT else 100.0
        rates[slot] = float(level * np.exp(noise_ratio * draw.standard_normal()))
    return DailyRates.of(rates)


@pytest.mark.parametrize("noise_ratio", [0.0, 0.03])
@pytest.mark.parametrize("num_days", [2, 3, 4, 9])
def test_a_step_that_repeats_is_foreseen(num_days: int, noise_ratio: float) -> None:
    daily = days_of(num_days, noise_ratio)
    eight_s = num_days * DAY_S + EIGHT * SLOT_S
    assert daily.factor(eight_s - 150.0, 300.0) == pytest.approx(3.0, rel=4 * noise_ratio + 1e-9)
    assert daily.factor(eight_s - 3600.0, 90.0) == pytest.approx(1.0, abs=4 * noise_ratio + 1e-9)
    assert daily.factor(eight_s + 3600.0, 90.0) == pytest.approx(1.0, abs=4 * noise_ratio + 1e-9)
    # It also falls; what is prepared for does not.
    assert daily.factor(eight_s + 8 * 3600.0 - 150.0, 300.0) == pytest.approx(1 / 3, rel=0.2)


def test_one_day_is_no_pattern() -> None:
    daily = days_of(1, 0.0)
    assert not daily.repeats
    assert daily.factor(DAY_S + EIGHT * SLOT_S - 150.0, 300.0) == 1.0


@pytest.mark.parametrize("seed", range(20))
def test_noise_alone_is_no_pattern(seed: int) -> None:
    assert not days_of(4, 0.1, high=100.0, seed=seed).repeats


def test_a_step_at_another_time_each_day_is_no_pattern() -> None:
    rates = {}
    for slot in range(4 * DAY):
        day, place = divmod(slot, DAY)
        rates[slot] = 300.0 if 40 * (day + 1) <= place < 40 * (day + 2) else 100.0
    assert not DailyRates.of(rates).repeats


class Looks:
    """Looks at a source, as the rule makes them: rows between them are differences of a count."""

    def __init__(self, at_s: float = 0.0) -> None:
        self.daily, self.at_s, self.rows = DailyRates(), at_s, 0.0

    def look(self, at_s: float, rows: float) -> None:
        self.daily = with_rows(self.daily, self.at_s, at_s, rows - self.rows)
        self.at_s, self.rows = at_s, rows

    def run(self, per_s: float, until_s: float, step_s: float = 20.0) -> None:
        while self.at_s < until_s:
            self.look(self.at_s + step_s, self.rows + per_s * step_s)


@pytest.mark.parametrize("step_s", [2.0, 20.0, 100.0, 150.0])
def test_rates_are_means_of_slots(step_s: float) -> None:
    source = Looks()
    source.run(10.0, 600.0, step_s)
    source.run(40.0, 1500.0, step_s)
    assert source.daily.rates_per_s == pytest.approx({0: 10.0, 1: 10.0, 2: 40.0, 3: 40.0})


def test_before_the_first_look_nothing_is_counted() -> None:
    assert with_rows(DailyRates(), math.nan, 100.0, 99.0) == DailyRates()


def test_a_time_without_looks_is_left_out() -> None:
    source = Looks()
    source.run(10.0, 660.0)
    source.look(1300.0, 99_000.0)
    source.look(1301.0, 99_010.0)
    source.run(10.0, 1840.0)
    assert source.daily.rates_per_s == pytest.approx({0: 10.0, 1: 10.0, 4: 10.0, 5: 10.0})


def test_a_count_that_falls_is_of_another_source() -> None:
    source = Looks()
    source.run(10.0, 160.0)
    source.look(180.0, 0.0)
    source.run(10.0, 340.0)
    assert source.daily.rates_per_s == pytest.approx({0: 10.0})


def test_only_the_last_days_are_kept() -> None:
    source = Looks(at_s=4 * DAY * SLOT_S)
    source.daily = DailyRates.of(dict.fromkeys(range(4 * DAY), 1.0))
    source.run(1.0, source.at_s + 640.0)
    assert min(source.daily.rates_per_s) == 2
    assert len(source.daily.rates_per_s) == 4 * DAY
