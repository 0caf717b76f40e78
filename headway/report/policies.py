"""Policies under one rate trace, side by side: in words and as data."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from headway.domain import StreamAnswer
from headway.domain.live import PolicyComparison, PolicyOutcome
from headway.domain.sheet import Kind, Section, Sheet
from headway.formats.codec import data_of
from headway.report.axes import Scale, counts, rates, shares
from headway.report.charts import over_time
from headway.report.playback import input_rate_fact
from headway.report.wording import percent, setting_text
from headway.units import counted, format_duration, listed, span_text

_HEADING = ("policy", "", "node-hours", "late", "target", "windows kept", "changes", "reversals")


def policies_json(comparison: PolicyComparison) -> dict[str, object]:
    """A comparison as data for :func:`headway.formats.as_json.json_text`."""
    return {
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
    verdict = f"met by {listed(meeting) or 'no policy'}"
    limit, length = map(format_duration, (comparison.limit_s, comparison.trace.length_s))
    target = f"at most {percent(comparison.most_late_ratio)} of the rows above {limit}"
    node_hours = ", ".join(
        f"{outcome.policy} {comparison.node_hours(outcome):.3g}" for outcome in comparison.outcomes
    )
    return f"{target}: {verdict}; node-hours over {length}: {node_hours}"


def policies_sheet(comparison: PolicyComparison, plan: StreamAnswer | None = None) -> Sheet:
    """The policies side by side, and their lines over time; ``plan`` is what was simulated."""
    text, limit = headline(comparison), format_duration(comparison.limit_s)
    meaning = (
        f"late: rows above {limit}, of which {percent(comparison.most_late_ratio)} are allowed; "
        "windows kept: five-minute windows in which no more were late; reversals: changes undone "
        "within half an hour. All policies process the same rows, and may change executors "
        "without a restart."
    )
    setting = (
        ()
        if plan is None
        else (("setting", setting_text(plan.configuration, plan.source_partitions)),)
    )
    rows = tuple(
        (
            outcome.policy,
            _constant_text(outcome),
            f"{comparison.node_hours(outcome):.3g}",
            percent(outcome.late_ratio) if outcome.late_ratio else "none",
            "met" if comparison.meets(outcome) else "missed",
            percent(outcome.kept_share),
            f"{outcome.changes_per_run:.3g}",
            f"{outcome.reversals_per_run:.3g}",
        )
        for outcome in comparison.outcomes
    )
    return Sheet(
        about="Headway plan, simulated with executors that change",
        headline=text[:1].upper() + text[1:],
        verdict=comparison.feasible,
        facts=(*setting, *_facts(comparison)),
        sections=(
            Section(title="policies", head=_HEADING, rows=rows, right=(2, 3, 4, 5, 6, 7)),
            Section(texts=(meaning,), indent=2),
            *_timelines(comparison),
        ),
    )


def _facts(comparison: PolicyComparison) -> Iterator[tuple[str, str]]:
    """The simulation, as label and text."""
    yield input_rate_fact(comparison.trace)
    yield "simulated", f"{counted(comparison.num_runs, 'run')} of each policy"
    yield "executors", span_text(str(comparison.min_executors), str(comparison.max_executors))
    if len(comparison.triggers_s) > 1:
        yield "trigger", f"{', '.join(map(format_duration, comparison.triggers_s))} (headway)"
    for outage in comparison.outages:
        yield "outage", f"{format_duration(outage.length_s)} at {format_duration(outage.start_s)}"


def _timelines(comparison: PolicyComparison) -> Iterator[Section]:
    """Arrivals, and the executors and late rows of each policy over time."""
    rates_per_s, length_s = comparison.stretch_rates_per_s, comparison.trace.length_s
    width_s, first_s = length_s / len(rates_per_s), comparison.trace.times_s[0]
    middles_s = [(index + 0.5) * width_s for index in range(len(rates_per_s))]

    def executors(outcome: PolicyOutcome) -> list[float]:
        moments = [step.at_s - first_s for step in outcome.steps]
        return [
            float(outcome.steps[max(bisect_right(moments, at_s) - 1, 0)].executors)
            for at_s in middles_s
        ]

    def timeline(title: str, scale: Scale, line: str, values: Sequence[float | None]) -> Section:
        outages, lines = comparison.outages, {line: values}
        chart = over_time(
            title, scale, middles_s, lines, length_s=length_s, outages=outages, height=120
        )
        return Section(title=title, charts=(chart,))

    yield timeline("arrivals", rates, "rate", rates_per_s)
    for outcome in comparison.outcomes:
        name = ", ".join(filter(None, (outcome.policy, _constant_text(outcome))))
        yield timeline(f"executors with {name}", counts, "executors", executors(outcome))
        yield timeline(f"late rows with {name}", shares, "late", outcome.stretch_late_ratio)


def _constant_text(outcome: PolicyOutcome) -> str:
    """What the user of a policy sets; static executors are counted."""
    if outcome.policy == "static":
        return counted(outcome.steps[0].executors, "executor")
    return outcome.constant


KINDS = {
    "policies": Kind(headline=headline, sheet=policies_sheet, data=policies_json, main="outcomes")
}
