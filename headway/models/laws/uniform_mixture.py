"""Mixtures of uniform distributions: latencies of rows that arrive evenly, for given batches."""

from __future__ import annotations

import numpy as np

from headway.few_numbers import distinct
from headway.models.arrays import Array, Numeric, any_probability


def uniform_mixture_quantile(q: Numeric, low: Array, high: Array, weight: Array) -> Array:
    r"""Exact quantile of a mixture of uniform distributions.

    The smallest value whose distribution function reaches ``q``.

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
