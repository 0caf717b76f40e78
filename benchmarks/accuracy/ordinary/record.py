"""What was measured of ordinary jobs so far, committed, so that blocks are not run again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from campaign.kept_runs import read_lines
from campaign.record import RESULTS, put_back_runs
from result_lines import keep, lines_of

from ordinary.legs import ADVISED_FILE
from ordinary.split import split_digest

RUNS, JUDGED = "ordinary-runs.jsonl.gz", "ordinary-jobs.jsonl.gz"
ADVISED_RUNS = "ordinary-advised.jsonl.gz"


def block_folder(folder: Path, block: int) -> Path:
    """Where the logs and results of a block are."""
    return folder / f"block-{block}"


def put_back(folder: Path, results: Path = RESULTS) -> int:
    """Into the work folder, what is committed and of the same split; how many runs that were."""
    committed = [row for row in read_lines(results / RUNS) if row.get("fit_set") == split_digest()]
    places = {(row["block"], row["group"]) for row in committed}
    num_runs = sum(
        put_back_runs(
            block_folder(folder, block) / group,
            [row for row in committed if (row["block"], row["group"]) == (block, group)],
        )
        for block, group in sorted(places)
    )
    if committed:
        _put_back_advice(folder, list(read_lines(results / ADVISED_RUNS)))
    return num_runs


def _put_back_advice(folder: Path, lines: list[dict[str, Any]]) -> None:
    """What was advised, for jobs of which nothing is advised yet."""
    places = {line["block"]: block_folder(folder, line["block"]) / ADVISED_FILE for line in lines}
    advised = {
        block: {line["workload"] for line in lines_of(place)} for block, place in places.items()
    }
    for line in lines:
        if line["workload"] not in advised[line["block"]]:
            keep(places[line["block"]], line)
