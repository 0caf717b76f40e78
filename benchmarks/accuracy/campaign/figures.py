"""Judged runs -> error figures; the rules on what counts where are here and nowhere else.

* A run *fell behind* if its rows became older by more than 5% of the time that passed, unless 95%
  of its batches were done before their trigger interval was over: those of a state that grows last
  longer and longer without falling behind.
* A run counts as *steady* if it did not fall behind, and others used less than 0.3 cores.
* Errors are predicted over measured, less one, of steady runs that were called stable and whose
  prediction does not warn of saturation (more than 0.9 s of work per second of input, or batches
  that mostly overrun): there a prediction says itself not to be relied on.
* A *setting* is run several times. Its figures, measured and predicted, are the means over the
  repeats that were not disturbed; it is judged if each of these is. Intervals are for single ones.
* A run has a few windows, of which the p99 is the *longest*, nearly. It is held against the median
  of the longest of so many, not against the p99 that is predicted of all windows that will ever be.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

Row = dict[str, Any]

MOST_CORES_OF_OTHERS = 0.3
GOAL_MEAN_RATIO, GOAL_P99_RATIO = 0.10, 0.15
QUOTED = ("mean", "p50", "p95", "p99")
LONGEST = "longest"
WORKED_ON = ("json", "sessions", "tumbling", "rocksdb", "skewed", "join", "sliding")
"""The half of the workloads that changes of the model are worked out on: by hash of their names."""


def is_backlog(row: Row) -> bool:
    """Whether the run worked off a backlog, so that its rows waited as long as the backlog is."""
    return bool(row["setting"]["backlog"])


def is_undisturbed(row: Row) -> bool:
    """Whether other processes left the machine alone."""
    return bool(row["cores_of_others"] < MOST_CORES_OF_OTHERS)


def fell_behind(row: Row) -> bool:
    """Whether the query was too slow for what arrived."""
    trigger_s, truth = row["setting"]["trigger_s"], row["truth"]
    in_time = trigger_s > 0 and truth["duration"]["p95"] < trigger_s
    return not truth["kept_up"] and not in_time


def is_steady(row: Row) -> bool:
    """Whether there is a latency to predict."""
    return not is_backlog(row) and is_undisturbed(row) and not fell_behind(row)


def is_judged(row: Row) -> bool:
    """Whether there is a latency to predict, and one that was predicted."""
    predicted = row["predicted"]
    return is_steady(row) and predicted["latency"] is not None and not is_warned(row)


def is_warned(row: Row) -> bool:
    """Whether the prediction says itself that it is too close to saturation."""
    return bool(row["predicted"].get("near_saturation"))


def error_ratio(row: Row, what: str, figure: str) -> float | None:
    """Predicted over measured, less one; None where either is missing."""
    predicted_values, true = row["predicted"].get(what), row["truth"].get(what)
    if not predicted_values or not true:
        return None
    return float(predicted_values[figure] / measured(row, what, figure) - 1)


def measured(row: Row, what: str, figure: str) -> float:
    """A figure as it was measured."""
    return float(row["truth"][what]["p99" if figure == LONGEST else figure])


def errors(rows: Iterable[Row], what: str, figure: str) -> list[float]:
    """Of the judged runs among these."""
    found = (error_ratio(row, what, figure) for row in rows if is_judged(row))
    return [error for error in found if error is not None]


def median_size(values: Sequence[float]) -> str:
    """Median of absolute errors in per cent."""
    return f"{100 * statistics.median(abs(v) for v in values):.1f}%" if values else "-"


def share_within(values: Sequence[float], limit_ratio: float) -> str:
    """Share of absolute errors up to a limit in per cent."""
    if not values:
        return "-"
    return f"{100 * sum(abs(v) <= limit_ratio for v in values) / len(values):.0f}%"


def largest(values: Sequence[float]) -> str:
    """The error of the largest size."""
    return f"{100 * max(values, key=abs):+.0f}%" if values else "-"


def setting_name(row: Row) -> str:
    """Of a setting: that of its runs, without what is theirs alone."""
    return "/".join(row["name"].split("/")[:2])


def by_setting(rows: Iterable[Row]) -> list[Row]:
    """One row per setting, which holds its repeats."""
    return [_mean_of(repeats) for repeats in grouped(rows, _setting_of).values()]


def _setting_of(row: Row) -> str:
    return f"{row['group']}/{row['workload']}/{row['setting']}"


def repeats_of(rows: Iterable[Row]) -> list[Row]:
    """The single repeats of settings."""
    return [repeat for row in rows for repeat in row.get("plays", [row])]


def _mean_of(repeats: Sequence[Row]) -> Row:
    kept = [repeat for repeat in repeats if is_undisturbed(repeat)] or repeats
    if not all(is_judged(repeat) for repeat in kept) and not all(
        is_backlog(repeat) for repeat in kept
    ):
        # What ends the judging of one ends that of all.
        return {**next(repeat for repeat in kept if not is_judged(repeat)), "plays": repeats}
    means = {what: _mean([repeat[what] for repeat in kept]) for what in ("truth", "predicted")}
    return {**kept[0], **means, "plays": repeats}


def _mean(values: Sequence[Any]) -> Any:
    """Of numbers at any depth, where they are known; a yes only if all say so."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    first = known[0]
    if isinstance(first, dict):
        return {name: _mean([value.get(name) for value in known]) for name in first}
    if isinstance(first, list):
        return [_mean(ends) for ends in zip(*known, strict=True)]
    return all(known) if isinstance(first, bool) else statistics.fmean(known)


INTERVAL_OF = {"mean": "mean90", "p99": "p99_90"}


def covered(rows: Iterable[Row], figures: Collection[str] = INTERVAL_OF) -> tuple[int, int]:
    """How many of the 90% intervals for mean and p99 of a run held, and how many there were."""
    held = [
        interval[0] <= row["truth"]["latency"][figure] <= interval[1]
        for row in repeats_of(rows)
        if is_judged(row)
        for figure in figures
        if (interval := row["predicted"]["latency"][INTERVAL_OF[figure]]) is not None
    ]
    return sum(held), len(held)


def repeat_errors(rows: Iterable[Row], what: str, figure: str) -> list[float]:
    """What one repeat of a setting says of another: the same statistic as an error of the model.

    One over the other, less one, both ways, of judged runs with a repeat that was not disturbed.
    """
    return [
        repeat / true - 1
        for row in rows
        for repeat, true in itertools.permutations(
            (
                measured(run, what, figure)
                for run in repeats_of([row])
                if is_judged(run) and run["truth"].get(what)
            ),
            2,
        )
    ]


def errors_of_all(rows: Iterable[Row], figure: str) -> list[float]:
    """Of every steady run, whatever its prediction says of itself; inf where it says no latency."""
    return [
        math.inf if error is None else error
        for row in rows
        if is_steady(row)
        for error in [error_ratio(row, "latency", figure)]
    ]


def repeat_differences(rows: Iterable[Row], figure: str) -> list[float]:
    """How far two repeats of one setting lie apart, over their mean."""
    differences = []
    for row in rows:
        values = [
            repeat["truth"]["latency"][figure] for repeat in repeats_of([row]) if is_steady(repeat)
        ]
        if len(values) > 1:
            differences.append((values[0] - values[1]) / statistics.fmean(values[:2]))
    return differences


def halves(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The workloads that the model's latest changes were worked out on, and the others."""
    return {
        "workloads worked on": [row for row in rows if row["workload"] in WORKED_ON],
        "workloads held out": [row for row in rows if row["workload"] not in WORKED_ON],
    }


def grouped(rows: Iterable[Row], key: Callable[[Row], str]) -> dict[str, list[Row]]:
    """Rows by a property, in the order of their first appearance."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def regimes(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Runs by what was asked of them; one may belong to several."""

    def setting(row: Row, name: str) -> float:
        return float(row["setting"][name])

    return {
        "as fast as possible": [row for row in rows if setting(row, "trigger_s") == 0],
        "on a trigger, below 80%": [
            row for row in rows if setting(row, "trigger_s") > 0 and setting(row, "share") < 0.8
        ],
        "80% of what can be carried, and more": [
            row for row in rows if setting(row, "share") >= 0.8
        ],
        "16 partitions and more": [row for row in rows if setting(row, "partitions") >= 16],
        "called calibrated": [row for row in rows if row["predicted"].get("calibrated")],
        "not called calibrated": [
            row for row in rows if row["predicted"].get("calibrated") is False
        ],
    }
