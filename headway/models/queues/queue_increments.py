"""What a queue gains from one arrival to the next, and identities on that increment."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headway.models.arrays import Array, Numeric
from headway.models.queues.queueing import WaitMoments


class Increment(NamedTuple):
    """Cumulants of service minus inter-arrival time: mean [s], variance [s^2], third [s^3]."""

    mean_s: Array
    variance_s2: Array
    third_central_s3: Array


def lognormal_third_central_s3(mean_s: Numeric, cv: Numeric) -> Array:
    r"""Third central moment of a lognormal time.

    Parameters
    ----------
    mean_s : float or (n,) array, > 0
        Mean. [s]
    cv : float or (n,) array, >= 0
        Coefficient of variation. [-]

    Returns
    -------
    array
        Inputs broadcast. [s^3]

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (Q7).

    Examples
    --------
    >>> float(lognormal_third_central_s3(9.0, 0.1))
    0.2194
    """
    mean, variation = _mean_and_cv(mean_s, cv)
    return mean**3 * variation**4 * (3.0 + variation * variation)


def gamma_third_central_s3(mean_s: Numeric, cv: Numeric) -> Array:
    r"""Third central moment of a gamma time; an exponential one has cv 1.

    Parameters
    ----------
    mean_s : float or (n,) array, > 0
        Mean. [s]
    cv : float or (n,) array, >= 0
        Coefficient of variation. [-]

    Returns
    -------
    array
        Inputs broadcast. [s^3]

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (Q7).

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
    r"""Cumulants of service minus inter-arrival time, the two being independent.

    Parameters
    ----------
    interarrival_s, service_s : float or (n,) array, > 0
        Mean times. [s]
    interarrival_variance_s2, service_variance_s2 : float or (n,) array, >= 0
        Their variances. [s^2]
    interarrival_third_central_s3, service_third_central_s3 : float or (n,) array
        Their third central moments. [s^3]

    Returns
    -------
    Increment
        Inputs broadcast.

    Raises
    ------
    ValueError
        If a mean is not positive or a variance is negative.

    Notes
    -----
    theory.md (Q7).

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
    r"""Cumulants of the increment of a queue that a clock feeds, one bulk per tick.

    Parameters
    ----------
    period_s : float or (n,) array, > 0
        Time between ticks. [s]
    service_s : float or (n,) array, > 0
        Mean service time of one job. [s]
    service_variance_s2 : float or (n,) array, >= 0
        Its variance. [s^2]
    service_third_central_s3 : float or (n,) array
        Its third central moment. [s^3]
    bulk_size : float or (n,) array, >= 1
        Jobs per tick, the same at each. [-]

    Returns
    -------
    Increment
        Inputs broadcast.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (Q7), (Q8).

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


def bulk_member_wait(
    leader: WaitMoments,
    service_s: Numeric,
    service_variance_s2: Numeric,
    bulk_size: Numeric,
    bulk_size_moments: tuple[Numeric, Numeric] | None = None,
) -> WaitMoments:
    r"""Wait of a random job of a bulk, from the wait of the first job of a bulk.

    Parameters
    ----------
    leader : WaitMoments
        Wait of the first job: that of the queue with `clocked_increment` of the whole bulk.
    service_s : float or (n,) array, > 0
        Mean service time of one job. [s]
    service_variance_s2 : float or (n,) array, >= 0
        Its variance. [s^2]
    bulk_size : float or (n,) array, >= 1
        Mean number of jobs per bulk. [-]
    bulk_size_moments : tuple of two floats or (n,) arrays, optional
        Second and third moment about zero of the number of jobs, which must not depend on
        ``leader``; by default every bulk has the same size. [-]

    Returns
    -------
    WaitMoments
        Inputs broadcast.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (Q8). Exact. A formula for independent arrivals that is fed the variability of such
    arrivals errs by factors of 0.2 to 9.

    Examples
    --------
    >>> nobody_left = WaitMoments(np.array(0.0), np.array(0.0), np.array(0.0))
    >>> [float(value) for value in bulk_member_wait(nobody_left, 2.0, 0.0, 3)]
    [2.0000, 2.6667, 0.6667]
    """
    service = np.asarray(service_s, dtype=np.float64)
    variance = np.asarray(service_variance_s2, dtype=np.float64)
    size = np.asarray(bulk_size, dtype=np.float64)
    if not (np.all(service > 0.0) and np.all(variance >= 0.0) and np.all(size >= 1.0)):
        raise ValueError("need service_s > 0, service_variance_s2 >= 0 and bulk_size >= 1")
    second, third = (
        (size**2, size**3)
        if bulk_size_moments is None
        else (np.asarray(value, dtype=np.float64) for value in bulk_size_moments)
    )
    if not (np.all(second >= size**2 * (1.0 - 1e-12)) and np.all(third >= second)):
        raise ValueError("bulk_size_moments are not those of a number of at least 1")
    ahead = (second / size - 1.0) / 2.0
    ahead_second = (2.0 * third / size - 3.0 * second / size + 1.0) / 6.0
    ahead_variance = np.maximum(ahead_second - ahead * ahead, 0.0)
    return WaitMoments(
        leader.mean_s + ahead * service,
        leader.variance_s2 + ahead * variance + service * service * ahead_variance,
        1.0 - (1.0 - leader.wait_prob) / size,
    )


def marshall_wait(
    increment: Increment,
    idle_mean_s: Numeric,
    idle_second_moment_s2: Numeric,
    idle_third_moment_s3: Numeric,
) -> WaitMoments:
    r"""Wait from the increments and the moments of the idle periods, without approximation.

    Parameters
    ----------
    increment : Increment
        Service minus inter-arrival time.
    idle_mean_s : float or (n,) array, > 0
        Mean length of an idle period. [s]
    idle_second_moment_s2 : float or (n,) array, > 0
        Its second moment about zero. [s^2]
    idle_third_moment_s3 : float or (n,) array, > 0
        Its third moment about zero. [s^3]

    Returns
    -------
    WaitMoments
        Inputs broadcast; ``inf`` moments and probability 1 unless the increment is negative in
        the mean. Inputs that belong to no queue may give a negative result.

    Raises
    ------
    ValueError
        If an idle moment is not positive.

    Notes
    -----
    theory.md (Q9); Marshall (1968). For Poisson arrivals idle periods are exponential, and this is
    (Q6). To drop the idle terms is no approximation.

    Examples
    --------
    >>> increment = queue_increment(1.0, 1.0, 2.0, 0.8, 0.64, 1.024)
    >>> [float(value) for value in marshall_wait(increment, 1.0, 2.0, 6.0)]
    [3.20, 15.36, 0.80]
    """
    first, second, third = (
        np.asarray(value, dtype=np.float64)
        for value in (idle_mean_s, idle_second_moment_s2, idle_third_moment_s3)
    )
    if not (np.all(first > 0.0) and np.all(second > 0.0) and np.all(third > 0.0)):
        raise ValueError("moments of the idle period must be positive")
    stable = np.asarray(increment.mean_s) < 0.0
    drift = np.where(stable, -np.asarray(increment.mean_s), 1.0)
    square = increment.variance_s2 + drift * drift
    cube = increment.third_central_s3 - 3.0 * drift * increment.variance_s2 - drift**3
    half, idle_half = square / (2.0 * drift), second / (2.0 * first)
    variance = cube / (3.0 * drift) + half * half + third / (3.0 * first) - idle_half * idle_half
    return WaitMoments(
        np.where(stable, half - idle_half, np.inf),
        np.where(stable, variance, np.inf),
        np.where(stable, 1.0 - drift / first, 1.0),
    )


def _mean_and_cv(mean_s: Numeric, cv: Numeric) -> tuple[Array, Array]:
    mean = np.asarray(mean_s, dtype=np.float64)
    variation = np.asarray(cv, dtype=np.float64)
    if not (np.all(mean > 0.0) and np.all(variation >= 0.0)):
        raise ValueError("mean_s must be positive and cv non-negative")
    return mean, variation
