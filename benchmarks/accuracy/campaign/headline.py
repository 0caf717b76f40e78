"""The figures that the accuracy page begins with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pages import headed

from campaign.figures import (
    GOAL_MEAN_RATIO,
    GOAL_P99_RATIO,
    LONGEST,
    QUOTED,
    Row,
    covered,
    errors,
    grouped,
    is_judged,
    largest,
    median_size,
    repeat_errors,
    repeats_of,
    share_within,
)

_ORDINALS = ("first", "second", "third")
_NAMES = {"latency": "tuple latency", "windows": "window latency", "duration": "batch duration"}


def headline(rows: Sequence[Row]) -> Iterator[str]:
    judged = [row for row in rows if is_judged(row)]
    held, num_intervals = covered(rows)
    yield (
        f"**{len(judged)} judged settings, {len(errors(repeats_of(rows), 'latency', 'mean'))} "
        f"judged runs, predicted from {_fitted_runs(rows)} runs of their workload each; "
        f"{_workloads_text(judged)}.**"
    )
    yield ""
    yield from headed(
        "| figure | median error | within 10% | within 15% | largest "
        "| floor: median | within 10% | within 15% |"
    )
    runs = repeats_of(rows)
    figures = [("latency", figure) for figure in QUOTED]
    figures += [("windows", "mean"), ("windows", LONGEST), ("duration", "mean")]
    for what, figure in figures:
        of, floor = errors(runs, what, figure), repeat_errors(rows, what, figure)
        yield (
            f"| {_NAMES[what]}, {figure} | {_median_and_shares(of)} | {largest(of)} "
            f"| {_median_and_shares(floor)} |"
        )
    yield ""
    by_repeat = grouped(runs, lambda row: _ORDINALS[row.get("play", 1) - 1])
    each = [
        f"{name} repeats: {_in_words(by_repeat[name])}" for name in _ORDINALS if name in by_repeat
    ]
    said = "; ".join(each)
    yield (
        f"{said[0].upper()}{said[1:]}. Means over the repeats of a setting: {_in_words(rows)}. The "
        f"90% intervals for mean and p99 held {held} of {num_intervals} times "
        f"({100 * held / num_intervals:.0f}%).{_thrice_text(judged)}"
    )
    yield ""


def _median_and_shares(of: Sequence[float]) -> str:
    return (
        f"{median_size(of)} | {share_within(of, GOAL_MEAN_RATIO)} "
        f"| {share_within(of, GOAL_P99_RATIO)}"
    )


def _thrice_text(rows: Sequence[Row]) -> str:
    """Which workloads have a third repeat."""
    thrice = {row["workload"] for row in rows if any(one.get("play") == 3 for one in row["plays"])}
    return f" A third repeat was run of {', '.join(sorted(thrice))}." if thrice else ""


def _workloads_text(rows: Sequence[Row]) -> str:
    """How many workloads ran where."""
    of_group = grouped(rows, lambda row: str(row["group"]))
    counts = {name: len({row["workload"] for row in of}) for name, of in of_group.items()}
    return ", ".join(
        f"{count} {'workload' if count == 1 else 'workloads'} on {name.replace('-', ' ')}"
        for name, count in counts.items()
    )


def _fitted_runs(rows: Sequence[Row]) -> str:
    """How many runs profiles were fitted on, all repeats counted."""
    numbers = sorted({row["fitted"]["runs"] for row in rows})
    return " or ".join(map(str, numbers))


def _in_words(rows: Sequence[Row]) -> str:
    return _shares(errors(rows, "latency", "mean"), errors(rows, "latency", "p99"))


def _shares(mean: Sequence[float], p99: Sequence[float]) -> str:
    return (
        f"mean {median_size(mean)}, {share_within(mean, GOAL_MEAN_RATIO)} within 10%, "
        f"p99 {median_size(p99)}, {share_within(p99, GOAL_P99_RATIO)} within 15%"
    )
