"""Commits what a campaign has measured so far: the runs and plans of whole blocks.

A line of `results/kept-runs.jsonl.gz` holds a run with what each of its batches showed, so that
others can fit without running, and `run_campaign` goes on with an empty work folder. Blocks that
are not whole stay in the work folder, and so do runs of another fit set.

    python benchmarks/run.py keep_campaign WORK_FOLDER
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from campaign.blocks import BLOCKS, repeats
from campaign.kept_runs import write_lines
from campaign.reading import MeasuredGroup
from campaign.record import PLANS, RESULTS, RUNS, put_back
from campaign.workloads import WORKLOADS, Stream
from judge_campaign import read_groups
from planned_runs import left_s as plans_left_s
from planned_runs import plan_rows
from result_lines import lines_of
from run_campaign import SPEED_FILE

Row = dict[str, Any]


def whole_workloads(folder: Path) -> set[tuple[str, str]]:
    """Pairs of group and workload of the blocks of which nothing is left to be run."""
    which = repeats(further=False)
    return {
        (group.name, workload)
        for block in BLOCKS
        if not any(leg.left(folder) for leg in block.legs(which))
        and not (block.has_plans and plans_left_s(folder, block.workloads))
        for group in block.groups
        for workload in block.workloads
    }


def kept_rows(groups: Mapping[str, MeasuredGroup], whole: set[tuple[str, str]]) -> Iterator[Row]:
    """Every run of these workloads; what was on record before stays as it was."""
    for name, measured in groups.items():
        for row in measured.truths:
            if (name, row["workload"]) in whole:
                is_even = WORKLOADS[row["workload"]].arriving(Stream(rate_per_s=1.0)).is_even
                yield {**row, **measured.record_of(row, is_even=is_even)}


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("folder", type=Path, help="work folder of run_campaign")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder to write to")


def run(given: argparse.Namespace) -> None:
    """Write the lines."""
    put_back(given.folder, given.results)
    whole = whole_workloads(given.folder)
    groups = read_groups(given.folder)
    num_runs = write_lines(given.results / RUNS, kept_rows(groups, whole))
    names = {workload for _, workload in whole}
    plans = [row for row in plan_rows(given.folder) if row["workload"] in names]
    num_plans = write_lines(given.results / PLANS, plans)
    if lines_of(given.folder / SPEED_FILE):
        speed = (given.folder / SPEED_FILE).read_bytes()
        (given.results / SPEED_FILE).write_bytes(speed)
    print(f"{num_runs} runs and {num_plans} plans of {len(whole)} workloads")
