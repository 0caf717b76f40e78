"""Current costs of a query relative to its profile: the factor on durations, and its drift."""

from __future__ import annotations

import math

import numpy as np

from headway.assumptions import live
from headway.domain import DurationNoise
from headway.models.arrays import Array
from headway.models.estimation.batch_noise import noise_ratio_at
from headway.models.estimation.drift import Alarm, Shift, cusum_threshold, first_alarm, shift_since
from headway.models.estimation.run_level import innovations_of, lasting_score
from headway.models.laws.normal import ndtri


def cost_factor(log_factor: float, duration_s: float, expected_s: float) -> float:
    r"""The logarithm of the cost factor after one more batch.

    Parameters
    ----------
    log_factor : float, the previous one, 0 at the start; its exponential multiplies every duration
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
    num_rows, duration_s : (n,) arrays, batches of one run at one setting, in order of time [-, s]
    fixed_s, per_row_s : float, >= 0, line of the profile there, above 0 for every batch [s, s/row]
    noise : DurationNoise
        Of batches around their run, and of runs around the line: ``run_to_run_ratio`` is the spread
        of (P2), including the error of the fit.
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
    noise, interval_s : as in `drift_found`
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
    scores, levels = innovations_of(log_ratio, expected_s, noise)
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
