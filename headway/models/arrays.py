"""The two array types that the formulas speak in, and what a probability may be."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Numeric: TypeAlias = float | Array


def any_probability(q: Numeric) -> Array:
    """Probabilities as an array; ``ValueError`` outside of 0..1.

    Parameters
    ----------
    q : float or array, 0 to 1
        Probability. [-]

    Returns
    -------
    array
        Of the shape of ``q``.

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
        Probability. [-]

    Returns
    -------
    array
        Of the shape of ``q``.

    Examples
    --------
    >>> float(open_probability(0.5))
    0.5
    """
    probability = np.asarray(q, dtype=np.float64)
    if not (np.all(probability > 0.0) and np.all(probability < 1.0)):
        raise ValueError("q must lie strictly between 0 and 1")
    return probability
