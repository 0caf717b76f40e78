"""Marks and lines of the page's charts: positions in per cent of the plot's width and height.

They are in per cent so that a chart fits a phone and a wide screen without scaling its letters; the
template adds everything that has a size in pixels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from typing import Any, ClassVar, TypeAlias

from headway.digits import format_money
from headway.domain import Outage, Prediction, StreamAnswer
from headway.domain.node_type import currency_of
from headway.domain.target import targets_text
from headway.report.axes import Axes, Scale, axis, durations, place_percent, rates, ticks_to
from headway.report.comparison import ComparedFigure, Comparison
from headway.report.frontier import another_carries_more, rate_text
from headway.report.wording import brief_setting_text, interval_text, percent
from headway.units import HOURS_PER_MONTH, counted, format_duration, format_rate

#: Parts of a latency that are no stages, as people read them; Spark's own names beside.
PHASES = {
    "wait": "wait for the trigger",
    "latest_offset": "asking the source (latestOffset)",
    "wal_commit": "write-ahead log (walCommit)",
    "get_batch": "getBatch",
    "query_planning": "query planning (queryPlanning)",
    "add_batch": "addBatch outside its stages",
    "commit_batch": "commitBatch",
}
BEYOND_THE_MEAN = "from the mean to the p99: rows that wait longer, slow batches"
_MOST_COLOURS = 8
_MOST_LETTERS_OF_COSTS = 30  # in a row that a phone has room for
_LEAST_NUMBERED_PERCENT = 5.0

Chart: TypeAlias = Mapping[str, Any]
"""What a macro of the template draws; its ``form`` is the name of the macro."""


def frontier_charts(plan: StreamAnswer) -> tuple[Chart, ...]:
    """Max rate by number of nodes, with the requested rate as a line; nothing without points.

    A plan's own setting is drawn at its own height, above or below the best of its nodes.
    """
    if not plan.frontier:
        return ()
    requested_rate_per_s = plan.arrivals.rate_per_s
    currency = currency_of(plan.node_type)
    rates_per_s = [point.sustainable_rate_per_s for point in plan.frontier]
    planned_point, better_point = plan.chosen if plan.feasible else None, another_carries_more(plan)
    ticks, top = axis([*rates_per_s, requested_rate_per_s], rates)
    marks = []
    for index, point in enumerate(plan.frontier):
        own_point = planned_point
        if planned_point is not None and planned_point.nodes != point.nodes:
            own_point = None
        if own_point is not None and better_point is None:
            point = own_point  # the plan's own setting is the best of its nodes
        rate_per_s, rate = point.sustainable_rate_per_s, rate_text(point)
        setting = "" if point.configuration is None else brief_setting_text(point.configuration)
        parts = [f"{counted(point.nodes, 'node')}: {rate}", setting]
        cost = ""
        if point.cost_per_hour is not None:
            cost_per_month = point.cost_per_hour * HOURS_PER_MONTH
            cost = format_money(cost_per_month)
            parts.append(f"{format_money(cost_per_month, currency=currency)} per month")
        if rate_per_s > 0 and not point.calibrated:
            parts.append("extrapolated")
        height_percent = place_percent(rate_per_s, top)
        own_percent = None
        if own_point is not None:
            own_percent = place_percent(own_point.sustainable_rate_per_s, top)
        marks.append(
            {
                "place_percent": 100 * (index + 0.5) / len(plan.frontier),
                "height_percent": height_percent,
                "nodes": f"{point.nodes:,}",
                "rate": rate,
                "keeps_rate": rate_per_s >= requested_rate_per_s,
                "is_plan": own_point is not None,
                "is_own": own_percent == height_percent,
                "plan_height_percent": own_percent,
                "plan_rate": "" if own_point is None else rate_text(own_point),
                "tooltip": "\n".join(filter(None, parts)),
                "cost": cost,
            }
        )
    letters_of_costs = sum(len(str(mark["cost"])) for mark in marks)
    chart = {
        "form": "frontier",
        "target": targets_text(plan.promises),
        "ticks": ticks,
        "marks": marks,
        "asked_percent": place_percent(requested_rate_per_s, top),
        "asked": format_rate(requested_rate_per_s),
        "currency": currency,
        "has_costs": any(mark["cost"] for mark in marks),
        "is_wide_with_costs": letters_of_costs > _MOST_LETTERS_OF_COSTS,
        "has_gaps": plan.frontier[-1].nodes - plan.frontier[0].nodes >= len(plan.frontier),
    }
    return (chart,)


def latency_charts(prediction: Prediction) -> tuple[Chart, ...]:
    """The p99 of the tuple latency as pieces: the parts of the mean, and the rest above it."""
    latency = prediction.tuple_latency
    if not prediction.is_quotable or latency is None:
        return ()
    parts_s = {
        PHASES.get(name, prediction.phase_called(name)): value_s
        for name, value_s in prediction.phases_s.items()
    }
    above_s = latency.p99_s - latency.mean_s
    segments = phase_segments({**parts_s, BEYOND_THE_MEAN: above_s} if above_s > 0 else parts_s)
    return ({"form": "phases", "segments": segments},) if segments else ()


def phase_segments(phases_s: Mapping[str, float]) -> list[dict[str, Any]]:
    """The mean latency as pieces of one bar, in the order in which a record passes them.

    If there are more phases than colours, the shortest are combined at the end.
    """
    total_s = sum(phases_s.values())
    if not 0 < total_s < math.inf:
        return []
    bar_phases_s = dict(phases_s)
    if len(phases_s) > _MOST_COLOURS:
        longest = sorted(phases_s, key=phases_s.__getitem__, reverse=True)[: _MOST_COLOURS - 1]
        bar_phases_s = {name: value_s for name, value_s in phases_s.items() if name in longest}
        shortest_s = [value_s for name, value_s in phases_s.items() if name not in longest]
        bar_phases_s[f"{len(shortest_s)} shorter phases"] = sum(shortest_s)
    widths_percent = [100 * max(value_s, 0.0) / total_s for value_s in bar_phases_s.values()]
    starts_percent = accumulate(widths_percent, initial=0.0)
    return [
        {
            "start_percent": start_percent,
            "width_percent": width_percent,
            "number": number,
            "is_numbered": width_percent >= _LEAST_NUMBERED_PERCENT,
            "name": name,
            "duration": format_duration(value_s),
            "share": percent(value_s / total_s),
        }
        for number, ((name, value_s), start_percent, width_percent) in enumerate(
            zip(bar_phases_s.items(), starts_percent, widths_percent, strict=False), start=1
        )
    ]


def dot_charts(comparisons: Sequence[Comparison], quantity: str = "") -> tuple[Chart, ...]:
    """A dot plot for each comparison, each on an axis of its own, under one legend.

    ``quantity`` is what all of them compare, if their names do not say it.
    """
    charts: list[Chart] = []
    for label, figures in comparisons:
        pairs_s = ((figure.predicted_s, figure.measured_s) for figure in figures)
        ends_s = [figure.interval90_s.high for figure in figures if figure.interval90_s]
        ticks, top = axis([*chain.from_iterable(pairs_s), *ends_s], durations)
        charts.append(
            {
                "form": "dots",
                "label": label,
                "x_title": quantity or label,
                "ticks": ticks,
                "rows": [_dot_row(figure, top) for figure in figures],
                "has_legend": not charts,
            }
        )
    return tuple(charts)


def _dot_row(figure: ComparedFigure, top: float) -> dict[str, Any]:
    interval = figure.interval90_s
    predicted, measured = map(format_duration, (figure.predicted_s, figure.measured_s))
    tooltip = (
        f"{figure.statistic}: predicted {predicted}, measured {measured} ({figure.error_text})"
    )
    if interval is not None:
        tooltip += f"\n90% interval {interval_text(interval)}"
    return {
        "figure": figure,
        "predicted_percent": place_percent(figure.predicted_s, top),
        "measured_percent": place_percent(figure.measured_s, top),
        "low_percent": None if interval is None else place_percent(interval.low, top),
        "high_percent": None if interval is None else place_percent(interval.high, top),
        "tooltip": tooltip,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChart:
    """Lines, a band behind them, marks on them, and limits across them.

    ``lines`` are the pieces of each line by its name, ``shades`` stretches of the horizontal axis,
    each with its start and width in per cent; ``marks`` are observations: the position in per cent,
    whether it was used (a dot, else a cross), and its tooltip; ``caption`` is a sentence above the
    chart; ``height`` is in pixels.
    """

    form: ClassVar[str] = "lines"
    name: str = ""
    caption: str = ""
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
    scale: Scale,
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
    ticks, top = axis([*drawn_values, limit_s or 0.0], scale)
    axes = Axes(right=length_s, top=top, x_ticks=ticks_to(length_s, durations), ticks=ticks)
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
