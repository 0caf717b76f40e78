"""Whole-process times of the commands that must answer fast, as a Markdown page.

Every command is run in turn with the others, round after round, so that a slow moment of the
machine hits all of them; medians are quoted. Python with numpy, to which the others are compared,
is started before each of them: of a round, its median counts.

    python benchmarks/run.py commands --output docs/speed.md
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pages import headed, made_by

PROFILE = Path(__file__).parents[2] / "examples" / "word-count.profile.yaml"
SPEC = PROFILE.parents[1] / "configs" / "orders.yaml"
LOCK = SPEC.with_name("headway.lock")
ROUNDS = 15
WITH_NUMPY = "Python with numpy"
COMMANDS = {
    "an empty Python": [sys.executable, "-c", "pass"],
    WITH_NUMPY: [sys.executable, "-c", "import numpy"],
    "headway --help": [sys.executable, "-m", "headway", "--help"],
    "headway validate SPEC": [sys.executable, "-m", "headway", "validate", str(SPEC)],
    "headway check SPEC --baseline LOCK": [
        sys.executable, "-m", "headway", "check", str(SPEC), "--baseline", str(LOCK),
    ],
    "headway predict PROFILE --rate 10k/s": [
        sys.executable, "-m", "headway", "predict", str(PROFILE), "--rate", "10k/s",
    ],
    "headway plan PROFILE --rate 24k/s --target 'p99 <= 2s'": [
        sys.executable, "-m", "headway", "plan", str(PROFILE),
        "--rate", "24k/s", "--target", "p99 <= 2s",
    ],
    "headway plan, infeasible (searches the lowest possible)": [
        sys.executable, "-m", "headway", "plan", str(PROFILE),
        "--rate", "24k/s", "--target", "p99 <= 100ms",
    ],
}  # fmt: skip
# Of the time in which Python starts with numpy.
GOAL_RATIOS = {
    "headway --help": 0.5,
    "headway predict PROFILE --rate 10k/s": 2.0,
    "headway plan PROFILE --rate 24k/s --target 'p99 <= 2s'": 3.5,
}


@dataclass(frozen=True, slots=True)
class Took:
    """Wall time and processor time of a whole process [s]."""

    wall_s: float
    processor_s: float


def took(command: Sequence[str], environment: dict[str, str]) -> Took:
    """Run a whole process."""
    before, started_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        command,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    wall_s, after = time.perf_counter() - started_s, resource.getrusage(resource.RUSAGE_CHILDREN)
    used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Took(wall_s, used_s)


def middle(runs: Sequence[Took]) -> Took:
    """The median of several runs of one command."""
    return Took(
        statistics.median(one_run.wall_s for one_run in runs),
        statistics.median(one_run.processor_s for one_run in runs),
    )


def page(rounds: int) -> str:
    """Run all commands and report their times."""
    times: dict[str, list[Took]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        # As installed: compiled bytecode is kept, whatever this shell asks for.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for command in COMMANDS.values():
            took(command, environment)
        for number in range(rounds):
            print(f"round {number + 1} of {rounds}", file=sys.stderr)
            starts = []
            for name, command in COMMANDS.items():
                if name != WITH_NUMPY:
                    starts.append(took(COMMANDS[WITH_NUMPY], environment))
                    times[name].append(took(command, environment))
            times[WITH_NUMPY].append(middle(starts))
    made = (
        f"Whole processes, from start to exit: all commands in turn, {rounds} rounds after one "
        "that is not counted. Python with numpy is started before each of the others; its time in "
        "a round is the median of these. Over numpy is the median of the ratios to that time in "
        f"the same round. {made_by('make speed', 'numpy')}"
    )
    columns = (
        "| command | minimum | median | maximum | processor time, median | over numpy | goal |"
    )
    lines = ["# How fast the commands answer", "", made, "", *headed(columns)]
    lines += [_row(name, of_command, times[WITH_NUMPY]) for name, of_command in times.items()]
    return "\n".join([*lines, ""])


def _row(name: str, of_command: Sequence[Took], of_numpy: Sequence[Took]) -> str:
    walls_s = [one_run.wall_s for one_run in of_command]
    times_s = (min(walls_s), statistics.median(walls_s), max(walls_s))
    processor_s = statistics.median(one_run.processor_s for one_run in of_command)
    ratio = statistics.median(
        one_run.wall_s / start.wall_s for one_run, start in zip(of_command, of_numpy, strict=True)
    )
    goal = f"{GOAL_RATIOS[name]:g}" if name in GOAL_RATIOS else ""
    cells = [f"`{name}`", *(f"{time_s:.3f} s" for time_s in (*times_s, processor_s))]
    return f"| {' | '.join([*cells, f'{ratio:.2f}', goal])} |"


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("--rounds", type=int, default=ROUNDS)


def text(given: argparse.Namespace) -> str:
    """The page."""
    return page(given.rounds)
