"""The increment of a queue from one arrival to the next, and its cumulants."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headway.models.arrays import Array, Numeric


class Increment(NamedTuple):
    """Cumulants of service minus inter-arrival time: mean [s], variance [s^2], third [s^3]."""

    mean_s: Array
    variance_s2: Array
    third_central_s3: Array


def lognormal_third_central_s3(mean_s: Numeric, cv: Numeric) -> Array:
    r"""Third central moment of a lognormal time (Q7).

    Parameters
    ----------
    mean_s : float or (n,) array, > 0
    cv : float or (n,) array, >= 0

    Examples
    --------
    >>> float(lognormal_third_central_s3(9.0, 0.1))
    0.2194
    """
    mean, variation = _mean_and_cv(mean_s, cv)
    return mean**3 * variation**4 * (3.0 + variation * variation)


def gamma_third_central_s3(mean_s: Numeric, cv: Numeric) -> Array:
    r"""Third central moment of a gamma time of mean > 0 and cv >= 0; exponential for cv 1 (Q7).

    Examples
    --------
    >>> float(gamma_third_central_s3(1.0, 1.0))
    2.0
    """
    mean, variation = _mean_and_cv(mean_s, cv)
    return 2.0 * mean**3 * variation**4


def queue_increment(
    interarrival_s: Numeric,
    interarrival_variance_s2: Numeric,
    interarrival_third_central_s3: Numeric,
    service_s: Numeric,
    service_variance_s2: Numeric,
    service_third_central_s3: Numeric,
) -> Increment:
    r"""Cumulants of service minus inter-arrival time, which are independent.

    Means are above 0, and variances 0 or more.

    Notes
    -----
    **(Q7)** The increment `U = S - A` has mean `-m`, variance `κ_2 = Var S + Var A` and third
    cumulant `κ_3 = μ_3(S) - μ_3(A)`. Further, `β = m/sqrt(κ_2)` and `g = κ_3/κ_2^(3/2)`. The third
    central moment is `μ_3 = E^3(3c^4+c^6)` for a lognormal, `2E^3 c^4` for a gamma, and 0 for a
    clock.

    Examples
    --------
    >>> [float(value) for value in queue_increment(1.0, 1.0, 2.0, 0.8, 0.16, 0.0)]
    [-0.20, 1.16, -2.00]
    """
    times = [np.asarray(value, dtype=np.float64) for value in (interarrival_s, service_s)]
    variances = [
        np.asarray(value, dtype=np.float64)
        for value in (interarrival_variance_s2, service_variance_s2)
    ]
    if not all(np.all(time > 0.0) for time in times):
        raise ValueError("interarrival_s and service_s must be positive")
    if not all(np.all(variance >= 0.0) for variance in variances):
        raise ValueError("variances must be non-negative")
    return Increment(
        times[1] - times[0],
        variances[0] + variances[1],
        np.asarray(service_third_central_s3, dtype=np.float64) - interarrival_third_central_s3,
    )


def clocked_increment(
    period_s: Numeric,
    service_s: Numeric,
    service_variance_s2: Numeric,
    service_third_central_s3: Numeric,
    bulk_size: Numeric = 1.0,
) -> Increment:
    r"""Cumulants of the increment of a queue that is fed by a clock, with one bulk per tick (Q7).

    Parameters
    ----------
    period_s : float or (n,) array, > 0
        Time between ticks. [s]
    service_s, service_variance_s2, service_third_central_s3 : float or (n,) array
        Of one job: mean > 0, variance >= 0, and third central moment.
    bulk_size : float or (n,) array, >= 1
        Jobs per tick, the same at each. [-]

    Examples
    --------
    >>> [float(value) for value in clocked_increment(10.0, 2.0, 0.3, 0.1, bulk_size=4)]
    [-2.0, 1.2, 0.4]
    """
    size = np.asarray(bulk_size, dtype=np.float64)
    if not np.all(size >= 1.0):
        raise ValueError("bulk_size must be at least 1")
    return queue_increment(
        period_s,
        0.0,
        0.0,
        size * np.asarray(service_s),
        size * np.asarray(service_variance_s2),
        size * np.asarray(service_third_central_s3),
    )


def _mean_and_cv(mean_s: Numeric, cv: Numeric) -> tuple[Array, Array]:
    mean = np.asarray(mean_s, dtype=np.float64)
    variation = np.asarray(cv, dtype=np.float64)
    if not (np.all(mean > 0.0) and np.all(variation >= 0.0)):
        raise ValueError("mean_s must be positive and cv non-negative")
    return mean, variation
