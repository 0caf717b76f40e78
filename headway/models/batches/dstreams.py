"""Legacy Spark Streaming: batches of a clock become jobs that queue for the job scheduler."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headway.models.arrays import Array, Numeric
from headway.models.queues.autocorrelation import autocorrelated_service_wait
from headway.models.queues.lattice import LatticeLaw, LatticeTooLongError
from headway.models.queues.lattice_parts import (
    largest_of,
    on_step,
    smooth_quantile_s,
    uniform_law,
    zero_or_gamma_law,
)
from headway.models.queues.queueing import WaitMoments
from headway.models.queues.wait import QueueTime, Wait, WaitMethod, constant_time, queue_wait

_STEPS = 8192.0
_REACH = 12.0  # means and standard deviations that a sum of parts practically never exceeds


@dataclass(frozen=True, slots=True, kw_only=True)
class DStreamJobs:
    """What each batch of a DStreams application asks of the job scheduler.

    Parameters
    ----------
    job : QueueTime
        Time of one job, as from `lognormal_time`; jobs are independent. [s]
    num_jobs : int, >= 1
        Jobs of a batch, one per output operation, run in their order. [-]
    num_concurrent : int, >= 1
        Jobs that run at the same time, ``spark.streaming.concurrentJobs``; a multiple of
        ``num_jobs`` or a divisor of it. The time of a job is that beside the others. [-]
    autocorrelation : float, 0 to 0.98
        Correlation of the logarithms of successive batch durations; only of one lognormal job per
        batch, run one at a time. [-]

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Examples
    --------
    >>> from headway.models.queues.wait import lognormal_time
    >>> DStreamJobs(job=lognormal_time(0.3, 0.2), num_jobs=2).work_s
    0.6
    """

    job: QueueTime
    num_jobs: int = 1
    num_concurrent: int = 1
    autocorrelation: float = 0.0

    def __post_init__(self) -> None:
        jobs, workers = self.num_jobs, self.num_concurrent
        if jobs < 1 or workers < 1 or (jobs % workers and workers % jobs):
            raise ValueError(
                f"of {jobs} jobs and {workers} concurrent ones, one must be a multiple of the other"
            )
        if not 0.0 <= self.autocorrelation <= 0.98:
            raise ValueError(f"autocorrelation must lie in 0..0.98, got {self.autocorrelation}")
        if self.autocorrelation > 0.0 and (jobs > 1 or workers > 1):
            raise ValueError("autocorrelation is known for one job per batch, one at a time, only")

    @property
    def work_s(self) -> float:
        """Mean work of a batch. [s]"""
        return self.num_jobs * self.job.mean_s


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
    is_bound : bool
        Whether several concurrent jobs make the means upper bounds, see theory.md (V4).
    total_delay_law, tuple_law : LatticeLaw, optional
        The laws; none if unstable.
    """

    wait: Wait
    total_delay_mean_s: float
    tuple_mean_s: float
    utilization_ratio: float
    is_bound: bool
    total_delay_law: LatticeLaw | None
    tuple_law: LatticeLaw | None

    @property
    def is_stable(self) -> bool:
        """Whether delays are bounded."""
        return self.tuple_law is not None

    def total_delay_quantile_s(self, q: Numeric) -> Array:
        """Quantiles of the total delay, 0 < q < 1; ``inf`` if unstable. [s]"""
        return _quantile(self.total_delay_law, q)

    def tuple_quantile_s(self, q: Numeric) -> Array:
        """Quantiles of the latency of rows, 0 < q < 1; ``inf`` if unstable. [s]"""
        return _quantile(self.tuple_law, q)


def dstreams_latency(
    interval_s: float, jobs: DStreamJobs, *, receive_delay_s: float = 0.0
) -> DStreamsLatency:
    r"""Delays of the batches of a DStreams application and latency of its rows.

    Parameters
    ----------
    interval_s : float, > 0
        Batch interval of the ``StreamingContext``. [s]
    jobs : DStreamJobs
        Jobs of a batch of usual size.
    receive_delay_s : float, >= 0
        Time from the arrival of a row until a batch can take it: 0 for direct streams; with
        receivers up to a block interval (``spark.streaming.blockInterval``), more of it as block
        and batch end together. [s]

    Returns
    -------
    DStreamsLatency
        ``inf`` from utilization 1 on.

    Raises
    ------
    ValueError
        If an argument is outside its range, or the law of a job is not known.

    Notes
    -----
    theory.md (V1)-(V5). Exact but for the lattice for one concurrent job without autocorrelation;
    MEASURED for utilization up to 0.95 and cv up to 1.

    Examples
    --------
    >>> from headway.models.queues.wait import lognormal_time
    >>> latency = dstreams_latency(10.0, DStreamJobs(job=lognormal_time(9.0, 0.1)))
    >>> latency.wait.mean_s, latency.tuple_mean_s, float(latency.tuple_quantile_s(0.99))
    (0.1035, 14.10, 20.02)
    """
    if not 0.0 < interval_s < np.inf:
        raise ValueError(f"interval_s must be positive, got {interval_s}")
    if not 0.0 <= receive_delay_s < np.inf:
        raise ValueError(f"receive_delay_s must be finite and not negative, got {receive_delay_s}")
    if jobs.job.on_lattice is None:
        raise ValueError(
            "the law of a job must be known: lognormal_time, gamma_time, observed_time"
        )
    num_workers = min(jobs.num_jobs, jobs.num_concurrent)
    period_s = interval_s * max(jobs.num_concurrent // jobs.num_jobs, 1)
    per_worker = max(jobs.num_jobs // jobs.num_concurrent, 1)
    busy = repeated_time(jobs.job, per_worker)
    wait = _scheduling_delay(period_s, busy, jobs.autocorrelation)
    laws = _laws(wait, busy, interval_s, receive_delay_s, num_workers)
    delay = laws[0] if laws else None
    # Sums of means are exact; only the largest of several workers needs the law.
    delay_mean_s = wait.mean_s + busy.mean_s
    if delay is not None and num_workers > 1:
        delay_mean_s = delay.mean_s
    return DStreamsLatency(
        wait=wait,
        total_delay_mean_s=delay_mean_s,
        tuple_mean_s=receive_delay_s + 0.5 * interval_s + delay_mean_s,
        utilization_ratio=busy.mean_s / period_s,
        is_bound=jobs.num_concurrent > 1,
        total_delay_law=delay,
        tuple_law=laws[1] if laws else None,
    )


def repeated_time(job: QueueTime, num_jobs: int) -> QueueTime:
    r"""Time of several independent jobs, one after the other.

    Parameters
    ----------
    job : QueueTime
        Of one.
    num_jobs : int, >= 1
        How many. [-]

    Returns
    -------
    QueueTime
        With the law, if that of one job is known.

    Raises
    ------
    ValueError
        If ``num_jobs`` is below 1.

    Notes
    -----
    theory.md (V1). Cumulants add up; the law is folded by squaring.

    Examples
    --------
    >>> from headway.models.queues.wait import gamma_time
    >>> thrice = repeated_time(gamma_time(1.0, 1.0), 3)
    >>> thrice.mean_s, thrice.scv, thrice.third_central_s3
    (3.0, 0.3333, 6.0)
    """
    if num_jobs < 1:
        raise ValueError(f"num_jobs must be at least 1, got {num_jobs}")
    if num_jobs == 1:
        return job
    of_one = job.on_lattice

    def on_lattice(step_s: float) -> LatticeLaw:
        assert of_one is not None
        return _folded(of_one(step_s), num_jobs)

    return QueueTime(
        mean_s=num_jobs * job.mean_s,
        scv=job.scv / num_jobs,
        third_central_s3=None if job.third_central_s3 is None else num_jobs * job.third_central_s3,
        on_lattice=None if of_one is None else on_lattice,
    )


def work_headroom_ratio(interval_s: float, jobs: DStreamJobs) -> float:
    r"""By how much the work of a batch may grow before delays grow without bound.

    Parameters
    ----------
    interval_s : float, > 0
        Batch interval. [s]
    jobs : DStreamJobs
        Jobs of a batch today.

    Returns
    -------
    float
        Capacity over work; at 1 and below the application falls behind already. [-]

    Raises
    ------
    ValueError
        If ``interval_s`` is not positive.

    Notes
    -----
    theory.md (V2).

    Examples
    --------
    >>> from headway.models.queues.wait import lognormal_time
    >>> work_headroom_ratio(1.0, DStreamJobs(job=lognormal_time(0.4, 0.2)))
    2.5
    """
    if not 0.0 < interval_s < np.inf:
        raise ValueError(f"interval_s must be positive, got {interval_s}")
    return jobs.num_concurrent * interval_s / jobs.work_s


def _scheduling_delay(period_s: float, busy: QueueTime, autocorrelation: float) -> Wait:
    """(V2), or (V3) if successive batches resemble each other."""
    if autocorrelation == 0.0 or busy.mean_s >= period_s:
        return queue_wait(constant_time(period_s), busy)
    cv = float(np.sqrt(busy.scv))
    return Wait(
        moments=autocorrelated_service_wait(period_s, busy.mean_s, cv, autocorrelation),
        method=WaitMethod.SHIFTED_GAMMA,
        in_range=busy.mean_s >= 0.7 * period_s and cv <= 0.5 and autocorrelation <= 0.8,
        remark="services taken as lognormal and autoregressive",
    )


def _laws(
    wait: Wait, busy: QueueTime, interval_s: float, receive_delay_s: float, num_workers: int
) -> tuple[LatticeLaw, LatticeLaw] | None:
    """Laws of the total delay and of the latency of rows, or none if unstable."""
    if not np.isfinite(wait.mean_s):
        return None
    assert busy.on_lattice is not None
    busy_sd_s = float(np.sqrt(busy.variance_s2))
    reach_s = interval_s + busy.mean_s + wait.mean_s + _REACH * (busy_sd_s + wait.sd_s)
    step_s = reach_s / _STEPS
    try:
        delay = busy.on_lattice(step_s).plus(_law_of_wait(wait, step_s))
    except LatticeTooLongError:  # a tail so long that a million steps do not hold it
        step_s *= 100.0
        delay = busy.on_lattice(step_s).plus(_law_of_wait(wait, step_s))
    delay = largest_of(_trimmed(delay), num_workers)
    received = _shifted(uniform_law(interval_s, step_s), receive_delay_s)
    return delay, delay.plus(received)


def _law_of_wait(wait: Wait, step_s: float) -> LatticeLaw:
    if wait.law is not None:
        return on_step(wait.law, step_s)
    return zero_or_gamma_law(_with_known_probability(wait.moments), step_s)


def _with_known_probability(moments: WaitMoments) -> WaitMoments:
    """A wait must be likely enough for a gamma to have these moments."""
    mean, variance, prob = (float(value) for value in moments)
    return WaitMoments(np.array(mean), np.array(variance), np.array(max(prob, 1e-12)))


def _folded(law: LatticeLaw, num_times: int) -> LatticeLaw:
    total, power = None, law
    while True:
        if num_times & 1:
            total = power if total is None else total.plus(power)
        num_times >>= 1
        if num_times == 0:
            assert total is not None
            return total
        power = _trimmed(power.plus(power))


def _trimmed(law: LatticeLaw) -> LatticeLaw:
    """Without the padding that sums of laws collect at their far end."""
    mass = law.probability
    kept = int(np.searchsorted(np.cumsum(mass), mass.sum() * (1.0 - 1e-13))) + 1
    return LatticeLaw(
        step_s=law.step_s,
        lowest_index=law.lowest_index,
        probability=mass[:kept] / mass[:kept].sum(),
    )


def _shifted(law: LatticeLaw, shift_s: float) -> LatticeLaw:
    steps = int(np.rint(shift_s / law.step_s))
    return LatticeLaw(
        step_s=law.step_s, lowest_index=law.lowest_index + steps, probability=law.probability
    )


def _quantile(law: LatticeLaw | None, q: Numeric) -> Array:
    if law is None:
        level = np.asarray(q, dtype=np.float64)
        if not (np.all(level > 0.0) and np.all(level < 1.0)):
            raise ValueError("q must lie strictly between 0 and 1")
        return np.full(level.shape, np.inf)
    return smooth_quantile_s(law, q)
