"""Putting outputs in order: golden values of the design, and the simulation of both schemes."""

from __future__ import annotations

import numpy as np
import pytest

from headway.domain.ordered import Reordering, ReorderScheme
from headway.models.ordered.exit_laws import (
    ServiceLaw,
    ordered_exit_law,
    reordered_throughput_per_s,
    saturated_latency_s,
    tuple_cost_s,
)
from tests.oracles.ordered_reordering import simulate_reordering

NON_BLOCKING: ReorderScheme = "non-blocking"
LOCK: ReorderScheme = "lock"


def scheme(which: ReorderScheme, send_us: float = 1.0, num_buffered: int = 64) -> Reordering:
    return Reordering(
        scheme=which, num_buffered=num_buffered, store_s=1e-7, send_s=send_us * 1e-6, lock_s=1e-7
    )


def speedup(which: ReorderScheme, num_workers: int, cost_us: float, send_us: float) -> float:
    given = scheme(which, send_us)
    found = reordered_throughput_per_s(num_workers, cost_us * 1e-6, given)
    return found * tuple_cost_s(cost_us * 1e-6, given)


@pytest.mark.parametrize(
    ("num_workers", "cost_us", "send_us", "non_blocking", "lock"),
    [
        (16, 10, 1.0, 11.1, 9.5),
        (8, 10, 1.0, 8.0, 7.2),
        (16, 10, 0.5, 16.0, 13.6),
        (4, 100, 25.0, 4.0, 3.6),
        (8, 100, 25.0, 5.0, 5.0),
    ],
)
def test_golden_speedups(
    num_workers: int, cost_us: float, send_us: float, non_blocking: float, lock: float
) -> None:
    assert speedup(NON_BLOCKING, num_workers, cost_us, send_us) == pytest.approx(
        non_blocking, rel=0.01
    )
    assert speedup(LOCK, num_workers, cost_us, send_us) == pytest.approx(lock, rel=0.05)


@pytest.mark.parametrize("num_workers", [1, 2, 4, 8, 12, 16, 24, 32])
@pytest.mark.parametrize(
    ("cv", "low", "high"), [(0.0, 0.01, 0.14), (0.3, 0.04, 0.05), (1.0, 0.21, 0.02)]
)
def test_throughput_against_the_simulation(
    num_workers: int, cv: float, low: float, high: float
) -> None:
    """Constant times hardly meet at the lock; after a slow tuple all that waits is sent at once."""
    random = np.random.default_rng(7)
    sd = np.sqrt(np.log1p(cv * cv))
    tuples = 1e-5 * np.exp(sd * random.standard_normal(20_000) - 0.5 * sd * sd)
    for which, below, above in ((NON_BLOCKING, 0.03, 0.03), (LOCK, low, high)):
        given = scheme(which, num_buffered=1024)
        formula = reordered_throughput_per_s(num_workers, 1e-5, given)
        found = simulate_reordering(tuples, num_workers, given)
        assert 1.0 - below <= found.throughput_per_s / formula <= 1.0 + above
        assert np.all(np.diff(found.exits_s) > 0.0)
        assert len(found.exits_s) == len(tuples)


@pytest.mark.parametrize("num_workers", [2, 8, 16, 32])
def test_without_blocking_is_never_slower_than_the_lock(num_workers: int) -> None:
    tuples = np.full(10_000, 1e-5)
    free, locked = (
        simulate_reordering(tuples, num_workers, scheme(which, num_buffered=4 * num_workers))
        for which in (NON_BLOCKING, LOCK)
    )
    assert free.throughput_per_s >= 0.999 * locked.throughput_per_s


@pytest.mark.parametrize(
    ("num_workers", "cost_us", "send_us", "size", "latency_us"),
    [(16, 10, 1, 16, 30), (16, 10, 1, 64, 78), (16, 10, 1, 1024, 985), (8, 100, 25, 64, 1760)],
)
def test_a_full_buffer_makes_the_latency(
    num_workers: int, cost_us: float, send_us: float, size: int, latency_us: float
) -> None:
    given = scheme(NON_BLOCKING, send_us, size)
    formula = saturated_latency_s(num_workers, cost_us * 1e-6, given)
    assert formula * 1e6 == pytest.approx(latency_us, rel=0.1)
    found = simulate_reordering(np.full(60_000, cost_us * 1e-6), num_workers, given)
    assert found.mean_s == pytest.approx(formula, rel=0.1)


@pytest.mark.parametrize(
    ("num_busy", "cv", "extra", "p99"),
    [
        (4, 0.3, 0.1137, 1.889),
        (8, 1.0, 1.7179, 6.680),
        (16, 0.3, 0.3129, 2.015),
        (16, 0.1, 0.0508, 1.267),
    ],
)
def test_golden_exits(num_busy: int, cv: float, extra: float, p99: float) -> None:
    law = ordered_exit_law(ServiceLaw(mean_s=1.0, cv=cv), num_busy)
    assert law.mean_s - 1.0 == pytest.approx(extra, rel=5e-3)
    assert law.quantile_s(0.99) == pytest.approx(p99, rel=2e-3)


def test_one_worker_alone_waits_for_nobody() -> None:
    law = ordered_exit_law(ServiceLaw(mean_s=2.0, cv=0.5), 1)
    assert law.mean_s == pytest.approx(2.0, rel=1e-3)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="num_workers"):
        reordered_throughput_per_s(0, 1e-5, scheme(LOCK))
    with pytest.raises(ValueError, match="num_busy"):
        ordered_exit_law(ServiceLaw(mean_s=1.0, cv=0.1), 0.5)
    with pytest.raises(ValueError, match="cv in"):
        ServiceLaw(mean_s=1.0, cv=9.0)
