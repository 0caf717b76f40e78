"""Rows lost and doubled by changes of running queries, from the finished cells of the matrix.

python benchmarks/run.py exactness_page --output docs/exactness.md
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from exactness import MAY_DOUBLE, RESULTS, cells
from pages import headed, made_by
from result_lines import lines_of

Line = dict[str, Any]
_SINKS = {
    "file": "Spark's file sink",
    "idempotent": "`foreachBatch`, a folder for each batch",
    "stateful": "counts per key, `foreachBatch`",
    "plain": "`foreachBatch` that appends",
    "kafka": "Kafka's sink, a real broker",
}
_KINDS = {
    "trigger+limit+partitions": "restart: trigger interval, rate limit or partitions",
    "executors": "executors up or down",
}


def options(parser: argparse.ArgumentParser) -> None:
    """Where the results are."""
    parser.add_argument("--results", type=Path, default=RESULTS)


def text(given: argparse.Namespace) -> str:
    """The page."""
    return "\n".join(_page(lines_of(given.results))) + "\n"


def _page(lines: Sequence[Line]) -> Iterator[str]:
    yield "# Rows through a thousand changes\n"
    yield made_by("make exactness-page") + "\n"
    yield (
        "Queries of numbered rows are changed again and again by the state machine of the tuner, "
        "each change after at least one batch. Drivers are killed with `kill -9`, the JVM first, "
        "at a point of the n-th change or batch, started again, and continue the change. At the "
        "end the numbers in each sink are counted up to the highest: one that is missing is lost, "
        "one that is there twice is doubled. Counts per key must add up to the rows that were "
        "read. `make exactness` runs the matrix on a real Spark and goes on where it stopped.\n"
    )
    planned = [one.name for one in cells()]
    done = [one for one in lines if one["cell"] in planned]
    changes = sum(one["num_changes"] for one in done)
    kills = sum(one["num_killed"] for one in done)
    yield (
        f"{len(done)} of {len(planned)} cells are finished: {changes:,} changes, {kills} kills. "
        "A change that finds no gap between batches is given up and not counted.\n"
    )
    if not done:
        return
    yield "## By sink\n"
    yield from headed("| sink | rows | lost | doubled | expected |")
    for sink, name in _SINKS.items():
        found = [one["rows"][sink] for one in done if sink in one["rows"]]
        if found:
            rows, lost, doubled = (
                sum(one[key] for one in found) for key in ("rows", "lost", "doubled")
            )
            may = "lost 0" if sink in MAY_DOUBLE else "lost 0, doubled 0"
            kept = not lost and (sink in MAY_DOUBLE or not doubled)
            verdict = "met" if kept else "missed"
            yield f"| {name} | {rows:,} | {lost} | {doubled:,} | {may}: {verdict} |"
    yield (
        "\nSpark itself runs a batch again that was interrupted. A sink that appends, and Kafka's, "
        "then have its rows twice. The tuner stops queries between batches, so that its own "
        "changes double nothing there; kills within a batch do. It warns of such sinks before it "
        "acts.\n"
    )
    yield "## By change and kill\n"
    yield from headed("| change | killed at | changes | given up | kills | lost | doubled |")
    for kinds, kind in _KINDS.items():
        of_kind = [one for one in done if "+".join(one["kinds"]) == kinds]
        for point in dict.fromkeys(one["point"] for one in of_kind):
            of = [one for one in of_kind if one["point"] == point]
            yield f"| {kind} | {point or 'no kill'} | {' | '.join(_sums(of))} |"


def _sums(of: Sequence[Line]) -> list[str]:
    """Changes, changes given up, kills, rows lost, and which sinks have rows twice."""
    sums = [sum(one[key] for one in of) for key in ("num_changes", "num_given_up", "num_killed")]
    lost = sum(counted["lost"] for one in of for counted in one["rows"].values())
    doubled = {
        sink: sum(one["rows"][sink]["doubled"] for one in of if sink in one["rows"])
        for sink in _SINKS
    }
    said = ", ".join(f"{sink} {number:,}" for sink, number in doubled.items() if number) or "none"
    return [*map(str, [*sums, lost]), said]
