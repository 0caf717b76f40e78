"""What a plan says about the first minutes after a start."""

from __future__ import annotations

from headway.domain import AfterStart, Evidence, Plan
from headway.report.columns import aligned, paragraph
from headway.units import format_duration

_LABEL = "after a restart"


def after_start_fact(plan: Plan) -> tuple[tuple[str, str], ...]:
    """From which minute on the target is met, as label and text; nothing for infeasible plans."""
    after_start = plan.after_start
    if after_start is None:
        return ()
    if after_start.evidence is Evidence.UNAVAILABLE:
        return ((_LABEL, f"unavailable: {after_start.reason}"),)
    text = (
        f"{_holds_text(after_start)}; first minute {_statistic(plan)} {_first_minute(after_start)}"
    )
    return ((_LABEL, text),)


def after_start_lines(plan: Plan) -> list[str]:
    """The minutes one by one, and what they are based on."""
    after_start = plan.after_start
    if after_start is None:
        return []
    if after_start.evidence is Evidence.UNAVAILABLE:
        return paragraph(f"Unavailable: {after_start.reason}.", lead="  ")
    rows = [
        (
            f"minute {minute}",
            f"{_statistic(plan)} up to {format_duration(value_s)}",
            _kept(plan, value_s),
        )
        for minute, value_s in enumerate(after_start.by_minute_s, start=1)
    ]
    first_batch = (
        ""
        if after_start.first_batch_s is None
        else (f" The first batch takes {format_duration(after_start.first_batch_s)}.")
    )
    return [
        *aligned(rows),
        *paragraph(
            f"{_holds_text(after_start).capitalize()}: {after_start.reason}; theory.md (P20)."
            f"{first_batch} headway plan --from-start plans with the batch durations of a fresh "
            "JVM.",
            lead="  ",
        ),
    ]


def _holds_text(after_start: AfterStart) -> str:
    if after_start.holds_from_minute is None:
        return f"the target is missed for {len(after_start.by_minute_s)} minutes and more"
    if after_start.holds_from_minute == 1:
        return "the target is met from the first minute on"
    return f"the target is met from minute {after_start.holds_from_minute} on"


def _first_minute(after_start: AfterStart) -> str:
    expected_s, upper_end = (
        after_start.expected_first_minute_s,
        format_duration(after_start.by_minute_s[0]),
    )
    return (
        f"up to {upper_end}"
        if expected_s is None
        else f"{format_duration(expected_s)}, up to {upper_end}"
    )


def _statistic(plan: Plan) -> str:
    return plan.target.statistic


def _kept(plan: Plan, value_s: float) -> str:
    return "met" if value_s <= plan.target.limit_s else "missed"
