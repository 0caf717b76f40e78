"""Synthetic batches with known parameters."""

from __future__ import annotations

import numpy as np

from headway.models.arrays import Array

FIXED_S, PER_ROW_S = 2.0, 3e-4


def lognormal(random: np.random.Generator, cv: float, shape: int | tuple[int, ...]) -> Array:
    """Factors of mean 1."""
    return from_scores(random.standard_normal(shape), cv)


def from_scores(score: Array, cv: float) -> Array:
    """Factors of mean 1 from normal scores."""
    log_variance = np.log1p(cv * cv)
    return np.asarray(np.exp(np.sqrt(log_variance) * score - 0.5 * log_variance))


def correlated_scores(
    random: np.random.Generator, correlation: float, shape: tuple[int, ...]
) -> Array:
    """Stationary normal scores of variance 1 along the last axis."""
    values = random.standard_normal(shape)
    for place in range(1, shape[-1]):
        fresh = np.sqrt(1 - correlation**2) * values[..., place]
        values[..., place] = correlation * values[..., place - 1] + fresh
    return values


def two_loads(num_batches: int) -> Array:
    """Half of the batches at each load, one load after the other."""
    return np.repeat([5e3, 1.5e4], num_batches // 2)


def mean_s(num_rows: Array) -> Array:
    return FIXED_S + PER_ROW_S * num_rows
