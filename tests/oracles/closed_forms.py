"""Closed forms of special cases, exact: what a law must come to there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headway.models.arrays import Array, Numeric, open_probability
from headway.models.laws.distributions import (
    bisect_increasing,
    lognormal_quantile,
    uniform_plus_lognormal_cdf,
)


class FreerunMoments(NamedTuple):
    """Batches that follow each other without waiting; inf where a moment does not exist."""

    mean_duration_s: Array
    sd_duration_s: Array
    mean_latency_s: Array
    sd_latency_s: Array


def freerun_moments(
    fixed_s: Numeric, offered_load_ratio: Numeric, relative_noise: Numeric
) -> FreerunMoments:
    r"""Batch duration and row latency of a query that never waits for a trigger.

    Parameters
    ----------
    fixed_s : float or (n,) array, > 0
        Duration of a batch without rows. [s]
    offered_load_ratio : float or (n,) array, >= 0
        Seconds of work that one second of input brings. [-]
    relative_noise : float or (n,) array, >= 0
        Standard deviation in proportion to the duration, lognormal. [-]

    Returns
    -------
    FreerunMoments
        Inputs broadcast [s]; ``inf`` where a moment does not exist.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (B8). Exact in its moments; independent noise from batch to batch.

    Examples
    --------
    >>> [round(float(value), 4) for value in freerun_moments(2.0, 0.45, 0.1)]
    [3.6364, 0.4077, 5.4980, 1.1968]
    """
    a, r, c = np.broadcast_arrays(
        *(
            np.asarray(value, dtype=np.float64)
            for value in (fixed_s, offered_load_ratio, relative_noise)
        )
    )
    if not (np.all(a > 0.0) and np.all(r >= 0.0) and np.all(c >= 0.0)):
        raise ValueError("need fixed_s > 0, offered_load_ratio >= 0 and relative_noise >= 0")
    square, cube = 1.0 + c * c, (1.0 + c * c) ** 3  # moments of the noise factor
    first = _geometric(a, r)
    second = _geometric(square * (a * a + 2.0 * a * r * first), r * r * square)
    # With an infinite variance the difference below would be inf - inf or inf * 0.
    finite = np.isfinite(second)
    first_f, second_f = np.where(finite, first, 1.0), np.where(finite, second, 1.0)
    variance = np.where(finite, second_f - first_f**2, np.inf)
    third = _geometric(
        cube * (a**3 + 3.0 * a * a * r * first_f + 3.0 * a * r * r * second_f), r**3 * cube
    )
    has_third = finite & np.isfinite(third)
    third_f = np.where(has_third, third, 1.0)
    with_next = a * first_f + r * second_f
    latency = np.where(finite, (second_f / 2.0 + with_next) / first_f, np.inf)
    latency_square = (
        third_f / 3.0
        + a * second_f
        + r * third_f
        + square * (a * a * first_f + 2.0 * a * r * second_f + r * r * third_f)
    ) / first_f
    latency_variance = latency_square - np.where(has_third, latency, 0.0) ** 2
    return FreerunMoments(
        first,
        np.sqrt(np.maximum(variance, 0.0)),
        latency,
        np.where(has_third, np.sqrt(np.maximum(latency_variance, 0.0)), np.inf),
    )


def uniform_plus_lognormal_quantile(
    q: Numeric, interval_s: Numeric, mean_s: Numeric, sd_s: Numeric
) -> Array:
    r"""Quantile of a uniform wait plus an independent lognormal duration.

    Parameters
    ----------
    q : float or (n,) array, 0 < q < 1
        Probability. [-]
    interval_s : float or (n,) array, >= 0
        Length of the uniform wait. [s]
    mean_s : float or (n,) array, > 0
        Mean duration. [s]
    sd_s : float or (n,) array, >= 0
        Standard deviation of the duration; 0 is a constant. [s]

    Returns
    -------
    array
        Inputs broadcast. [s]

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (D4), inverted by bisection.

    Examples
    --------
    >>> float(uniform_plus_lognormal_quantile(0.99, 10.0, 5.0, 1.0))
    16.0303
    """
    probability = open_probability(q)
    interval, mean = np.asarray(interval_s, dtype=np.float64), np.asarray(mean_s, dtype=np.float64)
    sd = np.asarray(sd_s, dtype=np.float64)
    own_quantile = lognormal_quantile(probability, mean, sd / mean)
    return bisect_increasing(
        lambda x: uniform_plus_lognormal_cdf(x, interval, mean, sd),
        probability,
        np.zeros_like(own_quantile),
        own_quantile * (1.0 + 1e-8) + interval,
    )


def _geometric(first: Array, ratio: Array) -> Array:
    """Sum of a geometric series; inf where it diverges."""
    converges = ratio < 1.0
    return np.where(converges, first / np.where(converges, 1.0 - ratio, 1.0), np.inf)
