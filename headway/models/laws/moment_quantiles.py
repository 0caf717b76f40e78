"""Quantiles where only moments are known: laws matched to them, and bounds whatever the law."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headway.models.arrays import Array, Numeric, open_probability
from headway.models.laws.distributions import bisect_increasing, lognormal_quantile
from headway.models.laws.gamma import gamma_quantile, shifted_gamma_quantile
from headway.models.laws.normal import ndtri

# A wait this short beside the standard deviation of the duration moves no digit of the bound.
_SHORTEST_WAIT_RATIO = 1e-12


class MomentMatch(StrEnum):
    """What is put in the place of a law of which only moments are known."""

    NORMAL = "normal"
    LOGNORMAL = "lognormal"
    GAMMA = "gamma"
    SHIFTED_GAMMA = "shifted gamma"
    CANTELLI = "Cantelli's bound"


class SumMoments(NamedTuple):
    """Mean, variance and third central moment of a sum of independent terms, any unit."""

    mean: Array
    variance: Array
    third_central: Array


def uniform_wait_moments(
    interval: Numeric, mean: Numeric, sd: Numeric, third_central: Numeric = 0.0
) -> SumMoments:
    r"""Moments of a uniform wait plus an independent duration.

    Parameters
    ----------
    interval : float or (n,) array, >= 0
        Length of the uniform wait, any unit.
    mean : float or (n,) array
        Mean duration, unit of ``interval``.
    sd : float or (n,) array, >= 0
        Its standard deviation, same unit.
    third_central : float or (n,) array, optional
        Its third central moment, unit cubed. A uniform wait adds none.

    Returns
    -------
    SumMoments
        Inputs broadcast.

    Raises
    ------
    ValueError
        If ``interval`` or ``sd`` is negative or not a number.

    Notes
    -----
    theory.md (D8). Exact.

    Examples
    --------
    >>> [float(value) for value in uniform_wait_moments(6.0, 5.0, 1.0)]
    [8.0, 4.0, 0.0]
    """
    width, spread = np.asarray(interval, dtype=np.float64), np.asarray(sd, dtype=np.float64)
    if not (np.all(width >= 0.0) and np.all(spread >= 0.0)):
        raise ValueError("interval and sd must be non-negative")
    return SumMoments(
        *np.broadcast_arrays(
            0.5 * width + mean,
            width * width / 12.0 + spread * spread,
            np.asarray(third_central, dtype=np.float64),
        )
    )


def normal_quantile(q: Numeric, mean: Numeric, sd: Numeric) -> Array:
    r"""Quantile of the normal law with the given mean and standard deviation.

    Parameters
    ----------
    q : float or (n,) array, 0 < q < 1
        Probability. [-]
    mean : float or (n,) array
        Mean, any unit.
    sd : float or (n,) array, >= 0
        Standard deviation, unit of ``mean``.

    Returns
    -------
    array
        Inputs broadcast, unit of ``mean``; ``inf`` where a moment is. May be below zero.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (D7); VLDB'15, section 3.4. For a uniform wait plus a lognormal, p99 is 15 % high
    where the wait dominates and 11 % low where a duration of cv 0.5 does.

    Examples
    --------
    >>> float(normal_quantile(0.99, 10.0, 3.05505))
    17.107
    """
    known = _Known.checked(q, mean, sd)
    return known.or_inf(known.mean + known.sd * ndtri(known.probability))


def cantelli_quantile_bound(q: Numeric, mean: Numeric, sd: Numeric) -> Array:
    r"""Bound that no law with the given mean and standard deviation lets its quantile exceed.

    Parameters
    ----------
    q : float or (n,) array, 0 < q < 1
        Probability. [-]
    mean : float or (n,) array
        Mean, any unit.
    sd : float or (n,) array, >= 0
        Standard deviation, unit of ``mean``.

    Returns
    -------
    array
        Inputs broadcast, unit of ``mean``; ``inf`` where a moment is.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (D9); Cantelli's inequality, VLDB'15 eq. 4. Attained by a law on two points. For a
    uniform wait plus a lognormal it is 125 % to 200 % above the p99.

    Examples
    --------
    >>> float(cantelli_quantile_bound(0.99, 10.0, 3.05505))
    40.397
    """
    known = _Known.checked(q, mean, sd)
    odds = known.probability / (1.0 - known.probability)
    return known.or_inf(known.mean + known.sd * np.sqrt(odds))


def uniform_wait_quantile_bound(q: Numeric, interval: Numeric, mean: Numeric, sd: Numeric) -> Array:
    r"""Bound of the quantile of a uniform wait plus a duration of which two moments are known.

    Parameters
    ----------
    q : float or (n,) array, 0 < q < 1
        Probability. [-]
    interval : float or (n,) array, >= 0
        Length of the uniform wait, any unit.
    mean : float or (n,) array
        Mean of the independent duration, unit of ``interval``.
    sd : float or (n,) array, >= 0
        Its standard deviation, same unit.

    Returns
    -------
    array
        Inputs broadcast, unit of ``interval``; ``inf`` where a moment is.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (D9): Cantelli's inequality for the duration, averaged over the wait, or that for the
    sum, whichever is lower. For lognormal durations 1 % to 93 % above the p99, where Cantelli's
    inequality alone is 125 % to 200 %. Without spread it is the quantile itself.

    Examples
    --------
    >>> float(uniform_wait_quantile_bound(0.99, 1.0, 0.2, 0.01))
    1.2063
    """
    known = _Known.checked(q, mean, sd)
    width = np.asarray(interval, dtype=np.float64)
    if not (np.all(width >= 0.0) and np.all(np.isfinite(width))):
        raise ValueError("interval must be non-negative and finite")
    farthest = width + known.sd * np.sqrt(known.probability / (1.0 - known.probability))
    beyond = bisect_increasing(
        lambda excess: -_averaged_cantelli_tail(excess, width, known.sd),
        known.probability - 1.0,
        np.zeros_like(farthest),
        farthest,
    )
    averaged = known.mean + beyond
    return np.minimum(known.or_inf(averaged), _cantelli_of_the_sum(q, width, mean, sd))


def quantile_from_moments(
    q: Numeric,
    mean: Numeric,
    variance: Numeric,
    match: MomentMatch,
    third_central: Numeric | None = None,
) -> Array:
    r"""Quantile of a sum known by its moments, by the law that is put in its place.

    Parameters
    ----------
    q : float or (n,) array, 0 < q < 1
        Probability. [-]
    mean : float or (n,) array
        Mean, any unit; > 0 for lognormal and gamma.
    variance : float or (n,) array, >= 0
        Variance, unit squared.
    match : MomentMatch
        The law, or the bound.
    third_central : float or (n,) array, optional
        Third central moment, unit cubed; the shifted gamma needs it, the others ignore it.

    Returns
    -------
    array
        Inputs broadcast, unit of ``mean``; ``inf`` where a moment is.

    Raises
    ------
    ValueError
        If an argument is outside its range, or the third moment is missing.

    Notes
    -----
    theory.md (D7), (D9), with the errors of each. Where the law of the duration behind a uniform
    wait is known, (D4) and (D11) are exact; this is for sums of which nobody knows the law.

    Examples
    --------
    >>> float(quantile_from_moments(0.99, 10.0, 28.0 / 3.0, MomentMatch.NORMAL))
    17.107
    """
    spread = np.sqrt(_variance(variance))
    if match is MomentMatch.NORMAL:
        return normal_quantile(q, mean, spread)
    if match is MomentMatch.CANTELLI:
        return cantelli_quantile_bound(q, mean, spread)
    known = _Known.checked(q, mean, spread)
    if match is MomentMatch.SHIFTED_GAMMA:
        return known.or_inf(_shifted_gamma(known, third_central))
    if not np.all(known.mean > 0.0):
        raise ValueError(f"a {match.value} needs a positive mean")
    of_law = lognormal_quantile if match is MomentMatch.LOGNORMAL else gamma_quantile
    return known.or_inf(of_law(known.probability, known.mean, known.sd / known.mean))


def _shifted_gamma(known: _Known, third_central: Numeric | None) -> Array:
    if third_central is None:
        raise ValueError("a shifted gamma needs third_central")
    varies = known.bounded & (known.sd > 0.0)
    sd = np.where(varies, known.sd, 1.0)
    # One division at a time: the cube of a tiny standard deviation would be zero.
    with np.errstate(over="ignore"):
        skewness = np.where(varies, np.asarray(third_central, dtype=np.float64), 0.0) / sd / sd / sd
    return shifted_gamma_quantile(known.probability, known.mean, known.sd, skewness)


def _cantelli_of_the_sum(q: Numeric, width: Array, mean: Numeric, sd: Numeric) -> Array:
    total = uniform_wait_moments(width, mean, sd)
    return cantelli_quantile_bound(q, total.mean, np.sqrt(total.variance))


def _averaged_cantelli_tail(excess: Array, width: Array, sd: Array) -> Array:
    """Bound of P(wait + duration > mean of the duration + excess), ``excess`` >= 0."""
    remaining = np.maximum(excess - width, 0.0)
    # One arc for the difference of two: it keeps its digits for short waits and far tails.
    arc = np.arctan2(sd * np.minimum(excess, width), sd * sd + excess * remaining)
    waits = width > _SHORTEST_WAIT_RATIO * sd
    averaged = (sd * arc + np.maximum(width - excess, 0.0)) / np.where(waits, width, 1.0)
    variance, square = sd * sd, excess * excess
    total = variance + square
    alone = np.where(total > 0.0, variance / np.where(total > 0.0, total, 1.0), 0.0)
    return np.where(waits, averaged, alone)


class _Known(NamedTuple):
    """Checked arguments, with stand-ins where a moment is infinite."""

    probability: Array
    mean: Array
    sd: Array
    bounded: NDArray[np.bool_]

    @classmethod
    def checked(cls, q: Numeric, mean: Numeric, sd: Numeric) -> _Known:
        probability = open_probability(q)
        centre, spread = np.asarray(mean, dtype=np.float64), np.asarray(sd, dtype=np.float64)
        if not (np.all(centre > -np.inf) and np.all(spread >= 0.0)):
            raise ValueError("mean must be a number and sd non-negative")
        probability, centre, spread = np.broadcast_arrays(probability, centre, spread)
        bounded = np.isfinite(centre) & np.isfinite(spread)
        return cls(
            probability, np.where(bounded, centre, 1.0), np.where(bounded, spread, 0.0), bounded
        )

    def or_inf(self, value: Array) -> Array:
        return np.where(self.bounded, value, np.inf)


def _variance(variance: Numeric) -> Array:
    checked = np.asarray(variance, dtype=np.float64)
    if not np.all(checked >= 0.0):
        raise ValueError("variance must be non-negative")
    return checked
