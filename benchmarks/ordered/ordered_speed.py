"""Steps in order on Spark: buckets against groups by key, placed keys; measured, as a page.

python benchmarks/run.py ordered_speed --measure
python benchmarks/run.py ordered_speed --output docs/ordered-speed.md
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
from ordered_runs import CORES, SHORT, WAYS, Amount, makespan_s, measure
from result_lines import lines_of

from headway.units import format_duration

RESULTS = Path(__file__).parent / "results" / "runs.jsonl"
GOAL_RATIO, GOAL_ERROR_RATIO = 2.0, 0.05


def options(parser: argparse.ArgumentParser) -> None:
    """Where results are, and whether to measure them first."""
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--measure", action="store_true", help="on a quiet machine, hours")
    parser.add_argument("--short", action="store_true", help="the smallest setting, to try it")


def text(given: argparse.Namespace) -> str | None:
    """The page."""
    if given.measure:
        measure(given.results, SHORT if given.short else Amount())
        return None
    return "\n".join(_page(lines_of(given.results))) + "\n"


def _page(lines: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield "# Steps in order: speed"
    yield ""
    yield "Made by `make speed-ordered` from `benchmarks/ordered/results/runs.jsonl`."
    yield ""
    if not lines:
        yield "Not measured yet: `make ordered-runs` on a quiet machine, hours."
        return
    yield f"Spark on {CORES} cores, {CORES} shuffle partitions; medians of the repeats."
    yield ""
    yield from _ways([line for line in lines if "way" in line])
    yield from _placement([line for line in lines if "stage_s" in line])


def _ways(lines: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield "## Buckets against groups by key"
    yield ""
    yield (
        "Mean duration of a batch as fast as possible; the step keeps the last value and a count "
        "for each key. `pandas by key` is `applyInPandasWithState`, `rows by key` is "
        "`transformWithState` on RocksDB, both sorting inside the group. Sixty batches count, or "
        "what three minutes hold, at least three."
    )
    yield ""
    yield f"| keys | rows a batch | {' | '.join(WAYS)} | best of Spark's over buckets |"
    yield "| ---: | ---: | ---: | ---: | ---: | ---: |"
    cells: dict[tuple[int, int], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        cells[line["rows"], line["keys"]][line["way"]].append(fmean(line["batches_s"]))
    for (rows, keys), ways in sorted(cells.items()):
        found = {way: median(seconds) for way, seconds in ways.items()}
        shown = " | ".join(format_duration(found[w]) if w in found else "" for w in WAYS)
        others = [found[way] for way in WAYS[1:] if way in found]
        ratio = f"{min(others) / found[WAYS[0]]:.1f}" if others and WAYS[0] in found else ""
        yield f"| {keys:,} | {rows:,} | {shown} | {ratio} |"
    yield ""
    yield f"Expected: at least {GOAL_RATIO:g} at 1,000 keys."
    yield ""


def _placement(lines: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield "## Placed keys"
    yield ""
    yield (
        "A table with keys by Zipf's law and a step of 20 us a row. Rows of a task are predicted "
        "from the placement and Spark's hash; the time of the stage from these rows and a cost "
        "fitted to tables of even keys."
    )
    yield ""
    even = [line for line in lines if line["exponent"] == 0.0]
    if not even:
        yield "The tables of even keys are not measured yet."
        return
    pairs = [
        (line["rows_of_tasks"].get(task, 0), task_s)
        for line in even
        for task, task_s in line["tasks_s"].items()
    ]
    rows, seconds = np.array(pairs, dtype=float).T
    per_row_s, fixed_s = np.polyfit(rows, seconds, 1).tolist()
    yield (
        f"Fitted: {format_duration(max(fixed_s, 0.0))} a task and {format_duration(per_row_s)} a "
        "row."
    )
    yield ""
    yield (
        "| exponent | partitions | keys | largest task | predicted | stage | predicted | error |"
    )
    yield "| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: |"
    cells: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        if line["exponent"]:
            cells[line["exponent"], line["partitions"], line["placed"]].append(line)
    for (exponent, partitions, placed), same in sorted(cells.items()):
        measured = [same[0]["rows_of_tasks"].get(str(at), 0) for at in range(partitions)]
        predicted = same[0]["predicted_rows"]
        stage_s = median(line["stage_s"] for line in same)
        by_model_s = makespan_s([fixed_s + per_row_s * n for n in (predicted or measured)], CORES)
        yield (
            f"| {exponent:g} | {partitions} | {'placed' if placed else 'by hash'} | "
            f"{max(measured):,} | {f'{max(predicted):,}' if predicted else 'counted'} | "
            f"{format_duration(stage_s)} | {format_duration(by_model_s)} | "
            f"{by_model_s / stage_s - 1:+.0%} |"
        )
    yield ""
    yield f"Expected: rows exact, error of the stage at most {GOAL_ERROR_RATIO:.0%}."
