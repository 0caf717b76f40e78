"""The trigger interval of a query, which no event states, inferred from its batch starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from headway.assumptions.logs import (
    AT_ONCE_MS,
    EARLY_START_RATIO,
    LATE_MS,
    LATE_START_RATIO,
    LEAST_PAIRS,
    ROUND_INTERVALS_MS,
    TIMES_LIKELIER,
)
from headway.few_numbers import quantiles_of
from headway.models.arrays import Array
from headway.units import format_duration

_EARLY_MS = 1  # by which a timestamp may precede its trigger

_DIVISORS = (1, 2, 3, 4, 5)  # a step between two starts may span several intervals
_NEAR_RATIO = 0.02
_SHORTEST_MS = 10
_ALWAYS_TRIED_S = (
    *(0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 1.5, 2.5, 7.5, *range(1, 31)),
    *(40, 45, 60, 90, 120, 180, 240, 300, 600, 900, 1200, 1800, 3600),
)
_SORTED_OUT_BY = 300  # batches that leave the best candidates,
_NUM_JUDGED = 40  # which are then compared with all batches
_NUM_TOGETHER = 512  # candidates
_NUM_SHIFTED = 20_000  # starts at once, of all phases that are tried together
_NEXT_TO_GRID_MS = 3 * LATE_MS.value
_PHASE_QUANTILES, _USUAL_STEPS = np.linspace(0.0, 0.9, 10), np.array([0.1, 0.5])

_Milliseconds = NDArray[np.int64]
_Values = TypeVar("_Values", NDArray[np.float64], NDArray[np.complex128])


class _Starts(NamedTuple):
    """For batches that follow another one: its start, its end, and their own start."""

    before_ms: _Milliseconds
    free_ms: _Milliseconds
    started_ms: _Milliseconds


def read_trigger(started_s: Array, duration_s: Array) -> tuple[float | None, str]:
    """The trigger interval that explains the starts of consecutive batches [s], and why: (E31).

    The most likely interval, if it is a thousand times as likely as starts without a grid, and more
    likely than rows that arrive at intervals of their own. Batches with hardly any pause are either
    as fast as possible (0) or of a query that cannot keep up, which run in the same way: (B2). None
    if the starts are inconclusive.

    >>> started_s = 1.8e9 + 2.0 * np.arange(10)
    >>> read_trigger(started_s, np.full(10, 0.4))
    (2.0, 'batches start on the grid of 2.00 s')
    >>> read_trigger(1.8e9 + 0.2 * np.arange(10), np.full(10, 0.2))[0]
    0.0
    """
    starts = _starts(started_s, duration_s)
    if len(starts.started_ms) < LEAST_PAIRS.value:
        return None, "too few batches"
    paused = _paused(starts)
    if not np.any(paused):
        return 0.0, "batches follow each other without a pause"
    candidates_ms = _candidates_ms(starts)
    log_prior = _log_prior(candidates_ms)
    latest = _Starts(*(column[-_SORTED_OUT_BY:] for column in starts))
    log_ratio = _in_parts(lambda part_ms: grid_log_ratio(latest, part_ms), candidates_ms)
    best = np.argsort(log_ratio + log_prior)[-_NUM_JUDGED:]
    log_odds = grid_log_ratio(starts, candidates_ms[best]) + log_prior[best]
    likeliest = int(np.argmax(log_odds))
    interval_ms = int(candidates_ms[best][likeliest])
    if log_odds[likeliest] >= np.log(TIMES_LIKELIER.value) and log_odds[
        likeliest
    ] > _rhythm_log_odds(latest, starts, candidates_ms, interval_ms):
        trigger_s = interval_ms / 1000.0
        return trigger_s, f"batches start on the grid of {format_duration(trigger_s)}"
    if 2 * np.count_nonzero(paused) <= len(paused):
        return 0.0, "most batches follow each other without a pause"
    return None, "batches pause, but start on no common grid"


def contradiction(stated_s: float, started_s: Array, duration_s: Array) -> str | None:
    """Evidence of batch starts against a stated trigger interval; None if there is none.

    >>> started_s, duration_s = 1.8e9 + 2.0 * np.arange(10), np.full(10, 0.4)
    >>> contradiction(2.0, started_s, duration_s)
    >>> contradiction(0.0, started_s, duration_s)
    'batches start on the grid of 2.00 s'
    """
    starts = _starts(started_s, duration_s)
    read_s, why = read_trigger(started_s, duration_s)
    if len(starts.started_ms) < LEAST_PAIRS.value or read_s == stated_s:
        return None

    def log_ratio(trigger_s: float) -> float:
        interval_ms = round(trigger_s * 1000)
        return float(grid_log_ratio(starts, np.array([interval_ms]))[0]) if interval_ms else 0.0

    against = log_ratio(read_s or 0.0) - log_ratio(stated_s)
    return why if against > np.log(TIMES_LIKELIER.value) else None


def grid_log_ratio(starts: _Starts, interval_ms: _Milliseconds) -> Array:
    """By interval, how much more likely starts are with it than without, as a logarithm.

    **(E31)** The trigger interval of a log. With interval `B`, a batch is due at the first trigger
    after the start of the previous one, `g_k = B(⌊ s_(k-1)/B⌋+1)`, and ready at
    `r_k = max(s_(k-1)+D_(k-1), g_k)`, as in (B2). Relative to a query that starts its batches at
    once or at any phase of `B`, the start `s_k` has the likelihood ratio `ℓ_k = 1` if
    `s_(k-1) + D_(k-1) ≥ g_k` and it started at once, else `ℓ_k = (1-c_k) w_k/τ e^(-x_k/τ) + c_k`.
    Here `x_k` is the time since the latest trigger from `g_k` on; `τ = 4` ms is the mean delay of a
    start; `w_k = B` after a pause, else 30 ms, up to which a start counts as at once; and
    `c_k = 0.05` is the share of batches that start at any time after their trigger, since the
    driver was busy, or 0.001 before the trigger, when none should start.
    `Λ(B) = Σ_k ln ℓ_k + ln p(B)`, and `p(B)` is in proportion to the roundest of 1, 5, 10, 50, 100,
    250, 500 ms and 1 s that divides `B`. Candidates are intervals within 2% of a usual step or of
    its half to fifth, and the common ones. The most likely `B` is accepted if `Λ(B) ≥ ln 1000` and
    if it is larger than `Λ` of any interval whose grid is shifted by a phase `φ` that is not on
    that of `B` (e.g. rows that arrive every minute), minus `ln(B/τ)` for the choice of `φ`. A
    stated interval is contradicted if another one is 1000 times as likely.

    Without a trigger interval, a batch starts at once or at any phase of the interval. With one, it
    starts slightly after its trigger, or at once if the previous batch overran, and occasionally at
    any phase nevertheless.
    """
    every_ms = interval_ms[:, None]
    trigger_ms = ((starts.before_ms + _EARLY_MS) // every_ms + 1) * every_ms
    overran = starts.free_ms >= trigger_ms
    ready_ms = np.maximum(starts.free_ms, trigger_ms)
    latest_ms = (starts.started_ms + _EARLY_MS) // every_ms * every_ms
    late_ms = np.abs(starts.started_ms - np.maximum(latest_ms, trigger_ms))
    paused = _paused(starts)
    width_ms = np.where(paused, every_ms, AT_ONCE_MS.value)
    free_share = np.where(
        starts.started_ms + _EARLY_MS >= ready_ms, LATE_START_RATIO.value, EARLY_START_RATIO.value
    )
    on_grid = width_ms / LATE_MS.value * np.exp(-late_ms / LATE_MS.value)
    ratio = (1.0 - free_share) * on_grid + free_share
    log_ratio = np.log(np.where(overran & ~paused, 1.0, ratio))
    return np.asarray(log_ratio.sum(axis=1), dtype=np.float64)


def _rhythm_log_odds(
    latest: _Starts, starts: _Starts, candidates_ms: _Milliseconds, grid_ms: int
) -> float:
    """The same for rows that arrive at an interval with any phase, e.g. a file each minute.

    A query that runs as fast as possible starts at these times, too. All phases are equally likely;
    those on the grid of a trigger are not evidence against it.
    """
    log_prior = _log_prior(candidates_ms) + np.log(LATE_MS.value / candidates_ms)
    paused_ms = latest.started_ms[_paused(latest)]

    def turns(part_ms: _Milliseconds) -> Array:
        return np.asarray(paused_ms % part_ms[:, None] / part_ms[:, None])

    middles = _in_parts(
        lambda part_ms: np.mean(np.exp(2j * np.pi * turns(part_ms)), axis=1), candidates_ms
    )
    regular = np.argsort(np.abs(middles))[-_NUM_JUDGED:]
    every_ms, middle = candidates_ms[regular], np.angle(middles[regular]) / (2 * np.pi)
    around = middle[:, None] + (turns(every_ms) - middle[:, None] + 0.5) % 1.0 - 0.5
    phases_ms = np.rint(quantiles_of(around, _PHASE_QUANTILES) * every_ms[:, None])
    is_tried = (phases_ms + _EARLY_MS) % grid_ms > _NEXT_TO_GRID_MS
    is_tried[:, 1:] &= phases_ms[:, 1:] != phases_ms[:, :-1]
    tried = np.nonzero(is_tried)
    interval_ms, shift_ms = every_ms[tried[0]], phases_ms[tried].astype(np.int64)
    log_odds = log_prior[regular][tried[0]]
    num_together = max(_NUM_SHIFTED // len(starts.started_ms), 1)
    for begin in range(0, len(log_odds), num_together):
        part = slice(begin, begin + num_together)
        shifted = _Starts(*(column - shift_ms[part, None] for column in starts))
        log_odds[part] += grid_log_ratio(shifted, interval_ms[part])
    return float(log_odds.max(initial=-np.inf))


def _in_parts(values: Callable[[_Milliseconds], _Values], candidates_ms: _Milliseconds) -> _Values:
    """Values of many candidates, of few at a time: all at once they take gigabytes, and longer.

    Around an interval of half an hour there are a hundred thousand.
    """
    begins = range(0, len(candidates_ms), _NUM_TOGETHER)
    return np.concatenate(
        [values(candidates_ms[begin : begin + _NUM_TOGETHER]) for begin in begins]
    )


def _starts(started_s: Array, duration_s: Array) -> _Starts:
    """In whole milliseconds, as written by Spark; without starts before the previous batch."""
    started_ms = np.round(np.asarray(started_s) * 1000.0).astype(np.int64)
    ended_ms = started_ms + np.round(np.asarray(duration_s) * 1000.0).astype(np.int64)
    in_order = started_ms[1:] >= started_ms[:-1]
    return _Starts(started_ms[:-1][in_order], ended_ms[:-1][in_order], started_ms[1:][in_order])


def _paused(starts: _Starts) -> NDArray[np.bool_]:
    return starts.started_ms - starts.free_ms > AT_ONCE_MS.value


def _candidates_ms(starts: _Starts) -> _Milliseconds:
    """Intervals near usual steps between starts after a pause, their fractions, and common ones."""
    after_pause_ms = starts.started_ms[_paused(starts)]
    steps_ms = np.diff(np.append(starts.before_ms[:1], after_pause_ms))
    longest_ms = int(steps_ms.max())
    candidates_ms = {round(1000 * seconds) for seconds in _ALWAYS_TRIED_S}
    candidates_ms = {
        interval_ms
        for interval_ms in candidates_ms
        if interval_ms <= (1 + _NEAR_RATIO) * longest_ms
    }
    # Late starts shorten the next step, so the shortest step may not be an interval.
    for step_ms in quantiles_of(steps_ms, _USUAL_STEPS):
        for divisor in _DIVISORS:
            low_ms = int(step_ms / divisor * (1 - _NEAR_RATIO)) - 1
            high_ms = int(step_ms / divisor * (1 + _NEAR_RATIO)) + 2
            candidates_ms.update(range(max(low_ms, _SHORTEST_MS), high_ms))
    return np.array(sorted(candidates_ms), dtype=np.int64)


def _log_prior(interval_ms: _Milliseconds) -> Array:
    """Round intervals are more likely: in proportion to the roundest unit that divides them."""
    units_ms = np.array(ROUND_INTERVALS_MS.value)
    roundest_ms = np.max(np.where(interval_ms[:, None] % units_ms == 0, units_ms, 1), axis=1)
    return np.asarray(np.log(roundest_ms / roundest_ms.sum()), dtype=np.float64)
