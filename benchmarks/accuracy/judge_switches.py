"""Profiles the runs before a switch was turned from their event logs, for the page about them.

python benchmarks/run.py judge_switches build/switches
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from campaign.kept_runs import write_lines
from read_logs import LogsOfRuns, read_logs_of_runs
from result_lines import lines_of
from switch_runs import RESULTS
from switches.judging import as_logged
from switches.pairs import BEFORE, Pair, Row, measured_runs, read_split, split_digest

from headway.errors import HeadwayError
from headway.formats.profile_file import dump_profile

PROFILES = RESULTS.with_name("switch-profiles.jsonl.gz")


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("folder", type=Path, help="folder of the runs, with their event logs")
    parser.add_argument("--results", type=Path, default=RESULTS, help="what was measured")
    parser.add_argument("--profiles", type=Path, default=PROFILES, help="file that is written")


def run(given: argparse.Namespace) -> None:
    """Write a profile for each pair, of both runs before."""
    split = read_split()
    runs = measured_runs(split, lines_of(given.results))
    log = read_logs_of_runs(given.folder / "log", print)
    pairs = [pair for pair in split.pairs if pair.name in runs]
    num_lines = write_lines(
        given.profiles, (_line(log, pair, _queries_before(runs[pair.name])) for pair in pairs)
    )
    print(f"{given.profiles}: {num_lines} profiles")


def _queries_before(rows: Sequence[Row]) -> list[str]:
    return [row["query"] for row in rows if row["side"] == BEFORE]


def _line(log: LogsOfRuns, pair: Pair, queries: Sequence[str]) -> dict[str, Any]:
    line = {"pair": pair.name, "split": split_digest(), "queries": list(queries)}
    try:
        profile = as_logged(log.profile(queries), pair.before.conf)
    except HeadwayError as error:
        print(f"{pair.name}: {error}")
        return {**line, "failed": str(error)}
    return {**line, "profile": dump_profile(profile)}
