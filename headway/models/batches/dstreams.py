"""Legacy Spark Streaming: batches at fixed intervals become jobs that queue for threads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headway.models.arrays import Array, Numeric
from headway.models.batches.job_pool import DStreamJobs, busy_time, scheduling_delay, trimmed
from headway.models.queues.lattice import LatticeLaw, LatticeTooLongError, on_step
from headway.models.queues.lattice_parts import smooth_quantile_s, uniform_law, zero_or_gamma_law
from headway.models.queues.times import QueueTime
from headway.models.queues.wait import Wait

_STEPS = 8192.0
_REACH = 12.0  # standard deviations beyond its mean that a sum of parts practically never exceeds


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DStreamsLatency:
    """Delays of batches, and latency of their rows.

    Parameters
    ----------
    wait : Wait
        Scheduling delay: from the time of a batch to the start of its first job.
    total_delay_mean_s : float
        Mean time from the time of a batch to the end of its last job; ``inf`` if unstable. [s]
    tuple_mean_s : float
        Mean time from the arrival of a row to the end of its batch; ``inf`` if unstable. [s]
    utilization_ratio : float
        Work per second of one concurrent job; unstable from 1 on. [-]
    is_exact : bool
        Whether only the lattice is approximate; several concurrent jobs and autocorrelation are
        estimated, see theory.md (V3), (V4).
    total_delay_law, tuple_law : LatticeLaw, optional
        The distributions; None if unstable.
    """

    wait: Wait
    total_delay_mean_s: float
    tuple_mean_s: float
    utilization_ratio: float
    is_exact: bool
    total_delay_law: LatticeLaw | None
    tuple_law: LatticeLaw | None

    @property
    def is_stable(self) -> bool:
        """Whether delays are bounded."""
        return self.tuple_law is not None

    def total_delay_quantile_s(self, q: Numeric) -> Array:
        """Quantiles of the total delay, 0 < q < 1; ``inf`` if unstable. [s]"""
        return smooth_quantile_s(self.total_delay_law, q)

    def tuple_quantile_s(self, q: Numeric) -> Array:
        """Quantiles of the latency of rows, 0 < q < 1; ``inf`` if unstable. [s]"""
        return smooth_quantile_s(self.tuple_law, q)


def dstreams_latency(
    interval_s: float, jobs: DStreamJobs, *, receive_delay_s: float = 0.0
) -> DStreamsLatency:
    r"""Delays of the batches of a DStreams application and latency of its rows.

    Parameters
    ----------
    interval_s : float, > 0
        Batch interval of the ``StreamingContext``. [s]
    jobs : DStreamJobs
        Jobs of a batch of usual size; the distribution of a job's time must be known.
    receive_delay_s : float, >= 0
        Time from the arrival of a row until a batch can take it: 0 for direct streams; with
        receivers up to a block interval (``spark.streaming.blockInterval``), more of it if block
        and batch end together. [s]

    Returns
    -------
    DStreamsLatency
        ``inf`` from utilization 1 on.

    Notes
    -----
    **(V1)** One job at a time: a batch of `J` jobs is one service. It has `J` times the cumulants
    of a job, and the distribution of a job convolved `J` times. A row waits `VB` for its batch, and
    the batch waits `W` for those before it: `L = r + VB + W + Σ S`. All terms are independent, so
    their distributions are convolved on a lattice. `r` is 0 for direct streams. A receiver's block
    that ends together with the current batch belongs to the next one: `r` is then up to a block
    interval (derived from the rules, not measured).

    theory.md (V1)-(V5), with the measured error.

    Examples
    --------
    >>> from headway.models.queues.times import lognormal_time
    >>> latency = dstreams_latency(10.0, DStreamJobs(job=lognormal_time(9.0, 0.1)))
    >>> latency.wait.mean_s, latency.tuple_mean_s, float(latency.tuple_quantile_s(0.99))
    (0.1035, 14.10, 20.02)
    """
    if not 0.0 < interval_s < np.inf:
        raise ValueError(f"interval_s must be positive, got {interval_s}")
    if not 0.0 <= receive_delay_s < np.inf:
        raise ValueError(f"receive_delay_s must be finite and not negative, got {receive_delay_s}")
    if jobs.job.on_lattice is None:
        raise ValueError("the law of a job must be known: lognormal_time, gamma_time")
    wait = scheduling_delay(interval_s, jobs)
    busy = busy_time(jobs)
    delay_mean_s = wait.mean_s + busy.mean_s
    delay_law, tuple_law = _laws(wait, busy, interval_s, receive_delay_s)
    return DStreamsLatency(
        wait=wait,
        total_delay_mean_s=delay_mean_s,
        tuple_mean_s=receive_delay_s + 0.5 * interval_s + delay_mean_s,
        utilization_ratio=jobs.work_s / (jobs.num_concurrent * interval_s),
        is_exact=jobs.num_concurrent == 1 and jobs.autocorrelation == 0.0,
        total_delay_law=delay_law,
        tuple_law=tuple_law,
    )


def _laws(
    wait: Wait, busy: QueueTime, interval_s: float, receive_delay_s: float
) -> tuple[LatticeLaw, LatticeLaw] | tuple[None, None]:
    """Distributions of the total delay and of the latency of rows, or None if unstable."""
    if not np.isfinite(wait.mean_s):
        return None, None
    assert busy.on_lattice is not None
    busy_sd_s = float(np.sqrt(busy.variance_s2))
    reach_s = interval_s + busy.mean_s + wait.mean_s + _REACH * (busy_sd_s + wait.sd_s)
    step_s = reach_s / _STEPS
    try:
        delay = busy.on_lattice(step_s).plus(_law_of_wait(wait, step_s))
    except LatticeTooLongError:  # a tail longer than a million steps
        step_s *= 100.0
        delay = busy.on_lattice(step_s).plus(_law_of_wait(wait, step_s))
    delay = trimmed(delay)
    return delay, delay.plus(uniform_law(interval_s, step_s).later(receive_delay_s))


def _law_of_wait(wait: Wait, step_s: float) -> LatticeLaw:
    if wait.law is not None:
        return on_step(wait.law, step_s)
    # A gamma has these moments only if the wait is likely enough.
    likely_prob = np.maximum(wait.moments.wait_prob, 1e-12)
    return zero_or_gamma_law(wait.moments._replace(wait_prob=likely_prob), step_s)
