"""Probabilities and quantiles: lognormal, uniform plus lognormal, mixtures, the largest of some."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np

from headway.few_numbers import distinct
from headway.models.arrays import Array, Numeric, any_probability
from headway.models.laws.normal import log_ndtr, ndtr, ndtri

# A constant is treated as a lognormal of this logarithmic width: one formula serves both, and
# no quantile moves by more than one part in a hundred million.
_NARROWEST_LOG_SD = 1e-9
_BISECTION_TOLERANCE_RATIO = 1e-10
_MOST_BISECTIONS = 200
_NEWTON_STEPS = 6  # three steps reach full precision from the first guess
# Below this share of the scale the difference quotient loses all digits; its limit is used.
_VANISHING_RATIO = 1e-8
_SCORE_STEP = 0.05
_CV_TOLERANCE = 1e-4
_LOWEST_SCORE = -9.0
_TAIL_SCORES = 9.0


def lognormal_cdf(x: Numeric, mean: Numeric, cv: Numeric) -> Array:
    r"""Distribution function of a lognormal given by its mean and coefficient of variation.

    Parameters
    ----------
    x : float or (n,) array, any unit; the result is 0 at and below zero
    mean : float or (n,) array, > 0, unit of ``x``
    cv : float or (n,) array, >= 0: 0 is a constant

    **(D2)** Distribution function and quantile of a lognormal: `F(x) = Φ(z)` with
    `z = ln(x/m)/s + s/2`, and `Q(q) = m e^(s Φ^-1(q)-s^2/2)`. A constant is treated as a lognormal
    of width `10^-9`, so that one formula covers all cases.

    >>> float(lognormal_cdf(5.0, 5.0, 0.2))
    0.53944
    """
    log_sd = _log_sd(mean, cv)
    return ndtr(_score(np.asarray(x, dtype=np.float64), mean, log_sd))


def lognormal_quantile(q: Numeric, mean: Numeric, cv: Numeric) -> Array:
    r"""Quantile of a lognormal given by its mean and coefficient of variation (D2).

    In the unit of ``mean``; ``inf`` at q = 1 unless cv = 0.

    Parameters
    ----------
    q : float or (n,) array, 0 to 1
    mean : float or (n,) array, > 0
    cv : float or (n,) array, >= 0: 0 is a constant

    >>> float(lognormal_quantile(0.99, 5.0, 0.2))
    7.77
    """
    probability = any_probability(q)
    cv_array = np.asarray(cv, dtype=np.float64)
    log_sd = _log_sd(mean, cv)
    value = np.asarray(mean) * np.exp(log_sd * ndtri(probability) - 0.5 * log_sd * log_sd)
    return np.where(cv_array == 0.0, np.asarray(mean, dtype=np.float64), value)


def lognormal_partial_expectation(x: Numeric, mean: Numeric, cv: Numeric) -> Array:
    r"""Mean of the positive part of ``x - D`` for a lognormal ``D``, in the unit of ``x``.

    Parameters
    ----------
    x, mean, cv: of ``D``, as in `lognormal_cdf`

    **(D3)** Partial expectation of a lognormal:
    `G(x) = E[(x-D)^+] = ∫_(-∞)^x F = x Φ(z) - m Φ(z-s)` for `x > 0`, else 0.

    >>> float(lognormal_partial_expectation(6.0, 5.0, 0.0))
    1.0
    """
    point = np.asarray(x, dtype=np.float64)
    return _partial_expectation(point, np.asarray(mean), _log_sd(mean, cv))


def _partial_expectation(x: Array, mean: Array, log_sd: Array) -> Array:
    """(D3) without checks; ``log_sd`` is the standard deviation of the logarithm, above 0."""
    score = _score(x, mean, log_sd)
    value = x * ndtr(score) - mean * ndtr(score - log_sd)
    # Far in the lower tail the difference of two tiny terms may be negative by rounding.
    return np.where(x > 0.0, np.maximum(value, 0.0), 0.0)


def uniform_plus_lognormal_cdf(
    x: Numeric, interval_s: Numeric, mean_s: Numeric, sd_s: Numeric
) -> Array:
    r"""Distribution function of a uniform wait plus an independent lognormal duration.

    Parameters
    ----------
    x : float or (n,) array, where to evaluate [s]
    interval_s : float or (n,) array, >= 0, length of the uniform wait [s]
    mean_s : float or (n,) array, > 0
    sd_s : float or (n,) array, >= 0: 0 is a constant [s]

    **(D4)** A wait `U` that is uniform on `[0, B]` plus an independent duration `D`: `P(U+D ≤ x) =
    (G(x)-G(x-B))/B`, and `F(x)` in the limit of `B → 0`. Exact; quantiles by bisection.

    >>> float(uniform_plus_lognormal_cdf(16.0303, 10.0, 5.0, 1.0))
    0.9900
    """
    interval = np.asarray(interval_s, dtype=np.float64)
    mean = np.asarray(mean_s, dtype=np.float64)
    if not np.all(interval >= 0.0):
        raise ValueError("interval_s must be non-negative")
    log_sd = _log_sd(mean, np.asarray(sd_s, dtype=np.float64) / mean)
    point = np.asarray(x, dtype=np.float64)
    vanishing = interval <= _VANISHING_RATIO * np.maximum(np.abs(point), mean)
    difference = _partial_expectation(point, mean, log_sd)
    difference = difference - _partial_expectation(point - interval, mean, log_sd)
    quotient = difference / np.where(vanishing, 1.0, interval)
    without_wait = ndtr(_score(point, mean, log_sd))
    return np.clip(np.where(vanishing, without_wait, quotient), 0.0, 1.0)


def bisect_increasing(
    function: Callable[[Array], Array], target: Array, low: Array, high: Array
) -> Array:
    r"""Points at which increasing functions reach their targets, for whole arrays at once.

    Parameters
    ----------
    function : callable, increasing in each element of its array argument
    target : (n,) array, value to reach
    low, high : (n,) arrays, finite
        Brackets: the function is below the target at ``low`` and reaches it at ``high``.

    Notes
    -----
    Bisection, which halves the brackets until they are within 1e-10 of their larger ends: it needs
    no derivative and cannot leave them (Brent 1973, ch. 4).

    >>> bisect_increasing(lambda x: x**2, np.array([4.0, 9.0]), np.zeros(2), np.full(2, 10.0))
    array([2., 3.])
    """
    goal, lowest, highest = np.broadcast_arrays(target, low, high)
    if not (np.all(np.isfinite(lowest) & np.isfinite(highest)) and np.all(lowest <= highest)):
        raise ValueError("brackets must be finite with low <= high")
    lower: Array = lowest.astype(np.float64)
    upper: Array = highest.astype(np.float64)
    for _ in range(_MOST_BISECTIONS):
        if np.all(upper - lower <= _BISECTION_TOLERANCE_RATIO * np.abs(upper)):
            break
        middle = 0.5 * (lower + upper)
        reached = function(middle) >= goal
        upper = np.where(reached, middle, upper)
        lower = np.where(reached, lower, middle)
    return 0.5 * (lower + upper)


def _log_sd(mean: Numeric, cv: Numeric) -> Array:
    """Standard deviation of the logarithm.

    **(D1)** A lognormal with mean `m` and variance `v` has the logarithmic variance
    `s^2 = ln(1+v/m^2)`, computed with `log1p`, which keeps small variances accurate.
    """
    variation = np.asarray(cv, dtype=np.float64)
    if not (np.all(np.asarray(mean) > 0.0) and np.all(variation >= 0.0)):
        raise ValueError("mean must be positive and cv non-negative")
    return np.maximum(np.sqrt(np.log1p(variation * variation)), _NARROWEST_LOG_SD)


def _score(x: Array, mean: Numeric, log_sd: Array) -> Array:
    """Standard normal score of ``x`` under a lognormal; -inf at and below zero."""
    ratio = np.maximum(x, 0.0) / mean
    with np.errstate(divide="ignore"):
        return np.log(ratio) / log_sd + 0.5 * log_sd


@cache
def gauss_legendre(num_nodes: int) -> tuple[Array, Array]:
    r"""Nodes and weights that integrate polynomials up to degree 2 num_nodes - 1 exactly, on -1..1.

    Nodes ascend, and weights are 2 in total.

    Parameters
    ----------
    num_nodes : int, >= 1

    Notes
    -----
    The roots of Legendre's polynomial `P_n`, by Newton's rule from `cos(π(k-1/4)/(n+1/2))`, and
    `2/((1-x^2) P_n'(x)^2)`: Abramowitz and Stegun 1964, 25.4.29. Importing NumPy's own takes a
    hundredth of a second, which would delay every plan.

    >>> node, weight = gauss_legendre(5)
    >>> 9.0 / 2.0 * float(weight @ node**8)
    1.0000000000
    """
    root_number = np.arange(num_nodes, 0.0, -1.0)
    node = np.cos(np.pi * (root_number - 0.25) / (num_nodes + 0.5))
    for _ in range(_NEWTON_STEPS):
        value, slope = _legendre(num_nodes, node)
        node = node - value / slope
    node = 0.5 * (node - node[::-1])
    _, slope = _legendre(num_nodes, node)
    weight = 2.0 / ((1.0 - node * node) * slope * slope)
    return node, 0.5 * (weight + weight[::-1])


def _legendre(degree: int, x: Array) -> tuple[Array, Array]:
    """Legendre's polynomial of a degree and its slope, by Bonnet's recursion."""
    before, value = np.ones_like(x), x
    for lower in range(2, degree + 1):
        before, value = value, ((2 * lower - 1) * x * value - (lower - 1) * before) / lower
    return value, degree * (x * value - before) / (x * x - 1.0)


def uniform_mixture_quantile(q: Numeric, low: Array, high: Array, weight: Array) -> Array:
    r"""Exact quantile of a mixture of uniform distributions: the smallest value that reaches ``q``.

    Parameters
    ----------
    q : float or (n,) array, 0 to 1
    low, high : (k,) arrays, low <= high, ends of the parts; equal ends are an atom
    weight : (k,) array, >= 0, not all 0, they need not add up to 1

    **(D5)** Mixture of uniform distributions on `[l_k, h_k]` with weights `w_k`: the distribution
    function is piecewise linear and jumps where `l_k = h_k`. A quantile is found by a search among
    the bends and one interpolation. Exact.

    >>> parts = np.array([0.0, 3.0]), np.array([2.0, 3.0]), np.array([1.0, 1.0])
    >>> uniform_mixture_quantile(np.array([0.25, 0.75]), *parts)
    array([1., 3.])
    """
    probability = any_probability(q)
    starts, ends, share = (np.asarray(value, dtype=np.float64) for value in (low, high, weight))
    if not (starts.ndim == 1 and starts.size and starts.shape == ends.shape == share.shape):
        raise ValueError("low, high and weight must be 1-D, of one length, and not empty")
    if not (np.all(starts <= ends) and np.all(share >= 0.0) and share.sum() > 0.0):
        raise ValueError("need low <= high and non-negative weights that are not all zero")
    share = share / share.sum()
    used = share > 0.0
    starts, ends, share = starts[used], ends[used], share[used]
    bends = distinct(np.concatenate([starts, ends]))
    flat = [_mixture_quantile(value, bends, starts, ends, share) for value in probability.ravel()]
    return np.array(flat, dtype=np.float64).reshape(probability.shape)


def _fraction_below(x: float, starts: Array, ends: Array) -> Array:
    """Share of each part at or below ``x``; an atom counts from its position on."""
    width = ends - starts
    fraction = (x - starts) / np.where(width > 0.0, width, 1.0)
    at_atoms = (x >= starts).astype(np.float64)
    below: Array = np.where(width > 0.0, np.clip(fraction, 0.0, 1.0), at_atoms)
    return below


def _mixture_quantile(q: float, bends: Array, starts: Array, ends: Array, share: Array) -> float:
    lower, upper = -1, len(bends) - 1
    while upper - lower > 1:
        middle = (lower + upper) // 2
        if share @ _fraction_below(bends[middle], starts, ends) >= q:
            upper = middle
        else:
            lower = middle
    if lower < 0:
        return float(bends[0])
    atoms = (starts == ends) & (starts == bends[upper])
    at_lower = float(share @ _fraction_below(bends[lower], starts, ends))
    before_upper = float(share @ _fraction_below(bends[upper], starts, ends) - share[atoms].sum())
    if q >= before_upper:
        return float(bends[upper])
    fraction = (q - at_lower) / (before_upper - at_lower)
    return float(bends[lower] + fraction * (bends[upper] - bends[lower]))


class MeanAndSd(NamedTuple):
    """Mean and standard deviation of a maximum or a makespan, in the unit of its values."""

    mean: float
    sd: float


@lru_cache(maxsize=4096)
def max_normal(num_values: int) -> MeanAndSd:
    r"""Mean and standard deviation of the largest of n standard normals.

    Parameters
    ----------
    num_values : int, >= 1

    **(X1)** Moments of the largest of `n` standard normal values, from its density
    `n φ(z) Φ(z)^(n-1)` by the trapezoid rule with step 0.05. Exact to rounding.

    The density is smooth and vanishes at both ends, which makes the rule that exact.

    >>> max_normal(40)
    MeanAndSd(mean=2.16078, sd=0.47749)
    """
    score, probability = _scores_of_maximum(num_values, highest_shift=0.0)
    mean = float(probability @ score)
    return MeanAndSd(mean, float(np.sqrt(probability @ (score - mean) ** 2)))


@lru_cache(maxsize=16384)
def max_lognormal(num_values: int, cv: float) -> MeanAndSd:
    r"""Mean and standard deviation of the largest of n lognormals of mean 1.

    Parameters
    ----------
    num_values : int, >= 1
    cv : float, 0 to 100

    **(X2)** The largest of `n` lognormal values is the one with the largest normal score, so its
    moments are those of `e^(sz-s^2/2)` under the density of (X1). Exact. Normal instead of
    lognormal values would make the mean 29% low for 32 values of cv 1.

    >>> max_lognormal(1, 0.5)
    MeanAndSd(mean=1.00, sd=0.50)
    """
    if not 0.0 <= cv <= 100.0:
        raise ValueError(f"cv must lie in 0..100, got {cv}")
    log_variance = float(np.log1p(cv * cv))
    log_sd = float(np.sqrt(log_variance))
    # In the second moment, scores near 2 log_sd above the bulk weigh most.
    score, probability = _scores_of_maximum(num_values, highest_shift=2.0 * log_sd)
    value = np.exp(log_sd * score - log_variance / 2.0)
    mean = float(probability @ value)
    return MeanAndSd(mean, float(np.sqrt(probability @ (value - mean) ** 2)))


def cv_with_largest(num_values: int, largest: float, *, highest_cv: float) -> float:
    """Coefficient of variation of n lognormals of mean 1 whose largest has a mean (X2).

    By bisection, since that mean rises with the coefficient.

    Parameters
    ----------
    num_values : int, >= 1
    largest : float, its mean
    highest_cv : float, 0 to 100, the result if the largest is not below that of this coefficient

    >>> cv_with_largest(100, 4.0, highest_cv=1.7), cv_with_largest(100, 40.0, highest_cv=1.7)
    (0.675, 1.7)
    """
    low, high = 0.0, highest_cv
    if max_lognormal(num_values, high).mean <= largest:
        return high
    while high - low > _CV_TOLERANCE * highest_cv:
        middle = 0.5 * (low + high)
        is_enough = max_lognormal(num_values, middle).mean > largest
        low, high = (low, middle) if is_enough else (middle, high)
    return low


def _scores_of_maximum(num_values: int, highest_shift: float) -> tuple[Array, Array]:
    """Nodes and probabilities of the distribution of the largest of n standard normals."""
    if num_values < 1:
        raise ValueError(f"num_values must be at least 1, got {num_values}")
    top = float(np.sqrt(2.0 * np.log(num_values))) + _TAIL_SCORES + highest_shift
    score = np.arange(_LOWEST_SCORE, top, _SCORE_STEP)
    log_density = -0.5 * score * score + (num_values - 1) * log_ndtr(score)
    density = np.exp(log_density - log_density.max())
    return score, density / density.sum()
