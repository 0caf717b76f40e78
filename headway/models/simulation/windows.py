"""Watermarks and window emission under Spark's rules, batch by batch: oracle of the windows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headway.models.arrays import Array

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
    watermark_delay_s: float = math.inf,
    length_s: float = math.inf,
    no_data_batches: bool = True,
    after_commit_s: float = 0.0,
) -> WindowTrace:
    r"""Play the batches of a windowed aggregation and note when each window's result is final.

    Parameters
    ----------
    ends_s : (w,) array, increasing
        Window ends in event time. [s]
    durations_s : (k,) array, > 0
        Durations of the batches, used in turn; the play ends with the last. [s]
    trigger_s : float, >= 0
        Trigger interval, on the epoch grid; 0 starts the next batch at once. [s]
    rows : RowStream
        Arrivals, from time 0, which is also the first trigger.
    mode : {"append", "update"}
        Append shows a window once the watermark has passed it; update after every change, of
        which the last counts.
    seed : int
        Seed of arrivals and lags.
    watermark_delay_s : float, >= 0
        Delay of the watermark; inf for none, which append mode does not take. [s]
    length_s : float, > 0
        Length of the windows, for update mode. [s]
    no_data_batches : bool
        Whether a moved watermark alone makes the next trigger run a batch.
    after_commit_s : float, >= 0
        Part of each duration that passes after the sink shows the result. [s]

    Returns
    -------
    WindowTrace
        Append mode shows a window whether or not a row fell into it; in update mode a window
        without rows is never shown.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (S3). Event times are exact where Spark rounds to milliseconds.

    Examples
    --------
    >>> trace = simulate_windows(
    ...     np.array([60.0]), np.full(20, 5.0), 10.0, RowStream(rate_per_s=100.0, lag_s=0.5),
    ...     mode="append", watermark_delay_s=10.0, seed=1,
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
    arrival, event = _arrivals(rows, durations, trigger_s, seed)
    last_update = _LastUpdates(ends, length_s if mode == "update" else None)
    play = _Play(arrival, event, watermark_delay_s, no_data_batches)
    latency = np.full(len(ends), np.inf)
    num_left = 0
    batches: list[tuple[float, float, float]] = []
    start = 0.0
    for duration in durations.tolist():
        while not play.has_work(start):
            start = play.next_possible_start(start, trigger_s)
            if math.isinf(start):
                break
        if math.isinf(start):
            break
        watermark = play.watermark_s
        events = play.take(start)
        first_end = ends[np.minimum(np.searchsorted(ends, events, side="right"), len(ends) - 1)]
        is_late = (first_end <= watermark) & (events < first_end)
        commit = start + duration - after_commit_s
        if mode == "append":
            leaving = int(np.searchsorted(ends, watermark, side="right"))
            latency[num_left:leaving] = commit - ends[num_left:leaving]
            num_left = max(num_left, leaving)
        else:
            for window in last_update.touched_by(events[~is_late]):
                latency[window] = commit - ends[window]
        batches.append((start, float(len(events)), float(is_late.sum())))
        end = start + duration
        start = end if trigger_s == 0.0 else max(end, _grid_point_after(start, trigger_s))
    return WindowTrace(latency, *np.array(batches, dtype=np.float64).reshape(-1, 3).T)
