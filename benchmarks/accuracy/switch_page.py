"""The page about switches of Spark: their gains, predicted from the run before, and measured.

python benchmarks/run.py switch_page --output docs/switches.md
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from campaign.kept_runs import read_lines
from judge_switches import PROFILES
from pages import headed, made_by, on_days, yes_or_no
from result_lines import lines_of
from switch_runs import CORES, RESULTS
from switches.judging import LATENCY, WINDOWS, Gain, Judged, judged_pairs, noise_ratio
from switches.pairs import Split, read_split, split_digest

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

_DISTURBING_CORES = 0.15


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
    by_name = {run["run"]: run for run in runs if run.get("truth")}
    yield "# Gains of switches: predicted and measured\n"
    yield (
        "A switch of Spark can move latency without a node more. Headway predicts what turning one "
        "gains, from the log of the run before alone, by (Y1)-(Y10) of [theory](theory.md); "
        "`headway plan --allow` lets a plan [turn it](planning.md#switches). Here each query ran "
        f"at one rate on `local[{CORES}]` for {split.measured_s:.0f} s after {split.warm_s:.0f} s, "
        "before and after one switch was turned, with everything else equal. What is judged was "
        "fixed before the first run: the change of the mean latency of rows, or of windows, "
        f"predicted within {split.allowed_ratio:.0%} of the measured change or within the noise of "
        "repeats.\n"
    )
    yield (
        f"**{len(within)} of {len(judged)} pairs are as close as that** "
        f"({split.required} of {len(split.pairs)} were required), {_num_close(within, split)} of "
        f"them within {split.allowed_ratio:.0%}, the others within the noise alone. Two runs of "
        f"one setting differ by up to {noise_ratio(split, by_name, LATENCY):.0%} of a batch in the "
        f"latency of rows, and by up to {noise_ratio(split, by_name, WINDOWS):.0%} in that of "
        "windows (95% of repeats).\n"
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
    failed = [run for run in runs if run.get("failed")]
    if failed:
        yield "\nRuns that failed:\n"
        yield from (f"- {run['run']}: {run['failed']}" for run in failed)
    disturbed = [run for run in runs if run.get("cores_of_others", 0.0) > _DISTURBING_CORES]
    if disturbed:
        yield "\nOther processes took processor time beside these runs:\n"
        yield from (f"- {run['run']}: {run['cores_of_others']:.2f} cores" for run in disturbed)
    yield from _phases(split, by_name)
    days = on_days([run["day"] for run in runs]) if runs else "never"
    yield f"\nMeasured {days}. {made_by('make switch-page', 'pyspark')}"


def _num_close(judged: Sequence[Judged], split: Split) -> int:
    """Pairs whose predicted change is close to the measured one, whatever the noise."""
    return sum(
        abs(pair.predicted.expected_s - pair.measured_s)
        <= split.allowed_ratio * abs(pair.measured_s)
        for pair in judged
        if isinstance(pair.predicted, Gain)
    )


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
        yes_or_no(judged.is_within(allowed_ratio)),
    )
    return f"| {' | '.join(cells)} |"


def _phases(split: Split, by_name: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """The durations of batches before and after, for those who look for the cause."""
    yield "\n## Batches before and after\n"
    yield from headed(
        "| pair | batches | mean duration | stages (addBatch) | offsets (walCommit) "
        "| commits (commitOffsets) | empty batches |"
    )
    for pair in split.pairs:
        sides = [by_name.get(f"{pair.name}/{side}/1") for side in ("before", "after")]
        if not all(sides):
            continue
        facts = [side["facts"] for side in sides if side]
        phases = [fact["phases_s"] for fact in facts]
        cells = (
            pair.name,
            _both(str(fact["num_batches"]) for fact in facts),
            _both(format_duration(side["truth"]["duration"]["mean"]) for side in sides if side),
            *(
                _both(format_duration(phase.get(name, 0.0)) for phase in phases)
                for name in ("addBatch", "walCommit", "commitOffsets")
            ),
            _both(str(fact["num_empty_batches"]) for fact in facts),
        )
        yield f"| {' | '.join(cells)} |"


def _both(cells: Iterator[str]) -> str:
    return " -> ".join(cells)


def _signed(seconds: float) -> str:
    return f"{'-' if seconds < 0 else '+'}{format_duration(abs(seconds))}"
