"""Laws of times: what is known about service and inter-arrival times, and laws on a lattice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from headway.models.arrays import Array, Numeric, open_probability
from headway.models.laws.distributions import lognormal_cdf, lognormal_quantile
from headway.models.laws.gamma import gammainc, gammaincinv
from headway.models.queues.queueing import WaitMoments
from headway.models.queues.random_walk import gamma_third_central_s3, lognormal_third_central_s3

_MOST_CELLS = 1 << 20
_RARE = 1e-9
_SMALLEST_SCV = 1e-8  # of a positive wait; below this it is a constant at any step
_NEGLIGIBLE = 1e-10
# Below this, gamma and lognormal agree, and the incomplete gamma function would lose digits.
_SMALLEST_GAMMA_CV = 1e-4


class LatticeTooLongError(ValueError):
    """A law that needs more than a million steps. Use longer steps, or another method."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LatticeLaw:
    """Probabilities of the times ``(lowest_index + i) * step_s``.

    >>> law = LatticeLaw(step_s=0.5, lowest_index=-1, probability=np.array([0.25, 0.5, 0.25]))
    >>> law.mean_s, law.variance_s2, law.quantile_s(0.9).tolist()
    (0.0, 0.125, 0.5)
    """

    step_s: float  # Distance of neighbouring times, > 0. [s]
    lowest_index: int  # Number of steps from zero to the first time. [-]
    probability: Array  # One per time, none below 0, of sum 1 up to rounding. [-]

    def __post_init__(self) -> None:
        if not (np.isfinite(self.step_s) and self.step_s > 0.0):
            raise ValueError(f"step_s must be positive, got {self.step_s}")
        if self.probability.ndim != 1 or not np.all(self.probability >= 0.0):
            raise ValueError("probability must be one-dimensional and non-negative")
        total = float(self.probability.sum())
        if not abs(total - 1.0) < 1e-6:
            raise ValueError(f"probabilities must add up to 1, not to {total}")

    @property
    def time_s(self) -> Array:
        """The times that have a probability. [s]"""
        return self.step_s * (self.lowest_index + np.arange(len(self.probability), dtype=float))

    @property
    def mean_s(self) -> float:
        """Mean. [s]"""
        return float(self.probability @ self.time_s)

    @property
    def variance_s2(self) -> float:
        """Variance. [s^2]"""
        return float(self.probability @ (self.time_s - self.mean_s) ** 2)

    @property
    def third_central_s3(self) -> float:
        """Third central moment. [s^3]"""
        return float(self.probability @ (self.time_s - self.mean_s) ** 3)

    def quantile_s(self, q: Numeric) -> Array:
        """First time at which the distribution function reaches ``q``, 0 < q < 1. [s]"""
        level = open_probability(q)
        position = np.searchsorted(np.cumsum(self.probability), level)
        return self.time_s[np.minimum(position, len(self.probability) - 1)]

    def plus(self, other: LatticeLaw) -> LatticeLaw:
        """Law of the sum with an independent time on the same lattice."""
        if other.step_s != self.step_s:
            raise ValueError(f"steps differ: {self.step_s} s and {other.step_s} s")
        num_times = len(self.probability) + len(other.probability) - 1
        num_cells = 1 << (num_times - 1).bit_length()
        transform = np.fft.rfft(self.probability, num_cells)
        transform *= np.fft.rfft(other.probability, num_cells)
        return LatticeLaw(
            step_s=self.step_s,
            lowest_index=self.lowest_index + other.lowest_index,
            probability=np.maximum(np.fft.irfft(transform, num_cells)[:num_times], 0.0),
        )

    def negative(self) -> LatticeLaw:
        """Law of the time with its sign changed."""
        return LatticeLaw(
            step_s=self.step_s,
            lowest_index=-self.lowest_index - len(self.probability) + 1,
            probability=self.probability[::-1],
        )

    def later(self, delay_s: float) -> LatticeLaw:
        """Law of the time with a constant added, rounded to whole steps."""
        num_steps = int(np.rint(delay_s / self.step_s))
        return replace(self, lowest_index=self.lowest_index + num_steps)


def lattice_law(
    cdf: Callable[[Array], Array], step_s: float, lowest_s: float, highest_s: float
) -> LatticeLaw:
    r"""A distribution function on a lattice: each time gets the mass within half a step.

    ``cdf`` has no atoms. The range should contain all of the law (Q16) except a negligible part, at
    most 1%, which is distributed in proportion. A step of a fiftieth of a standard deviation is
    fine; it adds about ``step_s**2 / 12`` to the variance.

    >>> lattice_law(lambda x: np.clip(x, 0.0, 1.0), 0.25, 0.0, 1.0).probability
    array([0.125, 0.25 , 0.25 , 0.25 , 0.125])
    """
    lowest, num_times = _range(step_s, lowest_s, highest_s)
    edge = step_s * (lowest - 0.5 + np.arange(num_times + 1, dtype=float))
    mass = np.maximum(np.diff(cdf(edge)), 0.0)
    total = float(mass.sum())
    if not total >= 0.99:
        raise ValueError(f"{lowest_s} s to {highest_s} s hold only {total:.3g} of the law")
    return LatticeLaw(step_s=step_s, lowest_index=lowest, probability=mass / total)


def lattice_sample(values_s: Array, step_s: float) -> LatticeLaw:
    r"""Observed times on a lattice, each split between its neighbours so as to keep the mean.

    The values (n,), n >= 1, have equal weight (Q16); a single one is a constant. At most
    ``step_s**2 / 4`` is added to the variance.

    >>> lattice_sample(np.array([1.1]), 0.5).probability
    array([0.8, 0.2])
    """
    values = np.asarray(values_s, dtype=np.float64)
    if values.ndim != 1 or len(values) == 0 or not np.all(np.isfinite(values)):
        raise ValueError("values_s must hold at least one time, and finite ones only")
    lowest, _ = _range(step_s, float(values.min()), float(values.max()))
    mass = _between_neighbours(values / step_s - lowest, np.ones(len(values)))
    return LatticeLaw(step_s=step_s, lowest_index=lowest, probability=mass / len(values))


def on_step(law: LatticeLaw, step_s: float) -> LatticeLaw:
    r"""A law on another step, each time split between its neighbours so as to keep the mean (Q16).

    The variance becomes larger by at most ``step_s**2 / 4``.

    Parameters
    ----------
    step_s : float, > 0, new step, preferably a longer one [s]

    >>> fine = LatticeLaw(step_s=1.0, lowest_index=0, probability=np.full(4, 0.25))
    >>> on_step(fine, 2.0).probability
    array([0.375, 0.5  , 0.125])
    """
    if not (np.isfinite(step_s) and step_s > 0.0):
        raise ValueError(f"step_s must be positive, got {step_s}")
    if step_s == law.step_s:
        return law
    position = law.time_s / step_s
    lowest = int(np.floor(position[0] + 1e-9))
    mass = _between_neighbours(position - lowest, law.probability)
    return LatticeLaw(step_s=step_s, lowest_index=lowest, probability=mass)


def uniform_law(width_s: float, step_s: float) -> LatticeLaw:
    r"""A time that is uniform from 0 to a width (V5).

    Parameters
    ----------
    width_s : float, >= 0, longest time; 0 means no time [s]
    step_s : float, > 0

    >>> uniform_law(1.0, 0.5).probability
    array([0.25, 0.5 , 0.25])
    """
    if not (np.isfinite(width_s) and width_s >= 0.0):
        raise ValueError(f"width_s must be finite and not negative, got {width_s}")
    if width_s == 0.0:
        return LatticeLaw(step_s=step_s, lowest_index=0, probability=np.ones(1))
    return lattice_law(lambda time: np.clip(time / width_s, 0.0, 1.0), step_s, 0.0, width_s)


def zero_or_gamma_law(wait: WaitMoments, step_s: float) -> LatticeLaw:
    r"""A wait with known moments, taken as zero or gamma distributed (Q15).

    Parameters
    ----------
    wait : WaitMoments, of one queue, finite
    step_s : float, > 0

    >>> law = zero_or_gamma_law(WaitMoments(np.array(1.0), np.array(3.0), np.array(0.5)), 0.01)
    >>> law.mean_s, law.variance_s2, float(law.probability[0])
    (1.0, 3.0, 0.50)
    """
    mean, variance, prob = (float(value) for value in wait)
    if not (0.0 <= mean < np.inf and 0.0 <= variance < np.inf and 0.0 <= prob <= 1.0):
        raise ValueError("the moments of the wait must be finite and not negative")
    if mean <= _RARE * step_s or prob == 0.0:
        return LatticeLaw(step_s=step_s, lowest_index=0, probability=np.ones(1))
    centre = mean / prob
    scv = max(variance / (prob * centre * centre) - (1.0 - prob), _SMALLEST_SCV)

    shape = 1.0 / scv

    def positive(time: Array) -> Array:
        return np.asarray(gammainc(shape, np.maximum(time, 0.0) / (centre * scv)))

    highest_s = centre * scv * float(gammaincinv(shape, 1.0 - _RARE))
    law = lattice_law(positive, step_s, 0.0, max(highest_s, step_s))
    probability = prob * law.probability
    probability[-law.lowest_index] += 1.0 - prob
    return LatticeLaw(step_s=step_s, lowest_index=law.lowest_index, probability=probability)


def smooth_quantile_s(law: LatticeLaw | None, q: Numeric) -> Array:
    r"""Quantile of a law without atoms: the mass of each time is spread over its step. [s]

    Parameters
    ----------
    law : LatticeLaw or None, of a time with a density; None, with quantiles ``inf``, if unbounded
    q : float or (n,) array, 0 < q < 1

    **(V5)** Quantiles: the mass of each lattice time is spread evenly over its step. There are no
    atoms, since `VB` is uniform.

    `LatticeLaw.quantile_s` returns whole steps, which suits laws with atoms.

    >>> float(smooth_quantile_s(uniform_law(1.0, 0.01), 0.9))
    0.90
    """
    level = open_probability(q)
    if law is None:
        return np.full(level.shape, np.inf)
    edge = law.step_s * (law.lowest_index - 0.5 + np.arange(len(law.probability) + 1.0))
    below = np.concatenate([[0.0], np.cumsum(law.probability)])
    return np.asarray(np.maximum(np.interp(level * below[-1], below, edge), 0.0))


def _between_neighbours(position: Array, mass: Array) -> Array:
    """Mass at each whole step, where that at any position is split so as to keep the mean."""
    from_lowest = np.maximum(position, 0.0)
    below = np.floor(from_lowest)
    share = from_lowest - below
    index = below.astype(np.int64)
    num_times = int(index.max()) + 2
    split = np.zeros(num_times)
    split += np.bincount(index, mass * (1.0 - share), num_times)
    split += np.bincount(index + 1, mass * share, num_times)
    without_padding: Array = np.trim_zeros(split, "b")
    return without_padding


def _range(step_s: float, lowest_s: float, highest_s: float) -> tuple[int, int]:
    if not (np.isfinite(step_s) and step_s > 0.0):
        raise ValueError(f"step_s must be positive, got {step_s}")
    if not (np.isfinite(lowest_s) and np.isfinite(highest_s) and lowest_s <= highest_s):
        raise ValueError("need finite lowest_s <= highest_s")
    # A range whose end is on the lattice, up to rounding, ends at that point.
    lowest = int(np.floor(lowest_s / step_s + 1e-9))
    num_times = int(np.ceil(highest_s / step_s - 1e-9)) - lowest + 1
    if num_times > _MOST_CELLS:
        raise LatticeTooLongError(f"{num_times} steps of {step_s} s are too many; take longer ones")
    return lowest, num_times


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
        if self.third_central_s3 is None:
            if self.on_lattice is not None:
                raise ValueError("a law needs its third_central_s3")
        elif not np.isfinite(self.third_central_s3):
            raise ValueError("third_central_s3 must be finite")

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
