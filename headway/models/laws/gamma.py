"""The gamma distribution without scipy, which takes longer to load than a plan to compute.

Both tails are accurate to about twelve digits, also where they are tiny.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from headway.few_numbers import together
from headway.models.arrays import Array, Numeric
from headway.models.laws.normal import ndtr

_ROUNDING = 2.0**-52
_LARGEST = 1e300  # stands for infinity, of which differences have no value
# Temme's expansion: from this shape on, within this ratio of the mean, so many powers of 1/shape
# and of eta are exact.
_TEMME_SHAPE, _TEMME_RATIO = 20.0, 0.3
_NUM_ORDERS, _NUM_POWERS = 10, 18
_SERIES_BELOW = 1e-2
_SERIES_ORDERS = np.arange(2.0, 10.0)
_MOST_NEWTON_STEPS = 200
_SMALLEST_LOG = -700.0  # e to this power is hardly above the smallest number
_lgamma = np.frompyfunc(math.lgamma, 1, 1)


def gammainc(shape: Numeric, x: Numeric) -> Array:
    r"""Probability that a gamma variable of scale 1 is at most ``x``.

    Parameters
    ----------
    shape : float or array, > 0
    x : float or array: below 0 the probability is 0

    **(D10)** Distribution function of a gamma distribution of shape `k` and scale 1: the
    regularised incomplete gamma function `P(k, x)`. Below `x = k+1` by its power series, above it
    by the continued fraction of `Q = 1-P`. From `k = 20` on, for `x` within 30% of the mean, by
    Temme's expansion in powers of `1/k` (1979, doi:10.1137/0510071), whose coefficients
    follow from a recurrence (NIST Digital Library of Mathematical Functions 2010, section 8.12).
    Both tails agree with scipy to 5e-12.

    >>> float(gammainc(1.0, 2.0))  # 1 - e^-2
    0.864665
    """
    return _tails(shape, x)[0]


def gammaincc(shape: Numeric, x: Numeric) -> Array:
    r"""Probability that a gamma variable of scale 1 is above ``x`` (D10).

    Parameters
    ----------
    shape : float or array, > 0
    x : float or array

    >>> round(float(gammaincc(1.0, 50.0)) * 1e22, 3)  # e^-50
    1.929
    """
    return _tails(shape, x)[1]


def gammaincinv(shape: Numeric, probability: Numeric) -> Array:
    r"""Value that a gamma variable of scale 1 does not exceed with a given probability.

    Parameters
    ----------
    shape : float or array, > 0
    probability : float or array, 0 to 1: 0 and 1 give 0 and ``inf``

    **(D11)** Quantile of a gamma distribution: `ln P` and `ln Q` are concave functions of `ln x`.
    Newton's rule for the smaller of the two tails therefore approaches the quantile from one side,
    without overshooting: from below, from the larger of `(p Γ(k+1))^(1/k)` and `k-sqrt(-2k ln p)`;
    for the upper tail from above, from `k+sqrt(-2k ln(1-p))-ln(1-p)` (Laurent and Massart 2000,
    doi:10.1214/aos/1015957395).

    >>> float(gammaincinv(1.0, 0.5))  # ln 2
    0.693147
    """
    shapes, probs = together(shape, probability)
    quantile = np.where(probs > 0.0, np.inf, 0.0)
    is_inside = (probs > 0.0) & (probs < 1.0)
    if np.any(is_inside):
        quantile[is_inside] = _inverse(shapes[is_inside], probs[is_inside])
    return quantile


def _inverse(shape: Array, prob: Array) -> Array:
    is_lower = prob <= 0.5
    log_tail = np.where(is_lower, np.log(prob), np.log1p(-prob))
    sway = np.sqrt(-2.0 * shape * log_tail)
    below = np.maximum(np.exp((log_tail + gammaln(shape + 1.0)) / shape), shape - sway)
    start = np.where(is_lower, below, shape + sway - log_tail)
    log_x = np.log(np.maximum(start, math.exp(_SMALLEST_LOG)))
    for _ in range(_MOST_NEWTON_STEPS):
        lower, upper, density = _tails_and_density(shape, np.exp(log_x))
        tail = np.where(is_lower, lower, upper)
        step = (np.log(tail) - log_tail) * tail / density * np.where(is_lower, -1.0, 1.0)
        log_x = np.maximum(log_x + step, _SMALLEST_LOG)
        # The next step would be in proportion to the square of this one.
        if np.max(np.abs(step) * np.sqrt(shape + 1.0)) < 1e-9:
            break
    return np.exp(log_x)


def gammaln(shape: Numeric) -> Array:
    """Logarithm of the gamma function, by the C library (D10).

    Parameters
    ----------
    shape : float or array, > 0

    >>> float(gammaln(5.0))  # ln 24
    3.178054
    """
    return np.asarray(_lgamma(np.asarray(shape, dtype=np.float64)), dtype=np.float64)


def log_excess(ratio: Numeric) -> Array:
    """``(t - log(1 + t)) / t^2``, which is 1/2 at zero (D10).

    Half the square of eta in Temme's expansion, over that of the distance from the mean in means.

    Parameters
    ----------
    ratio : float or array, > -1

    >>> float(log_excess(0.0)), float(log_excess(1.0))  # 1 - ln 2
    (0.5, 0.306853)
    """
    ratios = np.asarray(ratio, dtype=np.float64)
    is_small = np.abs(ratios) < _SERIES_BELOW
    apart = np.where(is_small, 1.0, ratios)
    small = np.where(is_small, ratios, 0.0)[..., np.newaxis]
    series = np.sum((-small) ** (_SERIES_ORDERS - 2.0) / _SERIES_ORDERS, axis=-1)
    return np.asarray(np.where(is_small, series, (apart - np.log1p(apart)) / apart**2))


def _tails(shape: Numeric, x: Numeric) -> tuple[Array, Array]:
    """Probabilities of at most ``x``, and of more."""
    shapes, values = together(shape, x)
    is_inside = values > 0.0
    lower = np.zeros(values.shape)
    upper = np.ones(values.shape)
    if np.any(is_inside):
        inside = np.minimum(values[is_inside], _LARGEST)
        lower[is_inside], upper[is_inside], _ = _tails_and_density(shapes[is_inside], inside)
    return lower, upper


def _tails_and_density(shape: Array, x: Array) -> tuple[Array, Array, Array]:
    """Both probabilities, and the density of the logarithm, for one-dimensional arrays, x > 0."""
    lower, upper = np.empty(x.shape), np.empty(x.shape)
    density = _log_density(shape, x)
    is_near = (shape >= _TEMME_SHAPE) & (np.abs(x - shape) <= _TEMME_RATIO * shape)
    is_below = ~is_near & (x < shape + 1.0)
    is_above = ~(is_near | is_below)
    if np.any(is_near):
        lower[is_near], upper[is_near] = _near_the_mean(shape[is_near], x[is_near])
    if np.any(is_below):
        lower[is_below] = density[is_below] * _power_series(shape[is_below], x[is_below])
        upper[is_below] = 1.0 - lower[is_below]
    if np.any(is_above):
        upper[is_above] = density[is_above] * _continued_fraction(shape[is_above], x[is_above])
        lower[is_above] = 1.0 - upper[is_above]
    return lower, upper, density


def _log_density(shape: Array, x: Array) -> Array:
    """``x^shape e^-x / gamma(shape)``; for large shapes by Stirling's series, as powers cancel."""
    is_large = shape >= _TEMME_SHAPE
    large = np.where(is_large, shape, _TEMME_SHAPE)
    distance = (x - large) / large
    is_near = np.abs(distance) < 0.5
    near = np.where(is_near, distance, 0.0)
    excess = np.where(is_near, near**2 * log_excess(near), distance - np.log(x / large))
    square = large * large
    stirling = 1.0 / 1260.0 - 1.0 / (1680.0 * square)
    stirling = (1.0 / 12.0 - (1.0 / 360.0 - stirling / square) / square) / large
    of_large = 0.5 * np.log(large / (2.0 * np.pi)) - large * excess - stirling
    small = np.where(is_large, 1.0, shape)
    of_small = small * np.log(x) - x - gammaln(small)
    return np.exp(np.where(is_large, of_large, of_small))


def _power_series(shape: Array, x: Array) -> Array:
    term = 1.0 / shape
    total = term.copy()
    divisor = shape.copy()
    while (term > _ROUNDING * total).any():
        divisor += 1.0
        term = term * x / divisor
        total += term
    return total


def _continued_fraction(shape: Array, x: Array) -> Array:
    """Legendre's, by the rule of Lentz."""
    denominator = x + 1.0 - shape
    inverse = 1.0 / denominator
    value = inverse.copy()
    numerator_part = np.full(x.shape, np.inf)
    for order in range(1, _MOST_NEWTON_STEPS * 10):
        coefficient = order * (shape - order)
        denominator += 2.0
        inverse = 1.0 / (coefficient * inverse + denominator)
        numerator_part = denominator + coefficient / numerator_part
        factor = inverse * numerator_part
        value *= factor
        if (np.abs(factor - 1.0) < 2.0 * _ROUNDING).all():
            break
    return value


def _near_the_mean(shape: Array, x: Array) -> tuple[Array, Array]:
    """Temme's expansion."""
    distance = (x - shape) / shape
    half_square = distance**2 * log_excess(distance)
    eta = np.sign(distance) * np.sqrt(2.0 * half_square)
    score = eta * np.sqrt(shape)
    # Mostly there is one shape, and many values.
    shapes = shape[:1] if np.all(shape == shape[0]) else shape
    coefficients = shapes[:, np.newaxis] ** -np.arange(_NUM_ORDERS) @ _temme_coefficients()
    series = coefficients[:, -1]
    for power in range(_NUM_POWERS - 2, -1, -1):
        series = series * eta + coefficients[:, power]
    correction = np.exp(-shape * half_square) / np.sqrt(2.0 * np.pi * shape) * series
    return ndtr(score) - correction, ndtr(-score) + correction


@cache
def _temme_coefficients() -> Array:
    """Coefficients of powers of 1/shape (rows) and of eta (columns)."""
    num_first = _NUM_POWERS + 2 * _NUM_ORDERS
    # x / shape as a power series of eta.
    alpha = [1.0, 1.0]
    for order in range(2, num_first + 2):
        products = sum(alpha[i] * alpha[order + 1 - i] for i in range(2, order))
        alpha.append(alpha[order - 1] / (order + 1) - 0.5 * products)
    first = np.array([-1.0 / 3.0, *((n + 2) * alpha[n + 2] for n in range(1, num_first))])
    rows, row, double_factorial = [first], first, 1.0
    for order in range(1, _NUM_ORDERS):
        double_factorial *= 2 * order + 1
        stirling = (-1.0) ** order * double_factorial * alpha[2 * order + 1]
        powers = np.arange(2.0, len(row))
        row = powers * row[2:] + stirling * first[: len(row) - 2]
        rows.append(row)
    return np.array([row[:_NUM_POWERS] for row in rows])
