"""Latency of a row in Real-Time Mode: stage by stage, behind shuffles, plus the gaps of batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from headway.assumptions.resources import SHUFFLE_MAX_WAIT_S
from headway.models.arrays import Array, Numeric
from headway.models.laws.distributions import gauss_legendre, lognormal_quantile
from headway.models.queues.queueing import WaitMoments, pollaczek_khinchine_wait
from headway.models.queues.random_walk import positive_parts, spitzer_terms
from headway.models.queues.times import (
    LatticeLaw,
    gamma_time,
    lognormal_time,
    smooth_quantile_s,
    uniform_law,
    zero_or_gamma_law,
)
from headway.models.queues.wait import queue_wait
from headway.models.real_time.stages import RealTimeStage, sustainable_rate_per_s

_STEPS = 16384.0
_RARE = 1e-6
_NUM_PARTS = 8  # of a buffer's period, by the time at which rows enter
_NODE, _WEIGHT = gauss_legendre(24)
_MOST_WHOLE_PERIODS = 400
_LAST_SCORE = 8.0
_MOST_PERIODS = 1e7
_NODES_PER_PERIOD = 8  # panels within a period, in which the variance of the work changes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RealTimeLatency:
    """Latency of the rows of a query in Real-Time Mode; ``inf`` and without a law if unstable."""

    mean_s: float  # From arrival at the source to the end of the last stage. [s]
    stage_mean_s: tuple[float, ...]  # Added by each stage and the shuffle before it. [s]
    gap_mean_s: float  # Added by the gaps between batches. [s]
    utilization_ratio: tuple[float, ...]  # Busy share of the busiest task of each stage. [-]
    law: LatticeLaw | None  # The whole law.

    @property
    def is_stable(self) -> bool:
        """Whether the latency is finite."""
        return self.law is not None

    def quantile_s(self, q: Numeric) -> Array:
        """Quantiles of the latency, 0 < q < 1; ``inf`` if unstable. [s]"""
        return smooth_quantile_s(self.law, q)


def real_time_latency(
    rate_per_s: float,
    stages: Sequence[RealTimeStage],
    *,
    trigger_s: float = 300.0,
    gap_s: float = 0.0,
    flush_s: float = SHUFFLE_MAX_WAIT_S.value,
    dispersion: float = 1.0,
) -> RealTimeLatency:
    r"""Latency of the rows of a query in Real-Time Mode (Spark 4.1 and later), by (N1) to (N7).

    It is ``inf`` at the sustainable rate and above. Each task has a slot with a core of its own:
    with fewer slots than `required_slots` Spark would not start the query.

    Parameters
    ----------
    rate_per_s : float, > 0, input rate of the query [rows/s]
    stages : sequence of RealTimeStage, stages in order; every row that leaves one enters the next
    trigger_s : float, > 0, duration of a batch, the argument of the real-time trigger [s]
    gap_s : float, >= 0
        Time between two batches - commit, planning, start of tasks - in which nothing is read. [s]
    flush_s : float, >= 0
        Longest wait in a buffer of the shuffle, see `shuffle_wait_limit_s`; 0 sends every row at
        once. [s]
    dispersion : float, > 0, variance over mean of row counts of the input; 1 is Poisson

    >>> source = RealTimeStage(num_tasks=8, row_s=2e-4, row_cv=1.0)
    >>> counts = RealTimeStage(num_tasks=20, row_s=5e-4, row_cv=1.0)
    >>> latency = real_time_latency(20000.0, [source, counts])
    >>> latency.mean_s, latency.utilization_ratio
    (0.029, (0.5, 0.5))
    """
    if not (0.0 < rate_per_s < np.inf and 0.0 <= flush_s < np.inf and 0.0 < dispersion < np.inf):
        raise ValueError("need rate_per_s > 0, flush_s >= 0 and dispersion > 0")
    capacity_per_s = sustainable_rate_per_s(stages, trigger_s=trigger_s, gap_s=gap_s)
    busy = tuple(stage.utilization_ratio(rate_per_s) for stage in stages)
    if rate_per_s >= capacity_per_s:
        return RealTimeLatency(
            mean_s=np.inf,
            stage_mean_s=(np.inf,) * len(stages),
            gap_mean_s=np.inf if gap_s else 0.0,
            utilization_ratio=busy,
            law=None,
        )
    visits = _visits(rate_per_s, stages, flush_s, dispersion)
    delayed = gap_probability(max(busy), trigger_s, gap_s)
    means = tuple(sum(share * visit.mean_s for share, visit in mixed) for mixed in visits)
    gap_mean_s = 0.5 * delayed * gap_s
    return RealTimeLatency(
        mean_s=sum(means) + gap_mean_s,
        stage_mean_s=means,
        gap_mean_s=gap_mean_s,
        utilization_ratio=busy,
        law=_law(visits, delayed, gap_s),
    )


def gap_probability(utilization_ratio: float, trigger_s: float, gap_s: float) -> float:
    r"""Share of rows that a gap between two batches delays.

    Parameters
    ----------
    utilization_ratio : float, 0 to below 1, busy share of the busiest task
    trigger_s : float, > 0, duration of a batch [s]
    gap_s : float, >= 0

    **(N7)** A gap delays rows that arrive a time `t` after its start by `g - (1-ρ) t`, until its
    backlog is processed. This is a share `P = g/((1-ρ)(T+g))` of the rows, delayed by a time that
    is uniform on `[0, g]`; `ρ` is that of the busiest task. Exact in the fluid limit, and added to
    the rest of the latency as if independent: it adds `gP/2` to the mean, and affects p99 once
    `P > 0.01`. In Spark, `g` has three parts, all of which are recorded: batches start more than
    `T` apart, then tasks are planned and launched, then state stores are loaded. A batch reads
    until `T` after its plan was made, whenever its tasks started.

    >>> gap_probability(0.5, 297.0, 3.0)
    0.02
    """
    if not 0.0 <= utilization_ratio < 1.0:
        raise ValueError(f"utilization_ratio must lie in 0..1, without 1, got {utilization_ratio}")
    if not (0.0 < trigger_s < np.inf and 0.0 <= gap_s < np.inf):
        raise ValueError("need trigger_s > 0 and gap_s >= 0")
    return min(gap_s / ((1.0 - utilization_ratio) * (trigger_s + gap_s)), 1.0)


@dataclass(frozen=True, slots=True)
class _Visit:
    """A row at one task: its time in a buffer, its wait for the task, its own processing time."""

    flush_s: float
    rows: float  # in a buffer, on average
    wait: WaitMoments
    row_s: float
    row_cv: float

    @property
    def mean_s(self) -> float:
        in_buffer_s = 0.5 * (self.flush_s + self.rows * self.row_s)
        return in_buffer_s + float(self.wait.mean_s) + self.row_s

    @property
    def reach_s(self) -> float:
        sd_s = float(np.sqrt(self.wait.variance_s2 + self.rows * self._square_s2))
        longest_s = float(lognormal_quantile(1.0 - _RARE, self.row_s, self.row_cv))
        return self.flush_s + float(self.wait.mean_s) + 12.0 * sd_s + longest_s

    def law(self, step_s: float) -> LatticeLaw:
        on_lattice = lognormal_time(self.row_s, self.row_cv).on_lattice
        assert on_lattice is not None
        law = on_lattice(step_s).plus(zero_or_gamma_law(self.wait, step_s))
        return law.plus(self._buffer_law(step_s)) if self.flush_s > 0.0 else law

    def _buffer_law(self, step_s: float) -> LatticeLaw:
        """(N5): later rows wait less in their buffer and have more rows ahead of them."""
        part = uniform_law(self.flush_s / _NUM_PARTS, step_s)
        parts = []
        for number in range(_NUM_PARTS):
            ahead_rows = self.rows * (number + 0.5) / _NUM_PARTS
            moments = (
                ahead_rows * self.row_s,
                ahead_rows * self._square_s2,
                -np.expm1(-ahead_rows),
            )
            work = zero_or_gamma_law(WaitMoments(*map(np.asarray, moments)), step_s)
            remaining_s = self.flush_s * (1.0 - (number + 1.0) / _NUM_PARTS)
            parts.append((1.0 / _NUM_PARTS, part.plus(work).later(remaining_s)))
        return _mixture(parts)

    @property
    def _square_s2(self) -> float:
        return self.row_s**2 * (1.0 + self.row_cv**2)


_Mixed = list[tuple[float, _Visit]]


def _visits(
    rate_per_s: float, stages: Sequence[RealTimeStage], flush_s: float, dispersion: float
) -> list[_Mixed]:
    """Visits of a row at each stage: to the busiest task, with its share of rows, or to another."""
    mixed: list[_Mixed] = []
    departure_scv = dispersion
    for number, stage in enumerate(stages):
        rate = rate_per_s * stage.rows_ratio
        writers = stages[number - 1].num_tasks if number else 0
        visits: _Mixed = []
        for share, tasks in _kinds(stage):
            if number == 0:
                visit = _read(rate * share, 1.0 + share * (dispersion - 1.0), stage)
            elif flush_s > 0.0:
                visit = _shuffled(rate * share, writers, flush_s, stage)
            else:
                scv = _superposed_scv(departure_scv, share, writers, rate * share * stage.row_s)
                visit = _read(rate * share, scv, stage)
            visits.append((share * tasks, visit))
        mixed.append(visits)
        departure_scv = _departure_scv(rate_per_s, stage, departure_scv)
    return mixed


def _kinds(stage: RealTimeStage) -> list[tuple[float, int]]:
    """Share of rows of a task, and number of tasks with this share."""
    shares = stage.shares
    if len(shares) == 1 or shares[0] <= shares[1] * (1.0 + 1e-9):
        return [(float(shares[0]), len(shares))]
    kinds = [(float(shares[0]), 1), (float(shares[1]), len(shares) - 1)]
    return [kind for kind in kinds if kind[0] > 0.0]


def _read(rate_per_s: float, arrival_scv: float, stage: RealTimeStage) -> _Visit:
    """(N3): rows that arrive one by one.

    **(N3)** A task of the source has Poisson arrivals (Q6). With dispersion `φ`, its inter-arrival
    times have the squared variation `1 + p(φ-1)`, with `p` its share of the rows, and (Q10) or (Q5)
    applies. Skew: one task has the largest share and the others share the rest evenly; laws are
    mixed by share of rows.
    """
    second = stage.row_s**2 * (1.0 + stage.row_cv**2)
    if abs(arrival_scv - 1.0) < _RARE:
        third = stage.row_s**3 * (1.0 + stage.row_cv**2) ** 3
        wait = pollaczek_khinchine_wait(1.0 / rate_per_s, stage.row_s, second, third)
    else:
        arrivals = gamma_time(1.0 / rate_per_s, float(np.sqrt(arrival_scv)))
        service = lognormal_time(stage.row_s, stage.row_cv)
        times = (replace(time, on_lattice=None) for time in (arrivals, service))
        wait = queue_wait(*times).moments
    return _Visit(0.0, 0.0, wait, stage.row_s, stage.row_cv)


def _shuffled(rate_per_s: float, writers: int, flush_s: float, stage: RealTimeStage) -> _Visit:
    """(N5), (N6): rows that arrive in buffers and are processed in order."""
    rows = rate_per_s * flush_s / writers
    wait = shuffled_wait(rate_per_s, stage.row_s, stage.row_cv, writers, flush_s)
    return _Visit(flush_s, rows, wait, stage.row_s, stage.row_cv)


def _departure_scv(rate_per_s: float, stage: RealTimeStage, arrival_scv: float) -> float:
    """(N4): squared variation of the rows that leave the stage, the same for all tasks.

    **(N4)** Squared variations if rows are sent one by one: `c_D^2 = ρ^2 c_S^2 + (1-ρ^2) c_A^2` for
    the rows that leave a task, `1 + p(c_D^2-1)` for those that go to one reader, and `wc^2 + 1 - w`
    with `w = 1/(1+4(1-ρ)^2(n-1))` for `n` of these streams together (Whitt 1983,
    doi:10.1002/j.1538-7305.1983.tb03204.x).
    """
    busy2 = min(stage.utilization_ratio(rate_per_s), 1.0) ** 2
    share = stage.busiest_share
    at_task = 1.0 + share * (arrival_scv - 1.0)
    return busy2 * stage.row_cv**2 + (1.0 - busy2) * at_task


def _superposed_scv(departure_scv: float, share: float, writers: int, busy: float) -> float:
    """(N4): the superposition of a share of the rows of each of several writers."""
    stream_scv = 1.0 + share * (departure_scv - 1.0)
    weight = 1.0 / (1.0 + 4.0 * (1.0 - busy) ** 2 * (writers - 1.0))
    return weight * stream_scv + 1.0 - weight


def _law(visits: list[_Mixed], delayed: float, gap_s: float) -> LatticeLaw:
    """Independent stages in series; gaps delay some rows."""
    reach_s = gap_s + sum(max(visit.reach_s for _, visit in mixed) for mixed in visits)
    step_s = reach_s / _STEPS
    law = _mixture(
        [(1.0 - delayed, uniform_law(0.0, step_s)), (delayed, uniform_law(gap_s, step_s))]
    )
    for mixed in visits:
        law = law.plus(_mixture([(share, visit.law(step_s)) for share, visit in mixed]))
    return law


def _mixture(laws: list[tuple[float, LatticeLaw]]) -> LatticeLaw:
    lowest = min(law.lowest_index for _, law in laws)
    highest = max(law.lowest_index + len(law.probability) for _, law in laws)
    mass = np.zeros(highest - lowest)
    for share, law in laws:
        first = law.lowest_index - lowest
        mass[first : first + len(law.probability)] += share * law.probability
    return LatticeLaw(step_s=laws[0][1].step_s, lowest_index=lowest, probability=mass / mass.sum())


def shuffled_wait(
    rate_per_s: float, service_s: float, service_cv: float, num_writers: int, period_s: float
) -> WaitMoments:
    r"""Work that is waiting at a task when a buffer of rows arrives.

    ``rate_per_s`` is that of the rows from all writers, each of which sends its own by a clock of
    period ``period_s``, above 0, with a random phase. Service times are lognormal, with a cv of 0
    to 2. The wait is that of the first row of a buffer; ``inf`` if the utilisation is 1 or more. It
    cannot be computed for a utilisation too close to 1.

    **(N6)** A buffer waits for the work of the other writers' buffers. In a time `t` before it
    arrives, they add work with mean `ρ t(M-1)/M`; its variance is that of Poisson rows plus
    `(M-1) f(1-f)(b E[S])^2`, `f = t/F mod 1`, since each writer's clock ticks once per period at a
    random phase. Earlier buffers of the same writer arrived whole periods before. Spitzer's sums in
    continuous time: `E[W] = ∫_0^(∞) 1/t E[(X_t)^+] dt`, and the variance with the square, where
    `X_t` is work minus time, taken as a shifted gamma with three cumulants. Exact for exchangeable
    increments; tends to (Q6) for many writers. A single writer is a clocked queue (Q10).
    `P(W > 0) ≤ ρ`.

    >>> float(shuffled_wait(800.0, 1e-3, 1.0, 8, 0.05).mean_s)
    0.0057
    """
    if not (0.0 < rate_per_s < np.inf and 0.0 < service_s < np.inf and 0.0 <= service_cv <= 2.0):
        raise ValueError("need rate_per_s > 0, service_s > 0 and service_cv in 0..2")
    if num_writers < 1 or not 0.0 < period_s < np.inf:
        raise ValueError("need num_writers >= 1 and period_s > 0")
    if rate_per_s * service_s >= 1.0:
        return WaitMoments(np.array(np.inf), np.array(np.inf), np.array(1.0))
    square_s2 = service_s**2 * (1.0 + service_cv**2)
    cube_s3 = service_s**3 * (1.0 + service_cv**2) ** 3
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
