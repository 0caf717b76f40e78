"""The largest of n independent values of any law, and of values of several laws."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from headway.models.arrays import Array, Numeric, open_probability
from headway.models.laws.distributions import bisect_increasing
from headway.models.laws.order_statistics import MaximumMoments

# Quadrature over probabilities: steps of the transformed variable, and how far it goes. At the
# ends a probability is within 1e-275 of 0 or 1.
_PROBABILITY_STEP = 1.0 / 16.0
_FARTHEST_STEP = 96
# A moment that still grows there by this share of itself is taken as infinite.
_DIVERGING_RATIO = 1e-9
# How much of the law of a maximum may lie outside of the ends it is looked for between.
_OUTSIDE = 1e-6
_LARGEST_PROBABILITY = 1.0 - 2.0**-53


class Parents(NamedTuple):
    """Independent values of one law: how many, and the probability that one exceeds x."""

    num_values: int
    exceedance: Callable[[Array], Array]


def max_general(num_values: int, upper_quantile: Callable[[Array], Array]) -> MaximumMoments:
    r"""Mean and standard deviation of the largest of n values of any continuous law.

    Parameters
    ----------
    num_values : int, >= 1
        How many independent values. [-]
    upper_quantile : callable
        From probabilities in (0, 1) to the values exceeded with those probabilities. Smooth, and
        finite down to 1e-290: that of ``1 - prob`` would be infinite there.

    Returns
    -------
    MaximumMoments
        Mean and standard deviation, unit of the values; ``inf`` where a moment does not exist.

    Raises
    ------
    ValueError
        If ``num_values`` is below 1, or a value is not finite.

    Notes
    -----
    theory.md (O6). Double exponential quadrature (Takahasi and Mori 1974) over the probability of
    the maximum; within 1e-9 of mpmath for normal, exponential, uniform and Pareto parents.

    Examples
    --------
    >>> exponential = max_general(4, lambda prob: -np.log(prob))
    >>> round(exponential.mean, 6), round(exponential.sd**2, 6)
    (2.083333, 1.423611)
    """
    log_prob, weight = _probabilities()
    return _moments(upper_quantile(_upper_probability(log_prob, num_values)), weight)


def max_quantile(q: Numeric, num_values: int, upper_quantile: Callable[[Array], Array]) -> Array:
    r"""Quantile of the largest of n independent values of any continuous law.

    Parameters
    ----------
    q : float or (n,) array, 0 < q < 1
        Probability. [-]
    num_values : int, >= 1
        How many values. [-]
    upper_quantile : callable
        As for `max_general`.

    Returns
    -------
    array
        Shape of ``q``, unit of the values.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (O7). Exact, for a million values too: probabilities near 1 are never formed.

    Examples
    --------
    >>> float(max_quantile(0.99, 1000, lambda prob: -np.log(prob)))
    11.50791
    """
    return upper_quantile(_upper_probability(np.log(open_probability(q)), num_values))


def max_of_different(parents: tuple[Parents, ...], low: float, high: float) -> MaximumMoments:
    r"""Mean and standard deviation of the largest of independent values of several laws.

    Parameters
    ----------
    parents : tuple of Parents
        The laws, at least one, and how many values each has.
    low, high : float
        Where the largest value lies, but for a probability that does not matter; any unit.

    Returns
    -------
    MaximumMoments
        Mean and standard deviation, unit of ``low``.

    Raises
    ------
    ValueError
        If there is no value, the ends are not finite and in order, or the largest value lies
        outside of them with a probability above one in a million.

    Notes
    -----
    theory.md (O8). Exact but for what lies outside of the ends, with the quadrature of (O6).

    Examples
    --------
    >>> fast = Parents(3, lambda x: np.exp(-x))
    >>> slow = Parents(1, lambda x: np.exp(-x / 2.0))
    >>> round(max_of_different((fast, slow), 0.0, 100.0).mean, 4)
    2.7476
    """
    log_prob, weight = _probabilities()
    return _moments(_quantile_of_different(log_prob, parents, low, high), weight)


def max_of_different_quantile(
    q: Numeric, parents: tuple[Parents, ...], low: float, high: float
) -> Array:
    r"""Quantile of the largest of independent values of several laws.

    Parameters
    ----------
    q : float or (n,) array, 0 < q < 1
        Probability. [-]
    parents, low, high
        As for `max_of_different`.

    Returns
    -------
    array
        Shape of ``q``, unit of ``low``.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (O8). Exact, by bisection of the product of the distribution functions.

    Examples
    --------
    >>> alike = (Parents(600, lambda x: np.exp(-x)), Parents(400, lambda x: np.exp(-x)))
    >>> float(max_of_different_quantile(0.99, alike, 0.0, 100.0))
    11.50791
    """
    return _quantile_of_different(np.log(open_probability(q)), parents, low, high)


def _probabilities() -> tuple[Array, Array]:
    """Logarithms of probabilities from 0 to 1, crowded at both ends, and their weights."""
    place = _PROBABILITY_STEP * np.arange(-_FARTHEST_STEP, _FARTHEST_STEP + 1)
    reach = np.pi * np.sinh(place)
    log_prob, log_rest = -np.logaddexp(0.0, -reach), -np.logaddexp(0.0, reach)
    return log_prob, _PROBABILITY_STEP * np.pi * np.cosh(place) * np.exp(log_prob + log_rest)


def _upper_probability(log_prob: Array, num_values: int) -> Array:
    """What one of n values may exceed so that all stay below with the given probability."""
    if num_values < 1:
        raise ValueError(f"num_values must be at least 1, got {num_values}")
    return np.minimum(-np.expm1(log_prob / num_values), _LARGEST_PROBABILITY)


def _moments(value: Array, weight: Array) -> MaximumMoments:
    if not np.all(np.isfinite(value)):
        raise ValueError("upper_quantile must be finite for probabilities from 1e-290 to 1 - 1e-16")
    mean = _sum_or_inf(weight * value)
    if np.isinf(mean):
        return MaximumMoments(np.inf, np.inf)
    with np.errstate(over="ignore"):
        variance = _sum_or_inf(weight * (value - mean) ** 2)
    return MaximumMoments(mean, float(np.sqrt(variance)))


def _sum_or_inf(terms: Array) -> float:
    at_the_end = abs(float(terms[-1]))
    if at_the_end > _DIVERGING_RATIO * float(np.abs(terms).sum()):
        return np.inf
    return float(terms.sum())


def _quantile_of_different(
    log_prob: Array, parents: tuple[Parents, ...], low: float, high: float
) -> Array:
    if not parents or any(parent.num_values < 1 for parent in parents):
        raise ValueError("need at least one law, and of each at least one value")

    def log_cdf(x: Array) -> Array:
        # An exceedance of 1 leaves no probability: its logarithm is -inf, as it should be.
        with np.errstate(divide="ignore"):
            return sum(
                (
                    parent.num_values * np.log1p(-np.clip(parent.exceedance(x), 0.0, 1.0))
                    for parent in parents
                ),
                np.zeros(()),
            )

    ends = np.exp(log_cdf(np.array([low, high], dtype=np.float64)))
    if not (ends[0] <= _OUTSIDE and ends[1] >= 1.0 - _OUTSIDE):
        raise ValueError("the largest value must lie between low and high")
    return bisect_increasing(
        log_cdf, log_prob, np.full_like(log_prob, low), np.full_like(log_prob, high)
    )
