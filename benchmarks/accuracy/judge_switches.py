"""Profiles the runs before a switch was turned from their event logs, for the page about them.

python benchmarks/run.py judge_switches build/switches
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from campaign.kept_runs import write_lines
from read_logs import LogsOfRuns, read_logs_of_runs
from result_lines import lines_of
from switch_runs import RESULTS
from switches.judging import as_logged
from switches.pairs import BEFORE, Pair, read_split, split_digest

from headway.errors import HeadwayError
from headway.formats.profile_file import dump_profile

PROFILES = RESULTS.with_name("switch-profiles.jsonl.gz")


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("folder", type=Path, help="folder of the runs, with their event logs")
    parser.add_argument("--results", type=Path, default=RESULTS, help="what was measured")
    parser.add_argument("--profiles", type=Path, default=PROFILES, help="file that is written")


def run(given: argparse.Namespace) -> None:
    """Write the profiles of the runs before, each from its own log alone."""
    runs = {
        line["pair"]: line
        for line in lines_of(given.results)
        if line["split"] == split_digest() and (line["side"], line["repeat"]) == (BEFORE, 1)
    }
    log = read_logs_of_runs(given.folder / "log", print)
    num_lines = write_lines(given.profiles, _lines(log, runs))
    print(f"{given.profiles}: {num_lines} profiles")


def _lines(log: LogsOfRuns, runs: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for pair in read_split().pairs:
        if pair.name in runs:
            yield _line(log, pair, runs[pair.name]["query"])


def _line(log: LogsOfRuns, pair: Pair, query: str) -> dict[str, Any]:
    line = {"pair": pair.name, "split": split_digest(), "query": query}
    try:
        profile = as_logged(log.profile([query]), pair.before.conf)
    except HeadwayError as error:
        print(f"{pair.name}: {error}")
        return {**line, "failed": str(error)}
    return {**line, "profile": dump_profile(profile)}
