"""Backlogs that streaming queries read before they end: run time predicted from one run, measured.

python benchmarks/run.py backlogs --measure              # resumes if it was interrupted
python benchmarks/run.py backlogs --output docs/backlogs.md
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

from backlog_runs import JOBS, Line, Split, measure
from pages import headed, on_days
from result_lines import lines_of

from headway.domain import Z90, Deadline
from headway.domain.backlog import ending_job
from headway.formats.profile_file import load_profile
from headway.planner.kinds.batch_run_time import run_time_of
from headway.units import counted, format_duration

RESULTS = Path(__file__).parent / "results" / "backlogs.jsonl"
_ANY = Deadline(limit_s=3600.0)


def options(parser: argparse.ArgumentParser) -> None:
    """The results file, and whether to measure."""
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--measure", action="store_true", help="20 minutes on a quiet machine")


def text(given: argparse.Namespace) -> str | None:
    """The page."""
    if given.measure:
        measure(given.results)
        return None
    return "\n".join(_page(lines_of(given.results))) + "\n"


def _page(lines: Sequence[Line]) -> Iterator[str]:
    yield "# Backlogs that are read in time\n"
    if not lines:
        yield "Not measured yet: `make backlogs` on a quiet machine, 20 minutes."
        return
    yield (
        "Made by `make backlogs-page` from `benchmarks/accuracy/results/backlogs.jsonl`, which "
        f"`make backlogs` measured {on_days(line['day'] for line in lines)}.\n"
    )
    split = Split()
    first = split.profiled(next(iter(JOBS)))
    yield (
        "Two streaming queries with `Trigger.AvailableNow` read files of "
        f"{split.rows_per_file:,} rows, one in each batch, and end. Each run is an application of "
        "its own, with a JVM that has not run anything before. From one run of "
        f"{counted(first.num_files, 'file')} on {counted(first.cores, 'core')}, (P29) predicts the "
        "time from the start of the first batch to the end of the last for other numbers of files "
        "and cores. The sizes are in `benchmarks/accuracy/backlogs-split.json`, which was "
        "committed before the first run.\n"
    )
    profiles = {line["job"]: line["profile"] for line in lines if line["profile"]}
    judged = [line for line in lines if not line["profile"]]
    yield from headed("| query | cores | files | predicted | 90% interval | measured | error |")
    errors, inside = [], []
    for line in judged:
        predicted_s, spread = _predicted(profiles, line)
        low_s, high_s = (predicted_s * math.exp(sign * Z90 * spread) for sign in (-1, 1))
        measured_s = line["duration_s"]
        errors.append(predicted_s / measured_s - 1.0)
        inside.append(low_s <= measured_s <= high_s)
        cells = (
            line["job"], line["cores"], line["num_files"], format_duration(predicted_s),
            f"{format_duration(low_s)} to {format_duration(high_s)}", format_duration(measured_s),
            f"{errors[-1]:+.1%}",
        )  # fmt: skip
        yield f"| {' | '.join(map(str, cells))} |"
    floors = [
        abs(line["duration_s"] / again["duration_s"] - 1.0)
        for line in lines
        for again in judged
        if line["profile"] and _setting(line) == _setting(again)
    ]
    yield ""
    yield (
        f"Median error {median(map(abs, errors)):.1%}; {sum(inside)} of {len(inside)} inside their "
        f"90% intervals. A repeat of the profiled run differed from it by {median(floors):.1%} "
        f"(median over {counted(len(floors), 'query', 'queries')}).\n"
    )
    for job, does in JOBS.items():
        yield f"- {job}: {does}."
    yield ""
    yield (
        "The profiled run of the enrichment was measured again: the first wrote the tables in its "
        "JVM, which was warm then, and predictions for 20 files were 20% and 24% too fast. "
        "Left out: sources other than files, batches of another size than the profiled ones, and "
        "clusters."
    )


def _setting(line: Line) -> tuple[str, int, int]:
    return line["job"], line["cores"], line["num_files"]


def _predicted(profiles: Mapping[str, str], line: Line) -> tuple[float, float]:
    """Run time of a judged run, and the standard deviation of its logarithm."""
    with tempfile.NamedTemporaryFile("w", suffix=".profile.yaml", encoding="utf-8") as file:
        file.write(profiles[line["job"]])
        file.flush()
        profile = load_profile(file.name)
    time = run_time_of(ending_job(profile, _ANY, line["backlog_rows"]))
    return time.mean_s(line["cores"]), time.spread_ratio(line["cores"])
