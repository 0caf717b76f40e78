"""A job at many settings at once: from its profile to the latency law of each.

The vectorised path that prediction and search share.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headway.domain import JobProfile
from headway.models.arrays import Array, Numeric
from headway.models.distributions import bisect_increasing, lognormal_cdf
from headway.models.duration import DurationModel, level_spans
from headway.models.microbatch import AffineDuration, BoolArray, SteadyState, steady_state
from headway.models.tuple_latency import (
    tuple_latency_cdf,
    tuple_latency_mean,
    tuple_latency_quantile,
)

AFTER_COMMIT_PHASES = ("commit_offsets", "other")
_MOST_BATCH_ROWS = 1e15
# Gauss-Hermite: exact for moments of a normal variable up to the ninth.
_SLOW_SCORES = np.array([-2.8569700, -1.3556262, 0.0, 1.3556262, 2.8569700])
_SLOW_WEIGHTS = np.array([0.0112574, 0.2220759, 0.5333333, 0.2220759, 0.0112574])


class SettingLaw(NamedTuple):
    """Durations and latencies at an array of settings.

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

    def batch_duration_quantile_s(self, q: float) -> Array:
        """Quantile of the batch duration [s]."""
        mean_s = np.where(self.state.is_stable, self.state.mean_duration_s, 1.0)
        sd_s = np.where(self.state.is_stable, self.state.sd_duration_s, 0.0)
        high = np.max(mean_s + 10.0 * sd_s, axis=-1) * 2.0
        return self._finite(
            bisect_increasing(
                lambda x: self._average(lognormal_cdf(x[..., np.newaxis], mean_s, sd_s / mean_s)),
                np.asarray(q),
                np.zeros_like(high),
                high,
            )
        )

    def tuple_latency_mean_s(self) -> Array:
        """Mean tuple latency [s]; ``inf`` where unstable."""
        return self._average(tuple_latency_mean(self.state))

    def tuple_latency_cdf(self, x_s: Numeric) -> Array:
        """Share of rows with a latency of at most ``x_s``."""
        points = np.asarray(x_s, dtype=np.float64)[..., np.newaxis]
        return self._average(tuple_latency_cdf(self.state, points))

    def tuple_latency_quantile_s(self, q: float) -> Array:
        """Quantile of the tuple latency [s]; ``inf`` where unstable."""
        at_levels = np.where(self.state.is_stable, tuple_latency_quantile(self.state, q), 1.0)
        return self._finite(
            bisect_increasing(
                self.tuple_latency_cdf,
                np.asarray(q),
                at_levels.min(axis=-1),
                at_levels.max(axis=-1),
            )
        )

    def _average(self, values: Array) -> Array:
        return np.asarray(np.sum(values * self.weights, axis=-1))

    def _middle(self, values: Array) -> Array:
        return np.asarray(values[..., values.shape[-1] // 2])

    def _finite(self, values: Array) -> Array:
        return np.where(self.is_stable, values, np.inf)


def duration_model(profile: JobProfile, num_slots: int, shuffle_partitions: int) -> DurationModel:
    """Mean batch duration by rows at a number of slots and partitions.

    Notes
    -----
    theory.md (T1).
    """
    return DurationModel(
        sum(phase.mean_s for phase in profile.driver_phases),
        level_spans(profile.stages, num_slots, shuffle_partitions),
    )


def after_commit_s(profile: JobProfile) -> float:
    """Time of a batch that passes after its rows are committed: no row waits for it [s]."""
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
        new_rows = np.minimum(np.maximum(rate * trigger, grown), _MOST_BATCH_ROWS)
        settled = np.allclose(new_rows, rows, rtol=1e-9, atol=1e-9)
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
    theory.md (T1)-(T4), (B1)-(B6): the duration is replaced by its tangent at the settled
    batch, which is where the query works. The lasting part of the noise multiplies all durations
    for a while; the rest is drawn anew for every batch.
    """
    rate, trigger, factors = _together(rate_per_s, trigger_s, factor)
    # The mean of the lognormal level is kept at one.
    slow_sd = np.sqrt(profile.noise.autocorrelation) * profile.noise.batch_ratio
    factors = factors[..., np.newaxis] * np.exp(slow_sd * _SLOW_SCORES - 0.5 * slow_sd**2)
    rate, trigger = rate[..., np.newaxis], trigger[..., np.newaxis]
    rows = settled_batch_rows(model, rate, trigger, factors)
    slope_s = factors * model.slope_s(rows)
    fixed_s = np.maximum(factors * model.mean_s(rows) - slope_s * rows, 1e-6)
    state = steady_state(
        AffineDuration(
            fixed_s=fixed_s,
            per_row_s=slope_s,
            relative_noise=np.sqrt(1.0 - profile.noise.autocorrelation) * profile.noise.batch_ratio,
            after_commit_s=np.minimum(factors * after_commit_s(profile), fixed_s),
        ),
        rate,
        trigger,
        profile.arrivals.dispersion_ratio,
    )
    return SettingLaw(state, _SLOW_WEIGHTS)


def _together(*values: Numeric) -> tuple[Array, ...]:
    return tuple(np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in values)))
