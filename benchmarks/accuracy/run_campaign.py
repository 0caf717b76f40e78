"""Runs real streaming queries over workloads and settings, and measures their latency.

The campaign is cut into blocks (`campaign/blocks.py`), each whole by itself. Within a window of
quiet time only blocks are begun that end in it; what was cut goes on where it stopped, run by run.
Results (truth) and event logs stay in a work folder outside the repository; `keep_campaign.py`
commits them for whole blocks, which are then not run again where the folder is gone, and
`judge_campaign.py` makes predictions of them.

    python benchmarks/run.py run_campaign WORK_FOLDER --count
    python benchmarks/run.py run_campaign WORK_FOLDER --minutes 110
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from campaign.blocks import BLOCKS, SPEED, SPEED_S, Block, Window, repeats
from campaign.record import RESULTS, put_back
from campaign.running import run_group
from machine_speed import write_speed
from planned_runs import left_s as plans_left_s
from planned_runs import run_plans
from result_lines import lines_of

SPEED_FILE = "machine-speed.jsonl"


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("folder", type=Path, help="work folder, outside the repository")
    parser.add_argument(
        "--block", action="append", choices=[block.name for block in BLOCKS], help="default: all"
    )
    parser.add_argument("--workload", action="append", help="default: all of a block")
    parser.add_argument("--minutes", type=float, help="begin only what ends within so long")
    parser.add_argument(
        "--cut", action="store_true", help="begin blocks that do not end in it, too: runs that do"
    )
    parser.add_argument(
        "--further", action="store_true", help="one repeat more of the judged settings"
    )
    parser.add_argument("--count", action="store_true", help="print what is left, and run nothing")
    parser.add_argument(
        "--results", type=Path, default=RESULTS, help="folder of what is on record already"
    )


def run(given: argparse.Namespace) -> None:
    """Run the blocks that there is time for, or say how long each takes."""
    given.folder.mkdir(parents=True, exist_ok=True)
    put_back(given.folder, given.results)
    chosen = [
        block.of(given.workload or block.workloads)
        for block in BLOCKS
        if block.name in (given.block or [block.name])
    ]
    which = repeats(further=given.further)
    if given.count:
        print("\n".join(count_lines(chosen, which, given.folder)))
        return
    window = Window(given.minutes)
    for block in chosen:
        needed_s = left_s(block, which, given.folder)
        if needed_s and (given.cut or window.has_room_for(needed_s)):
            run_block(block, which, given.folder, window)
    print("\n".join(count_lines(chosen, which, given.folder)), file=sys.stderr)


def run_block(block: Block, which: Sequence[int], folder: Path, window: Window) -> None:
    """Its repeats, then its plans; as much of them as there is time for."""
    for leg in block.legs(which):
        runs = leg.left(folder)
        if runs and window.has_room_for(leg.left_s(folder) - sum(one.lasts_s for one in runs[1:])):
            run_group(leg.group, folder / leg.group.name, runs, window.has_room_for)
    if block.has_plans and not any(leg.left(folder) for leg in block.legs(which)):
        run_plans(folder, block.workloads, window.has_room_for)
    if block.name == SPEED:
        write_speed(folder / SPEED_FILE)


def left_s(block: Block, which: Sequence[int], folder: Path) -> float:
    """What a block still takes [s]."""
    if block.name == SPEED:
        return 0.0 if (folder / SPEED_FILE).exists() else SPEED_S
    of_runs_s = sum(leg.left_s(folder) for leg in block.legs(which))
    return of_runs_s + (plans_left_s(folder, block.workloads) if block.has_plans else 0.0)


def count_lines(blocks: Sequence[Block], which: Sequence[int], folder: Path) -> list[str]:
    """Block by block: workloads, runs and minutes that are left."""
    lines, total_s, total_runs = [], 0.0, 0
    for block in blocks:
        runs = sum(len(leg.left(folder)) for leg in block.legs(which))
        needed_s = left_s(block, which, folder)
        lines.append(
            f"{block.name:8} {runs:4} runs {needed_s / 60:6.1f} min  {', '.join(block.workloads)}"
        )
        total_s, total_runs = total_s + needed_s, total_runs + runs
    planned = len(lines_of(folder / "planned" / "truth.jsonl"))
    return [
        *lines,
        f"{'left':8} {total_runs:4} runs {total_s / 60:6.1f} min  plans on record: {planned}",
    ]
