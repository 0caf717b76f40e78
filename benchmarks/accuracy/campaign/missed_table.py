"""The judged settings whose errors are beyond the goals, and how far their repeats lie apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pages import headed

from campaign.figures import (
    GOAL_MEAN_RATIO,
    GOAL_P99_RATIO,
    Row,
    error_ratio,
    is_judged,
    repeat_differences,
    setting_name,
)

_GOALS = {"mean": GOAL_MEAN_RATIO, "p99": GOAL_P99_RATIO}


def missed_table(rows: Sequence[Row], every: Sequence[Row]) -> Iterator[str]:
    """Setting by setting: its errors, those of a fit on every run, and how its repeats differ."""
    of_every = {_name(row): row for row in every}
    missed = [row for row in rows if is_judged(row) and _is_missed(row)]
    at_once = [row for row in missed if row["setting"]["trigger_s"] == 0]
    yield (
        f"{len(missed)} of the judged configurations miss the goal for the mean or the p99, "
        f"{len(at_once)} of them as fast as possible. In "
        f"{sum(_lie_apart(row) for row in missed)} of them, the repeats themselves differ by more "
        "than the goal."
    )
    yield ""
    yield from headed(
        "| setting | mean: error | p99: error | batch: error | fitted on every run: mean | p99 "
        "| repeats differ by: mean | p99 |"
    )
    for row in missed:
        best = of_every.get(_name(row))
        errors = [
            *(error_ratio(row, "latency", figure) for figure in _GOALS),
            error_ratio(row, "duration", "mean"),
            *(None if best is None else error_ratio(best, "latency", figure) for figure in _GOALS),
            *(_apart(row, figure) for figure in _GOALS),
        ]
        yield f"| {_name(row)} | {' | '.join(map(_percent, errors))} |"
    yield ""


def _is_missed(row: Row) -> bool:
    return any(
        abs(error_ratio(row, "latency", figure) or 0.0) > goal for figure, goal in _GOALS.items()
    )


def _lie_apart(row: Row) -> bool:
    return any((_apart(row, figure) or 0.0) > goal for figure, goal in _GOALS.items())


def _apart(row: Row, figure: str) -> float | None:
    found = repeat_differences([row], figure)
    return abs(found[0]) if found else None


def _name(row: Row) -> str:
    return f"{setting_name(row)}, {row['group']}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:+.0f}%"
