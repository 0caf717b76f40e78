"""The simulated job queue keeps its rules."""

from __future__ import annotations

import numpy as np
import pytest

from headway.models.queues.queueing import lindley_waits_s
from tests.oracles.dstreams import DStreamsTrace, simulate_dstreams


def test_one_thread_is_a_clocked_queue() -> None:
    service = np.random.default_rng(1).lognormal(-0.3, 0.5, (2000, 1))
    trace = simulate_dstreams(1.0, service)
    waits = lindley_waits_s(np.ones(2000), service[:, 0])
    assert trace.scheduling_delay_s == pytest.approx(waits, abs=1e-8)
    assert trace.total_delay_s == pytest.approx(waits + service[:, 0], abs=1e-8)


def test_jobs_of_a_batch_run_in_order() -> None:
    jobs = np.random.default_rng(2).exponential(0.25, (500, 3))
    one_by_one = simulate_dstreams(1.0, jobs)
    together = simulate_dstreams(1.0, jobs.sum(axis=1, keepdims=True))
    assert one_by_one.total_delay_s == pytest.approx(together.total_delay_s)
    assert one_by_one.scheduling_delay_s == pytest.approx(together.scheduling_delay_s)


@pytest.mark.parametrize("num_concurrent", [2, 3])
def test_more_threads_are_never_slower(num_concurrent: int) -> None:
    """Waits of a pool that takes jobs in order fall in every single job as threads are added."""
    jobs = np.random.default_rng(3).lognormal(-0.5, 0.8, (3000, 2))
    fewer = simulate_dstreams(1.5, jobs, num_concurrent=num_concurrent - 1)
    more = simulate_dstreams(1.5, jobs, num_concurrent=num_concurrent)
    assert np.all(more.scheduling_delay_s <= fewer.scheduling_delay_s + 1e-9)
    assert np.all(more.total_delay_s <= fewer.total_delay_s + 1e-9)


def test_enough_threads_leave_no_wait() -> None:
    jobs = np.random.default_rng(4).uniform(0.1, 2.9, (400, 2))
    trace = simulate_dstreams(1.0, jobs, num_concurrent=6)
    assert np.all(trace.scheduling_delay_s == 0.0)
    assert trace.total_delay_s == pytest.approx(jobs.max(axis=1))


def test_rows_arrive_evenly() -> None:
    delay = np.array([0.5, 3.0, 0.7])
    trace = DStreamsTrace(interval_s=2.0, scheduling_delay_s=np.zeros(3), total_delay_s=delay)
    rows = (delay[:, np.newaxis] + 2.0 * (np.arange(5000) + 0.5) / 5000.0).ravel()
    assert trace.tuple_mean_s == pytest.approx(rows.mean())
    levels = np.array([0.1, 0.5, 0.9])
    assert trace.tuple_quantile_s(levels) == pytest.approx(np.quantile(rows, levels), abs=1e-3)


def test_refusals() -> None:
    for jobs in (np.ones(3), np.ones((0, 1)), -np.ones((2, 1))):
        with pytest.raises(ValueError, match="row per batch"):
            simulate_dstreams(1.0, jobs)
    for arguments in ({"num_concurrent": 0}, {"num_warmup": 2}):
        with pytest.raises(ValueError, match="num_concurrent"):
            simulate_dstreams(1.0, np.ones((2, 1)), **arguments)
