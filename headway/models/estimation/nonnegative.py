"""Least squares without negative coefficients, whatever the units of the columns."""

from __future__ import annotations

import numpy as np

from headway.models.arrays import Array


def nonnegative_least_squares(terms: Array, y: Array, weights: Array) -> Array:
    r"""Coefficients of a sum of terms, none negative, least in weighted squares.

    Parameters
    ----------
    terms : (n, k) array
        One column per coefficient.
    y : (n,) array
        What the sum of terms should come to.
    weights : (n,) array, >= 0
        Of each squared residual; they need no normalisation.

    Returns
    -------
    (k,) array
        Coefficients; 0 for a column of zeros.

    Notes
    -----
    theory.md (E3); Lawson and Hanson (1974). Columns are scaled to one length: counts of rows
    stand beside ones.

    Examples
    --------
    >>> terms = np.column_stack([np.ones(3), [0.0, 1e6, 2e6]])
    >>> nonnegative_least_squares(terms, np.array([1.0, 3.0, 5.0]), np.ones(3))
    array([1.0e+00, 2.0e-06])
    """
    # Planning and predicting come through this room without fitting anything.
    from scipy.optimize import nnls

    root = np.sqrt(weights)
    weighted = terms * root[:, np.newaxis]
    scale = np.maximum(np.linalg.norm(weighted, axis=0), 1e-300)
    solution, _ = nnls(weighted / scale, y * root)
    return np.asarray(solution / scale)
