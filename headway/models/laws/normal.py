"""The normal distribution without scipy, which takes longer to load than a plan to compute.

The C library's ``erfc`` is accurate to the last digits. The search, which needs millions of values
in pieces, uses a table.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from headway.models.arrays import Array, Numeric

try:
    # Without what `statistics` brings along: random numbers, fractions and decimals.
    from _statistics import _normal_dist_inv_cdf  # type: ignore[import-not-found]
except ImportError:
    # It is not public, so another Python may lack it.
    from statistics import NormalDist

    def _normal_dist_inv_cdf(prob: float, mean: float, sd: float) -> float:
        return NormalDist(mean, sd).inv_cdf(prob)


#: Standard deviation of normal values over their median absolute deviation.
MAD_TO_SD = 1.4826
_HUNDREDS = 200
_PER_UNIT, _FARTHEST = 256, 9  # nodes of the table per unit of the score, and its end
_MOST_TOGETHER = 8192  # scores whose intermediate values fit the cache of a core
_HALF_ROOT = math.sqrt(0.5)
_erfc = np.frompyfunc(math.erfc, 1, 1)


def ndtr(score: Numeric) -> Array:
    """Probability that a standard normal variable is at most ``score`` (D2).

    Parameters
    ----------
    score : float or (n,) array, may be infinite

    >>> float(ndtr(0.0)), float(ndtr(np.array([1.6448536])[0]))
    (0.5, 0.95)
    """
    scores = np.asarray(score, dtype=np.float64)
    return 0.5 * np.asarray(_erfc(-_HALF_ROOT * scores), dtype=np.float64)


def quick_ndtr(score: Array) -> Array:
    """`ndtr` (D2) within 4e-16: hundreds of scores from a table, in a tenth of the time.

    The Taylor series at the nearest 256th, up to the fourth power. The relative accuracy is ten
    digits, so that tails down to 1e-19 keep their shape.

    Parameters
    ----------
    score : (n,) array, may be infinite; beyond 9 on either side it may be taken as 9

    >>> float(quick_ndtr(np.array(0.0))), float(quick_ndtr(np.full(1000, 1.6448536))[0])
    (0.5, 0.95)
    """
    if score.size < _HUNDREDS:
        return ndtr(score)
    scores = np.ascontiguousarray(score, dtype=np.float64)
    shares = np.empty_like(scores)
    of_scores, of_shares = scores.reshape(-1), shares.reshape(-1)
    num_together = min(_MOST_TOGETHER, len(of_scores))
    buffers = np.empty((6, num_together))
    index = np.empty(num_together, dtype=np.intp)
    for begin in range(0, len(of_scores), num_together):
        block = slice(begin, min(begin + num_together, len(of_scores)))
        size = block.stop - begin
        _from_table(of_scores[block], of_shares[block], buffers[:, :size], index[:size])
    return shares


def _from_table(scores: Array, shares: Array, buffers: Array, index: NDArray[np.intp]) -> None:
    """Put the shares of some scores into their place, without further memory."""
    values, densities = _table()
    scaled, node, bend, square, series, term = buffers
    np.clip(scores, -_FARTHEST, _FARTHEST, out=scaled)
    scaled *= _PER_UNIT
    np.rint(scaled, out=node)
    index[...] = node
    index += _FARTHEST * _PER_UNIT
    step = np.subtract(scaled, node, out=scaled)
    step *= 1.0 / _PER_UNIT
    node *= 1.0 / _PER_UNIT
    # The derivatives of the density over itself are Hermite polynomials of the node.
    np.multiply(node, step, out=bend)
    np.multiply(step, step, out=square)
    np.divide(bend, 24.0, out=term)
    np.subtract(1.0 / 6.0, term, out=term)
    term *= bend
    term -= 0.5
    np.multiply(bend, term, out=series)
    series += 1.0
    np.multiply(bend, 0.125, out=term)
    term -= 1.0 / 6.0
    term *= square
    series += term
    series *= step
    # All indices are within the table; with this mode there is no copy of the result.
    densities.take(index, out=term, mode="clip")
    term *= series
    values.take(index, out=shares, mode="clip")
    shares += term


@cache
def _table() -> tuple[Array, Array]:
    nodes = np.arange(-_FARTHEST * _PER_UNIT, _FARTHEST * _PER_UNIT + 1) / _PER_UNIT
    return ndtr(nodes), np.exp(-0.5 * nodes * nodes) / math.sqrt(2.0 * math.pi)


def log_ndtr(score: Numeric) -> Array:
    """Logarithm of `ndtr` (D2); ``-inf`` below a score of -38, a probability below 1e-308.

    >>> round(float(log_ndtr(8.0)) * 1e16, 2)
    -6.22
    """
    scores = np.asarray(score, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.where(scores > 0, np.log1p(-ndtr(-scores)), np.log(ndtr(scores)))


def ndtri(prob: Numeric) -> Array:
    """Score that a standard normal variable stays below with probability ``prob`` (D2).

    Parameters
    ----------
    prob : float or (n,) array, 0 to 1; 0 and 1 give the infinities

    >>> round(float(ndtri(0.95)), 5)
    1.64485
    """
    probs = np.asarray(prob, dtype=np.float64)
    return np.asarray(_inverse(probs), dtype=np.float64)


def _inverse_of_one(prob: float) -> float:
    if 0.0 < prob < 1.0:
        return float(_normal_dist_inv_cdf(prob, 0.0, 1.0))
    return {0.0: -math.inf, 1.0: math.inf}.get(prob, math.nan)


_inverse = np.frompyfunc(_inverse_of_one, 1, 1)
