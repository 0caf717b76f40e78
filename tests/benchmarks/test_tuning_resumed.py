"""Benchmarks of the tuner that go on where they were cut."""

from __future__ import annotations

import argparse
import signal
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

import exactness
import exactness_page
import loop_cost
import pytest
from result_lines import keep

from headway.formats.profile_file import load_profile


def test_a_loop_that_was_measured_is_only_written_down(tmp_path: Path) -> None:
    results = tmp_path / "loop.jsonl"
    for number in range(1, 7):
        is_tuned = bool(number % 2)
        used = {"cores": 0.2 + 0.1 * is_tuned, "thread": 0.004 * is_tuned}
        keep(results, {"number": number, "run_s": 60.0, "is_tuned": is_tuned, **used})
    given = argparse.Namespace(run=60.0, repeats=3, results=results)
    page = loop_cost.text(given)
    assert "| thread of the tuner, share of the cores | 0.400% | 1% |" in page
    assert "| CPU time of Python and JVM, query alone | 0.200, 0.200, 0.200 cores |" in page
    assert "| added by the tuner, share of the cores | 5.0%, 5.0%, 5.0% | 1% |" in page
    assert "3 with the tuner and 3 without it" in page.replace("\n", " ")


def test_what_is_timed_are_decisions_not_looks() -> None:
    profile = load_profile(loop_cost.ROOT / "examples" / "word-count.profile.yaml")
    decision_s, _ = loop_cost.decisions(profile)
    bins = loop_cost.NUM_LOOKS * loop_cost.LOOK_S / 15.0
    assert 0.9 * bins < len(decision_s) <= bins + 1


def test_a_matrix_that_was_run_is_only_summed_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "exactness.jsonl"
    for cell in exactness.cells():
        rows = {sink: {"rows": 9, "lost": 0, "doubled": 0} for sink in cell.sinks}
        line = {**asdict(cell), "cell": cell.name, "rows": rows, "num_changes": 40}
        keep(results, {**line, "num_given_up": 0, "num_killed": 3})
    exactness.run(argparse.Namespace(results=results, most=None, minutes=1.0, changes=None))
    said = capsys.readouterr().out
    assert "1280 changes, 96 kills" in said
    assert "no row lost" in said
    page = exactness_page.text(argparse.Namespace(results=results))
    assert "32 of 32 cells are finished: 1,280 changes, 96 kills" in page
    assert page.count(": met |") == 5
    keep(results, {"cell": "x", "num_changes": 40, "num_killed": 3, "rows": {}})
    assert exactness_page.text(argparse.Namespace(results=results)) == page  # not of the matrix


def test_the_last_turn_makes_what_kills_have_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    class Driver:
        """Makes four changes and is killed, but for the last time."""

        pid = 1

        def __init__(self, command: list[str], **_how: Any) -> None:
            self.changes = int(command[command.index("--changes") + 1])
            self.is_killed = "--kill" in command
            asked.append(self.changes)

        def wait(self, _within_s: float | None = None) -> int:
            with (tmp_path / "changes.jsonl").open("a") as file:
                file.write('{"outcome": "made"}\n' * (4 if self.is_killed else self.changes))
            return -signal.SIGKILL if self.is_killed else 0

    monkeypatch.setattr(subprocess, "Popen", Driver)
    cell = exactness.Cell(point="stopped", seed=1, sinks=())
    found = exactness.run_cell(cell, tmp_path)
    assert asked == [10, 10, 10, 28]
    assert found["num_changes"] == 40
    assert found["num_killed"] == 3
