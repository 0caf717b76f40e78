"""The simulated query in Real-Time Mode keeps its rules."""

from __future__ import annotations

import numpy as np
import pytest

from tests.oracles.real_time import PlayedStage, simulate_real_time

ONE = PlayedStage(shares=np.ones(1), row_s=0.01, row_cv=0.0)


def by_hand(arrival: float, free: float, work: float, trigger_s: float, gap_s: float) -> float:
    """End of a row's work: a task rests in the gaps, and goes on where it was."""
    now, cycle_s = max(arrival, free), trigger_s + gap_s
    for batch in range(int(now / cycle_s), int(now / cycle_s) + 100):
        now = max(now, batch * cycle_s)
        left = batch * cycle_s + trigger_s - now
        if left >= work:
            return now + work
        work -= max(left, 0.0)
        now = max(now, batch * cycle_s + trigger_s)
    raise AssertionError("a row that takes a hundred batches")


@pytest.mark.parametrize("rate_per_s", [20.0, 60.0])
def test_gaps_row_by_row(rate_per_s: float) -> None:
    latency = simulate_real_time(
        rate_per_s, [ONE], flush_s=0.0, trigger_s=0.7, gap_s=0.2, num_rows=2000, seed=3
    )
    arrival = np.cumsum(np.random.default_rng(3).exponential(1.0 / rate_per_s, 2000))
    free = 0.0
    for row in range(2000):
        free = by_hand(float(arrival[row]), free, 0.01, 0.7, 0.2)
        assert latency[row] == pytest.approx(free - arrival[row], abs=1e-8)


def test_a_clock_sends_what_is_there() -> None:
    """Seldom rows of no work: each waits for the next tick, and ticks are a period apart."""
    quick = PlayedStage(shares=np.ones(1), row_s=1e-9, row_cv=0.0)
    latency = simulate_real_time(
        5.0, [quick, quick], flush_s=0.2, trigger_s=1e6, gap_s=0.0, num_rows=5000, seed=4
    )
    arrival = np.cumsum(np.random.default_rng(4).exponential(0.2, 5000))
    phase = np.mod(arrival + latency, 0.2)
    assert np.all((latency > 0.0) & (latency <= 0.2 + 1e-6))
    apart = np.abs(phase - phase[0])
    assert np.minimum(apart, 0.2 - apart).max() < 1e-5


def test_batches_end_by_sending() -> None:
    quick = PlayedStage(shares=np.ones(1), row_s=1e-9, row_cv=0.0)
    latency = simulate_real_time(
        5.0, [quick, quick], flush_s=50.0, trigger_s=1.0, gap_s=0.5, num_rows=5000, seed=5
    )
    assert latency.max() <= 1.5 + 1e-6


def test_shares_decide_who_is_busy() -> None:
    skewed = PlayedStage(shares=np.array([0.7, 0.1, 0.1, 0.1]), row_s=1e-3, row_cv=1.0)
    even = PlayedStage(shares=np.full(4, 0.25), row_s=1e-3, row_cv=1.0)
    means = [
        simulate_real_time(
            1200.0, [stage], flush_s=0.0, trigger_s=60.0, gap_s=0.0, num_rows=40_000, seed=6
        ).mean()
        for stage in (skewed, even)
    ]
    # M/M/1-like: 70% of the rows at 0.84 busy, or all at 0.3.
    assert means[0] > 2.0 * means[1]


def test_the_seed_decides_and_nonsense_is_refused() -> None:
    setting = {"flush_s": 0.05, "trigger_s": 5.0, "gap_s": 0.1}
    first, again, other = (
        simulate_real_time(50.0, [ONE, ONE], num_rows=100, seed=seed, **setting)
        for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    with pytest.raises(ValueError, match="at least one row"):
        simulate_real_time(50.0, [ONE], num_rows=0, seed=1, **setting)
    with pytest.raises(ValueError, match="no negative time"):
        simulate_real_time(0.0, [ONE], num_rows=1, seed=1, **setting)
