"""Figures of then and now, for people."""

from __future__ import annotations

from collections.abc import Callable

from headway.gate.nouns import Held, Locked
from headway.units import format_duration


def rows(held: Held) -> list[tuple[str, str, str]]:
    """Name, locked and now, of each figure that a reader looks for first."""
    then, now = held.then, held.now
    found = [("nodes", _of(then, lambda one: str(one.nodes)), str(now.nodes))]
    if now.cost_per_hour is not None or (then is not None and then.cost_per_hour is not None):
        found.append(("cost an hour", _of(then, _cost), _cost(now)))
    found.append(("planned latency", _of(then, _latency), _latency(now)))
    return found


def changed(then: str, now: str) -> str:
    """Both figures, or one where nothing changed.

    Examples
    --------
    >>> changed("2", "3"), changed("2", "2"), changed("-", "2")
    ('2 -> 3', '2', '2')
    """
    return now if then in (now, "-") else f"{then} -> {now}"


def _of(locked: Locked | None, show: Callable[[Locked], str]) -> str:
    return "-" if locked is None else show(locked)


def _cost(locked: Locked) -> str:
    return "-" if locked.cost_per_hour is None else f"{locked.cost_per_hour:.4g}"


def _latency(locked: Locked) -> str:
    return "-" if locked.planned_latency_s is None else format_duration(locked.planned_latency_s)
