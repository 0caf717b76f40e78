"""A simulated plan in words, with its lines over time, and as data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby, pairwise

from headway.domain import (
    FindingCode,
    Playback,
    RateTrace,
    SimulatedTarget,
    StreamAnswer,
    TraceStretch,
)
from headway.domain.sheet import Kind, Section, Sheet
from headway.formats.codec import data_of
from headway.report.axes import counts, durations, in_one_unit, rates
from headway.report.charts import LineChart, over_time
from headway.report.wording import headline, percent, setting_text
from headway.units import counted, format_duration, format_rate, span_text
from headway.words.sentences import filled

_LONGEST_BAR = 0.8  # of the width of a bar: the rows are long
_STATE = "begins with {state_rows:about rows}, and grows with the rows that are read"
_TIMES_FROM = 2.0  # a miss is shown as a ratio from here on, below it as per cent above the limit


def playback_json(playback: Playback) -> dict[str, object]:
    """A playback as data for :func:`headway.formats.as_json.json_text`."""
    return {"feasible": playback.feasible, **data_of(playback)}


def verdict_text(playback: Playback) -> str:
    """Whether the plan meets its targets under this trace, and by how much it misses them."""
    under = f"under {_rates_text(playback.trace)}"
    if playback.outages:
        under += f" with {counted(len(playback.outages), 'outage')}"
    if playback.growth_left_out:
        under += ", if batches take no longer than when profiled"
    judged = playback.missed or [target for target in playback.targets if target.met]
    if not judged:
        outcome = "the backlog still grows at the end" if playback.ends_behind else "simulated"
        p99 = format_duration(playback.p99_s)
        return f"{outcome} {under}: p99 of the tuple latency {p99}"
    word = "missed" if playback.missed else "met"
    values = ", ".join(_value_text(target) for target in judged)
    names = " and ".join(target.target for target in judged)
    text = f"{names} {word} {under}: {values}"
    if playback.ends_behind:
        text += "; the backlog still grows at the end"
    return text


def _value_text(target: SimulatedTarget) -> str:
    """What the trace gave for a target, beside its limit."""
    assert target.value_s is not None
    name = target.target.partition(" <= ")[0]
    if math.isinf(target.value_s):
        return f"{name} not within the trace"
    value, ratio = f"{name} {format_duration(target.value_s)}", target.value_s / target.limit_s
    if ratio <= 1.0:
        return value
    if ratio >= _TIMES_FROM:
        return f"{value}, {float(f'{ratio:.3g}'):,.10g} times its limit"
    return f"{value}, {percent(ratio - 1.0)} above its limit"


def playback_sheet(playback: Playback, plan: StreamAnswer | None = None) -> Sheet:
    """The verdict under this trace, its figures, and how they change over time.

    ``plan`` is the simulated plan, None if only the outcome is available.
    """
    simulated: tuple[tuple[str, str], ...] = ()
    if plan is not None:
        simulated = (
            ("plan", headline(plan)),
            ("setting", setting_text(plan.configuration, plan.source_partitions)),
            *(
                ("state", filled(_STATE, finding))
                for finding in plan.prediction.findings
                if finding.code is FindingCode.STATE_GROWS
            ),
        )
    text = verdict_text(playback)
    # Names of statistics stay as they are, words that begin a sentence do not.
    if text.startswith(("the ", "simulated ")):
        text = text[:1].upper() + text[1:]
    rows = _stretches(playback)
    p99_s = [stretch.p99_s or 0.0 for stretch in rows]
    bars = tuple(_LONGEST_BAR * value_s / max(p99_s) for value_s in p99_s) if any(p99_s) else ()
    return Sheet(
        about="Headway plan, simulated with a rate trace",
        headline=text,
        verdict=playback.feasible,
        facts=(*simulated, *_figures(playback)),
        sections=(
            *(Section(title=chart.title, charts=(chart,)) for chart in _timelines(playback)),
            Section(
                title="over time",
                head=("from", "arrivals", "p50", "p99", "late", "backlog"),
                rows=tuple(
                    (begin, *_cells(playback, stretch))
                    for begin, stretch in zip(_begins(playback, rows), rows, strict=True)
                ),
                right=(0, 1, 2, 3, 4, 5),
                bar_share=bars,
            ),
        ),
    )


def input_rate_fact(trace: RateTrace) -> tuple[str, str]:
    """The rates of a trace, as label and text."""
    is_steady = min(trace.rates_per_s) == max(trace.rates_per_s)
    mean = "" if is_steady else f", {format_rate(trace.mean_rate_per_s)} on average"
    return "input rate", f"{_rates_text(trace)}{mean}"


def _rates_text(trace: RateTrace) -> str:
    """How long a trace is, and its range of rates."""
    lowest, highest = format_rate(min(trace.rates_per_s)), format_rate(max(trace.rates_per_s))
    return f"{format_duration(trace.length_s)} of {span_text(lowest, highest)}"


def _figures(playback: Playback) -> list[tuple[str, str]]:
    """The results, as label and text."""
    trace = playback.trace
    p50, p95, p99, highest = map(
        format_duration, (playback.p50_s, playback.p95_s, playback.p99_s, playback.max_s)
    )
    batches = counted(playback.num_batches, "batch", "batches")
    rows = [
        input_rate_fact(trace),
        ("simulated", f"{counted(playback.num_runs, 'run')}, {batches}"),
        ("tuple latency", f"p50 {p50}, p95 {p95}, p99 {p99}, max {highest}"),
    ]
    if playback.limit_s is not None:
        late, worst = _share(playback.late_ratio), _share(playback.late_ratio_worst_run)
        worst_run = f", {worst} in the worst run" if playback.late_ratio_worst_run else ""
        rows.append((f"rows above {format_duration(playback.limit_s)}", f"{late}{worst_run}"))
        if worst_run:
            longest = (
                format_duration(playback.longest_late_s) if playback.longest_late_s else "none"
            )
            rows.append(("longest time above it", f"{longest} in the median run"))
    rows.append(("largest backlog", f"{playback.peak_backlog_rows:,.0f} rows"))
    rows += [
        (target.target, f"unavailable: {target.reason}")
        for target in playback.targets
        if target.met is None
    ]
    for recovery in playback.recoveries:
        length, start = map(format_duration, (recovery.outage.length_s, recovery.outage.start_s))
        median, worst = _recovered(recovery.median_s), _recovered(recovery.worst_s)
        rows.append((f"recovery after {length} at {start}", f"{median}, worst run {worst}"))
    if trace.rate_at_end_per_s is not None:
        begun = format_rate(trace.rate_at_end_per_s) if trace.rate_at_end_per_s else "no arrivals"
        end = f"its last line, at {format_duration(trace.length_s)}"
        rows.append(("end of the trace", f"{end}; a longer simulation continues with {begun}"))
    if playback.ends_behind:
        rows.append(("at the end", "the backlog still grows: the plan does not sustain this trace"))
    return rows


def _timelines(playback: Playback) -> tuple[LineChart, ...]:
    """Latency, arrivals and backlog over time."""
    stretches, trace = playback.stretches, playback.trace
    # What is known of a stretch stands in its middle.
    edges = pairwise(_edges(playback))
    middles_s = [0.5 * (start_s + end_s) - trace.times_s[0] for start_s, end_s in edges]

    chart = partial(over_time, times_s=middles_s, length_s=trace.length_s, outages=playback.outages)
    latencies: dict[str, list[float | None]] = {
        "p99": [stretch.p99_s for stretch in stretches],
        "p50": [stretch.p50_s for stretch in stretches],
    }
    arrivals = {"rate": [stretch.rate_per_s for stretch in stretches]}
    backlogs = {"backlog": [stretch.backlog_rows for stretch in stretches]}
    latency = "tuple latency by arrival time"
    return (
        chart(latency, durations, values=latencies, limit_s=playback.limit_s),
        chart("arrivals", rates, values=arrivals),
        chart("backlog in rows", counts, values=backlogs),
    )


def _edges(playback: Playback) -> list[float]:
    """Where the stretches begin, and the end of the last."""
    return [*(stretch.start_s for stretch in playback.stretches), playback.trace.end_s]


def _stretches(playback: Playback) -> list[TraceStretch]:
    """Those of the table: one for each round step of the trace."""
    first_s, step_s = playback.trace.times_s[0], playback.trace.round_step_s
    stretches, edges = playback.stretches, _edges(playback)
    lengths_s = [end_s - start_s for start_s, end_s in pairwise(edges)]
    # A moment may be a hair before the round one that it stands for.
    groups = groupby(
        range(len(stretches)), lambda index: round((edges[index] - first_s) / step_s, 6) // 1.0
    )
    return [
        _together([(stretches[index], lengths_s[index]) for index in group]) for _, group in groups
    ]


def _begins(playback: Playback, rows: Sequence[TraceStretch]) -> list[str]:
    first_s = playback.trace.times_s[0]
    return in_one_unit([max(stretch.start_s - first_s, 0.0) for stretch in rows])


def _cells(playback: Playback, stretch: TraceStretch) -> tuple[str, ...]:
    return (
        format_rate(stretch.rate_per_s),
        "-" if stretch.p50_s is None else format_duration(stretch.p50_s),
        "-" if stretch.p99_s is None else format_duration(stretch.p99_s),
        "-" if playback.limit_s is None else _share(stretch.late_ratio),
        f"{stretch.backlog_rows:,.0f}",
    )


def _together(parts: Sequence[tuple[TraceStretch, float]]) -> TraceStretch:
    """Stretches and their lengths as one: maximum latency and backlog, the mean of the rest."""
    group = [stretch for stretch, _ in parts]
    medians_s = sorted(stretch.p50_s for stretch in group if stretch.p50_s is not None)
    rows = sum(max(stretch.rate_per_s, 0.0) * length_s for stretch, length_s in parts)
    return replace(
        group[0],
        rate_per_s=rows / sum(length_s for _, length_s in parts),
        p50_s=medians_s[len(medians_s) // 2] if medians_s else None,
        p99_s=max((stretch.p99_s for stretch in group if stretch.p99_s is not None), default=None),
        late_ratio=_late_ratio(parts),
        backlog_rows=max(stretch.backlog_rows for stretch in group),
    )


def _late_ratio(parts: Sequence[tuple[TraceStretch, float]]) -> float | None:
    """The share of late rows in several stretches; None if it is known of none."""
    rows = [
        (stretch.late_ratio, stretch.rate_per_s * length_s)
        for stretch, length_s in parts
        if stretch.late_ratio is not None
    ]
    total_rows = sum(num_rows for _, num_rows in rows)
    if total_rows <= 0:
        return max((late_ratio for late_ratio, _ in rows), default=None)
    return sum(late_ratio * num_rows for late_ratio, num_rows in rows) / total_rows


def _share(ratio: float | None) -> str:
    if ratio is None:
        return "-"
    return "none" if ratio == 0 else percent(ratio)


def _recovered(seconds: float) -> str:
    return "not within the trace" if math.isinf(seconds) else format_duration(seconds)


KINDS = {
    "playback": Kind(
        headline=verdict_text,
        sheet=playback_sheet,
        data=playback_json,
        main="stretches",
        is_read_back=True,
    )
}
