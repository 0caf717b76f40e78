"""The page about switches of Spark: their gains, predicted from the runs before, and measured.

python benchmarks/run.py switch_page --output docs/switches.md
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from campaign.kept_runs import read_lines
from judge_switches import PROFILES
from pages import headed, made_by, on_days
from result_lines import lines_of
from switch_runs import CORES, RESULTS
from switches.judging import LATENCY, WINDOWS, Gain, Judged, judged_pairs, noise_ratio
from switches.pairs import SIDES, Row, Split, measured_runs, read_split, split_digest

from headway.domain import JobProfile
from headway.formats.profile_file import load_profile
from headway.units import format_duration

_WHAT = {
    "changelog": "RocksDB with changelog checkpointing",
    "rocksdb": "RocksDB with changelog instead of the default store",
    "partitions": "2 shuffle partitions instead of 8",
    "keep-loaded": "state stays loaded instead of unloaded at each commit",
    "no-empty-batches": "no batches without rows",
    "coalescing-off": "no coalescing",
    "adaptive": "adaptive execution of a query without state",
    "no-checksums": "no checksums of checkpoint files",
    "file-manager": "the file manager that renames within a file system",
    "async-progress": "asynchronous progress tracking",
    "min-offsets": "a minimum of rows per batch",
}


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("--results", type=Path, default=RESULTS, help="what was measured")
    parser.add_argument("--profiles", type=Path, default=PROFILES, help="of the runs before")


def text(given: argparse.Namespace) -> str:
    """The page, from the committed results."""
    runs = [line for line in lines_of(given.results) if line["split"] == split_digest()]
    profiles = profiles_of(given.profiles)
    return "\n".join((*page_lines(read_split(), runs, profiles), ""))


def profiles_of(path: Path) -> dict[str, JobProfile]:
    """The profiles of the runs before, by pair."""
    profiles = {}
    with tempfile.TemporaryDirectory(prefix="headway-switches-") as scratch:
        file = Path(scratch) / "job.profile.yaml"
        for line in read_lines(path):
            if line["split"] == split_digest() and "profile" in line:
                file.write_text(line["profile"], encoding="utf-8")
                profiles[line["pair"]] = load_profile(file)
    return profiles


def page_lines(
    split: Split, runs: Sequence[Mapping[str, Any]], profiles: Mapping[str, JobProfile]
) -> Iterator[str]:
    """The whole page."""
    judged = list(judged_pairs(split, runs, profiles))
    within = [pair for pair in judged if pair.is_within(split.allowed_ratio)]
    complete = measured_runs(split, runs)
    yield "# Gains of switches: predicted and measured\n"
    yield (
        "A switch of Spark can move latency without a node more. Headway predicts what turning one "
        "gains, from the log of before alone, by (Y1)-(Y10) of [theory](theory.md); "
        "`headway plan --allow` lets a plan [turn it](planning.md#switches). Here each query ran "
        f"at one rate on `local[{CORES}]`, before and after one switch was turned, with everything "
        f"else equal, in one JVM: {split.warm_up_s:.0f} s of each side, as fast as possible, are "
        f"thrown away, and then each side ran twice for {split.measured_s:.0f} s after "
        f"{split.warm_s:.0f} s, in an order in which the age of the JVM does not matter. What is "
        "judged was fixed before the first run: the change of the mean latency of rows, or of "
        f"windows, predicted within {split.allowed_ratio:.0%} of the measured change or within the "
        "noise of repeats.\n"
    )
    yield (
        f"**{len(within)} of {len(judged)} pairs are as close as that** "
        f"({split.required} of {len(split.pairs)} were required), {_num_close(within, split)} of "
        f"them within {split.allowed_ratio:.0%}, the others within the noise alone. By repeats, "
        "a measured change is off by up to "
        f"{noise_ratio(split, complete, LATENCY):.1%} of a batch in the latency of rows, and by up "
        f"to {noise_ratio(split, complete, WINDOWS):.1%} of their latency for windows (95%).\n"
    )
    yield from headed(
        "| pair | turned | judged | before | predicted change | 90% interval | measured change "
        "| noise of repeats | within |"
    )
    for pair in judged:
        yield _line(pair, split.allowed_ratio)
    unknown = [pair for pair in judged if isinstance(pair.predicted, str)]
    if unknown:
        yield "\nWhere there is no prediction, the log cannot tell:\n"
        yield from (f"- {pair.pair.name}: {pair.predicted}." for pair in unknown)
    failed = [run for run in runs if run.get("failed") and run["pair"] not in complete]
    if failed:
        yield "\nRuns that failed:\n"
        yield from (f"- {run['run']}: {run['failed']}" for run in failed)
    yield from _phases(complete)
    days = on_days([run["day"] for run in runs]) if runs else "never"
    yield f"\nMeasured {days}. {made_by('make switch-page', 'pyspark')}"


def _num_close(judged: Sequence[Judged], split: Split) -> int:
    """Pairs whose predicted change is close to the measured one, whatever the noise."""
    return sum(pair.is_close(split.allowed_ratio) for pair in judged)


def _how_close(judged: Judged, allowed_ratio: float) -> str:
    if judged.is_close(allowed_ratio):
        return f"{allowed_ratio:.0%}"
    return "noise" if judged.is_within(allowed_ratio) else "no"


def _line(judged: Judged, allowed_ratio: float) -> str:
    pair, predicted = judged.pair, judged.predicted
    change, interval = "-", "-"
    if isinstance(predicted, Gain):
        change = _signed(predicted.expected_s)
        interval = f"{_signed(predicted.low_s)} to {_signed(predicted.high_s)}"
    cells = (
        pair.name,
        _WHAT[pair.switch],
        "rows" if pair.window_s is None else "windows",
        format_duration(judged.before_s),
        change,
        interval,
        _signed(judged.measured_s),
        format_duration(judged.noise_s),
        _how_close(judged, allowed_ratio),
    )
    return f"| {' | '.join(cells)} |"


def _phases(complete: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """The durations of batches before and after, for those who look for the cause."""
    yield "\n## Batches before and after\n"
    yield "Means over both runs of a side.\n"
    yield from headed(
        "| pair | batches | mean duration | stages (addBatch) | offsets (walCommit) "
        "| commits (commitOffsets) | empty batches |"
    )
    for name, rows in complete.items():
        sides = [[row for row in rows if row["side"] == side] for side in SIDES]
        facts = [[row["facts"] for row in side] for side in sides]
        cells = (
            name,
            _both(str(sum(fact["num_batches"] for fact in side)) for side in facts),
            _both(
                format_duration(mean(row["truth"]["duration"]["mean"] for row in side))
                for side in sides
            ),
            *(
                _both(
                    format_duration(mean(fact["phases_s"].get(phase, 0.0) for fact in side))
                    for side in facts
                )
                for phase in ("addBatch", "walCommit", "commitOffsets")
            ),
            _both(str(sum(fact["num_empty_batches"] for fact in side)) for side in facts),
        )
        yield f"| {' | '.join(cells)} |"


def _both(cells: Iterator[str]) -> str:
    return " -> ".join(cells)


def _signed(seconds: float) -> str:
    return f"{'-' if seconds < 0 else '+'}{format_duration(abs(seconds))}"
