"""The jobs of DStreams batches, and the pool of threads that runs them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from headway.models.queues.autocorrelation import autocorrelated_service_wait
from headway.models.queues.lattice import LatticeLaw
from headway.models.queues.queueing import WaitMoments
from headway.models.queues.times import QueueTime, constant_time, lognormal_time
from headway.models.queues.wait import Wait, WaitMethod, queue_wait
from headway.models.stages.makespan import makespan_moments


@dataclass(frozen=True, slots=True, kw_only=True)
class DStreamJobs:
    """The jobs that each batch of a DStreams application submits to the job scheduler.

    Parameters
    ----------
    job : QueueTime
        Time of one job, as from `lognormal_time`; jobs are independent. [s]
    num_jobs : int, >= 1
        Jobs of a batch, one per output operation, run in their order. [-]
    num_concurrent : int, >= 1
        Jobs that run at the same time, ``spark.streaming.concurrentJobs``. ``job`` is the time of a
        job beside the others. [-]
    autocorrelation : float, 0 to 0.98
        Correlation of the logarithms of successive batch durations; only for one lognormal job per
        batch, run one at a time. [-]

    Examples
    --------
    >>> from headway.models.queues.times import lognormal_time
    >>> DStreamJobs(job=lognormal_time(0.3, 0.2), num_jobs=2).work_s
    0.6
    """

    job: QueueTime
    num_jobs: int = 1
    num_concurrent: int = 1
    autocorrelation: float = 0.0

    def __post_init__(self) -> None:
        jobs, workers = self.num_jobs, self.num_concurrent
        if jobs < 1 or workers < 1:
            raise ValueError(f"need at least 1 job and 1 at a time, got {jobs} and {workers}")
        if not 0.0 <= self.autocorrelation <= 0.98:
            raise ValueError(f"autocorrelation must lie in 0..0.98, got {self.autocorrelation}")
        if self.autocorrelation > 0.0 and (jobs > 1 or workers > 1):
            raise ValueError("autocorrelation is known for one job per batch, one at a time, only")

    @property
    def work_s(self) -> float:
        """Mean work of a batch. [s]"""
        return self.num_jobs * self.job.mean_s


def scheduling_delay(interval_s: float, jobs: DStreamJobs) -> Wait:
    r"""Wait of a batch for the start of its first job.

    Parameters
    ----------
    interval_s : float, > 0
    jobs : DStreamJobs

    Returns
    -------
    Wait
        ``inf`` from utilization 1 on.

    Raises
    ------
    ValueError
        If the utilization is below 1 by no more than a rounding error.

    Notes
    -----
    **(V2)** `W` is the wait in a queue with arrivals at fixed intervals, (Q16). Stable if
    `J E[S] < kB`, with `k` jobs at a time. Exact except for the lattice.

    theory.md (V2), or (V3) if successive batches are correlated, or (V4) for a pool.

    Examples
    --------
    >>> scheduling_delay(10.0, DStreamJobs(job=lognormal_time(9.0, 0.1))).mean_s
    0.1035
    """
    # The pool as one server that is as fast as all of its threads.
    work = _faster(repeated_time(jobs.job, jobs.num_jobs), jobs.num_concurrent)
    if work.mean_s >= interval_s or jobs.autocorrelation == 0.0:
        wait = queue_wait(constant_time(interval_s), work)
        return _thinned(wait, _waiting_ratio(work.mean_s / interval_s, jobs))
    cv = float(np.sqrt(work.scv))
    return Wait(
        moments=autocorrelated_service_wait(interval_s, work.mean_s, cv, jobs.autocorrelation),
        method=WaitMethod.SHIFTED_GAMMA,
        in_range=work.mean_s >= 0.7 * interval_s and cv <= 1.0 and jobs.autocorrelation <= 0.8,
        remark="services taken as lognormal and autoregressive",
    )


def _faster(time: QueueTime, factor: int) -> QueueTime:
    """The time at a server that is ``factor`` times as fast."""
    time_on_lattice = time.on_lattice
    if factor == 1 or time_on_lattice is None:
        return time

    def on_lattice(step_s: float) -> LatticeLaw:
        return replace(time_on_lattice(factor * step_s), step_s=step_s)

    third = time.third_central_s3
    return QueueTime(
        mean_s=time.mean_s / factor,
        scv=time.scv,
        third_central_s3=None if third is None else third / factor**3,
        on_lattice=on_lattice,
    )


def _waiting_ratio(busy: float, jobs: DStreamJobs) -> float:
    """(V4): frequency of waits with threads for several batches, over that with one server."""
    concurrent_batches = jobs.num_concurrent / jobs.num_jobs
    if concurrent_batches <= 1.0 or busy >= 1.0:
        return 1.0
    num_whole = int(concurrent_batches)
    share = concurrent_batches - num_whole
    ratio = (1.0 - share) * erlang_c(num_whole, busy) + share * erlang_c(num_whole + 1, busy)
    return ratio / busy


def erlang_c(num_servers: int, utilization_ratio: float) -> float:
    r"""Probability of a wait with Poisson arrivals, exponential services and several servers.

    Each server is busy for a share of its time, from 0 to 1; at 1 every job waits.

    Notes
    -----
    **(V4)** Several jobs at a time (`k > 1`): the pool is treated as one server that is `k` times
    as fast, but whose waits are `C(m, ρ)/ρ` times as frequent, with Erlang's probability of a wait
    for `m = k/J` servers, interpolated linearly between whole numbers. The ratio is 1 if `m ≤ 1`.
    From the start of the batch it takes the makespan of `J` jobs on `k` threads (M1)-(M5). The
    ratio is exact for Poisson arrivals and exponential services.

    Erlang (1917), computed by the recursion of the loss formula, which never overflows.

    Examples
    --------
    >>> erlang_c(1, 0.5), erlang_c(2, 0.5)
    (0.5, 0.3333)
    """
    if num_servers < 1 or not 0.0 <= utilization_ratio <= 1.0:
        raise ValueError("need num_servers >= 1 and utilization_ratio in 0..1")
    load, lost = num_servers * utilization_ratio, 1.0
    for servers in range(1, num_servers + 1):
        lost = load * lost / (servers + load * lost)
    return lost / (1.0 - utilization_ratio * (1.0 - lost))


def _thinned(wait: Wait, ratio: float) -> Wait:
    """The wait for a share of the batches, and none for the others."""
    if ratio == 1.0 or not np.isfinite(wait.mean_s):
        return wait
    mean = ratio * wait.mean_s
    second = ratio * float(wait.moments.second_moment_s2)
    law = wait.law
    if law is not None:
        probability = ratio * law.probability
        probability[0] += 1.0 - ratio
        law = replace(law, probability=probability)
    return replace(
        wait,
        moments=WaitMoments(
            np.array(mean), np.array(second - mean**2), np.array(ratio * wait.wait_prob)
        ),
        in_range=False,
        remark="several jobs at a time: an estimate",
        law=law,
    )


def busy_time(jobs: DStreamJobs) -> QueueTime:
    """From the start of a batch's first job to the end of its last, with the pool to itself (V2).

    Parameters
    ----------
    jobs : DStreamJobs

    Returns
    -------
    QueueTime
        Lognormal if several jobs run at a time: (M1)-(M5).

    Examples
    --------
    >>> busy_time(DStreamJobs(job=lognormal_time(1.0, 0.5), num_jobs=4)).mean_s
    4.0
    >>> busy_time(DStreamJobs(job=lognormal_time(1.0, 0.0), num_jobs=3, num_concurrent=2)).mean_s
    2.0
    """
    if jobs.num_concurrent == 1 or jobs.num_jobs == 1:
        return repeated_time(jobs.job, jobs.num_jobs)
    cv = min(float(np.sqrt(jobs.job.scv)), 10.0)
    makespan = makespan_moments(jobs.num_jobs, jobs.num_concurrent, cv)
    return lognormal_time(makespan.mean * jobs.job.mean_s, makespan.sd / makespan.mean)


def repeated_time(job: QueueTime, num_jobs: int) -> QueueTime:
    r"""Time of one or more independent jobs, one after the other (V1).

    Cumulants add up; the distribution, if it is known, is convolved by repeated squaring.

    Examples
    --------
    >>> from headway.models.queues.times import gamma_time
    >>> thrice = repeated_time(gamma_time(1.0, 1.0), 3)
    >>> thrice.mean_s, thrice.scv, thrice.third_central_s3
    (3.0, 0.3333, 6.0)
    """
    if num_jobs < 1:
        raise ValueError(f"num_jobs must be at least 1, got {num_jobs}")
    if num_jobs == 1:
        return job
    job_on_lattice = job.on_lattice

    def on_lattice(step_s: float) -> LatticeLaw:
        assert job_on_lattice is not None
        return _folded(job_on_lattice(step_s), num_jobs)

    return QueueTime(
        mean_s=num_jobs * job.mean_s,
        scv=job.scv / num_jobs,
        third_central_s3=None if job.third_central_s3 is None else num_jobs * job.third_central_s3,
        on_lattice=None if job_on_lattice is None else on_lattice,
    )


def _folded(law: LatticeLaw, num_times: int) -> LatticeLaw:
    total, power = None, law
    while True:
        if num_times & 1:
            total = power if total is None else total.plus(power)
        num_times >>= 1
        if num_times == 0:
            assert total is not None
            return total
        power = trimmed(power.plus(power))


def trimmed(law: LatticeLaw) -> LatticeLaw:
    """A distribution without the padding that sums collect at their far end (V2).

    It keeps all but 1e-13 of the probability.

    Examples
    --------
    >>> padded = LatticeLaw(step_s=1.0, lowest_index=0, probability=np.array([0.5, 0.5, 0.0]))
    >>> trimmed(padded).probability
    array([0.5, 0.5])
    """
    mass = law.probability
    num_kept = int(np.searchsorted(np.cumsum(mass), mass.sum() * (1.0 - 1e-13))) + 1
    return LatticeLaw(
        step_s=law.step_s,
        lowest_index=law.lowest_index,
        probability=mass[:num_kept] / mass[:num_kept].sum(),
    )
