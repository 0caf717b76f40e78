"""A finding at its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.gate.nouns import Finding, Level, Rule

if TYPE_CHECKING:
    from headway.api.specs import Planned


def finding(planned: Planned, rule: Rule, level: Level, key: str, message: str) -> Finding:
    """What was found of a planned job, at a key of its file's ``spec``."""
    place = planned.file.place(key)
    return Finding(
        rule=rule,
        level=level,
        job=planned.name,
        message=message,
        file=place.name,
        line=place.mark.line,
        column=place.mark.column,
    )


def drift(
    planned: Planned, then_s: float, now_s: float, limit_ratio: float, what: str
) -> Finding | None:
    """The finding that the profile of today says another time of the locked setting than then."""
    from headway.units import format_duration

    change = now_s / then_s - 1
    if abs(change) <= limit_ratio:
        return None
    text = (
        f"{what} {format_duration(now_s)} by the profile of today, "
        f"{format_duration(then_s)} by the one that was locked ({change:+.0%})"
    )
    return finding(planned, Rule.DRIFT, Level.ERROR, "profile", text)
