"""Where the errors of a campaign come from: each part of a batch, predicted beside measured.

Reads the committed results of `judge_campaign.py`; `campaign_page.py` puts the same tables on the
page.

    python benchmarks/run.py error_parts
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from campaign.figures import grouped, is_judged, regimes
from campaign.schedule import FIT
from pages import headed

Row = dict[str, Any]

RESULTS = Path(__file__).parent / "results" / "campaign.jsonl.gz"
PARTS = (
    "checkpoint",
    "driver",
    "first: tasks",
    "first: makespan",
    "shuffled: tasks",
    "shuffled: makespan",
)


def with_parts(rows: Sequence[Row]) -> list[Row]:
    """The judged runs whose parts are on record."""
    return [row for row in rows if is_judged(row) and row.get("parts")]


def contributions(parts: Row) -> dict[str, float]:
    """What each part adds to the error of the batch duration, as a share of that duration.

    The span of a level is its tasks' time times a number of waves; its error is that of the tasks
    at the waves measured, and of the waves at the tasks predicted. All shares make the whole error.
    """
    duration_s = parts["duration"][1]
    added = dict.fromkeys(PARTS, 0.0)
    for name in ("checkpoint", "driver"):
        predicted, seen = parts[name]
        added[name] += (predicted - seen) / duration_s
    for level in parts["levels"]:
        place = "shuffled" if level["shuffled"] else "first"
        (predicted_task, seen_task), (predicted_span, seen_span) = level["tasks"], level["span"]
        waves = seen_span / seen_task
        added[f"{place}: tasks"] += (predicted_task - seen_task) * waves / duration_s
        added[f"{place}: makespan"] += (predicted_span - predicted_task * waves) / duration_s
    return added


def parts_tables(rows: Sequence[Row]) -> Iterator[str]:
    """What each part adds to the error, and what it is of a batch, by workload and regime."""
    judged = with_parts(rows)
    groups = {
        **grouped(judged, lambda row: str(row["workload"])),
        **regimes(judged),
        "all": judged,
    }
    yield (
        "What each part adds to the error of the batch duration, at the rows that the batches "
        "really had, in percent of the duration: signed median, then median absolute value. The "
        "last two columns are the remaining errors of the latency if the measured mean duration is "
        "used."
    )
    yield ""
    yield from headed(f"| | runs | {' | '.join(PARTS)} | duration | left: mean | left: p99 |")
    for name, of in groups.items():
        if of:
            yield f"| {name} | {len(of)} | {' | '.join(_error_cells(of))} |"
    yield ""
    yield (
        "Where the measured time of a batch goes, in percent (medians). Launch is the time of "
        "tasks outside their run time (scheduler delay, deserialization, result), commit that of "
        "the state; both are parts of their stages."
    )
    yield ""
    yield from headed(
        "| | checkpoint | driver | first stages | launch | shuffled stages | launch | commit |"
    )
    for name, of in groups.items():
        if of:
            yield f"| {name} | {' | '.join(_share_cells(of))} |"
    yield ""


def _error_cells(rows: Sequence[Row]) -> Iterator[str]:
    added = [contributions(row["parts"]) for row in rows]
    for part in PARTS:
        yield _signed([one[part] for one in added])
    yield _signed(
        [predicted / seen - 1 for predicted, seen in (row["parts"]["duration"] for row in rows)]
    )
    for figure in ("mean", "p99"):
        left = [
            given[figure] / row["truth"]["latency"][figure] - 1
            for row in rows
            if (given := row["parts"]["latency_given_duration"]) is not None
        ]
        yield f"{100 * statistics.median(map(abs, left)):.1f}" if left else "-"


def _signed(values: Sequence[float]) -> str:
    size = statistics.median(abs(value) for value in values)
    return f"{100 * statistics.median(values):+.1f}, {100 * size:.1f}"


def _share_cells(rows: Sequence[Row]) -> Iterator[str]:
    shares = [_shares(row["parts"]) for row in rows]
    for name in shares[0]:
        yield f"{100 * statistics.median(one[name] for one in shares):.0f}"


def _shares(parts: Row) -> Mapping[str, float]:
    """Shares of the measured duration."""
    duration_s = parts["duration"][1]
    shares = {name: parts[name][1] / duration_s for name in ("checkpoint", "driver")}
    last_waves = 0.0
    for shuffled, name in ((False, "first"), (True, "shuffled")):
        levels = [level for level in parts["levels"] if level["shuffled"] is shuffled]
        waves = [level["span"][1] / level["tasks"][1] for level in levels]
        shares[name] = sum(level["span"][1] for level in levels) / duration_s
        shares[f"{name} launch"] = (
            sum(many * level["launch"] for many, level in zip(waves, levels, strict=True))
            / duration_s
        )
        last_waves = waves[-1] if waves else last_waves
    shares["commit"] = last_waves * parts["state_commit"] / duration_s
    return shares


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("--results", type=Path, default=RESULTS, help="gzipped JSON lines")


def text(given: argparse.Namespace) -> str:
    """The tables."""
    rows = [json.loads(line) for line in gzip.decompress(given.results.read_bytes()).splitlines()]
    own = [row for row in rows if row["fitted"]["group"] == row["group"]]
    return "\n".join(parts_tables([row for row in own if row["fitted"]["role"] == FIT]))
