"""Pieces that a window is merged from (panes, smaller windows, roll-ups), with fewest merges."""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headway.domain.window_set import WindowSet, WindowSpec

_MOST_PERIODS = 20
"""Number of longest windows in a steady horizon if the slides have no short common period."""


_FEWEST_TOGETHER, _MOST_TOGETHER = 8, 1000
"""Number of windows of one size whose pieces are found at the same time."""
_MOST_STEPS = 600_000
"""Steps of a search for roll-ups, each of which takes some microseconds."""


class Piece(NamedTuple):
    """A partial result over ``[start_ms, start_ms + length_ms)``."""

    start_ms: int
    length_ms: int


def one_per_piece(length_ms: int) -> float:  # noqa: ARG001
    """Weight 1 of a piece, if pieces are only counted, as in Enorm 2016, section 6.1."""
    return 1.0


def present_keys(num_keys: float, rows_per_ms: float) -> Callable[[int], float]:
    r"""Keys in a piece, if keys are equally frequent and rows arrive at random times.

    The function takes the length of a piece [ms] and returns the mean number of its keys. The
    stream has ``num_keys`` keys, `K`, and the arrival rate ``rows_per_ms``, `λ`.

    **(H1)** Keys of a piece of length `L`: `K (1 - e^(-λ L/K))`, since a key is absent with the
    probability that a Poisson count is 0. If the rows of each piece are given (K5), the exponential
    is `(1 - 1/K)^(λ L)`. Enorm 2016, section 6.1, doi:10.1145/2933267.2933315.

    >>> keys = present_keys(1000, 1000 / 60_000)
    >>> keys(15 * 60_000) + keys(5 * 60_000), 2 * keys(10 * 60_000)
    (1993.26, 1999.91)
    """
    return lambda length_ms: -num_keys * math.expm1(-rows_per_ms * length_ms / num_keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePlan:
    """The pieces that every window is merged from.

    ``rollups`` are additional tumbling windows that were not requested but make larger windows
    cheaper. ``pane_ms`` divides every window.
    """

    windows: WindowSet
    pane_ms: int
    rollups: tuple[WindowSpec, ...] = ()
    weight: Callable[[int], float] = one_per_piece

    def __post_init__(self) -> None:
        lengths = [part for spec in self.made for part in (spec.size_ms, spec.slide_ms)]
        offsets = [spec.offset_ms for spec in self.made]
        if self.pane_ms < 1 or any(part % self.pane_ms for part in (*lengths, *offsets)):
            raise ValueError(
                f"a pane of {self.pane_ms} ms does not divide all of {lengths}; expected a divisor "
                f"of {self.windows.pane_ms}"
            )

    @property
    def made(self) -> tuple[WindowSpec, ...]:
        """All roll-ups and windows that are merged, smallest first."""
        return tuple(sorted((*self.rollups, *self.windows.windows)))

    def pieces(self, spec: WindowSpec, start_ms: int) -> tuple[Piece, ...]:
        """Pieces of least total weight that make up the window of ``spec`` at ``start_ms``."""
        return _shortest(self._smaller(spec), start_ms, spec.size_ms, self.pane_ms, self.weight)

    def cost(self, spec: WindowSpec, start_ms: int) -> float:
        """Total weight of those pieces."""
        return sum(self.weight(piece.length_ms) for piece in self.pieces(spec, start_ms))

    def total_cost(self, horizon_ms: int) -> float:
        """Weight of everything merged for windows that end in ``(0, horizon_ms]``."""
        return sum(self._cost_between(spec, horizon_ms) for spec in self.made)

    def num_steps(self, horizon_ms: int) -> int:
        """How many steps finding all pieces takes: panes by kinds of pieces by groups of starts."""
        return sum(
            spec.size_ms
            // self.pane_ms
            * (1 + len(self._smaller(spec)))
            * -(-len(self._different_starts(spec, horizon_ms)) // _MOST_TOGETHER)
            for spec in self.made
        )

    def naive_cost(self, horizon_ms: int) -> float:
        """The same if every window is merged from panes only, without roll-ups."""
        pane = self.weight(self.pane_ms)
        return sum(
            len(spec.ends_between(0, horizon_ms)) * (spec.size_ms // self.pane_ms) * pane
            for spec in self.windows.windows
        )

    def kept_lengths_ms(self, horizon_ms: int) -> frozenset[int]:
        """Sizes of the windows and roll-ups that larger ones are merged from."""
        return frozenset(
            piece.length_ms
            for spec in self.made
            for start_ms in self._different_starts(spec, horizon_ms)
            for piece in self.pieces(spec, start_ms)
            if piece.length_ms > self.pane_ms
        )

    def _smaller(self, spec: WindowSpec) -> tuple[WindowSpec, ...]:
        return tuple(candidate for candidate in self.made if candidate.size_ms < spec.size_ms)

    def _cost_between(self, spec: WindowSpec, horizon_ms: int) -> float:
        starts = self._different_starts(spec, horizon_ms)
        if len(starts) < _FEWEST_TOGETHER:
            return sum(number * self.cost(spec, start_ms) for start_ms, number in starts.items())
        starts_ms, costs = np.array(list(starts)), list[float]()
        for first in range(0, len(starts_ms), _MOST_TOGETHER):
            some_ms = starts_ms[first : first + _MOST_TOGETHER]
            costs += _least_costs(
                self._smaller(spec), some_ms, spec.size_ms, self.pane_ms, self.weight
            )
        return float(sum(map(operator.mul, starts.values(), costs)))

    def _different_starts(self, spec: WindowSpec, horizon_ms: int) -> Counter[int]:
        """Starts of windows; those with the same position relative to their pieces count as one."""
        period_ms = math.lcm(self.pane_ms, *(smaller.slide_ms for smaller in self._smaller(spec)))
        ends_ms = spec.ends_between(0, horizon_ms)
        return Counter((end_ms - spec.size_ms) % period_ms for end_ms in ends_ms)


def _least_costs(
    smaller: Iterable[WindowSpec],
    starts_ms: NDArray[np.int64],
    size_ms: int,
    pane_ms: int,
    weight: Callable[[int], float],
) -> list[float]:
    """Weights of the shortest paths from several starts to the ends of windows of one size."""
    num_panes = size_ms // pane_ms
    cost_to_pane = np.full((num_panes + 1, len(starts_ms)), np.inf)
    cost_to_pane[0] = 0.0
    pane_cost = weight(pane_ms)
    steps = [(spec, spec.size_ms // pane_ms, weight(spec.size_ms)) for spec in smaller]
    for pane in range(num_panes):
        reached = cost_to_pane[pane]
        np.minimum(cost_to_pane[pane + 1], reached + pane_cost, out=cost_to_pane[pane + 1])
        at_ms = starts_ms + pane * pane_ms
        for spec, length, cost in steps:
            if pane + length > num_panes:
                continue
            begins = (at_ms - spec.offset_ms) % spec.slide_ms == 0
            if begins.any():
                farther = cost_to_pane[pane + length]
                farther[begins] = np.minimum(farther[begins], reached[begins] + cost)
    return [float(cost) for cost in cost_to_pane[-1]]


def _shortest(
    smaller: Iterable[WindowSpec],
    start_ms: int,
    size_ms: int,
    pane_ms: int,
    weight: Callable[[int], float],
) -> tuple[Piece, ...]:
    """Shortest path from start to end; of equally short ones, that with the larger last piece."""
    steps = [(pane_ms, pane_ms, 0, weight(pane_ms))]
    steps += [
        (spec.size_ms, spec.slide_ms, spec.offset_ms, weight(spec.size_ms)) for spec in smaller
    ]
    num_panes = size_ms // pane_ms
    least = [0.0] + [math.inf] * num_panes
    last = [0] * (num_panes + 1)
    for pane in range(num_panes):
        at_ms = start_ms + pane * pane_ms
        for length_ms, slide_ms, offset_ms, cost in steps:
            next_pane = pane + length_ms // pane_ms
            if next_pane > num_panes or (at_ms - offset_ms) % slide_ms:
                continue
            if least[pane] + cost <= least[next_pane]:
                least[next_pane], last[next_pane] = least[pane] + cost, length_ms
    pieces, pane = list[Piece](), num_panes
    while pane:
        length_ms = last[pane]
        pane -= length_ms // pane_ms
        pieces.append(Piece(start_ms + pane * pane_ms, length_ms))
    return tuple(reversed(pieces))


def with_rollups(plan: MergePlan, horizon_ms: int | None = None) -> MergePlan:
    r"""The plan with worthwhile roll-ups: the best one is added as long as one reduces the cost.

    Merges are counted over ``horizon_ms``, by default over :func:`steady_horizon_ms`.

    "Factor windows", arXiv 2008.12379 (2020). Tumbling roll-ups of every multiple of the pane are
    tried; their own merges count. Greedy; equal to enumeration for the sets in
    ``tests/models/sharing``. Where windows have so many panes that this would take more than some
    seconds, only some of the multiples are tried.

    >>> minutes = 60_000
    >>> plan = MergePlan(windows=WindowSet.parse(["20m", "30m"]), pane_ms=minutes)
    >>> better = with_rollups(plan, 60 * minutes)
    >>> plan.total_cost(60 * minutes), better.total_cost(60 * minutes), str(better.rollups[0])
    (82.0, 70.0, '10 min')
    """
    best, steps_left = plan, _MOST_STEPS
    while steps_left > 0:
        candidates = [
            replace(best, rollups=tuple(sorted((*best.rollups, rollup))))
            for rollup in possible_rollups(best)
        ]
        at_ms = horizon_ms or steady_horizon_ms(best)
        num_steps = sum(candidate.num_steps(at_ms) for candidate in candidates)
        if num_steps > steps_left:
            # Of sizes all over the range: which of two similar ones is added matters little.
            stride = min(-(-num_steps // steps_left), len(candidates))
            candidates = candidates[stride // 2 :: stride]
        steps_left -= num_steps
        cheapest = min(candidates, key=lambda candidate: candidate.total_cost(at_ms), default=best)
        if not cheapest.total_cost(at_ms) < best.total_cost(at_ms):
            return best
        best = cheapest
    return best


def possible_rollups(plan: MergePlan) -> list[WindowSpec]:
    """Tumbling windows between the pane and the longest window that do not exist yet.

    Their sizes divide a slide or a size; others do not stay aligned with any window. "Factor
    windows", arXiv 2008.12379 (2020).

    >>> plan = MergePlan(windows=WindowSet.parse(["20m", "30m"]), pane_ms=300_000)
    >>> [str(rollup) for rollup in possible_rollups(plan)]
    ['10 min', '15 min']
    """
    existing_ms = {spec.size_ms for spec in plan.made}
    parts = [part for spec in plan.windows.windows for part in (spec.size_ms, spec.slide_ms)]
    sizes_ms = {
        size_ms
        for part in parts
        for count in range(1, math.isqrt(part // plan.pane_ms) + 1)
        if (part // plan.pane_ms) % count == 0
        for size_ms in (count * plan.pane_ms, part // count)
    }
    return [
        WindowSpec(size_ms=size_ms, slide_ms=size_ms)
        for size_ms in sorted(sizes_ms - existing_ms)
        if plan.pane_ms < size_ms < plan.windows.longest_ms
    ]


def steady_horizon_ms(plan: MergePlan) -> int:
    """A time over which the merges of a plan are representative. [ms]

    It is a common period of all roll-ups and windows, over which the count is exact, at most 20
    times the longest window; Enorm 2016, section 6.1, counts over an hour.

    >>> windows = WindowSet.parse(["1h every 5m", "10m"])
    >>> plan = MergePlan(windows=windows, pane_ms=windows.pane_ms)
    >>> steady_horizon_ms(plan), plan.total_cost(3_600_000), plan.naive_cost(3_600_000)
    (600000, 90.0, 156.0)
    """
    period_ms = math.lcm(*(spec.slide_ms for spec in plan.made))
    return min(period_ms, _MOST_PERIODS * plan.windows.longest_ms)
