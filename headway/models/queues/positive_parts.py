"""Terms of Spitzer's sums: the positive part of arrived work minus served work."""

from __future__ import annotations

import numpy as np

from headway.models.arrays import Array
from headway.models.laws.gamma import gammaincc
from headway.models.laws.normal import ndtr

_NORMAL_SHAPE = 1e6  # from this shape on, a gamma is taken as normal


def positive_parts(drift: Array, sd: Array, third: Array) -> tuple[Array, Array, Array]:
    r"""Positive part of shifted gammas with given cumulants: probability, two moments (V3), (N6).

    Unlike in the sums of (Q10), each value has its own skewness. Exact to about 1e-9 of the
    standard deviation.

    Parameters
    ----------
    drift : (n,) array, the negative of the mean, any unit
    sd : (n,) array, > 0, standard deviation, unit of ``drift``
    third : (n,) array
        Third cumulant, unit of ``drift`` to the third; a gamma is reflected if it is negative.

    >>> _, first, _ = positive_parts(np.array([0.0, 0.5]), np.ones(2), np.array([0.0, 2.0]))
    >>> first
    array([0.3989, 0.2231])
    """
    if not np.all(sd > 0.0):
        raise ValueError("sd must be positive")
    sign = np.where(third < 0.0, -1.0, 1.0)
    skewness = np.abs(third) / sd**3
    score = sign * drift / sd
    tail = ndtr(-score)
    density = np.exp(-0.5 * score**2) / np.sqrt(2.0 * np.pi)
    first = density - score * tail
    second = (1.0 + score**2) * tail - score * density
    gamma = skewness > 2.0 / np.sqrt(_NORMAL_SHAPE)
    tail[gamma], first[gamma], second[gamma] = _of_gamma(score[gamma], skewness[gamma])
    # For a reflected law, the other side counts.
    reflected = sign < 0.0
    tail = np.where(reflected, 1.0 - tail, tail)
    first = np.where(reflected, score + first, first)
    second = np.where(reflected, 1.0 + score**2 - second, second)
    # Differences of nearly equal terms far in the tail may be slightly negative.
    return np.maximum(tail, 0.0), sd * np.maximum(first, 0.0), sd**2 * np.maximum(second, 0.0)


def _of_gamma(score: Array, skewness: Array) -> tuple[Array, Array, Array]:
    """The parts beyond -score standard deviations, in standard deviations."""
    shape = 4.0 / skewness**2
    edge = shape + 2.0 * score / skewness
    positive_edge = np.maximum(edge, 0.0)
    tail, first_tail, second_tail = (
        gammaincc(shape + order, positive_edge) for order in (0.0, 1.0, 2.0)
    )
    scale = skewness / 2.0
    first = scale * (shape * first_tail - edge * tail)
    second = scale**2 * (
        shape * (shape + 1.0) * second_tail - 2.0 * edge * shape * first_tail + edge**2 * tail
    )
    return tail, first, second


def spitzer_terms(num_exact: int, last: float, nodes: Array, weights: Array) -> tuple[Array, Array]:
    r"""Numbers of increments, not all whole, and the weight of each in a sum over 1/n (Q10).

    Euler-Maclaurin: the remainder is the integral from the last exact term on, minus half of that
    term. As a function of the logarithm of n, the integrand is smooth over all decades.

    Parameters
    ----------
    num_exact : int, >= 1, terms that are summed one by one
    last : float
        Number from which terms are negligible; if it is among the exact ones, there is no
        quadrature. [-]
    nodes, weights : (k,) arrays, Gauss-Legendre on -1..1, for the remaining terms

    >>> from headway.models.laws.distributions import gauss_legendre
    >>> nodes, weights = gauss_legendre(24)
    >>> count, weight = spitzer_terms(400, 1e6, nodes, weights)
    >>> float(weight @ count**-1.0)  # pi^2 / 6, less what lies beyond a million
    1.644933
    """
    count = np.arange(1.0, num_exact + 1.0)
    weight = 1.0 / count
    if last > num_exact:
        half_width = 0.5 * np.log(last / num_exact)
        weight[-1] /= 2.0
        node = np.exp(np.log(num_exact) + half_width * (1.0 + nodes))
        count = np.concatenate([count, node])
        weight = np.concatenate([weight, half_width * weights])
    return count, weight
