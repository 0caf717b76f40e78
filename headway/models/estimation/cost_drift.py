"""What a query costs now, beside its profile: the factor on durations, and whether it drifts."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from headway.assumptions.live import (
    FACTOR_WEIGHT_RATIO,
    FALSE_ALARM_S,
    FALSE_LEVEL_RATIO,
    SMALLEST_DRIFT_SPREADS,
)
from headway.domain import DurationNoise
from headway.models.arrays import Array
from headway.models.estimation.drift import Alarm, Direction, cusum_threshold, first_alarm
from headway.models.estimation.run_level import lasting_score, news_of
from headway.models.estimation.shift import Shift, shift_since
from headway.models.laws.normal import ndtri


class CostDrift(NamedTuple):
    """A drift of costs: between which batches, which way, what changed, by how much."""

    first_batch: int
    """Place of the first batch of it, most likely."""
    alarm_batch: int
    """Place of the batch that made it certain."""
    direction: Direction
    shift: Shift
    """What has changed since, and its amount."""


def cost_factor(log_factor: float, duration_s: float, expected_s: float) -> float:
    r"""The logarithm of the cost factor after one more batch.

    Parameters
    ----------
    log_factor : float
        Of before; 0 at the start. [-]
    duration_s : float, > 0
        How long the batch took. [s]
    expected_s : float, > 0
        How long it takes by the profile, at its rows, setting and age of the JVM. [s]

    Returns
    -------
    float
        Its exponential multiplies every duration. [-]

    Raises
    ------
    ValueError
        If a duration is not positive.

    Notes
    -----
    **(A4)** Cost factor: `f = e^x` with `x_k = x_(k-1) + w(ln(D/E[D]) - x_(k-1))`, `w = 0.03`
    (Roberts 1959, doi:10.1080/00401706.1959.10489860): of the noise `c` of a batch
    `c sqrt(w/(2-w))`, an eighth, is left, and half of a shift is seen after 23 batches.

    Examples
    --------
    >>> round(cost_factor(0.0, 2.0, 1.0), 4)
    0.0208
    """
    if not (duration_s > 0.0 and expected_s > 0.0):
        raise ValueError("need positive durations, measured and expected")
    score = math.log(duration_s / expected_s)
    return log_factor + FACTOR_WEIGHT_RATIO.value * (score - log_factor)


def level_error_ratio(
    noise: DurationNoise,
    spread_ratio: float,
    num_batches: int,
    num_at_setting: int,
    seen_spread_ratio: float | None = None,
) -> float:
    r"""Spread of the true cost factor around the one that was learned of a running query.

    Parameters
    ----------
    noise : DurationNoise
        Of the profile.
    spread_ratio : float, >= 0
        Of one more run at the setting asked about, by (P2). [-]
    num_batches : int, >= 0
        Batches that the factor was learned of. [-]
    num_at_setting : int, >= 0
        Those of them, and the last ones, that ran at the setting asked about. [-]
    seen_spread_ratio : float, optional
        Of one more run with batches as large as those, by (P2); ``spread_ratio`` if not given. [-]

    Returns
    -------
    float
        Of the logarithm; at most ``spread_ratio``. [-]

    Raises
    ------
    ValueError
        If an argument is negative, or more batches ran at the setting than in all.

    Notes
    -----
    **(A15)** What a run has shown is known no longer as by the profile alone: after `k` batches,
    `j` of them at the setting, the cost factor (A4) is off by the part of the level of the run that
    it has not taken up, the same of what the profile errs by at that setting, all of what it errs
    by for batches of the one size and not of the other, and noise:
    `s_k^2 = (1-w)^(2k) s_r^2 + (1-w)^(2j)(min(s,s_n)^2-s_r^2) + |s^2-s_n^2| + v`,
    `v = Σ c_i^2 w(1+φ_i(1-w))/((2-w)(1-φ_i(1-w)))`, `s` from (P2), `s_n` of it for batches as large
    as those seen and `s_r` of it between runs, `c_i` and `φ_i` the parts of the noise that die out
    at once and that last: the variance of an exponentially weighted mean of them (Box, Jenkins and
    Reinsel 2008, chapter 3). What is not known better than before counts as before: `s_k ≤ s`.

    Examples
    --------
    >>> noise = DurationNoise(batch_ratio=0.1, autocorrelation=0.0, run_to_run_ratio=0.06)
    >>> [round(level_error_ratio(noise, 0.1, *each), 3) for each in ((0, 0), (400, 0), (400, 400))]
    [0.1, 0.081, 0.012]
    """
    seen_ratio = spread_ratio if seen_spread_ratio is None else seen_spread_ratio
    if not (spread_ratio >= 0.0 and 0 <= num_at_setting <= num_batches):
        raise ValueError("need a spread of 0 or more, and no more batches at a setting than in all")
    weight = FACTOR_WEIGHT_RATIO.value
    keeps = 1.0 - weight
    of_both = min(seen_ratio, spread_ratio) ** 2
    of_runs = min(noise.run_to_run_ratio**2, of_both)
    variance = keeps ** (2 * num_batches) * of_runs
    variance += keeps ** (2 * num_at_setting) * (of_both - of_runs)
    variance += abs(spread_ratio**2 - seen_ratio**2)
    lasting = noise.autocorrelation
    for share, correlation in ((1.0 - lasting, 0.0), (lasting, noise.persistence_ratio)):
        left = correlation * keeps
        ratio = weight / (2.0 - weight) * (1.0 + left) / (1.0 - left)
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
) -> CostDrift | None:
    r"""Whether batches have come to cost more, or less, than the profile says.

    Parameters
    ----------
    num_rows, duration_s : (n,) arrays
        Batches of one run at one setting, in order of time. [rows, s]
    fixed_s, per_row_s : float, >= 0
        The line of the profile at that setting, positive for every batch. [s, s/row]
    noise : DurationNoise
        Of batches around their run, and of runs around the line: ``run_to_run_ratio`` is the spread
        of (P2), the error of the fit included.
    interval_s : float, > 0
        Between two batches. [s]

    Returns
    -------
    CostDrift or None
        The first one; None without an alarm.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    **(A5)** Drift of costs: the scores of (E23), from which the level of the run and what lasts are
    taken, in (E24) on both sides. `κ` is half of what a shift by one standard deviation leaves for
    good, `h` that of (E25) for one false alarm in 30 days of batches. A run that lies off as a
    whole is an alarm where its level is beyond `s Φ^-1(1-α/4)`, `α = 0.01`: estimates of a level
    are a martingale whose variance grows up to `s^2`, so by reflection at most a share `α` of the
    runs that differ as runs do ever gets there, however often one looks. A drift began where the
    deviations up to the alarm part into two means of least squares (Hinkley 1970,
    doi:10.1093/biomet/57.1.1). What has changed since is (E26).

    Examples
    --------
    >>> rows, slower = np.full(200, 1e4), np.repeat([1.0, 1.3], 100)
    >>> noise = DurationNoise(batch_ratio=0.1, autocorrelation=0.3, run_to_run_ratio=0.1)
    >>> found = drift_found(rows, slower * 5.0, fixed_s=2.0, per_row_s=3e-4, noise=noise,
    ...     interval_s=10.0)
    >>> found.first_batch, found.direction.value, round(found.shift.ratio, 2)
    (100, 'slower', 1.3)
    """
    expected_s = fixed_s + per_row_s * np.asarray(num_rows, dtype=np.float64)
    if not (np.all(expected_s > 0.0) and np.all(np.asarray(duration_s) > 0.0)):
        raise ValueError("need positive durations, measured and modelled")
    log_ratio = np.log(duration_s / expected_s)
    alarm = _alarm(log_ratio, expected_s, noise, interval_s)
    if alarm is None:
        return None
    since = slice(alarm.first_batch, None)
    shift = shift_since(num_rows[since], duration_s[since], fixed_s, per_row_s, noise.batch_ratio)
    return CostDrift(alarm.first_batch, alarm.batch, alarm.direction, shift)


def batches_to_find(
    ratio: float,
    *,
    expected_s: float,
    noise: DurationNoise,
    interval_s: float,
    num_before: int,
    num_after: int = 2000,
) -> float:
    r"""Number of batches in which a drift of a size raises the alarm.

    Parameters
    ----------
    ratio : float, > 0
        Durations after the drift over those before. [-]
    expected_s : float, > 0
        Modelled duration of the batches. [s]
    noise, interval_s
        As in `drift_found`.
    num_before : int, >= 0
        Batches of the run that were seen before the drift: they tell its level. [-]
    num_after : int, >= 1
        Batches after which it counts as not found. [-]

    Returns
    -------
    float
        ``inf`` where the drift is taken for the level of the run before it is found. [-]

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (A5), of batches without noise.

    Examples
    --------
    >>> noise = DurationNoise(batch_ratio=0.1, autocorrelation=0.0, run_to_run_ratio=0.1)
    >>> how = {"expected_s": 1.0, "noise": noise, "interval_s": 10.0}
    >>> batches_to_find(1.3, **how, num_before=300)
    6.0
    >>> batches_to_find(1.1, **how, num_before=10)
    inf
    """
    if not (ratio > 0.0 and num_before >= 0 and num_after >= 1):
        raise ValueError("need a positive ratio, num_before >= 0 and num_after >= 1")
    log_variance = math.log1p(noise.batch_ratio**2 + (noise.added_sd_s / expected_s) ** 2)
    steps = np.repeat([0.0, math.log(ratio)], [num_before, num_after]) - 0.5 * log_variance
    alarm = _alarm(steps, np.full(len(steps), expected_s), noise, interval_s)
    return math.inf if alarm is None else float(alarm.batch + 1 - num_before)


def _alarm(
    log_ratio: Array, expected_s: Array, noise: DurationNoise, interval_s: float
) -> Alarm | None:
    """The first alarm, of a change within the run or of the run as a whole."""
    if not interval_s > 0.0:
        raise ValueError("interval_s must be positive")
    if len(log_ratio) == 0:
        return None
    news = news_of(log_ratio, expected_s, noise)
    allowance = 0.5 * SMALLEST_DRIFT_SPREADS.value * lasting_score(float(expected_s[0]), noise)
    num_batches = max(FALSE_ALARM_S.value / interval_s, 10.0)
    found = first_alarm(news.score, allowance, _threshold(num_batches, allowance))
    if found is not None:
        found = found._replace(first_batch=_parted_at(log_ratio[: found.batch + 1]))
    of_level = _level_alarm(news.level, noise.run_to_run_ratio)
    if found is None or (of_level is not None and of_level.batch < found.batch):
        return of_level
    return found


@lru_cache(maxsize=8)
def _threshold(num_batches: float, allowance: float) -> float:
    """Of the sums on both sides; asked twice at each look."""
    return cusum_threshold(num_batches, allowance, two_sided=True)


def _level_alarm(level: Array, run_to_run_ratio: float) -> Alarm | None:
    """An alarm of the run as a whole: it lies further off than runs do."""
    most = run_to_run_ratio * float(ndtri(1.0 - 0.25 * FALSE_LEVEL_RATIO.value))
    beyond = np.flatnonzero(np.abs(level) > most)
    if not len(beyond):
        return None
    batch = int(beyond[0])
    return Alarm(batch, 0, Direction.SLOWER if level[batch] > 0.0 else Direction.FASTER)


def _parted_at(values: Array) -> int:
    """Where values part into two means, best by least squares."""
    if len(values) < 2:
        return 0
    num_before = np.arange(1, len(values))
    before = np.cumsum(values)[:-1]
    num_after = len(values) - num_before
    gap = before / num_before - (values.sum() - before) / num_after
    return int(np.argmax(num_before * num_after * np.square(gap))) + 1
