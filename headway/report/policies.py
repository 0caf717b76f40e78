"""Policies under one rate trace, side by side: as text, as data, and as a page with charts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence

from headway.domain import StreamAnswer
from headway.domain.live import PolicyComparison, PolicyOutcome
from headway.formats.codec import data_of
from headway.report.charts import Tick
from headway.report.columns import aligned, paragraph
from headway.report.line_charts import Axes, LineChart, lines_of
from headway.report.page import Origin, page_text
from headway.report.wording import percent, setting_text
from headway.units import counted, format_duration, format_rate

POLICIES_SCHEMA = "headway.policies/v1"
_TICKS = 6
_HEADING = ("policy", "", "node-hours", "late", "target", "windows kept", "changes", "reversals")


def policies_json(comparison: PolicyComparison) -> dict[str, object]:
    """A comparison as data for :func:`headway.formats.as_json.json_text`."""
    return {
        "schema": POLICIES_SCHEMA,
        "headline": headline(comparison),
        "feasible": comparison.feasible,
        **data_of(comparison),
        "outcomes": [
            {
                **data_of(outcome),
                "node_hours": comparison.node_hours(outcome),
                "met": comparison.meets(outcome),
            }
            for outcome in comparison.outcomes
        ],
    }


def headline(comparison: PolicyComparison) -> str:
    """Which policies meet the target, and what each needs, in a sentence."""
    meeting = [outcome.policy for outcome in comparison.outcomes if comparison.meets(outcome)]
    verdict = f"met by {' and '.join(meeting)}" if meeting else "met by no policy"
    limit, most_late = format_duration(comparison.limit_s), percent(comparison.most_late_ratio)
    target = f"at most {most_late} of the rows above {limit}"
    node_hours = (
        f"{outcome.policy} {comparison.node_hours(outcome):.3g}" for outcome in comparison.outcomes
    )
    length = format_duration(comparison.trace.length_s)
    return f"{target}: {verdict}; node-hours over {length}: {', '.join(node_hours)}"


def policies_text(plan: StreamAnswer, comparison: PolicyComparison) -> str:
    """A comparison as lines of at most 100 columns."""
    right = tuple(range(2, len(_HEADING)))
    return "\n\n".join(
        "\n".join(block)
        for block in (
            [
                *paragraph(_sentence(comparison)),
                *paragraph(setting_text(plan.configuration), lead="simulated: "),
                *aligned(facts(comparison), indent=2),
            ],
            ["policies", *aligned(rows(comparison), right=right, indent=2)],
            paragraph(
                f"late: rows above {format_duration(comparison.limit_s)}, of which "
                f"{percent(comparison.most_late_ratio)} are allowed; windows kept: five-minute "
                "windows in which no more were late; reversals: changes undone within half an "
                "hour. All policies process the same rows, and may change executors without a "
                "restart.",
                lead="  ",
            ),
        )
    )


def _sentence(comparison: PolicyComparison) -> str:
    text = headline(comparison)
    return text[:1].upper() + text[1:]


def facts(comparison: PolicyComparison) -> list[tuple[str, str]]:
    """The simulation, as label and text."""
    rates = comparison.trace.rates_per_s
    lowest, highest = format_rate(min(rates)), format_rate(max(rates))
    mean = format_rate(comparison.trace.mean_rate_per_s)
    length = format_duration(comparison.trace.length_s)
    return [
        ("input rate", f"{length} of {lowest} to {highest}, {mean} on average"),
        ("simulated", f"{counted(comparison.num_runs, 'run')} of each policy"),
        ("executors", f"{comparison.min_executors} to {comparison.max_executors}"),
        *(
            [("trigger", f"{', '.join(map(format_duration, comparison.triggers_s))} (headway)")]
            if len(comparison.triggers_s) > 1
            else []
        ),
        *(
            ("outage", f"{format_duration(outage.length_s)} at {format_duration(outage.start_s)}")
            for outage in comparison.outages
        ),
    ]


def rows(comparison: PolicyComparison) -> list[tuple[str, ...]]:
    """A line for each policy, under a heading."""
    return [
        _HEADING,
        *(
            (
                outcome.policy,
                outcome.constant,
                f"{comparison.node_hours(outcome):.3g}",
                percent(outcome.late_ratio) if outcome.late_ratio else "none",
                "met" if comparison.meets(outcome) else "missed",
                percent(outcome.kept_share),
                f"{outcome.changes_per_run:.3g}",
                f"{outcome.reversals_per_run:.3g}",
            )
            for outcome in comparison.outcomes
        ),
    ]


def policies_page(
    plan: StreamAnswer, comparison: PolicyComparison, *, origin: Origin | None = None
) -> str:
    """One self-contained page: figures, and lines over time."""
    title = _sentence(comparison)
    return page_text(
        "policies.html.jinja",
        origin=origin,
        kind="Headway plan, simulated with executors that change",
        title=title,
        verdict=comparison.feasible,
        headline=title,
        facts=(("setting", setting_text(plan.configuration)), *facts(comparison)),
        timelines=timelines(comparison),
        rows=rows(comparison),
        right=tuple(range(2, len(_HEADING))),
    )


def timelines(comparison: PolicyComparison) -> tuple[LineChart, ...]:
    """Arrivals, and the executors and late rows of each policy over time."""
    num_stretches = len(comparison.stretch_rates_per_s)
    width_s = comparison.trace.length_s / num_stretches
    middles_s = [(index + 0.5) * width_s for index in range(num_stretches)]
    first_s = comparison.trace.times_s[0]

    def executors(outcome: PolicyOutcome) -> list[float]:
        moments = [step.at_s - first_s for step in outcome.steps]
        return [
            float(outcome.steps[max(bisect_right(moments, at_s) - 1, 0)].executors)
            for at_s in middles_s
        ]

    charts = [
        _timeline(
            comparison,
            middles_s,
            "arrivals",
            format_rate,
            {"rate": list(comparison.stretch_rates_per_s)},
        )
    ]
    for outcome in comparison.outcomes:
        name = " ".join((outcome.policy, outcome.constant)).strip()
        charts += [
            _timeline(
                comparison, middles_s, f"executors, {name}", lambda value: f"{value:g}",
                {"executors": executors(outcome)},
            ),
            _timeline(
                comparison, middles_s, f"late rows, {name}", percent,
                {"late": list(outcome.stretch_late_ratio)},
            ),
        ]  # fmt: skip
    return tuple(charts)


def _timeline(
    comparison: PolicyComparison,
    middles_s: Sequence[float],
    title: str,
    label: Callable[[float], str],
    values: Mapping[str, Sequence[float | None]],
) -> LineChart:
    length_s = comparison.trace.length_s
    drawn_values = [value for line in values.values() for value in line if value is not None]
    axes = Axes.of([length_s], drawn_values, format_duration, label)
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
        lines=lines_of(axes, middles_s, values),
        shades=tuple(
            (100.0 * outage.start_s / length_s, 100.0 * outage.length_s / length_s)
            for outage in comparison.outages
        ),
        shade_name="outage",
    )
