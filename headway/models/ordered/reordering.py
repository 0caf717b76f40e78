"""The cost of putting the outputs of several workers in order."""

from __future__ import annotations

import numpy as np

from headway.domain.ordered import Reordering
from headway.models.ordered.service import ServiceLaw, TimeLaw


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
