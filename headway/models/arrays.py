"""The two array types that the formulas speak in, and what a probability may be."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Numeric: TypeAlias = float | Array


def any_probability(q: Numeric) -> Array:
    """Probabilities as an array; ``ValueError`` outside of 0..1."""
    probability = np.asarray(q, dtype=np.float64)
    if not (np.all(probability >= 0.0) and np.all(probability <= 1.0)):
        raise ValueError("q must lie in 0..1")
    return probability


def open_probability(q: Numeric) -> Array:
    """Probabilities as an array; ``ValueError`` for 0 and 1 too, which have no finite quantile."""
    probability = np.asarray(q, dtype=np.float64)
    if not (np.all(probability > 0.0) and np.all(probability < 1.0)):
        raise ValueError("q must lie strictly between 0 and 1")
    return probability
