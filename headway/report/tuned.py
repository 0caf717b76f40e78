"""A change that a tuner made, in words and as data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from headway.domain import Interval
from headway.domain.live import Expectation, Proposal
from headway.domain.sheet import Kind, Section, Sheet
from headway.domain.tuner import ChangeOutcome, ExplainedChange
from headway.formats.codec import data_of
from headway.report.wording import brief_setting_text, percent
from headway.units import counted, format_duration, format_rate


def explained_json(explained: ExplainedChange) -> dict[str, object]:
    """The change as data for `headway.formats.as_json.json_text`."""
    return {"schema": "headway.explained-change/v1", **data_of(explained)}


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
    return Section(
        head=("weighed", "sustains", "gains", "costs"),
        rows=tuple(
            (
                f"{option.executors} executors, every {format_duration(option.trigger_s)}",
                _rate(option.sustained_per_s),
                _node_time(option.gain_node_s),
                _node_time(option.cost_node_s),
            )
            for option in proposal.alternatives
        ),
        right=(1, 2, 3),
        indent=2,
    )


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


KINDS = {"explained-change": Kind(sheet=explained_sheet, data=explained_json)}
