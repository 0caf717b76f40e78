"""Whole-process times of the commands that must answer fast, as a Markdown page.

Every command is run in turn with the others, round after round, so that a slow moment of the
machine hits all of them; medians are quoted.

    python benchmarks/speed/commands.py --output docs/speed.md
"""

from __future__ import annotations

import argparse
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from headway.version import __version__

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
    "headway plan, not feasible (floor sought)": [
        sys.executable, "-m", "headway", "plan", str(PROFILE),
        "--rate", "24k/s", "--target", "p99 <= 100ms",
    ],
}  # fmt: skip


def elapsed_s(command: Sequence[str]) -> float:
    """Wall time of a whole process."""
    started_s = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return time.perf_counter() - started_s


def page(rounds: int) -> str:
    """Run all commands and tell their times."""
    times_s: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for command in COMMANDS.values():
        elapsed_s(command)
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
        for name, command in COMMANDS.items():
            times_s[name].append(elapsed_s(command))
    made = (
        f"Whole processes, start to exit, {rounds} rounds in turn after one that is not "
        f"counted. Made {datetime.now(UTC):%Y-%m-%d} by `make speed`, headway {__version__}, "
        f"Python {platform.python_version()}, {platform.machine()}, {platform.system()}."
    )
    lines = [
        "# How fast the commands answer",
        "",
        made,
        "",
        "| command | least | median | most |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| `{name}` | {min(values):.3f} s | {statistics.median(values):.3f} s "
        f"| {max(values):.3f} s |"
        for name, values in times_s.items()
    ]
    return "\n".join([*lines, ""])


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--output", type=Path, help="Markdown file; printed if not given")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args()
    text = page(arguments.rounds)
    if arguments.output is None:
        print(text)
    else:
        arguments.output.write_text(text)
        print(arguments.output)


if __name__ == "__main__":
    main()
