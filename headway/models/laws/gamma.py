"""The gamma distribution by its moments, and the shifted one that takes a third.

``scipy.special`` loads inside the functions: what never needs a gamma does not wait for it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headway.models.arrays import Array, Numeric, any_probability, open_probability
from headway.models.laws.distributions import lognormal_cdf, lognormal_partial_expectation
from headway.models.laws.normal import ndtri

# Narrower gammas and lognormals agree to one part in ten million, and the incomplete gamma
# function begins to lose digits.
_NARROWEST_CV = 1e-4
# Its inverse loses them earlier. Below this skewness the expansion about the normal law is right
# to 1e-9 standard deviations.
_SMALLEST_SKEWNESS = 0.02
_FARTHEST_SCORE = 38.0


def gamma_cdf(x: Numeric, mean: Numeric, cv: Numeric) -> Array:
    r"""Distribution function of a gamma given by its mean and coefficient of variation.

    Parameters
    ----------
    x : float or (n,) array
        Where to evaluate; 0 at and below zero, any unit.
    mean : float or (n,) array, > 0
        Mean, unit of ``x``.
    cv : float or (n,) array, >= 0
        Coefficient of variation; 0 is a constant, 1 an exponential. [-]

    Returns
    -------
    array
        Inputs broadcast, 0 to 1. [-]

    Raises
    ------
    ValueError
        If ``mean`` or ``cv`` is outside its range.

    Notes
    -----
    theory.md (D6). More than 4.5 standard deviations below the mean of gammas narrower than
    0.002, where probabilities are below 4e-6, these come out up to 40 % low.

    Examples
    --------
    >>> float(gamma_cdf(2.0, 2.0, 1.0))
    0.63212
    """
    from scipy.special import gammainc

    centre, variation, narrow, shape = _shape(mean, cv)
    point = np.asarray(x, dtype=np.float64)
    wide = gammainc(shape, _scaled(point, shape, centre))
    if not np.any(narrow):
        return np.asarray(wide, dtype=np.float64)
    return np.where(narrow, lognormal_cdf(point, centre, variation), wide)


def gamma_quantile(q: Numeric, mean: Numeric, cv: Numeric) -> Array:
    r"""Quantile of a gamma given by its mean and coefficient of variation.

    Parameters
    ----------
    q : float or (n,) array, 0 to 1
        Probability. [-]
    mean : float or (n,) array, > 0
        Mean, any unit.
    cv : float or (n,) array, >= 0
        Coefficient of variation; 0 is a constant, 1 an exponential. [-]

    Returns
    -------
    array
        Inputs broadcast, unit of ``mean``; ``inf`` at q = 1 unless cv = 0.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (D6).

    Examples
    --------
    >>> float(gamma_quantile(0.99, 1.0, 1.0))
    4.60517
    """
    from scipy.special import gammaincinv

    probability = any_probability(q)
    centre, variation, _, _ = _shape(mean, cv)
    near_normal = variation < _SMALLEST_SKEWNESS / 2.0
    shape = 1.0 / np.square(np.where(near_normal, 1.0, variation))
    wide = gammaincinv(shape, probability) * centre / shape
    inside = (probability > 0.0) & (probability < 1.0)
    score = _near_normal_score(ndtri(np.where(inside, probability, 0.5)), 2.0 * variation)
    narrow = np.where(inside | (variation == 0.0), centre * (1.0 + variation * score), wide)
    return np.where(near_normal, narrow, wide)


def gamma_partial_expectation(x: Numeric, mean: Numeric, cv: Numeric) -> Array:
    r"""Mean of the positive part of ``x - D`` for a gamma ``D``.

    Parameters
    ----------
    x : float or (n,) array
        Any unit; the result is 0 at and below zero.
    mean : float or (n,) array, > 0
        Mean of ``D``, unit of ``x``.
    cv : float or (n,) array, >= 0
        Coefficient of variation of ``D``; 0 is a constant. [-]

    Returns
    -------
    array
        Inputs broadcast, unit of ``x``. Also the integral of the distribution function to ``x``.

    Raises
    ------
    ValueError
        If ``mean`` or ``cv`` is outside its range.

    Notes
    -----
    theory.md (D6).

    Examples
    --------
    >>> float(gamma_partial_expectation(1.0, 1.0, 1.0))
    0.36788
    """
    from scipy.special import gammainc

    centre, variation, narrow, shape = _shape(mean, cv)
    point = np.maximum(np.asarray(x, dtype=np.float64), 0.0)
    scaled = _scaled(point, shape, centre)
    wide = point * gammainc(shape, scaled) - centre * gammainc(shape + 1.0, scaled)
    # Far in the lower tail the difference of two tiny terms may come out below zero.
    wide = np.maximum(wide, 0.0)
    if not np.any(narrow):
        return np.asarray(wide, dtype=np.float64)
    return np.where(narrow, lognormal_partial_expectation(point, centre, variation), wide)


def shifted_gamma_quantile(q: Numeric, mean: Numeric, sd: Numeric, skewness: Numeric) -> Array:
    r"""Quantile of the shifted gamma that has the given mean, variance and skewness.

    Parameters
    ----------
    q : float or (n,) array, 0 < q < 1
        Probability. [-]
    mean : float or (n,) array
        Mean, any unit.
    sd : float or (n,) array, >= 0
        Standard deviation, unit of ``mean``.
    skewness : float or (n,) array
        Third central moment over the cube of ``sd``; negative reflects the law, 0 is normal. [-]

    Returns
    -------
    array
        Inputs broadcast, unit of ``mean``. The law begins at ``mean - 2 sd / skewness``, which
        may be below zero.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (D7).

    Examples
    --------
    >>> float(shifted_gamma_quantile(0.99, 1.0, 1.0, 2.0))
    4.60517
    """
    from scipy.special import gammainccinv, gammaincinv

    probability = open_probability(q)
    centre, spread, skew = (np.asarray(value, dtype=np.float64) for value in (mean, sd, skewness))
    if not (np.all(np.isfinite(centre) & np.isfinite(skew)) and np.all(spread >= 0.0)):
        raise ValueError("mean and skewness must be finite and sd non-negative")
    flat = np.abs(skew) < _SMALLEST_SKEWNESS
    half = np.where(flat, 1.0, np.abs(skew)) / 2.0
    shape = 1.0 / (half * half)
    above = half * (gammaincinv(shape, probability) - shape)
    below = -half * (gammainccinv(shape, probability) - shape)
    near_normal = _near_normal_score(ndtri(probability), np.where(flat, skew, 0.0))
    return centre + spread * np.where(flat, near_normal, np.where(skew > 0.0, above, below))


def _near_normal_score(score: Array, skewness: Array) -> Array:
    """Cornish and Fisher's expansion for a gamma of mean 0 and variance 1, to the fourth order."""
    z = np.clip(score, -_FARTHEST_SCORE, _FARTHEST_SCORE)
    square = z * z
    return (
        z
        + skewness * (square - 1.0) / 6.0
        + skewness**2 * z * (square - 7.0) / 144.0
        - skewness**3 * (square * (3.0 * square + 7.0) - 16.0) / 6480.0
        + skewness**4 * z * (square * (9.0 * square + 256.0) - 433.0) / 622080.0
    )


def _scaled(point: Array, shape: Array, mean: Array) -> Array:
    """In units of the scale; ``inf`` where that exceeds every number."""
    with np.errstate(over="ignore"):
        return np.maximum(point, 0.0) / mean * shape


def _shape(mean: Numeric, cv: Numeric) -> tuple[Array, Array, NDArray[np.bool_], Array]:
    """Mean, cv, where the law is too narrow for a gamma, and the shape elsewhere."""
    centre = np.asarray(mean, dtype=np.float64)
    variation = np.asarray(cv, dtype=np.float64)
    if not (np.all(centre > 0.0) and np.all(variation >= 0.0)):
        raise ValueError("mean must be positive and cv non-negative")
    narrow = variation < _NARROWEST_CV
    return centre, variation, narrow, 1.0 / np.square(np.where(narrow, 1.0, variation))
