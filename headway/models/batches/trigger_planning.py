"""Closed forms for a query with little noise: triggers, rates, and free running."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headway.models.arrays import Array, Numeric


class FreerunMoments(NamedTuple):
    """Batches that follow each other without waiting; inf where a moment does not exist."""

    mean_duration_s: Array
    sd_duration_s: Array
    mean_latency_s: Array
    sd_latency_s: Array


def freerun_moments(
    fixed_s: Numeric, inflation_ratio: Numeric, relative_noise: Numeric
) -> FreerunMoments:
    r"""Batch duration and row latency of a query that never waits for a trigger.

    Parameters
    ----------
    fixed_s : float or (n,) array, > 0
        Duration of a batch without rows. [s]
    inflation_ratio : float or (n,) array, >= 0
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
            for value in (fixed_s, inflation_ratio, relative_noise)
        )
    )
    if not (np.all(a > 0.0) and np.all(r >= 0.0) and np.all(c >= 0.0)):
        raise ValueError("need fixed_s > 0, inflation_ratio >= 0 and relative_noise >= 0")
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


def smallest_useful_trigger_s(fixed_s: Numeric, inflation_ratio: Numeric) -> Array:
    r"""Trigger interval below which batches run without a pause, whatever the setting.

    Parameters
    ----------
    fixed_s : float or (n,) array, > 0
        Duration of a batch without rows. [s]
    inflation_ratio : float or (n,) array, >= 0
        Seconds of work that one second of input brings. [-]

    Returns
    -------
    array
        Inputs broadcast [s]; ``inf`` from ratio 1 on.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (B9), without noise.

    Examples
    --------
    >>> float(smallest_useful_trigger_s(2.0, 0.45))
    3.636
    """
    fixed = np.asarray(fixed_s, dtype=np.float64)
    ratio = np.asarray(inflation_ratio, dtype=np.float64)
    if not (np.all(fixed > 0.0) and np.all(ratio >= 0.0)):
        raise ValueError("need fixed_s > 0 and inflation_ratio >= 0")
    return _geometric(fixed, ratio)


def highest_rate_noise_free_per_s(
    limit_s: Numeric, q: Numeric, fixed_s: Numeric, per_row_s: Numeric
) -> Array:
    r"""Highest input rate that keeps a quantile of the latency within a limit.

    Parameters
    ----------
    limit_s : float or (n,) array, > 0
        Limit of the latency. [s]
    q : float or (n,) array, 0 to 1
        Share of rows that must keep to it. [-]
    fixed_s : float or (n,) array, > 0
        Duration of a batch without rows. [s]
    per_row_s : float or (n,) array, > 0
        Additional time per row. [s/row]

    Returns
    -------
    array
        Inputs broadcast [rows/s]; 0 where no rate meets the limit. It is reached at the trigger
        interval ``limit_s / (1 + q)``.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (B10). Noise costs about 2, 6 and 14 % of it at a relative noise of 0.05, 0.1, 0.2.

    Examples
    --------
    >>> float(highest_rate_noise_free_per_s(10.0, 0.99, 1.0, 1e-3))
    801.0
    """
    limit, share = _limit_and_share(limit_s, q)
    fixed = np.asarray(fixed_s, dtype=np.float64)
    per_row = np.asarray(per_row_s, dtype=np.float64)
    if not (np.all(fixed > 0.0) and np.all(per_row > 0.0)):
        raise ValueError("need fixed_s > 0 and per_row_s > 0")
    return np.maximum((1.0 - (1.0 + share) * fixed / limit) / per_row, 0.0)


def longest_trigger_noise_free_s(
    limit_s: Numeric, q: Numeric, fixed_s: Numeric, inflation_ratio: Numeric
) -> Array:
    r"""Longest trigger interval that keeps a quantile of the latency within a limit.

    Parameters
    ----------
    limit_s : float or (n,) array, > 0
        Limit of the latency. [s]
    q : float or (n,) array, 0 to 1
        Share of rows that must keep to it. [-]
    fixed_s : float or (n,) array, > 0
        Duration of a batch without rows. [s]
    inflation_ratio : float or (n,) array, >= 0
        Seconds of work that one second of input brings. [-]

    Returns
    -------
    array
        Inputs broadcast [s]; 0 where even trigger 0 misses the limit.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (B11). The longest is the cheapest: fewest fixed costs per second.

    Examples
    --------
    >>> float(longest_trigger_noise_free_s(10.0, 0.99, 2.0, 0.3))
    6.20
    """
    limit, share = _limit_and_share(limit_s, q)
    ratio = np.asarray(inflation_ratio, dtype=np.float64)
    shortest = smallest_useful_trigger_s(fixed_s, ratio)
    weight = share + ratio
    # At q = 0 without rows the wait costs nothing, and no interval is too long.
    room = limit - np.asarray(fixed_s, dtype=np.float64)
    longest = np.where(weight > 0.0, room / np.where(weight > 0.0, weight, 1.0), np.inf)
    return np.where((longest >= shortest) & (room > 0.0) & (ratio < 1.0), longest, 0.0)


def _limit_and_share(limit_s: Numeric, q: Numeric) -> tuple[Array, Array]:
    limit = np.asarray(limit_s, dtype=np.float64)
    share = np.asarray(q, dtype=np.float64)
    if not (np.all(limit > 0.0) and np.all(share >= 0.0) and np.all(share <= 1.0)):
        raise ValueError("need limit_s > 0 and q in 0..1")
    return limit, share


def _geometric(first: Array, ratio: Array) -> Array:
    """Sum of a geometric series; inf where it diverges."""
    converges = ratio < 1.0
    return np.where(converges, first / np.where(converges, 1.0 - ratio, 1.0), np.inf)
