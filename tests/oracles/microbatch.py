"""A micro-batch query under Spark's trigger rules, batch by batch: oracle of `steady_state`."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np

from headway.models.arrays import Array, Numeric
from headway.models.batches.microbatch import AffineDuration
from headway.models.laws.distributions import uniform_mixture_quantile
from tests.oracles.closed_forms import uniform_mixture_cdf


@dataclass(frozen=True, slots=True)
class MicrobatchTrace:
    """What a simulated query did after its warm-up.

    Batch arrays have one element per batch. Latency arrays have one element per stretch of input
    within a batch: rows that arrived evenly, with latencies spread evenly from low to high.
    """

    start_s: Array
    """Start of the batch since the epoch. [s]"""
    interval_s: Array
    """Time since the start of the batch before. [s]"""
    duration_s: Array
    """Batch duration. [s]"""
    num_rows: Array
    """Rows of the batch. [-]"""
    num_backlog_rows: Array
    """Rows that had arrived at the start but were left by the rate limit. [-]"""
    latency_low_s: Array
    """Latency of the last row of a stretch. [s]"""
    latency_high_s: Array
    """Latency of the first row of a stretch. [s]"""
    latency_num_rows: Array
    """Rows of the stretch. [-]"""

    def latency_mean_s(self) -> float:
        """Mean latency over rows. [s]"""
        middle = 0.5 * (self.latency_low_s + self.latency_high_s)
        return float(self.latency_num_rows @ middle / self.latency_num_rows.sum())

    def latency_cdf(self, x_s: Numeric) -> Array:
        """Share of rows with a latency of at most ``x_s``. [-]"""
        return uniform_mixture_cdf(
            x_s, self.latency_low_s, self.latency_high_s, self.latency_num_rows
        )

    def latency_quantile_s(self, q: Numeric) -> Array:
        """Exact quantile of the latency over rows. [s]"""
        return uniform_mixture_quantile(
            q, self.latency_low_s, self.latency_high_s, self.latency_num_rows
        )


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Rows that arrived evenly between two moments."""

    begin_s: float
    end_s: float
    num_rows: float


def simulate_microbatch(
    duration: AffineDuration,
    rate_per_s: float,
    trigger_s: float,
    *,
    num_batches: int,
    seed: int,
    num_warmup_batches: int = 50,
    dispersion: float = 1.0,
    max_rows_per_trigger: float = math.inf,
    polling_delay_s: float = 0.01,
    initial_backlog_s: float = 0.0,
    autocorrelation: float = 0.0,
) -> MicrobatchTrace:
    r"""Simulate a query: epoch-grid triggers, rows of the past interval, lognormal durations.

    Parameters
    ----------
    duration : AffineDuration
        Duration of a batch given its rows; all fields scalar.
    rate_per_s : float, > 0
        Input rate. [rows/s]
    trigger_s : float, >= 0
        Trigger interval; 0 starts the next batch at once. [s]
    num_batches : int, >= 1
        Batches to record. [-]
    seed : int
        Seed of the generator.
    num_warmup_batches : int, >= 0
        Batches to simulate before. [-]
    dispersion : float, >= 0
        Variance over mean of row counts, as multiples of Poisson counts; 0 is an even flow. [-]
    max_rows_per_trigger : float, > 0
        Cap on the rows of a batch. [-]
    polling_delay_s : float, > 0
        Sleep of a query without trigger interval that finds no rows. [s]
    initial_backlog_s : float, >= 0
        For how long rows have piled up before the first batch. [s]
    autocorrelation : float, -1 < phi < 1
        Correlation of the normal scores of successive durations. [-]

    Returns
    -------
    MicrobatchTrace
        Of the recorded batches.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    **(S2)** Micro-batches: starts as in (B2) on the epoch grid, rows of `(s_(k-1), s_k]` or the
    oldest `N`, counts `φ · Poisson(λ T/φ)`, lognormal durations by (B1), no batch at a trigger
    without rows, a polling delay for trigger 0. Rows keep the stretch of time in which they
    arrived, so latency quantiles are exact mixtures (D5). The scores of successive durations may be
    autoregressive. Without a rate limit many runs are simulated in step.

    A trigger that finds no rows runs no batch.

    Examples
    --------
    >>> trace = simulate_microbatch(
    ...     AffineDuration(2.0, 3e-4), 1500.0, 8.0, num_batches=10, seed=1, dispersion=0.0
    ... )
    >>> trace.latency_mean_s()
    9.600
    """
    if not (0.0 < rate_per_s < math.inf and trigger_s >= 0.0 and dispersion >= 0.0):
        raise ValueError("need rate_per_s > 0, trigger_s >= 0 and dispersion >= 0")
    if not (max_rows_per_trigger > 0.0 and polling_delay_s > 0.0 and initial_backlog_s >= 0.0):
        raise ValueError("need a positive rate limit and polling delay, and no negative backlog")
    if num_batches < 1 or num_warmup_batches < 0:
        raise ValueError("need num_batches >= 1 and num_warmup_batches >= 0")
    if not abs(autocorrelation) < 1.0:
        raise ValueError("autocorrelation must lie between -1 and 1")
    random = np.random.default_rng(seed)
    law = _DurationSampler(duration, random, autocorrelation)
    commit_lead_s = float(duration.after_commit_s)
    backlog: deque[_Stretch] = deque()
    num_waiting = 0.0
    batches: list[tuple[float, float, float, float, float]] = []
    latencies: list[tuple[float, float, float]] = []
    read_until = -(initial_backlog_s or trigger_s or float(duration.fixed_s))
    previous_start, start = read_until, 0.0
    while len(batches) < num_warmup_batches + num_batches:
        arrived = _arrivals(rate_per_s * (start - read_until), dispersion, random)
        if arrived > 0.0:
            backlog.append(_Stretch(read_until, start, arrived))
            num_waiting += arrived
        read_until = start
        if num_waiting <= 0.0:
            start = _next_idle_start(start, trigger_s, polling_delay_s)
            continue
        taken = _take(backlog, max_rows_per_trigger)
        num_rows = sum(stretch.num_rows for stretch in taken)
        num_waiting = sum(stretch.num_rows for stretch in backlog)
        duration_s = law.draw(num_rows)
        commit = start + duration_s - commit_lead_s
        if len(batches) >= num_warmup_batches:
            latencies += [
                (commit - part.end_s, commit - part.begin_s, part.num_rows) for part in taken
            ]
        batches.append((start, start - previous_start, duration_s, num_rows, num_waiting))
        previous_start, start = start, _next_start(start, duration_s, trigger_s)
    recorded = np.array(batches[num_warmup_batches:], dtype=np.float64).T
    return MicrobatchTrace(*recorded, *np.array(latencies, dtype=np.float64).T)


class _DurationSampler:
    """Lognormal durations with the mean and variance that the law gives for a row count."""

    def __init__(
        self, duration: AffineDuration, random: np.random.Generator, autocorrelation: float
    ) -> None:
        self._fixed_s = float(duration.fixed_s)
        self._per_row_s = float(duration.per_row_s)
        self._relative = float(duration.relative_noise)
        self._additive_s = float(duration.additive_sd_s)
        self._random = random
        self._memory = autocorrelation
        self._renewal = math.sqrt(1.0 - autocorrelation**2)
        self._score = random.standard_normal() if autocorrelation else 0.0

    def draw(self, num_rows: float) -> float:
        mean = self._fixed_s + self._per_row_s * num_rows
        variance = (self._relative * mean) ** 2 + self._additive_s**2
        log_variance = math.log1p(variance / (mean * mean))
        self._score = self._memory * self._score + self._renewal * self._random.standard_normal()
        return mean * math.exp(math.sqrt(log_variance) * self._score - 0.5 * log_variance)


def _arrivals(expected: float, dispersion: float, random: np.random.Generator) -> float:
    if dispersion == 0.0:
        return expected
    return dispersion * float(random.poisson(expected / dispersion))


def _next_start(start: float, duration_s: float, trigger_s: float) -> float:
    """Spark's rule: the grid point after the start, or at once if the batch ended later."""
    end = start + duration_s
    return end if trigger_s == 0.0 else max(end, grid_point_after(start, trigger_s))


def _next_idle_start(start: float, trigger_s: float, polling_delay_s: float) -> float:
    return start + polling_delay_s if trigger_s == 0.0 else grid_point_after(start, trigger_s)


def grid_point_after(moment: float, trigger_s: float) -> float:
    """The next point of the trigger grid."""
    # A start that stands on the grid may fall a rounding error short of it.
    return trigger_s * (math.floor(moment / trigger_s + 1e-9) + 1.0)


def _take(backlog: deque[_Stretch], max_rows: float) -> list[_Stretch]:
    """Remove the oldest rows, at most ``max_rows`` of them, splitting the last stretch."""
    taken: list[_Stretch] = []
    room = max_rows
    while backlog and room > 0.0:
        stretch = backlog.popleft()
        if stretch.num_rows > room:
            cut = stretch.begin_s + room / stretch.num_rows * (stretch.end_s - stretch.begin_s)
            backlog.appendleft(_Stretch(cut, stretch.end_s, stretch.num_rows - room))
            stretch = _Stretch(stretch.begin_s, cut, room)
        taken.append(stretch)
        room -= stretch.num_rows
    return taken
