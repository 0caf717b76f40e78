"""Offsets against a clock that is stepped through, and rows removed against a queue."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from headway.models.scheduling.stagger import common_period_s, stagger_offsets_s
from tests.oracles.closed_forms import can_be_apart, never_collide
from tests.oracles.operator_scheduling import rows_removed

STEP_S = 0.25


def do_overlap(periods: list[float], durations: list[float], offsets: list[float]) -> bool:
    """Step through the least common multiple of the periods."""
    length = float(np.lcm.reduce([round(period / STEP_S) for period in periods])) * STEP_S
    middles = np.arange(0.0, length, STEP_S) + STEP_S / 2.0
    running = [
        (middles - offset) % period < duration
        for period, duration, offset in zip(periods, durations, offsets, strict=True)
    ]
    return bool((np.sum(running, axis=0) > 1).any())


def test_two_queries_collide_exactly_when_the_condition_says() -> None:
    for (one, other), first_s, second_s, offset_s in itertools.product(
        ((4.0, 6.0), (3.0, 3.0), (2.0, 1.5)), (0.25, 0.5, 1.0), (0.25, 1.0), np.arange(0, 6, 0.5)
    ):
        apart = not do_overlap([one, other], [first_s, second_s], [0.0, float(offset_s)])
        assert never_collide(one, first_s, 0.0, other, second_s, float(offset_s)) == apart


def test_some_offset_keeps_two_apart_exactly_when_both_fit_in_the_common_period() -> None:
    for one, other, first_s, second_s in itertools.product(
        (4.0, 3.0), (6.0, 2.0), (0.5, 1.0), (0.25, 1.25)
    ):
        some = any(
            never_collide(one, first_s, 0.0, other, second_s, float(offset))
            for offset in np.arange(0.0, other, 0.25)
        )
        assert can_be_apart(one, first_s, other, second_s) == some
    assert can_be_apart(4.0, 1.0, 6.0, 1.0)
    assert not can_be_apart(4.0, 1.2, 6.0, 0.9)


def test_queries_that_fit_are_placed_apart() -> None:
    periods, durations = [1.0] * 4 + [2.0] * 2, [0.25, 0.25, 0.125, 0.125, 0.125, 0.125]
    offsets = list(stagger_offsets_s(periods, durations))
    assert not any(
        not never_collide(
            periods[a], durations[a], offsets[a], periods[b], durations[b], offsets[b]
        )
        for a, b in itertools.combinations(range(6), 2)
    )
    assert all(0.0 <= offset < period for offset, period in zip(offsets, periods, strict=True))


def test_queries_that_do_not_fit_overlap_less_than_on_the_grid() -> None:
    periods, durations = [1.0] * 8, [0.25] * 8
    offsets = np.array(stagger_offsets_s(periods, durations))
    at_once = [(((moment - offsets) % 1.0) < 0.25).sum() for moment in np.arange(0.01, 1.0, 0.02)]
    assert max(at_once) <= 3
    assert np.mean(at_once) == pytest.approx(2.0, abs=0.2)


def test_a_query_ticks_where_its_windows_close_if_it_can() -> None:
    assert stagger_offsets_s([1.0, 1.0], [0.2, 0.3], [0.7, 0.1]) == (0.7, 0.1)


def test_periods_are_whole_milliseconds() -> None:
    assert common_period_s([0.1, 0.3]) == pytest.approx(0.1)
    with pytest.raises(ValueError, match="whole milliseconds"):
        common_period_s([0.0])


def test_rows_at_an_operator_pass_only_what_comes_after_it() -> None:
    queues, selectivities = [100.0, 60.0, 40.0], [0.5, 0.5, 0.1]
    left, removed = 0.0, 0.0
    for rows, selectivity in zip(queues, selectivities, strict=True):
        passing = left + rows
        left = passing * selectivity
        removed += passing - left
    assert rows_removed(queues, selectivities) == pytest.approx(removed) == pytest.approx(190.5)
