"""Current costs of a query relative to its profile: their factor, and drifts, by CUSUM."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from headway.assumptions import live
from headway.domain import DurationNoise
from headway.few_numbers import together
from headway.models.arrays import Array, Numeric
from headway.models.estimation.batch_noise import lasting_score, news_of, noise_ratio_at
from headway.models.laws.normal import ndtri

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


def cost_factor(log_factor: float, duration_s: float, expected_s: float) -> float:
    r"""The logarithm of the cost factor after one more batch.

    Parameters
    ----------
    log_factor : float, the previous one; 0 at the start
    duration_s : float, > 0
    expected_s : float, > 0, by the profile, for its rows, setting and age of the JVM [s]

    **(A4)** Cost factor: `f = e^x` with `x_k = x_(k-1) + w(ln(D/E[D]) - x_(k-1))`, `w = 0.03`
    (Roberts 1959, doi:10.1080/00401706.1959.10489860). Of the noise `c` of a batch,
    `c sqrt(w/(2-w))`, an eighth, remains, and half of a shift is visible after 23 batches.

    >>> round(cost_factor(0.0, 2.0, 1.0), 4)
    0.0208
    """
    if not (duration_s > 0.0 and expected_s > 0.0):
        raise ValueError("need positive durations, measured and expected")
    score = math.log(duration_s / expected_s)
    return log_factor + live.FACTOR_WEIGHT_RATIO.value * (score - log_factor)


def level_error_ratio(
    noise: DurationNoise,
    spread_ratio: float,
    num_batches: int,
    num_at_setting: int,
    seen_spread_ratio: float | None = None,
) -> float:
    r"""Spread of the logarithm of the true cost factor around that learned from a running query.

    Parameters
    ----------
    spread_ratio : float, >= 0, spread of one more run at the setting asked about, by (P2)
    num_batches : int, >= 0, batches that the factor was learned from
    num_at_setting : int, 0 to num_batches, the last of them, which ran at the setting asked about
    seen_spread_ratio : float, optional, the same for batches as large as those seen

    **(A15)** Uncertainty of the cost factor (A4) after `k` batches of a run, `j` of them in the
    configuration asked about. It consists of the part of the run's level that the factor has not
    taken up, the same part of the profile's error for that configuration, all of the profile's
    error for batches of one size but not of the other, and noise: `s_k^2 = (1-w)^(2k) s_r^2 +
    (1-w)^(2j)(min(s,s_n)^2-s_r^2) + |s^2-s_n^2| + v`,
    `v = Σ c_i^2 w(1+φ_i(1-w))/((2-w)(1-φ_i(1-w)))`. `s` is from (P2), `s_n` is the same for batches
    as large as those seen, and `s_r` the same between runs. `c_i` and `φ_i` are the parts of the
    noise that die out at once and that last, with their correlations; `v` is the variance of an
    exponentially weighted mean of them (Box, Jenkins and Reinsel 2008, chapter 3). The run never
    makes the factor less certain than the profile alone: `s_k ≤ s`.

    >>> noise = DurationNoise(batch_ratio=0.1, autocorrelation=0.0, run_to_run_ratio=0.06)
    >>> [round(level_error_ratio(noise, 0.1, *pair), 3) for pair in ((0, 0), (400, 0), (400, 400))]
    [0.1, 0.081, 0.012]
    """
    if not (spread_ratio >= 0.0 and 0 <= num_at_setting <= num_batches):
        raise ValueError("need a spread of 0 or more, and no more batches at a setting than in all")
    seen_ratio = spread_ratio if seen_spread_ratio is None else seen_spread_ratio
    weight = live.FACTOR_WEIGHT_RATIO.value
    keeps = 1.0 - weight
    of_both = min(seen_ratio, spread_ratio) ** 2
    of_runs = min(noise.run_to_run_ratio**2, of_both)
    variance = keeps ** (2 * num_batches) * of_runs
    variance += keeps ** (2 * num_at_setting) * (of_both - of_runs)
    variance += abs(spread_ratio**2 - seen_ratio**2)
    lasting = noise.autocorrelation
    for share, correlation in ((1.0 - lasting, 0.0), (lasting, noise.persistence_ratio)):
        decay_ratio = correlation * keeps
        ratio = weight / (2.0 - weight) * (1.0 + decay_ratio) / (1.0 - decay_ratio)
        variance += share * noise.batch_ratio**2 * ratio
    return math.sqrt(min(variance, spread_ratio**2))


def drift_found(
    num_rows: Array,
    duration_s: Array,
    *,
    fixed_s: float,
    per_row_s: float,
    noise: DurationNoise,
    interval_s: float,
) -> tuple[Alarm, Shift] | None:
    r"""The first drift by which batches cost more, or less, than by the profile, and what changed.

    Parameters
    ----------
    num_rows, duration_s : (n,) arrays, of batches of one run at one setting, in order of time
    fixed_s, per_row_s : float, >= 0, line of the profile there, positive for every batch
    noise : DurationNoise, whose ``run_to_run_ratio`` is the spread of (P2), fit included
    interval_s : float, > 0, time between two batches [s]

    **(A5)** Drift of costs: the scores of (E23), from which the level of the run and lasting noise
    are removed, are used in (E24) on both sides. `κ` is half of the mean score that a permanent
    shift by one standard deviation leaves, and `h` is that of (E25) for one false alarm in 30 days
    of batches. A run that is off as a whole raises an alarm if its level is beyond `s Φ^-1(1-α/4)`,
    `α = 0.01`. Estimates of a level are a martingale whose variance grows up to `s^2`, so by the
    reflection principle at most a share `α` of the runs with usual differences ever gets there,
    however often it is checked. A drift began where the deviations up to the alarm split best into
    two means by least squares (Hinkley 1970, doi:10.1093/biomet/57.1.1). (E26) identifies what has
    changed since.

    >>> rows, slower = np.full(200, 1e4), np.repeat([1.0, 1.3], 100)
    >>> noise = DurationNoise(batch_ratio=0.1, autocorrelation=0.3, run_to_run_ratio=0.1)
    >>> (_, first_batch), shift = drift_found(rows, slower * 5.0, fixed_s=2.0, per_row_s=3e-4,
    ...     noise=noise, interval_s=10.0)
    >>> first_batch, round(shift.ratio, 2)
    (100, 1.3)
    """
    expected_s = fixed_s + per_row_s * np.asarray(num_rows, dtype=np.float64)
    if not (np.all(expected_s > 0.0) and np.all(np.asarray(duration_s) > 0.0)):
        raise ValueError("need positive durations, measured and modelled")
    log_ratio = np.log(duration_s / expected_s)
    alarm = _alarm(log_ratio, expected_s, noise, interval_s)
    if alarm is None:
        return None
    _, first_batch = alarm
    since = slice(first_batch, None)
    shift = shift_since(num_rows[since], duration_s[since], fixed_s, per_row_s, noise.batch_ratio)
    return alarm, shift


def batches_to_find(
    ratio: float,
    *,
    expected_s: float,
    noise: DurationNoise,
    interval_s: float,
    num_before: int,
    num_after: int = 2000,
) -> float:
    r"""Number of batches until a drift of a given size raises the alarm of (A5), without noise.

    It is ``inf`` if the drift is taken for the level of the run before it is found.

    Parameters
    ----------
    ratio : float, > 0, durations after the drift over those before
    expected_s : float, > 0
    num_before : int, >= 0, batches of the run that were seen before the drift: they show its level
    num_after : int, >= 1, batches after which it counts as not found

    >>> noise = DurationNoise(batch_ratio=0.1, autocorrelation=0.0, run_to_run_ratio=0.1)
    >>> how = {"expected_s": 1.0, "noise": noise, "interval_s": 10.0}
    >>> batches_to_find(1.3, **how, num_before=300)
    6.0
    >>> batches_to_find(1.1, **how, num_before=10)
    inf
    """
    if not (ratio > 0.0 and num_before >= 0 and num_after >= 1):
        raise ValueError("need a positive ratio, num_before >= 0 and num_after >= 1")
    log_variance = math.log1p(float(noise_ratio_at(noise, expected_s)) ** 2)
    steps = np.repeat([0.0, math.log(ratio)], [num_before, num_after]) - 0.5 * log_variance
    alarm = _alarm(steps, np.full(len(steps), expected_s), noise, interval_s)
    if alarm is None:
        return math.inf
    batch, _ = alarm
    return float(batch + 1 - num_before)


def _alarm(
    log_ratio: Array, expected_s: Array, noise: DurationNoise, interval_s: float
) -> Alarm | None:
    """The first alarm, of a change within the run or of the run as a whole."""
    if not interval_s > 0.0:
        raise ValueError("interval_s must be positive")
    if len(log_ratio) == 0:
        return None
    scores, levels = news_of(log_ratio, expected_s, noise)
    allowance = 0.5 * live.SMALLEST_DRIFT_SPREADS.value * lasting_score(float(expected_s[0]), noise)
    num_batches = max(live.FALSE_ALARM_S.value / interval_s, 10.0)
    threshold = cusum_threshold(num_batches, allowance, two_sided=True)
    alarm = first_alarm(scores, allowance, threshold)
    of_level = _level_alarm(levels, noise.run_to_run_ratio)
    if alarm is None or (of_level is not None and of_level[0] < alarm[0]):
        return of_level
    batch, _ = alarm
    return batch, _parted_at(log_ratio[: batch + 1])


def _level_alarm(level: Array, run_to_run_ratio: float) -> Alarm | None:
    """An alarm of the run as a whole: it is further off than runs usually are."""
    limit = run_to_run_ratio * float(ndtri(1.0 - 0.25 * live.FALSE_LEVEL_RATIO.value))
    crossings = np.flatnonzero(np.abs(level) > limit)
    return (int(crossings[0]), 0) if len(crossings) else None


def _parted_at(values: Array) -> int:
    """Where values split best into two means, by least squares."""
    if len(values) < 2:
        return 0
    num_before = np.arange(1, len(values))
    before = np.cumsum(values)[:-1]
    num_after = len(values) - num_before
    gap = before / num_before - (values.sum() - before) / num_after
    return int(np.argmax(num_before * num_after * np.square(gap))) + 1
