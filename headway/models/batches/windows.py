"""Latency of a window, from its end in event time to the commit of its final result."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from headway.domain import EventTimeWindow, Finding, FindingCode, JobProfile, ObservedArrivals
from headway.lazy_classes import dataclass
from headway.models.arrays import Array, Numeric
from headway.models.batches.intervals import interval_moments
from headway.models.batches.microbatch import BoolArray, SteadyState
from headway.models.laws.distributions import (
    gauss_legendre,
    lognormal_quantile,
    uniform_plus_lognormal_cdf,
)
from headway.models.laws.inverse import averaged_quantile_s

_NUM_NODES = 24
_MOST_PHASES = 32  # more positions on the trigger grid are as good as a uniform one
_MOST_PASSED = 8  # lags that vary over more of these positions are, too
_TICKS_PER_S = 1e3  # Spark keeps triggers, watermarks and windows in whole milliseconds
_ROUNDING_S = 1e-7
_HIGHEST_QUANTILE = 1.0 - 1e-15
_FINAL_IN_ONE_BATCH = ("update", "complete")
# Spark's watermark counts whole milliseconds, and a window that ends on it has ended.
_HALF_A_MILLISECOND_S = 0.0005

#: Lags of the newest rows of batches, arrival less event time [s], and the shares of batches with
#: these lags, which add up to 1; both have one axis.
Lags: TypeAlias = tuple[Array, Array]


@dataclass(frozen=True, slots=True)
class WindowLatency:
    """Distribution of the latency, a mixture: each part is a uniform wait plus a lognormal time."""

    watermark_delay_s: Array  # part of the latency; 0 outside append mode [s]
    fixed_s: Array  # what every window takes on top of the watermark delay [s]
    is_finite: BoolArray  # whether windows are ever emitted; times are inf elsewhere
    # From here on with one axis more than the settings, for the parts.
    weight: Array  # probability of the part [-]
    wait_low_s: Array  # shortest wait [s]
    wait_width_s: Array  # longest wait less shortest [s]
    batch_mean_s: Array  # mean of the lognormal time [s]
    batch_sd_s: Array  # standard deviation of the lognormal time [s]

    @property
    def mean_s(self) -> Array:
        """Mean. [s]"""
        parts = self.wait_low_s + 0.5 * self.wait_width_s + self.batch_mean_s
        above_delay = self.fixed_s + (self.weight * parts).sum(axis=-1)
        return np.where(self.is_finite, self.watermark_delay_s + above_delay, np.inf)

    def cdf(self, x_s: Numeric) -> Array:
        """Probability that the latency is at most ``x_s``; 0 where it is infinite. [-]"""
        point = np.asarray(x_s, dtype=np.float64) - self.watermark_delay_s - self.fixed_s
        laws = self.wait_width_s, self.batch_mean_s, self.batch_sd_s
        parts = uniform_plus_lognormal_cdf(point[..., np.newaxis] - self.wait_low_s, *laws)
        mixed = np.clip((self.weight * parts).sum(axis=-1), 0.0, 1.0)
        return np.where(self.is_finite, mixed, 0.0)

    def quantile_s(self, q: Numeric) -> Array:
        """Quantile, for ``q`` strictly between 0 and 1; ``inf`` where it is infinite. [s]"""
        return averaged_quantile_s(self.cdf, self.mean_s, q, self.is_finite)


def append_window_latency(
    state: SteadyState, slide_s: Numeric, watermark_delay_s: Numeric, lag_s: Numeric | Lags
) -> WindowLatency:
    r"""Latency of windows in append mode: one batch moves the watermark, the next one emits.

    Parameters
    ----------
    slide_s : float or array, >= 0
        Distance of two ends of windows, one of which is taken to be at the epoch. 0 means anywhere:
        a session ends one session gap after its last row. [s]
    watermark_delay_s : float or array, >= 0, of the watermark behind the newest event time [s]
    lag_s : float or array or Lags, finite
        Arrival less event time of the newest rows; in a sparse stream, plus the mean gap between
        two rows. With several watermarked inputs under policy ``min``, that of the slowest.
        Negative if a batch still reads rows that arrive just after its trigger. [s]

    **(W2)** Append mode: batch `k`, which reads the row of (W1), moves the watermark at its end,
    and batch `k + 1` emits the window: `L_w = w + δ + ξ + max(B, D_k) + D'_(k+1)`,
    `E[D_k | T'] = a + rT'`, `E[D_(k+1) | D_k] = a + r max(B, D_k)`. A no-data batch runs at the
    same trigger. As long as batches stay on the grid, this is `w + δ + ξ + B + D`.

    A window end that coincides with a trigger to the millisecond misses that trigger (W1).

    >>> from headway.models.batches.microbatch import AffineDuration, steady_state
    >>> state = steady_state(AffineDuration(2.0, 3e-4, 0.1), 1000.0, 10.0, dispersion=0.0)
    >>> [float(append_window_latency(state, 60.0, delay_s, 0.5).mean_s) for delay_s in (10.0, 9.4)]
    [35.00, 25.00]
    """
    delay = _checked("watermark_delay_s", watermark_delay_s)
    return _mixture(state, slide_s, delay, _lags(lag_s), num_batches=2)


def update_window_latency(
    state: SteadyState, slide_s: Numeric, last_lag_s: Numeric | Lags
) -> WindowLatency:
    r"""Latency of a window's final value in update mode, and in complete mode.

    Parameters
    ----------
    state, slide_s
        As in `append_window_latency`. In complete mode each batch writes all result keys:
        ``AffineDuration.fixed_s`` must include the time for their largest number.
    last_lag_s : float or array or Lags, finite
        Arrival of a window's last row less the window's end: the largest lag over the source's
        partitions, or, for a session, that lag less the session gap. [s]

    **(W3)** Update and complete mode: `δ_last + ξ + D'_k`, with `δ_last` the largest lag of the
    window's rows. The distribution is a mixture over `T'` (the atom at `B`, split over the `n`
    positions, and 24 nodes beyond it) of a uniform wait plus (D4) a lognormal with the conditional
    mean and variance.

    **(W5)** A session ends one session gap after its last row, anywhere on the grid. In update mode
    its latency is measured from that end, too, so the gap is subtracted from `δ_last`. Complete
    mode writes all keys in every batch, which must be part of `a` before (B3) is solved.

    An update does not wait for the watermark.

    >>> from headway.models.batches.microbatch import AffineDuration, steady_state
    >>> state = steady_state(AffineDuration(2.0, 3e-4, 0.1), 1000.0, 10.0, dispersion=0.0)
    >>> float(update_window_latency(state, slide_s=60.0, last_lag_s=0.5).mean_s)
    15.00
    """
    return _mixture(state, slide_s, np.zeros(()), _lags(last_lag_s), num_batches=1)


def _lags(lag_s: Numeric | Lags) -> Lags:
    """Lags along a last axis of their own; a lag that all batches have is the only one."""
    if not isinstance(lag_s, tuple):
        lag_s = np.asarray(lag_s, dtype=np.float64)[..., np.newaxis], np.ones(1)
    _checked("the size of lag_s", np.abs(lag_s[0]))
    return lag_s


def _checked(name: str, value: Numeric) -> Array:
    array = np.asarray(value, dtype=np.float64)
    if not (np.all(array >= 0.0) and np.all(np.isfinite(array))):
        raise ValueError(f"{name} must be finite and not negative")
    return array


def _grid(trigger: Array, slide_s: Numeric, delay: Array, lags: Lags) -> tuple[Array, Array, Array]:
    """(W1): positions of window ends on the trigger grid, and the triggers that read them.

    Their number, 0 for anywhere; the distances from a window's end to the triggers that read it, if
    its end is at the first position; and the shares of batches that read it there. Each has one
    axis more than the settings.

    **(W1)** A row of event time `e + w` arrives at `e + w + δ` and is read at the next trigger. If
    that is on time, it is `ξ = B - ((e+w+δ) mod B)` later. Window ends that are a slide `h` apart
    fall on `n = B/gcd(B, h)` positions of the trigger grid (in whole milliseconds), `B/n` apart: on
    a single one if `h` is a multiple of `B`, and anywhere, with `ξ` uniform on `[0, B]`, if
    `n > 32` or the ends are random. In an interval that an overrun has stretched, the wait is
    uniform on `[0, T']`, whatever the alignment.

    The lag `δ` has a law: a millisecond decides on an interval if a window ends on a trigger. On
    the grid, lags with the same number of passed positions, `⌊(w+δ)n/B⌋`, are one part of the
    mixture; lags that vary over more than 8 of them are as good as a window end anywhere.
    """
    slide, (lag_s, lag_share) = _checked("slide_s", slide_s), lags
    ticks = np.maximum(np.rint(trigger * _TICKS_PER_S), 1.0).astype(np.int64)
    slide_ticks = np.rint(slide * _TICKS_PER_S).astype(np.int64)
    number = ticks // np.gcd(ticks, slide_ticks)
    is_on_grid = (slide_ticks > 0) & (number <= _MOST_PHASES) & (trigger > 0.0)
    step = np.where(is_on_grid, trigger / number, 1.0)[..., np.newaxis]
    passed = np.floor((delay[..., np.newaxis] + lag_s + _ROUNDING_S) / step)
    first = passed.min(axis=-1, keepdims=True)
    further = passed - first
    is_on_grid = is_on_grid & (further.max(axis=-1) < _MOST_PASSED)
    further = np.where(is_on_grid[..., np.newaxis], further, 0.0)
    steps = np.arange(further.max() + 1.0)
    share = (lag_share[:, np.newaxis] * (further[..., np.newaxis] == steps)).sum(axis=-2)
    read_s = trigger[..., np.newaxis] + step * (first + steps)
    return np.where(is_on_grid, number, 0.0)[..., np.newaxis], read_s, share


def _mixture(
    state: SteadyState, slide_s: Numeric, delay: Array, lags: Lags, num_batches: int
) -> WindowLatency:
    number, read_s, read_share = _grid(state.trigger_s, slide_s, delay, lags)
    shape = number.shape[:-1]
    is_on_grid, divisor = number > 0.0, np.maximum(number, 1.0)
    trigger = state.trigger_s[..., np.newaxis]
    stretched, chance = _overruns(state)
    # On time, a window waits for the next point of the grid; otherwise, from anywhere, for a batch.
    lag_s, lag_share = lags
    least_lag, mean_lag = lag_s.min(axis=-1), (lag_s * lag_share).sum(axis=-1)
    later = (mean_lag - least_lag)[..., np.newaxis]
    before = (delay + least_lag)[..., np.newaxis]
    position = np.arange(float(divisor.max()))
    on_time = trigger * (1.0 - chance.sum(axis=-1, keepdims=True))
    weight = _each_pair(on_time * (position < divisor) / divisor, np.multiply, read_share)
    low = _each_pair(-trigger * position / divisor - before, np.add, read_s)
    low, width = np.where(is_on_grid, low, later), np.where(is_on_grid, 0.0, trigger)
    on_grid = (weight, low, width, trigger)
    overrun = (chance * stretched, later, stretched, stretched)
    template = np.zeros((*shape, 1))
    stacked_parts = [np.stack(np.broadcast_arrays(template, *part)) for part in (on_grid, overrun)]
    _, weight, wait_low, wait_width, interval = np.concatenate(stacked_parts, axis=-1)
    mean, variance = _batch_after(state, interval, num_batches)
    total = weight.sum(axis=-1, keepdims=True)
    parts = (weight / total, wait_low, wait_width, mean, np.sqrt(variance))
    fixed = least_lag - state.after_commit_s + (state.trigger_s if num_batches == 2 else 0.0)
    delay, fixed = np.broadcast_to(delay, shape), np.broadcast_to(fixed, shape)
    return WindowLatency(delay, fixed, np.broadcast_to(state.is_stable, shape), *parts)


def _each_pair(positions: Array, combined: np.ufunc, triggers: Array) -> Array:
    """Both along one last axis, each position with each trigger."""
    pairs: Array = combined(positions[..., :, np.newaxis], triggers[..., np.newaxis, :])
    return pairs.reshape(*pairs.shape[:-2], -1)


def _overruns(state: SteadyState) -> tuple[Array, Array]:
    """Durations beyond the trigger, and their probabilities, by Gauss-Legendre quadrature."""
    overrun_prob = state.overrun_probability[..., np.newaxis]
    mean = np.where(state.is_stable, state.mean_duration_s, 1.0)[..., np.newaxis]
    sd = np.where(state.is_stable, state.sd_duration_s, 0.0)[..., np.newaxis]
    node, share = gauss_legendre(_NUM_NODES)
    # Cubes put more nodes at the long durations, which weigh most.
    unit_node = 0.5 * (node + 1.0)
    probability = np.minimum(1.0 - overrun_prob * unit_node**3, _HIGHEST_QUANTILE)
    duration = lognormal_quantile(probability, mean, sd / mean)
    return duration, overrun_prob * share * 1.5 * unit_node**2


def _batch_after(state: SteadyState, interval: Array, num_batches: int) -> tuple[Array, Array]:
    """(W2), (W3): time from the start of a batch of that interval to the end of the last one."""
    offered_load = np.where(state.is_stable, state.offered_load_ratio, 0.0)[..., np.newaxis]
    fixed, trigger = state.fixed_s[..., np.newaxis], state.trigger_s[..., np.newaxis]
    relative, additive = state.relative_noise[..., np.newaxis], state.additive_sd_s[..., np.newaxis]
    counts = state.count_noise_s[..., np.newaxis]

    def noise(mean: Array, length: Array, variance: Array | float) -> Array:
        return relative**2 * (mean**2 + offered_load**2 * variance) + additive**2 + counts * length

    mean = fixed + offered_load * interval
    variance = noise(mean, interval, 0.0)
    if num_batches == 1:
        return mean, variance
    moments = interval_moments(trigger, mean, variance)
    last = fixed + offered_load * moments.mean
    last_noise = noise(last, moments.mean, moments.variance)
    total = (1.0 + offered_load) ** 2 * moments.variance + last_noise
    return moments.mean - trigger + last, total


def why_no_window_law(profile: JobProfile) -> Finding | None:
    """What the profile lacks on its windows; None if it has none, or lacks nothing (T5).

    >>> from dataclasses import replace
    >>> from headway.formats.profile_file import load_profile
    >>> profile = load_profile("examples/word-count.profile.yaml")
    >>> hourly = (EventTimeWindow(kind="tumbling", size_s=3600.0, slide_s=3600.0),)
    >>> why_no_window_law(replace(profile, shape=replace(profile.shape, windows=hourly))).code.value
    'no_output_mode'
    """
    shape, arrivals = profile.shape, profile.observed_arrivals
    if not shape.windows:
        return None
    is_append = shape.output_mode == "append"
    lacks = (
        (shape.output_mode is None, FindingCode.NO_OUTPUT_MODE),
        (is_append and shape.watermark_delay_s is None, FindingCode.NO_WATERMARK_DELAY),
        (not shape.emitted_windows, FindingCode.NO_EMITTED_WINDOWS),
        (is_append and shape.watermark_behind_s is None, FindingCode.WATERMARK_BEHIND_UNKNOWN),
        (arrivals is None or not arrivals.lags, FindingCode.NO_EVENT_TIMES),
    )
    return next((Finding(code=code) for is_lacking, code in lacks if is_lacking), None)


def window_law(profile: JobProfile, law: SteadyState) -> WindowLatency | None:
    """The window latency at the settings of a law, if the profile has all that windows need.

    **(T5)** The window latency of a profiled job is (W2) or (W3) with the slide, watermark delay
    and output mode of its plan. The lags are the distances from the newest event times of batches
    to their triggers, which include the gap between rows, with the shares of batches that had them:
    all runs on a trigger weigh the same, and more than 12 lags are put together in groups of equal
    shares. A lag is negative if a batch still reads rows that arrive while it queries its sources;
    a window whose end plus delay coincides with a trigger is then not missed. Spark's watermark
    counts whole milliseconds and treats a window that ends on it as ended, so half a millisecond is
    subtracted from the lags. Sessions end anywhere on the grid; in update mode their last row
    arrives one gap before their end.

    Of several windows, the one with the longest slide counts. Windows are taken to end on the epoch
    grid of their slide, as Spark's do without an offset.

    **(T8)** Several stateful operators in append mode (since Spark 3.5): the windows are those of
    the last aggregation, and its watermark is `H` behind the query's, so `w + H` takes the place of
    `w` in (W2). A join of two streams adds `max(0, W - min(W_l, W_r))` to `H`, with the watermarks
    `W_l` and `W_r` by which it removes rows of its sides at a watermark `W`: the longer reach of
    its range of event time plus a millisecond, or 0 without a range. Aggregations, sessions and
    deduplications add nothing, and no operator adds a batch: each reads what the one before it
    emits in the same batch, and then emits what its own watermark has passed.

    >>> from dataclasses import replace
    >>> from headway.formats.profile_file import load_profile
    >>> from headway.models.job.setting import duration_model, setting_law
    >>> profile = load_profile("examples/word-count.profile.yaml")
    >>> minutes = (EventTimeWindow(kind="tumbling", size_s=60.0, slide_s=60.0),)
    >>> arrivals = ObservedArrivals(
    ...     counted="rows", rate_p05_per_s=16e3, rate_p50_per_s=16e3, rate_p95_per_s=16e3,
    ...     rate_max_per_s=16e3, event_time_lag_s=0.2,
    ... )
    >>> shape = replace(profile.shape, windows=minutes, output_mode="update")
    >>> windowed = replace(profile, shape=shape, observed_arrivals=arrivals)
    >>> model = duration_model(windowed, 2, 8)
    >>> batches = setting_law(windowed, model, rate_per_s=16e3, trigger_s=2.0)
    >>> float(window_law(windowed, batches).mean_s)
    2.381
    """
    shape, arrivals = profile.shape, profile.observed_arrivals
    if not shape.windows or why_no_window_law(profile) is not None:
        return None
    assert arrivals is not None
    window = max(shape.emitted_windows, key=_slide_s)
    slide_s = _slide_s(window)
    if shape.output_mode in _FINAL_IN_ONE_BATCH:
        # The last row of a session arrives one gap before its end.
        gap_s = window.size_s if window.kind == "session" else 0.0
        lags = newest_row_lags(arrivals, -gap_s)
        return update_window_latency(law, slide_s, lags)
    assert shape.windows_wait_s is not None
    lags = newest_row_lags(arrivals)
    return append_window_latency(law, slide_s, shape.windows_wait_s, lags)


def newest_row_lags(arrivals: ObservedArrivals, more_s: float = 0.0) -> Lags:
    """The lags of a profiled job as its windows count them: theory.md (T5).

    Parameters
    ----------
    arrivals : ObservedArrivals, with event times
    more_s : float, optional, added to each lag [s]

    >>> from headway.domain import EventTimeLag
    >>> arrivals = ObservedArrivals(
    ...     counted="rows", rate_p05_per_s=16e3, rate_p50_per_s=16e3, rate_p95_per_s=16e3,
    ...     rate_max_per_s=16e3, event_time_lag_s=0.0,
    ...     event_time_lags=(
    ...         EventTimeLag(lag_s=0.0, batch_share=0.7),
    ...         EventTimeLag(lag_s=0.001, batch_share=0.3),
    ...     ),
    ... )
    >>> newest_row_lags(arrivals, 1.0)
    (array([0.9995, 1.0005]), array([0.7, 0.3]))
    """
    lags = arrivals.lags
    lag_s = np.array([lag.lag_s for lag in lags]) - _HALF_A_MILLISECOND_S + more_s
    share = np.array([lag.batch_share for lag in lags])
    return lag_s, share / share.sum()


def _slide_s(window: EventTimeWindow) -> float:
    """Distance of two ends; 0 for sessions, which end anywhere."""
    return window.slide_s or 0.0
