"""Durations with several modes: the usual one, and slow ones that have a reason of their own.

Pauses of the garbage collector, snapshots of state and compaction hit some batches and not
others. A mixture keeps them apart, and a uniform wait before it keeps its closed form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from headway.models.arrays import Array, Numeric, open_probability
from headway.models.laws.distributions import (
    bisect_increasing,
    lognormal_cdf,
    lognormal_partial_expectation,
    lognormal_quantile,
)
from headway.models.laws.gamma import gamma_cdf, gamma_partial_expectation, gamma_quantile
from headway.models.laws.modes import SlowMode
from headway.models.laws.uniform_wait import uniform_wait_cdf

_WEIGHT_TOLERANCE = 1e-9
# Fewer values do not tell a mode from a chance, nor the spread of a mode.
_LEAST_VALUES = 300
_LEAST_SLOW_VALUES = 5
_DEVIATIONS_TO_SLOW = 5.0


class ModeFamily(StrEnum):
    """The law of one mode, beyond its offset."""

    LOGNORMAL = "lognormal"
    GAMMA = "gamma"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mode:
    """One mode of a duration: an offset that it never falls below, plus a lognormal or a gamma.

    Parameters
    ----------
    mean_s : float or (n,) array, > offset_s
        Mean, offset included. [s]
    sd_s : float or (n,) array, >= 0
        Standard deviation; 0 is a constant. [s]
    offset_s : float or (n,) array
        Where the mode begins. [s]
    family : ModeFamily
        Law of what exceeds the offset.

    Raises
    ------
    ValueError
        If a moment is outside its range.

    Notes
    -----
    theory.md (D10).

    Examples
    --------
    >>> pause = Mode(mean_s=0.8, sd_s=0.5, offset_s=0.3, family=ModeFamily.GAMMA)
    >>> float(pause.quantile_s(0.99)), float(pause.third_central_s3)
    (2.60259, 0.25)
    """

    mean_s: Numeric
    sd_s: Numeric
    offset_s: Numeric = 0.0
    family: ModeFamily = ModeFamily.LOGNORMAL

    def __post_init__(self) -> None:
        moments = (np.asarray(value) for value in (self.mean_s, self.sd_s, self.offset_s))
        mean, sd, offset = moments
        if not (np.all(np.isfinite(offset)) and np.all(mean > offset) and np.all(sd >= 0.0)):
            raise ValueError("a mode needs mean_s above a finite offset_s and sd_s >= 0")
        if not (np.all(np.isfinite(mean)) and np.all(np.isfinite(sd))):
            raise ValueError("the moments of a mode must be finite")

    @property
    def third_central_s3(self) -> Array:
        """Third central moment. [s^3]"""
        excess, cv = self._excess_and_cv()
        if self.family is ModeFamily.GAMMA:
            return 2.0 * excess**3 * cv**4
        return excess**3 * cv**4 * (3.0 + cv**2)

    def cdf(self, x_s: Numeric) -> Array:
        """Probability of at most ``x_s`` [s]. [-]"""
        of_excess = gamma_cdf if self.family is ModeFamily.GAMMA else lognormal_cdf
        return of_excess(np.asarray(x_s) - self.offset_s, *self._excess_and_cv())

    def partial_expectation_s(self, x_s: Numeric) -> Array:
        """Mean of the positive part of ``x_s`` less the duration. [s]"""
        of_excess = (
            gamma_partial_expectation
            if self.family is ModeFamily.GAMMA
            else lognormal_partial_expectation
        )
        return of_excess(np.asarray(x_s) - self.offset_s, *self._excess_and_cv())

    def quantile_s(self, q: Numeric) -> Array:
        """Quantiles, 0 < q < 1. [s]"""
        of_excess = gamma_quantile if self.family is ModeFamily.GAMMA else lognormal_quantile
        return self.offset_s + of_excess(open_probability(q), *self._excess_and_cv())

    def _excess_and_cv(self) -> tuple[Array, Array]:
        excess = np.asarray(self.mean_s, dtype=np.float64) - self.offset_s
        return excess, self.sd_s / excess


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DurationMixture:
    """A duration that is in one of several modes, each time anew.

    Parameters
    ----------
    modes : tuple of Mode
        At least one.
    weights : tuple of float or (n,) arrays, >= 0
        Probability of each mode; they add up to 1. [-]

    Raises
    ------
    ValueError
        If there is no mode, or the weights are no probabilities.

    Notes
    -----
    theory.md (D10), (D11). Exact for the modes given.

    Examples
    --------
    >>> paused = with_pauses(0.3, 0.03, pause_prob=0.03, pause_mean_s=0.5)
    >>> [round(float(value), 4) for value in (paused.mean_s, paused.quantile_s(0.99))]
    [0.315, 0.8504]
    >>> round(float(paused.after_uniform_wait_quantile_s(0.99, 1.0)), 3)
    1.431
    """

    modes: tuple[Mode, ...]
    weights: tuple[Numeric, ...]

    def __post_init__(self) -> None:
        if not self.modes or len(self.modes) != len(self.weights):
            raise ValueError("need at least one mode and a weight for each")
        shares = [np.asarray(weight, dtype=np.float64) for weight in self.weights]
        total = sum(shares, np.zeros(()))
        if not (
            all(np.all(share >= 0.0) for share in shares)
            and np.all(np.abs(total - 1.0) <= _WEIGHT_TOLERANCE)
        ):
            raise ValueError("weights must be non-negative and add up to 1")

    @property
    def mean_s(self) -> Array:
        """Mean. [s]"""
        return self._average(lambda mode: np.asarray(mode.mean_s, dtype=np.float64))

    @property
    def variance_s2(self) -> Array:
        """Variance. [s^2]"""
        mean = self.mean_s
        return self._average(lambda mode: mode.sd_s**2 + (mode.mean_s - mean) ** 2)

    @property
    def third_central_s3(self) -> Array:
        """Third central moment. [s^3]"""
        mean = self.mean_s

        def about_the_mean(mode: Mode) -> Array:
            apart = mode.mean_s - mean
            return mode.third_central_s3 + 3.0 * apart * mode.sd_s**2 + apart**3

        return self._average(about_the_mean)

    def cdf(self, x_s: Numeric) -> Array:
        """Probability of a duration of at most ``x_s`` [s]. [-]"""
        return self._average(lambda mode: mode.cdf(x_s))

    def partial_expectation_s(self, x_s: Numeric) -> Array:
        """Mean of the positive part of ``x_s`` less the duration. [s]"""
        return self._average(lambda mode: mode.partial_expectation_s(x_s))

    def quantile_s(self, q: Numeric) -> Array:
        """Quantiles of the duration, 0 < q < 1. [s]"""
        lowest, highest = self._quantile_range_s(q)
        return bisect_increasing(self.cdf, open_probability(q), lowest, highest)

    def after_uniform_wait_cdf(self, x_s: Numeric, interval_s: Numeric) -> Array:
        """Probability that a wait uniform on ``interval_s`` and the duration end by ``x_s``. [-]"""
        return uniform_wait_cdf(
            np.asarray(x_s, dtype=np.float64),
            _interval(interval_s),
            np.maximum(np.abs(self.mean_s), np.sqrt(self.variance_s2)),
            self.cdf,
            self.partial_expectation_s,
        )

    def after_uniform_wait_quantile_s(self, q: Numeric, interval_s: Numeric) -> Array:
        """Quantiles of a wait uniform on ``interval_s`` plus the duration, 0 < q < 1. [s]"""
        lowest, highest = self._quantile_range_s(q)
        interval = _interval(interval_s)
        return bisect_increasing(
            lambda x: self.after_uniform_wait_cdf(x, interval),
            open_probability(q),
            lowest,
            highest + interval,
        )

    def _average(self, of_mode: Callable[[Mode], Array]) -> Array:
        parts = (
            weight * of_mode(mode) for weight, mode in zip(self.weights, self.modes, strict=True)
        )
        return sum(parts, np.zeros(()))

    def _quantile_range_s(self, q: Numeric) -> tuple[Array, Array]:
        """Least and largest quantile of the modes: that of the mixture lies between."""
        of_modes = np.stack(np.broadcast_arrays(*(mode.quantile_s(q) for mode in self.modes)))
        lowest, highest = of_modes.min(axis=0), of_modes.max(axis=0)
        width = 1e-8 * np.maximum(np.abs(lowest), np.abs(highest))
        return lowest - width, highest + width


def usual_and_slow(mean_s: Numeric, cv: Numeric, slow: SlowMode) -> DurationMixture:
    r"""Durations of which a share takes a multiple of the others, as `slow_mode` finds them.

    Parameters
    ----------
    mean_s : float or (n,) array, > 0
        Mean of the usual mode. [s]
    cv : float or (n,) array, >= 0
        Coefficient of variation within each mode. [-]
    slow : SlowMode
        Share of the slow mode, 0 to 1, and its ratio to the usual one, > 0.

    Returns
    -------
    DurationMixture
        Two lognormal modes.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (D10), (E8).

    Examples
    --------
    >>> float(usual_and_slow(2.0, 0.1, SlowMode(share=0.1, ratio=1.5)).mean_s)
    2.1
    """
    usual_mean, slow_mean = np.asarray(mean_s, dtype=np.float64), slow.ratio * np.asarray(mean_s)
    return DurationMixture(
        modes=(
            Mode(mean_s=usual_mean, sd_s=cv * usual_mean),
            Mode(mean_s=slow_mean, sd_s=cv * slow_mean),
        ),
        weights=(1.0 - slow.share, slow.share),
    )


def with_pauses(
    mean_s: float, sd_s: float, *, pause_prob: Numeric, pause_mean_s: float, pause_cv: float = 1.0
) -> DurationMixture:
    r"""Lognormal durations some of which a pause makes longer.

    Parameters
    ----------
    mean_s : float, > 0
        Mean without a pause. [s]
    sd_s : float, >= 0
        Standard deviation without a pause. [s]
    pause_prob : float or (n,) array, 0 to 1
        Probability of a pause. [-]
    pause_mean_s : float, > 0
        Mean length of a pause. [s]
    pause_cv : float, >= 0
        Its coefficient of variation, of a gamma; 1 is exponential, 0 a constant. [-]

    Returns
    -------
    DurationMixture
        The usual mode, and that with a pause: the shifted gamma of its three moments. Its offset
        is never below zero, since three times the squared cv of a lognormal exceeds twice that of
        a gamma.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (D10).

    Examples
    --------
    >>> paused = with_pauses(0.3, 0.0, pause_prob=0.03, pause_mean_s=0.5)
    >>> float(paused.modes[1].offset_s), float(paused.modes[1].quantile_s(0.99))
    (0.3, 2.60259)
    """
    if not (0.0 < pause_mean_s < np.inf and 0.0 <= pause_cv < np.inf):
        raise ValueError("need pause_mean_s > 0 and pause_cv >= 0, both finite")
    usual = Mode(mean_s=mean_s, sd_s=sd_s)
    pause_sd_s = pause_cv * pause_mean_s
    third_s3 = float(usual.third_central_s3) + 2.0 * pause_mean_s**3 * pause_cv**4
    variance_s2 = sd_s**2 + pause_sd_s**2
    # A shifted gamma begins two variances, over the third moment in them, below its mean.
    excess_s = 2.0 * variance_s2**2 / third_s3 if third_s3 > 0.0 else np.inf
    paused_mean_s = mean_s + pause_mean_s
    paused = Mode(
        mean_s=paused_mean_s,
        sd_s=float(np.sqrt(variance_s2)),
        offset_s=max(paused_mean_s - excess_s, 0.0),
        family=ModeFamily.GAMMA,
    )
    return DurationMixture(modes=(usual, paused), weights=(1.0 - pause_prob, pause_prob))


def mixture_of_sample(values_s: Array) -> DurationMixture:
    r"""Observed durations as a usual mode and, where there are enough outliers, a slow one.

    Parameters
    ----------
    values_s : (n,) array, > 0
        Durations, at least two. [s]

    Returns
    -------
    DurationMixture
        A lognormal; of 300 values or more, at least 5 of which exceed the median by more than 5
        median absolute deviations, also a gamma that begins there.

    Raises
    ------
    ValueError
        If the values are too few or not positive and finite.

    Notes
    -----
    theory.md (D12). Each part keeps its own mean and variance.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> pause = np.where(rng.random(1000) < 0.05, rng.exponential(0.5, 1000), 0.0)
    >>> found = mixture_of_sample(rng.normal(0.3, 0.02, 1000) + pause)
    >>> len(found.modes), round(float(found.weights[1]), 2)
    (2, 0.04)
    """
    values = np.asarray(values_s, dtype=np.float64)
    if not (values.ndim == 1 and len(values) >= 2):
        raise ValueError("need at least two values")
    if not (np.all(values > 0.0) and np.all(np.isfinite(values))):
        raise ValueError("values_s must be positive and finite")
    median = float(np.median(values))
    limit = median + _DEVIATIONS_TO_SLOW * float(np.median(np.abs(values - median)))
    usual, slow = values[values <= limit], values[values > limit]
    if len(values) < _LEAST_VALUES or len(slow) < _LEAST_SLOW_VALUES:
        return DurationMixture(modes=(_mode_of(values),), weights=(1.0,))
    share = len(slow) / len(values)
    return DurationMixture(
        modes=(_mode_of(usual), _mode_of(slow, limit, ModeFamily.GAMMA)),
        weights=(1.0 - share, share),
    )


def _mode_of(
    values: Array, offset_s: float = 0.0, family: ModeFamily = ModeFamily.LOGNORMAL
) -> Mode:
    return Mode(
        mean_s=float(values.mean()), sd_s=float(values.std()), offset_s=offset_s, family=family
    )


def _interval(interval_s: Numeric) -> Array:
    interval = np.asarray(interval_s, dtype=np.float64)
    if not (np.all(interval >= 0.0) and np.all(np.isfinite(interval))):
        raise ValueError("interval_s must be non-negative and finite")
    return interval
