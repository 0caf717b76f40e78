"""Least squares without negative coefficients, whatever the units of the columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headway.models.arrays import Array

_MOST_ROUNDS = 3


def nonnegative_least_squares(terms: Array, y: Array, weights: Array) -> Array:
    r"""Non-negative coefficients of a sum of terms, by weighted least squares.

    ``terms`` (n, k) has a column per coefficient, and ``y`` (n,) is what their sum should be. The
    weights of the squared residuals, 0 or more, need no normalisation. The coefficient of a column
    of zeros is 0.

    theory.md (E3); Lawson and Hanson (1974). Columns are scaled to one length, since counts of rows
    are mixed with ones.

    >>> terms = np.column_stack([np.ones(3), [0.0, 1e6, 2e6]])
    >>> nonnegative_least_squares(terms, np.array([1.0, 3.0, 5.0]), np.ones(3))
    array([1.0e+00, 2.0e-06])
    """
    root = np.sqrt(weights)
    weighted = terms * root[:, np.newaxis]
    scale = np.maximum(np.linalg.norm(weighted, axis=0), 1e-300)
    # As few rows as columns, with the same solution.
    directions, triangular = np.linalg.qr(weighted / scale)
    return np.asarray(_active_set(triangular, directions.T @ (y * root)) / scale)


def _active_set(terms: Array, y: Array) -> Array:
    """Free the coefficient that gains most, one by one; fix at 0 those that would be negative.

    Loading ``scipy.optimize`` for it takes longer than all fits of a profile.
    """
    num_terms = terms.shape[1]
    tolerance = 10 * max(terms.shape) * np.finfo(np.float64).eps * np.abs(terms).sum(axis=0).max()
    coefficients = np.zeros(num_terms)
    is_free = np.zeros(num_terms, dtype=bool)
    for _ in range(_MOST_ROUNDS * num_terms):
        gain = np.where(is_free, -np.inf, terms.T @ (y - terms @ coefficients))
        if gain.max() <= tolerance:
            break
        is_free[int(gain.argmax())] = True
        unconstrained = _least_squares(terms, y, is_free)
        while unconstrained[is_free].min(initial=0.0) < 0:
            falling = is_free & (unconstrained < 0)
            shares = np.full(num_terms, np.inf)
            shares[falling] = coefficients[falling] / (
                coefficients[falling] - unconstrained[falling]
            )
            coefficients += shares.min() * (unconstrained - coefficients)
            # Rounding must not leave the first one to reach 0 slightly off it.
            coefficients[shares == shares.min()] = 0.0
            is_free &= coefficients > tolerance
            unconstrained = _least_squares(terms, y, is_free)
        coefficients = unconstrained
    return coefficients


def _least_squares(terms: Array, y: Array, is_free: NDArray[np.bool_]) -> Array:
    coefficients = np.zeros(terms.shape[1])
    coefficients[is_free] = np.linalg.lstsq(terms[:, is_free], y, rcond=None)[0]
    return coefficients
