"""Runs real streaming queries over workloads and settings, and measures their latency.

One group of runs per JVM; a campaign that was cut goes on where it stopped. Results (truth) and
event logs stay in a work folder outside the repository; `judge_campaign.py` makes predictions.

    python benchmarks/run.py run_campaign WORK_FOLDER [--group NAME ...]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from campaign.running import run_group
from campaign.schedule import GROUPS


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("folder", type=Path, help="work folder, outside the repository")
    parser.add_argument("--group", action="append", choices=list(GROUPS), help="default: all")
    parser.add_argument("--workload", action="append", default=[], help="default: all of a group")


def run(given: argparse.Namespace) -> None:
    """Run the groups."""
    for name in given.group or list(GROUPS):
        run_group(GROUPS[name], given.folder / name, given.workload)
