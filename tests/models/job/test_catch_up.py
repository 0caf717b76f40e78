"""Arrivals that are late until a backlog is worked off, held against a queue in small steps."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from headway.models.job.catch_up import catch_up_late_s
from headway.models.job.change_pause import pause_late_s

RATE = 800.0
STEP_S = 0.002


def stepped_s(
    backlog: float, now: float, then: float, wait_s: float, pause_s: float, slack_s: float
) -> float:
    """The same by following the queue: cumulative arrivals against cumulative departures."""
    at_s = np.arange(0.0, 400.0, STEP_S)
    rates = np.where(at_s < wait_s, now, np.where(at_s < wait_s + pause_s, 0.0, then))
    could = np.cumsum(rates * STEP_S)
    there = backlog + RATE * (at_s + STEP_S)
    # In each step as many as could leave, but no more than there are: since the last step that left
    # none, or since the beginning.
    since = np.minimum(np.minimum.accumulate(there - could), 0.0)
    served = np.append(0.0, could + since)
    ends_s = np.append(at_s, at_s[-1] + STEP_S)
    arrived_s = np.arange(0.0, 200.0, STEP_S)
    number = np.searchsorted(served, backlog + RATE * arrived_s - 1e-6)
    late = ends_s[np.minimum(number, len(ends_s) - 1)] - arrived_s > slack_s + STEP_S
    return float(late.sum() * STEP_S)


@pytest.mark.parametrize(
    ("backlog", "now", "wait_s", "pause_s"),
    [
        *itertools.product(
            (0.0, 500.0, 9000.0), (450.0, 900.0, 1300.0), (0.0, 4.0, 12.0), (0.0, 2.5)
        )
    ],
)
def test_it_is_what_the_queue_does(
    backlog: float, now: float, wait_s: float, pause_s: float
) -> None:
    slack_s = 1.5
    found = catch_up_late_s(
        backlog, RATE, drained_now_per_s=now, drained_then_per_s=1400.0, wait_s=wait_s,
        pause_s=pause_s, slack_s=slack_s,
    )  # fmt: skip
    assert found == pytest.approx(
        stepped_s(backlog, now, 1400.0, wait_s, pause_s, slack_s), abs=0.05
    )


def test_without_backlog_and_wait_it_is_a_pause() -> None:
    for pause_s in (0.0, 1.0, 7.5):
        found = catch_up_late_s(
            0.0, RATE, drained_now_per_s=1400.0, drained_then_per_s=1400.0, wait_s=0.0,
            pause_s=pause_s, slack_s=1.5,
        )  # fmt: skip
        assert found == pause_late_s(pause_s, 1.5, RATE / 1400.0)


def test_it_needs_rates_above_zero_and_nothing_below() -> None:
    usual = {"drained_now_per_s": 900.0, "drained_then_per_s": 1400.0, "wait_s": 1.0,
             "pause_s": 1.0, "slack_s": 1.0}  # fmt: skip
    for changed in ({"drained_now_per_s": 0.0}, {"wait_s": -1.0}, {"slack_s": float("nan")}):
        with pytest.raises(ValueError, match="need rates above 0"):
            catch_up_late_s(100.0, RATE, **{**usual, **changed})
