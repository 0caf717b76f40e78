"""Stationary distribution of batch intervals and slow levels of their noise, on a grid."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, TypeAlias

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
_BLOCK, _COLUMNS, _REACHED_SD = 16, 64, 7.5


class Grid(NamedTuple):
    """What the distribution distinguishes: intervals, and levels of the noise that lasts."""

    interval_s: Array  # of cells of equal width in the logarithm, the first of all shorter ones
    cell: float
    cells_per_level: int
    score: Array  # of a few levels, instead of a normal autoregression of variance one
    transition: Array
    level_share: Array


#: Scores, transitions and shares of levels.
_Levels: TypeAlias = tuple[Array, Array, Array]
_ONE_LEVEL: _Levels = (np.zeros(1), np.ones((1, 1)), np.ones(1))


@lru_cache(maxsize=16)
def _levels(persistence: float, num_levels: int) -> _Levels:
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
    return score, transition, share


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
        beyond_s2 = self.additive_sd_s**2 + self.count_noise_s * interval_s
        variance = self.relative_fresh_variance + np.log1p(beyond_s2 / mean_s**2)
        return np.maximum(np.sqrt(variance), _NARROWEST_LOG_SD)

    def all_drawn_anew(self) -> Recursion:
        """The same with the lasting noise treated as drawn anew for every batch."""
        fresh_variance = self.relative_fresh_variance + self.lasting_sd**2
        return replace(self, lasting_sd=0.0, relative_fresh_variance=fresh_variance)

    def levels(self) -> _Levels:
        """As many levels as the widest grid can distinguish."""
        lowest, highest = self._range()
        closest = max((highest - lowest) / _MOST_CELLS, _NARROWEST_LOG_SD)
        for num_levels in _NUMS_OF_LEVELS:
            if self.lasting_sd * 2.0 / math.sqrt(num_levels - 1) >= closest:
                return _levels(self.persistence, num_levels)
        return _ONE_LEVEL

    def grid(self, levels: _Levels) -> Grid:
        """The intervals for these levels."""
        score, (lowest, highest) = levels[0], self._range()
        fresh = float(self.fresh_sd(np.array([self.settled_s]))[0])
        cell = max(fresh / _CELLS_PER_FRESH_SD, math.hypot(fresh, self.lasting_sd) / _CELLS_PER_SD)
        cell = max(cell, (highest - lowest) / _MOST_CELLS)
        step = self.lasting_sd * float(np.ptp(score)) / max(len(score) - 1, 1)
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
        return Grid(np.exp(logs), cell, cells_per_level, *levels)

    def start(self, grid: Grid) -> Array:
        """The start: where batches of each level settle, which saves steps."""
        denominator = 1.0 - self.offered_load * self.persistence
        settled = math.log(self.settled_s) + self.lasting_sd / denominator * grid.score
        cells = np.rint((settled - math.log(grid.interval_s[0])) / grid.cell).astype(np.intp)
        joint = np.zeros((len(grid.score), len(grid.interval_s)))
        joint[np.arange(len(joint)), np.clip(cells, 0, joint.shape[1] - 1)] = grid.level_share
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


def _step_of(recursion: Recursion, grid: Grid) -> Callable[[Array, Array], Array]:
    """From the distribution of one batch to that of the next, which is put into another array.

    The kernel is the distribution of the next duration at the middle level, with room for the
    others. Some columns at a time are computed from the rows that reach them. It is too little work
    for threads.
    """
    num_levels, num_cells, per_level = len(grid.score), len(grid.interval_s), grid.cells_per_level
    room = per_level * (num_levels // 2)
    num_columns = num_cells + 2 * room
    lowest = math.log(grid.interval_s[0]) - grid.cell * room
    kernel, reached = _kernel(recursion, grid, lowest, num_columns)

    moved, spread = np.empty((num_levels, num_cells)), np.zeros((num_levels, num_columns))
    products = []
    for begin in range(0, num_columns, _COLUMNS):
        columns = slice(begin, min(begin + _COLUMNS, num_columns))
        rows = [
            number
            for number, cells in enumerate(reached)
            if cells.start < columns.stop and cells.stop > columns.start
        ]
        if rows:
            cells = slice(_BLOCK * rows[0], min(_BLOCK * (rows[-1] + 1), num_cells))
            products.append((moved[:, cells], kernel[cells, columns], spread[:, columns]))
    # Each level is shifted by the cells per level: rows of the result begin earlier and earlier.
    item = spread.itemsize
    shifted = np.ndarray(
        shape=(num_levels, num_cells),
        buffer=spread,
        offset=per_level * (num_levels - 1) * item,
        strides=((num_columns - per_level) * item, item),
    )
    # What a level has before its first cell, and beyond its last one.
    ends = np.ndarray(
        shape=(num_levels, 2, 2 * room),
        buffer=spread,
        strides=(num_columns * item, num_cells * item, item),
    )
    shift = per_level * np.arange(num_levels - 1, -1, -1)[:, np.newaxis]
    column = np.arange(2 * room)
    is_outside = np.stack([column < shift, column >= shift], axis=1).astype(np.float64)
    transition = np.ascontiguousarray(grid.transition.T)

    def following(joint: Array, result: Array) -> Array:
        np.matmul(transition, joint, out=moved)
        for from_cells, of_cells, into_columns in products:
            np.matmul(from_cells, of_cells, out=into_columns)
        np.copyto(result, shifted)
        result[:, :: num_cells - 1] += np.einsum("lec,lec->le", ends, is_outside)
        return result

    return following


def _kernel(
    recursion: Recursion, grid: Grid, lowest: float, num_columns: int
) -> tuple[Array, list[slice]]:
    """Shares of the durations after each interval, of which columns begin at a logarithm.

    Also the columns that each block of rows reaches; the others are zero.
    """
    num_cells = len(grid.interval_s)
    num_blocks = -(-num_cells // _BLOCK)
    interval_s = grid.interval_s[np.minimum(np.arange(num_blocks * _BLOCK), num_cells - 1)]
    interval_s = interval_s.reshape(num_blocks, _BLOCK)
    fresh_variance = recursion.fresh_sd(interval_s) ** 2
    # The width of a cell adds to the variance, which is subtracted here.
    width = np.sqrt(np.maximum(fresh_variance - grid.cell**2 / 12.0, 0.0))
    width = np.maximum(width, _LEAST_KERNEL_CELLS * grid.cell)
    middle = np.log(recursion.mean_s(interval_s))
    middle -= 0.5 * (fresh_variance + recursion.lasting_sd**2)
    first = np.floor(((middle - _REACHED_SD * width).min(axis=1) - lowest) / grid.cell)
    last = np.ceil(((middle + _REACHED_SD * width).max(axis=1) - lowest) / grid.cell)
    num_reached = min(int((last - first).max()) + 1, num_columns)
    starts = np.clip(first, 0, num_columns - num_reached).astype(np.intp)
    columns = starts[:, np.newaxis] + np.arange(num_reached)
    upper = lowest + grid.cell * (columns + 0.5)
    upper[columns == num_columns - 1] = np.inf
    # Arrays of this size are used again, since the system clears new ones.
    blocks = upper[:, np.newaxis, :] - middle[..., np.newaxis]
    blocks /= width[..., np.newaxis]
    shares = quick_ndtr(blocks)
    blocks[..., 0] = shares[..., 0]
    np.subtract(shares[..., 1:], shares[..., :-1], out=blocks[..., 1:])
    kernel = np.zeros((num_blocks, _BLOCK, num_columns))
    reached = [slice(start, start + num_reached) for start in starts.tolist()]
    for rows, cells, block in zip(kernel, reached, blocks, strict=True):
        rows[:, cells] = block
    return kernel.reshape(-1, num_columns), reached


def stationary(recursion: Recursion) -> tuple[Recursion, Grid, Array]:
    """The stationary distribution of intervals and levels of one setting below saturation (T4).

    The recursion, in which lasting noise that no level distinguishes is drawn anew, its levels and
    intervals, and the probability of each pair of these. Iterated from where batches settle; after
    every few steps the limit is extrapolated.

    >>> from headway.models.batches.microbatch import AffineDuration, steady_state
    >>> state = steady_state(AffineDuration(1.0, 5e-4, 0.1), 1000.0, 0.0, dispersion=0.0)
    >>> _, grid, joint = stationary(Recursion.of(state))
    >>> round(float((joint @ grid.interval_s).sum()), 3)
    2.0
    """
    levels = recursion.levels()
    if levels is _ONE_LEVEL:
        recursion = recursion.all_drawn_anew()
    grid = recursion.grid(levels)
    following, start = _step_of(recursion, grid), recursion.start(grid)
    return recursion, grid, _iterated(following, start, grid)


def _iterated(following: Callable[[Array, Array], Array], joint: Array, grid: Grid) -> Array:
    """The distribution that a step does not change, by reduced-rank extrapolation.

    Eddy 1979, Mesina 1977: after a few steps, the combination of their results that would move
    least takes their place.
    """
    states: Array = np.empty((_STEPS_PER_ROUND + 1, *joint.shape))
    rows = states.reshape(len(states), -1)
    moves = np.empty_like(rows[1:])
    states[0] = joint
    for _ in range(_MOST_ROUNDS):
        for before, after in pairwise(states):
            following(before, after)
        np.subtract(rows[1:], rows[:-1], out=moves)
        change = float(np.abs(moves[-1]).reshape(joint.shape).sum(axis=0) @ grid.interval_s)
        if change <= _CHANGE * float(states[-1].sum(axis=0) @ grid.interval_s):
            break
        moves[:-1] -= moves[-1]
        products = moves[:-1] @ moves.T
        weights = np.linalg.lstsq(products[:, :-1], -products[:, -1], rcond=None)[0]
        np.matmul(np.append(weights, 1.0 - weights.sum()), rows[1:], out=rows[0])
        np.maximum(states[0], 0.0, out=states[0])
        states[0] *= (grid.level_share / states[0].sum(axis=1))[:, np.newaxis]
    return np.array(states[-1])
