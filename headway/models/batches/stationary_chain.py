"""Stationary distribution of batch intervals and slow levels of their noise, on a grid."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from headway.lazy_classes import dataclass
from headway.models.arrays import Array
from headway.models.batches.microbatch import SteadyState
from headway.models.laws.normal import quick_ndtr

# Rouwenhorst's chain of 17 levels reaches four standard deviations. If so little noise lasts that
# its levels would be closer than cells, fewer and wider levels suffice: the fresh noise smooths
# them.
_NUMS_OF_LEVELS = (17, 5, 3)
_CELLS_PER_FRESH_SD, _CELLS_PER_SD = 1.25, 8.0
_LEAST_KERNEL_CELLS = 0.5  # if narrower, rounding to cells would move the mean
_MOST_CELLS = 400
_LOWEST_SD, _HIGHEST_SD, _HIGHEST_VARIANCES = 5.0, 8.0, 3.0
_HIGHEST_LOG = 230.0  # the cube of such an interval is still a number
_NARROWEST_LOG_SD = 1e-4  # a constant is the lognormal of this width
_CHANGE, _STEPS_PER_ROUND, _MOST_ROUNDS = 5e-8, 5, 100
_BLOCK, _REACHED_SD = 32, 7.5


class Levels(NamedTuple):
    """A chain of few levels instead of a normal autoregression of variance one."""

    score: Array
    transition: Array
    share: Array


_ONE_LEVEL = Levels(np.zeros(1), np.ones((1, 1)), np.ones(1))


@lru_cache(maxsize=16)
def _levels(persistence: float, num_levels: int) -> Levels:
    """Rouwenhorst 1995: binomial shares, and exactly this autocorrelation."""
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
    return Levels(score, transition, share)


class Grid(NamedTuple):
    """Cells of equal width in the logarithm; the first contains all shorter intervals."""

    interval_s: Array
    cell: float
    cells_per_level: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recursion:
    """From an interval to the next duration; the fields are those of a `SteadyState`."""

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
    def of(cls, state: SteadyState) -> Recursion:
        """The recursion of one setting."""
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

    def times(self, ratio: float) -> Recursion:
        """The same with all durations multiplied by ``ratio``."""
        return replace(self, fixed_s=ratio * self.fixed_s, offered_load=ratio * self.offered_load)

    def mean_s(self, interval_s: Array) -> Array:
        """Mean duration of the batch that an interval collects. [s]"""
        return self.fixed_s + self.offered_load * interval_s

    def fresh_sd(self, interval_s: Array) -> Array:
        """Logarithmic width of the noise that every batch draws anew."""
        mean_s = self.mean_s(interval_s)
        beyond_s2 = (
            self.additive_sd_s**2
            + (self.per_row_noise * self.offered_load * interval_s) ** 2
            + self.count_noise_s * interval_s
        )
        variance = self.relative_fresh_variance + np.log1p(beyond_s2 / mean_s**2)
        return np.maximum(np.sqrt(variance), _NARROWEST_LOG_SD)

    def all_drawn_anew(self) -> Recursion:
        """The same with the lasting noise treated as drawn anew for every batch."""
        fresh_variance = self.relative_fresh_variance + self.lasting_sd**2
        return replace(self, lasting_sd=0.0, relative_fresh_variance=fresh_variance)

    def levels(self) -> Levels:
        """As many levels as the widest grid can distinguish."""
        lowest, highest = self._range()
        closest = max((highest - lowest) / _MOST_CELLS, _NARROWEST_LOG_SD)
        for num_levels in _NUMS_OF_LEVELS:
            if self.lasting_sd * 2.0 / math.sqrt(num_levels - 1) >= closest:
                return _levels(self.persistence, num_levels)
        return _ONE_LEVEL

    def grid(self, levels: Levels) -> Grid:
        """The intervals that the distribution distinguishes."""
        lowest, highest = self._range()
        fresh = float(self.fresh_sd(np.array([self.settled_s]))[0])
        cell = max(fresh / _CELLS_PER_FRESH_SD, math.hypot(fresh, self.lasting_sd) / _CELLS_PER_SD)
        cell = max(cell, (highest - lowest) / _MOST_CELLS)
        step = self.lasting_sd * float(np.ptp(levels.score)) / max(len(levels.score) - 1, 1)
        cells_per_level = max(math.ceil(step / cell), 1) if step else 0
        if step:
            cell = step / cells_per_level
        num_cells = max(math.ceil((highest - lowest) / cell), 4) + 1
        logs = lowest + cell * np.arange(num_cells)
        # A tail without a mean depends on where it is cut, which must not jump with the load. The
        # last cell stands for all beyond its edge, cut at the end of the range: of a tail at the
        # edge of having a mean, this is its contribution to the mean.
        edge = logs[-1] - 0.5 * cell
        logs[-1] = edge + 0.5 * math.log1p(max(2.0 * (highest - edge), -min(cell, 0.5)))
        return Grid(np.exp(logs), cell, cells_per_level)

    def start(self, levels: Levels, grid: Grid) -> Array:
        """The start: where batches of each level settle, which saves steps."""
        denominator = 1.0 - self.offered_load * self.persistence
        settled = math.log(self.settled_s) + self.lasting_sd / denominator * levels.score
        cells = np.rint((settled - math.log(grid.interval_s[0])) / grid.cell).astype(np.intp)
        joint = np.zeros((len(levels.score), len(grid.interval_s)))
        joint[np.arange(len(joint)), np.clip(cells, 0, joint.shape[1] - 1)] = levels.share
        return joint

    @property
    def settled_s(self) -> float:
        """The interval at which batches without noise settle. [s]"""
        return max(self.trigger_s, self.fixed_s / (1.0 - self.offered_load))

    def _range(self) -> tuple[float, float]:
        """Logarithms of the shortest and the longest interval of the grid."""
        load, persistence, settled_s = self.offered_load, self.persistence, self.settled_s
        fresh = float(self.fresh_sd(np.array([settled_s]))[0])
        # Variance of a linear recursion of logarithms, which free-running batches follow.
        spread = fresh**2 + self.lasting_sd**2 * (1.0 + load * persistence) / (
            1.0 - load * persistence
        )
        sd = math.sqrt(spread / (1.0 - load**2))
        middle = math.log(float(self.mean_s(np.array([settled_s]))[0]))
        lowest = math.log(self.trigger_s) if self.trigger_s > 0 else middle - _LOWEST_SD * sd
        highest = max(middle, math.log(settled_s)) + _HIGHEST_SD * sd + _HIGHEST_VARIANCES * sd**2
        return lowest, min(highest, _HIGHEST_LOG)


def _step_of(recursion: Recursion, levels: Levels, grid: Grid) -> Callable[[Array], Array]:
    """From the distribution of one batch to that of the next.

    The kernel is the distribution of the next duration at the middle level, with room for the
    others, in blocks of rows with the cells that they reach. It is too little work for threads.
    """
    num_levels, num_cells, per_level = len(levels.score), len(grid.interval_s), grid.cells_per_level
    room = per_level * (num_levels // 2)
    num_columns = num_cells + 2 * room
    lowest = math.log(grid.interval_s[0]) - grid.cell * room
    fresh_variance = recursion.fresh_sd(grid.interval_s) ** 2
    # The width of a cell adds to the variance, which is subtracted here.
    width = np.sqrt(np.maximum(fresh_variance - grid.cell**2 / 12.0, 0.0))
    width = np.maximum(width, _LEAST_KERNEL_CELLS * grid.cell)
    middle = np.log(recursion.mean_s(grid.interval_s))
    middle -= 0.5 * (fresh_variance + recursion.lasting_sd**2)
    padding = (0, -num_cells % _BLOCK)
    middle, width = (
        np.pad(values, padding, mode="edge").reshape(-1, _BLOCK) for values in (middle, width)
    )
    first = np.floor(((middle - _REACHED_SD * width).min(axis=1) - lowest) / grid.cell)
    last = np.ceil(((middle + _REACHED_SD * width).max(axis=1) - lowest) / grid.cell)
    num_blocks, num_reached = len(first), min(int((last - first).max()) + 1, num_columns)
    starts = np.clip(first, 0, num_columns - num_reached).astype(np.intp)
    columns = starts[:, np.newaxis] + np.arange(num_reached)
    upper = lowest + grid.cell * (columns + 0.5)
    upper[columns == num_columns - 1] = np.inf
    # Arrays of this size are used again, since the system clears new ones.
    kernels = upper[:, np.newaxis, :] - middle[..., np.newaxis]
    kernels /= width[..., np.newaxis]
    shares = quick_ndtr(kernels)
    kernels[..., 0] = shares[..., 0]
    np.subtract(shares[..., 1:], shares[..., :-1], out=kernels[..., 1:])
    shift = per_level * np.arange(num_levels - 1, -1, -1)[:, np.newaxis]
    column = np.arange(num_columns)
    before = (column[: 2 * room] < shift).astype(np.float64)
    beyond = (column[num_cells:] >= shift + num_cells).astype(np.float64)

    moved = np.zeros((num_levels, num_blocks * _BLOCK))
    moved_blocks = moved.reshape(num_levels, num_blocks, _BLOCK).transpose(1, 0, 2)
    parts = np.empty((num_blocks, num_levels, num_reached))
    spread = np.empty((num_levels, num_columns))
    reached = [spread[:, start : start + num_reached] for start in starts.tolist()]
    # Each level is shifted by the cells per level: rows of the result begin earlier and earlier.
    shifted = np.ndarray(
        shape=(num_levels, num_cells),
        buffer=spread,
        offset=per_level * (num_levels - 1) * spread.itemsize,
        strides=((num_columns - per_level) * spread.itemsize, spread.itemsize),
    )

    def following(joint: Array) -> Array:
        moved[:, :num_cells] = levels.transition.T @ joint
        np.matmul(moved_blocks, kernels, out=parts)
        spread.fill(0.0)
        for cells, part in zip(reached, parts, strict=True):
            cells += part
        result = shifted.copy()
        result[:, 0] += np.einsum("lc,lc->l", spread[:, : 2 * room], before)
        result[:, -1] += np.einsum("lc,lc->l", spread[:, num_cells:], beyond)
        return result

    return following


def stationary(recursion: Recursion) -> tuple[Recursion, Levels, Grid, Array]:
    """The stationary distribution of intervals and levels of one setting (T4).

    The recursion, in which lasting noise that no level distinguishes is drawn anew, its levels and
    intervals, and the probability of each pair of these. Iterated from where batches settle; after
    every few steps the limit is extrapolated.

    Parameters
    ----------
    recursion : Recursion
        Of a setting with an offered load below one.

    >>> from headway.models.batches.microbatch import AffineDuration, steady_state
    >>> state = steady_state(AffineDuration(1.0, 5e-4, 0.1), 1000.0, 0.0, dispersion=0.0)
    >>> _, _, grid, joint = stationary(Recursion.of(state))
    >>> round(float((joint @ grid.interval_s).sum()), 3)
    2.0
    """
    levels = recursion.levels()
    if levels is _ONE_LEVEL:
        recursion = recursion.all_drawn_anew()
    grid = recursion.grid(levels)
    following, start = _step_of(recursion, levels, grid), recursion.start(levels, grid)
    return recursion, levels, grid, _iterated(following, start, grid.interval_s, levels.share)


def _iterated(
    following: Callable[[Array], Array], joint: Array, interval_s: Array, level_share: Array
) -> Array:
    """The distribution that a step does not change, by reduced-rank extrapolation.

    Eddy 1979, Mesina 1977: after a few steps, the combination of their results that would move
    least takes their place.
    """
    shape = joint.shape
    states = np.empty((_STEPS_PER_ROUND + 1, joint.size))
    moves, bends = np.empty_like(states[1:]), np.empty_like(states[2:])
    for _ in range(_MOST_ROUNDS):
        states[0] = joint.ravel()
        for step in range(_STEPS_PER_ROUND):
            joint = following(joint)
            states[step + 1] = joint.ravel()
        np.subtract(states[1:], states[:-1], out=moves)
        change = float(np.abs(moves[-1]).reshape(shape).sum(axis=0) @ interval_s)
        if change <= _CHANGE * float(joint.sum(axis=0) @ interval_s):
            break
        np.subtract(moves[:-1], moves[-1], out=bends)
        weights = np.linalg.lstsq(bends @ bends.T, -bends @ moves[-1], rcond=None)[0]
        np.subtract(states[1:-1], states[-1], out=bends)
        joint = states[-1] + weights @ bends
        joint = np.maximum(joint, 0.0).reshape(shape)
        joint *= (level_share / joint.sum(axis=1))[:, np.newaxis]
    return joint
