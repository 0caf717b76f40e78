"""A micro-batch query under a changing rate, with outages and a rate limit; runs in step."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from headway.assumptions.predictions import POLLING_DELAY_S, USUAL_PERSISTENCE_RATIO
from headway.models.arrays import Array, poisson_counts
from headway.models.batches.intervals import grid_point_after

_LAST_ROW_RATIO = 1e-9
_CELLS_PER_SHORTEST = 4
_MOST_CELLS = 200_000
_LEAST_CELLS = 1000


@dataclass(frozen=True, slots=True)
class RateTraceRuns:
    """Results of all batches; one entry per batch, runs one after the other."""

    run: Array
    start_s: Array  # Start of the batch, on the clock of the trace. [s]
    duration_s: Array
    num_rows: Array
    num_backlog_rows: Array  # Rows that had arrived at its start, including its own. [-]
    first_arrival_s: Array  # Arrival of its first row. [s]
    last_arrival_s: Array  # Arrival of its last row. [s]
    commit_s: Array  # When its rows are visible in the sink. [s]
    arrivals: CumulativeRows

    def peak_backlog_rows(self, edges_s: Array) -> Array:
        """Maximum number of arrived rows in no batch yet, between edges; one column per run.

        ``edges_s`` are increasing moments on the clock of the trace. The backlog grows with every
        arrival and falls when a batch starts, so it is highest at the start or end of an interval,
        or when a batch starts within it.
        """
        peaks = np.zeros((len(edges_s) - 1, self.arrivals.num_runs))
        for run in range(self.arrivals.num_runs):
            of_run = self.run == run
            start, waiting = self.start_s[of_run], self.num_backlog_rows[of_run]
            read_rows = np.concatenate([[0.0], np.cumsum(self.num_rows[of_run])])
            arrived = self.arrivals.of_run_until(edges_s, run)
            after = arrived - read_rows[np.searchsorted(start, edges_s, side="right")]
            before = arrived - read_rows[np.searchsorted(start, edges_s, side="left")]
            peaks[:, run] = np.maximum(after[:-1], before[1:])
            # What waits for a batch that starts at an edge has arrived before it.
            interval = np.searchsorted(edges_s, start, side="left") - 1
            is_inside = (interval >= 0) & (interval < len(peaks))
            np.maximum.at(peaks[:, run], interval[is_inside], waiting[is_inside])
        return np.maximum(peaks, 0.0)

    def unread_rows(self, edges_s: Array) -> Array:
        """Rows that arrived between edges and are in no batch at the end; one column per run."""
        unread = np.zeros((len(edges_s), self.arrivals.num_runs))
        for run in range(self.arrivals.num_runs):
            read_rows = self.num_rows[self.run == run].sum() * (1.0 + _LAST_ROW_RATIO)
            unread[:, run] = self.arrivals.of_run_until(edges_s, run) - read_rows
        return np.asarray(np.diff(np.maximum(unread, 0.0), axis=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchNoise:
    """Scatter of durations: between batches, lasting over several batches, and between runs. [-]"""

    batch_ratio: float
    autocorrelation: float = 0.0
    run_to_run_ratio: float = 0.0


def simulate_rate_trace(
    mean_duration_s: Callable[[Array], Array],
    edges_s: Array,
    rates_per_s: Array,
    trigger_s: float,
    *,
    noise: BatchNoise,
    seed: int,
    num_runs: int,
    after_commit_s: float = 0.0,
    max_rows_per_trigger: float = math.inf,
    dispersion: float = 1.0,
    outages_s: Sequence[tuple[float, float]] = (),
    longer_s_per_row: float = 0.0,
) -> RateTraceRuns:
    r"""Simulate runs of a query from the first edge of a trace to the last.

    The batches are those with rows that start before the end of the trace. Arguments outside their
    ranges raise ``ValueError``.

    Parameters
    ----------
    mean_duration_s : callable, mean duration of batches [s] by their rows, for arrays
    edges_s : (m + 1,) array, increasing, start times of the rates, and the end
    rates_per_s : (m,) array, >= 0
    trigger_s : float, >= 0: 0 starts the next batch at once
    num_runs : int, >= 1, runs, simulated in step
    after_commit_s : float, >= 0, part of a batch after its rows are visible
    max_rows_per_trigger : float, > 0
    dispersion : float, >= 0, variance over mean of row counts; 0 means even arrivals
    outages_s : sequence of (start, end), intervals in which no batch starts
    longer_s_per_row : float, >= 0, added to the mean duration of a batch for each row read before

    **(S6)** A rate trace: arrivals are counts with variance `φ` times their mean, on a grid with a
    step of a quarter of the trigger or less. Batches start as in (S2), none during an outage; after
    an outage, a batch starts at once. Durations are lognormal. The lasting share of the noise is an
    autoregression over batches with coefficient 0.95, and each run has a factor with the spread
    between runs. If the state grows (P21), a batch takes `c g/λ_0` longer on average for each row
    that was read before it: a row adds `g/λ_0` rows to the state, and each of these `c` to a batch.

    >>> runs = simulate_rate_trace(
    ...     lambda rows: np.full_like(rows, 2.0), np.array([0.0, 100.0]), np.array([10.0]), 10.0,
    ...     noise=BatchNoise(batch_ratio=0.0), seed=1, num_runs=1, dispersion=0.0,
    ... )
    >>> runs.start_s[:3], runs.num_rows[:2]
    (array([10., 20., 30.]), array([100., 100.]))
    """
    edges, rates = np.asarray(edges_s, dtype=np.float64), np.asarray(rates_per_s, dtype=np.float64)
    if len(edges) != len(rates) + 1 or not np.all(np.diff(edges) > 0.0) or np.any(rates < 0.0):
        raise ValueError("need increasing edges_s, and a rate >= 0 between every two of them")
    if not (0.0 <= trigger_s < math.inf and max_rows_per_trigger > 0.0 and dispersion >= 0.0):
        raise ValueError("need trigger_s >= 0, a positive rate limit and dispersion >= 0")
    if num_runs < 1 or after_commit_s < 0.0 or longer_s_per_row < 0.0:
        raise ValueError("need num_runs >= 1, after_commit_s >= 0 and longer_s_per_row >= 0")
    random = np.random.default_rng(seed)
    counts = CumulativeRows.drawn(edges, rates, trigger_s, dispersion, num_runs, random)
    drawn_around = _durations(noise, num_runs, random)
    end = float(edges[-1])
    start = np.full(num_runs, float(edges[0]))
    if trigger_s > 0.0:
        start = grid_point_after(start, trigger_s)
    read_rows = np.zeros(num_runs)
    steps: list[tuple[Array, ...]] = []
    while np.any(start < end):
        start = _after_outages(start, outages_s)
        waiting = np.maximum(counts.until(start) - read_rows, 0.0)
        rows = np.minimum(waiting, max_rows_per_trigger)
        has_rows = (rows > 0.0) & (start < end)
        duration = drawn_around(mean_duration_s(rows) + longer_s_per_row * read_rows)
        steps.append((start, duration, np.where(has_rows, rows, 0.0), waiting, read_rows.copy()))
        read_rows = read_rows + np.where(has_rows, rows, 0.0)
        if trigger_s == 0.0:
            start = np.where(has_rows, start + duration, start + POLLING_DELAY_S.value)
        else:
            later = grid_point_after(start, trigger_s)
            start = np.where(has_rows, np.maximum(start + duration, later), later)
    return _simulated(steps, counts, after_commit_s)


@dataclass(frozen=True, slots=True)
class CumulativeRows:
    """Cumulative arrivals, by run, on an even grid of times."""

    first_s: float
    cell_s: float
    rows: Array  # cells + 1 by runs

    @classmethod
    def drawn(
        cls,
        edges: Array,
        rates: Array,
        trigger_s: float,
        dispersion: float,
        num_runs: int,
        random: np.random.Generator,
    ) -> CumulativeRows:
        length = float(edges[-1] - edges[0])
        shortest = min(float(np.diff(edges).min()), trigger_s or length)
        wanted_cells = _CELLS_PER_SHORTEST * length / shortest
        num_cells = int(min(max(wanted_cells, _LEAST_CELLS), _MOST_CELLS))
        times = np.linspace(edges[0], edges[-1], num_cells + 1)
        until = np.concatenate([[0.0], np.cumsum(rates * np.diff(edges))])
        expected = np.diff(np.interp(times, edges, until))[:, np.newaxis]
        if dispersion > 0.0:
            lam = np.broadcast_to(expected / dispersion, (num_cells, num_runs))
            drawn = dispersion * poisson_counts(random, lam)
        else:
            drawn = np.broadcast_to(expected, (num_cells, num_runs))
        rows = np.concatenate([np.zeros((1, num_runs)), np.cumsum(drawn, axis=0)])
        return cls(float(edges[0]), length / num_cells, rows)

    def until(self, moment: Array) -> Array:
        """Rows that have arrived by a given time in each run."""
        position = np.clip((moment - self.first_s) / self.cell_s, 0.0, len(self.rows) - 1)
        cell = np.minimum(position.astype(int), len(self.rows) - 2)
        run_indices = np.arange(self.rows.shape[1])
        low, high = self.rows[cell, run_indices], self.rows[cell + 1, run_indices]
        return np.asarray(low + (position - cell) * (high - low))

    @property
    def num_runs(self) -> int:
        """Runs that were drawn."""
        return int(self.rows.shape[1])

    def of_run_until(self, moments: Array, run: int) -> Array:
        """Rows of one run that have arrived by given times."""
        return np.asarray(np.interp(moments, self._times(), self.rows[:, run]))

    def arrival_s(self, number: Array, run: int) -> Array:
        """Arrival time of the row with a given number in one run."""
        return np.asarray(np.interp(number, self.rows[:, run], self._times()))

    def _times(self) -> Array:
        return np.asarray(self.first_s + self.cell_s * np.arange(len(self.rows)))


def _durations(
    noise: BatchNoise, num_runs: int, random: np.random.Generator
) -> Callable[[Array], Array]:
    """Draws lognormal durations of the next batch of each run around their means, with memory."""
    fresh_cv = math.sqrt(1.0 - noise.autocorrelation) * noise.batch_ratio
    fresh_sd = math.sqrt(math.log1p(fresh_cv * fresh_cv))
    slow_sd = math.sqrt(noise.autocorrelation) * noise.batch_ratio
    keeps, half_variance = USUAL_PERSISTENCE_RATIO.value, 0.5 * (fresh_sd**2 + slow_sd**2)
    factor = np.exp(noise.run_to_run_ratio * random.standard_normal(num_runs))
    slow = random.standard_normal(num_runs)

    def drawn_around(mean_s: Array) -> Array:
        nonlocal slow
        normal = random.standard_normal((2, num_runs))
        slow = keeps * slow + math.sqrt(1.0 - keeps**2) * normal[0]
        return np.asarray(
            factor * mean_s * np.exp(fresh_sd * normal[1] + slow_sd * slow - half_variance)
        )

    return drawn_around


def _after_outages(start: Array, outages_s: Sequence[tuple[float, float]]) -> Array:
    for begin, finish in outages_s:
        # After an outage, a query starts its first batch at once, regardless of the grid.
        start = np.where((start >= begin) & (start < finish), finish, start)
    return start


def _simulated(
    steps: Sequence[tuple[Array, ...]], counts: CumulativeRows, after_commit_s: float
) -> RateTraceRuns:
    start, duration, rows, waiting, read_rows = (
        np.array(column).T for column in zip(*steps, strict=True)
    )
    has_rows = rows > 0.0
    runs = np.broadcast_to(np.arange(len(rows), dtype=np.float64)[:, np.newaxis], rows.shape)
    # Slightly less than the last row, after which there may be a long time without rows.
    until = read_rows + rows * (1.0 - _LAST_ROW_RATIO)
    arrivals = [
        counts.arrival_s(np.stack([read_rows[run][has_rows[run]], until[run][has_rows[run]]]), run)
        for run in range(len(rows))
    ]
    first, last = np.minimum(np.concatenate(arrivals, axis=1), start[has_rows])
    commit = np.maximum(start + duration - after_commit_s, start)
    return RateTraceRuns(
        run=runs[has_rows],
        start_s=start[has_rows],
        duration_s=duration[has_rows],
        num_rows=rows[has_rows],
        num_backlog_rows=waiting[has_rows],
        first_arrival_s=first,
        last_arrival_s=last,
        commit_s=commit[has_rows],
        arrivals=counts,
    )
