"""Latency of a row in a micro-batch query, from its arrival to the commit of its batch."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from headway.models.arrays import Array, Numeric, open_probability
from headway.models.batches.microbatch import SteadyState, values_of
from headway.models.laws.distributions import gauss_legendre, uniform_mixture_quantile
from headway.models.laws.normal import ndtr, quick_ndtr

_NUM_NODES = 24
_NODE, _WEIGHT = gauss_legendre(_NUM_NODES)
_FARTHEST_SCORE = 5.5
_NEGLIGIBLE = 1e-10
_NARROWEST_LOG_SD = 1e-9  # a constant is the lognormal of this width
_TOLERANCE = 1e-9
_MOST_STEPS = 200
_LEAST_BEYOND = 1e-14
# Pairs of latency and setting that are evaluated together, so that they fit the processor's cache.
_BLOCK = 2048

#: Mean [s] and logarithmic width, as a row sees it, of the batch that an interval collects.
_Next: TypeAlias = tuple[Array, Array]


def tuple_latency_mean(state: SteadyState) -> Array:
    r"""Mean latency of a row; ``inf`` where unstable. [s]

    **(B5)** Mean latency. A row arrives in an interval with a probability in proportion to the
    interval's length: `E[L] = E[T^2]/(2 E[T]) + E[D'T]/E[T] = (1/2+r) E[T^2]/E[T] + a + b φ -
    after_commit_s`.

    >>> from headway.models.batches.microbatch import AffineDuration, steady_state
    >>> state = steady_state(AffineDuration(2.0, 3e-4, 0.1), 1500.0, 8.0, dispersion=0.0)
    >>> float(tuple_latency_mean(state))
    9.6000
    """
    stable = state.is_stable
    mean = np.where(stable, state.mean_interval_s, 1.0)
    collected = np.where(stable, state.mean_square_interval_s2, 1.0) / mean
    to_batch_end = collected * (0.5 + state.offered_load_ratio) + state.fixed_s + state.burst_s
    return np.where(stable, to_batch_end - state.after_commit_s, np.inf)


def tuple_latency_cdf(state: SteadyState, x_s: Numeric) -> Array:
    r"""Probability that a row's latency is at most ``x_s``; 0 where unstable. [-]

    Parameters
    ----------
    x_s : float or array, broadcasts against the settings

    **(B6)** Distribution of the latency: `P(L ≤ x) = E[G_T(x)-G_T(x-T)]/E[T]`, where `G_T` is (D3)
    for the duration of the batch that an interval `T` collects. The expectation consists of an atom
    at `T = B`, and 24 Gauss-Legendre nodes in the normal score of `D` beyond `B`, up to 5.5 (p99
    within 0.5% of that with 200 nodes, 0.01% in the mean over settings). `after_commit_s` shifts
    the distribution. A quantile is found by Newton's rule on `ln P(L > x)`, whose slope is computed
    with its value.

    >>> from headway.models.batches.microbatch import AffineDuration, steady_state
    >>> state = steady_state(AffineDuration(2.0, 3e-4, 0.1), 1500.0, 8.0, dispersion=0.0)
    >>> float(tuple_latency_cdf(state, 14.0167))
    0.990
    """
    return LatencyLaw(state).cdf(np.asarray(x_s, dtype=np.float64))


def tuple_latency_quantile(state: SteadyState, q: Numeric) -> Array:
    r"""Quantile of a row's latency (B6); ``inf`` where unstable. [s]

    If only a limit has to be met, compare `tuple_latency_cdf` at the limit with ``q``: one
    evaluation instead of about five.

    Parameters
    ----------
    q : float or array, 0 < q < 1, broadcasts against the settings

    >>> from headway.models.batches.microbatch import AffineDuration, steady_state
    >>> state = steady_state(AffineDuration(2.0, 3e-4, 0.1), 1500.0, 8.0, dispersion=0.0)
    >>> tuple_latency_quantile(state, np.array([0.95, 0.99]))
    array([13.2986, 14.0167])
    """
    return LatencyLaw(state).quantile(open_probability(q))


def empirical_latency_quantile(
    q: Numeric, intervals_s: Array, durations_s: Array, rows: Array
) -> Array:
    r"""Quantile of row latency, from the batches of a running query. [s]

    Parameters
    ----------
    q : float or (n,) array, 0 to 1
    intervals_s : (k,) array, >= 0, for each batch, the time over which its rows arrived [s]
    durations_s : (k,) array, >= 0, for each batch, the time from its start to its commit [s]
    rows : (k,) array, >= 0, of each batch, not all 0

    **(B7)** Latency from the batches of a running query:
    `P(L ≤ x) = Σ_k n_k clip((x-D'_k)/T_k, 0, 1)/Σ_k n_k`, a mixture (D5) on `[D'_k, D'_k+T_k]` with
    the rows `n_k` as weights. Exact for rows that arrive evenly within an interval: `T_k` is the
    time since the start of the batch before, without a pause that had no rows (A13).

    >>> float(empirical_latency_quantile(0.8, np.array([10.0]), np.array([4.0]), np.array([50.0])))
    12.0
    """
    intervals, durations, weights = _checked_trace(intervals_s, durations_s, rows)
    return uniform_mixture_quantile(q, durations, durations + intervals, weights)


def empirical_latency_mean(intervals_s: Array, durations_s: Array, rows: Array) -> float:
    r"""Mean latency over rows, not over batches, from the batches of a running query (B7). [s]

    Parameters
    ----------
    intervals_s, durations_s, rows : (k,) arrays, >= 0, as in `empirical_latency_quantile`

    >>> empirical_latency_mean(np.array([10.0, 30.0]), np.array([4.0, 8.0]), np.array([1.0, 3.0]))
    19.5
    """
    intervals, durations, weights = _checked_trace(intervals_s, durations_s, rows)
    return float(weights @ (0.5 * intervals + durations) / weights.sum())


def _checked_trace(intervals_s: Array, durations_s: Array, rows: Array) -> tuple[Array, ...]:
    trace = [np.asarray(values, dtype=np.float64) for values in (intervals_s, durations_s, rows)]
    if trace[0].ndim != 1 or not trace[0].size or len({values.shape for values in trace}) > 1:
        raise ValueError("need three 1-D arrays of one length, not empty")
    if not all(np.all(values >= 0.0) for values in trace) or not trace[2].sum() > 0.0:
        raise ValueError("times and rows must not be negative, nor all rows 0")
    return tuple(trace)


class LatencyLaw:
    """Latency of a row: theory.md (B6). An interval is a trigger interval or its batch's duration.

    >>> from headway.models.batches.microbatch import AffineDuration, steady_state
    >>> law = LatencyLaw(steady_state(AffineDuration(2.0, 0.0), 1.0, [4.0, 8.0]))
    >>> law.cdf(np.array([4.0, 6.0]))  # 2 s after the trigger, which comes in 0 to 4 or 8 s
    array([0.5, 0.5])
    """

    def __init__(self, state: SteadyState) -> None:
        self._shape = state.is_stable.shape
        self._state = flat = SteadyState(*(values.ravel() for values in values_of(state)))
        self._mean_s = np.where(flat.is_stable, flat.mean_duration_s, 1.0)
        self._sd_s = np.where(flat.is_stable, flat.sd_duration_s, 0.0)
        overrun_prob = np.where(flat.is_stable, flat.overrun_probability, 0.0)
        self._log_sd = np.maximum(
            np.sqrt(np.log1p((self._sd_s / self._mean_s) ** 2)), _NARROWEST_LOG_SD
        )
        # Normal score of a duration that is as long as the trigger interval.
        with np.errstate(divide="ignore"):
            score = np.log(flat.trigger_s / self._mean_s) / self._log_sd
        self._trigger_score = score + 0.5 * self._log_sd
        # Logarithm of the slowdown of the next batch, per unit of this one's score (B15).
        self._resemblance = flat.next_correlation * np.sqrt(np.log1p(flat.relative_noise**2))
        self._on_time = np.where(flat.trigger_s > 0.0, 1.0 - overrun_prob, 0.0)
        self._next = self._after_on_time()
        overrunning = np.flatnonzero(overrun_prob > _NEGLIGIBLE)
        self._row_of_nodes = np.full(flat.is_stable.size, -1)
        self._row_of_nodes[overrunning] = np.arange(overrunning.size)
        self._add_nodes(overrunning)
        seconds = self._on_time * flat.trigger_s
        seconds[overrunning] += (self._node_weight * self._node_interval_s).sum(axis=-1)
        self._seconds = np.where(seconds > 0.0, seconds, 1.0)

    def cdf(self, x_s: Array) -> Array:
        """Probability that the latency is at most ``x_s``; 0 where unstable."""
        points, settings = self._pairs(x_s)
        probability = np.empty(points.size)
        for block in _blocks(points.size):
            probability[block], _ = self._reached(points.flat[block], settings.flat[block])
        is_stable = self._state.is_stable[settings]
        return np.where(is_stable, probability.reshape(points.shape), 0.0)

    def quantile(self, q: Array) -> Array:
        """Smallest latency that a share ``q`` of rows does not exceed; ``inf`` where unstable."""
        probability, settings = self._pairs(q)
        quantile = np.full(probability.size, np.inf)
        stable_pairs = np.flatnonzero(self._state.is_stable[settings.ravel()])
        for block in _blocks(stable_pairs.size):
            pairs = stable_pairs[block]
            quantile[pairs] = self._quantile(probability.flat[pairs], settings.flat[pairs])
        return quantile.reshape(probability.shape)

    def _pairs(self, values: Array) -> tuple[Array, NDArray[np.intp]]:
        """Values broadcast against the settings, and the number of the setting of each."""
        numbers = np.arange(self._mean_s.size).reshape(self._shape)
        points, settings = np.broadcast_arrays(values, numbers)
        return points, settings

    def _quantile(self, q: Array, settings: NDArray[np.intp]) -> Array:
        """Newton's rule on the logarithm of the tail probability, which is nearly linear.

        A step that leaves the bracket is replaced by bisection; converged values are not evaluated
        again.
        """
        low, high = np.zeros(q.size), np.full(q.size, np.inf)
        point = self._state.trigger_s[settings] + self._mean_s[settings]
        point += 2.0 * self._sd_s[settings]
        goal = np.log1p(-q)
        open_ = np.arange(q.size)
        for _ in range(_MOST_STEPS):
            open_points = point[open_]
            probability, density_per_s = self._reached(open_points, settings[open_])
            tail = 1.0 - probability
            # A tail this small is a rounding error; Newton's rule cannot follow it.
            resolved = tail > _LEAST_BEYOND
            excess = np.log(np.where(resolved, tail, _LEAST_BEYOND)) - goal[open_]
            low[open_] = np.where(excess > 0.0, open_points, low[open_])
            high[open_] = np.where(excess > 0.0, high[open_], open_points)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                newton = open_points + excess * tail / density_per_s
            bottom, top = low[open_], np.minimum(high[open_], 4.0 * open_points)
            inside = resolved & (newton > bottom) & (newton < top)
            settled = (np.abs(excess) <= _TOLERANCE) | (top - bottom <= _TOLERANCE * top)
            following = np.where(inside, newton, 0.5 * (bottom + top))
            point[open_] = np.where(settled, open_points, following)
            open_ = open_[~settled]
            if open_.size == 0:
                break
        return point

    def _reached(self, x_s: Array, settings: NDArray[np.intp]) -> tuple[Array, Array]:
        """Share of rows that are committed within a time of their arrival, and its density.

        For pairs of such a time and the number of a setting.
        """
        # The latency to the commit is the latency to the batch's end, less what comes after.
        end = x_s + self._state.after_commit_s[settings]
        share = self._on_time[settings]
        mean_s, log_sd = self._next
        following = mean_s[settings], log_sd[settings]
        seconds, density = self._seconds_reached(end, self._state.trigger_s[settings], following)
        seconds, density = share * seconds, share * density
        stretched = np.flatnonzero(self._row_of_nodes[settings] >= 0)
        if stretched.size:
            rows = self._row_of_nodes[settings[stretched]]
            weight = self._node_weight[rows]
            interval_s, (mean_s, log_sd) = self._node_interval_s[rows], self._node_next
            following = mean_s[rows], log_sd[rows]
            of_nodes = self._seconds_reached(end[stretched, np.newaxis], interval_s, following)
            seconds[stretched] += np.einsum("ij,ij->i", weight, of_nodes[0])
            density[stretched] += np.einsum("ij,ij->i", weight, of_nodes[1])
        total = self._seconds[settings]
        return np.clip(seconds / total, 0.0, 1.0), density / total

    def _seconds_reached(self, x: Array, interval: Array, following: _Next) -> tuple[Array, Array]:
        """Seconds of an interval whose rows are committed within ``x``, and their growth."""
        late_area, late = self._area(x, following)
        early_area, early = self._area(x - interval, following)
        return late_area - early_area, late - early

    def _area(self, x: Array, following: _Next) -> tuple[Array, Array]:
        """Integral of the duration's distribution function up to ``x`` (D3), and its value."""
        mean, log_sd = following
        with np.errstate(divide="ignore"):
            score = np.log(np.maximum(x, 0.0) / mean) / log_sd + 0.5 * log_sd
        value = quick_ndtr(score)
        # Far in the lower tail the difference of two tiny terms may be negative by rounding.
        area = np.maximum(x * value - mean * quick_ndtr(score - log_sd), 0.0)
        return area, value

    def _add_nodes(self, settings: NDArray[np.intp]) -> None:
        """Gauss-Legendre nodes over the normal score of a duration beyond the trigger."""
        mean, log_sd = self._mean_s[settings], self._log_sd[settings]
        lowest = np.clip(self._trigger_score[settings], -_FARTHEST_SCORE, _FARTHEST_SCORE)
        # Rows see long intervals more often, which shifts their scores by the width.
        highest = np.maximum(lowest, 0.0) + _FARTHEST_SCORE + log_sd
        half = (0.5 * (highest - lowest))[:, np.newaxis]
        score = lowest[:, np.newaxis] + half * (_NODE + 1.0)
        width = log_sd[:, np.newaxis]
        raw = half * _WEIGHT * np.exp(-0.5 * score * score)
        raw_total = raw.sum(axis=-1)
        scale = ndtr(-lowest) / np.where(raw_total > 0.0, raw_total, 1.0)
        self._node_weight = raw * scale[:, np.newaxis]
        self._node_interval_s = mean[:, np.newaxis] * np.exp(width * score - 0.5 * width * width)
        self._node_next = self._next_duration(self._node_interval_s, settings, score)

    def _after_on_time(self) -> _Next:
        """The batch after one that did not overrun: (B15) averaged over such batches."""
        mean_s, log_sd = self._next_duration(self._state.trigger_s, slice(None))
        faster = ndtr(self._trigger_score - self._resemblance) / np.maximum(
            ndtr(self._trigger_score), _LEAST_BEYOND
        )
        return mean_s * np.where(self._on_time > 0.0, faster, 1.0), log_sd

    def _next_duration(
        self, interval_s: Array, selection: NDArray[np.intp] | slice, score: Array | None = None
    ) -> _Next:
        """How long a batch takes, given the interval that collected it."""

        def of(values: Array) -> Array:
            selected = values[selection]
            return selected[:, np.newaxis] if interval_s.ndim == 2 else selected

        state = self._state
        mean = of(state.fixed_s + state.burst_s) + of(state.offered_load_ratio) * interval_s
        variance = (
            (of(state.relative_noise) * mean) ** 2
            + of(state.additive_sd_s) ** 2
            + of(state.count_noise_s) * interval_s
        )
        log_variance = np.log1p(variance / (mean * mean))
        if score is not None:
            resemblance = of(self._resemblance)
            mean = mean * np.exp(resemblance * score - 0.5 * resemblance * resemblance)
            log_variance = np.maximum(log_variance - resemblance * resemblance, 0.0)
        return mean, np.maximum(np.sqrt(log_variance), _NARROWEST_LOG_SD)


def _blocks(size: int) -> list[slice]:
    return [slice(begin, min(begin + _BLOCK, size)) for begin in range(0, size, _BLOCK)]
