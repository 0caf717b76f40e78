"""Locked and current figures of a job, for people."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from headway.ci.nouns import Held
from headway.digits import format_money
from headway.formats.lock_file import AnyLocked
from headway.units import HOURS_PER_MONTH, format_duration

#: The columns of `job_row`.
HEAD = ("job", "target", "nodes", "cost", "planned", "locked setting")


def job_row(held: Held) -> tuple[str, ...]:
    """A job in a table for all kinds of jobs: each cell says of what its figure is."""
    figures = {name: f"{figure} {unit}".strip() for name, unit, figure in changes(held)}
    return (
        held.name,
        " and ".join(held.now.targets),
        *(figures.get(name, "-") for name in ("nodes", "cost", "planned")),
        locked_today_text(held) or "-",
    )


def rows(held: Held) -> list[tuple[str, str, str, str]]:
    """Name, subject, locked and current value of each figure that a reader looks for first.

    What no setting achieves has no current figures.
    """
    then, now = held.then, held.now

    def both(text: Callable[[AnyLocked], str]) -> tuple[str, str]:
        return "-" if then is None else text(then), text(now) if held.feasible else "-"

    figure_rows = [("nodes", "", *both(lambda locked: str(locked.nodes)))]
    if now.cost is not None or (then is not None and then.cost is not None):
        figure_rows.append(("cost", now.cost_of, *both(partial(_cost, currency=held.currency))))
    return [*figure_rows, ("planned", now.planned_of, *both(_planned))]


def changes(held: Held) -> list[tuple[str, str, str]]:
    """Name, subject, and locked and current value of each figure of which either is known."""
    figures = [(name, unit, changed(then, now)) for name, unit, then, now in rows(held)]
    return [figure for figure in figures if figure[-1] != "-"]


def cost_text(held: Held) -> str:
    """The cost per month, or of a run of a job that ends; a dash if it is unknown.

    The cost of a job is unknown if its nodes have no price or do not suffice.
    """
    then, now = held.then, held.now
    per, num_hours = ("per run", 1.0) if now.ends else ("per month", HOURS_PER_MONTH)
    before, after = (
        "-" if locked is None else _cost(locked, num_hours, currency=held.currency)
        for locked in (
            None if then is None or then.ends != now.ends else then,
            now if held.feasible else None,
        )
    )
    figures = changed(before, after)
    return figures if figures == "-" else f"{figures} {per}"


def locked_today_text(held: Held) -> str:
    """Whether the locked setting meets the current targets; findings say what it misses."""
    if held.locked_today is None:
        return ""
    return f"{'meets' if held.locked_today.met else 'misses'} its target today"


def changed(then: str, now: str) -> str:
    """Both figures, or one if nothing changed.

    >>> changed("2", "3"), changed("2", "2"), changed("-", "2")
    ('2 -> 3', '2', '2')
    """
    return now if then in (now, "-") else f"{then} -> {now}"


def _cost(locked: AnyLocked, num_hours: float = 1.0, *, currency: str) -> str:
    return "-" if locked.cost is None else format_money(locked.cost * num_hours, currency=currency)


def _planned(locked: AnyLocked) -> str:
    return "-" if locked.planned_s is None else format_duration(locked.planned_s)
