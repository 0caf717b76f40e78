"""What a person at a terminal sees: the width there is, colour, what to type next."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path

import pytest

from headway.cli.main import run
from headway.report.columns import USUAL_WIDTH, set_width
from tests.cli.conftest import printed

ROOT = Path(__file__).parents[2]
PROFILE = str(ROOT / "examples/word-count.profile.yaml")
ASKED = ("--rate", "24k/s", "--target", "p99 <= 2s")
COMMANDS: dict[str, tuple[Sequence[str], int]] = {
    "plan": (("plan", PROFILE, *ASKED), 0),
    "infeasible": (("plan", PROFILE, "--rate", "24k/s", "--target", "p99 <= 100ms"), 3),
    "predict": (("predict", PROFILE, "--rate", "12k/s"), 0),
    "explain": (("explain", "PLAN"), 0),
    "simulate": (("simulate", "PLAN", "--rate-trace", str(ROOT / "examples/burst.csv")), 0),
    "batch plan": (
        ("plan", str(ROOT / "examples/nightly-totals.profile.yaml"), "--target", "deadline <= 10m"),
        0,
    ),
    "equation": (("explain", "--equation", "P4"), 0),
}
#: Lines to copy are never broken, and a table of figures has no fewer columns.
COPIED = re.compile(r"^\s+(spark\.|trigger |max\w+PerTrigger)")


@pytest.fixture
def plan_file(tmp_path: Path) -> str:
    (tmp_path / "plan.json").write_text(printed("plan", PROFILE, *ASKED, "--json"))
    return str(tmp_path / "plan.json")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr("headway.cli.terminal.is_terminal", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return monkeypatch


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize("columns", [80, 100, 120])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_fits_the_terminal(
    name: str,
    columns: int,
    terminal: pytest.MonkeyPatch,
    plan_file: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    terminal.setenv("COLUMNS", str(columns))
    words, exit_code = COMMANDS[name]
    try:
        assert run([plan_file if word == "PLAN" else word for word in words]) == exit_code
    finally:
        set_width(USUAL_WIDTH)
    for line in plain(capsys.readouterr().out).splitlines():
        # The verdict's sign comes before a line that was fitted without it.
        assert len(line) <= columns + 2 or COPIED.match(line), line
        assert "…" not in line


@pytest.mark.parametrize("name", COMMANDS)
def test_a_pipe_gets_neither_colour_nor_sign(
    name: str, plan_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words, exit_code = COMMANDS[name]
    assert run([plan_file if word == "PLAN" else word for word in words]) == exit_code
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
    assert not out.startswith(("✓", "✗"))
    assert "next:" not in err


def test_what_is_infeasible_takes_less_than_25_lines(capsys: pytest.CaptureFixture[str]) -> None:
    words, exit_code = COMMANDS["infeasible"]
    assert run(words) == exit_code
    short = capsys.readouterr().out
    assert len(short.splitlines()) < 25
    assert short.index("p99 <= 100 ms") < short.index("nearest feasible targets")
    assert run([*words, "--verbose"]) == exit_code
    assert "Spark configuration" in capsys.readouterr().out


def test_quiet_prints_the_answer_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", PROFILE, *ASKED, "-q"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("1 node meets p99 <= 2.00 s at 24k/s\n")
    assert len(out.splitlines()) < 10


@pytest.mark.parametrize("without", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {}], ids=str)
def test_a_real_terminal_has_colour_unless_it_is_refused(without: dict[str, str]) -> None:
    seen = in_a_terminal(["--no-color"] if not without else [], 80, without)
    assert "\x1b[" not in seen
    assert seen.startswith("✓ 1 node meets")


def test_a_real_terminal_shows_the_verdict_and_what_to_type_next() -> None:
    seen = in_a_terminal([], 80, {})
    assert seen.startswith("\x1b[32m\x1b[1m✓ 1 node meets p99 <= 2.00 s at 24k/s\x1b[0m")
    assert "next: " in seen
    assert max(len(line) for line in plain(seen).splitlines() if not COPIED.match(line)) <= 82


def in_a_terminal(options: Sequence[str], columns: int, environment: dict[str, str]) -> str:
    """What the plan prints in a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    known = {name: text for name, text in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "headway", *options, "plan", PROFILE, *ASKED],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**known, "TERM": "xterm", **environment},
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # how Linux tells that the other end was closed
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    assert process.wait(timeout=60) == 0
    return shown.decode().replace("\r\n", "\n")
