"""Line charts: positions in per cent of the plot, as in `headway.report.charts`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import ClassVar

from headway.domain import Outage
from headway.report.charts import Tick, axis, place_percent
from headway.units import format_duration

_TIME_TICKS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """Both axes of a chart, from zero: labels, positions, and the values at their ends."""

    right: float
    top: float
    x_ticks: tuple[Tick, ...]
    ticks: tuple[Tick, ...]

    @classmethod
    def of(
        cls,
        xs: Sequence[float],
        ys: Sequence[float],
        x_label: Callable[[float], str],
        label: Callable[[float], str],
    ) -> Axes:
        """Axes that contain these values."""
        x_ticks, right = axis(xs, x_label)
        ticks, top = axis(ys, label)
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

    def band(
        self, xs: Sequence[float], lows: Sequence[float | None], highs: Sequence[float | None]
    ) -> str:
        """The outline of the area between two lines, up to the end of the shorter one."""
        drawn_ranges = [
            (x, low, min(high, self.top))
            for x, low, high in zip(xs, lows, highs, strict=True)
            if low is not None and high is not None and low <= self.top
        ]
        upper_edge = [self.point(x, high) for x, _, high in drawn_ranges]
        lower_edge = [self.point(x, low) for x, low, _ in reversed(drawn_ranges)]
        return " ".join((*upper_edge, *lower_edge))


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChart:
    """Lines, a band behind them, marks on them, and limits across them.

    ``lines`` are the pieces of each line by its name, ``shades`` stretches of the horizontal axis,
    each with its start and width in per cent; ``marks`` are observations: the position in per cent,
    whether it was used (a dot, else a cross), and its tooltip; ``height`` is in pixels.
    """

    form: ClassVar[str] = "lines"
    name: str = ""
    title: str
    x_title: str
    axes: Axes
    lines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    band: str = ""
    marks: tuple[tuple[float, float, bool, str], ...] = ()
    limit_percent: float | None = None
    limit_name: str = ""
    here_percent: float | None = None
    here_name: str = ""
    shades: tuple[tuple[float, float], ...] = ()
    shade_name: str = ""
    shade_kind: str = "outage"
    height: int = 200


def over_time(
    title: str,
    label: Callable[[float], str],
    times_s: Sequence[float],
    values: Mapping[str, Sequence[float | None]],
    *,
    length_s: float,
    outages: Sequence[Outage],
    limit_s: float | None = None,
    height: int = 180,
) -> LineChart:
    """Lines by their names over a time from zero; outages are shaded."""
    drawn_values = [value for line in values.values() for value in line if value is not None]
    ticks, top = axis([*drawn_values, limit_s or 0.0], label)
    x_ticks = tuple(
        (
            100.0 * number / _TIME_TICKS,
            format_duration(number / _TIME_TICKS * length_s) if number else "0",
        )
        for number in range(_TIME_TICKS + 1)
    )
    axes = Axes(right=length_s, top=top, x_ticks=x_ticks, ticks=ticks)
    return LineChart(
        title=title,
        x_title="time",
        axes=axes,
        lines={name: axes.pieces(times_s, line) for name, line in values.items()},
        limit_percent=None if limit_s is None else place_percent(limit_s, top),
        limit_name="limit",
        shades=tuple(
            (100.0 * outage.start_s / length_s, 100.0 * outage.length_s / length_s)
            for outage in outages
        ),
        shade_name="outage",
        height=height,
    )
