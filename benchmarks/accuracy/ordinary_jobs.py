"""Ordinary jobs on a real Spark: Nexmark queries and jobs of a shop, in blocks of an hour at most.

Each job runs once as production has it, then as `headway profile --advise` asks for, three times at
most, and at settings that are judged (`ordinary-split.json`). What is on record is not run again,
unless a job was begun on another machine: its runs are compared with each other.
Event logs and results stay in a work folder outside the repository; `judge_ordinary.py` predicts
the judged runs and commits condensed lines, of which `ordinary_page.py` makes the page.

    python benchmarks/run.py ordinary_jobs WORK_FOLDER --block 1
    python benchmarks/run.py ordinary_jobs WORK_FOLDER --count
    python benchmarks/run.py ordinary_jobs WORK_FOLDER --trial --job nexmark-q5

The job that merges into Delta Lake needs a Spark that Delta Lake supports, and so an interpreter of
its own (`--delta-python`); `make ordinary-jobs` sets it up.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from campaign.blocks import Window
from campaign.fixed_work import loop_s_now
from ordinary.jobs import DELTA, JOBS
from ordinary.legs import Leg, carry_out, legs_of
from ordinary.record import block_folder, put_back
from ordinary.split import NUM_BLOCKS
from ordinary.trial import RATE_PER_S, summaries, trials

_ROOT = Path(__file__).parents[2]
DELTA_PYTHON = _ROOT / ".venv-delta" / "bin" / "python"
DELTA_SPARK = "4.2"
"""The newest Spark that Delta Lake supports."""


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("folder", type=Path, help="work folder, outside the repository")
    parser.add_argument("--block", type=int, choices=range(1, NUM_BLOCKS + 1), help="default: all")
    parser.add_argument("--minutes", type=float, help="begin only runs that end within so long")
    parser.add_argument("--count", action="store_true", help="print what is left, and run nothing")
    parser.add_argument(
        "--trial", action="store_true", help="run each job for some batches only, and profile it"
    )
    parser.add_argument("--job", action="append", choices=list(JOBS), help="of a trial; all")
    parser.add_argument("--rate", type=float, default=RATE_PER_S, help="rows/s of a trial")
    parser.add_argument("--leg", help=argparse.SUPPRESS)
    parser.add_argument("--delta-python", type=Path, default=DELTA_PYTHON)


def run(given: argparse.Namespace) -> None:
    """Run the blocks, the trial, or say what is left."""
    given.folder.mkdir(parents=True, exist_ok=True)
    if given.trial:
        _try(given)
        return
    put_back(given.folder, loop_s=loop_s_now())
    numbers = range(1, NUM_BLOCKS + 1) if given.block is None else [given.block]
    if not given.count:
        window = Window(given.minutes)
        for leg in (leg for number in numbers for leg in legs_of(number)):
            if given.leg in (None, leg.name):
                _carry_out(leg, given, window)
    print("\n".join(count_lines(numbers, given.folder)))


def count_lines(numbers: range | list[int], folder: Path) -> list[str]:
    """Block by block: jobs, runs and minutes that are left."""
    lines = []
    for number in numbers:
        legs, place = list(legs_of(number)), block_folder(folder, number)
        num_runs = sum(len(leg.left(place)) for leg in legs)
        left_s = sum(leg.left_s(place) for leg in legs)
        jobs = ", ".join(dict.fromkeys(job for leg in legs for job in leg.jobs))
        lines.append(f"block {number} {num_runs:3} runs {left_s / 60:5.1f} min  {jobs}")
    return lines


def _carry_out(leg: Leg, given: argparse.Namespace, window: Window) -> None:
    if leg.session != DELTA or _has_delta():
        carry_out(leg, block_folder(given.folder, leg.block), window.has_room_for)
        return
    _with_delta(given, ["--block", str(leg.block), "--leg", leg.name])


def _try(given: argparse.Namespace) -> None:
    names = given.job or list(JOBS)
    in_this = [name for name in names if JOBS[name].session != DELTA or _has_delta()]
    for line in trials(in_this, given.folder, given.rate):
        print(line, flush=True)
    for line in summaries(in_this, given.folder):
        print(line)
    if len(in_this) < len(names):
        others = [word for name in names if name not in in_this for word in ("--job", name)]
        _with_delta(given, ["--trial", "--rate", str(given.rate), *others])


def _has_delta() -> bool:
    import pyspark

    return pyspark.__version__.startswith(DELTA_SPARK)


def _with_delta(given: argparse.Namespace, options: list[str]) -> None:
    """The same command by the interpreter that has the Spark of Delta Lake."""
    if not given.delta_python.exists():
        print(f"jobs with Delta Lake are left out: no {given.delta_python}", file=sys.stderr)
        return
    runner = Path(__file__).parents[1] / "run.py"
    command = [given.delta_python, runner, "ordinary_jobs", given.folder, *options]
    subprocess.run(list(map(str, command)), check=True)
