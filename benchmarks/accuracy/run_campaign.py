"""Runs real streaming queries over workloads and settings, and measures their latency.

One group of runs per JVM; a campaign that was cut goes on where it stopped. Results (truth) and
event logs stay in a work folder outside the repository; `judge_campaign.py` makes predictions.

    python benchmarks/accuracy/run_campaign.py WORK_FOLDER [--group NAME ...]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from campaign.play import play_group
from campaign.schedule import GROUPS

from headway.errors import HeadwayError


def main() -> None:
    """Play the groups."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="work folder, outside the repository")
    parser.add_argument("--group", action="append", choices=list(GROUPS), help="default: all")
    parser.add_argument("--workload", action="append", default=[], help="default: all of a group")
    arguments = parser.parse_args()
    for name in arguments.group or list(GROUPS):
        play_group(GROUPS[name], arguments.folder / name, arguments.workload)


if __name__ == "__main__":
    try:
        main()
    except HeadwayError as error:
        sys.exit(f"run_campaign: {error}")
