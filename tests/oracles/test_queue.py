"""The simulated queue keeps its rules, and bears out the formulas for bulks and correlation."""

from __future__ import annotations

import numpy as np
import pytest

from headway.models.queues.queueing import lindley_waits_s
from tests.oracles.queue import QueueTrace, correlated_lognormal_s, simulate_queue


def test_waits_follow_one_by_one() -> None:
    generator = np.random.default_rng(3)
    arrival, service = generator.exponential(1.0, 3000), generator.exponential(0.9, 3000)
    waits, expected = lindley_waits_s(arrival, service), 0.0
    for number in range(3000):
        assert waits[number] == pytest.approx(expected, abs=1e-9)
        expected = max(0.0, expected + service[number] - arrival[number])


def test_blocks_of_the_recursion_join(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(4)
    arrival, service = generator.exponential(1.0, 1000), generator.exponential(0.95, 1000)
    whole = lindley_waits_s(arrival, service)
    monkeypatch.setattr("headway.models.queues.queueing._BLOCK", 7)
    assert lindley_waits_s(arrival, service) == pytest.approx(whole, abs=1e-9)


def test_no_job_starts_before_the_one_ahead_has_ended() -> None:
    service = correlated_lognormal_s(0.2, 0.5, 0.6, num_values=40_000, seed=5)
    trace = simulate_queue(np.array(1.0), service, bulk_size=4)
    start = np.repeat(np.arange(10_000.0), 4) + trace.wait_s
    assert np.all(start[1:] >= (start + trace.service_s)[:-1] - 1e-7)
    idle = trace.wait_s[1:] == 0.0
    assert np.all((start + trace.service_s)[:-1][idle] <= start[1:][idle] + 1e-7)


@pytest.mark.parametrize("phi", [-0.5, 0.0, 0.3, 0.9])
def test_correlated_times_have_their_moments(phi: float) -> None:
    times = correlated_lognormal_s(2.0, 0.3, phi, num_values=400_000, seed=6)
    assert times.mean() == pytest.approx(2.0, rel=0.01)
    assert times.std() == pytest.approx(0.6, rel=0.02)
    logarithm = np.log(times)
    for lag in (1, 3):
        measured = np.corrcoef(logarithm[:-lag], logarithm[lag:])[0, 1]
        assert measured == pytest.approx(phi**lag, abs=0.01)


def test_the_seed_decides() -> None:
    first, again, other = (
        correlated_lognormal_s(1.0, 0.5, 0.4, num_values=50, seed=seed) for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert not np.any(first == other)


def test_quantiles_are_observed_waits() -> None:
    trace = QueueTrace(wait_s=np.array([3.0, 0.0, 1.0, 2.0]), service_s=np.ones(4))
    assert trace.quantile_s(np.array([0.25, 0.26, 0.75, 1.0])).tolist() == [0.0, 1.0, 2.0, 3.0]


def test_refusals() -> None:
    with pytest.raises(ValueError, match="one length"):
        lindley_waits_s(np.ones(2), np.ones(3))
    with pytest.raises(ValueError, match="non-negative"):
        lindley_waits_s(np.ones(2), -np.ones(2))
    with pytest.raises(ValueError, match="whole bulks"):
        simulate_queue(np.array(1.0), np.ones(5), bulk_size=2)
    with pytest.raises(ValueError, match="num_warmup"):
        simulate_queue(np.array(1.0), np.ones(4), num_warmup=4)
    with pytest.raises(ValueError, match="need"):
        correlated_lognormal_s(1.0, 0.1, 1.0, num_values=3, seed=1)
