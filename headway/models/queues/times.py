"""Service and inter-arrival times, and what is known about their laws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from headway.models.arrays import Array
from headway.models.laws.distributions import lognormal_cdf, lognormal_quantile
from headway.models.laws.gamma import gammainc, gammaincinv
from headway.models.queues.lattice import LatticeLaw, lattice_law, lattice_sample
from headway.models.queues.random_walk import (
    gamma_third_central_s3,
    lognormal_third_central_s3,
)

_NEGLIGIBLE = 1e-10
# Below this, gamma and lognormal agree, and the incomplete gamma function would lose digits.
_SMALLEST_GAMMA_CV = 1e-4

OnLattice: TypeAlias = Callable[[float], LatticeLaw]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTime:
    """What is known about a service or inter-arrival time; successive times are independent.

    `constant_time`, `lognormal_time` and `gamma_time` know the whole law.
    """

    mean_s: float
    scv: float  # Squared coefficient of variation. [-]
    third_central_s3: float | None = None
    on_lattice: OnLattice | None = None
    """From a step [s] to the law on multiples of that step; needs the third moment."""

    def __post_init__(self) -> None:
        if not (0.0 < self.mean_s < np.inf and 0.0 <= self.scv < np.inf):
            raise ValueError(f"need mean_s > 0 and scv >= 0, got {self.mean_s} and {self.scv}")

    @property
    def variance_s2(self) -> float:
        """Variance. [s^2]"""
        return self.scv * self.mean_s**2


def constant_time(mean_s: float) -> QueueTime:
    """A time that never varies, > 0 [s]: arrivals from a clock (Q7).

    Parameters
    ----------
    mean_s : float, > 0

    >>> constant_time(10.0).scv
    0.0
    """
    return QueueTime(
        mean_s=mean_s,
        scv=0.0,
        third_central_s3=0.0,
        on_lattice=lambda step_s: lattice_sample(np.array([mean_s]), step_s),
    )


def lognormal_time(mean_s: float, cv: float) -> QueueTime:
    """A lognormal time of mean > 0 [s] and coefficient of variation >= 0: (Q7), (D1).

    Parameters
    ----------
    mean_s : float, > 0
    cv : float, >= 0

    >>> lognormal_time(9.0, 0.1).third_central_s3
    0.2194
    """
    third = float(lognormal_third_central_s3(mean_s, cv))
    if cv == 0.0:
        return constant_time(mean_s)
    highest_s = float(lognormal_quantile(1.0 - _NEGLIGIBLE, mean_s, cv))
    return QueueTime(
        mean_s=mean_s,
        scv=cv * cv,
        third_central_s3=third,
        on_lattice=lambda step_s: lattice_law(
            lambda time: lognormal_cdf(time, mean_s, cv), step_s, 0.0, highest_s
        ),
    )


def gamma_time(mean_s: float, cv: float) -> QueueTime:
    """A gamma time of mean > 0 [s] and coefficient of variation >= 0; exponential for cv 1 (Q7).

    If it hardly varies, it is lognormal with the third moment of the gamma.

    Parameters
    ----------
    mean_s : float, > 0
    cv : float, >= 0

    >>> gamma_time(1.0, 1.0).third_central_s3
    2.0
    """
    third = float(gamma_third_central_s3(mean_s, cv))
    if cv == 0.0:
        return constant_time(mean_s)
    if cv < _SMALLEST_GAMMA_CV:
        return replace(lognormal_time(mean_s, cv), third_central_s3=third)
    shape, scale_s = 1.0 / (cv * cv), mean_s * cv * cv

    def cdf(time: Array) -> Array:
        return np.asarray(gammainc(shape, np.maximum(time, 0.0) / scale_s), dtype=np.float64)

    highest_s = scale_s * float(gammaincinv(shape, 1.0 - _NEGLIGIBLE))
    return QueueTime(
        mean_s=mean_s,
        scv=cv * cv,
        third_central_s3=third,
        on_lattice=lambda step_s: lattice_law(cdf, step_s, 0.0, highest_s),
    )
