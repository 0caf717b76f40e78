"""Markov chain of duration and slow level: batches under lasting noise, one setting at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from headway.lazy_classes import dataclass
from headway.models.arrays import Array, Numeric, open_probability
from headway.models.batches.microbatch import SteadyState
from headway.models.batches.stationary_chain import Recursion, stationary
from headway.models.laws.normal import quick_ndtr

_HIGHEST_LOAD = 0.98
_NEGLIGIBLE = 1e-12
_LEAST_TAIL, _LEAST_S = 1e-14, 1e-100
_LONGER = 1.015
_TOLERANCE_RATIO, _MOST_STEPS = 1e-9, 200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchChain:
    """Intervals, and the batches that they collect at a level of the noise; one setting."""

    probability: Array  # of an interval and the level of the next batch; 1 in total
    interval_s: Array
    next_mean_s: Array  # mean duration of the batch that the interval collects [s]
    next_log_sd: Array  # logarithmic width of that duration, by the noise that is drawn anew [-]
    recursion: Recursion  # of which this is the stationary distribution

    @property
    def mean_interval_s(self) -> float:
        """Mean time between the starts of two batches. [s]"""
        return float(self.probability @ self.interval_s)

    @property
    def mean_square_interval_s2(self) -> float:
        """Mean square of that time. [s^2]"""
        return float(self.probability @ self.interval_s**2)

    @property
    def mean_duration_s(self) -> float:
        """Mean batch duration. [s]"""
        return float(self.probability @ self.next_mean_s)

    @property
    def sd_duration_s(self) -> float:
        """Standard deviation of the batch duration. [s]"""
        square_s2 = self.probability @ (self.next_mean_s**2 * np.exp(self.next_log_sd**2))
        return math.sqrt(max(float(square_s2) - self.mean_duration_s**2, 0.0))

    @property
    def overrun_probability(self) -> float:
        """Share of batches that take longer than the trigger interval. [-]"""
        trigger_s = self.recursion.trigger_s
        return 1.0 - float(self.duration_cdf(trigger_s)) if trigger_s > 0 else 1.0

    @property
    def latency_mean_s(self) -> float:
        """Mean latency of a row. [s]"""
        rows = self.probability * self.interval_s
        to_end_s = rows @ (0.5 * self.interval_s + self.next_mean_s) / rows.sum()
        return float(to_end_s) + self.recursion.burst_s - self.recursion.after_commit_s

    @property
    def amplification_ratio(self) -> float:
        """Growth of the logarithm of the mean latency over that of all durations (P3). [-]"""
        return _amplification_ratio(self.recursion)

    @property
    def most_amplification_ratio(self) -> float:
        """The same towards longer durations, where it is larger; takes one chain instead of two."""
        longer = _chain_of(self.recursion.times(_LONGER))
        return math.log(longer.latency_mean_s / self.latency_mean_s) / math.log(_LONGER)

    @property
    def cut_share(self) -> float:
        """Share of the mean latency in the last factor of e of a grid that is wider than that. [-]

        Of a tail that has a mean it is small; above a half, the mean is that of the grid's end.
        """
        weight = self.probability * self.interval_s**2
        from_s = max(self.interval_s.max() / math.e, self.recursion.settled_s * math.e)
        return float(weight[self.interval_s > from_s].sum() / weight.sum())

    def duration_cdf(self, x_s: Numeric) -> Array:
        """Share of batches that take at most ``x_s``. [-]"""
        return _at_each(x_s, lambda x: self._duration_share(x)[0])

    def latency_cdf(self, x_s: Numeric) -> Array:
        """Share of rows with a latency of at most ``x_s``: (B6). [-]"""
        return _at_each(x_s, lambda x: self._latency_share(x)[0])

    def duration_quantile_s(self, q: Numeric) -> Array:
        """Quantile of the batch duration. [s]"""
        return _at_each(
            open_probability(q),
            lambda share: _quantile_s(self._duration_share, share, self.mean_duration_s),
        )

    def latency_quantile_s(self, q: Numeric) -> Array:
        """Quantile of the latency over rows. [s]"""
        return _at_each(
            open_probability(q),
            lambda share: _quantile_s(self._latency_share, share, self.latency_mean_s),
        )

    def _duration_share(self, x_s: float) -> tuple[float, float]:
        """Share of batches that take at most ``x_s``, and its density there."""
        log_sd = self.next_log_sd
        score = np.log(max(x_s, _LEAST_S) / self.next_mean_s) / log_sd + 0.5 * log_sd
        density = np.exp(-0.5 * score * score) / log_sd
        per_s = float(self.probability @ density) / (max(x_s, _LEAST_S) * math.sqrt(math.tau))
        return float(self.probability @ quick_ndtr(score)), per_s

    def _latency_share(self, x_s: float) -> tuple[float, float]:
        """Share of rows with a latency of at most ``x_s``, and its density there."""
        # Of an interval, the first row has waited for all of it when the batch starts.
        waited_s = np.stack([np.zeros_like(self.interval_s), self.interval_s])
        (late, early), (late_share, early_share) = self._ended(
            x_s + self.recursion.after_commit_s - waited_s
        )
        interval_s = self.mean_interval_s
        share = float(self.probability @ (late - early)) / interval_s
        return share, float(self.probability @ (late_share - early_share)) / interval_s

    def _ended(self, x_s: Array) -> tuple[Array, Array]:
        """Integral of the distribution function of a row's last batch (D3), and that function."""
        mean_s, log_sd = self.next_mean_s + self.recursion.burst_s, self.next_log_sd
        score = np.log(np.maximum(x_s, _LEAST_S) / mean_s) / log_sd + 0.5 * log_sd
        share = quick_ndtr(score)
        area = np.maximum(x_s * share - mean_s * quick_ndtr(score - log_sd), 0.0)
        return np.where(x_s > 0.0, area, 0.0), share


def batch_chain(state: SteadyState) -> BatchChain | None:
    r"""Stationary distribution of a query's batches by their recursion, with lasting noise.

    None for an offered load of 0.98 or more. The moments of (B3) are not used.

    **(T4)** Markov chain of the duration and the level of the lasting noise.
    `z' = ψ z+sqrt(1-ψ^2) e` is the score of the lasting noise, and
    `D' = (a+r max(B, D)) e^(s sqrt(ρ) z'+s sqrt(1-ρ) e'-s^2/2)`, `s^2 = ln(1+c^2)`, is the next
    duration, with `e, e'` normal and new for each batch. `z` takes the 17 levels of Rouwenhorst's
    chain (1995). Their distances are whole cells of a grid of `ln D`, so that one matrix serves all
    levels. The distribution is iterated until it is stationary. Latencies are (B6) over its
    intervals and levels, durations its mixture of lognormals. As `ψ` tends to 1, a level is kept
    for ever; with `ρ = 1` durations are autoregressive. Besides noise in proportion to the
    duration, the variance that row counts and additive noise add is drawn anew for each batch.

    Compared with an event simulation, where the latency has a variance: mean within 1%, p99 within
    3%, within 5% close to where it has none. Where it has none, the p99 may be 9% too low. Takes a
    few milliseconds per setting.

    >>> from headway.models.batches.microbatch import AffineDuration, steady_state
    >>> duration = AffineDuration(1.0, 7e-4, 0.1, lasting_share=0.75, persistence_ratio=0.95)
    >>> chain = batch_chain(steady_state(duration, 1000.0, 0.0, dispersion=0.0))
    >>> round(chain.latency_mean_s, 2), round(float(chain.latency_quantile_s(0.99)), 1)
    (5.81, 13.8)
    """
    recursion = Recursion.of(state)
    if not recursion.offered_load < _HIGHEST_LOAD:
        return None
    return _chain_of(recursion)


@lru_cache(maxsize=256)  # a plan evaluates the setting that it prints several times
def _chain_of(recursion: Recursion) -> BatchChain:
    with_levels, grid, joint = stationary(recursion)
    interval_s, lasting_sd = grid.interval_s, with_levels.lasting_sd
    next_level = grid.transition.T @ joint
    level_factor = np.exp(lasting_sd * grid.score - 0.5 * lasting_sd**2)
    is_relevant = next_level > _NEGLIGIBLE * next_level.max()
    mean_s = level_factor[:, np.newaxis] * with_levels.mean_s(interval_s)
    log_sd = np.broadcast_to(with_levels.fresh_sd(interval_s), is_relevant.shape)
    return BatchChain(
        probability=next_level[is_relevant] / next_level[is_relevant].sum(),
        interval_s=np.broadcast_to(interval_s, is_relevant.shape)[is_relevant],
        next_mean_s=mean_s[is_relevant],
        next_log_sd=log_sd[is_relevant],
        recursion=recursion,
    )


@lru_cache(maxsize=128)
def _amplification_ratio(recursion: Recursion) -> float:
    # Cells end where the range of one load does, so a smaller difference would be theirs.
    longer, shorter = (_chain_of(recursion.times(ratio)) for ratio in (_LONGER, 1.0 / _LONGER))
    return math.log(longer.latency_mean_s / shorter.latency_mean_s) / (2.0 * math.log(_LONGER))


def _at_each(values: Numeric, function: Callable[[float], float]) -> Array:
    points = np.asarray(values, dtype=np.float64)
    return np.array([function(point) for point in points.ravel().tolist()]).reshape(points.shape)


def _quantile_s(
    share_and_density: Callable[[float], tuple[float, float]], q: float, guess_s: float
) -> float:
    """Newton's rule on the logarithms of time and of the tail probability, or bisection.

    Newton's steps must halve: where the body of a distribution meets a heavy tail, they may go back
    and forth between the two for ever.
    """
    low, high, x_s, moved = 0.0, math.inf, guess_s, math.inf
    for _ in range(_MOST_STEPS):
        share, per_s = share_and_density(x_s)
        tail = max(1.0 - share, _LEAST_TAIL)
        low, high = (x_s, high) if share < q else (low, x_s)
        step = math.log(tail / (1.0 - q)) * tail / max(per_s * x_s, _LEAST_TAIL)
        step = min(max(step, -1.0), 1.0)
        next_s = x_s * math.exp(step)
        if not low < next_s < high or (abs(step) > 0.5 * moved and math.isfinite(high)):
            next_s = 2.0 * x_s if math.isinf(high) else 0.5 * (low + high)
        if abs(next_s - x_s) <= _TOLERANCE_RATIO * x_s:
            return next_s
        x_s, moved = next_s, abs(math.log(next_s / x_s))
    return x_s
