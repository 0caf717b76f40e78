"""A change that a tuner made: for a terminal, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from headway.domain import Interval
from headway.domain.live import Expectation, Proposal
from headway.domain.tuner import ChangeOutcome, ExplainedChange
from headway.formats.codec import data_of
from headway.report.columns import aligned, paragraph
from headway.report.wording import brief_setting_text, percent
from headway.units import counted, format_duration, format_rate

EXPLAINED_SCHEMA = "headway.explained-change/v1"


def explained_json(explained: ExplainedChange) -> dict[str, object]:
    """The change as data for `headway.formats.as_json.json_text`."""
    return {"schema": EXPLAINED_SCHEMA, **data_of(explained)}


def explained_text(explained: ExplainedChange) -> str:
    """Why the change was made, its alternatives, and its outcome."""
    change, proposal = explained.change, explained.proposal
    began = _clock(change.began_s)
    lines = [
        *paragraph(f"change {change.number}, {began}: {change.kind} ({change.reason})"),
        *paragraph(brief_setting_text(change.now), lead="  from "),
        *paragraph(brief_setting_text(change.then), lead="  to "),
    ]
    blocks = [lines]
    if proposal is not None:
        blocks += [[*aligned(list(_estimate(proposal)))], _alternatives(proposal)]
    if change.expected is not None:
        blocks.append(["expected, 90% intervals", *aligned(list(_expected(change.expected)))])
    blocks.append(
        ["what came of it", *aligned([_outcome(outcome) for outcome in explained.outcomes])]
    )
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _estimate(proposal: Proposal) -> Iterator[tuple[str, str]]:
    estimate = proposal.estimate
    lead = format_duration(estimate.lead_s)
    yield (
        "input rate",
        f"{format_rate(estimate.rate_per_s)}; {_rate(estimate.forecast_per_s)} in {lead}",
    )
    yield "prepared for", _rate(estimate.planned_per_s)
    yield "batches take", f"{estimate.cost_ratio:.2f} times what the profile says"
    yield "late rows", f"{percent(estimate.late_ratio)} of the rows"
    if round(proposal.waiting_rows) > 0:
        yield "backlog", counted(round(proposal.waiting_rows), "row")


def _alternatives(proposal: Proposal) -> list[str]:
    """The alternatives, in node-seconds."""
    if not proposal.alternatives:
        gain = "the target is missed without it"
        if math.isfinite(proposal.gain_node_s):
            gain = f"gains {_node_time(proposal.gain_node_s)}"
        return [*paragraph(f"{gain}; costs {_node_time(proposal.cost_node_s)}", lead="  ")]
    rows = [
        (
            f"{alternative.executors} executors, every {format_duration(alternative.trigger_s)}",
            _rate(alternative.sustained_per_s),
            _node_time(alternative.gain_node_s),
            _node_time(alternative.cost_node_s),
        )
        for alternative in proposal.alternatives
    ]
    head = ("weighed", "sustains", "gains", "costs")
    return aligned([head, *rows], right=(1, 2, 3))


def _expected(expectation: Expectation) -> Iterator[tuple[str, str]]:
    yield "max rate", _ends(expectation.sustained_per_s, _rate)
    yield "batch duration", _ends(expectation.duration_s, _time)
    yield "latency", _ends(expectation.latency_s, _time)
    yield "pause", f"{_time(expectation.pause_s)}; {_time(expectation.late_s)} of arrivals late"


def _outcome(outcome: ChangeOutcome) -> tuple[str, str]:
    facts = [] if outcome.why is None else [outcome.why]
    if outcome.duration_s is not None:
        facts.append(f"batches take {_time(outcome.duration_s)}")
    if outcome.late_ratio is not None:
        facts.append(f"{percent(outcome.late_ratio)} of the rows late")
    if outcome.pause_s is not None:
        facts.append(f"pause of {_time(outcome.pause_s)}")
    return f"{outcome.event}, {_clock(outcome.at_s)}", "; ".join(facts)


def _ends(interval: Interval, text: Callable[[float], str]) -> str:
    return f"{text(interval.low)} to {text(interval.high)}"


def _rate(rate_per_s: float) -> str:
    return format_rate(rate_per_s) if math.isfinite(rate_per_s) else "any rate"


def _time(seconds: float) -> str:
    return format_duration(seconds) if math.isfinite(seconds) else "unbounded"


def _node_time(node_s: float) -> str:
    return f"{_time(abs(node_s))} of a node" if math.isfinite(node_s) else "the target"


def _clock(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
