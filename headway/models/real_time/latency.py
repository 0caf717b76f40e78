"""Latency of a row in Real-Time Mode: stage by stage, plus the gaps between batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from headway.assumptions.resources import SHUFFLE_MAX_WAIT_S
from headway.models.arrays import Array, Numeric
from headway.models.laws.distributions import lognormal_quantile
from headway.models.queues.queueing import WaitMoments, pollaczek_khinchine_wait
from headway.models.queues.times import (
    LatticeLaw,
    gamma_time,
    lognormal_time,
    smooth_quantile_s,
    uniform_law,
    zero_or_gamma_law,
)
from headway.models.queues.wait import queue_wait
from headway.models.real_time.stages import RealTimeStage, shuffled_wait, sustainable_rate_per_s

_STEPS = 16384.0
_RARE = 1e-6
_NUM_PARTS = 8  # of a buffer's period, by the time at which rows enter


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
