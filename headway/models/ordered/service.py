"""The time of a tuple at an operator: its law, and the law of the time left at a random moment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headway.models.arrays import Array
from headway.models.laws.gamma import gammainc, gammaincinv

_NEGLIGIBLE = 1e-11
_FINE, _COARSE = 6000, 3000


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLaw:
    """A gamma distributed service time of mean > 0 [s] and coefficient of variation 0 to 3.

    >>> law = ServiceLaw(mean_s=2.0, cv=1.0)
    >>> law.cdf(np.array([2.0])), law.excess_cdf(np.array([2.0]))
    (array([0.632]), array([0.632]))
    """

    mean_s: float
    cv: float

    def __post_init__(self) -> None:
        if not (0.0 < self.mean_s < np.inf and 0.0 <= self.cv <= 3.0):
            raise ValueError(f"need mean_s > 0 and cv in 0..3, got {self.mean_s} and {self.cv}")

    @property
    def is_constant(self) -> bool:
        """Whether it never varies; the laws below lose precision if it hardly varies."""
        return self.cv < 1e-4

    def cdf(self, time_s: Array) -> Array:
        """Probability that it is at most ``time_s``."""
        time = np.maximum(time_s, 0.0)
        if self.is_constant:
            return np.where(time >= self.mean_s, 1.0, 0.0)
        shape = self.cv**-2
        return np.asarray(gammainc(shape, time * shape / self.mean_s), dtype=np.float64)

    def excess_cdf(self, time_s: Array) -> Array:
        """Probability that the time left at a random moment is at most ``time_s``."""
        time = np.maximum(time_s, 0.0)
        if self.is_constant:
            return np.minimum(time / self.mean_s, 1.0)
        shape = self.cv**-2
        weighted_cdf = np.asarray(gammainc(shape + 1.0, time * shape / self.mean_s))
        below = time * self.cdf(time) - self.mean_s * weighted_cdf
        return np.clip((time - below) / self.mean_s, 0.0, 1.0)

    def grid_s(self, num_others: float = 1.0) -> Array:
        """Times from 0 until the longest of this many has ended, fine around the mean."""
        tail_prob = _NEGLIGIBLE / max(num_others, 1.0)
        if self.is_constant:
            highest = self.mean_s
        else:
            shape = self.cv**-2
            highest = float(gammaincinv(shape + 1.0, 1.0 - tail_prob)) * self.mean_s / shape
        fine = np.linspace(0.0, 4.0 * self.mean_s, _FINE)
        if highest <= fine[-1]:
            return np.linspace(0.0, max(highest, self.mean_s) * (1.0 + 1e-9), _FINE)
        return np.concatenate([fine, np.geomspace(fine[-1], highest, _COARSE)[1:]])


@dataclass(frozen=True, slots=True)
class TimeLaw:
    """A law on a grid of times: probability `cdf` of at most `time_s` [s]."""

    time_s: Array
    cdf: Array

    @property
    def mean_s(self) -> float:
        """Mean, by the trapezoid rule. [s]"""
        survival = 1.0 - self.cdf
        return float(self.time_s[0] + 0.5 * (survival[1:] + survival[:-1]) @ np.diff(self.time_s))

    def quantile_s(self, q: float) -> float:
        """The time that is not exceeded with probability ``q``. [s]"""
        return float(np.interp(q, np.maximum.accumulate(self.cdf), self.time_s))
