"""Whole-process times of the commands that must answer fast, as a Markdown page.

Every command is run in turn with the others, round after round, so that a slow moment of the
machine hits all of them; medians are quoted.

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
COMMANDS = {
    "an empty Python": [sys.executable, "-c", "pass"],
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
GOALS_S = {
    "headway --help": 0.05,
    "headway validate SPEC": 0.25,
    "headway check SPEC --baseline LOCK": 0.4,
    "headway plan PROFILE --rate 24k/s --target 'p99 <= 2s'": 0.35,
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
            for name, command in COMMANDS.items():
                times[name].append(took(command, environment))
    made = (
        f"Whole processes, from start to exit: all commands in turn, {rounds} rounds after one "
        f"that is not counted. {made_by('make speed')}"
    )
    lines = [
        "# How fast the commands answer",
        "",
        made,
        "",
        *headed("| command | goal | minimum | median | maximum | processor time, median |"),
    ]
    lines += [_row(name, values) for name, values in times.items()]
    return "\n".join([*lines, ""])


def _row(name: str, values: Sequence[Took]) -> str:
    walls_s = [each.wall_s for each in values]
    goal = f"{GOALS_S[name]:.2f} s" if name in GOALS_S else ""
    times_s = (min(walls_s), statistics.median(walls_s), max(walls_s))
    processor_s = statistics.median(each.processor_s for each in values)
    cells = [f"`{name}`", goal, *(f"{time_s:.3f} s" for time_s in (*times_s, processor_s))]
    return f"| {' | '.join(cells)} |"


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("--rounds", type=int, default=ROUNDS)


def text(given: argparse.Namespace) -> str:
    """The page."""
    return page(given.rounds)
