"""Latency of a row in a micro-batch query, from its arrival to the commit of its batch."""

from __future__ import annotations

import numpy as np
from numpy.polynomial.legendre import leggauss

from headway.models.arrays import Array, Numeric
from headway.models.batches.microbatch import SteadyState, batch_duration_quantile
from headway.models.laws.distributions import (
    bisect_increasing,
    partial_expectation_from_log_sd,
)
from headway.models.laws.normal import ndtr
from headway.models.laws.uniform_mixture import uniform_mixture_cdf, uniform_mixture_quantile

_NUM_NODES = 32
_NODE, _WEIGHT = leggauss(_NUM_NODES)
_FARTHEST_SCORE = 7.5
_NEGLIGIBLE = 1e-10
_NARROWEST_LOG_SD = 1e-9  # a constant is the lognormal of this width


def tuple_latency_mean(state: SteadyState) -> Array:
    r"""Mean latency of a row.

    Parameters
    ----------
    state : SteadyState
        Of one or many settings.

    Returns
    -------
    array
        Shape of the settings [s]; ``inf`` where unstable.

    Notes
    -----
    theory.md (B5). A row sees intervals in proportion to their length.

    Examples
    --------
    >>> from headway.models.batches.microbatch import AffineDuration, steady_state
    >>> state = steady_state(AffineDuration(2.0, 3e-4, 0.1), 1500.0, 8.0, dispersion=0.0)
    >>> float(tuple_latency_mean(state))
    9.6000
    """
    stable = state.is_stable
    mean = np.where(stable, state.mean_interval_s, 1.0)
    collected = np.where(stable, state.mean_square_interval_s2, 1.0) / mean
    to_batch_end = collected * (0.5 + state.inflation_ratio) + state.fixed_s + state.burst_s
    return np.where(stable, to_batch_end - state.after_commit_s, np.inf)


def tuple_latency_cdf(state: SteadyState, x_s: Numeric) -> Array:
    r"""Probability that a row's latency is at most ``x_s``.

    Parameters
    ----------
    state : SteadyState
        Of one or many settings.
    x_s : float or array
        Where to evaluate; broadcasts against the settings. [s]

    Returns
    -------
    array
        Inputs broadcast, 0 to 1; 0 where unstable. [-]

    Notes
    -----
    theory.md (B6).

    Examples
    --------
    >>> from headway.models.batches.microbatch import AffineDuration, steady_state
    >>> state = steady_state(AffineDuration(2.0, 3e-4, 0.1), 1500.0, 8.0, dispersion=0.0)
    >>> float(tuple_latency_cdf(state, 14.0167))
    0.990
    """
    return _LatencyLaw(state).cdf(np.asarray(x_s, dtype=np.float64))


def tuple_latency_quantile(state: SteadyState, q: Numeric) -> Array:
    r"""Quantile of a row's latency.

    Parameters
    ----------
    state : SteadyState
        Of one or many settings.
    q : float or array, 0 < q < 1
        Probability; broadcasts against the settings. [-]

    Returns
    -------
    array
        Inputs broadcast [s]; ``inf`` where unstable.

    Raises
    ------
    ValueError
        If ``q`` is outside its range.

    Notes
    -----
    theory.md (B6), inverted by bisection. Where only a limit has to be met, compare
    `tuple_latency_cdf` at the limit with ``q``: one evaluation instead of some forty.

    Examples
    --------
    >>> from headway.models.batches.microbatch import AffineDuration, steady_state
    >>> state = steady_state(AffineDuration(2.0, 3e-4, 0.1), 1500.0, 8.0, dispersion=0.0)
    >>> tuple_latency_quantile(state, np.array([0.95, 0.99]))
    array([13.2986, 14.0167])
    """
    probability = np.asarray(q, dtype=np.float64)
    if not (np.all(probability > 0.0) and np.all(probability < 1.0)):
        raise ValueError("q must lie strictly between 0 and 1")
    law = _LatencyLaw(state)
    stable = np.broadcast_to(law.stable, np.broadcast(law.stable, probability).shape)
    high = np.where(stable, law.bracket(probability), 1.0)
    low = np.zeros_like(high)
    for _ in range(60):
        short = stable & (law.cdf(high) < probability)
        if not np.any(short):
            break
        low = np.where(short, high, low)
        high = np.where(short, 2.0 * high, high)
    quantile = bisect_increasing(law.cdf, probability, low, high)
    return np.where(stable, quantile, np.inf)


def empirical_latency_cdf(x_s: Numeric, intervals_s: Array, durations_s: Array) -> Array:
    r"""Share of rows with a latency of at most ``x_s``, from the batches of a running query.

    Parameters
    ----------
    x_s : float or (n,) array
        Where to evaluate. [s]
    intervals_s : (k,) array, >= 0
        For each batch, the time over which its rows arrived. [s]
    durations_s : (k,) array, >= 0
        For each batch, the time from its start to its commit. [s]

    Returns
    -------
    array
        Shape of ``x_s``, 0 to 1. [-]

    Raises
    ------
    ValueError
        If the arrays differ in length, are empty, or hold negative values.

    Notes
    -----
    theory.md (B7). Exact for rows that arrive evenly within each interval.

    Examples
    --------
    >>> float(empirical_latency_cdf(12.0, np.array([10.0]), np.array([4.0])))
    0.8
    """
    intervals, durations = _checked_trace(intervals_s, durations_s)
    return uniform_mixture_cdf(x_s, durations, durations + intervals, intervals)


def empirical_latency_quantile(q: Numeric, intervals_s: Array, durations_s: Array) -> Array:
    r"""Quantile of row latency, from the batches of a running query.

    Parameters
    ----------
    q : float or (n,) array, 0 to 1
        Probability. [-]
    intervals_s : (k,) array, >= 0
        For each batch, the time over which its rows arrived. [s]
    durations_s : (k,) array, >= 0
        For each batch, the time from its start to its commit. [s]

    Returns
    -------
    array
        Shape of ``q``. [s]

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (B7).

    Examples
    --------
    >>> float(empirical_latency_quantile(0.8, np.array([10.0]), np.array([4.0])))
    12.0
    """
    intervals, durations = _checked_trace(intervals_s, durations_s)
    return uniform_mixture_quantile(q, durations, durations + intervals, intervals)


def empirical_latency_mean(intervals_s: Array, durations_s: Array) -> float:
    r"""Mean row latency, from the batches of a running query.

    Parameters
    ----------
    intervals_s : (k,) array, >= 0
        For each batch, the time over which its rows arrived. [s]
    durations_s : (k,) array, >= 0
        For each batch, the time from its start to its commit. [s]

    Returns
    -------
    float
        Mean over rows, not over batches. [s]

    Raises
    ------
    ValueError
        If the arrays differ in length, are empty, or hold negative values.

    Notes
    -----
    theory.md (B7).

    Examples
    --------
    >>> empirical_latency_mean(np.array([10.0, 30.0]), np.array([4.0, 8.0]))
    19.5
    """
    intervals, durations = _checked_trace(intervals_s, durations_s)
    return float(intervals @ (0.5 * intervals + durations) / intervals.sum())


class _LatencyLaw:
    """(B6), prepared for repeated evaluation: intervals that last exactly the trigger, and nodes
    for those that an overrunning batch has stretched."""

    def __init__(self, state: SteadyState) -> None:
        self._state = state
        self.stable = state.is_stable
        self._after_commit_s = state.after_commit_s
        mean = np.where(self.stable, state.mean_duration_s, 1.0)
        sd = np.where(self.stable, state.sd_duration_s, 0.0)
        over = np.where(self.stable, state.overrun_probability, 0.0)
        self._trigger_s = state.trigger_s
        self._on_time_weight = (1.0 - over) * state.trigger_s
        self._next_mean_s, self._next_log_sd = self._next_duration(self._trigger_s)
        self._overruns = over > _NEGLIGIBLE
        self._add_nodes(mean, sd)
        node_total = (self._node_weight * self._node_interval_s).sum(axis=-1)
        total = self._on_time_weight + node_total
        self._total_s = np.where(total > 0.0, total, 1.0)

    def cdf(self, x_s: Array) -> Array:
        """Probability that the latency is at most ``x_s``; 0 where unstable."""
        # The latency to the commit is the latency to the batch's end, less what comes after.
        end, stable = np.broadcast_arrays(x_s + self._after_commit_s, self.stable)
        reached = np.where(
            self._trigger_s > 0.0,
            (1.0 - np.where(self.stable, self._state.overrun_probability, 0.0))
            * _reached(end, self._trigger_s, self._next_mean_s, self._next_log_sd),
            0.0,
        )
        if np.any(self._overruns):
            reached = self._with_overruns(end, reached)
        return np.where(stable, np.clip(reached / self._total_s, 0.0, 1.0), 0.0)

    def bracket(self, q: Array) -> Array:
        """A first guess at an upper bound of the quantile."""
        longest = batch_duration_quantile(self._state, 1.0 - (1.0 - q) / 4.0)
        longest = np.where(self.stable, longest, 1.0)
        return self._trigger_s + 3.0 * longest

    def _with_overruns(self, end: Array, reached: Array) -> Array:
        overruns = np.broadcast_to(self._overruns, end.shape)
        point = end[overruns][:, np.newaxis]
        chosen = tuple(
            np.broadcast_to(values, (*end.shape, _NUM_NODES))[overruns]
            for values in (
                self._node_interval_s,
                self._node_next_mean_s,
                self._node_next_log_sd,
                self._node_weight,
            )
        )
        interval, mean, log_sd, weight = chosen
        stretched = reached.copy()
        stretched[overruns] += (weight * _reached(point, interval, mean, log_sd)).sum(axis=-1)
        return stretched

    def _next_duration(self, interval_s: Array) -> tuple[Array, Array]:
        """Mean and logarithmic width, as a row sees it, of the batch that an interval collects."""
        state = self._state
        extra = (slice(None),) * state.fixed_s.ndim + (np.newaxis,) * (
            interval_s.ndim - state.fixed_s.ndim
        )
        work = state.inflation_ratio[extra] * interval_s
        mean = state.fixed_s[extra] + work + state.burst_s[extra]
        variance = (
            (state.relative_noise[extra] * mean) ** 2
            + state.additive_sd_s[extra] ** 2
            + (state.per_row_noise[extra] * work) ** 2
            + state.count_noise_s[extra] * interval_s
        )
        log_sd = np.sqrt(np.log1p(variance / (mean * mean)))
        return mean, np.maximum(log_sd, _NARROWEST_LOG_SD)

    def _add_nodes(self, mean: Array, sd: Array) -> None:
        """Gauss-Legendre nodes over the normal score of a duration beyond the trigger."""
        log_sd = np.maximum(np.sqrt(np.log1p((sd / mean) ** 2)), _NARROWEST_LOG_SD)
        with np.errstate(divide="ignore"):
            first = np.log(self._trigger_s / mean) / log_sd + 0.5 * log_sd
        lowest = np.clip(first, -_FARTHEST_SCORE, _FARTHEST_SCORE)
        # Rows see long intervals more often, which shifts their scores by the width.
        highest = np.maximum(lowest, 0.0) + _FARTHEST_SCORE + log_sd
        half = (0.5 * (highest - lowest))[..., np.newaxis]
        score = lowest[..., np.newaxis] + half * (_NODE + 1.0)
        width = log_sd[..., np.newaxis]
        density = np.exp(-0.5 * score * score) / np.sqrt(2.0 * np.pi)
        beyond = np.where(self._overruns, ndtr(-lowest), 0.0)
        raw = half * _WEIGHT * density
        raw_total = raw.sum(axis=-1)
        scale = np.where(raw_total > 0.0, beyond / np.where(raw_total > 0.0, raw_total, 1.0), 0.0)
        self._node_weight = raw * scale[..., np.newaxis]
        self._node_interval_s = mean[..., np.newaxis] * np.exp(width * score - 0.5 * width * width)
        self._node_next_mean_s, self._node_next_log_sd = self._next_duration(self._node_interval_s)


def _reached(x: Array, interval: Array, mean: Array, log_sd: Array) -> Array:
    """Seconds of an interval whose rows are committed within ``x`` of their arrival, expected."""
    return partial_expectation_from_log_sd(x, mean, log_sd) - partial_expectation_from_log_sd(
        x - interval, mean, log_sd
    )


def _checked_trace(intervals_s: Array, durations_s: Array) -> tuple[Array, Array]:
    intervals = np.asarray(intervals_s, dtype=np.float64)
    durations = np.asarray(durations_s, dtype=np.float64)
    if not (intervals.ndim == 1 and intervals.size and intervals.shape == durations.shape):
        raise ValueError("intervals_s and durations_s must be 1-D, of one length, and not empty")
    if not (np.all(intervals >= 0.0) and intervals.sum() > 0.0 and np.all(durations >= 0.0)):
        raise ValueError("intervals_s and durations_s must not be negative, nor all intervals 0")
    return intervals, durations
