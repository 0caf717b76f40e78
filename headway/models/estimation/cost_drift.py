"""What a query costs now, beside its profile: the factor on durations, and whether it drifts."""

from __future__ import annotations

import math
from typing import NamedTuple

from headway.assumptions.live import (
    FACTOR_WEIGHT_RATIO,
    FALSE_ALARM_S,
    SMALLEST_DRIFT_SPREADS,
)
from headway.models.arrays import Array
from headway.models.estimation.drift import (
    Direction,
    cusum_run_length,
    cusum_threshold,
    first_alarm,
    guarded_allowance,
    normal_scores,
    pre_whitened,
    whitened_shift,
)
from headway.models.estimation.shift import Shift, shift_since


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


def drift_found(
    num_rows: Array,
    duration_s: Array,
    *,
    fixed_s: float,
    per_row_s: float,
    relative_noise: float,
    autocorrelation: float,
    num_fitted_batches: float,
    interval_s: float,
) -> CostDrift | None:
    r"""Whether batches have come to cost more, or less, than the profile says.

    Parameters
    ----------
    num_rows, duration_s : (n,) arrays
        Batches at one setting, in order of time. [rows, s]
    fixed_s, per_row_s : float, >= 0
        The line of the profile at that setting, positive for every batch. [s, s/row]
    relative_noise : float, > 0
        Noise in proportion to the duration. [-]
    autocorrelation : float, 0 to 1, 1 excluded
        Of successive batches. [-]
    num_fitted_batches : float, >= 1
        Batches that the profile was fitted on. [-]
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
    **(A5)** Drift of costs: the scores (E22), pre-whitened (E23), in (E24) on both sides, `κ` half
    of a shift of one standard deviation and what (E25) adds for the fit, `h` that of (E25) for one
    false alarm in 30 days of batches. What has changed since is (E26).

    Examples
    --------
    >>> import numpy as np
    >>> rows, slower = np.full(200, 1e4), np.repeat([1.0, 1.3], 100)
    >>> found = drift_found(rows, slower * 5.0, fixed_s=2.0, per_row_s=3e-4, relative_noise=0.1,
    ...     autocorrelation=0.3, num_fitted_batches=1000.0, interval_s=10.0)
    >>> found.first_batch, found.direction.value, round(found.shift.ratio, 2)
    (100, 'slower', 1.3)
    """
    if not interval_s > 0.0:
        raise ValueError("interval_s must be positive")
    allowance, threshold = _watch(autocorrelation, num_fitted_batches, interval_s)
    scores = pre_whitened(
        normal_scores(num_rows, duration_s, fixed_s, per_row_s, relative_noise), autocorrelation
    )
    alarm = first_alarm(scores, allowance, threshold)
    if alarm is None:
        return None
    since = slice(alarm.first_batch, None)
    shift = shift_since(num_rows[since], duration_s[since], fixed_s, per_row_s, relative_noise)
    return CostDrift(alarm.first_batch, alarm.batch, alarm.direction, shift)


def batches_to_find(
    ratio: float,
    *,
    relative_noise: float,
    autocorrelation: float,
    num_fitted_batches: float,
    interval_s: float,
) -> float:
    r"""Mean number of batches until a drift of a size raises the alarm.

    Parameters
    ----------
    ratio : float, > 0
        Durations after the drift over those before. [-]
    relative_noise, autocorrelation, num_fitted_batches, interval_s
        As in `drift_found`.

    Returns
    -------
    float
        Without a drift the mean number between false alarms. [-]

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (A5), by (E23) and (E25).

    Examples
    --------
    >>> round(batches_to_find(1.3, relative_noise=0.1, autocorrelation=0.3,
    ...     num_fitted_batches=1000.0, interval_s=10.0))
    10
    """
    if not (ratio > 0.0 and relative_noise > 0.0):
        raise ValueError("need a positive ratio and relative_noise > 0")
    allowance, threshold = _watch(autocorrelation, num_fitted_batches, interval_s)
    score = math.log(ratio) / math.sqrt(math.log1p(relative_noise**2))
    shift = whitened_shift(score, autocorrelation)
    return float(cusum_run_length(shift, allowance, threshold, two_sided=True))


def _watch(
    autocorrelation: float, num_fitted_batches: float, interval_s: float
) -> tuple[float, float]:
    """Allowance and threshold of the sums."""
    half = 0.5 * float(whitened_shift(SMALLEST_DRIFT_SPREADS.value, autocorrelation))
    allowance = float(guarded_allowance(half, num_fitted_batches))
    num_batches = max(FALSE_ALARM_S.value / interval_s, 10.0)
    return allowance, cusum_threshold(num_batches, allowance, two_sided=True)
