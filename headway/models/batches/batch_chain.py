"""The chain of (duration, slow level): batches under lasting noise, one setting at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from headway.models.arrays import Array, Numeric, open_probability
from headway.models.batches.microbatch import SteadyState
from headway.models.laws.inverse import increasing_root
from headway.models.laws.normal import quick_ndtr

# Rouwenhorst's chain of 17 levels reaches four standard deviations. Of noise that lasts so little
# that its levels would lie closer than cells, fewer and wider ones do: what is new smooths them.
_NUMS_OF_LEVELS = (17, 5, 3)
_CELLS_PER_FRESH_SD, _CELLS_PER_SD = 1.25, 8.0
_LEAST_KERNEL_CELLS = 0.5  # narrower, rounding to cells would move the mean
_MOST_CELLS = 400
_LOWEST_SD, _HIGHEST_SD, _HIGHEST_VARIANCES = 5.0, 8.0, 3.0
_NARROWEST_LOG_SD = 1e-4  # a constant is the lognormal of this width
_HIGHEST_LOAD = 0.98
_CHANGE, _MOST_STEPS, _STEPS_BETWEEN_LOOKS = 3e-8, 400, 5
_NEGLIGIBLE = 1e-12
_BLOCK, _UNREACHED = 32, 1e-18
_LEAST_TAIL, _LEAST_S = 1e-14, 1e-100


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchChain:
    """Intervals, and the batches that they collect at a level of the noise; one setting.

    Parameters
    ----------
    probability : (n,) array
        Of an interval and the level of the next batch; 1 in total.
    interval_s, next_mean_s : (n,) array, > 0
        The interval and the mean duration of the batch that it collects. [s]
    next_log_sd : (n,) array, > 0
        Logarithmic width of that duration: the noise that is drawn anew. [-]
    trigger_s, burst_s, after_commit_s : float
        As in `SteadyState`. [s]
    """

    probability: Array
    interval_s: Array
    next_mean_s: Array
    next_log_sd: Array
    trigger_s: float
    burst_s: float
    after_commit_s: float

    @property
    def interval_mean_s(self) -> float:
        """Mean time between the starts of two batches. [s]"""
        return float(self.probability @ self.interval_s)

    @property
    def interval_mean_square_s2(self) -> float:
        """Mean square of that time. [s^2]"""
        return float(self.probability @ self.interval_s**2)

    @property
    def duration_mean_s(self) -> float:
        """Mean batch duration. [s]"""
        return float(self.probability @ self.next_mean_s)

    @property
    def duration_sd_s(self) -> float:
        """Standard deviation of the batch duration. [s]"""
        square_s2 = self.probability @ (self.next_mean_s**2 * np.exp(self.next_log_sd**2))
        return math.sqrt(max(float(square_s2) - self.duration_mean_s**2, 0.0))

    @property
    def overrun_probability(self) -> float:
        """Share of batches that take longer than the trigger interval. [-]"""
        return 1.0 - float(self.duration_cdf(self.trigger_s)) if self.trigger_s > 0 else 1.0

    @property
    def latency_mean_s(self) -> float:
        """Mean latency of a row. [s]"""
        rows = self.probability * self.interval_s
        to_end_s = rows @ (0.5 * self.interval_s + self.next_mean_s) / rows.sum()
        return float(to_end_s) + self.burst_s - self.after_commit_s

    def duration_cdf(self, x_s: Numeric) -> Array:
        """Share of batches that take at most ``x_s``. [-]"""

        def ended(x: float) -> float:
            return float(self.probability @ _ended(x, self.next_mean_s, self.next_log_sd))

        return _at_each(x_s, ended)

    def latency_cdf(self, x_s: Numeric) -> Array:
        """Share of rows with a latency of at most ``x_s``: (B6). [-]"""
        mean_s = self.next_mean_s + self.burst_s

        def reached(x: float) -> float:
            end = x + self.after_commit_s
            late = _area(np.full_like(mean_s, end), mean_s, self.next_log_sd)
            early = _area(end - self.interval_s, mean_s, self.next_log_sd)
            return float(self.probability @ (late - early)) / self.interval_mean_s

        return _at_each(x_s, reached)

    def duration_quantile_s(self, q: Numeric) -> Array:
        """Quantile of the batch duration. [s]"""
        return _quantile_s(self.duration_cdf, q, self.duration_mean_s)

    def latency_quantile_s(self, q: Numeric) -> Array:
        """Quantile of the latency over rows. [s]"""
        return _quantile_s(self.latency_cdf, q, self.latency_mean_s)


def batch_chain(state: SteadyState) -> BatchChain | None:
    r"""Stationary law of a query's batches by their own recursion, noise that lasts included.

    Parameters
    ----------
    state : SteadyState
        Of one setting: its times, loads and noise; the moments of (B3) are not used.

    Returns
    -------
    BatchChain or None
        None from an offered load of 0.98 on.

    Notes
    -----
    **(T4)** The chain of (duration, slow level): `z' = ψ z+sqrt(1-ψ^2) e` is the score of the noise
    that lasts, and `D' = (a+r max(B, D)) e^(s sqrt(ρ) z'+s sqrt(1-ρ) e'-s^2/2)`, `s^2 = ln(1+c^2)`,
    with `e, e'` normal and new for each batch. `z` takes the 17 levels of Rouwenhorst's chain
    (1995), whose steps are whole cells of a grid of `ln D`, so that one matrix serves all levels;
    the law is iterated until it stands still. Latencies are (B6) over its intervals and levels,
    durations its mixture of lognormals. With `ψ` towards 1 a level is held for ever, with `ρ = 1`
    durations are autoregressive. Beyond noise in proportion, what counts and additive noise add to
    the variance is drawn anew.

    Against an event simulation, where the latency has a variance: mean within 1 %, p99 within 3 %,
    within 5 % close to where it has none. 5 to 50 ms a setting.

    Examples
    --------
    >>> from headway.models.batches.microbatch import AffineDuration, steady_state
    >>> duration = AffineDuration(1.0, 7e-4, 0.1, lasting_share=0.75, persistence_ratio=0.95)
    >>> chain = batch_chain(steady_state(duration, 1000.0, 0.0, dispersion=0.0))
    >>> round(chain.latency_mean_s, 2), round(float(chain.latency_quantile_s(0.99)), 1)
    (5.81, 13.8)
    """
    recursion = _Recursion.of(state)
    if not recursion.offered_load < _HIGHEST_LOAD:
        return None
    return _chain_of(recursion)


@lru_cache(maxsize=64)  # a plan asks for the setting it prints several times
def _chain_of(recursion: _Recursion) -> BatchChain:
    levels = recursion.levels()
    if levels is _ONE_LEVEL:
        recursion = recursion.all_drawn_anew()
    grid = recursion.grid(levels)
    joint = _stationary(levels, recursion.kernel(grid, levels), grid)
    next_level = levels.transition.T @ joint
    level_factor = np.exp(recursion.lasting_sd * levels.score - 0.5 * recursion.lasting_sd**2)
    kept = next_level > _NEGLIGIBLE * next_level.max()
    mean_s = level_factor[:, np.newaxis] * recursion.mean_s(grid.interval_s)
    return BatchChain(
        probability=next_level[kept] / next_level[kept].sum(),
        interval_s=np.broadcast_to(grid.interval_s, kept.shape)[kept],
        next_mean_s=mean_s[kept],
        next_log_sd=np.broadcast_to(recursion.fresh_sd(grid.interval_s), kept.shape)[kept],
        trigger_s=recursion.trigger_s,
        burst_s=recursion.burst_s,
        after_commit_s=recursion.after_commit_s,
    )


class _Levels(NamedTuple):
    """A chain of few levels in place of a normal autoregression of variance one."""

    score: Array
    transition: Array
    share: Array


_ONE_LEVEL = _Levels(np.zeros(1), np.ones((1, 1)), np.ones(1))


@lru_cache(maxsize=16)
def _levels(persistence: float, num_levels: int) -> _Levels:
    """Rouwenhorst 1995: binomial shares, and the autocorrelation exactly."""
    stay = 0.5 * (1.0 + persistence)
    transition = np.array([[stay, 1.0 - stay], [1.0 - stay, stay]])
    for size in range(3, num_levels + 1):
        grown = np.zeros((size, size))
        grown[:-1, :-1] += stay * transition
        grown[:-1, 1:] += (1.0 - stay) * transition
        grown[1:, :-1] += (1.0 - stay) * transition
        grown[1:, 1:] += stay * transition
        grown[1:-1] *= 0.5
        transition = grown
    num_steps = num_levels - 1
    share = np.array([math.comb(num_steps, up) for up in range(num_levels)]) / 2.0**num_steps
    score = np.linspace(-1.0, 1.0, num_levels) * math.sqrt(num_steps)
    return _Levels(score, transition, share)


class _Grid(NamedTuple):
    """Cells of equal width in the logarithm; the first holds all intervals that are shorter."""

    interval_s: Array
    cell: float
    cells_per_level: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recursion:
    """From an interval to the next duration."""

    fixed_s: float
    offered_load: float
    trigger_s: float
    lasting_sd: float
    relative_fresh_variance: float
    persistence: float
    additive_sd_s: float
    per_row_noise: float
    count_noise_s: float
    burst_s: float
    after_commit_s: float

    @classmethod
    def of(cls, state: SteadyState) -> _Recursion:
        variance = math.log1p(state.relative_noise.item() ** 2)
        share = state.lasting_share.item()
        return cls(
            fixed_s=state.fixed_s.item(),
            offered_load=state.offered_load_ratio.item(),
            trigger_s=state.trigger_s.item(),
            lasting_sd=math.sqrt(share * variance),
            relative_fresh_variance=(1.0 - share) * variance,
            persistence=state.persistence_ratio.item(),
            additive_sd_s=state.additive_sd_s.item(),
            per_row_noise=state.per_row_noise.item(),
            count_noise_s=state.count_noise_s.item(),
            burst_s=state.burst_s.item(),
            after_commit_s=state.after_commit_s.item(),
        )

    def mean_s(self, interval_s: Array) -> Array:
        return self.fixed_s + self.offered_load * interval_s

    def fresh_sd(self, interval_s: Array) -> Array:
        """Logarithmic width of what every batch draws anew."""
        mean_s = self.mean_s(interval_s)
        beyond_s2 = (
            self.additive_sd_s**2
            + (self.per_row_noise * self.offered_load * interval_s) ** 2
            + self.count_noise_s * interval_s
        )
        variance = self.relative_fresh_variance + np.log1p(beyond_s2 / mean_s**2)
        return np.maximum(np.sqrt(variance), _NARROWEST_LOG_SD)

    def all_drawn_anew(self) -> _Recursion:
        """The same with the noise that lasts counted among what every batch draws anew."""
        together = self.relative_fresh_variance + self.lasting_sd**2
        return replace(self, lasting_sd=0.0, relative_fresh_variance=together)

    def levels(self) -> _Levels:
        """As many levels as the widest grid can tell from each other."""
        lowest, highest = self._range()
        closest = max((highest - lowest) / _MOST_CELLS, _NARROWEST_LOG_SD)
        for num_levels in _NUMS_OF_LEVELS:
            if self.lasting_sd * 2.0 / math.sqrt(num_levels - 1) >= closest:
                return _levels(self.persistence, num_levels)
        return _ONE_LEVEL

    def _settled_s(self) -> float:
        return max(self.trigger_s, self.fixed_s / (1.0 - self.offered_load))

    def _range(self) -> tuple[float, float]:
        """Logarithms of the shortest and the longest interval of the grid."""
        load, left, settled_s = self.offered_load, self.persistence, self._settled_s()
        fresh = float(self.fresh_sd(np.array([settled_s]))[0])
        # Of a line in the logarithm, which free-running batches follow.
        spread = fresh**2 + self.lasting_sd**2 * (1.0 + load * left) / (1.0 - load * left)
        sd = math.sqrt(spread / (1.0 - load**2))
        middle = math.log(float(self.mean_s(np.array([settled_s]))[0]))
        lowest = math.log(self.trigger_s) if self.trigger_s > 0 else middle - _LOWEST_SD * sd
        highest = max(middle, math.log(settled_s)) + _HIGHEST_SD * sd + _HIGHEST_VARIANCES * sd**2
        return lowest, highest

    def grid(self, levels: _Levels) -> _Grid:
        lowest, highest = self._range()
        fresh = float(self.fresh_sd(np.array([self._settled_s()]))[0])
        cell = max(fresh / _CELLS_PER_FRESH_SD, math.hypot(fresh, self.lasting_sd) / _CELLS_PER_SD)
        cell = max(cell, (highest - lowest) / _MOST_CELLS)
        step = self.lasting_sd * float(np.ptp(levels.score)) / max(len(levels.score) - 1, 1)
        cells_per_level = max(math.ceil(step / cell), 1) if step else 0
        if step:
            cell = step / cells_per_level
        num_cells = max(math.ceil((highest - lowest) / cell), 4)
        return _Grid(np.exp(lowest + cell * np.arange(num_cells)), cell, cells_per_level)

    def kernel(self, grid: _Grid, levels: _Levels) -> Array:
        """Where the next duration falls at the middle level; with room for the other levels."""
        beyond = grid.cells_per_level * (len(levels.score) // 2)
        num_cells = len(grid.interval_s)
        upper = math.log(grid.interval_s[0]) + grid.cell * (
            np.arange(-beyond, num_cells + beyond - 1) + 0.5
        )
        fresh_variance = self.fresh_sd(grid.interval_s) ** 2
        # A cell is as wide as it is: what that adds to the variance is taken off.
        width = np.sqrt(np.maximum(fresh_variance - grid.cell**2 / 12.0, 0.0))
        width = np.maximum(width, _LEAST_KERNEL_CELLS * grid.cell)
        middle = np.log(self.mean_s(grid.interval_s)) - 0.5 * (fresh_variance + self.lasting_sd**2)
        below = quick_ndtr((upper - middle[:, np.newaxis]) / width[:, np.newaxis])
        return np.diff(below, axis=1, prepend=0.0, append=1.0)


class _Blocks(NamedTuple):
    """Blocks of rows of a kernel, with what they reach: little work, too little for threads."""

    kernels: Array
    starts: list[int]
    num_columns: int

    @classmethod
    def of(cls, kernel: Array) -> _Blocks:
        padded = np.pad(kernel, ((0, -len(kernel) % _BLOCK), (0, 0)))
        rows = padded.reshape(-1, _BLOCK, kernel.shape[1])
        reached = np.asarray((rows > _UNREACHED).any(axis=1))
        first = reached.argmax(axis=1)
        width = int((reached.shape[1] - reached[:, ::-1].argmax(axis=1) - first).max())
        starts = np.minimum(first, kernel.shape[1] - width).tolist()
        parts = [block[:, start : start + width] for block, start in zip(rows, starts, strict=True)]
        return cls(np.array(parts), starts, kernel.shape[1])

    def applied(self, joint: Array) -> Array:
        """The product of some rows of probabilities and the kernel."""
        num_rows, num_cells = joint.shape
        padded = np.pad(joint, ((0, 0), (0, -num_cells % _BLOCK)))
        parts = padded.reshape(num_rows, -1, _BLOCK).transpose(1, 0, 2) @ self.kernels
        total, width = np.zeros((num_rows, self.num_columns)), self.kernels.shape[2]
        for part, start in zip(parts, self.starts, strict=True):
            total[:, start : start + width] += part
        return total


def _stationary(levels: _Levels, kernel: Array, grid: _Grid) -> Array:
    """Probability of each level and interval, iterated from all batches at the middle."""
    num_levels, num_cells = len(levels.score), len(grid.interval_s)
    blocks = _Blocks.of(kernel)
    shifts = [grid.cells_per_level * level for level in range(num_levels - 1, -1, -1)]
    joint = levels.share[:, np.newaxis] * np.full(num_cells, 1.0 / num_cells)
    last_s = math.inf
    for step in range(_MOST_STEPS):
        spread = blocks.applied(levels.transition.T @ joint)
        joint = np.empty_like(joint)
        for level, shift in enumerate(shifts):
            row = spread[level]
            joint[level] = row[shift : shift + num_cells]
            joint[level, 0] += row[:shift].sum()
            joint[level, -1] += row[shift + num_cells :].sum()
        if step % _STEPS_BETWEEN_LOOKS == 0:
            mean_s = float((joint @ grid.interval_s).sum())
            if abs(mean_s - last_s) <= _CHANGE * mean_s:
                break
            last_s = mean_s
    return np.asarray(joint)


def _ended(x_s: float, mean_s: Array, log_sd: Array) -> Array:
    return quick_ndtr(np.log(max(x_s, _LEAST_S) / mean_s) / log_sd + 0.5 * log_sd)


def _area(x_s: Array, mean_s: Array, log_sd: Array) -> Array:
    """Integral of a lognormal distribution function up to ``x_s`` (D3)."""
    score = np.log(np.maximum(x_s, _LEAST_S) / mean_s) / log_sd + 0.5 * log_sd
    area = x_s * quick_ndtr(score) - mean_s * quick_ndtr(score - log_sd)
    return np.asarray(np.where(x_s > 0.0, np.maximum(area, 0.0), 0.0), dtype=np.float64)


def _at_each(x_s: Numeric, of_one: Callable[[float], float]) -> Array:
    points = np.asarray(x_s, dtype=np.float64)
    return np.array([of_one(x) for x in points.ravel().tolist()]).reshape(points.shape)


def _quantile_s(cdf: Callable[[Numeric], Array], q: Numeric, guess_s: float) -> Array:
    wanted = open_probability(q)

    def excess(x_s: Array) -> Array:
        return np.asarray(np.log((1.0 - wanted) / np.maximum(1.0 - cdf(x_s), _LEAST_TAIL)))

    return increasing_root(excess, np.full(wanted.shape, guess_s), 1e-7)
