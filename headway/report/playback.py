"""A played plan as text, as data, and as a page with its lines over time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from headway.domain import Plan, Playback, PlayedStretch
from headway.report.as_json import fields_json
from headway.report.charts import Tick, axis, place_percent
from headway.report.columns import aligned, bar, paragraph
from headway.report.wording import headline, percent, setting_text
from headway.units import format_duration, format_rate

PLAYBACK_SCHEMA = "headway.playback/v1"
_TEXT_ROWS = 24
_BAR_WIDTH = 24
_TIME_TICKS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a chart; points in per cent of its width and height, from the top left."""

    name: str
    kind: str
    points: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """A chart over the time of the trace."""

    title: str
    ticks: tuple[Tick, ...]
    times: tuple[Tick, ...]
    lines: tuple[Line, ...]
    limit_percent: float | None
    outages: tuple[tuple[float, float], ...]


def playback_json(playback: Playback) -> dict[str, object]:
    """A playback as data for :func:`headway.report.as_json.json_text`."""
    found = fields_json(playback)
    assert isinstance(found, dict)
    return {"schema": PLAYBACK_SCHEMA, **found}


def playback_text(plan: Plan, playback: Playback) -> str:
    """A playback as lines of at most 100 columns."""
    blocks = [
        [
            *paragraph(setting_text(plan.configuration), lead="played: "),
            *aligned(figures(playback), indent=2),
        ],
        ["over time", *aligned(_rows(playback), right=(0, 1, 2, 3, 4, 5), indent=2)],
    ]
    return "\n\n".join("\n".join(block) for block in blocks)


def figures(playback: Playback) -> list[tuple[str, str]]:
    """What came of it, as label and text."""
    rates = playback.trace.rates_per_s
    length, mean = format_duration(playback.trace.length_s), playback.trace.mean_rate_per_s
    lowest, highest = format_rate(min(rates)), format_rate(max(rates))
    p50, p95, p99, most = map(
        format_duration, (playback.p50_s, playback.p95_s, playback.p99_s, playback.max_s)
    )
    found = [
        ("arrivals", f"{length} of {lowest} to {highest}, {format_rate(mean)} on average"),
        ("played", f"{playback.num_runs} runs, {playback.num_batches:,} batches"),
        ("tuple latency", f"p50 {p50}, p95 {p95}, p99 {p99}, most {most}"),
    ]
    if playback.limit_s is not None:
        late, worst = _share(playback.late_ratio), _share(playback.late_ratio_worst_run)
        limit = format_duration(playback.limit_s)
        found.append((f"late, beyond {limit}", f"{late} of rows, {worst} in the worst run"))
        found.append(("longest late", format_duration(playback.longest_late_s)))
    found.append(("most rows waiting", f"{playback.peak_backlog_rows:,.0f}"))
    for one in playback.recoveries:
        outage = f"{format_duration(one.outage.length_s)} at {format_duration(one.outage.start_s)}"
        found.append(
            (
                f"in time again after {outage}",
                f"{_recovered(one.median_s)}, worst run {_recovered(one.worst_s)}",
            )
        )
    if playback.ends_behind:
        found.append(("at the end", "the backlog still grows: the plan does not carry this trace"))
    return found


def playback_page(plan: Plan, playback: Playback) -> str:
    """One page that needs nothing beside itself: figures, lines over time, the table."""
    from headway.report.html import environment

    return (
        environment()
        .get_template("playback.html.jinja")
        .render(
            title=headline(plan),
            setting=setting_text(plan.configuration),
            figures=figures(playback),
            timelines=timelines(playback),
            rows=_rows(playback),
        )
    )


def timelines(playback: Playback) -> tuple[Timeline, ...]:
    """Latency, arrivals and backlog over time."""
    stretches = playback.stretches
    return (
        _timeline(
            playback,
            "tuple latency",
            format_duration,
            {"p99": [one.p99_s for one in stretches], "p50": [one.p50_s for one in stretches]},
            limit=playback.limit_s,
        ),
        _timeline(
            playback,
            "arrivals",
            format_rate,
            {"rate": [one.rate_per_s for one in stretches]},
        ),
        _timeline(
            playback,
            "most rows waiting",
            lambda value: f"{value:,.0f}",
            {"backlog": [one.backlog_rows for one in stretches]},
        ),
    )


def _timeline(
    playback: Playback,
    title: str,
    label: Callable[[float], str],
    values: dict[str, Sequence[float]],
    *,
    limit: float | None = None,
) -> Timeline:
    ticks, top = axis([*(one for line in values.values() for one in line), limit or 0.0], label)
    trace = playback.trace
    first_s, length_s = trace.times_s[0], trace.length_s
    places = [100.0 * (one.start_s - first_s) / length_s for one in playback.stretches]
    lines = tuple(
        Line(
            name=name,
            kind=f"line{number}",
            points=" ".join(
                f"{place:.2f},{100.0 - place_percent(value, top):.2f}"
                for place, value in zip(places, line, strict=True)
            ),
        )
        for number, (name, line) in enumerate(values.items(), start=1)
    )
    return Timeline(
        title=title,
        ticks=ticks,
        times=tuple(
            Tick(
                place_percent=100.0 * number / _TIME_TICKS,
                label=format_duration(number / _TIME_TICKS * length_s) if number else "0",
            )
            for number in range(_TIME_TICKS + 1)
        ),
        lines=lines,
        limit_percent=None if limit is None else place_percent(limit, top),
        outages=tuple(
            (100.0 * one.start_s / length_s, 100.0 * one.length_s / length_s)
            for one in playback.outages
        ),
    )


def _rows(playback: Playback) -> list[tuple[str, ...]]:
    """A table over time, of at most so many rows."""
    per_row = -(-len(playback.stretches) // _TEXT_ROWS)
    groups = [
        playback.stretches[start : start + per_row]
        for start in range(0, len(playback.stretches), per_row)
    ]
    rows = [_together(group) for group in groups]
    worst_s = max(one.p99_s for one in rows)
    first_s = playback.trace.times_s[0]
    return [
        ("from", "arrivals", "p50", "p99", "late", "waiting", ""),
        *(
            (
                format_duration(one.start_s - first_s) if one.start_s > first_s else "0",
                format_rate(one.rate_per_s),
                format_duration(one.p50_s),
                format_duration(one.p99_s),
                "-" if playback.limit_s is None else _share(one.late_ratio),
                f"{one.backlog_rows:,.0f}",
                bar(one.p99_s / worst_s, width=_BAR_WIDTH) if worst_s > 0 else "",
            )
            for one in rows
        ),
    ]


def _together(group: Sequence[PlayedStretch]) -> PlayedStretch:
    """Several stretches as one: the worst of latency and backlog, the mean of the rest."""
    rows = [max(one.rate_per_s, 0.0) for one in group]
    late = sum(one.late_ratio * weight for one, weight in zip(group, rows, strict=True))
    return replace(
        group[0],
        rate_per_s=sum(rows) / len(group),
        p50_s=sorted(one.p50_s for one in group)[len(group) // 2],
        p99_s=max(one.p99_s for one in group),
        late_ratio=late / sum(rows) if sum(rows) > 0 else max(one.late_ratio for one in group),
        backlog_rows=max(one.backlog_rows for one in group),
    )


def _share(ratio: float) -> str:
    return "none" if ratio == 0 else percent(ratio)


def _recovered(seconds: float) -> str:
    return "not within the trace" if math.isinf(seconds) else format_duration(seconds)
