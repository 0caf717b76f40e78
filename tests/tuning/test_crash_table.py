"""A tuner that dies at any named point goes on where it was: never two queries, never half done."""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headway.domain.live import Reason
from headway.domain.tuner import Phase
from headway.errors import HeadwayError, InputError, TunerLockedError
from headway.formats.tuner_files import (
    TunerLock,
    append_audit,
    load_tuner,
    lock_file,
    read_audit,
    save_tuner,
)
from headway.models.estimation.daily_rates import DailyRates
from tests.factories import a_configuration
from tests.tuning.simulated import Killed, SimulatedQuery, a_machine, begun, phase_of, run_for

FASTER = replace(a_configuration(), trigger_s=0.5)
LARGER = replace(a_configuration(), executors=5)
RESTART_POINTS = ("state written", "before stop", "stopped", "before start", "started")
EXECUTOR_POINTS = ("state written", "before executors", "executors asked for")


def killed_at(point: str, after: int = 0) -> Callable[[str], None]:
    left = [after]

    def at(name: str) -> None:
        if name == point:
            if left[0] == 0:
                raise Killed(point)
            left[0] -= 1

    return at


@pytest.mark.parametrize(
    ("then", "point"),
    [(FASTER, one) for one in RESTART_POINTS] + [(LARGER, one) for one in EXECUTOR_POINTS],
)
def test_killed_within_a_change_it_is_finished_at_the_next_start(
    tmp_path: Path, then: object, point: str
) -> None:
    path = tmp_path / "orders.tuner.json"
    query = SimulatedQuery()
    machine = begun(query, path, 60)
    query.at = machine.at = killed_at(point)
    with pytest.raises(Killed):
        machine.change_to(then, Reason.TRIGGER, Phase.APPLYING, why="a test")  # type: ignore[arg-type]
    left = load_tuner(path)
    assert left is not None and left.phase is Phase.APPLYING and left.change is not None
    assert left.change.then == then
    # The driver is gone with its query.
    query.is_active, query.executors, query.come_s = False, 2, []
    again = a_machine(query, path)
    again.begin()
    assert query.configuration == then
    assert query.num_executors() == query.configuration.executors
    assert phase_of(again) is Phase.LEARN
    assert again.state.change is None
    run_for(again, query, 60)
    assert phase_of(again) is Phase.HOLD


def test_killed_twice_at_the_new_setting_it_goes_back_to_the_last_good_one(tmp_path: Path) -> None:
    path = tmp_path / "orders.tuner.json"
    query = SimulatedQuery()
    machine = begun(query, path, 60)
    query.at = killed_at("before start")
    with pytest.raises(Killed):
        machine.change_to(FASTER, Reason.TRIGGER, Phase.APPLYING, why="a test")
    for _ in range(2):
        query.is_active = False
        with pytest.raises(Killed):
            a_machine(query, path, at=killed_at("before start")).begin()
    query.is_active = False
    again = a_machine(query, path)
    again.begin()
    assert query.configuration == a_configuration()
    assert again.state.is_blocked(a_configuration(), FASTER, query.now_s)


@pytest.mark.parametrize("point", RESTART_POINTS)
def test_killed_on_the_way_back_it_does_not_try_the_change_again(
    tmp_path: Path, point: str
) -> None:
    path = tmp_path / "orders.tuner.json"
    query = SimulatedQuery()
    machine = begun(query, path, 60)
    machine.change_to(FASTER, Reason.TRIGGER, Phase.APPLYING, why="a test")
    query.at = machine.at = killed_at(point)
    assert machine.state.change is not None
    with pytest.raises(Killed):
        machine._restore(machine.state.change, "it missed the target")
    query.is_active = False
    again = a_machine(query, path)
    again.begin()
    assert query.configuration == a_configuration()
    assert again.state.is_blocked(a_configuration(), FASTER, query.now_s + 3600.0)
    assert not again.state.is_blocked(a_configuration(), FASTER, query.now_s + 90_000.0)


@pytest.mark.parametrize("phase", [Phase.HOLD, Phase.SETTLING, Phase.LEARN, Phase.OFF, Phase.LOST])
def test_killed_at_rest_it_learns_anew_at_the_last_good_setting(
    tmp_path: Path, phase: Phase
) -> None:
    path = tmp_path / "orders.tuner.json"
    query = SimulatedQuery()
    machine = begun(query, path, 60)
    save_tuner(replace(machine.state, phase=phase), path)
    query.is_active = False
    again = a_machine(query, path)
    again.begin()
    assert phase_of(again) is Phase.LEARN
    assert query.configuration == a_configuration()


def test_what_was_learned_outlives_the_tuner(tmp_path: Path) -> None:
    path = tmp_path / "orders.tuner.json"
    query = SimulatedQuery()
    machine = begun(query, path, 400)
    memory = machine.rule.memory
    daily = DailyRates.of({4_800_000: 250.0, 4_800_001: 1234.0})
    machine.rule.memory = replace(memory, costs=memory.costs.with_step_up(17.0), daily=daily)
    machine.end(restore=False)
    from headway.tuner.rule.memory import remembered

    state = load_tuner(path)
    assert state is not None and state.phase is Phase.OFF
    found = remembered(state)
    assert found.costs == machine.rule.memory.costs
    assert found.budget == machine.rule.memory.budget
    assert found.daily.rates_per_s.items() >= daily.rates_per_s.items()
    assert not found.forecast.is_known


def test_one_tuner_per_state_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "orders.tuner.json"
    first = TunerLock(path)
    with pytest.raises(TunerLockedError, match="tunes with this state"):
        TunerLock(path)
    first.beat()
    first.release()
    assert not lock_file(path).exists()
    # One that was killed: its process is gone.
    lock_file(path).write_text(f"{socket.gethostname()} 999999999 1")
    second = TunerLock(path)
    # One on another machine counts as gone after a minute.
    lock_file(path).write_text("elsewhere 1 1")
    with pytest.raises(TunerLockedError, match="process 1 on elsewhere"):
        TunerLock(path)
    with pytest.raises(TunerLockedError, match="another tuner took over"):
        second.beat()
    lock_file(path).unlink()
    with pytest.raises(TunerLockedError, match=r"it is gone, or .*; this tuner changes nothing"):
        second.beat()
    lock_file(path).write_text("elsewhere 1 1")
    monkeypatch.setattr(time, "time", lambda: path.parent.stat().st_mtime + 120.0)
    TunerLock(path).release()


@pytest.mark.parametrize("name", ["orders.jsonl", "orders.lock", "orders.off"])
def test_a_state_does_not_have_the_name_of_a_file_beside_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="expected another one for the state"):
        TunerLock(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_without_a_state_that_can_be_written_nothing_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "orders.tuner.json"
    query = SimulatedQuery()
    machine = begun(query, path, 60)
    starts, saved = [*query.starts], path.read_text()

    def read_only(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "open", read_only)
    with pytest.raises(HeadwayError, match="the state of the tuner cannot be written: Read-only"):
        machine.change_to(FASTER, Reason.TRIGGER, Phase.APPLYING, why="a test")
    assert query.is_active and query.starts == starts
    assert path.read_text() == saved
    with pytest.raises(HeadwayError, match="expected a folder that exists and has room"):
        TunerLock(path)


def test_a_full_disk_leaves_no_lock_that_keeps_the_next_tuner_from_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "orders.tuner.json"
    opened = os.fdopen

    def full(handle: int, *how: Any, **more: Any) -> Any:
        """The name of a file still fits on a full disk, and nothing into the file."""
        opened(handle, *how, **more).close()
        return open("/dev/full", *how, **more)  # noqa: PTH123

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdopen", full)
        with pytest.raises(HeadwayError, match=r"lock: cannot be written \(No space left"):
            TunerLock(path)
    assert not list(tmp_path.iterdir())
    TunerLock(path).release()


def test_a_lock_on_a_disk_that_became_read_only_ends_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = TunerLock(tmp_path / "orders.tuner.json")

    def read_only(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "unlink", read_only)
    lock.release()


def test_a_line_of_the_log_that_was_cut_costs_no_other_line(tmp_path: Path) -> None:
    path = tmp_path / "orders.tuner.jsonl"
    append_audit(path, {"event": "started"})
    with path.open("a") as file:
        file.write('{"at_s": 12.0, "event": "prop')
    append_audit(path, {"event": "held"})
    append_audit(path, {"event": "ended"})
    assert [entry["event"] for entry in read_audit(path)] == ["started", "held", "ended"]
    assert path.read_text().count("\n") == 4


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"schema": "headway.tuner/v1"}', "\x00"])
def test_a_file_that_is_no_state_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "orders.tuner.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"a tuner's state|not the state of a tuner"):
        load_tuner(path)
    assert load_tuner(tmp_path / "none.json") is None


def test_late_rows_are_kept_while_nothing_changes(tmp_path: Path) -> None:
    path = tmp_path / "orders.tuner.json"
    query = SimulatedQuery()
    machine = begun(query, path, 60)
    query.factor = lambda _configuration: 30.0
    run_for(machine, query, 90)
    state = load_tuner(path)
    assert state is not None
    assert sum(one.late_rows for one in state.late) > 0
