"""Share of the cores, the link or the disk that a thread gets beside others.

Slowdowns are the time over that on a server of one's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from headway.few_numbers import together
from headway.models.arrays import Array, Numeric

_Binomial: TypeAlias = Callable[[Array], Array]

_MOST_ITERATIONS = 400
_TOLERANCE = 1e-11


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ThreadGroup:
    """Threads of one kind on one node, and the share of time that each would be busy if alone.

    >>> ThreadGroup(num_threads=4, busy_ratio=0.3).demand
    1.2
    """

    num_threads: Numeric
    busy_ratio: Numeric

    def __post_init__(self) -> None:
        threads, busy = np.asarray(self.num_threads), np.asarray(self.busy_ratio)
        if not (np.all(threads >= 0) and np.all(threads == np.round(threads))):
            raise ValueError("num_threads must be whole and not negative")
        if not (np.all(busy >= 0.0) and np.all(busy <= 1.0)):
            raise ValueError("busy_ratio must lie in 0..1")

    @property
    def demand(self) -> Numeric:
        """Servers that the group keeps busy on average. [-]"""
        return self.num_threads * self.busy_ratio


def published_slowdown(num_servers: Numeric, others_demand: Numeric) -> Array:
    r"""Slowdown of a thread by the paper's rule: others first, and never more than one server.

    Parameters
    ----------
    num_servers : float or (n,) array, > 0, cores, or link rate over the rate of one stream
    others_demand : float or (n,) array, >= 0, servers that all other threads keep busy on average

    **(R1)** As published (VLDB'15, eq. 2): the other threads of a node need `d` of `n` cores, and a
    thread gets `min(n-d, 1)`. The paper calls this an upper bound of the time, but it is not one,
    since it uses only the mean of the others. It is 18% low for 12 threads busy 0.25 on 4 cores,
    and 60% high for 7 threads busy 0.5. `inf` for `d ≥ n`.

    >>> published_slowdown(4, np.array([2.0, 3.5, 4.0]))
    array([ 1.,  2., inf])
    """
    servers, demand = together(num_servers, others_demand)
    if not (np.all(servers > 0.0) and np.all(demand >= 0.0)):
        raise ValueError("num_servers must be positive and others_demand non-negative")
    free_servers = np.minimum(servers - demand, 1.0)
    return np.where(
        free_servers > 0.0, 1.0 / np.where(free_servers > 0.0, free_servers, 1.0), np.inf
    )


def alternating_slowdown(num_servers: Numeric, others: ThreadGroup) -> Array:
    r"""Slowdown by other threads that rest for a time of their own after each piece of work.

    Each thread gets at most one server, evenly shared. A thread that is slowed down does not rest
    less, so it does less work.

    **(R2)** Processor sharing: a thread beside `J` busy ones gets `min(1, n/(J+1))`, so its
    slowdown is `1/E min(1, n/(J+1))`, with `J` binomial for `K` threads that are busy `u'` of the
    time. For threads that rest after their work for `(1-u)/u` of its length, `u' = u/(u+e(1-u))`,
    `e = E min(1, n/(j+2))`, with `j` binomial for `K - 1` threads.

    >>> float(alternating_slowdown(4, ThreadGroup(num_threads=7, busy_ratio=0.5)))
    1.24
    """
    servers = _checked_servers(num_servers)
    num_threads, busy_alone = _thread_counts([others]), _busy_ratios([others])

    def next_busy(undelayed: Array, rate: Array) -> Array:
        # Work w takes w / rate; the rest of w (1 - u) / u that follows it stays as it is.
        return undelayed / (undelayed + rate * (1.0 - undelayed))

    busy = _fixed_point(servers, num_threads, busy_alone, next_busy, num_more=2)
    return 1.0 / _mean_rate(servers, [*map(_binomial, num_threads)], busy, num_more=1)


def clocked_slowdowns(num_servers: Numeric, groups: Sequence[ThreadGroup]) -> list[Array]:
    r"""Slowdown of each group of threads whose work arrives by a clock, whatever their progress.

    Servers are evenly shared, each thread gets at most one. It is ``inf`` for all groups where a
    thread has no rest left, or they need all servers.

    Parameters
    ----------
    num_servers : float or (n,) array, > 0, cores, or link rate over the rate of one stream
    groups : sequence of ThreadGroup, all threads of the node

    **(R3)** Threads whose work arrives by a clock do all of it: `u'_t = u_t/E min(1, n/(1+J_t))`,
    with `J_t` the number of all other busy threads, of any group. Then `E min(n, active) = Σ u`, as
    it must be. The slowdown is `inf` where a thread needs all of its time. Threads are taken as
    independent. Clocks that make the threads of a node work at the same time violate this: six
    mappers with one batch each at the same time slow a reducer by 1.24 where (R3) predicts 1.05,
    and a reducer busy 0.82 of the time then falls behind.

    >>> groups = [ThreadGroup(num_threads=4, busy_ratio=ratio) for ratio in (0.3, 0.5)]
    >>> mappers, reducers = clocked_slowdowns(4, groups)
    >>> round(float(mappers), 3), round(float(reducers), 3)
    (1.117, 1.093)
    """
    servers = _checked_servers(num_servers)
    num_threads, busy_alone = _thread_counts(groups), _busy_ratios(groups)

    def next_busy(undelayed: Array, rate: Array) -> Array:
        return np.minimum(undelayed / rate, 1.0)

    busy = _fixed_point(servers, num_threads, busy_alone, next_busy, num_more=1)
    demand = sum((np.asarray(group.demand, dtype=np.float64) for group in groups), np.zeros(()))
    saturated = demand >= servers
    for busy_ratio, group in zip(busy, groups, strict=True):
        saturated = saturated | ((busy_ratio >= 1.0) & (np.asarray(group.num_threads) > 0))
    return [
        np.where(saturated, np.inf, 1.0 / _mean_rate(servers, binomials, busy, num_more=1))
        for binomials in _beside_each(num_threads, [int(counts.max()) for counts in num_threads])
    ]


def slowdown_beside(num_servers: Numeric, others: Sequence[ThreadGroup]) -> Array:
    r"""Slowdown of a thread beside others whose busy share is known: (R2) without its fixed point.

    Parameters
    ----------
    num_servers : float or (n,) array, > 0, cores, each thread at most one, evenly shared
    others : sequence of ThreadGroup, with the share of time that they are actually busy

    >>> float(slowdown_beside(2, [ThreadGroup(num_threads=3, busy_ratio=1.0)]))
    2.0
    """
    binomials, busy = [*map(_binomial, _thread_counts(others))], _busy_ratios(others)
    return 1.0 / _mean_rate(_checked_servers(num_servers), binomials, busy, num_more=1)


def _fixed_point(
    servers: Array,
    num_threads: list[NDArray[np.int64]],
    busy_alone: list[Array],
    next_busy: Callable[[Array, Array], Array],
    num_more: int,
) -> list[Array]:
    """Fixed point of the busy shares of (R2), (R3), from below, where all threads are idle.

    ``next_busy`` is that of a group by its share without the others and the rate of its threads,
    with ``num_more`` that are always busy. Settings that do not move any more, to the last digit,
    are computed no longer; those near saturation are the last.
    """
    num_groups, maxima = len(num_threads), [int(counts.max()) for counts in num_threads]
    values = np.broadcast_arrays(servers, *num_threads, *busy_alone)
    shape = values[0].shape
    flat = [array.reshape(-1) for array in values]
    settled: list[Array] = [np.zeros(flat[0].size) for _ in range(num_groups)]
    busy = [busy_ratios.copy() for busy_ratios in settled]
    moving = np.arange(flat[0].size)
    companions = _beside_each(flat[1 : num_groups + 1], maxima)
    for _ in range(_MOST_ITERATIONS):
        updated = [
            next_busy(undelayed, _mean_rate(flat[0], binomials, busy, num_more))
            for undelayed, binomials in zip(flat[num_groups + 1 :], companions, strict=True)
        ]
        steps = np.max([np.abs(a - b) for a, b in zip(updated, busy, strict=True)], axis=0)
        busy = updated
        if np.max(steps, initial=0.0) <= _TOLERANCE:
            break
        still = np.flatnonzero(steps)
        if 2 * len(still) < len(moving):
            for busy_ratios, last in zip(settled, busy, strict=True):
                busy_ratios[moving] = last
            moving, busy = moving[still], [last[still] for last in busy]
            flat = [array[still] for array in flat]
            companions = _beside_each(flat[1 : num_groups + 1], maxima)
    for busy_ratios, last in zip(settled, busy, strict=True):
        busy_ratios[moving] = last
    return [busy_ratios.reshape(shape) for busy_ratios in settled]


def _beside_each(num_threads: list[NDArray[np.int64]], maxima: list[int]) -> list[list[_Binomial]]:
    """The active threads of each group beside a thread of each one, of at most so many."""
    return [
        [
            _binomial(counts, maxima[group] - (group == index))
            for group, counts in enumerate(_others_of(num_threads, index))
        ]
        for index in range(len(num_threads))
    ]


def _others_of(groups: list[NDArray[np.int64]], index: int) -> list[NDArray[np.int64]]:
    """The threads beside one of the group ``index``."""
    return [
        np.maximum(counts - 1, 0) if group == index else counts
        for group, counts in enumerate(groups)
    ]


def _binomial(num_threads: NDArray[np.int64], maximum: int | None = None) -> _Binomial:
    """Probabilities of 0, 1, .. active threads, along a new last axis, by their busy share.

    The axis goes up to ``maximum``, by default to the largest number of threads.
    """
    maximum = int(num_threads.max()) if maximum is None else max(maximum, 0)
    # The number of ways to choose active threads does not depend on how busy they are.
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, maximum + 1)))])
    active = np.arange(maximum + 1)
    num_idle = num_threads[..., np.newaxis] - active
    idle = np.maximum(num_idle, 0)
    log_ways = (
        log_factorial[num_threads][..., np.newaxis] - log_factorial[active] - log_factorial[idle]
    )
    ways = np.where(num_idle >= 0, np.exp(log_ways), 0.0)

    def probabilities(busy: Array) -> Array:
        share = busy[..., np.newaxis]
        return np.asarray(ways * share**active * (1.0 - share) ** idle)

    return probabilities


def _mean_rate(servers: Array, groups: list[_Binomial], busy: list[Array], num_more: int) -> Array:
    """Expected rate of a thread beside independent others and ``num_more`` that are always busy."""
    counts = (binomial(share) for binomial, share in zip(groups, busy, strict=True))
    probability = reduce(_sum_of_counts, counts)
    active = np.arange(probability.shape[-1]) + num_more
    mean: Array = np.sum(probability * np.minimum(1.0, servers[..., np.newaxis] / active), axis=-1)
    return mean


def _sum_of_counts(first: Array, second: Array) -> Array:
    shape = np.broadcast_shapes(first.shape[:-1], second.shape[:-1])
    total = np.zeros((*shape, first.shape[-1] + second.shape[-1] - 1))
    for count in range(first.shape[-1]):
        total[..., count : count + second.shape[-1]] += first[..., count : count + 1] * second
    return total


def _checked_servers(num_servers: Numeric) -> Array:
    servers = np.asarray(num_servers, dtype=np.float64)
    if not np.all(servers > 0.0):
        raise ValueError("num_servers must be positive")
    return servers


def _thread_counts(groups: Sequence[ThreadGroup]) -> list[NDArray[np.int64]]:
    if not groups:
        raise ValueError("need at least one group of threads")
    return [np.asarray(group.num_threads).astype(np.int64) for group in groups]


def _busy_ratios(groups: Sequence[ThreadGroup]) -> list[Array]:
    return [np.asarray(group.busy_ratio, dtype=np.float64) for group in groups]
