"""The chain of batches itself, on a grid: for heavy or lasting noise close to saturation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from headway.models.arrays import Array, Numeric
from headway.models.batches.microbatch import AffineDuration
from headway.models.laws.uniform_mixture import uniform_mixture_cdf, uniform_mixture_quantile

_NUM_SCORES = 41
_CELLS_PER_SD = 6.0
_WIDEST_CELL = 0.03  # in the logarithm of a duration
_MOST_CELLS = 6_000
_LEAST_TAIL = 1e-7
_FARTHEST_SD = 8.0
_CHANGE = 1e-10
_MOST_STEPS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchChain:
    """Stationary law of a batch and the interval that collected its rows; one setting.

    Parameters
    ----------
    interval_s : (n,) array, > 0
        Interval. [s]
    duration_s : (n,) array, > 0
        Duration of the batch that follows it. [s]
    probability : (n,) array
        Of the pair; 1 in total. [-]
    to_commit_s : (n,) array
        From the start of the batch to the commit, as a row meets it. [s]

    Examples
    --------
    >>> chain = batch_chain(AffineDuration(2.0, 3e-4, 0.1), 1500.0, 8.0, dispersion=0.0)
    >>> chain.latency_mean_s, float(chain.latency_quantile_s(0.99))
    (9.60, 14.02)
    """

    interval_s: Array
    duration_s: Array
    probability: Array
    to_commit_s: Array

    @property
    def duration_mean_s(self) -> float:
        """Mean batch duration. [s]"""
        return float(self.probability @ self.duration_s)

    @property
    def duration_sd_s(self) -> float:
        """Standard deviation of the batch duration. [s]"""
        offset = self.duration_s - self.duration_mean_s
        return math.sqrt(self.probability @ offset**2)

    @property
    def latency_mean_s(self) -> float:
        """Mean latency of a row. [s]"""
        middle = self.to_commit_s + 0.5 * self.interval_s
        return float(self._rows @ middle / self._rows.sum())

    def latency_cdf(self, x_s: Numeric) -> Array:
        """Share of rows with a latency of at most ``x_s``. [-]"""
        return uniform_mixture_cdf(x_s, *self._stretches)

    def latency_quantile_s(self, q: Numeric) -> Array:
        """Quantile of the latency over rows. [s]"""
        return uniform_mixture_quantile(q, *self._stretches)

    @property
    def _rows(self) -> Array:
        """Rows arrive in proportion to the interval."""
        return self.probability * self.interval_s

    @property
    def _stretches(self) -> tuple[Array, Array, Array]:
        return self.to_commit_s, self.to_commit_s + self.interval_s, self._rows


def batch_chain(
    duration: AffineDuration,
    rate_per_s: float,
    trigger_s: float,
    *,
    dispersion: float = 1.0,
    autocorrelation: float = 0.0,
) -> BatchChain | None:
    r"""Stationary law of a query's batches, computed from their recursion.

    Parameters
    ----------
    duration : AffineDuration
        Duration of a batch given its rows; all fields scalar.
    rate_per_s : float, > 0
        Input rate. [rows/s]
    trigger_s : float, >= 0
        Trigger interval; 0 starts the next batch at once. [s]
    dispersion : float, >= 0
        Variance over mean of row counts in an interval; 1 is Poisson. [-]
    autocorrelation : float, 0 <= phi < 1
        Correlation of the normal scores of successive durations. [-]

    Returns
    -------
    BatchChain or None
        None where the variance of the duration is infinite, so that rows wait without bound in
        the mean: ``r^2 (1 + c^2) >= 1``, noise that lasts counted as far as it lasts.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    theory.md (B15). Against the event simulation, with noise up to 0.3, correlation up to 0.9 and
    inflation up to 0.9. Some 5-30 ms a setting: where noise is light and independent,
    `headway.models.batches.microbatch.steady_state` says the same ten thousand times sooner.

    Examples
    --------
    >>> chain = batch_chain(AffineDuration(1.0, 1e-3, 0.3), 900.0, 0.0, dispersion=0.0)
    >>> chain.duration_mean_s  # a / (1 - r), whatever the noise
    10.0
    """
    if not (0.0 < rate_per_s < math.inf and trigger_s >= 0.0 and dispersion >= 0.0):
        raise ValueError("need rate_per_s > 0, trigger_s >= 0 and dispersion >= 0")
    if not 0.0 <= autocorrelation < 1.0:
        raise ValueError("autocorrelation must lie in [0, 1)")
    given = _Given(duration, rate_per_s, trigger_s, dispersion)
    scores, kernel = _score_chain(autocorrelation)
    tail_index = _tail_index(given, autocorrelation)
    if tail_index <= 2.0:
        return None
    durations = _duration_grid(given, tail_index, autocorrelation)
    intervals = np.maximum(durations, trigger_s)
    following = given.durations_s(intervals, scores)
    joint = _stationary(durations, following, kernel)
    pairs = np.broadcast_to(intervals[:, np.newaxis], joint.shape)
    kept = joint > 0.0
    return BatchChain(
        interval_s=pairs[kept],
        duration_s=following[kept],
        probability=joint[kept] / joint[kept].sum(),
        to_commit_s=following[kept] + given.burst_s - given.after_commit_s,
    )


class _Given:
    """The recursion: duration of the batch that an interval collects, at a score of its noise."""

    def __init__(
        self, duration: AffineDuration, rate_per_s: float, trigger_s: float, dispersion: float
    ) -> None:
        self.fixed_s = float(duration.fixed_s)
        self.trigger_s = trigger_s
        self.inflation_ratio = float(duration.per_row_s) * rate_per_s
        self.relative_noise = float(duration.relative_noise)
        self.additive_sd_s = float(duration.additive_sd_s)
        self.per_row_noise = float(duration.per_row_noise)
        self.burst_s = float(duration.per_row_s) * dispersion
        self.count_noise_s = self.inflation_ratio * self.burst_s
        self.after_commit_s = float(duration.after_commit_s)

    @property
    def shortest_interval_s(self) -> float:
        """Of a noise-free query."""
        slack = max(1.0 - self.inflation_ratio, 1e-12)
        return max(self.trigger_s, self.fixed_s / slack if self.trigger_s == 0.0 else 0.0)

    def log_sd(self, interval_s: Numeric) -> Array:
        """Standard deviation of the logarithm of the duration. [-]"""
        interval = np.asarray(interval_s, dtype=np.float64)
        mean, work = self._mean_s(interval), self.inflation_ratio * interval
        variance = (
            (self.relative_noise * mean) ** 2
            + self.additive_sd_s**2
            + (self.per_row_noise * work) ** 2
            + self.count_noise_s * interval
        )
        return np.sqrt(np.log1p(variance / mean**2))

    def durations_s(self, interval_s: Array, scores: Array) -> Array:
        """Of shape (intervals, scores). [s]"""
        log_sd = self.log_sd(interval_s)[:, np.newaxis]
        mean = self._mean_s(interval_s)[:, np.newaxis]
        # The mean of the exponential of a binomial score; log_sd^2 / 2 for a normal one.
        log_mean = (_NUM_SCORES - 1) * np.log(np.cosh(log_sd / math.sqrt(_NUM_SCORES - 1)))
        return np.asarray(mean * np.exp(log_sd * scores - log_mean))

    def _mean_s(self, interval_s: Array) -> Array:
        return self.fixed_s + self.inflation_ratio * interval_s


def _score_chain(autocorrelation: float) -> tuple[Array, Array]:
    """Scores of the noise and how one follows another: Rouwenhorst's chain.

    Binomial, so normal but for its fourth cumulant, with exactly this correlation.
    """
    stay = 0.5 * (1.0 + autocorrelation)
    kernel = np.ones((1, 1))
    for size in range(2, _NUM_SCORES + 1):
        grown = np.zeros((size, size))
        grown[:-1, :-1] += stay * kernel
        grown[:-1, 1:] += (1.0 - stay) * kernel
        grown[1:, :-1] += (1.0 - stay) * kernel
        grown[1:, 1:] += stay * kernel
        grown[1:-1] *= 0.5
        kernel = grown
    reach = math.sqrt(_NUM_SCORES - 1)
    return np.linspace(-reach, reach, _NUM_SCORES), kernel


def _tail_index(given: _Given, autocorrelation: float) -> float:
    """Power with which long durations get rare, P(D > x) ~ x^-index (Kesten 1973).

    Where batches run back to back a duration is the one before times r and the noise, so the
    index solves E[(r xi)^index] = 1; noise that lasts has its long-run variance.
    """
    if given.inflation_ratio >= 1.0:
        return 0.0
    if given.inflation_ratio == 0.0:
        return math.inf
    variance = math.log1p(given.relative_noise**2 + given.per_row_noise**2)
    lasting = variance * (1.0 + autocorrelation) / (1.0 - autocorrelation)
    if lasting == 0.0:
        return math.inf
    return (variance - 2.0 * math.log(given.inflation_ratio)) / lasting


def _duration_grid(given: _Given, tail_index: float, autocorrelation: float) -> Array:
    """Durations in equal steps of their logarithm, from the rarest short to the rarest long one."""
    usual = given.shortest_interval_s
    settled_s = max(usual, given.fixed_s / max(1.0 - given.inflation_ratio, 1e-12))
    log_sd = float(given.log_sd(usual))
    shortest_s = float(given.durations_s(np.array([usual]), np.array([-_FARTHEST_SD])).item())
    shortest_s = min(shortest_s, given.fixed_s * math.exp(-_FARTHEST_SD * log_sd))
    lasting = math.sqrt((1.0 + autocorrelation) / (1.0 - autocorrelation))
    spread = _FARTHEST_SD * log_sd * lasting / math.sqrt(1.0 - given.inflation_ratio**2)
    heavy = -math.log(_LEAST_TAIL) / tail_index
    longest_s = settled_s * math.exp(max(spread, heavy, 0.1))
    step = min(_WIDEST_CELL, max(log_sd, 1e-4) / _CELLS_PER_SD)
    num_cells = math.ceil(math.log(longest_s / shortest_s) / step)
    return np.geomspace(shortest_s, longest_s, min(max(num_cells, 64), _MOST_CELLS))


def _stationary(durations: Array, following: Array, kernel: Array) -> Array:
    """Joint probability of the duration before and the score after, of shape (cells, scores)."""
    num_cells, num_scores = following.shape
    above = np.clip(np.searchsorted(durations, following), 1, num_cells - 1)
    low, high = durations[above - 1], durations[above]
    # Split between two cells so that the mean is kept.
    upper_share = np.clip((following - low) / (high - low), 0.0, 1.0)
    column = np.broadcast_to(np.arange(num_scores), following.shape)
    lower_place, upper_place = (above - 1) * num_scores + column, above * num_scores + column
    binomial = np.array([math.comb(num_scores - 1, place) for place in range(num_scores)])
    before = np.zeros((num_cells, num_scores))
    before[int(np.searchsorted(durations, np.median(following)))] = binomial / binomial.sum()
    after = before @ kernel
    for _ in range(_MOST_STEPS):
        moved = np.bincount(
            lower_place.ravel(), ((1.0 - upper_share) * after).ravel(), num_cells * num_scores
        )
        moved += np.bincount(
            upper_place.ravel(), (upper_share * after).ravel(), num_cells * num_scores
        )
        following_after = moved.reshape(num_cells, num_scores) @ kernel
        change = np.abs(following_after - after).sum()
        after = following_after
        if change < _CHANGE:
            break
    return np.asarray(after)
