"""The largest of n independent values: how long the slowest of n tasks takes."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from headway.models.arrays import Array, Numeric
from headway.models.laws.normal import log_ndtr, ndtri

_SCORE_STEP = 0.05
_LOWEST_SCORE = -9.0
_TAIL_SCORES = 9.0
_EULER_GAMMA = 0.5772156649015329


class MaximumMoments(NamedTuple):
    """Mean and standard deviation of a maximum, in the unit of its values."""

    mean: float
    sd: float


@lru_cache(maxsize=4096)
def max_normal(num_values: int) -> MaximumMoments:
    r"""Mean and standard deviation of the largest of n standard normals.

    Parameters
    ----------
    num_values : int, >= 1
        How many independent values. [-]

    Returns
    -------
    MaximumMoments
        Mean and standard deviation. [-]

    Raises
    ------
    ValueError
        If ``num_values`` is below 1.

    Notes
    -----
    theory.md (O1). Trapezoid rule on the density of the maximum, which is smooth and vanishes at
    both ends, so that the rule is exact to rounding.

    Examples
    --------
    >>> max_normal(40)
    MaximumMoments(mean=2.16078, sd=0.47749)
    """
    score, probability = _scores_of_maximum(num_values, highest_shift=0.0)
    mean = float(probability @ score)
    return MaximumMoments(mean, float(np.sqrt(probability @ (score - mean) ** 2)))


@lru_cache(maxsize=16384)
def max_lognormal(num_values: int, cv: float) -> MaximumMoments:
    r"""Mean and standard deviation of the largest of n lognormals of mean 1.

    Parameters
    ----------
    num_values : int, >= 1
        How many independent values. [-]
    cv : float, 0 to 100
        Coefficient of variation of one value. [-]

    Returns
    -------
    MaximumMoments
        Mean and standard deviation, in units of the mean of one value. [-]

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (O2). The largest lognormal belongs to the largest normal score, hence the same
    quadrature as (O1).

    Examples
    --------
    >>> max_lognormal(1, 0.5)
    MaximumMoments(mean=1.00, sd=0.50)
    """
    if not 0.0 <= cv <= 100.0:
        raise ValueError(f"cv must lie in 0..100, got {cv}")
    log_variance = float(np.log1p(cv * cv))
    log_sd = float(np.sqrt(log_variance))
    # The second moment weighs scores near 2 log_sd above the bulk.
    score, probability = _scores_of_maximum(num_values, highest_shift=2.0 * log_sd)
    value = np.exp(log_sd * score - log_variance / 2.0)
    mean = float(probability @ value)
    return MaximumMoments(mean, float(np.sqrt(probability @ (value - mean) ** 2)))


def max_normal_chen_tyler(num_values: Numeric) -> tuple[Array, Array]:
    r"""Closed-form mean and standard deviation of the largest of n standard normals.

    Parameters
    ----------
    num_values : float or (n,) array, > 1
        How many independent values; need not be whole. [-]

    Returns
    -------
    tuple of arrays
        Mean and standard deviation. [-] Against (O1): mean +6.2 % at 2, within 1 % from 5 on;
        standard deviation within 0.5 %.

    Raises
    ------
    ValueError
        If a count is not above 1.

    Notes
    -----
    theory.md (O3); Chen and Tyler (1999). For where a differentiable expression is needed.

    Examples
    --------
    >>> [round(float(value), 3) for value in max_normal_chen_tyler(40)]
    [2.146, 0.480]
    """
    count = np.asarray(num_values, dtype=np.float64)
    if not np.all(count > 1.0):
        raise ValueError("num_values must be above 1")
    mean = ndtri(0.5264 ** (1.0 / count))
    sd = 0.5 * (ndtri(0.8832 ** (1.0 / count)) - ndtri(0.2142 ** (1.0 / count)))
    return mean, sd


def max_normal_gumbel(num_values: Numeric) -> tuple[Array, Array]:
    r"""Mean and standard deviation of the largest of n standard normals by the limit law.

    Parameters
    ----------
    num_values : float or (n,) array, >= 2
        How many independent values; need not be whole. [-]

    Returns
    -------
    tuple of arrays
        Mean and standard deviation, the constants of VLDB'15, section 3.3. [-] Against (O1), for
        2 to 1000 values: mean 33 % high, falling to 0.9 %; standard deviation 32 % high at
        2, right at 18, 1.8 % low from 400 on.

    Raises
    ------
    ValueError
        If a count is below 2.

    Notes
    -----
    theory.md (O4); Fisher, Tippett and Gnedenko. For comparison with the paper: (O1) costs no
    more and is exact.

    Examples
    --------
    >>> [float(value) for value in max_normal_gumbel(40)]
    [2.22251, 0.47218]
    """
    count = np.asarray(num_values, dtype=np.float64)
    if not np.all(count >= 2.0):
        raise ValueError("num_values must be at least 2")
    log_count = np.log(count)
    root = np.sqrt(2.0 * log_count)
    place = root - (np.log(log_count) + np.log(4.0 * np.pi)) / (2.0 * root)
    return place + _EULER_GAMMA / root, np.pi / (np.sqrt(6.0) * root)


def max_correlated_normal(num_values: int, correlation: float) -> MaximumMoments:
    r"""Mean and standard deviation of the largest of n standard normals with a common factor.

    Parameters
    ----------
    num_values : int, >= 1
        How many values. [-]
    correlation : float, 0 to 1
        Correlation of any two of them. [-]

    Returns
    -------
    MaximumMoments
        Mean and standard deviation. [-]

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (O5). Exact: the factor moves all values alike.

    Examples
    --------
    >>> max_correlated_normal(40, 0.6)
    MaximumMoments(mean=1.36660, sd=0.83138)
    """
    if not 0.0 <= correlation <= 1.0:
        raise ValueError(f"correlation must lie in 0..1, got {correlation}")
    apart = max_normal(num_values)
    own = 1.0 - correlation
    return MaximumMoments(
        float(np.sqrt(own)) * apart.mean, float(np.sqrt(correlation + own * apart.sd**2))
    )


def _scores_of_maximum(num_values: int, highest_shift: float) -> tuple[Array, Array]:
    """Nodes and probabilities that carry the law of the largest of n standard normals."""
    if num_values < 1:
        raise ValueError(f"num_values must be at least 1, got {num_values}")
    top = float(np.sqrt(2.0 * np.log(num_values))) + _TAIL_SCORES + highest_shift
    score = np.arange(_LOWEST_SCORE, top, _SCORE_STEP)
    log_density = -0.5 * score * score + (num_values - 1) * log_ndtr(score)
    density = np.exp(log_density - log_density.max())
    return score, density / density.sum()
