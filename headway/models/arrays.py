"""The two array types that the formulas speak in, and what a probability may be."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Numeric: TypeAlias = float | Array
# NumPy draws counts up to 2^63.
_MOST_DRAWN = 1e15


def poisson_counts(random: np.random.Generator, mean: Numeric, size: int | None = None) -> Array:
    """Counts of events drawn at random; of very many, whose spread is tiny, by the normal law.

    Parameters
    ----------
    mean : float or array, >= 0
    size : int, optional, how many to draw of a single mean

    Notes
    -----
    The Poisson law approaches the normal law of the same mean and variance: Feller, An Introduction
    to Probability Theory and Its Applications I, 3rd ed. (1968), section VII.5.

    >>> poisson_counts(np.random.default_rng(1), 4.0, 3)
    array([5., 3., 5.])
    >>> poisson_counts(np.random.default_rng(1), 1e30, 1)
    array([1.e+30])
    """
    means = np.broadcast_to(mean, np.shape(mean) if size is None else (size,))
    small_counts: Array = random.poisson(np.minimum(means, _MOST_DRAWN)).astype(np.float64)
    if np.all(means <= _MOST_DRAWN):
        return small_counts
    large_counts = means + np.sqrt(means) * random.standard_normal(means.shape)
    counts: Array = np.where(means <= _MOST_DRAWN, small_counts, np.rint(large_counts))
    return counts


def any_probability(q: Numeric) -> Array:
    """Probabilities as an array; ``ValueError`` outside of 0..1.

    Parameters
    ----------
    q : float or array, 0 to 1

    >>> float(any_probability(1.0))
    1.0
    """
    probability = np.asarray(q, dtype=np.float64)
    if not (np.all(probability >= 0.0) and np.all(probability <= 1.0)):
        raise ValueError("q must lie in 0..1")
    return probability


def open_probability(q: Numeric) -> Array:
    """Probabilities as an array; ``ValueError`` for 0 and 1 too, which have no finite quantile.

    Parameters
    ----------
    q : float or array, 0 < q < 1

    >>> float(open_probability(0.5))
    0.5
    """
    probability = np.asarray(q, dtype=np.float64)
    if not (np.all(probability > 0.0) and np.all(probability < 1.0)):
        raise ValueError("q must lie strictly between 0 and 1")
    return probability
