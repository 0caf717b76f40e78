"""A change that a tuner made: for a terminal, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from headway.domain import Interval
from headway.domain.live import Expectation, Proposal
from headway.domain.tuner import ChangeOutcome, ExplainedChange
from headway.formats.as_json import fields_json
from headway.report.columns import aligned, paragraph
from headway.report.wording import brief_setting_text, percent
from headway.units import counted, format_duration, format_rate

EXPLAINED_SCHEMA = "headway.explained-change/v1"


def explained_json(found: ExplainedChange) -> dict[str, object]:
    """The change as data for `headway.formats.as_json.json_text`."""
    return {
        "schema": EXPLAINED_SCHEMA,
        "change": fields_json(found.change),
        "proposal": fields_json(found.proposal),
        "outcomes": fields_json(found.outcomes),
    }


def explained_text(found: ExplainedChange) -> str:
    """Why the change was made, its alternatives, and its outcome."""
    change, proposal = found.change, found.proposal
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
    blocks.append(["what came of it", *aligned([_outcome(one) for one in found.outcomes])])
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _estimate(proposal: Proposal) -> Iterator[tuple[str, str]]:
    known = proposal.estimate
    lead = format_duration(known.lead_s)
    yield "input rate", f"{format_rate(known.rate_per_s)}; {_rate(known.forecast_per_s)} in {lead}"
    yield "prepared for", _rate(known.planned_per_s)
    yield "batches take", f"{known.cost_ratio:.2f} times what the profile says"
    yield "late rows", f"{percent(known.late_ratio)} of the rows"
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
            f"{one.executors} executors, every {format_duration(one.trigger_s)}",
            _rate(one.sustained_per_s),
            _node_time(one.gain_node_s),
            _node_time(one.cost_node_s),
        )
        for one in proposal.alternatives
    ]
    head = ("weighed", "sustains", "gains", "costs")
    return aligned([head, *rows], right=(1, 2, 3))


def _expected(known: Expectation) -> Iterator[tuple[str, str]]:
    yield "max rate", _ends(known.sustained_per_s, _rate)
    yield "batch duration", _ends(known.duration_s, _time)
    yield "latency", _ends(known.latency_s, _time)
    yield "pause", f"{_time(known.pause_s)}; {_time(known.late_s)} of arrivals late"


def _outcome(one: ChangeOutcome) -> tuple[str, str]:
    said = [] if one.why is None else [one.why]
    if one.duration_s is not None:
        said.append(f"batches take {_time(one.duration_s)}")
    if one.late_ratio is not None:
        said.append(f"{percent(one.late_ratio)} of the rows late")
    if one.pause_s is not None:
        said.append(f"pause of {_time(one.pause_s)}")
    return f"{one.event}, {_clock(one.at_s)}", "; ".join(said)


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
