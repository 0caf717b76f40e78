"""Legacy Spark Streaming: batches at fixed intervals become jobs that queue for threads."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from headway.models.arrays import Array, Numeric
from headway.models.queues.autocorrelation import autocorrelated_service_wait
from headway.models.queues.queueing import WaitMoments
from headway.models.queues.times import (
    LatticeLaw,
    LatticeTooLongError,
    QueueTime,
    constant_time,
    lognormal_time,
    on_step,
    smooth_quantile_s,
    uniform_law,
    zero_or_gamma_law,
)
from headway.models.queues.wait import Wait, queue_wait
from headway.models.stages.makespan import makespan_moments

_STEPS = 8192.0
_REACH = 12.0  # standard deviations beyond its mean that a sum of parts practically never exceeds


@dataclass(frozen=True, slots=True, kw_only=True)
class DStreamJobs:
    """The jobs that each batch of a DStreams application submits to the job scheduler."""

    job: QueueTime  # time of one, as from lognormal_time; jobs are independent [s]
    num_jobs: int = 1  # in a batch, one per output operation, run in their order; at least 1 [-]
    num_concurrent: int = 1  # at the same time, spark.streaming.concurrentJobs; at least 1 [-]
    # Of the logarithms of successive batch durations, 0 to 0.98; only for one lognormal job per
    # batch, run one at a time. [-]
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DStreamsLatency:
    """Delay of batches, and latency of their rows."""

    wait: Wait  # from the time of a batch to the start of its first job
    tuple_mean_s: float  # from the arrival of a row to the end of its batch; inf if unstable [s]
    utilization_ratio: float  # work per second of one concurrent job; unstable from 1 on [-]
    tuple_law: LatticeLaw | None  # distribution of the latency of rows; None if unstable

    def tuple_quantile_s(self, q: Numeric) -> Array:
        """Quantiles of the latency of rows, 0 < q < 1; ``inf`` if unstable. [s]"""
        return smooth_quantile_s(self.tuple_law, q)


def dstreams_latency(
    interval_s: float, jobs: DStreamJobs, *, receive_delay_s: float = 0.0
) -> DStreamsLatency:
    r"""Delays of the batches of a DStreams application, latency of its rows; ``inf`` if unstable.

    Parameters
    ----------
    interval_s : float, > 0, batch interval of the ``StreamingContext`` [s]
    jobs : DStreamJobs, of a usual batch; the distribution of a job's time must be known
    receive_delay_s : float, >= 0
        Time from the arrival of a row until a batch can take it: 0 for direct streams; with
        receivers up to a block interval (``spark.streaming.blockInterval``), more of it if block
        and batch end together. [s]

    **(V1)** One job at a time: a batch of `J` jobs is one service. It has `J` times the cumulants
    of a job, and the distribution of a job convolved `J` times. A row waits `VB` for its batch, and
    the batch waits `W` for those before it: `L = r + VB + W + Σ S`. All terms are independent, so
    their distributions are convolved on a lattice. `r` is 0 for direct streams. A receiver's block
    that ends together with the current batch belongs to the next one: `r` is then up to a block
    interval (derived from the rules, not measured).

    Exact but for the lattice; several concurrent jobs (V4) and autocorrelation (V3) are estimated.

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
    wait, busy = scheduling_delay(interval_s, jobs), busy_time(jobs)
    return DStreamsLatency(
        wait=wait,
        tuple_mean_s=receive_delay_s + 0.5 * interval_s + (wait.mean_s + busy.mean_s),
        utilization_ratio=jobs.work_s / (jobs.num_concurrent * interval_s),
        tuple_law=_tuple_law(wait, busy, interval_s, receive_delay_s),
    )


def _tuple_law(
    wait: Wait, busy: QueueTime, interval_s: float, receive_delay_s: float
) -> LatticeLaw | None:
    """Distribution of the latency of rows, or None if unstable."""
    if not np.isfinite(wait.mean_s):
        return None
    assert busy.on_lattice is not None
    busy_sd_s = float(np.sqrt(busy.variance_s2))
    reach_s = interval_s + busy.mean_s + wait.mean_s + _REACH * (busy_sd_s + wait.sd_s)
    step_s = reach_s / _STEPS
    try:
        delay = busy.on_lattice(step_s).plus(_law_of_wait(wait, step_s))
    except LatticeTooLongError:  # a tail longer than a million steps
        step_s *= 100.0
        delay = busy.on_lattice(step_s).plus(_law_of_wait(wait, step_s))
    return _trimmed(delay).plus(uniform_law(interval_s, step_s).later(receive_delay_s))


def _law_of_wait(wait: Wait, step_s: float) -> LatticeLaw:
    if wait.law is not None:
        return on_step(wait.law, step_s)
    # A gamma has these moments only if the wait is likely enough.
    likely_prob = np.maximum(wait.moments.wait_prob, 1e-12)
    return zero_or_gamma_law(wait.moments._replace(wait_prob=likely_prob), step_s)


def scheduling_delay(interval_s: float, jobs: DStreamJobs) -> Wait:
    r"""Wait of a batch for the start of its first job; ``inf`` from utilization 1 on.

    A utilization that is below 1 by no more than a rounding error raises ``ValueError``.

    Parameters
    ----------
    interval_s : float, > 0

    **(V2)** `W` is the wait in a queue with arrivals at fixed intervals, (Q16). Stable if
    `J E[S] < kB`, with `k` jobs at a time. Exact except for the lattice.

    theory.md (V3) if successive batches are correlated, or (V4) for a pool.

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
        moments=autocorrelated_service_wait(interval_s, work.mean_s, cv, jobs.autocorrelation)
    )


def _faster(time: QueueTime, factor: int) -> QueueTime:
    """The time at a server that is ``factor`` times as fast."""
    time_on_lattice = time.on_lattice
    if factor == 1 or time_on_lattice is None:
        return time

    def on_lattice(step_s: float) -> LatticeLaw:
        return replace(time_on_lattice(factor * step_s), step_s=step_s)

    third = time.third_central_s3
    if third is not None:
        third /= factor**3
    return replace(time, mean_s=time.mean_s / factor, third_central_s3=third, on_lattice=on_lattice)


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

    **(V4)** Several jobs at a time (`k > 1`): the pool is treated as one server that is `k` times
    as fast, but whose waits are `C(m, ρ)/ρ` times as frequent, with Erlang's probability of a wait
    for `m = k/J` servers, interpolated linearly between whole numbers. The ratio is 1 if `m ≤ 1`.
    From the start of the batch it takes the makespan of `J` jobs on `k` threads (M1)-(M5). The
    ratio is exact for Poisson arrivals and exponential services.

    Erlang (1917), computed by the recursion of the loss formula, which never overflows.

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
    moments = (mean, second - mean**2, ratio * wait.wait_prob)
    return Wait(moments=WaitMoments(*map(np.asarray, moments)), law=law)


def busy_time(jobs: DStreamJobs) -> QueueTime:
    """From the start of a batch's first job to the end of its last, with the pool to itself (V2).

    It is lognormal if several jobs run at a time: (M1)-(M5).

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
        power = _trimmed(power.plus(power))


def _trimmed(law: LatticeLaw) -> LatticeLaw:
    """A distribution without the padding that sums collect at their far end.

    It keeps all but 1e-13 of the probability.
    """
    mass = law.probability
    num_kept = int(np.searchsorted(np.cumsum(mass), mass.sum() * (1.0 - 1e-13))) + 1
    return replace(law, probability=mass[:num_kept] / mass[:num_kept].sum())
