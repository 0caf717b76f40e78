"""Policies under one rate trace, side by side: as text, as data, and as a page with charts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence

from headway.domain import StreamAnswer
from headway.domain.live import PolicyComparison, PolicyOutcome
from headway.formats.as_json import fields_json
from headway.report.charts import Tick
from headway.report.columns import aligned, paragraph
from headway.report.line_charts import Axes, LineChart, lines_of
from headway.report.page import Origin, page_text
from headway.report.wording import percent, setting_text
from headway.units import counted, format_duration, format_rate

POLICIES_SCHEMA = "headway.policies/v1"
_TICKS = 6
_HEADING = ("policy", "", "node-hours", "late", "target", "windows kept", "changes", "reversals")


def policies_json(found: PolicyComparison) -> dict[str, object]:
    """A comparison as data for :func:`headway.formats.as_json.json_text`."""
    data = fields_json(found)
    assert isinstance(data, dict)
    outcomes = [
        {**one, "node_hours": found.node_hours(outcome), "met": found.meets(outcome)}
        for one, outcome in zip(data["outcomes"], found.outcomes, strict=True)
    ]
    return {
        "schema": POLICIES_SCHEMA,
        "headline": headline(found),
        "feasible": found.feasible,
        **data,
        "outcomes": outcomes,
    }


def headline(found: PolicyComparison) -> str:
    """Which policies meet the target, and what each needs, in a sentence."""
    meeting = [one.policy for one in found.outcomes if found.meets(one)]
    verdict = f"met by {' and '.join(meeting)}" if meeting else "met by no policy"
    limit, most_late = format_duration(found.limit_s), percent(found.most_late_ratio)
    target = f"at most {most_late} of the rows above {limit}"
    taken = (f"{one.policy} {found.node_hours(one):.3g}" for one in found.outcomes)
    length = format_duration(found.trace.length_s)
    return f"{target}: {verdict}; node-hours over {length}: {', '.join(taken)}"


def policies_text(plan: StreamAnswer, found: PolicyComparison) -> str:
    """A comparison as lines of at most 100 columns."""
    right = tuple(range(2, len(_HEADING)))
    return "\n\n".join(
        "\n".join(block)
        for block in (
            [
                *paragraph(_sentence(found)),
                *paragraph(setting_text(plan.configuration), lead="simulated: "),
                *aligned(facts(found), indent=2),
            ],
            ["policies", *aligned(rows(found), right=right, indent=2)],
            paragraph(
                f"late: rows above {format_duration(found.limit_s)}, of which "
                f"{percent(found.most_late_ratio)} are allowed; windows kept: five-minute windows "
                "in which no more were late; reversals: changes undone within half an hour. All "
                "policies process the same rows, and may change executors without a restart.",
                lead="  ",
            ),
        )
    )


def _sentence(found: PolicyComparison) -> str:
    text = headline(found)
    return text[:1].upper() + text[1:]


def facts(found: PolicyComparison) -> list[tuple[str, str]]:
    """The simulation, as label and text."""
    rates = found.trace.rates_per_s
    lowest, highest = format_rate(min(rates)), format_rate(max(rates))
    mean = format_rate(found.trace.mean_rate_per_s)
    length = format_duration(found.trace.length_s)
    return [
        ("input rate", f"{length} of {lowest} to {highest}, {mean} on average"),
        ("simulated", f"{counted(found.num_runs, 'run')} of each policy"),
        ("executors", f"{found.min_executors} to {found.max_executors}"),
        *(
            [("trigger", f"{', '.join(map(format_duration, found.triggers_s))} (headway)")]
            if len(found.triggers_s) > 1
            else []
        ),
        *(
            ("outage", f"{format_duration(one.length_s)} at {format_duration(one.start_s)}")
            for one in found.outages
        ),
    ]


def rows(found: PolicyComparison) -> list[tuple[str, ...]]:
    """A line for each policy, under a heading."""
    return [
        _HEADING,
        *(
            (
                one.policy,
                one.constant,
                f"{found.node_hours(one):.3g}",
                percent(one.late_ratio) if one.late_ratio else "none",
                "met" if found.meets(one) else "missed",
                percent(one.kept_share),
                f"{one.changes_per_run:.3g}",
                f"{one.reversals_per_run:.3g}",
            )
            for one in found.outcomes
        ),
    ]


def policies_page(
    plan: StreamAnswer, found: PolicyComparison, *, origin: Origin | None = None
) -> str:
    """One self-contained page: figures, and lines over time."""
    title = _sentence(found)
    return page_text(
        "policies.html.jinja",
        origin=origin,
        kind="Headway plan, simulated with executors that change",
        title=title,
        verdict=found.feasible,
        headline=title,
        facts=(("setting", setting_text(plan.configuration)), *facts(found)),
        timelines=timelines(found),
        rows=rows(found),
        right=tuple(range(2, len(_HEADING))),
    )


def timelines(found: PolicyComparison) -> tuple[LineChart, ...]:
    """Arrivals, and the executors and late rows of each policy over time."""
    num = len(found.stretch_rates_per_s)
    width_s = found.trace.length_s / num
    middles_s = [(place + 0.5) * width_s for place in range(num)]
    first_s = found.trace.times_s[0]

    def executors(one: PolicyOutcome) -> list[float]:
        moments = [step.at_s - first_s for step in one.steps]
        return [
            float(one.steps[max(bisect_right(moments, at_s) - 1, 0)].executors)
            for at_s in middles_s
        ]

    charts = [
        _timeline(
            found, middles_s, "arrivals", format_rate, {"rate": list(found.stretch_rates_per_s)}
        )
    ]
    for one in found.outcomes:
        name = " ".join((one.policy, one.constant)).strip()
        charts += [
            _timeline(
                found, middles_s, f"executors, {name}", lambda value: f"{value:g}",
                {"executors": executors(one)},
            ),
            _timeline(
                found, middles_s, f"late rows, {name}", percent,
                {"late": list(one.stretch_late_ratio)},
            ),
        ]  # fmt: skip
    return tuple(charts)


def _timeline(
    found: PolicyComparison,
    places_s: Sequence[float],
    title: str,
    label: Callable[[float], str],
    values: Mapping[str, Sequence[float | None]],
) -> LineChart:
    length_s = found.trace.length_s
    known = [one for line in values.values() for one in line if one is not None]
    axes = Axes.of([length_s], known, format_duration, label)
    x_ticks = tuple(
        Tick(
            place_percent=100.0 * number / _TICKS,
            label=format_duration(number / _TICKS * length_s) if number else "0",
        )
        for number in range(_TICKS + 1)
    )
    axes = Axes(right=length_s, top=axes.top, x_ticks=x_ticks, ticks=axes.ticks)
    return LineChart(
        name="",
        title=title,
        x_title="time",
        ticks=axes.ticks,
        x_ticks=x_ticks,
        top=axes.top,
        right=length_s,
        lines=lines_of(axes, places_s, values),
        shades=tuple(
            (100.0 * one.start_s / length_s, 100.0 * one.length_s / length_s)
            for one in found.outages
        ),
        shade_name="outage",
    )
