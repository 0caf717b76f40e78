"""The increment of a queue from one arrival to the next, and its cumulants."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from headway.models.arrays import Array, Numeric

#: Cumulants of service minus inter-arrival time: mean [s], variance [s^2], third [s^3].
Increment: TypeAlias = tuple[Array, Array, Array]


def lognormal_third_central_s3(mean_s: Numeric, cv: Numeric) -> Array:
    r"""Third central moment of a lognormal time (Q7).

    Parameters
    ----------
    mean_s : float or (n,) array, > 0
    cv : float or (n,) array, >= 0

    >>> float(lognormal_third_central_s3(9.0, 0.1))
    0.2194
    """
    mean, variation = _mean_and_cv(mean_s, cv)
    return mean**3 * variation**4 * (3.0 + variation * variation)


def gamma_third_central_s3(mean_s: Numeric, cv: Numeric) -> Array:
    r"""Third central moment of a gamma time of mean > 0 and cv >= 0; exponential for cv 1 (Q7).

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

    Parameters
    ----------
    interarrival_s, service_s : float or (n,) array, > 0
    interarrival_variance_s2, service_variance_s2 : float or (n,) array, >= 0
    interarrival_third_central_s3, service_third_central_s3 : float or (n,) array
        Third central moments; that of a clock is 0, as is its variance.

    **(Q7)** The increment `U = S - A` has mean `-m`, variance `κ_2 = Var S + Var A` and third
    cumulant `κ_3 = μ_3(S) - μ_3(A)`. Further, `β = m/sqrt(κ_2)` and `g = κ_3/κ_2^(3/2)`. The third
    central moment is `μ_3 = E^3(3c^4+c^6)` for a lognormal, `2E^3 c^4` for a gamma, and 0 for a
    clock.

    >>> [float(value) for value in queue_increment(1.0, 1.0, 2.0, 0.8, 0.16, 0.0)]
    [-0.20, 1.16, -2.00]
    """
    between, service, between_variance, service_variance = (
        np.asarray(value, dtype=np.float64)
        for value in (interarrival_s, service_s, interarrival_variance_s2, service_variance_s2)
    )
    if not (np.all(between > 0.0) and np.all(service > 0.0)):
        raise ValueError("interarrival_s and service_s must be positive")
    if not (np.all(between_variance >= 0.0) and np.all(service_variance >= 0.0)):
        raise ValueError("variances must be non-negative")
    return (
        service - between,
        between_variance + service_variance,
        np.asarray(service_third_central_s3, dtype=np.float64) - interarrival_third_central_s3,
    )


def wait_decay_per_s(mean_s: Numeric, variance_s2: Numeric, third_central_s3: Numeric) -> Array:
    r"""Rate at which the tail of the wait falls off, from three cumulants of the increment.

    The variance must be above 0. The rate is 0 if the queue is unstable. If the third moment is so
    negative that the cubic has no root, its turning point is taken.

    **(Q14)** The tail of `W` decays as `e^(-η x)` (after Abate, Choudhury and Whitt 1995,
    doi:10.1287/opre.43.5.885), with `η = 2m/(κ_2/2+sqrt((κ_2^2)/4+(2 κ_3 m)/3) )`.

    >>> float(wait_decay_per_s(-0.5, 1.0, 0.0))
    1.0
    """
    variance = np.asarray(variance_s2, dtype=np.float64)
    if not np.all(variance > 0.0):
        raise ValueError("the increment must vary")
    drift = np.maximum(-np.asarray(mean_s, dtype=np.float64), 0.0)
    discriminant = variance * variance / 4.0 + 2.0 * np.asarray(third_central_s3) * drift / 3.0
    return 2.0 * drift / (variance / 2.0 + np.sqrt(np.maximum(discriminant, 0.0)))


def _mean_and_cv(mean_s: Numeric, cv: Numeric) -> tuple[Array, Array]:
    mean = np.asarray(mean_s, dtype=np.float64)
    variation = np.asarray(cv, dtype=np.float64)
    if not (np.all(mean > 0.0) and np.all(variation >= 0.0)):
        raise ValueError("mean_s must be positive and cv non-negative")
    return mean, variation
