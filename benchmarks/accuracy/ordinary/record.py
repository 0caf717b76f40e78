"""What was measured of ordinary jobs so far, committed, so that jobs are not run again.

Runs of one job are compared with each other, so all of them have to be of one machine: of a job
that was begun on another machine nothing is put back unless all of it was measured there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from campaign.fixed_work import is_same_machine
from campaign.kept_runs import read_lines
from campaign.record import RESULTS, put_back_runs
from result_lines import keep, lines_of

from ordinary.legs import ADVISED_FILE
from ordinary.split import judged_runs, production_run, split_digest

Row = dict[str, Any]
RUNS, JUDGED = "ordinary-runs.jsonl.gz", "ordinary-jobs.jsonl.gz"
ADVISED_RUNS = "ordinary-advised.jsonl.gz"


def block_folder(folder: Path, block: int) -> Path:
    """Where the logs and results of a block are."""
    return folder / f"block-{block}"


def put_back(folder: Path, results: Path = RESULTS, *, loop_s: float | None = None) -> int:
    """Into the work folder, what is committed and of the same split; how many runs that were.

    ``loop_s`` is how long the loop of `fixed_work` takes on this machine [s]: with it, nothing of a
    job that was begun on another machine and is not whole.
    """
    committed = [row for row in read_lines(results / RUNS) if row.get("fit_set") == split_digest()]
    advice = list(read_lines(results / ADVISED_RUNS))
    num_runs = 0
    for block, job in dict.fromkeys((row["block"], row["workload"]) for row in committed):
        rows = [row for row in committed if (row["block"], row["workload"]) == (block, job)]
        place = block_folder(folder, block)
        if not _is_comparable(rows, place, None if _is_whole(rows) else loop_s):
            continue
        for group in dict.fromkeys(row["group"] for row in rows):
            num_runs += put_back_runs(place / group, [row for row in rows if row["group"] == group])
        if job not in {line["workload"] for line in lines_of(place / ADVISED_FILE)}:
            for line in advice:
                if (line["block"], line["workload"]) == (block, job):
                    keep(place / ADVISED_FILE, line)
    return num_runs


def _is_whole(rows: Sequence[Row]) -> bool:
    """Whether all runs of a job that the split names are among these."""
    block, job = rows[0]["block"], rows[0]["workload"]
    needed = {run.name for run in (production_run(block, job), *judged_runs(block, job))}
    return needed <= {row["name"] for row in rows}


def _is_comparable(rows: Sequence[Row], place: Path, loop_s: float | None) -> bool:
    """Whether runs of a job are of the same machine as those in the folder and the next ones."""
    rows_there = [
        row
        for truths in place.glob("*/truth.jsonl")
        for row in lines_of(truths)
        if row["workload"] == rows[0]["workload"]
    ]
    loops_there_s = [*_loops_s(rows_there), *([] if loop_s is None else [loop_s])]
    return all(
        is_same_machine(loop_of_row_s, loop_there_s)
        for loop_of_row_s in _loops_s(rows)
        for loop_there_s in loops_there_s
    )


def _loops_s(rows: Iterable[Row]) -> list[float]:
    return [row["fixed_work"]["interpreter_s"] for row in rows if row.get("fixed_work")]
