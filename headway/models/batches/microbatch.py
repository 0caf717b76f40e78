"""Structured Streaming's batches in steady state: durations, intervals, overruns, stability."""

from __future__ import annotations

from dataclasses import fields
from operator import attrgetter
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from headway.few_numbers import is_true_of_all, together
from headway.lazy_classes import dataclass
from headway.models.arrays import Array, Numeric
from headway.models.batches.intervals import NARROWEST_LOG_SD, IntervalMoments, interval_moments

BoolArray: TypeAlias = NDArray[np.bool_]

_TOLERANCE_RATIO = 1e-10
_MOST_ITERATIONS = 300
_MOST_CARRIED = 0.999  # beyond, lasting noise piles up without bound
_LARGEST_CV = 30.0  # beyond, the iteration diverges to an infinite variance


@dataclass(frozen=True, slots=True)
class AffineDuration:
    """How long a batch of n rows takes: ``fixed_s + per_row_s * n``, with noise around it (B1)."""

    fixed_s: Numeric  # of a batch without rows, > 0 [s]
    per_row_s: Numeric  # additional time per row, >= 0 [s/row]
    relative_noise: Numeric = 0.0  # standard deviation in proportion to the duration, >= 0 [-]
    additive_sd_s: Numeric = 0.0  # standard deviation that does not depend on rows, >= 0 [s]
    after_commit_s: Numeric = 0.0  # part of fixed_s after the sink shows the rows, 0 to fixed_s [s]
    lasting_share: Numeric = 0.0  # share of relative_noise^2 that lasts over batches, 0 to 1 [-]
    persistence_ratio: Numeric = 0.0  # what of that remains in the next batch, 0 to below 1 [-]

    def __post_init__(self) -> None:
        fixed_s, after_s = _number(self.fixed_s), _number(self.after_commit_s)
        if not is_true_of_all(fixed_s > 0.0):
            raise ValueError("fixed_s must be positive")
        for name in ("per_row_s", "relative_noise", "additive_sd_s"):
            if not is_true_of_all(_number(getattr(self, name)) >= 0.0):
                raise ValueError(f"{name} must not be negative")
        if not (is_true_of_all(after_s >= 0.0) and is_true_of_all(after_s <= fixed_s)):
            raise ValueError("after_commit_s must lie between 0 and fixed_s")


@dataclass(frozen=True, slots=True)
class _Inputs:
    """What a steady state follows from; fields that are not described are of `AffineDuration`."""

    fixed_s: Array  # batch duration without rows [s]
    offered_load_ratio: Array  # r: processing time that one second of input adds [-]
    trigger_s: Array  # trigger interval; 0 starts the next batch at once [s]
    relative_noise: Array
    additive_sd_s: Array
    count_noise_s: Array  # variance of the duration by row counts, per second of interval [s]
    burst_s: Array  # work beyond the mean in the batch of a row, since rows arrive together [s]
    after_commit_s: Array
    lasting_share: Array
    persistence_ratio: Array


@dataclass(frozen=True, slots=True)
class SteadyState(_Inputs):
    """The stationary behaviour of a query; every array has the shape of the settings."""

    mean_duration_s: Array  # of a batch; inf where unstable [s]
    sd_duration_s: Array  # standard deviation of that; inf where unstable [s]
    mean_interval_s: Array  # between the starts of two batches; inf where unstable [s]
    mean_square_interval_s2: Array  # of that time; inf where unstable [s^2]
    overrun_probability: Array  # that a batch takes longer than trigger_s; 1 where unstable [-]
    utilization_ratio: Array  # share of time with a batch; 1 where free running or unstable [-]
    is_stable: BoolArray  # whether a stationary distribution with finite variance exists
    next_correlation: Array  # of a duration with the noise of the next batch; 0 where unstable [-]


_inputs_of = attrgetter(*(field.name for field in fields(_Inputs)))
values_of = attrgetter(*(field.name for field in fields(SteadyState)))


def steady_state(
    duration: AffineDuration, rate_per_s: Numeric, trigger_s: Numeric, dispersion: Numeric = 1.0
) -> SteadyState:
    r"""Stationary batch durations and intervals of a micro-batch query.

    Parameters
    ----------
    rate_per_s : float or (n,) array, > 0, input rate [rows/s]
    trigger_s : float or (n,) array, >= 0: 0 starts the next batch at once [s]
    dispersion : float or (n,) array, >= 0, variance over mean of row counts; 1 is Poisson [-]

    **(B1)** Variance of the duration of a batch of `n` rows: `Var(D | n) = c^2(a+bn)^2 + sd^2`. `D`
    is taken as lognormal.

    **(B3)** Steady state: the duration has the mean `m = a + r E[T]` and the variance `v =
    c^2(m^2+r^2 Var T) + r^2 Var T + sd^2 + b^2 λ φ E[T]`, solved from below by
    Newton's rule in both unknowns. Without a solution (`r ≥ 1`, or noise so strong that the
    variance diverges), the state is unstable and its times are `inf`.

    **(B4)** The variance of the number of rows per interval is `φ` times its mean. Rows arrive as
    if in groups of `φ`, so a row finds `φ` rows beyond the mean in its own batch: `b φ` is added to
    `D'`.

    **(B15)** Lasting noise, to second order: the share `ρ` of the noise variance lasts, and `ψ` of
    it remains from batch to batch. With `p = P(D > B)`, an interval passes on `k = r p` of a
    duration's excess, so a duration and the noise of the next batch have the covariance
    `m ρ ψ c^2/(1-kψ)`. With `g = k ρ ψ c^2/(1-kψ)`, `g m` is added to the mean of (B3) and
    `2 g m^2` to its variance. In (B6), the score of an interval's batch makes the next batch
    slower, according to the correlation of the two. Valid for light noise.

    theory.md (B1)-(B4), (B15). Compared with the event simulation, p99 of the latency is within
    1.2% for noise up to 0.1 and offered load up to 0.7, and within 6% for noise 0.3. Do not use it
    for offered load from 0.9 with noise from 0.3 (about 40% low), nor where noise lasts and batches
    mostly overrun (p99 16% low at `r = 0.7, c = 0.1, ρ = 0.75, ψ = 0.95`): use (T4) there.

    >>> state = steady_state(AffineDuration(2.0, 3e-4, 0.1), 1500.0, 8.0)
    >>> float(state.mean_duration_s), float(state.overrun_probability)
    (5.600, 0.0002)
    """
    rate, trigger, scatter = (
        np.asarray(value, dtype=np.float64) for value in (rate_per_s, trigger_s, dispersion)
    )
    if not ((rate > 0.0).all() and (trigger >= 0.0).all() and (scatter >= 0.0).all()):
        raise ValueError("need rate_per_s > 0, trigger_s >= 0 and dispersion >= 0")
    if not all(np.isfinite(values).all() for values in (rate, trigger, scatter)):
        raise ValueError("rate_per_s, trigger_s and dispersion must be finite")
    per_row = np.asarray(duration.per_row_s, dtype=np.float64)
    of_settings = together(
        duration.fixed_s,
        per_row * rate,
        trigger,
        duration.relative_noise,
        duration.additive_sd_s,
        per_row * per_row * rate * scatter,
        per_row * scatter,
        duration.after_commit_s,
        duration.lasting_share,
        duration.persistence_ratio,
    )
    inputs = _Inputs(*map(np.array, of_settings))
    mean, variance, stable = _fixed_point(inputs)
    moments = interval_moments(inputs.trigger_s, mean, variance)
    return SteadyState(
        **{field.name: getattr(inputs, field.name) for field in fields(inputs)},
        mean_duration_s=np.where(stable, mean, np.inf),
        sd_duration_s=np.where(stable, np.sqrt(variance), np.inf),
        mean_interval_s=np.where(stable, moments.mean, np.inf),
        mean_square_interval_s2=np.where(stable, moments.mean_square, np.inf),
        overrun_probability=np.where(stable, moments.overrun_probability, 1.0),
        utilization_ratio=np.where(stable, np.minimum(mean / moments.mean, 1.0), 1.0),
        is_stable=stable,
        next_correlation=np.where(stable, _next_correlation(inputs, moments), 0.0),
    )


def _number(value: Numeric) -> Numeric:
    """A number as it is, and anything else as an array."""
    return value if isinstance(value, float) else np.asarray(value)


def _next_correlation(inputs: _Inputs, moments: IntervalMoments) -> Array:
    """Correlation of a duration with the noise of the next batch (B15)."""
    relative, persistence = inputs.relative_noise, inputs.persistence_ratio
    carried = inputs.offered_load_ratio * persistence * moments.overrun_probability
    shared = relative * relative * inputs.lasting_share * persistence
    shared = shared / (1.0 - np.minimum(carried, _MOST_CARRIED))
    # Of the relative spreads of both.
    sd_ratio = np.sqrt(moments.duration_variance_s2) / moments.duration_mean_s
    product = np.maximum(sd_ratio, NARROWEST_LOG_SD) * relative
    return np.where(
        product > 0.0, np.minimum(shared / np.where(product > 0.0, product, 1.0), 1.0), 0.0
    )


def _fixed_point(inputs: _Inputs) -> tuple[Array, Array, BoolArray]:
    """Mean and variance of the duration, and stability: (B3).

    The duration determines the interval, and the interval determines the rows.
    """
    shape = inputs.fixed_s.shape
    flat = _Inputs(*(values.ravel() for values in _inputs_of(inputs)))
    mean = flat.fixed_s + np.minimum(flat.offered_load_ratio, 1.0) * flat.trigger_s
    variance = (flat.relative_noise * mean) ** 2 + flat.additive_sd_s**2
    stable = np.zeros(mean.shape, dtype=np.bool_)
    # Both maps increase: from below, the iteration reaches the smallest solution.
    open_settings = np.flatnonzero(flat.offered_load_ratio < 1.0)
    of_open = _Map(flat)
    for _ in range(_MOST_ITERATIONS):
        if not open_settings.size:
            break
        old_mean, old_variance = mean[open_settings], variance[open_settings]
        if open_settings.size < of_open.load.size:
            of_open = _Map(_Inputs(*(values[open_settings] for values in _inputs_of(flat))))
        new_mean, new_variance = of_open.newton_step(old_mean, old_variance)
        mean[open_settings], variance[open_settings] = new_mean, new_variance
        tolerance = _TOLERANCE_RATIO * new_mean
        settled = (np.abs(new_mean - old_mean) <= tolerance) & (
            np.abs(new_variance - old_variance) <= tolerance * new_mean
        )
        stable[open_settings[settled]] = True
        diverged = new_variance > (_LARGEST_CV * new_mean) ** 2
        open_settings = open_settings[~(settled | diverged)]
    return mean.reshape(shape), variance.reshape(shape), stable.reshape(shape)


class _Map:
    """From mean and variance of the duration to those of the next one (B3), at some settings.

    What does not depend on either is computed once.
    """

    def __init__(self, inputs: _Inputs) -> None:
        self.inputs, self.load = inputs, inputs.offered_load_ratio
        self.load_squared, self.noise_squared = self.load**2, inputs.relative_noise**2
        self.additive_variance_s2 = inputs.additive_sd_s**2
        self.spread = self.load_squared * (1.0 + self.noise_squared)
        self.lasting = self.noise_squared * inputs.lasting_share * inputs.persistence_ratio
        # More than what light noise could add leaves no moments, although slow periods end.
        self.most_piled_up = 0.5 * (1.0 - self.load)

    def newton_step(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Newton's rule in mean and variance together, since they are strongly coupled."""
        inputs, load, counts = self.inputs, self.load, self.inputs.count_noise_s
        moments = interval_moments(inputs.trigger_s, mean, variance)
        mean_by_mean, mean_by_variance, square_by_mean, square_by_variance = moments.slopes()
        piled_up = self._piled_up(moments)
        mean_gap = inputs.fixed_s + load * moments.mean + piled_up * mean - mean
        variance_gap = self._variance(mean, moments) + 2.0 * piled_up * mean**2 - variance

        # Derivatives of the map: the first letter is the result, the second the argument.
        twice_spread = 2.0 * self.spread
        mm, mv = load * mean_by_mean, load * mean_by_variance
        vm = 2.0 * self.noise_squared * mean + counts * mean_by_mean
        vm += self.spread * square_by_mean
        vm -= twice_spread * moments.mean * mean_by_mean
        vv = counts * mean_by_variance + self.spread * square_by_variance
        vv -= twice_spread * moments.mean * mean_by_variance

        determinant = (1.0 - mm) * (1.0 - vv) - mv * vm
        # Where Newton's rule does not apply, plain iteration distinguishes growth from convergence.
        plain = (determinant <= 1e-9) | (mm >= 1.0) | (vv >= 1.0)
        divisor = np.where(plain, 1.0, determinant)
        newton_mean = ((1.0 - vv) * mean_gap + mv * variance_gap) / divisor
        newton_variance = (vm * mean_gap + (1.0 - mm) * variance_gap) / divisor
        return (
            np.maximum(mean + np.where(plain, mean_gap, newton_mean), inputs.fixed_s),
            np.maximum(variance + np.where(plain, variance_gap, newton_variance), 0.0),
        )

    def _piled_up(self, moments: IntervalMoments) -> Array:
        """What lasting noise adds to the mean: an interval and its batch are slow together. [-]"""
        carried = self.load * moments.overrun_probability
        lasting = np.minimum(carried * self.inputs.persistence_ratio, _MOST_CARRIED)
        return np.asarray(np.minimum(carried * self.lasting / (1.0 - lasting), self.most_piled_up))

    def _variance(self, mean: Array, moments: IntervalMoments) -> Array:
        spread = self.load_squared * moments.variance
        return (
            self.noise_squared * (mean * mean + spread)
            + spread
            + self.additive_variance_s2
            + self.inputs.count_noise_s * moments.mean
        )
