"""A job at many settings at once: from its profile to the latency law of each.

The vectorised path that prediction and search share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray

from headway.domain import JobProfile
from headway.models.arrays import Array, Numeric, open_probability
from headway.models.batches.latency_law import LatencyLaw
from headway.models.batches.microbatch import AffineDuration, BoolArray, SteadyState, steady_state
from headway.models.batches.tuple_latency import tuple_latency_cdf, tuple_latency_mean
from headway.models.job.duration import DurationModel, level_spans
from headway.models.laws.distributions import lognormal_cdf

AFTER_COMMIT_PHASES = ("commit_offsets", "other")
MOST_BATCH_ROWS = 1e15
_LEAST_TAIL = 1e-16
_MOST_DOUBLINGS = 60
_MOST_ROOT_STEPS = 100
# Gauss-Hermite: exact for moments of a normal variable up to the ninth.
_SLOW_SCORES, _SLOW_TOTALS = hermegauss(5)
_SLOW_WEIGHTS = _SLOW_TOTALS / _SLOW_TOTALS.sum()


class SettingLaw(NamedTuple):
    """Durations and latencies at an array of settings: theory.md (T4).

    The state has one more axis than the settings, the last: levels of the slow noise, which
    outlasts many batches, each with its share of time.
    """

    state: SteadyState
    weights: Array

    @property
    def is_stable(self) -> BoolArray:
        """Whether the backlog stays bounded at every level of the slow noise."""
        return np.asarray(self.state.is_stable.all(axis=-1), dtype=np.bool_)

    @property
    def inflation_ratio(self) -> Array:
        """Work that a second of input brings, at the middle level [s/s]."""
        return self._middle(self.state.inflation_ratio)

    @property
    def overrun_probability(self) -> Array:
        """Probability that a batch outlasts the trigger interval."""
        return self._average(self.state.overrun_probability)

    @property
    def utilization_ratio(self) -> Array:
        """Share of time in which a batch runs."""
        return self._average(self.state.utilization_ratio)

    def batch_duration_mean_s(self) -> Array:
        """Mean batch duration [s]."""
        return self._average(self.state.mean_duration_s)

    def batch_duration_cdf(self, x_s: Numeric) -> Array:
        """Share of batches that take at most ``x_s``; 0 where unstable."""
        stable = self.state.is_stable
        mean_s = np.where(stable, self.state.mean_duration_s, 1.0)
        sd_s = np.where(stable, self.state.sd_duration_s, 0.0)
        points = np.asarray(x_s, dtype=np.float64)[..., np.newaxis]
        return self._average(np.where(stable, lognormal_cdf(points, mean_s, sd_s / mean_s), 0.0))

    def batch_duration_quantile_s(self, q: Numeric) -> Array:
        """Quantile of the batch duration [s]; ``inf`` where unstable."""
        return averaged_quantile_s(
            self.batch_duration_cdf, self.batch_duration_mean_s(), q, self.is_stable
        )

    def tuple_latency_mean_s(self) -> Array:
        """Mean tuple latency [s]; ``inf`` where unstable."""
        return self._average(tuple_latency_mean(self.state))

    def tuple_latency_cdf(self, x_s: Numeric) -> Array:
        """Share of rows with a latency of at most ``x_s``."""
        points = np.asarray(x_s, dtype=np.float64)[..., np.newaxis]
        return self._average(tuple_latency_cdf(self.state, points))

    def tuple_latency_quantile_s(self, q: Numeric) -> Array:
        """Quantile of the tuple latency [s]; ``inf`` where unstable."""
        # Its nodes are the same wherever it is evaluated.
        law = LatencyLaw(self.state)
        return averaged_quantile_s(
            lambda x_s: self._average(law.cdf(x_s[..., np.newaxis])),
            self.tuple_latency_mean_s(),
            q,
            self.is_stable,
        )

    def take(self, chosen: NDArray[np.intp] | BoolArray) -> SettingLaw:
        """The law at some of the settings."""
        values = (getattr(self.state, field.name)[chosen] for field in fields(self.state))
        return SettingLaw(SteadyState(*values), self.weights)

    def _average(self, values: Array) -> Array:
        return np.asarray(np.sum(values * self.weights, axis=-1))

    def _middle(self, values: Array) -> Array:
        return np.asarray(values[..., values.shape[-1] // 2])


def duration_model(profile: JobProfile, num_slots: int, shuffle_partitions: int) -> DurationModel:
    """Mean batch duration by rows at a number of slots and partitions.

    Notes
    -----
    theory.md (T1).
    """
    return DurationModel(
        sum(phase.mean_s for phase in profile.driver_phases),
        level_spans(profile.stages, num_slots, shuffle_partitions, profile.num_state_rows),
    )


def after_commit_s(profile: JobProfile) -> float:
    """Time of a batch that passes after its rows are committed: no row waits for it [s].

    Notes
    -----
    theory.md (T1).
    """
    return sum(phase.mean_s for phase in profile.driver_phases if phase.name in AFTER_COMMIT_PHASES)


def settled_batch_rows(
    model: DurationModel, rate_per_s: Numeric, trigger_s: Numeric, factor: Numeric = 1.0
) -> Array:
    r"""Rows of a batch that takes just as long as its rows took to arrive.

    Parameters
    ----------
    model : DurationModel
        Mean duration by rows.
    rate_per_s, trigger_s : float or (n,) array
        Arrivals [rows/s] and trigger interval [s].
    factor : float or (n,) array, > 0
        Multiplies every duration. [-]

    Returns
    -------
    array
        Inputs broadcast; very large where batches grow without bound. [rows]

    Notes
    -----
    theory.md (T3). Fixed point of ``n = rate * max(trigger, factor * mean_s(n))``; the duration
    is concave in the rows, so Newton's rule reaches it from the right.

    Examples
    --------
    >>> float(settled_batch_rows(DurationModel(0.2, ()), 1000.0, 1.0))
    1000.0
    >>> float(settled_batch_rows(DurationModel(0.2, ()), 1000.0, 0.0))
    200.0
    """
    rate, trigger, factors = _together(rate_per_s, trigger_s, factor)
    rows = rate * np.maximum(trigger, factors * model.mean_s(np.ones_like(rate)))
    for _ in range(60):
        duration_s, slope_s = factors * model.mean_s(rows), factors * model.slope_s(rows)
        converging = rate * slope_s < 1.0
        newton = (
            rate * (duration_s - slope_s * rows) / np.where(converging, 1.0 - rate * slope_s, 1.0)
        )
        grown = np.where(converging, newton, 4.0 * np.maximum(rows, 1.0))
        new_rows = np.minimum(np.maximum(rate * trigger, grown), MOST_BATCH_ROWS)
        settled = bool(np.all(np.abs(new_rows - rows) <= 1e-9 * (1.0 + rows)))
        rows = new_rows
        if settled:
            break
    return np.asarray(rows)


def setting_law(
    profile: JobProfile,
    model: DurationModel,
    *,
    rate_per_s: Numeric,
    trigger_s: Numeric,
    factor: Numeric = 1.0,
) -> SettingLaw:
    """Latency law at many rates, triggers and duration factors, and many slots and partitions.

    Parameters
    ----------
    profile : JobProfile
        The job: its noise, drift and arrivals.
    model : DurationModel
        Mean duration by rows at the slots and partitions; a stack of models takes one axis more
        than the arrays below have, for the levels of the slow noise.
    rate_per_s, trigger_s, factor : float or (n,) array
        Arrivals [rows/s], trigger interval [s], multiplier of every duration [-].

    Notes
    -----
    theory.md (T4), (B1)-(B6): the duration is replaced by its tangent at the settled
    batch, which is where the query works. The lasting part of the noise multiplies all durations
    for a while; the rest is drawn anew for every batch.
    """
    rate, trigger, factors = _at_slow_levels(profile, rate_per_s, trigger_s, factor)
    rows = settled_batch_rows(model, rate, trigger, factors)
    slope_s = factors * model.slope_s(rows)
    fixed_s = np.maximum(factors * model.mean_s(rows) - slope_s * rows, 1e-6)
    state = steady_state(
        AffineDuration(
            fixed_s=fixed_s,
            per_row_s=slope_s,
            relative_noise=_fresh_noise_ratio(profile),
            after_commit_s=np.minimum(factors * after_commit_s(profile), fixed_s),
        ),
        rate,
        trigger,
        profile.arrivals.dispersion_ratio,
    )
    return SettingLaw(state, _SLOW_WEIGHTS)


def load_ratio(
    profile: JobProfile,
    model: DurationModel,
    *,
    rate_per_s: Numeric,
    trigger_s: Numeric,
    factor: Numeric,
    highest_inflation: float,
) -> Array:
    """Work that a second of input brings, over the most that is allowed.

    Parameters
    ----------
    profile, model, rate_per_s, trigger_s, factor
        As in :func:`setting_law`.
    highest_inflation : float, > 0 and <= 1
        The most work per second of input at the middle level of the slow noise [s/s].

    Returns
    -------
    array
        Inputs broadcast; up to 1 the backlog stays bounded. [-]

    Notes
    -----
    theory.md (P3). Where batches outgrow the trigger interval they run back to back, and by (B8)
    their variance is finite if ``r^2 (1 + c^2) < 1``, which every level of the slow noise must
    keep. Free of the fixed point of (B3), which converges slowly where it barely exists.
    """
    rate, trigger, factors = _at_slow_levels(profile, rate_per_s, trigger_s, factor)
    rows = settled_batch_rows(model, rate, trigger, factors)
    inflation = rate * factors * model.slope_s(rows)
    middle = inflation[..., inflation.shape[-1] // 2]
    worst = np.max(inflation, axis=-1) * np.sqrt(1.0 + _fresh_noise_ratio(profile) ** 2)
    return np.asarray(np.maximum(middle / highest_inflation, worst))


def allowed_inflation(profile: JobProfile, highest_inflation: float) -> float:
    """The mean work per second of input at which `load_ratio` is 1, if no row comes cheaper [s/s].

    Notes
    -----
    theory.md (P3).
    """
    levels = _slow_levels(profile)
    worst = float(levels[-1]) * np.sqrt(1.0 + _fresh_noise_ratio(profile) ** 2)
    return float(min(highest_inflation / levels[len(levels) // 2], 1.0 / worst))


def _at_slow_levels(
    profile: JobProfile, rate_per_s: Numeric, trigger_s: Numeric, factor: Numeric
) -> tuple[Array, Array, Array]:
    """Settings with one more axis: the levels of the slow noise, whose mean is kept at one."""
    rate, trigger, factors = _together(rate_per_s, trigger_s, factor)
    levelled = factors[..., np.newaxis] * _slow_levels(profile)
    return rate[..., np.newaxis], trigger[..., np.newaxis], levelled


def _slow_levels(profile: JobProfile) -> Array:
    slow_sd = np.sqrt(profile.noise.autocorrelation) * profile.noise.batch_ratio
    return np.asarray(np.exp(slow_sd * _SLOW_SCORES - 0.5 * slow_sd**2))


def _fresh_noise_ratio(profile: JobProfile) -> float:
    """Coefficient of variation of the part of the noise that every batch draws anew."""
    return float(np.sqrt(1.0 - profile.noise.autocorrelation) * profile.noise.batch_ratio)


def averaged_quantile_s(
    cdf: Callable[[Array], Array], guess_s: Array, q: Numeric, stable: BoolArray
) -> Array:
    """Inverse of a distribution function that is an average, for every pair of ``q`` and setting.

    Parameters
    ----------
    cdf : callable
        Takes moments [s], of the shape of the pairs.
    guess_s : (n,) array, > 0
        Where to look first, about the mean; ignored where unstable. [s]
    q : float or array, 0 < q < 1
        Probability; broadcasts against the settings. [-]
    stable : (n,) bool array
        Settings that have a law; the quantile is ``inf`` elsewhere.

    Raises
    ------
    ValueError
        If ``q`` is outside its range.
    """
    probability, guess = np.broadcast_arrays(open_probability(q), np.where(stable, guess_s, 1.0))

    def excess(x_s: Array) -> Array:
        # Tails are nearly straight in the logarithm of what lies beyond.
        beyond = np.maximum(1.0 - cdf(x_s), _LEAST_TAIL)
        return np.where(stable, np.log((1.0 - probability) / beyond), 0.0)

    return np.where(stable, increasing_root(excess, guess), np.inf)


def increasing_root(
    function: Callable[[Array], Array], guess: Array, tolerance_ratio: float = 1e-10
) -> Array:
    """Where increasing functions cross zero, all at once.

    Parameters
    ----------
    function : callable
        Increasing in each element of its array argument.
    guess : (n,) array, >= 0
        The root is looked for up to twice that, and beyond where it is not found there.
    tolerance_ratio : float, > 0
        Accuracy, relatively. [-]

    Returns
    -------
    array
        Shape of ``guess``. The function is not positive there; 0 where it is positive throughout.

    Notes
    -----
    Chandrupatla 1997: inverse quadratic interpolation where that is safe, else bisection.

    Examples
    --------
    >>> increasing_root(lambda x: x**2 - np.array([4.0, 9.0]), np.full(2, 2.5))
    array([2., 3.])
    """
    newest, other = np.zeros_like(guess), 2.0 * guess
    f_newest, f_other = function(newest), function(other)
    rootless = f_newest > 0.0
    for _ in range(_MOST_DOUBLINGS):
        short = f_other < 0.0
        if not np.any(short):
            break
        newest, f_newest = np.where(short, other, newest), np.where(short, f_other, f_newest)
        other = np.where(short, 2.0 * other, other)
        f_other = function(other)
    step = np.full_like(guess, 0.5)
    for _ in range(_MOST_ROOT_STEPS):
        point = newest + step * (other - newest)
        value = function(point)
        same_side = np.sign(value) == np.sign(f_newest)
        third, f_third = np.where(same_side, newest, other), np.where(same_side, f_newest, f_other)
        other, f_other = np.where(same_side, other, newest), np.where(same_side, f_other, f_newest)
        newest, f_newest = point, value
        width, scale = np.abs(other - newest), np.maximum(newest, other)
        if np.all(rootless | (width <= tolerance_ratio * scale) | (f_newest == 0.0)):
            break
        # So small a step beyond an end that is all but the root brings the other end close.
        smallest = 0.5 * tolerance_ratio * scale / np.where(width > 0.0, width, 1.0)
        step = _interpolated_step(newest, other, third, f_newest, f_other, f_third)
        step = np.clip(step, np.minimum(smallest, 0.5), np.maximum(1.0 - smallest, 0.5))
    return np.where(rootless, 0.0, np.where(f_newest <= 0.0, newest, other))


def _interpolated_step(
    newest: Array, other: Array, third: Array, f_newest: Array, f_other: Array, f_third: Array
) -> Array:
    """Share of the way from the newest point to the one across the zero; a half where unsafe."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        place = (newest - other) / (third - other)
        height = (f_newest - f_other) / (f_third - f_other)
        safe = (height**2 < place) & ((1.0 - height) ** 2 < 1.0 - place)
        step = f_newest / (f_other - f_newest) * f_third / (f_other - f_third) + (
            (third - newest) / (other - newest)
        ) * f_newest / (f_third - f_newest) * f_other / (f_third - f_other)
    return np.where(safe & np.isfinite(step), step, 0.5)


def _together(*values: Numeric) -> tuple[Array, ...]:
    return tuple(np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in values)))
