"""Families of times with the same two moments, which a queue tells apart."""

from __future__ import annotations

from enum import StrEnum
from math import gamma

import numpy as np
from scipy.optimize import brentq

from headway.models.arrays import Array
from headway.models.queues.random_walk import (
    gamma_third_central_s3,
    lognormal_third_central_s3,
)
from headway.models.queues.times import QueueTime


class TimeFamily(StrEnum):
    """How times are spread around their mean."""

    GAMMA = "gamma"
    LOGNORMAL = "lognormal"
    WEIBULL = "Weibull"
    TWO_EXPONENTIALS = "two exponentials"


def drawn_s(
    family: TimeFamily, mean_s: float, cv: float, num_values: int, random: np.random.Generator
) -> Array:
    """Independent times of a family [s]; with a coefficient of variation of 0 all are the mean.

    >>> drawn_s(TimeFamily.GAMMA, 2.0, 0.0, 2, np.random.default_rng(1))
    array([2., 2.])
    """
    if cv == 0.0:
        return np.full(num_values, mean_s)
    if family is TimeFamily.GAMMA:
        return random.gamma(cv**-2, mean_s * cv**2, num_values)
    if family is TimeFamily.LOGNORMAL:
        variance = np.log1p(cv * cv)
        normal = random.standard_normal(num_values)
        return np.asarray(mean_s * np.exp(np.sqrt(variance) * normal - variance / 2.0))
    if family is TimeFamily.WEIBULL:
        shape = _weibull_shape(cv)
        return np.asarray(mean_s / gamma(1.0 + 1.0 / shape) * random.weibull(shape, num_values))
    share, first, second = _two_exponentials(cv)
    is_first = random.random(num_values) < share
    return np.asarray(
        mean_s * np.where(is_first, first, second) * random.exponential(1, num_values)
    )


def moments_of(family: TimeFamily, mean_s: float, cv: float, *, third: bool = True) -> QueueTime:
    """What two or three moments tell of a family's time of mean [s] and coefficient of variation.

    >>> moments_of(TimeFamily.TWO_EXPONENTIALS, 1.0, 1.0).third_central_s3
    2.0
    """
    third_s3 = float(_third_central(family, cv) * mean_s**3) if third else None
    return QueueTime(mean_s=mean_s, scv=cv * cv, third_central_s3=third_s3)


def _third_central(family: TimeFamily, cv: float) -> float:
    """Third central moment at a mean of 1."""
    if cv == 0.0:
        return 0.0
    if family is TimeFamily.GAMMA:
        return float(gamma_third_central_s3(1.0, cv))
    if family is TimeFamily.LOGNORMAL:
        return float(lognormal_third_central_s3(1.0, cv))
    if family is TimeFamily.WEIBULL:
        shape = _weibull_shape(cv)
        cube = gamma(1.0 + 3.0 / shape) / gamma(1.0 + 1.0 / shape) ** 3
    else:
        share, first, second = _two_exponentials(cv)
        cube = 6.0 * (share * first**3 + (1.0 - share) * second**3)
    return cube - 3.0 * (1.0 + cv * cv) + 2.0


def _weibull_shape(cv: float) -> float:
    def excess(shape: float) -> float:
        return gamma(1.0 + 2.0 / shape) / gamma(1.0 + 1.0 / shape) ** 2 - 1.0 - cv * cv

    return float(brentq(excess, 0.15, 60.0))


def _two_exponentials(cv: float) -> tuple[float, float, float]:
    """Share of the first, and both means: each has half of the total time, cv >= 1."""
    if cv < 1.0:
        raise ValueError(f"two exponentials vary at least as much as one, got cv {cv}")
    share = 0.5 * (1.0 + np.sqrt((cv * cv - 1.0) / (cv * cv + 1.0)))
    return share, 0.5 / share, 0.5 / (1.0 - share)
