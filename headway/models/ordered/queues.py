"""Queues in front of a partitioned operator: latency to the ordered exit, and skew."""

from __future__ import annotations

import numpy as np

from headway.assumptions.predictions import BUSIEST_PARTITIONS_RATIO, FEWEST_BUSY_WORKERS
from headway.models.arrays import Array
from headway.models.ordered.service import ServiceLaw, TimeLaw

_CELLS = 1 << 15
_DAMPED = 20.0  # wrap-around of the transform is damped by e^-20
_DECAYS = 26.0  # the tail beyond is e^-26


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
