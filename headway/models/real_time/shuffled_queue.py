"""The queue of a task to which other tasks send rows, buffer by buffer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headway.models.arrays import Array
from headway.models.laws.distributions import gauss_legendre
from headway.models.queues.queueing import WaitMoments
from headway.models.queues.random_walk import positive_parts, spitzer_terms

_NODE, _WEIGHT = gauss_legendre(24)
_MOST_WHOLE_PERIODS = 400
_LAST_SCORE = 8.0
_MOST_PERIODS = 1e7
_NODES_PER_PERIOD = 8  # panels within a period, in which the variance of the work changes


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
