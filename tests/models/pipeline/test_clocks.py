"""Two clocks, polls that share batches, and what polls leave over."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.models.pipeline.clocks import common_tick_s, poll_carry_over, poll_sharing
from headway.models.queues.random_walk import shifted_gamma_wait


def test_golden_two_clocks() -> None:
    common_s = common_tick_s(np.array([0.3, 0.2]), np.array([0.4, 0.2]))
    assert common_s == pytest.approx([0.1, 0.2])


@given(st.integers(1, 60), st.integers(1, 60), st.floats(0.01, 0.99))
def test_two_clocks_tick_by_tick(first: int, second: int, phase: float) -> None:
    first_s, second_s = first / 100.0, second / 100.0
    # A phase within the common divisor: no tick of one clock meets one of the other.
    ticks = first_s * np.arange(second) + phase * math.gcd(first, second) / 100.0
    waits = np.mod(-ticks, second_s)
    common_s = float(common_tick_s(first_s, second_s))
    # Theory.md (L3): the mean by the phase, and the variance at any phase.
    assert abs(waits.mean() - 0.5 * second_s) <= 0.5 * common_s + 1e-6
    assert waits.var() == pytest.approx((second_s**2 - common_s**2) / 12.0, abs=1e-6)


@pytest.mark.parametrize("ratio", [0.2, 0.65, 1.0, 1.5, 2.0, 3.3])
def test_sharing_against_random_phases(ratio: float) -> None:
    num_mappers, num_trials = 6, 40_000
    random = np.random.default_rng(5)
    # Mapper 0 packs at 0, the poll comes after a wait, and the poll before it a period earlier.
    wait = ratio * random.random(num_trials)
    phase = random.random((num_trials, num_mappers))
    phase[:, 0] = 0.0
    ticks = phase[..., np.newaxis] + np.arange(-6, 6)
    polled = (ticks <= wait[:, None, None]) & (ticks > (wait - ratio)[:, None, None])
    ahead = (polled & (ticks < 0.0)).sum(axis=(1, 2))
    others, variance_ahead = poll_sharing(num_mappers, ratio)
    assert polled.sum(axis=(1, 2)).mean() - 1.0 == pytest.approx(float(others), rel=0.01)
    assert ahead.mean() == pytest.approx(0.5 * float(others), rel=0.02)
    others_ahead = (polled & (ticks < 0.0))[:, 1:].sum(axis=(1, 2))
    expected = (num_mappers - 1) * (ratio - wait)
    spread = np.mean((others_ahead - expected) ** 2)
    assert spread == pytest.approx(float(variance_ahead), rel=0.05)


def test_carry_over_of_independent_polls_is_a_queue() -> None:
    mean, variance = poll_carry_over(1.0, np.array([0.5, 0.8]), np.array([1.0, 0.04]), 0.0, 0, 5.0)
    exact = shifted_gamma_wait((np.array([-0.5, -0.2]), np.array([1.0, 0.04]), np.zeros(2)))
    assert mean == pytest.approx(exact.mean_s, rel=2e-3)
    assert variance == pytest.approx(exact.variance_s2, rel=1e-2)


@pytest.mark.parametrize(("ratio", "busy"), [(0.05, 0.6), (0.05, 0.85), (0.2, 0.7)])
def test_carry_over_of_random_phases(ratio: float, busy: float) -> None:
    num_mappers, polls = 20, round(1.0 / ratio)
    batch_s = busy / num_mappers
    # One shuffle period of 1 s, simulated twice: after the first the work left is periodic.
    random = np.random.default_rng(6)
    counts = random.multinomial(num_mappers, np.full(polls, ratio), size=20_000)
    left = np.zeros(len(counts))
    seen = []
    for poll in range(2 * polls):
        if poll >= polls:
            seen.append(left)
        left = np.maximum(left + counts[:, poll % polls] * batch_s - ratio, 0.0)
    mean, _ = poll_carry_over(ratio, busy * ratio, 0.0, batch_s, num_mappers, ratio)
    # Few batches per poll are not normal: low by a quarter at worst, of little.
    assert float(mean) == pytest.approx(np.mean(seen), rel=0.25, abs=0.0005)
    assert float(mean) == pytest.approx(np.mean(seen), abs=0.003)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="microsecond"):
        common_tick_s(0.0, 1.0)
    with pytest.raises(ValueError, match="num_mappers"):
        poll_sharing(0, 1.0)
    with pytest.raises(ValueError, match="work_per_poll_s"):
        poll_carry_over(1.0, 1.0, 0.0, 0.0, 0, 1.0)
