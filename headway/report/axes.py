"""Axes of charts: round ticks in one unit, and positions in per cent of the plot."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from headway.domain import Interval
from headway.units import S_PER_DAY, S_PER_HOUR, round_step, round_step_s

_MOST_TICKS = 6
HEADROOM_RATIO = 1.08  # above the highest mark, for its symbol
_CLOCK_UNITS = ((S_PER_DAY, "d"), (S_PER_HOUR, "h"), (60.0, "min"), (1.0, "s"))
_SHORT_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))
_RATE_UNITS = ((1e9, "G/s"), (1e6, "M/s"), (1e3, "k/s"), (1.0, "/s"))

Tick: TypeAlias = tuple[float, str]
"""A position on an axis, in per cent of its length, and the label there."""
Scale: TypeAlias = Callable[[float], tuple[float, Callable[[float], str]]]
"""The first round step that is not below one, and the label of its multiples, all in one unit."""


def durations(min_step_s: float) -> tuple[float, Callable[[float], str]]:
    """Steps as clocks have them.

    >>> for min_step_s in (0.16, 4.0, 48.0, 500.0, 5000.0):
    ...     step_s, label = durations(min_step_s)
    ...     print(label(step_s), label(3 * step_s), sep=", ")
    0.2 s, 0.6 s
    5 s, 15 s
    1 min, 3 min
    10 min, 30 min
    2 h, 6 h
    """
    step_s = round_step_s(min_step_s)
    if min_step_s <= 1.0:
        # Five steps are within every axis that has them.
        size, unit = _unit_of(5.0 * step_s, _SHORT_UNITS)
    else:
        size, unit = _unit_of(step_s, _CLOCK_UNITS)
    return step_s, lambda value_s: f"{value_s / size:.6g} {unit}"


def rates(min_step_per_s: float) -> tuple[float, Callable[[float], str]]:
    """Steps of rows per second.

    >>> step_per_s, label = rates(180.0)
    >>> label(step_per_s), label(6 * step_per_s)
    ('0.2k/s', '1.2k/s')
    """
    step_per_s = round_step(min_step_per_s)
    size, unit = _unit_of(5.0 * step_per_s, _RATE_UNITS)
    return step_per_s, lambda rate_per_s: f"{rate_per_s / size:.6g}{unit}"


def counts(min_step: float) -> tuple[float, Callable[[float], str]]:
    """Whole steps.

    >>> [counts(min_step)[0] for min_step in (0.2, 2.1, 20.0)]
    [1.0, 5.0, 20.0]
    """
    step = round_step(max(min_step, 1.0))
    return step if step == int(step) else 2.0 * step, "{:,.0f}".format


def shares(min_step_ratio: float) -> tuple[float, Callable[[float], str]]:
    """Steps of per cent."""
    return round_step(min_step_ratio), lambda share: f"{100.0 * share:.6g}%"


def axis(values: Sequence[float], scale: Scale) -> tuple[tuple[Tick, ...], float]:
    """Round ticks from zero, and the end of the axis; unbounded values are drawn at the end."""
    highest = max((value for value in values if math.isfinite(value)), default=0.0) or 1.0
    top = highest * HEADROOM_RATIO
    return ticks_to(top, scale), top


def ticks_to(top: float, scale: Scale) -> tuple[Tick, ...]:
    """Round ticks on an axis from zero to its end."""
    step, label = scale(top / _MOST_TICKS)
    multiples = (step * count for count in range(1, int(top / step * (1.0 + 1e-9)) + 1))
    return ((0.0, "0"), *((place_percent(value, top), label(value)) for value in multiples))


def labelled_steps(
    lowest: float, highest: float, scale: Scale
) -> Iterator[tuple[float, list[str]]]:
    """The steps of axes with ends in a range, and their labels, for axes that a page draws anew."""
    min_step = lowest / _MOST_TICKS
    while True:
        step, label = scale(min_step)
        yield step, [label(step * count) for count in range(1, _MOST_TICKS + 1)]
        if step * _MOST_TICKS >= highest:
            return
        min_step = step * 1.001


def in_one_unit(moments_s: Sequence[float]) -> list[str]:
    """Evenly spaced moments from zero, as a column.

    >>> in_one_unit([0.0, 45.0, 90.0]), in_one_unit([0.0, 1800.0, 3600.0])
    (['0', '45 s', '90 s'], ['0', '0.5 h', '1.0 h'])
    """
    spacing_s = moments_s[1] - moments_s[0] if len(moments_s) > 1 else 1.0
    units = (*_CLOCK_UNITS, *_SHORT_UNITS[1:])
    halves = (pair for pair in units if math.isclose(2.0 * spacing_s, pair[0]))
    size, unit = next(halves, _unit_of(spacing_s, units))
    numbers = [moment_s / size for moment_s in moments_s]
    decimals = 0 if all(math.isclose(number, round(number)) for number in numbers) else 1
    return [f"{number:.{decimals}f} {unit}" if number else "0" for number in numbers]


def _unit_of(value: float, units: Sequence[tuple[float, str]]) -> tuple[float, str]:
    """The largest unit, with its size, of which there is at least one; else the smallest."""
    nearly = value * (1.0 + 1e-9)
    return next((pair for pair in units if nearly >= pair[0]), units[-1])


def place_percent(value: float, top: float) -> float:
    """Position of a value on an axis from zero to its top, limited to the axis."""
    return 100 * min(max(value / top, 0.0), 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """Both axes of a chart, from zero: labels, positions, and the values at their ends."""

    right: float
    top: float
    x_ticks: tuple[Tick, ...]
    ticks: tuple[Tick, ...]

    @classmethod
    def of(cls, xs: Sequence[float], ys: Sequence[float], x_scale: Scale, scale: Scale) -> Axes:
        """Axes that contain these values."""
        x_ticks, right = axis(xs, x_scale)
        ticks, top = axis(ys, scale)
        return cls(right=right, top=top, x_ticks=x_ticks, ticks=ticks)

    def point(self, x: float, y: float) -> str:
        """A point as SVG has it: from the top left."""
        return f"{place_percent(x, self.right):.2f},{100.0 - place_percent(y, self.top):.2f}"

    def pieces(self, xs: Sequence[float], ys: Sequence[float | None]) -> tuple[str, ...]:
        """The points of a line, interrupted if there is nothing to draw or it leaves the plot."""
        points = list(zip(xs, ys, strict=True))

        def is_drawn(point: tuple[float, float | None]) -> bool:
            return point[1] is not None and point[1] <= self.top

        return tuple(
            " ".join(self.point(x, y or 0.0) for x, y in piece)
            for drawn, piece in groupby(points, key=is_drawn)
            if drawn
        )

    def band(self, xs: Sequence[float], intervals: Sequence[Interval | None]) -> str:
        """The outline of the area between both ends of the intervals, as far as there are any."""
        drawn_intervals = [
            (x, interval)
            for x, interval in zip(xs, intervals, strict=True)
            if interval is not None and interval.low <= self.top
        ]
        upper_edge = [self.point(x, min(ends.high, self.top)) for x, ends in drawn_intervals]
        lower_edge = [self.point(x, ends.low) for x, ends in reversed(drawn_intervals)]
        return " ".join((*upper_edge, *lower_edge))
