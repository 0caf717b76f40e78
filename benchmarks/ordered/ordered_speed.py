"""Page of measurements of ordered steps on Spark: buckets, groups by key, placed keys.

python benchmarks/run.py ordered_speed --measure
python benchmarks/run.py ordered_speed --output docs/ordered-speed.md
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
import ordered_state
from ordered_runs import CORES, SHORT, WAYS, Amount, TableRun, makespan_s, measure
from pages import headed
from result_lines import lines_of

from headway.units import format_duration

RESULTS = Path(__file__).parent / "results" / "runs.jsonl"
GOAL_RATIO, GOAL_KEYS, GOAL_ERROR_RATIO = 2.0, 1_000, 0.05
_TABLE_NAMES = tuple(field.name for field in fields(TableRun))


def options(parser: argparse.ArgumentParser) -> None:
    """The results file, and whether to measure."""
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--state-results", type=Path, default=ordered_state.RESULTS)
    parser.add_argument("--measure", action="store_true", help="takes hours on a quiet machine")
    parser.add_argument("--short", action="store_true", help="the smallest setting, as a trial")


def text(given: argparse.Namespace) -> str | None:
    """The page."""
    if given.measure:
        measure(given.results, SHORT if given.short else Amount())
        return None
    return "\n".join(_page(lines_of(given.results), lines_of(given.state_results))) + "\n"


def _page(lines: Sequence[dict[str, Any]], state: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield "# Steps in order: speed"
    yield ""
    yield (
        "Made by `make speed-ordered` from `benchmarks/ordered/results/runs.jsonl`, which `make "
        "ordered-runs` measures, and from `state.jsonl` beside it, which `make ordered-state` "
        "measures."
    )
    yield ""
    if not lines:
        yield "Not measured yet: `make ordered-runs` on a quiet machine, hours."
        return
    yield f"Spark on {CORES} cores; medians of the repeats."
    yield ""
    ways = _ways_of([line for line in lines if "way" in line])
    tables = _Tables.of([line for line in lines if "stage_s" in line])
    yield from headed("| expected | result | one repeat compared with the others | |")
    yield from _ways_verdict(ways)
    if tables is not None:
        yield from tables.verdicts()
    yield from ordered_state.verdicts(state)
    yield ""
    yield from _ways(ways)
    yield from ordered_state.section(state)
    yield from _placement(tables)
    yield from _left_out(ways)


_Cells = dict[tuple[int, int], dict[str, list[float]]]


def _ways_of(lines: Sequence[dict[str, Any]]) -> _Cells:
    """Mean batch durations, one for each repeat, by keys and rows and then by way."""
    cells: _Cells = defaultdict(lambda: defaultdict(list))
    for line in lines:
        cells[line["keys"], line["rows"]][line["way"]].append(fmean(line["batches_s"]))
    return cells


def _gain(ways: Mapping[str, Sequence[float]]) -> float | None:
    """Duration with the best of Spark's own ways over that with buckets."""
    others = [median(ways[way]) for way in WAYS[1:] if way in ways]
    return min(others) / median(ways[WAYS[0]]) if others and WAYS[0] in ways else None


def _ways_verdict(cells: _Cells) -> Iterator[str]:
    gains = {rows: _gain(ways) for (keys, rows), ways in sorted(cells.items()) if keys == GOAL_KEYS}
    known = {rows: gain for rows, gain in gains.items() if gain is not None}
    if known:
        figure = ", ".join(f"{gain:.1f} at {rows:,} rows" for rows, gain in known.items())
        yield _verdict(
            f"buckets at least {GOAL_RATIO:g} times as fast as by key, {GOAL_KEYS:,} keys",
            figure, "", min(known.values()) >= GOAL_RATIO,
        )  # fmt: skip


def _ways(cells: _Cells) -> Iterator[str]:
    if not cells:
        return
    yield "## Buckets against groups by key"
    yield ""
    yield (
        f"Mean batch duration, as fast as possible, with {CORES} shuffle partitions. The step "
        "keeps the last value and a count for each key. `pandas by key` is "
        "`applyInPandasWithState`, `rows by key` is `transformWithState` on RocksDB; both sort "
        "inside the group. The mean is over sixty batches, or over those of a minute and a half, "
        "but at least three."
    )
    yield ""
    yield from headed(f"| keys | rows per batch | {' | '.join(WAYS)} | Spark's best over buckets |")
    for (keys, rows), ways in sorted(cells.items()):
        shown = " | ".join(format_duration(median(ways[w])) if w in ways else "" for w in WAYS)
        gain = _gain(ways)
        yield f"| {keys:,} | {rows:,} | {shown} | {'' if gain is None else f'{gain:.1f}'} |"
    yield ""
    yield from _why(cells)


def _why(cells: _Cells) -> Iterator[str]:
    """The cost of a group, and the batch duration without groups."""
    for rows in sorted({rows for _, rows in cells}):
        seen = {keys: ways for (keys, of), ways in sorted(cells.items()) if of == rows}
        of_way = {
            way: {keys: median(ways[way]) for keys, ways in seen.items() if way in ways}
            for way in WAYS[:2]
        }
        buckets, groups = of_way[WAYS[0]], of_way[WAYS[1]]
        # With few rows per key, not every key has a group in every batch.
        whole = [keys for keys in groups if keys <= rows / 10]
        if len(whole) < 2 or not buckets:
            continue
        few, many = min(whole), max(whole)
        per_group_s = (groups[many] - groups[few]) / (many - few)
        even = few + (min(buckets.values()) - groups[few]) / per_group_s
        yield (
            f"With {rows:,} rows, `{WAYS[1]}` takes {format_duration(per_group_s)} for each group "
            "of a batch. Buckets have no group per key: they take "
            f"{format_duration(min(buckets.values()))} to {format_duration(max(buckets.values()))} "
            f"with {min(buckets):,} to {max(buckets):,} keys, and are faster from about "
            f"{even:,.0f} keys on."
            f"{_bound(seen.get(GOAL_KEYS, {}), groups[few] - few * per_group_s)}"
        )
        yield ""


def _bound(ways: Mapping[str, Sequence[float]], without_groups_s: float) -> str:
    """The possible gain if neither groups nor buckets cost anything."""
    others = [median(ways[way]) for way in WAYS[1:] if way in ways]
    if not others:
        return ""
    return (
        f" Without groups, a batch of `{WAYS[1]}` would take {format_duration(without_groups_s)}, "
        f"the cost of Spark and one pass through Python. With {GOAL_KEYS:,} keys, such a pass is "
        f"therefore at most {min(others) / without_groups_s:.1f} times as fast as Spark's best."
    )


@dataclass(frozen=True)
class _Cell:
    """A skewed table at a number of partitions: the prediction, and each measured repeat."""

    exponent: float
    partitions: int
    placed: bool
    predicted_rows: Sequence[int]
    rows: Sequence[Sequence[int]]
    predicted_s: float
    stages_s: Sequence[float]

    @property
    def error_ratio(self) -> float:
        return self.predicted_s / median(self.stages_s) - 1.0

    @property
    def repeat_errors(self) -> list[float]:
        """Each repeat as the prediction of the median of the others."""
        seen = self.stages_s
        others = [median([*seen[:at], *seen[at + 1 :]]) for at in range(len(seen)) if len(seen) > 1]
        return [one / other - 1.0 for one, other in zip(seen, others, strict=False)]


@dataclass(frozen=True)
class _Tables:
    """Costs of a task and of a row, fitted to tables of even keys, and the skewed cells."""

    fixed_s: float
    per_row_s: float
    cells: Sequence[_Cell]

    @classmethod
    def of(cls, lines: Sequence[dict[str, Any]]) -> _Tables | None:
        """The costs and cells, or None if no table of even keys has been measured."""
        pairs = [
            (line["rows_of_tasks"].get(task, 0), task_s)
            for line in lines if line["exponent"] == 0.0
            for task, task_s in line["tasks_s"].items()
        ]  # fmt: skip
        if not pairs:
            return None
        rows, times_s = np.array(pairs, dtype=float).T
        per_row_s, fixed_s = np.polyfit(rows, times_s, 1).tolist()
        same: dict[TableRun, list[dict[str, Any]]] = defaultdict(list)
        for line in lines:
            if line["exponent"]:
                same[TableRun(**{name: line[name] for name in _TABLE_NAMES})].append(line)
        cells = []
        for one, repeats in sorted(same.items(), key=lambda item: astuple(item[0])):
            predicted = one.rows_of_tasks()
            cells.append(
                _Cell(
                    exponent=one.exponent,
                    partitions=one.partitions,
                    placed=one.placed,
                    predicted_rows=predicted,
                    rows=[
                        [line["rows_of_tasks"].get(str(at), 0) for at in range(one.partitions)]
                        for line in repeats
                    ],
                    predicted_s=makespan_s([fixed_s + per_row_s * n for n in predicted], CORES),
                    stages_s=[line["stage_s"] for line in repeats],
                )
            )
        return cls(fixed_s, per_row_s, cells)

    def verdicts(self) -> Iterator[str]:
        """Verdicts on the rows of the tasks and on the duration of the stage."""
        if not self.cells:
            return
        runs = [(list(one.predicted_rows), list(rows)) for one in self.cells for rows in one.rows]
        exact = sum(predicted == rows for predicted, rows in runs)
        yield _verdict(
            "rows of every task exact, including the largest", f"{exact} of {len(runs)} runs", "",
            exact == len(runs),
        )  # fmt: skip
        errors = [abs(one.error_ratio) for one in self.cells]
        floor = [abs(error) for one in self.cells for error in one.repeat_errors]
        near = sum(error <= GOAL_ERROR_RATIO for error in errors)
        yield _verdict(
            f"duration of the stage within {GOAL_ERROR_RATIO:.0%}",
            f"{near} of {len(errors)} cells, median error {median(errors):.1%}",
            f"{sum(error <= GOAL_ERROR_RATIO for error in floor)} of {len(floor)}, median "
            f"{median(floor):.1%}" if floor else "",
            near == len(errors),
        )  # fmt: skip


def _placement(tables: _Tables | None) -> Iterator[str]:
    yield "## Placed keys"
    yield ""
    if tables is None:
        yield "The tables of even keys are not measured yet."
        return
    yield (
        "A table of 200,000 rows with 1,000 keys by Zipf's law, and a step of 20 us per row. The "
        "rows of a task are predicted from the placement and Spark's hashes, (K7), (K8) and (K12). "
        "The duration of the stage is predicted from these rows, with costs fitted to tables of "
        f"even keys ({format_duration(max(tables.fixed_s, 0.0))} per task and "
        f"{format_duration(tables.per_row_s)} per row) and tasks in order on two slots (K9)."
    )
    yield ""
    yield from headed(
        "| exponent | partitions | keys | largest task, rows | measured | stage | measured | "
        "error | repeats differ by |"
    )
    for one in tables.cells:
        measured = sorted({max(rows) for rows in one.rows})
        apart = max(one.stages_s) / min(one.stages_s) - 1.0
        yield (
            f"| {one.exponent:g} | {one.partitions} | {'placed' if one.placed else 'by hash'} | "
            f"{max(one.predicted_rows):,} | {' and '.join(f'{rows:,}' for rows in measured)} | "
            f"{format_duration(one.predicted_s)} | {format_duration(median(one.stages_s))} | "
            f"{one.error_ratio:+.1%} | {apart:.0%} |"
        )
    yield ""
    by_cell = {(one.exponent, one.partitions, one.placed): one for one in tables.cells}
    saved = [
        f"{exponent:g} on {partitions}: {median(one.stages_s) / median(placed.stages_s):.2f}"
        for (exponent, partitions, is_placed), one in by_cell.items()
        if not is_placed and (placed := by_cell.get((exponent, partitions, True))) is not None
    ]
    if saved:
        yield (
            "Duration of the stage by hash over that with placed keys, by exponent and partitions: "
            f"{', '.join(saved)}."
        )
        yield ""


def _left_out(cells: _Cells) -> Iterator[str]:
    yield "## What is left out"
    yield ""
    missing = [
        f"{way} at {keys:,} keys and {rows:,} rows ({len(ways.get(way, ()))} of {Amount().repeats})"
        for (keys, rows) in ((keys, rows) for keys in Amount().keys for rows in Amount().rows)
        for ways in (cells.get((keys, rows), {}),)
        for way in WAYS
        if len(ways.get(way, ())) < Amount().repeats
    ]
    yield (
        f"All runs used one machine with {CORES} cores. On {CORES} slots, placed keys save little, "
        "because the largest of many tasks seldom determines the duration of the stage; [ordered "
        "pipelines](ordered.md) simulates 16 slots. Keys were placed in tables only: "
        "`headway.ordered` processes a table as one batch, with the stage of a batch. Rows that "
        "wait for the watermark are not timed."
    )
    if missing:
        yield ""
        yield f"Repeats that are not measured yet: {'; '.join(missing)}."


def _verdict(said: str, figure: str, floor: str, met: bool) -> str:
    return f"| {said} | {figure} | {floor} | {'met' if met else 'missed'} |"
