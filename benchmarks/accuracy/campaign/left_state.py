"""Runs beside the state that an ended query left in the heap of their JVM, and what it costs them.

A state store stays loaded until Spark's maintenance finds, once a minute, that its query has ended.
Meanwhile the collector marks it again and again, beside whatever runs then.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from pages import headed

from campaign.figures import Row, errors, grouped, median_size, repeats_of, share_within

LEFT_FOR_S = 60.0
"""Interval of Spark's maintenance of state stores, which unloads those of ended queries."""
LEAST_HEAP_RATIO = 0.1
"""A state counts if it takes a tenth of the heap of 2 GB, 205 MB: those of this campaign take 230
to 604 MB (all rows of a stream kept), or at most 130 MB."""
_HEAP_BYTES = 2 * 2**30
_SAME_JVM_S = 5.0

_WORDS = """\
The runs of a repeat share a JVM. The state of a query that has ended stays loaded for up to a
minute, and the collector marks the heap beside the next queries. A run counts as beside a left
state if a query that ended in the minute before it held a tenth of the heap or more. Where one of
two repeats of a setting was, its batches took longer by the ratio of the first table; where
neither was, the ratio is that of the later repeat to the earlier one. Profiles are fitted on runs
of both kinds. Since 29 November 2026 every run begins without the state of others, and those of
`json`, `sliding` and `growing` were made anew."""


def beside_left_state(kept: Sequence[Row]) -> set[tuple[str, str]]:
    """Group and name of the runs that began beside a state that an ended query left."""
    found = set()
    for group in grouped(kept, lambda row: str(row["group"])).values():
        for row in group:
            if row.get("others_forgotten"):
                continue
            left_bytes = (
                _state_bytes(other)
                for other in group
                if abs(_jvm_start_s(other) - _jvm_start_s(row)) < _SAME_JVM_S
                and 0.0 <= row["started_s"] - _ended_s(other) <= LEFT_FOR_S
            )
            if max(left_bytes, default=0.0) >= LEAST_HEAP_RATIO * _HEAP_BYTES:
                found.add((str(row["group"]), str(row["name"])))
    return found


def _jvm_start_s(row: Row) -> float:
    truth = row["truth"]
    middle_s = 0.5 * (truth["from_s"] + truth["to_s"]) if truth else row["started_s"]
    return float(middle_s - row["jvm_age_s"])


def _ended_s(row: Row) -> float:
    return float(row["truth"]["to_s"] if row["truth"] else row["started_s"])


def _state_bytes(row: Row) -> float:
    """What the state of a run took at its end."""
    batches = (row["run"] or {}).get("batches") or {}
    return float(batches["state"]["memory_bytes"][-1]) if batches else 0.0


def duration_ratios(kept: Sequence[Row], beside: set[tuple[str, str]]) -> Mapping[str, list[float]]:
    """Batch durations of two repeats: of the one beside a left state to the other; of neither."""
    ratios: dict[str, list[float]] = {"one": [], "neither": []}
    with_truth = [row for row in kept if row["truth"]]
    for repeats in grouped(with_truth, _setting).values():
        if len(repeats) != 2:
            continue
        first, second = sorted(repeats, key=lambda row: float(row["started_s"]))
        is_beside = [(row["group"], row["name"]) in beside for row in (first, second)]
        ratio = second["truth"]["duration"]["mean"] / first["truth"]["duration"]["mean"]
        if not any(is_beside):
            ratios["neither"].append(ratio)
        elif not all(is_beside):
            ratios["one"].append(ratio if is_beside[1] else 1.0 / ratio)
    return ratios


def _setting(row: Row) -> str:
    return f"{row['group']}/{row['workload']}/{row['role']}/{row['setting']}"


def left_state_tables(
    kept: Sequence[Row], judged: Iterable[Row], trials: Sequence[Row] = ()
) -> Iterator[str]:
    """What repeats differ by, the errors of judged runs of both kinds, and runs made for this."""
    yield _WORDS
    yield ""
    beside = beside_left_state(kept)
    yield from headed("| of two repeats | pairs | ratio of durations: median | 10% to 90% |")
    for kind, ratios in duration_ratios(kept, beside).items():
        if ratios:
            low, high = np.quantile(ratios, [0.1, 0.9])
            yield (
                f"| {kind} beside a left state | {len(ratios)} | {statistics.median(ratios):.2f} "
                f"| {low:.2f} to {high:.2f} |"
            )
    yield ""
    runs = repeats_of(judged)
    yield from headed(
        "| judged runs | number | mean | within 10% | p99 | within 15% | windows | within 10% |"
    )
    for name, is_left in (("beside a left state", True), ("others", False)):
        of = [run for run in runs if ((run["group"], run["name"]) in beside) is is_left]
        mean, p99 = errors(of, "latency", "mean"), errors(of, "latency", "p99")
        windows = errors(of, "windows", "mean")
        yield (
            f"| {name} | {len(mean)} | {median_size(mean)} | {share_within(mean, 0.1)} "
            f"| {median_size(p99)} | {share_within(p99, 0.15)} | {median_size(windows)} "
            f"| {share_within(windows, 0.1)} |"
        )
    yield ""
    yield from _trial_table([trial for trial in trials if trial.get("duration")])


def _trial_table(trials: Sequence[Row]) -> Iterator[str]:
    """Two queries with and without the state of another, in one JVM (`left_states.py`)."""
    if not trials:
        return
    yield from headed("| query | in this order | batch, mean: repeats | cores busy |")
    of_each = grouped(trials, lambda trial: f"{trial['job']} | {trial['condition']}")
    for condition, of in of_each.items():
        means = ", ".join(f"{trial['duration']['mean']:.3f} s" for trial in of)
        busy = ", ".join(f"{trial['cores_busy']:.2f}" for trial in of)
        yield f"| {condition} | {means} | {busy} |"
    yield ""
