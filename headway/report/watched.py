"""A look at a running query, also for Prometheus, and a change that its tuner made."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

from headway.domain import Configuration, Interval, LatencyDistribution
from headway.domain.live import Expectation, Look, Proposal, SeenDrift, WatchedChange
from headway.domain.sheet import Kind, Section, Sheet
from headway.domain.tuner import ChangeOutcome, ExplainedChange
from headway.formats.as_json import prediction_json, result_json
from headway.formats.codec import EXACT, data_of
from headway.formats.open_metrics import Labels, Metric
from headway.report.wording import brief_setting_text, percent
from headway.units import counted, format_duration, format_rate

_WORDS = {
    "failed": "the query has failed",
    "held": "the target is met",
    "learning": "too few batches yet",
    "late": "more rows were late than the target allows",
    "drifted": "batches no longer cost what the profile says",
    "silent": "a batch runs for longer than it should",
    "out_of_bounds": "no setting within bounds meets the target",
}
_ENDED = {
    "failed": "has failed",
    "stopped": "has ended",
    "unheard": "may have ended: its log is no longer written",
}
_UNKNOWN = "-"


def look_sheet(look: Look) -> Sheet:
    """The state of the query, predicted and measured figures, and what would be changed."""
    measured = f"the last {format_duration(look.seen_s)} measured"
    num_batches = counted(look.num_batches, "batch", "batches")
    setting = f"{brief_setting_text(look.configuration)}; {num_batches}, {measured}"
    head = ("", "predicted", "measured")
    return Sheet(
        about="Headway look at a running query",
        headline=f"{look.query}: {_WORDS[look.standing]} ({look.target})",
        sections=(
            Section(texts=(setting,), indent=2, close=True),
            Section(head=head, rows=tuple(_rows(look)), right=(1, 2), indent=2),
            Section(rows=tuple(_facts(look)), indent=2),
        ),
    )


def _rows(look: Look) -> Iterator[tuple[str, str, str]]:
    predicted, rate = look.prediction, look.rate_per_s
    yield "input rate", _UNKNOWN, _UNKNOWN if rate is None else format_rate(rate)
    latency = None if predicted is None else predicted.latency(look.target.metric)
    duration = None if predicted is None else predicted.batch_duration
    for statistic in ("mean", "p99"):
        yield f"latency {statistic}", _time(latency, statistic), _time(look.latency, statistic)
    yield "batch duration mean", _time(duration, "mean"), _time(look.batch_duration, "mean")
    yield (
        "utilisation",
        _UNKNOWN if predicted is None else percent(predicted.utilization_ratio),
        _UNKNOWN if look.utilization_ratio is None else percent(look.utilization_ratio),
    )
    backlog = look.backlog_rows
    yield "backlog", _UNKNOWN, _UNKNOWN if backlog is None else counted(round(backlog), "row")


def _time(distribution: LatencyDistribution | None, statistic: str) -> str:
    if distribution is None:
        return _UNKNOWN
    return format_duration(distribution.statistics_s[statistic])


def _facts(look: Look) -> Iterator[tuple[str, str]]:
    if look.ended is not None:
        yield "query", _ENDED[look.ended]
    if look.drift is not None:
        yield "drift", _drift_text(look.drift)
    remaining_ratio = look.budget_left_ratio
    if look.late_ratio is not None and remaining_ratio is not None:
        text = f"{percent(remaining_ratio)} of the allowed late rows are left"
        if remaining_ratio < 0:
            text = f"{1.0 - remaining_ratio:.1f} times as many as allowed"
        yield "late rows", f"{percent(look.late_ratio)} of the rows; {text}"
    if look.silent_s > look.target.limit_s:
        yield "last report", f"{format_duration(look.silent_s)} ago"
    if look.prediction is not None and not look.prediction.calibrated:
        yield "prediction", "outside the profiled range: extrapolated"
    yield "change", "none" if look.change is None else change_text(look.change)
    if look.change is None and look.why_no_change is not None:
        yield "because", look.why_no_change


def _drift_text(drift: SeenDrift) -> str:
    text = f"batches take {drift.duration_ratio:.2f} times what the profile says"
    if drift.since_s is not None:
        since = datetime.fromtimestamp(drift.since_s, UTC).strftime("%H:%M:%S UTC")
        return f"{text}, since {since}: profile anew"
    if drift.num_batches_to_find is None:
        return f"{text}; an increase by a fifth would not yet exceed the usual difference of runs"
    number = counted(drift.num_batches_to_find, "batch", "batches")
    return f"{text}; an increase by a fifth is detected after {number}"


def change_text(change: WatchedChange) -> str:
    """A change that would be made, in a sentence."""
    saved = change.saved_node_s_per_hour
    gain = "as many nodes"
    if saved:
        gain = f"{format_duration(abs(saved))} of a node {'less' if saved > 0 else 'more'} an hour"
    latency, now_s = "", change.latency_now_s
    if change.latency_then_s is not None:
        before = "no latency now" if now_s is None else f"{format_duration(now_s)} now"
        latency = f"; planned latency {format_duration(change.latency_then_s)}, {before}"
    pause, late = map(format_duration, (change.pause_s, change.late_s))
    expected = f"expected: a pause of {pause}, {late} of arrivals late"
    return f"{_difference(change.now, change.then)} ({change.why}): {gain}{latency}; {expected}"


def _difference(now: Configuration, then: Configuration) -> str:
    parts = []
    if then.executors != now.executors:
        parts.append(f"{now.executors} -> {counted(then.executors, 'executor')}")
    if then.trigger_s != now.trigger_s:
        before, after = format_duration(now.trigger_s), format_duration(then.trigger_s)
        parts.append(f"trigger {before} -> {after}")
    if then.shuffle_partitions != now.shuffle_partitions:
        parts.append(f"{now.shuffle_partitions} -> {then.shuffle_partitions} shuffle partitions")
    if then.max_offsets_per_trigger != now.max_offsets_per_trigger:
        parts.append(f"rate limit {then.max_offsets_per_trigger or 'none'}")
    return ", ".join(parts) or "nothing"


def look_json(look: Look) -> dict[str, object]:
    """The same for machines."""
    return {
        "query": look.query,
        "target": str(look.target),
        "standing": look.standing,
        "ended": look.ended,
        "at_s": look.at_s,
        "num_batches": look.num_batches,
        "seen_s": look.seen_s,
        "configuration": data_of(look.configuration),
        "predicted": None if look.prediction is None else prediction_json(look.prediction),
        "measured": {
            "rate_per_s": look.rate_per_s,
            "latency": data_of(look.latency and look.latency.statistics_s),
            "batch_duration": data_of(look.batch_duration and look.batch_duration.statistics_s),
            "utilization_ratio": look.utilization_ratio,
            "backlog_rows": look.backlog_rows,
            "silent_s": look.silent_s,
        },
        "late_ratio": look.late_ratio,
        "budget_left_ratio": look.budget_left_ratio,
        "drift": data_of(look.drift, EXACT),
        "feasible": look.is_feasible,
        "change": data_of(look.change),
        "why_no_change": look.why_no_change,
    }


def look_metrics(look: Look) -> Iterator[Metric]:
    """The same as metrics; what is unknown has no sample."""
    for name, about, values in _metrics(look):
        samples = tuple(
            ((("query", look.query), *labels), value)
            for labels, value in values.items()
            if value is not None
        )
        yield Metric(name=name, about=about, samples=samples)


def _metrics(look: Look) -> Iterator[tuple[str, str, Mapping[Labels, float | None]]]:
    """Name, meaning, and the value for each combination of further labels."""
    predicted, measured, drift = look.prediction, look.batch_duration, look.drift
    latency = None if predicted is None else predicted.latency(look.target.metric)
    duration = None if predicted is None else predicted.batch_duration
    yield (
        "headway_latency_seconds",
        "Latency that the target is about.",
        {
            (("source", source), ("statistic", name)): value
            for source, distribution in (("predicted", latency), ("measured", look.latency))
            if distribution is not None
            for name, value in distribution.statistics_s.items()
        },
    )
    yield "headway_limit_seconds", "Limit of the target.", {(): look.target.limit_s}

    def by_source(predicted: float | None, measured: float | None) -> dict[Labels, float | None]:
        return {(("source", "predicted"),): predicted, (("source", "measured"),): measured}

    means_s = [None if times is None else times.mean_s for times in (duration, measured)]
    yield "headway_batch_duration_seconds", "Mean batch duration.", by_source(*means_s)
    load_ratio = None if predicted is None else predicted.utilization_ratio
    loads = by_source(load_ratio, look.utilization_ratio)
    yield "headway_utilization_ratio", "Share of time in which a batch runs.", loads
    wanted = (look.change.then if look.change else look.configuration).executors
    for name, about, value in (
        ("headway_input_rows_per_second", "Input rate.", look.rate_per_s),
        ("headway_backlog_rows", "Rows at the source that are not yet read.", look.backlog_rows),
        ("headway_late_ratio", "Share of late rows.", look.late_ratio),
        ("headway_late_budget_left_ratio", "What is left of it.", look.budget_left_ratio),
        ("headway_active", "Whether the query runs.", float(look.ended is None)),
        ("headway_silent_seconds", "Time since it last reported.", look.silent_s),
        (
            "headway_cost_ratio",
            "Batch duration over the profiled one.",
            None if drift is None else drift.duration_ratio,
        ),
        ("headway_drift_alarm", "Whether costs drift.", float(drift.is_alarm) if drift else None),
        ("headway_feasible", "Whether the bounds allow it.", float(look.is_feasible)),
        ("headway_executors", "Executors that there are.", float(look.configuration.executors)),
        ("headway_executors_wanted", "Executors that a change would ask for.", float(wanted)),
    ):
        yield name, about, {(): value}


def explained_sheet(explained: ExplainedChange) -> Sheet:
    """Why the change was made, its alternatives, and its outcome."""
    change, proposal = explained.change, explained.proposal
    before, after = brief_setting_text(change.now), brief_setting_text(change.then)
    began = _clock(change.began_s)
    reasons: tuple[Section, ...] = ()
    if proposal is not None:
        reasons = (Section(rows=tuple(_estimate(proposal)), indent=2), _alternatives(proposal))
    return Sheet(
        about="Headway explanation of a change",
        headline=f"change {change.number}, {began}: {change.kind} ({change.reason})",
        sections=(
            Section(texts=(f"from {before}", f"to {after}"), indent=2, close=True),
            *reasons,
            Section(
                title="expected, 90% intervals",
                rows=() if change.expected is None else tuple(_expected(change.expected)),
            ),
            Section(title="what came of it", rows=tuple(map(_outcome, explained.outcomes))),
        ),
    )


def _estimate(proposal: Proposal) -> Iterator[tuple[str, str]]:
    estimate = proposal.estimate
    forecast = f"{_rate(estimate.forecast_per_s)} in {format_duration(estimate.lead_s)}"
    yield "input rate", f"{format_rate(estimate.rate_per_s)}; {forecast}"
    yield "prepared for", _rate(estimate.planned_per_s)
    yield "batches take", f"{estimate.cost_ratio:.2f} times what the profile says"
    yield "late rows", f"{percent(estimate.late_ratio)} of the rows"
    if round(proposal.waiting_rows) > 0:
        yield "backlog", counted(round(proposal.waiting_rows), "row")


def _alternatives(proposal: Proposal) -> Section:
    """The alternatives, in node-seconds."""
    if not proposal.alternatives:
        gain = "the target is missed without it"
        if math.isfinite(proposal.gain_node_s):
            gain = f"gains {_node_time(proposal.gain_node_s)}"
        return Section(texts=(f"{gain}; costs {_node_time(proposal.cost_node_s)}",), indent=2)
    rows = tuple(
        (
            f"{counted(option.executors, 'executor')}, every {format_duration(option.trigger_s)}",
            _rate(option.sustained_per_s),
            *map(_node_time, (option.gain_node_s, option.cost_node_s)),
        )
        for option in proposal.alternatives
    )
    head = ("weighed", "sustains", "gains", "costs")
    return Section(head=head, rows=rows, right=(1, 2, 3), indent=2)


def _expected(expectation: Expectation) -> Iterator[tuple[str, str]]:
    yield "max rate", _ends(expectation.sustained_per_s, _rate)
    yield "batch duration", _ends(expectation.duration_s, format_duration)
    yield "latency", _ends(expectation.latency_s, format_duration)
    pause, late = map(format_duration, (expectation.pause_s, expectation.late_s))
    yield "pause", f"{pause}; {late} of arrivals late"


def _outcome(outcome: ChangeOutcome) -> tuple[str, str]:
    facts = [] if outcome.why is None else [outcome.why]
    if outcome.duration_s is not None:
        facts.append(f"batches take {format_duration(outcome.duration_s)}")
    if outcome.late_ratio is not None:
        facts.append(f"{percent(outcome.late_ratio)} of the rows late")
    if outcome.pause_s is not None:
        facts.append(f"pause of {format_duration(outcome.pause_s)}")
    return f"{outcome.event}, {_clock(outcome.at_s)}", "; ".join(facts)


def _ends(interval: Interval, text: Callable[[float], str]) -> str:
    return f"{text(interval.low)} to {text(interval.high)}"


def _rate(rate_per_s: float) -> str:
    return format_rate(rate_per_s) if math.isfinite(rate_per_s) else "any rate"


def _node_time(node_s: float) -> str:
    return f"{format_duration(abs(node_s))} of a node" if math.isfinite(node_s) else "the target"


def _clock(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


KINDS = {
    "watch": Kind(sheet=look_sheet, data=look_json),
    "explained-change": Kind(sheet=explained_sheet, data=result_json),
}
