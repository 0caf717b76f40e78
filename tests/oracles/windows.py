"""Watermarks and window emission under Spark's rules, batch by batch: oracle of the windows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from headway.models.arrays import Array
from tests.oracles.microbatch import grid_point_after

OutputMode: TypeAlias = Literal["append", "update"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowStream:
    """Rows as a source delivers them: Poisson arrivals, each after its own lag."""

    rate_per_s: float
    """Mean arrival rate, > 0. [rows/s]"""
    lag_s: float = 0.0
    """Least arrival time less event time, >= 0. [s]"""
    excess_mean_s: float = 0.0
    """Mean of the lognormal lag beyond the least, >= 0. [s]"""
    excess_cv: float = 0.0
    """Coefficient of variation of that excess, >= 0. [-]"""
    stop_s: float = math.inf
    """When arrivals end. [s]"""

    def __post_init__(self) -> None:
        if not (0.0 < self.rate_per_s < math.inf and 0.0 <= self.lag_s < math.inf):
            raise ValueError("need a finite rate_per_s > 0 and lag_s >= 0")
        if not (0.0 <= self.excess_mean_s < math.inf and 0.0 <= self.excess_cv < math.inf):
            raise ValueError("need a finite excess_mean_s and excess_cv, both >= 0")


@dataclass(frozen=True, slots=True)
class WindowTrace:
    """What became of each window, and of the rows. Arrays have the order of the ends."""

    latency_s: Array
    """From the end of the window to the commit that shows its final result; inf: never. [s]"""
    start_s: Array
    """Start of each batch. [s]"""
    num_rows: Array
    """Rows of each batch; 0 for a no-data batch. [-]"""
    num_late_rows: Array
    """Rows of each batch that found their first window closed. [-]"""


def simulate_windows(
    ends_s: Array,
    durations_s: Array,
    trigger_s: float,
    rows: RowStream,
    *,
    mode: OutputMode,
    seed: int,
    length_s: float,
    watermark_delay_s: float = math.inf,
    no_data_batches: bool = True,
    after_commit_s: float = 0.0,
) -> WindowTrace:
    r"""Simulate the batches of a windowed aggregation and note when each window's result is final.

    Parameters
    ----------
    ends_s : (w,) array, increasing
        Window ends in event time. [s]
    durations_s : (k,) array, > 0
        Durations of the batches, used in turn. The simulation ends with the last, or when that many
        triggers have passed. [s]
    trigger_s : float, >= 0
        Trigger interval, on the epoch grid; 0 starts the next batch at once. [s]
    rows : RowStream
        Arrivals, from time 0, which is also the first trigger.
    mode : {"append", "update"}
        Append shows a window once the watermark has passed it; update after every change, of
        which the last counts.
    seed : int
        Seed of arrivals and lags.
    length_s : float, > 0
        Length of the windows. [s]
    watermark_delay_s : float, >= 0
        Delay of the watermark; inf for none, which append mode does not take. [s]
    no_data_batches : bool
        Whether a moved watermark alone makes the next trigger run a batch.
    after_commit_s : float, >= 0
        Part of each duration that passes after the sink shows the result. [s]

    Returns
    -------
    WindowTrace
        Append mode takes every window as one with rows; in update mode a window without rows is
        never shown.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    **(S3)** Windows: rows arrive as a Poisson stream, each after its own lag; batches of given
    durations start as in (S2); a batch reads the watermark that the one before it left, emits the
    windows that it has passed (append) or touched (update), and a watermark that has moved runs one
    more batch without rows.

    Event times are exact where Spark rounds to milliseconds.

    Examples
    --------
    >>> trace = simulate_windows(
    ...     np.array([60.0]), np.full(20, 5.0), 10.0, RowStream(rate_per_s=100.0, lag_s=0.5),
    ...     mode="append", length_s=60.0, watermark_delay_s=10.0, seed=1,
    ... )
    >>> trace.latency_s
    array([35.])
    """
    ends = np.asarray(ends_s, dtype=np.float64)
    durations = np.asarray(durations_s, dtype=np.float64)
    if not (ends.ndim == 1 and ends.size and np.all(np.diff(ends) > 0.0)):
        raise ValueError("ends_s must be 1-D, increasing, and not empty")
    if not (durations.ndim == 1 and durations.size and np.all(durations > 0.0)):
        raise ValueError("durations_s must be 1-D, positive, and not empty")
    if not (0.0 <= trigger_s < math.inf and watermark_delay_s >= 0.0 and length_s > 0.0):
        raise ValueError("need trigger_s >= 0, watermark_delay_s >= 0 and length_s > 0")
    if mode == "append" and math.isinf(watermark_delay_s):
        raise ValueError("append mode needs a watermark_delay_s")
    horizon = float(np.maximum(durations, trigger_s).sum())
    arrival, event = _arrivals(rows, horizon, seed)
    latency = np.full(len(ends), np.inf)
    batches: list[tuple[float, float, float]] = []
    start, num_taken, num_left = 0.0, 0, 0
    watermark_in_use = next_watermark = -math.inf
    for duration in durations.tolist():
        waiting_since = arrival[num_taken] if num_taken < len(arrival) else math.inf
        if not (no_data_batches and next_watermark > watermark_in_use):
            start = _first_start_with_rows(start, waiting_since, trigger_s)
        if start > horizon:
            break
        num_arrived = int(np.searchsorted(arrival, start, side="right"))
        events = np.sort(event[num_taken:num_arrived])
        num_taken = num_arrived
        watermark_in_use = next_watermark
        commit = start + duration - after_commit_s
        if mode == "append":
            done = int(np.searchsorted(ends, watermark_in_use, side="right"))
            latency[num_left:done] = commit - ends[num_left:done]
            num_left = max(num_left, done)
        else:
            changed = np.searchsorted(events, ends) > np.searchsorted(events, ends - length_s)
            changed &= ends > watermark_in_use
            latency[changed] = commit - ends[changed]
        batches.append((start, float(len(events)), _num_late(events, ends, watermark_in_use)))
        # What this batch has read moves the watermark of the next one, never back.
        if len(events):
            next_watermark = max(next_watermark, float(events[-1]) - watermark_delay_s)
        end = start + duration
        start = end if trigger_s == 0.0 else max(end, grid_point_after(start, trigger_s))
    return WindowTrace(latency, *np.array(batches, dtype=np.float64).reshape(-1, 3).T)


def _arrivals(rows: RowStream, horizon_s: float, seed: int) -> tuple[Array, Array]:
    """Arrival and event times, in the order of arrival."""
    random = np.random.default_rng(seed)
    last = min(rows.stop_s, horizon_s)
    arrival = np.sort(random.uniform(0.0, last, random.poisson(rows.rate_per_s * last)))
    log_variance = math.log1p(rows.excess_cv**2)
    normal = random.standard_normal(len(arrival))
    excess = rows.excess_mean_s * np.exp(math.sqrt(log_variance) * normal - 0.5 * log_variance)
    return arrival, arrival - rows.lag_s - excess


def _num_late(events: Array, ends: Array, watermark_s: float) -> float:
    """Rows whose first window, that is the next end after them, the watermark has passed."""
    closed = ends[: np.searchsorted(ends, watermark_s, side="right")]
    return float(np.searchsorted(events, closed[-1])) if len(closed) else 0.0


def _first_start_with_rows(start: float, arrival_s: float, trigger_s: float) -> float:
    """The start itself if a row waits there, else the first trigger at which one does."""
    if arrival_s <= start or math.isinf(arrival_s):
        return max(start, arrival_s)
    return arrival_s if trigger_s == 0.0 else grid_point_after(arrival_s, trigger_s)
