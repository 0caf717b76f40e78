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
from headway.models.laws.normal import ndtr
from headway.models.scheduling.stagger import common_period_s


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


def uniform_mixture_cdf(x: Numeric, low: Array, high: Array, weight: Array) -> Array:
    """Distribution function of theory.md (D5): parts of equal ends are atoms.

    Examples
    --------
    >>> parts = np.array([0.0, 3.0]), np.array([2.0, 3.0]), np.array([1.0, 1.0])
    >>> uniform_mixture_cdf(np.array([1.0, 2.9, 3.0]), *parts)
    array([0.25, 0.5 , 1. ])
    """
    point, width = np.asarray(x, dtype=np.float64)[..., np.newaxis], high - low
    fraction = np.clip((point - low) / np.where(width > 0.0, width, 1.0), 0.0, 1.0)
    below: Array = np.where(width > 0.0, fraction, point >= low) @ (weight / weight.sum())
    return np.minimum(below, 1.0)


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


def max_load_bound(top_share: Numeric, shuffle_partitions: Numeric) -> Array:
    r"""Least mean load of the fullest partition, from the most frequent key alone.

    Parameters
    ----------
    top_share : float or array, 0 to 1
        Share of the rows that the most frequent key has. [-]
    shuffle_partitions : float or array, >= 1
        Shuffle partitions. [-]

    Returns
    -------
    array
        Inputs broadcast, share of all rows. [-]

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    **(K4)** `E[max] ≥ p_1 + (1-p_1)/P`, the mean load of the partition that holds the top key.
    Exact as a bound; within 3% if `Pp_1 ≥ 2`.

    Examples
    --------
    >>> float(max_load_bound(0.05, 200))
    0.05475
    """
    share, number = np.asarray(top_share, dtype=np.float64), np.asarray(shuffle_partitions)
    if not (np.all(share >= 0.0) and np.all(share <= 1.0) and np.all(number >= 1)):
        raise ValueError("need top_share in 0..1 and shuffle_partitions >= 1")
    bound: Array = share + (1.0 - share) / number
    return bound


def gaussian_shares(sigma: float, num_buckets: int) -> Array:
    r"""Shares of equal ranges of keys that are normal, cut to -1..1.

    Parameters
    ----------
    sigma : float, > 0
        Standard deviation before the cut; ``inf`` for even shares. [-]
    num_buckets : int, >= 1
        Ranges. [-]

    Returns
    -------
    (num_buckets,) array
        Shares. [-]

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    Prasaad, Ramalingam and Rajan (2018), section 7.2.1: how the skew of figure 9 is made.

    Examples
    --------
    >>> gaussian_shares(0.5, 4)
    array([0.143, 0.357, 0.357, 0.143])
    """
    if not sigma > 0.0 or num_buckets < 1:
        raise ValueError("need sigma > 0 and num_buckets >= 1")
    if np.isinf(sigma):
        return np.full(num_buckets, 1.0 / num_buckets)
    parts = np.diff(ndtr(np.linspace(-1.0, 1.0, num_buckets + 1) / sigma))
    shares: Array = parts / parts.sum()
    return shares


def never_collide(
    period_a_s: float,
    duration_a_s: float,
    offset_a_s: float,
    period_b_s: float,
    duration_b_s: float,
    offset_b_s: float,
) -> bool:
    r"""Whether two periodic batches never run at the same time.

    Parameters
    ----------
    period_a_s, period_b_s : float, > 0
        Trigger intervals, in whole milliseconds. [s]
    duration_a_s, duration_b_s : float, > 0
        Batch durations. [s]
    offset_a_s, offset_b_s : float
        A start of each. [s]

    Returns
    -------
    bool
        Whether they never overlap.

    Notes
    -----
    theory.md (G6); Korst, Aarts and Lenstra (1991): with G the greatest common divisor of the
    periods, iff `d_a ≤ (φ_b-φ_a) mod G ≤ G - d_b`.

    Examples
    --------
    >>> never_collide(4.0, 1.0, 0.0, 6.0, 1.0, 1.0), never_collide(4.0, 1.2, 0.0, 6.0, 0.9, 1.0)
    (True, False)
    """
    common_s = common_period_s([period_a_s, period_b_s])
    between_s = (offset_b_s - offset_a_s) % common_s
    return duration_a_s <= between_s + 1e-9 and between_s <= common_s - duration_b_s + 1e-9


def can_be_apart(
    period_a_s: float, duration_a_s: float, period_b_s: float, duration_b_s: float
) -> bool:
    r"""Whether some offset keeps two periodic batches from ever running at the same time.

    Parameters
    ----------
    period_a_s, period_b_s : float, > 0
        Trigger intervals, in whole milliseconds. [s]
    duration_a_s, duration_b_s : float, > 0
        Batch durations. [s]

    Returns
    -------
    bool
        Whether there is one.

    Notes
    -----
    theory.md (G6); Korst, Aarts and Lenstra (1991): iff `d_a + d_b ≤ G`.

    Examples
    --------
    >>> can_be_apart(4.0, 1.0, 6.0, 1.0), can_be_apart(4.0, 1.2, 6.0, 0.9)
    (True, False)
    """
    return duration_a_s + duration_b_s <= common_period_s([period_a_s, period_b_s]) + 1e-9


def goodput_per_s(
    rate_per_s: Numeric,
    interval_s: Numeric,
    fixed_s: Numeric,
    cost_s: Numeric,
    shed_cost_s: Numeric,
) -> Numeric:
    r"""Rows kept per second when a query sheds what it cannot carry.

    Parameters
    ----------
    rate_per_s : float or array, >= 0
        Input rate. [rows/s]
    interval_s : float or array, > 0
        Time between two batches. [s]
    fixed_s : float or array, >= 0
        Time of a batch without rows. [s]
    cost_s : float or array, > 0
        Time that a kept row adds. [s]
    shed_cost_s : float or array, >= 0
        Time that a shed row adds. [s]

    Returns
    -------
    float or array
        Kept rows per second, at most the input rate; 0 where shedding alone is too much. [rows/s]

    Notes
    -----
    theory.md (G3); after VLDB'15, section 4: ``(1 - a/T - r c_s) / (c - c_s)``.

    Examples
    --------
    >>> [round(float(goodput_per_s(r, 1.0, 0.2, 5e-6, 1e-6))) for r in (1e5, 2e5, 4e5, 9e5)]
    [100000, 150000, 100000, 0]
    """
    rate = np.asarray(rate_per_s, dtype=np.float64)
    share = 1.0 - np.asarray(fixed_s) / interval_s - rate * shed_cost_s
    return np.minimum(rate, np.maximum(share / (np.asarray(cost_s) - shed_cost_s), 0.0))


def share_in_time(load_ratio: Numeric, cheap_share: Numeric, cheap_load_ratio: Numeric) -> Numeric:
    r"""Share of tuples in time under steady overload, cheap ones before dear ones.

    Parameters
    ----------
    load_ratio : float or array, > 0
        Work that arrives in a second. [-]
    cheap_share : float or array, 0..1
        Share of tuples that are cheap. [-]
    cheap_load_ratio : float or array, >= 0
        Part of the load that they make, below 1. [-]

    Returns
    -------
    float or array
        Share of tuples in time. [-]

    Notes
    -----
    theory.md (G3); fluid limit of VLDB'15, Algorithm 1: ``m + (1 - r m c_m) / (r c_d)``. Blind to
    costs it is ``min(1, 1/load)``.

    Examples
    --------
    >>> round(float(share_in_time(1.44, 0.8, 0.64)), 3)
    0.89
    """
    load = np.asarray(load_ratio, dtype=np.float64)
    dear = load - cheap_load_ratio
    kept = np.asarray((1.0 - np.asarray(cheap_load_ratio)) / np.maximum(dear, 1e-300))
    return cheap_share + (1.0 - np.asarray(cheap_share)) * np.clip(kept, 0.0, 1.0)


def _geometric(first: Array, ratio: Array) -> Array:
    """Sum of a geometric series; inf where it diverges."""
    converges = ratio < 1.0
    return np.where(converges, first / np.where(converges, 1.0 - ratio, 1.0), np.inf)
