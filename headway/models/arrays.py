"""The two array types that the formulas speak in, and what a probability may be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Numeric: TypeAlias = float | Array
# NumPy draws counts up to 2^63.
_MOST_DRAWN = 1e15


def together(*values: Numeric) -> list[Array]:
    """Numbers and arrays in their common shape; they may share memory, so that none is written to.

    As ``numpy.broadcast_arrays``, in a fraction of the time for a few numbers beside arrays.

    Examples
    --------
    >>> together(1.0, np.array([2.0, 3.0]))
    [array([1., 1.]), array([2., 3.])]
    """
    arrays = [np.asarray(value, dtype=np.float64) for value in values]
    shapes = {array.shape for array in arrays}
    if len(shapes) == 1:
        return arrays
    shapes.discard(())
    (shape,) = shapes if len(shapes) == 1 else (np.broadcast_shapes(*shapes),)
    return [array if array.shape == shape else _filled(array, shape) for array in arrays]


def _filled(array: Array, shape: tuple[int, ...]) -> Array:
    filled = np.empty(shape)
    filled[...] = array
    return filled


def is_true_of_all(condition: object) -> bool:
    """Whether a comparison holds, of numbers or of every entry of arrays.

    Examples
    --------
    >>> is_true_of_all(2.0 > 1.0), is_true_of_all(np.array([2.0, 0.5]) > 1.0)
    (True, False)
    """
    return bool(condition.all()) if isinstance(condition, np.ndarray) else bool(condition)


def median_of(values: Array | Sequence[float]) -> float:
    """The median of numbers in a row, as `numpy.median`, which loads masked arrays.

    Examples
    --------
    >>> median_of(np.array([4.0, 1.0, 3.0])), median_of(np.array([4.0, 1.0]))
    (3.0, 2.5)
    """
    ordered, middle = np.sort(values), len(values) // 2
    # What is not a number comes last.
    if not len(values) or np.isnan(ordered[-1]):
        return math.nan
    if len(values) % 2:
        return float(ordered[middle])
    return (float(ordered[middle - 1]) + float(ordered[middle])) / 2.0


def quantiles_of(values: NDArray[Any], shares: Array) -> Array:
    """Quantiles of finite numbers in a row, as `numpy.quantile`.

    Examples
    --------
    >>> quantiles_of(np.array([4.0, 1.0, 3.0]), np.array([0.5, 0.75]))
    array([3. , 3.5])
    """
    ordered, last = np.sort(values).astype(np.float64), len(values) - 1
    at = last * shares
    before = np.floor(at)
    index, part = before.astype(np.intp), at - before
    low, high = ordered[np.minimum(index, last)], ordered[np.minimum(index + 1, last)]
    return np.where(part >= 0.5, high - (high - low) * (1.0 - part), low + (high - low) * part)


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """The different ones of some numbers in a row, as `numpy.unique`, which loads masked arrays.

    Examples
    --------
    >>> distinct(np.array([3, 1, 3]))
    array([1, 3])
    """
    ordered = np.sort(values)
    is_first = np.ones(len(ordered), dtype=np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_first]


def poisson_counts(random: np.random.Generator, mean: Numeric, size: int | None = None) -> Array:
    """Counts of events drawn at random; of very many, whose spread is tiny, by the normal law.

    Parameters
    ----------
    mean : float or array, >= 0
    size : int, optional
        How many to draw of a single mean.

    Notes
    -----
    The Poisson law approaches the normal law of the same mean and variance: Feller, An Introduction
    to Probability Theory and Its Applications I, 3rd ed. (1968), section VII.5.

    Examples
    --------
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

    Examples
    --------
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

    Examples
    --------
    >>> float(open_probability(0.5))
    0.5
    """
    probability = np.asarray(q, dtype=np.float64)
    if not (np.all(probability > 0.0) and np.all(probability < 1.0)):
        raise ValueError("q must lie strictly between 0 and 1")
    return probability
