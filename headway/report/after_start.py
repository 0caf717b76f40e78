"""What a plan says about the first minutes after a start."""

from __future__ import annotations

from headway.domain import AfterStart, Evidence, Plan
from headway.report.columns import aligned, paragraph
from headway.units import format_duration

_LABEL = "after a restart"


def after_start_fact(plan: Plan) -> tuple[tuple[str, str], ...]:
    """From which minute on the target is met, as label and text; nothing for infeasible plans."""
    found = plan.after_start
    if found is None:
        return ()
    if found.evidence is Evidence.UNAVAILABLE:
        return ((_LABEL, f"unavailable: {found.reason}"),)
    text = f"{_holds_text(found)}; first minute {_statistic(plan)} {_first_minute(found)}"
    return ((_LABEL, text),)


def after_start_lines(plan: Plan) -> list[str]:
    """The minutes one by one, and what they are based on."""
    found = plan.after_start
    if found is None:
        return []
    if found.evidence is Evidence.UNAVAILABLE:
        return paragraph(f"Unavailable: {found.reason}.", lead="  ")
    rows = [
        (
            f"minute {minute}",
            f"{_statistic(plan)} up to {format_duration(value_s)}",
            _kept(plan, value_s),
        )
        for minute, value_s in enumerate(found.by_minute_s, start=1)
    ]
    first = (
        ""
        if found.first_batch_s is None
        else (f" The first batch takes {format_duration(found.first_batch_s)}.")
    )
    return [
        *aligned(rows),
        *paragraph(
            f"{_holds_text(found).capitalize()}: {found.reason}; theory.md (P20).{first} "
            "headway plan --from-start plans with the batch durations of a fresh JVM.",
            lead="  ",
        ),
    ]


def _holds_text(found: AfterStart) -> str:
    if found.holds_from_minute is None:
        return f"the target is missed for {len(found.by_minute_s)} minutes and more"
    if found.holds_from_minute == 1:
        return "the target is met from the first minute on"
    return f"the target is met from minute {found.holds_from_minute} on"


def _first_minute(found: AfterStart) -> str:
    expected_s, most = found.expected_first_minute_s, format_duration(found.by_minute_s[0])
    return f"up to {most}" if expected_s is None else f"{format_duration(expected_s)}, up to {most}"


def _statistic(plan: Plan) -> str:
    return plan.target.statistic


def _kept(plan: Plan, value_s: float) -> str:
    return "met" if value_s <= plan.target.limit_s else "missed"
