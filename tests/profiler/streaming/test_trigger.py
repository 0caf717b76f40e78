from __future__ import annotations

import numpy as np
import pytest

from headway.models.arrays import Array
from headway.profiler.streaming.trigger import read_trigger


def on_grid(
    trigger_s: float, durations_s: Array, *, seed: int = 0, late_s: float = 0.004
) -> tuple[Array, Array]:
    """Starts by Spark's rule: on the grid after an idle gap, at once when a batch ran over."""
    random = np.random.default_rng(seed)
    starts: list[float] = []
    free_s = 1.79e9 + random.uniform(0, 100)
    for duration_s in durations_s:
        started_s = np.ceil(free_s / trigger_s) * trigger_s
        if starts and duration_s > trigger_s:
            started_s = free_s
        starts.append(round(started_s + random.uniform(0, late_s), 3))
        free_s = starts[-1] + duration_s
    return np.array(starts), durations_s


@pytest.mark.parametrize("trigger_s", [0.1, 0.25, 0.7, 1.0, 1.5, 2.0, 3.0, 10.0, 60.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_interval_comes_back_exactly(trigger_s: float, seed: int) -> None:
    durations_s = np.random.default_rng(seed).uniform(0.2, 0.6, 30) * trigger_s
    assert read_trigger(*on_grid(trigger_s, durations_s, seed=seed)).trigger_s == trigger_s


@pytest.mark.parametrize("seed", range(3))
def test_batches_that_run_over_do_not_hide_the_interval(seed: int) -> None:
    durations_s = np.random.default_rng(seed).choice([0.4, 0.8, 1.3, 2.7], 60)
    assert read_trigger(*on_grid(1.0, durations_s, seed=seed)).trigger_s == 1.0


def test_batches_back_to_back_are_as_fast_as_possible() -> None:
    durations_s = np.random.default_rng(0).uniform(0.2, 0.4, 50)
    started_s = 1.79e9 + np.concatenate([[0.0], np.cumsum(durations_s + 0.003)[:-1]])
    assert read_trigger(started_s, durations_s).trigger_s == 0.0


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("num_batches", [5, 8, 40])
def test_pauses_without_a_grid_name_no_interval(seed: int, num_batches: int) -> None:
    random = np.random.default_rng(seed)
    durations_s = random.uniform(0.05, 0.1, num_batches)
    pauses_s = random.exponential(0.5, num_batches) + 0.05
    started_s = np.round(1.79e9 + np.cumsum(durations_s + pauses_s), 3)
    reading = read_trigger(started_s, durations_s)
    assert reading.trigger_s is None
    assert "no common grid" in reading.why


@pytest.mark.parametrize("num_batches", [0, 1, 3])
def test_few_batches_tell_nothing(num_batches: int) -> None:
    started_s = 1.79e9 + np.arange(float(num_batches))
    assert read_trigger(started_s, np.full(num_batches, 0.1)).trigger_s is None


def test_a_clock_that_is_set_back_once_does_not_matter() -> None:
    started_s, durations_s = on_grid(2.0, np.full(30, 0.5))
    started_s[15:] -= 600.0
    assert read_trigger(started_s, durations_s).trigger_s == 2.0


def test_two_late_starts_in_a_short_log_do_not_halve_the_interval() -> None:
    # A query on Kafka with a trigger of 1 s, restarted after an outage: the first batch starts at
    # once, and a busy driver starts two of the others 6 ms and 13 ms late.
    milliseconds = [-251, 140, 1000, 2000, 3000, 4001, 5001, 6001, 7001, 8006, 9000, 10013, 11001,
                    12001, 13001, 14000, 15000]  # fmt: skip
    durations_s = np.array([389, 231, 241, 336, 189, 210, 193, 187, 205, 234, 205, 277, 168, 300,
                            228, 234, 166]) / 1e3  # fmt: skip
    started_s = 1795284730.0 + np.array(milliseconds) / 1e3
    assert read_trigger(started_s, durations_s).trigger_s == 1.0


@pytest.mark.parametrize("seed", range(3))
def test_more_late_starts_than_that_name_no_longer_interval_than_the_true_one(seed: int) -> None:
    durations_s = np.random.default_rng(seed).uniform(0.1, 0.3, 12) * 0.5
    started_s, _ = on_grid(0.5, durations_s, seed=seed)
    started_s[[3, 7]] += 0.02
    assert read_trigger(started_s, durations_s).trigger_s == 0.5
