"""The trigger interval of a query, which no event states, read off when its batches start."""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

import numpy as np

from headway.models.arrays import Array

_IDLE_GAP_S = 0.030  # above Spark's polling delay of 10 ms and the rounding of two timestamps
_GRID_TOLERANCE_S = 0.006
_EARLY_TOLERANCE_S = 0.001
_CANDIDATES = 400  # about as many intervals are tried
_MOST_CHANCE = 1e-3
_STRAY_SHARE = 0.1
# A busy driver starts some batches late. In a short log two of them are more than the share above,
# and a finer grid that one of them happens to meet would be taken for the interval.
_FORGIVEN_STRAYS = 2
_STARTS_PER_STRAY = 5
_LEAST_GAPS = 3


class TriggerReading(NamedTuple):
    """``trigger_s`` is 0 for as fast as possible; None where the starts do not tell."""

    trigger_s: float | None
    why: str


def read_trigger(started_s: Array, duration_s: Array) -> TriggerReading:
    """The trigger interval that explains the start times of consecutive batches.

    Parameters
    ----------
    started_s, duration_s : (n,) arrays
        Start (epoch) and duration of batches in order of time [s].

    Returns
    -------
    TriggerReading
        A batch that starts after an idle gap starts on a multiple of the interval since the
        epoch. With an epoch of 1e9 seconds only the true interval, to the millisecond, puts all
        of them on its grid. Batches that follow each other without a gap mean either as fast as
        possible or a query that cannot keep up; both run alike.

    Notes
    -----
    theory.md (B1): Spark's trigger rule.

    Examples
    --------
    >>> started_s = 1.8e9 + 2.0 * np.arange(10)
    >>> read_trigger(started_s, np.full(10, 0.4)).trigger_s
    2.0
    >>> read_trigger(1.8e9 + 0.2 * np.arange(10), np.full(10, 0.2)).trigger_s
    0.0
    """
    gaps_s = started_s[1:] - (started_s + duration_s)[:-1]
    after_idle = started_s[1:][gaps_s > _IDLE_GAP_S]
    if len(started_s) < _LEAST_GAPS + 1:
        return TriggerReading(None, "too few batches")
    if len(after_idle) < max(_LEAST_GAPS, 0.1 * len(gaps_s)):
        return TriggerReading(0.0, "batches follow each other without a pause")
    # Between two idle starts lie one or more whole intervals; most often one. Late starts shorten
    # the next step, so the shortest may be no interval.
    steps_ms = np.round(np.diff(started_s[np.append(False, gaps_s > _IDLE_GAP_S)]) * 1000)
    usual_ms = [float(step) for step in np.quantile(steps_ms, (0.5, 0.1))]
    for divisor in (1, 2, 3, 4, 5):
        for candidate_ms in chain.from_iterable(
            _nearby_milliseconds(step_ms / divisor) for step_ms in dict.fromkeys(usual_ms)
        ):
            candidate_s = candidate_ms / 1000.0
            strays = len(after_idle) - _num_on_grid(after_idle, candidate_s)
            if (
                strays <= _most_strays(len(after_idle))
                and _chance(len(after_idle) - strays, candidate_s) <= _MOST_CHANCE
            ):
                return TriggerReading(candidate_s, "batches start on its grid")
    return TriggerReading(None, "batches pause, but start on no common grid")


def _nearby_milliseconds(middle_ms: float) -> list[int]:
    """Whole milliseconds within 2 % of a value, the roundest first."""
    low, high = int(middle_ms * 0.98) - 1, int(middle_ms * 1.02) + 2
    candidates = [value for value in range(max(low, 1), high) if value >= 10]
    return sorted(candidates, key=lambda value: (-_roundness(value), abs(value - middle_ms)))


def _roundness(milliseconds: int) -> int:
    return max(unit for unit in (1, 5, 10, 50, 100, 250, 500, 1000) if milliseconds % unit == 0)


def _num_on_grid(started_s: Array, trigger_s: float) -> int:
    offset_s = np.mod(started_s, trigger_s)
    early = trigger_s - offset_s < _EARLY_TOLERANCE_S
    return int(np.count_nonzero((offset_s < _GRID_TOLERANCE_S) | early))


def _most_strays(num_starts: int) -> int:
    forgiven = min(num_starts // _STARTS_PER_STRAY, _FORGIVEN_STRAYS)
    return max(int(_STRAY_SHARE * num_starts), forgiven)


def _chance(num_starts: int, trigger_s: float) -> float:
    """Probability that starts at random times lie on the grid of some candidate."""
    share = min((_GRID_TOLERANCE_S + _EARLY_TOLERANCE_S) / trigger_s, 1.0)
    return float(_CANDIDATES * share**num_starts)
