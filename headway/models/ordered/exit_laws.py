"""The time of a tuple at an operator, and from its start to its exit in order: laws and costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headway.assumptions.predictions import BUSIEST_PARTITIONS_RATIO, FEWEST_BUSY_WORKERS
from headway.domain.ordered import Reordering
from headway.models.arrays import Array
from headway.models.laws.gamma import gammainc, gammaincinv

_NEGLIGIBLE = 1e-11
_FINE, _COARSE = 6000, 3000
_CELLS = 1 << 15
_DAMPED = 20.0  # wrap-around of the transform is damped by e^-20
_DECAYS = 26.0  # the tail beyond is e^-26


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLaw:
    """A gamma distributed service time of mean > 0 [s] and coefficient of variation 0 to 3.

    >>> law = ServiceLaw(mean_s=2.0, cv=1.0)
    >>> law.cdf(np.array([2.0])), law.excess_cdf(np.array([2.0]))
    (array([0.632]), array([0.632]))
    """

    mean_s: float
    cv: float

    def __post_init__(self) -> None:
        if not (0.0 < self.mean_s < np.inf and 0.0 <= self.cv <= 3.0):
            raise ValueError(f"need mean_s > 0 and cv in 0..3, got {self.mean_s} and {self.cv}")

    @property
    def is_constant(self) -> bool:
        """Whether it never varies; the laws below lose precision if it hardly varies."""
        return self.cv < 1e-4

    def cdf(self, time_s: Array) -> Array:
        """Probability that it is at most ``time_s``."""
        time = np.maximum(time_s, 0.0)
        if self.is_constant:
            return np.where(time >= self.mean_s, 1.0, 0.0)
        shape = self.cv**-2
        return np.asarray(gammainc(shape, time * shape / self.mean_s), dtype=np.float64)

    def excess_cdf(self, time_s: Array) -> Array:
        """Probability that the time left at a random moment is at most ``time_s``."""
        time = np.maximum(time_s, 0.0)
        if self.is_constant:
            return np.minimum(time / self.mean_s, 1.0)
        shape = self.cv**-2
        weighted_cdf = np.asarray(gammainc(shape + 1.0, time * shape / self.mean_s))
        below = time * self.cdf(time) - self.mean_s * weighted_cdf
        return np.clip((time - below) / self.mean_s, 0.0, 1.0)

    def grid_s(self, num_others: float) -> Array:
        """Times from 0 until the longest of this many has ended, fine around the mean."""
        tail_prob = _NEGLIGIBLE / max(num_others, 1.0)
        if self.is_constant:
            highest = self.mean_s
        else:
            shape = self.cv**-2
            highest = float(gammaincinv(shape + 1.0, 1.0 - tail_prob)) * self.mean_s / shape
        fine = np.linspace(0.0, 4.0 * self.mean_s, _FINE)
        if highest <= fine[-1]:
            return np.linspace(0.0, max(highest, self.mean_s) * (1.0 + 1e-9), _FINE)
        return np.concatenate([fine, np.geomspace(fine[-1], highest, _COARSE)[1:]])


@dataclass(frozen=True, slots=True)
class TimeLaw:
    """A law on a grid of times: probability `cdf` of at most `time_s` [s]."""

    time_s: Array
    cdf: Array

    @property
    def mean_s(self) -> float:
        """Mean, by the trapezoid rule. [s]"""
        survival = 1.0 - self.cdf
        return float(self.time_s[0] + 0.5 * (survival[1:] + survival[:-1]) @ np.diff(self.time_s))

    def quantile_s(self, q: float) -> float:
        """The time that is not exceeded with probability ``q``. [s]"""
        return float(np.interp(q, np.maximum.accumulate(self.cdf), self.time_s))


def reordered_throughput_per_s(
    num_workers: float, cost_s: float, reordering: Reordering, *, selectivity_ratio: float = 1.0
) -> float:
    r"""Inputs per second of an operator whose workers put their outputs in order.

    ``cost_s`` is the time of a tuple at a worker. The ``selectivity_ratio`` outputs of an input are
    all sent by one worker at a time. All three numbers are above 0.

    **(O3)** With a lock: a closed queue of `n` workers with think time `c` and service time `h+l`,
    where `h` is the time to send the outputs of a tuple and `l` the time to take the lock. By mean
    value analysis `R = (h+l)(1+Q)`, `X = n/(c+R)`, `Q = X R`, interpolated linearly between whole
    `n`. Without blocking, with `a` the time to store: `X = min(n/(c+a+h), 1/h)`, with the knee at
    `n = (c+a+h)/h`. The schemes are those of Prasaad, Ramalingam and Rajan (2018), the analysis is
    that of Reiser and Lavenberg (1980, doi:10.1145/322186.322195).

    >>> fast = Reordering(store_s=1e-7, send_s=1e-6, lock_s=1e-7)
    >>> round(reordered_throughput_per_s(16, 1e-5, fast))
    1000000
    >>> locked = Reordering(scheme="lock", store_s=1e-7, send_s=1e-6, lock_s=1e-7)
    >>> round(reordered_throughput_per_s(16, 1e-5, locked), -3)
    898000.0
    """
    if not (num_workers > 0.0 and cost_s > 0.0 and selectivity_ratio > 0.0):
        raise ValueError("need num_workers, cost_s and selectivity_ratio above 0")
    send_s = reordering.send_s * selectivity_ratio
    if reordering.scheme == "non-blocking":
        by_workers = num_workers / (cost_s + reordering.store_s + send_s)
        return min(by_workers, 1.0 / send_s) if send_s > 0.0 else by_workers
    held_s = send_s + reordering.lock_s
    before, throughput, queued = 0.0, 0.0, 0.0
    for number in range(1, int(np.ceil(num_workers)) + 1):
        before = throughput
        response_s = held_s * (1.0 + queued)
        throughput = number / (cost_s + response_s)
        queued = throughput * response_s
    fraction = np.ceil(num_workers) - num_workers
    return float(throughput - fraction * (throughput - before))


def tuple_cost_s(cost_s: float, reordering: Reordering, selectivity_ratio: float = 1.0) -> float:
    r"""Time of a tuple at a single worker, including the time to put it in order (O3). [s]

    `c+a+h` without blocking, `c+l+h` with the lock. Speedups are relative to it. ``cost_s`` is the
    time at the worker itself.

    >>> tuple_cost_s(1e-5, Reordering(store_s=1e-7, send_s=1e-6, lock_s=1e-7)) * 1e6
    11.1
    """
    is_lock = reordering.scheme == "lock"
    own_s = reordering.lock_s if is_lock else reordering.store_s
    return cost_s + own_s + reordering.send_s * selectivity_ratio


def saturated_latency_s(num_workers: int, cost_s: float, reordering: Reordering) -> float:
    r"""Mean latency from start to exit if an operator is limited by sending. [s]

    ``num_workers`` is above the knee of (O3). ``cost_s`` is the time of a tuple at a worker, > 0.

    **(O4)** Beyond the knee of (O3) the buffer of `B` outputs is full, so a tuple is `B+n` sends
    away from the exit when it starts: latency is `(B+n) h`, within 10% of (S12). With a lock, the
    workers wait instead, and latency is `n h + c`. So a buffer of a few `n` loses no throughput and
    keeps latency low.

    >>> saturated_latency_s(16, 1e-5, Reordering(num_buffered=64, send_s=1e-6)) * 1e6
    80.0
    """
    if num_workers < 1 or not cost_s > 0.0:
        raise ValueError("need num_workers >= 1 and cost_s > 0")
    if reordering.scheme == "lock":
        return num_workers * reordering.send_s + cost_s
    return (reordering.num_buffered + num_workers) * reordering.send_s


def ordered_exit_law(service: ServiceLaw, num_busy: float) -> TimeLaw:
    r"""Time from the start of a tuple until it and all tuples before it are done.

    ``num_busy`` are the busy workers, the tuple's own included, at least 1.

    **(O5)** `P(L ≤ x) = F(x) F_e(x)^(w-1)`: the tuple's own time, and the remaining times of the
    tuples at the other `w-1` busy workers when it starts, with `F_e` the stationary excess of `F`.
    For exponential times `E[L] = H_w E[S]`. Exact for independent times with Poisson starts; within
    2% of (S11) for saturated workers.

    >>> law = ordered_exit_law(ServiceLaw(mean_s=1.0, cv=1.0), 8)
    >>> round(law.mean_s - 1.0, 4), round(law.quantile_s(0.99), 2)
    (1.7179, 6.68)
    """
    if not num_busy >= 1.0:
        raise ValueError(f"num_busy must be at least 1, got {num_busy}")
    time = service.grid_s(num_busy)
    return TimeLaw(time, service.cdf(time) * service.excess_cdf(time) ** (num_busy - 1.0))


def partitioned_exit_law(
    service: ServiceLaw, shares: Array, num_workers: int, utilization_ratio: float
) -> TimeLaw:
    r"""Time from arrival of a tuple to its ordered exit, if each partition has its own worker.

    ``shares`` are those of the tuples in each partition and add up to 1. ``utilization_ratio`` is
    the mean share of the ``num_workers`` workers, as many as partitions, that is busy, between 0
    and 1. No partition may be saturated. Divide times by E[S] to compare laws.

    **(O6)** Poisson arrivals, with a queue and a worker for each partition and shares `q_j`:
    `P(R ≤ x) = Σ_j q_j F_(W_j+S)(x) Π_(i≠j) F_(W_i)(x)`, with `W_i` the wait of an M/G/1 queue of
    load `ρ n q_i`: every partition must have processed all earlier tuples. Waits by Pollaczek and
    Khinchine, `Ŵ = (1-ρ)/(1-ρ Ŝ_e)`, on a lattice. Exact.

    >>> law = partitioned_exit_law(ServiceLaw(mean_s=1.0, cv=0.0), np.full(16, 1 / 16), 16, 0.5)
    >>> round(law.mean_s, 2), round(law.quantile_s(0.99), 1)
    (2.49, 5.7)
    """
    share, count = np.unique(_shares(shares), return_counts=True)
    loads = utilization_ratio * num_workers * share
    if num_workers < 1 or not 0.0 < utilization_ratio < 1.0:
        raise ValueError("need num_workers >= 1 and utilization_ratio between 0 and 1")
    if not loads.max() < 1.0:
        raise ValueError(f"a partition is saturated: its load is {loads.max():.3g}")
    relaxation_s = service.mean_s * (1.0 + service.cv**2) / (2.0 * (1.0 - loads.max()))
    horizon_s = _DECAYS * relaxation_s + 10.0 * service.mean_s * (1.0 + service.cv)
    step_s = horizon_s / _CELLS
    edge = step_s * (np.arange(_CELLS) + 0.5)
    damping = np.exp(-_DAMPED / _CELLS * np.arange(_CELLS))
    served, excess = (
        np.fft.rfft(np.diff(cdf, prepend=0.0) * damping)
        for cdf in (service.cdf(edge), service.excess_cdf(edge))
    )
    waits: list[Array] = []
    stays: list[Array] = []
    for load in loads:
        wait = (1.0 - load) / (1.0 - load * excess)
        for transform, laws in ((wait, waits), (wait * served, stays)):
            laws.append(np.clip(np.cumsum(np.fft.irfft(transform, _CELLS) / damping), 0.0, 1.0))
    all_done = np.ones(_CELLS)
    for number, wait in zip(count, waits, strict=True):
        all_done *= wait**number
    cdf = np.zeros(_CELLS)
    for number, part, stay, wait in zip(count, share, stays, waits, strict=True):
        cdf += number * part * stay * all_done / np.maximum(wait, 1e-300)
    return TimeLaw(edge, np.maximum.accumulate(np.clip(cdf, 0.0, 1.0)))


def hybrid_exit_law(
    service: ServiceLaw, num_workers: int, num_buckets: int, utilization_ratio: float
) -> TimeLaw:
    r"""Time from the start of a tuple to its ordered exit with hybrid queues and even shares.

    ``num_buckets`` are partitions, several times as many as workers. ``utilization_ratio`` is the
    mean share of the workers that is busy, above 0 and at most 1.

    **(O7)** With `b = max(1, ρ n)` busy workers and `p` partitions:
    `P(L ≤ x) = F F_e^(b-1) exp(-(b^2/p) E[(V-x)^+]/E[S])`, with `V` an excess plus a service. The
    first factors are (O5); the last requires that no tuple that was left to the worker of a busy
    partition ends later. Range: even shares, `b ≥ 4`, `b ≤ p/25`; there within -6 to +6% of (S11),
    mean and p99. Beyond it tuples that were left to a worker wait for each other: with two
    partitions per worker the mean is up to 37% too low, the p99 up to 66%.

    >>> law = hybrid_exit_law(ServiceLaw(mean_s=1.0, cv=0.3), 16, 100, 0.5)
    >>> round(law.mean_s, 1)
    1.3
    """
    if num_workers < 1 or num_buckets < 1 or not 0.0 < utilization_ratio <= 1.0:
        raise ValueError("need workers, partitions and a utilization_ratio above 0, at most 1")
    busy = max(utilization_ratio * num_workers, 1.0)
    horizon_s = float(service.grid_s(num_workers)[-1]) + 2.0 * service.mean_s
    step_s = horizon_s / _CELLS
    edge: Array = step_s * np.arange(_CELLS, dtype=np.float64)
    excess = np.diff(service.excess_cdf(edge + 0.5 * step_s), prepend=0.0)
    served = np.diff(service.cdf(edge + 0.5 * step_s), prepend=0.0)
    size = 2 * _CELLS
    excess_plus_served = np.fft.irfft(np.fft.rfft(excess, size) * np.fft.rfft(served, size), size)
    # E[(V-x)^+] is the integral of P(V > u) from x on.
    later = np.maximum(1.0 - np.cumsum(excess_plus_served), 0.0)
    mean_beyond_s = step_s * np.cumsum(later[::-1])[::-1][:_CELLS]
    exit_cdf = service.cdf(edge) * service.excess_cdf(edge) ** (busy - 1.0)
    return TimeLaw(
        edge, exit_cdf * np.exp(-(busy**2) / num_buckets * mean_beyond_s / service.mean_s)
    )


def is_hybrid_law_in_range(shares: Array, num_busy: float) -> bool:
    r"""Whether (O7) holds for an operator with hybrid queues.

    It does if the shares of the tuples in each partition, which add up to 1, are even, and the
    number of busy workers is in the range.

    >>> [is_hybrid_law_in_range(np.full(p, 1 / p), 14.0) for p in (32, 400)]
    [False, True]
    """
    share = _shares(shares)
    is_even = float(share.max()) * len(share) < 1.0 + 1e-9
    is_sparse = num_busy <= BUSIEST_PARTITIONS_RATIO.value * len(share)
    return is_even and is_sparse and num_busy >= FEWEST_BUSY_WORKERS.value


def skewed_workers(shares: Array, num_workers: float) -> float:
    r"""Workers that a saturated partitioned operator can keep busy.

    ``shares`` are those of the tuples in each partition and add up to 1.

    **(O8)** `min(n, 1/max q)`: the partition with the largest share is served by one worker at a
    time. Exact with a queue and a worker for each of `p = n` partitions; within 4% of (S11) with
    hybrid queues over more partitions.

    >>> skewed_workers(np.array([0.1, 0.2, 0.3, 0.4]), 16), skewed_workers(np.full(32, 1 / 32), 16)
    (2.5, 16.0)
    """
    if not num_workers > 0.0:
        raise ValueError(f"num_workers must be positive, got {num_workers}")
    return min(float(num_workers), 1.0 / float(_shares(shares).max()))


def _shares(shares: Array) -> Array:
    share = np.asarray(shares, dtype=np.float64)
    if share.ndim != 1 or not share.size or not np.all(share >= 0.0):
        raise ValueError("shares must be one row of numbers >= 0")
    if not np.isclose(share.sum(), 1.0):
        raise ValueError("shares must add up to 1")
    return share
