"""Batches out of the ordinary: split off from the usual ones, and put back as a mixture."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headway.models.arrays import Array, Numeric, open_probability
from headway.models.laws.distributions import bisect_increasing, uniform_plus_lognormal_cdf

_MAD_TO_SD = 1.4826
_RARE_SPREADS = 5.0
_LEAST_RARE, _LEAST_BATCHES = 5, 300


class RareBatches(NamedTuple):
    """Two parts of batches by their ratio to the model: the usual ones and the rare slow ones."""

    share: float
    """Of the rare ones; 0 where there are too few to tell. [-]"""
    usual_ratio: float
    """Mean of the usual ones over the model. [-]"""
    usual_noise: float
    """Standard deviation of the usual ones over the model. [-]"""
    threshold_ratio: float
    """What every rare one exceeds, over the model. [-]"""
    excess_ratio: float
    """Mean of what rare ones take beyond the threshold, over the model. [-]"""
    excess_noise: float
    """Standard deviation of that, over the model. [-]"""


def rare_batches(ratio: Array) -> RareBatches:
    r"""Split batches into usual and rare slow ones, as a mixture that keeps both moments.

    Parameters
    ----------
    ratio : (n,) array, > 0
        Durations over what the model expects of each. [-]

    Returns
    -------
    RareBatches
        A share of 0, and all batches as usual ones, below 300 batches or five rare ones.

    Raises
    ------
    ValueError
        If there is no ratio or one is not positive.

    Notes
    -----
    theory.md (E13). Rare is what lies more than five spreads (1.4826 median absolute deviations)
    above the median. A robust line describes usual batches: the rare ones have to be put back, or
    high quantiles come out too low.

    Examples
    --------
    >>> usual = np.tile([0.9, 1.0, 1.1], 100)
    >>> parts = rare_batches(np.concatenate([usual, np.full(6, 3.0)]))
    >>> round(parts.share, 4), round(parts.usual_ratio, 4), round(parts.threshold_ratio, 2)
    (0.0196, 1.0, 1.74)
    """
    values = np.asarray(ratio, dtype=np.float64)
    if values.size == 0 or not np.all((values > 0.0) & np.isfinite(values)):
        raise ValueError("ratios must be positive and finite, and at least one")
    median = float(np.median(values))
    spread = _MAD_TO_SD * float(np.median(np.abs(values - median)))
    threshold = median + _RARE_SPREADS * spread
    rare = values > threshold
    num_rare = int(rare.sum())
    if len(values) < _LEAST_BATCHES or num_rare < _LEAST_RARE:
        mean, sd = float(values.mean()), float(values.std())
        return RareBatches(0.0, mean, sd, threshold, mean, sd)
    usual, excess = values[~rare], values[rare] - threshold
    return RareBatches(
        num_rare / len(values),
        float(usual.mean()),
        float(usual.std()),
        threshold,
        float(excess.mean()),
        float(excess.std()),
    )


def latency_quantile_with_rare_s(
    q: Numeric, interval_s: float, mean_s: float, parts: RareBatches
) -> Array:
    r"""Quantile of the latency of rows, where some batches are of a slower kind.

    Parameters
    ----------
    q : float or (n,) array, 0 to 1, both excluded
        Probability. [-]
    interval_s : float, >= 0
        Trigger interval, which no batch may exceed often. [s]
    mean_s : float, > 0
        What the model expects of a batch. [s]
    parts : RareBatches
        Usual and rare batches over it.

    Returns
    -------
    array
        Shape of ``q``. [s]

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (E13): the mixture of two laws (D4), inverted by bisection. Exact for a duration that
    does not depend on the wait for the trigger, which holds as long as batches end within it; with
    pauses in 3 % of a thousand batches p99 is uncertain by 7 %, since twenty of them tell it.

    Examples
    --------
    >>> parts = RareBatches(0.0, 1.0, 0.2, 1.0, 1.0, 0.2)
    >>> latency_quantile_with_rare_s(np.array([0.5, 0.95, 0.99]), 10.0, 5.0, parts).round(2)
    array([10.  , 14.79, 16.03])
    """
    probability = open_probability(q)
    if not 0.0 <= parts.share < 1.0:
        raise ValueError("the share of rare batches must lie in 0..1")

    def cdf(x: Array) -> Array:
        usual = uniform_plus_lognormal_cdf(
            x, interval_s, mean_s * parts.usual_ratio, mean_s * parts.usual_noise
        )
        rare = uniform_plus_lognormal_cdf(
            x - mean_s * parts.threshold_ratio,
            interval_s,
            mean_s * parts.excess_ratio,
            mean_s * parts.excess_noise,
        )
        return (1.0 - parts.share) * usual + parts.share * rare

    low = np.zeros_like(probability)
    high = np.full_like(probability, interval_s + mean_s * parts.usual_ratio)
    while np.any(cdf(high) < probability):
        high = 2.0 * high
    return bisect_increasing(cdf, probability, low, high)


def latency_bound_s(q: Numeric, interval_s: Numeric, mean_s: Numeric, sd_s: Numeric) -> Array:
    r"""A latency that its quantile never exceeds, whatever the law of the duration.

    Parameters
    ----------
    q : float or (n,) array, 0 to 1, 1 excluded
        Probability. [-]
    interval_s : float or (n,) array, >= 0
        Longest wait for a batch to start. [s]
    mean_s : float or (n,) array, > 0
        Mean batch duration. [s]
    sd_s : float or (n,) array, >= 0
        Its standard deviation. [s]

    Returns
    -------
    array
        Inputs broadcast. [s]

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (E14): Cantelli's bound for the duration alone. The wait is known never to exceed the
    interval, so the bound is far closer than one for the sum.

    Examples
    --------
    >>> float(latency_bound_s(0.99, 1.0, 0.5, 0.1))
    2.495
    """
    prob = np.asarray(q, dtype=np.float64)
    interval, mean, sd = (np.asarray(value, dtype=float) for value in (interval_s, mean_s, sd_s))
    if not np.all((prob >= 0.0) & (prob < 1.0)):
        raise ValueError("q must lie in 0..1 and not be 1")
    if not (np.all(interval >= 0.0) and np.all(mean > 0.0) and np.all(sd >= 0.0)):
        raise ValueError("need interval_s >= 0, mean_s > 0 and sd_s >= 0")
    return np.asarray(interval + mean + sd * np.sqrt(prob / (1.0 - prob)))
