"""Predicts the judged runs of ordinary jobs, and commits them and the runs in condensed lines.

Reads the work folder of `ordinary_jobs.py`, block by block. `results/ordinary-jobs.jsonl.gz` has a
line for each judged run and profile, of which `ordinary_page.py` makes the page;
`results/ordinary-runs.jsonl.gz` has each run with what its batches showed, so that others can
judge without running, and that `ordinary_jobs.py` goes on in an empty work folder.

    python benchmarks/run.py judge_ordinary WORK_FOLDER
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from campaign.kept_runs import read_lines, write_lines
from campaign.record import RESULTS
from ordinary.judging import judged_block, read_groups
from ordinary.record import ADVISED_RUNS, JUDGED, RUNS, block_folder, put_back
from ordinary.split import NUM_BLOCKS
from pages import made_by
from result_lines import lines_of

Row = dict[str, Any]


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("folder", type=Path, help="work folder of ordinary_jobs")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder to write to")


def run(given: argparse.Namespace) -> None:
    """Write the lines of all blocks."""
    put_back(given.folder, given.results)
    judged: list[Row] = []
    runs: list[Row] = []
    advised: list[Row] = []
    for block in range(1, NUM_BLOCKS + 1):
        work = block_folder(given.folder, block)
        judged += judged_block(block, work)
        runs += runs_of_block(block, work)
        advised += [{"block": block, **line} for line in lines_of(work / "advised.jsonl")]
    write_lines(given.results / JUDGED, judged)
    write_lines(given.results / RUNS, runs)
    write_lines(given.results / ADVISED_RUNS, advised)
    machine = {"made": made_by("make ordinary-jobs", "PySpark")}
    (given.results / "ordinary-machine.json").write_text(json.dumps(machine, indent=2) + "\n")
    print(f"{given.results / JUDGED}: {len(judged)} lines of {len(runs)} runs")


def runs_of_block(block: int, folder: Path) -> Iterator[Row]:
    """Every run of a block with what its batches showed; what was on record stays as it was."""
    for measured in read_groups(block, folder).values():
        for row in measured.truths:
            yield {**row, **measured.record_of(row)}


def judged_lines(results: Path) -> list[Row]:
    """The lines that are committed; none before a block was run."""
    return list(read_lines(results / JUDGED))
