"""The stages of a query in Real-Time Mode: the slots that they need, the queues of their tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from headway.assumptions.resources import (
    SHUFFLE_BUFFER_BYTES,
    SHUFFLE_FULL_RATIO,
    SHUFFLE_MAX_WAIT_S,
)
from headway.models.arrays import Array
from headway.models.laws.distributions import gauss_legendre
from headway.models.queues.queueing import WaitMoments
from headway.models.queues.random_walk import positive_parts, spitzer_terms

_NODE, _WEIGHT = gauss_legendre(24)
_MOST_WHOLE_PERIODS = 400
_LAST_SCORE = 8.0
_MOST_PERIODS = 1e7
_NODES_PER_PERIOD = 8  # panels within a period, in which the variance of the work changes


@dataclass(frozen=True, slots=True, kw_only=True)
class RealTimeStage:
    """A stage of a query in Real-Time Mode: tasks that live as long as a batch."""

    num_tasks: int  # Partitions of the source, or shuffle partitions, >= 1. [-]
    row_s: float  # Mean time that a task needs for a row, > 0. [s]
    row_cv: float  # Coefficient of variation of that time, taken as lognormal, 0 to 2. [-]
    rows_ratio: float = 1.0  # Rows that enter the stage per row of the source, > 0. [-]
    largest_share: float | None = None
    """Share of the stage's rows at its busiest task, 1 / num_tasks to 1; the others share the rest
    evenly. Even by default. [-]"""

    def __post_init__(self) -> None:
        if self.num_tasks < 1 or not 0.0 < self.row_s < np.inf or not 0.0 <= self.row_cv <= 2.0:
            raise ValueError(
                f"need a task, row_s > 0 and row_cv in 0..2, got "
                f"{self.num_tasks}, {self.row_s} and {self.row_cv}"
            )
        if not 0.0 < self.rows_ratio < np.inf:
            raise ValueError(f"rows_ratio must be positive, got {self.rows_ratio}")
        even = 1.0 / self.num_tasks
        if self.largest_share is not None and not even * (1 - 1e-9) <= self.largest_share <= 1.0:
            raise ValueError(f"largest_share must lie in {even:.3g}..1, got {self.largest_share}")

    @property
    def busiest_share(self) -> float:
        """Share of the rows at the busiest task. [-]"""
        return 1.0 / self.num_tasks if self.largest_share is None else self.largest_share

    @property
    def shares(self) -> Array:
        """Share of the rows at each task, the busiest first, (num_tasks,). [-]"""
        if self.num_tasks == 1:
            return np.ones(1)
        shares = np.full(self.num_tasks, (1.0 - self.busiest_share) / (self.num_tasks - 1))
        shares[0] = self.busiest_share
        return shares

    def utilization_ratio(self, rate_per_s: float) -> float:
        """Busy share of the busiest task at an input rate of the query [rows/s]. [-]"""
        return rate_per_s * self.rows_ratio * self.busiest_share * self.row_s


def required_slots(stages: Sequence[RealTimeStage]) -> int:
    r"""Slots that must be free when a batch of a query in Real-Time Mode starts.

    Parameters
    ----------
    stages : sequence of RealTimeStage, at least one

    **(N1)** Required slots: the sum of the tasks of all stages, i.e. the partitions of the source
    plus the shuffle partitions of every shuffle. With fewer slots, Spark rejects the query.

    >>> source = RealTimeStage(num_tasks=8, row_s=1e-4, row_cv=1.0)
    >>> required_slots([source, RealTimeStage(num_tasks=20, row_s=1e-4, row_cv=1.0)])
    28
    """
    if not stages:
        raise ValueError("a query has at least one stage")
    return sum(stage.num_tasks for stage in stages)


def sustainable_rate_per_s(
    stages: Sequence[RealTimeStage], *, trigger_s: float, gap_s: float = 0.0
) -> float:
    r"""Input rate at which the busiest task of a query in Real-Time Mode is saturated.

    Parameters
    ----------
    stages : sequence of RealTimeStage, at least one
    trigger_s : float, > 0, duration of a batch, the argument of the real-time trigger [s]
    gap_s : float, >= 0, time between two batches, in which nothing is read [s]

    **(N2)** Between two batches nothing is read for a gap `g`, during commit, planning and launch.
    Reading ends `T` after the plan was made, whenever tasks started. So `g` is the time between
    batch starts in excess of `T`, plus the time from the plan to the first task, plus the time to
    load a state store. Stable if `ρ (1+g/T) < 1` for the busiest task, with `T` the duration of a
    batch.

    >>> source = RealTimeStage(num_tasks=8, row_s=1e-3, row_cv=1.0)
    >>> sustainable_rate_per_s([source], trigger_s=9.0, gap_s=1.0)
    7200.0
    """
    if not stages:
        raise ValueError("a query has at least one stage")
    if not (0.0 < trigger_s < np.inf and 0.0 <= gap_s < np.inf):
        raise ValueError("need trigger_s > 0 and gap_s >= 0")
    per_row_s = max(stage.utilization_ratio(1.0) for stage in stages)
    return trigger_s / (trigger_s + gap_s) / per_row_s


def shuffle_wait_limit_s(pair_rate_per_s: float, row_bytes: float) -> float:
    r"""Maximum wait of a row in a buffer of the streaming shuffle.

    Parameters
    ----------
    pair_rate_per_s : float, >= 0, rows that one task sends to one task of the next stage [rows/s]
    row_bytes : float, > 0, size of a row in the buffer [bytes]

    **(N5)** Rows are not sent one by one: a writer collects them per reader and sends them when the
    buffer is 0.9 full or when its clock of period `F` ticks (`networkBufferSize` 32 KB,
    `networkBufferMaxWaitTimeMs` 50). `F` is the shorter of the clock's period and the time to fill
    the buffer. A row that enters after a share `x` of `F` waits `(1-x) F` and has Poisson(`xb`)
    rows ahead of it in its buffer, with `b = λ F/M` for `M` writers. This is computed in eight
    parts of `x`, each a uniform plus a zero-or-gamma. So every shuffle adds at least `F/2` on
    average: 25 ms by default, more than all the work of a light query.

    >>> shuffle_wait_limit_s(100.0, 200.0), shuffle_wait_limit_s(1e4, 200.0)
    (0.05, 0.0147)
    """
    if not (0.0 <= pair_rate_per_s < np.inf and 0.0 < row_bytes < np.inf):
        raise ValueError("need pair_rate_per_s >= 0 and row_bytes > 0")
    if pair_rate_per_s == 0.0:
        return SHUFFLE_MAX_WAIT_S.value
    full_bytes = SHUFFLE_FULL_RATIO.value * SHUFFLE_BUFFER_BYTES.value
    return min(SHUFFLE_MAX_WAIT_S.value, full_bytes / (pair_rate_per_s * row_bytes))


def shuffled_wait(
    rate_per_s: float, service_s: float, service_cv: float, num_writers: int, period_s: float
) -> WaitMoments:
    r"""Work that is waiting at a task when a buffer of rows arrives.

    ``rate_per_s`` is that of the rows from all writers, each of which sends its own by a clock of
    period ``period_s`` with a random phase, or one by one if that is 0. Service times are
    lognormal, with a cv of 0 to 2. The wait is that of the first row of a buffer; ``inf`` if the
    utilisation is 1 or more. It cannot be computed for a utilisation too close to 1.

    **(N6)** A buffer waits for the work of the other writers' buffers. In a time `t` before it
    arrives, they add work with mean `ρ t(M-1)/M`; its variance is that of Poisson rows plus
    `(M-1) f(1-f)(b E[S])^2`, `f = t/F mod 1`, since each writer's clock ticks once per period at a
    random phase. Earlier buffers of the same writer arrived whole periods before. Spitzer's sums in
    continuous time: `E[W] = ∫_0^(∞) 1/t E[(X_t)^+] dt`, and the variance with the square, where
    `X_t` is work minus time, taken as a shifted gamma with three cumulants. Exact for exchangeable
    increments; tends to (Q6) for many writers. A single writer is a clocked queue (Q10).
    `P(W > 0) ≤ ρ`.

    Exact if rows are sent one by one (Q6).

    >>> wait = shuffled_wait(800.0, 1e-3, 1.0, 1000, 0.0)
    >>> float(wait.mean_s), float(wait.wait_prob)
    (0.00400, 0.8)
    >>> float(shuffled_wait(800.0, 1e-3, 1.0, 8, 0.05).mean_s)
    0.0057
    """
    if not (0.0 < rate_per_s < np.inf and 0.0 < service_s < np.inf and 0.0 <= service_cv <= 2.0):
        raise ValueError("need rate_per_s > 0, service_s > 0 and service_cv in 0..2")
    if num_writers < 1 or not 0.0 <= period_s < np.inf:
        raise ValueError("need num_writers >= 1 and period_s >= 0")
    busy = rate_per_s * service_s
    if busy >= 1.0:
        return WaitMoments(np.array(np.inf), np.array(np.inf), np.array(1.0))
    square_s2 = service_s**2 * (1.0 + service_cv**2)
    cube_s3 = service_s**3 * (1.0 + service_cv**2) ** 3
    if period_s == 0.0:
        mean_s = rate_per_s * square_s2 / (2.0 * (1.0 - busy))
        third_s2 = rate_per_s * cube_s3 / (3.0 * (1.0 - busy))
        return WaitMoments(np.array(mean_s), np.array(mean_s**2 + third_s2), np.array(busy))
    work = _Work(rate_per_s, (service_s, square_s2, cube_s3), num_writers, period_s)
    return _alone(work) if num_writers == 1 else _among_others(work)


class _Work(NamedTuple):
    """Cumulants of the work that arrives before a buffer of a given writer."""

    rate_per_s: float
    moments: tuple[float, float, float]
    num_writers: int
    period_s: float

    @property
    def rows(self) -> float:
        return self.rate_per_s * self.period_s / self.num_writers

    @property
    def busy(self) -> float:
        return self.rate_per_s * self.moments[0]

    def surplus(self, time_s: Array) -> tuple[Array, Array, Array]:
        """Drift, standard deviation and third cumulant of work minus time."""
        first, second, third = self.moments
        periods = time_s / self.period_s
        whole_periods = np.floor(periods)
        part = periods - whole_periods
        num_others = self.num_writers - 1.0
        # Arrived rows: those of other writers at random, those of the same writer by its clock.
        rows = self.rows * (num_others * periods + whole_periods)
        clock = num_others * part * (1.0 - part)
        variance = rows * second + clock * (self.rows * first) ** 2
        skew = (
            rows * third
            + 3.0 * clock * self.rows * first * self.rows * second
            + clock * (1.0 - 2.0 * part) * (self.rows * first) ** 3
        )
        return time_s - rows * first, np.sqrt(variance), skew

    def last_period(self) -> float:
        """Number of periods after which a surplus is practically impossible."""
        count = np.geomspace(1.0, _MOST_PERIODS, 300)
        slack = count * self.period_s * (1.0 - self.busy)
        variance = self.rate_per_s * count * self.period_s * self.moments[1]
        clock = 0.25 * self.num_writers * (self.rows * self.moments[0]) ** 2
        safe_indices = np.flatnonzero(slack >= _LAST_SCORE * np.sqrt(variance + clock))
        if len(safe_indices) == 0:
            raise ValueError("the task is too busy: more than 1e7 periods decide about the wait")
        return float(np.ceil(count[safe_indices[0]]))


def _alone(work: _Work) -> WaitMoments:
    """A single writer: a clocked queue of buffers, by Spitzer's sums (Q10)."""
    first, second, third = work.moments
    last = work.last_period()
    count, weight = spitzer_terms(int(min(_MOST_WHOLE_PERIODS, last)), last, _NODE, _WEIGHT)
    rows = work.rows * count
    positive, mean_s, square_s2 = positive_parts(
        count * work.period_s - rows * first, np.sqrt(rows * second), rows * third
    )
    return WaitMoments(weight @ mean_s, weight @ square_s2, -np.expm1(-(weight @ positive)))


def _among_others(work: _Work) -> WaitMoments:
    """Several writers: the same sums in continuous time, within a period and over many periods."""
    last = work.last_period()
    near_periods = min(last, 40.0)
    edges = [np.geomspace(1e-7, 1.0 / _NODES_PER_PERIOD, 12)]
    edges.append(np.arange(2.0, near_periods * _NODES_PER_PERIOD + 1.0) / _NODES_PER_PERIOD)
    if last > near_periods:
        edges.append(np.geomspace(near_periods, last, 12)[1:])
    edge = np.log(np.concatenate(edges))
    half_width = 0.5 * np.diff(edge)[:, np.newaxis]
    middle = 0.5 * (edge[1:] + edge[:-1])[:, np.newaxis]
    # In the logarithm of time, the weight 1/t is constant.
    node = np.exp(middle + half_width * _NODE).ravel()
    weight = (half_width * _WEIGHT).ravel()
    positive, mean_s, square_s2 = positive_parts(*work.surplus(node * work.period_s))
    # At short times, gammas are positive too often; a task cannot be busy for more than this share.
    prob = min(float(-np.expm1(-(weight @ positive))), work.busy)
    return WaitMoments(weight @ mean_s, weight @ square_s2, np.array(prob))
