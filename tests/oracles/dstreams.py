"""The job queue of a DStreams application, job by job: oracle of `batches.dstreams`."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from headway.models.arrays import Array, Numeric
from headway.models.laws.distributions import uniform_mixture_quantile


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DStreamsTrace:
    """Batches in the order of their time.

    Parameters
    ----------
    interval_s : float
        Batch interval. [s]
    scheduling_delay_s : (n,) array, >= 0
        From the time of a batch to the start of its first job. [s]
    total_delay_s : (n,) array, >= 0
        From the time of a batch to the end of its last job. [s]

    Examples
    --------
    >>> trace = DStreamsTrace(
    ...     interval_s=2.0, scheduling_delay_s=np.zeros(2), total_delay_s=np.array([1.0, 3.0])
    ... )
    >>> trace.tuple_mean_s, trace.tuple_quantile_s(0.5).tolist()
    (3.0, 3.0)
    """

    interval_s: float
    scheduling_delay_s: Array
    total_delay_s: Array

    @property
    def tuple_mean_s(self) -> float:
        """Mean latency of rows that arrive evenly. [s]"""
        return 0.5 * self.interval_s + float(self.total_delay_s.mean())

    def tuple_quantile_s(self, q: Numeric) -> Array:
        """Exact quantiles of the latency of rows that arrive evenly, 0..1. [s]"""
        delay = self.total_delay_s
        return uniform_mixture_quantile(q, delay, delay + self.interval_s, np.ones(len(delay)))


def simulate_dstreams(
    interval_s: float, job_s: Array, *, num_concurrent: int = 1, num_warmup: int = 0
) -> DStreamsTrace:
    r"""Simulate batches whose jobs queue for a pool of threads.

    Parameters
    ----------
    interval_s : float, > 0
        Batch interval. [s]
    job_s : (n, k) array, >= 0
        Time of each job; a row per batch, its jobs in the order of their submission. [s]
    num_concurrent : int, >= 1
        Threads of the pool. [-]
    num_warmup : int, >= 0
        Batches at the start that are simulated but not reported. [-]

    Returns
    -------
    DStreamsTrace
        Of all batches but the first ``num_warmup``.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    **(V6)** Simulation: jobs in the order of their batches go to the thread that is free first.

    Examples
    --------
    >>> trace = simulate_dstreams(2.0, np.array([[3.0], [1.0], [1.0]]))
    >>> trace.scheduling_delay_s, trace.total_delay_s
    (array([0., 1., 0.]), array([3., 2., 1.]))
    """
    jobs = np.asarray(job_s, dtype=np.float64)
    if jobs.ndim != 2 or jobs.size == 0 or not np.all(jobs >= 0.0):
        raise ValueError("job_s must hold a row per batch, with no negative time")
    if not (interval_s > 0.0 and num_concurrent >= 1 and 0 <= num_warmup < len(jobs)):
        raise ValueError("need interval_s > 0, num_concurrent >= 1 and a batch after the warm-up")
    free_at = [0.0] * num_concurrent
    begun, ended = np.empty(len(jobs)), np.empty(len(jobs))
    for number, batch in enumerate(jobs.tolist()):
        time = number * interval_s
        starts, ends = [], []
        for duration in batch:
            start = max(time, free_at[0])
            heapq.heapreplace(free_at, start + duration)
            starts.append(start)
            ends.append(start + duration)
        begun[number], ended[number] = min(starts) - time, max(ends) - time
    return DStreamsTrace(
        interval_s=interval_s,
        scheduling_delay_s=begun[num_warmup:],
        total_delay_s=ended[num_warmup:],
    )
