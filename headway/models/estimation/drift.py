"""Whether batches now take longer, or less long, than a fitted model says, and what has changed."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from headway.few_numbers import together
from headway.models.arrays import Array, Numeric

# Siegmund's correction for the overshoot of a random walk over a barrier, twice 0.583.
_OVERSHOOT = 1.166
_MOST_THRESHOLD = 1e6
# Odds of twenty to one between two kinds of a shift.
_CLEAR_LEAD = 2.0 * float(np.log(20.0))

#: A drift that was found: the batch that raised the alarm, and its most likely first batch.
Alarm: TypeAlias = tuple[int, int]
#: What has changed in ``a + b n``; unclear if batches do not differ enough in size to tell.
ShiftKind: TypeAlias = Literal["fixed time", "time per row", "everything", "unclear"]


def cusum(scores: Array, allowance: float) -> Array:
    r"""Cumulative sum of the excess over an allowance, never below zero.

    ``scores`` (..., n) have variance 1 and are in order of time along the last axis. ``allowance``,
    0 or more, is half of the shift to be found soonest.

    **(E24)** CUSUM (Page 1954, doi:10.1093/biomet/41.1-2.100): `S_k = max(0, S_(k-1)+z_k-κ)`, with
    an alarm at `S_k > h`. The drift most likely began after the last zero. For batches that become
    faster, the sign of `z` is reversed.

    >>> cusum(np.array([-1.0, 2.0, 2.0, -3.0]), 0.5)
    array([0. , 1.5, 3. , 0. ])
    """
    if not allowance >= 0.0:
        raise ValueError("allowance must not be negative")
    walk = np.cumsum(np.asarray(scores, dtype=np.float64) - allowance, axis=-1)
    return np.asarray(walk - np.minimum(np.minimum.accumulate(walk, axis=-1), 0.0))


def first_alarm(scores: Array, allowance: float, threshold: float) -> Alarm | None:
    r"""The first batch at which a drift is certain enough (E24); None if there is none.

    ``scores`` are uncorrelated deviations of variance 1, in order of time. ``threshold``, above 0,
    is from `cusum_threshold`, for both sides. Batches that become faster count, too.

    >>> first_alarm(np.repeat([0.0, 1.5], [30, 10]), 0.5, 4.0)
    (34, 30)
    """
    if not threshold > 0.0:
        raise ValueError("threshold must be positive")
    slower = np.asarray(scores, dtype=np.float64)
    alarms = []
    for values in (slower, -slower):
        path = cusum(values, allowance)
        crossings = np.flatnonzero(path > threshold)
        if len(crossings):
            batch = int(crossings[0])
            zeros = np.flatnonzero(path[:batch] <= 0.0)
            alarms.append((batch, int(zeros[-1]) + 1 if len(zeros) else 0))
    return min(alarms, default=None)


def cusum_run_length(
    shift: Numeric, allowance: Numeric, threshold: Numeric, *, two_sided: bool = False
) -> Array:
    r"""Mean number of batches until an alarm, false or true.

    ``shift`` is the mean of the scores; 0 gives the time between false alarms. ``allowance >= 0``
    and ``threshold > 0`` are those of `first_alarm`. ``inf`` where the number exceeds all numbers.

    **(E25)** Mean number of batches to an alarm, by Siegmund (1985, doi:10.1007/978-1-4757-1862-1):
    with `d = δ - κ` and `b = h + 1.166` it is `(e^(-2db)-1+2db)/(2d^2)`, and `b^2` for `d = 0`. The
    alarm rates of the two sides add up.

    >>> cusum_run_length(np.array([0.0, 1.0]), 0.5, 4.0)
    array([338.1, 8.3])
    """
    moved, slack, barrier = together(shift, allowance, threshold)
    if not (np.all(slack >= 0.0) and np.all(barrier > 0.0) and np.all(np.isfinite(moved))):
        raise ValueError("need a finite shift, allowance >= 0 and threshold > 0")
    up = _one_sided_run_length(moved - slack, barrier)
    if not two_sided:
        return up
    down = _one_sided_run_length(-moved - slack, barrier)
    return np.asarray(1.0 / (1.0 / up + 1.0 / down))


@lru_cache(maxsize=8)
def cusum_threshold(run_length: float, allowance: float, *, two_sided: bool = False) -> float:
    r"""Threshold that raises a false alarm once in a desired number of batches (E25).

    ``run_length``, the mean number of batches between false alarms, must exceed that of a threshold
    of 0. A ValueError is raised if no threshold makes alarms that rare. For correlated batches the
    scores are those of (E23), and this threshold applies unchanged.

    >>> round(cusum_threshold(338.1, 0.5), 3)
    4.0
    """
    low, high = 1e-9, 1.0

    def reached(barrier: float) -> float:
        return float(cusum_run_length(0.0, allowance, barrier, two_sided=two_sided))

    if not reached(low) < run_length < np.inf:
        raise ValueError(f"run_length must be finite and exceed {reached(low):.2g} batches")
    while reached(high) < run_length:
        low, high = high, 2.0 * high
        if high > _MOST_THRESHOLD:
            raise ValueError("no threshold gives a false alarm so rarely")
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if reached(middle) < run_length else (low, middle)
    return high


def _one_sided_run_length(drift: Array, threshold: Array) -> Array:
    """Siegmund's formula; its limit without drift where the two exponentials cancel."""
    barrier = threshold + _OVERSHOOT
    exponent = 2.0 * drift * barrier
    small = np.abs(exponent) < 1e-4
    safe = np.where(small, 1.0, exponent)
    with np.errstate(over="ignore"):
        exact = 2.0 * barrier**2 * (np.expm1(-safe) + safe) / safe**2
    return np.asarray(np.where(small, barrier**2 * (1.0 - exponent / 3.0), exact))


class Shift(NamedTuple):
    """What has changed since an alarm's first batch, and each change if it were the only one.

    ``fixed_s`` and ``per_row_s`` are added to the fixed time and the time per row; ``ratio`` is a
    factor on all durations.
    """

    kind: ShiftKind
    fixed_s: float
    per_row_s: float
    ratio: float


def shift_since(
    num_rows: Array, duration_s: Array, fixed_s: float, per_row_s: float, relative_noise: float
) -> Shift:
    r"""What part of the model has changed, from the batches since.

    The batches are those from an alarm's first one on, and ``fixed_s`` and ``per_row_s`` the line
    that held before. The noise, above 0, is in proportion to the duration.

    **(E26)** What has changed: relative deviations of the batches since the drift began, regressed
    on `1/m_i` (fixed time), `n_i/m_i` (time per row) and `1` (everything by one factor), each
    alone. The answer is the kind with the smallest `χ^2` if it leads the next by `2 ln 20`;
    otherwise it is unclear, as it always is at one load.

    >>> rows = np.tile([5e3, 2e4], 10)
    >>> shift_since(rows, 2.0 + 4e-4 * rows, 2.0, 3e-4, 0.05).kind
    'time per row'
    """
    rows, duration = np.asarray(num_rows, dtype=float), np.asarray(duration_s, dtype=float)
    mean = fixed_s + per_row_s * rows
    if rows.size == 0 or not (np.all(mean > 0.0) and np.all(duration > 0.0)):
        raise ValueError("need at least one batch, with positive durations, measured and modelled")
    if not (relative_noise > 0.0 and fixed_s >= 0.0 and per_row_s >= 0.0 and np.all(rows >= 0.0)):
        raise ValueError("need relative_noise > 0 and neither rows nor the line negative")
    deviation = duration / mean - 1.0
    # Durations that have grown vary more as well.
    noise = relative_noise * max(1.0 + float(np.mean(deviation)), 1e-3)
    columns: dict[ShiftKind, Array] = {
        "fixed time": 1.0 / mean,
        "time per row": rows / mean,
        "everything": np.ones_like(mean),
    }
    amount, misfit = {}, {}
    for kind, column in columns.items():
        square = max(float(column @ column), 1e-300)
        amount[kind] = float(column @ deviation) / square
        residual = deviation - amount[kind] * column
        misfit[kind] = float(residual @ residual) / noise**2
    first, second = sorted(misfit, key=lambda kind: misfit[kind])[:2]
    is_clear = misfit[second] - misfit[first] >= _CLEAR_LEAD
    return Shift(
        first if is_clear else "unclear",
        amount["fixed time"],
        amount["time per row"],
        1.0 + amount["everything"],
    )
