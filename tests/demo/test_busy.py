"""The demonstration on a machine where others are at work; without Spark."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from headway import load_profile
from headway.cli import main
from headway.demo import run
from headway.demo.run import FULL, _plans, busy_note

PROFILE = Path(__file__).parents[2] / "examples/word-count.profile.yaml"


@pytest.fixture
def cpu_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], None]:
    """A machine of two cores that works and idles for so many ticks while it is looked at."""
    file = tmp_path / "stat"
    file.write_text("cpu  100 0 100 400 0 0 0 0 0 0\ncpu0 1 1 1 1\n")
    monkeypatch.setattr(run, "_CPU_TIMES", file)
    monkeypatch.setattr("os.cpu_count", lambda: 2)

    def passes(busy: int, idle: int) -> None:
        line = f"cpu  {100 + busy} 0 100 {400 + idle} 0 0 0 0 0 0\n"
        monkeypatch.setattr("time.sleep", lambda _: file.write_text(line))

    return passes


def test_others_at_work_are_noticed_at_once(cpu_times: Callable[[int, int], None]) -> None:
    cpu_times(75, 25)
    note = busy_note()
    assert note is not None
    assert note.startswith("this machine is busy: others use 1.5 of 2 cores.")


def test_a_quiet_machine_needs_no_note(cpu_times: Callable[[int, int], None]) -> None:
    cpu_times(10, 90)
    assert busy_note() is None


def test_elsewhere_the_load_of_the_last_minute_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_CPU_TIMES", tmp_path / "none")
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    monkeypatch.setattr("os.getloadavg", lambda: (3.0, 0.0, 0.0))
    assert busy_note() is not None
    monkeypatch.setattr("os.getloadavg", lambda: (1.0, 9.0, 9.0))
    assert busy_note() is None


def test_a_busy_machine_is_measured_for_longer() -> None:
    busy = FULL.on_busy_machine
    assert (busy.profiled_s, busy.planned_s) == (2 * FULL.profiled_s, 2 * FULL.planned_s)
    assert (busy.warm_up_s, busy.predicted_s) == (FULL.warm_up_s, FULL.predicted_s)


def test_a_plan_on_a_busy_machine_has_more_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "PLANNED_RATE_PER_S", 60_000.0)
    profile = load_profile(PROFILE)
    (quiet,) = _plans(profile, is_busy=False)
    assert quiet.arrivals.rate_per_s == 60_000.0
    wished, planned = _plans(profile, is_busy=True)
    assert wished == quiet
    assert planned.feasible
    assert planned.nodes == 1
    most_per_s = quiet.frontier[0].sustainable_rate_per_s
    assert 0.45 * most_per_s < planned.arrivals.rate_per_s < 0.55 * most_per_s


def test_what_is_missing_is_said_before_a_busy_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "busy_note", lambda: "this machine is busy")
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert main.run(["demo", "-o", str(tmp_path / "demo")]) == 1
    assert capsys.readouterr().err == (
        "headway: the demonstration needs pyspark, which is not installed: pip install "
        "'headway[spark]'\n"
    )
