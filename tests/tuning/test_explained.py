"""A change of a tuner explained from its log: why, against what, and what came of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from headway.cli.main import run
from headway.domain.live import Reason
from headway.domain.tuner import Phase
from headway.errors import InputError
from headway.formats.tuner_files import audit_file, explained_change
from tests.factories import a_configuration
from tests.tuning.simulated import SimulatedQuery, begun, run_for


def step(since_s: float) -> float:
    return 20_000.0 if since_s < 300.0 else 700_000.0


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Of a tuner that followed a step of the rate, and had it verified."""
    path = tmp_path / "orders.tuner.json"
    query = SimulatedQuery(executors=1, rate_per_s=step, comes_after_s=20.0)
    machine = begun(query, path, 700.0, first=a_configuration(executors=1))
    assert machine.state.num_changes >= 1
    return path


def test_why_and_what_came_of_it(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = explained_change(audit_file(state), 1)
    assert found.change.number == 1
    assert (found.change.now.executors, found.change.then.executors) == (1, 2)
    assert found.proposal is not None and found.proposal.after_executors == 2
    assert [one.event for one in found.outcomes][:2] == ["applied", "verified"]
    assert found.outcomes[1].duration_s is not None and found.outcomes[1].late_ratio is not None
    # The state's own name will do, too.
    assert explained_change(state, 1) == found
    assert run(["watch", str(audit_file(state)), "--explain", "1"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("change 1, 2027-01-15 08:05")
    for part in ("add executors", "prepared for", "the target is missed without it", "verified"):
        assert part in text
    assert run(["watch", str(state), "--explain", "1", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["change"]["then"]["executors"] == 2
    assert said["proposal"]["estimate"]["cost_ratio"] > 0


def test_what_was_taken_back_is_said(tmp_path: Path) -> None:
    path = tmp_path / "orders.tuner.json"
    query = SimulatedQuery()
    machine = begun(query, path, 60.0)
    then = replace(machine.running, trigger_s=0.5)
    machine.change_to(then, Reason.TRIGGER, Phase.APPLYING, why="a test")
    change = machine.state.change
    assert change is not None
    machine.audit("missed", change=change, duration_s=1.0, late_ratio=0.5, pause_s=1.0)
    machine._restore(change, "it missed the target that the setting before would meet")
    run_for(machine, query, 5.0)
    found = explained_change(path, 1)
    assert [one.event for one in found.outcomes] == ["applied", "missed", "restored"]
    assert found.proposal is None


def test_what_is_no_change_or_no_log_is_said(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match=r"no change 99; it has 1"):
        explained_change(state, 99)
    with pytest.raises(InputError, match="no such file"):
        explained_change(tmp_path / "other.jsonl", 1)
    (tmp_path / "odd.jsonl").write_text('{"event": "applied", "change": {"number": 1}}\n[1]\n')
    with pytest.raises(InputError, match="not the log of a tuner"):
        explained_change(tmp_path / "odd.jsonl", 1)
    assert run(["watch", str(state), "--explain", "99"]) == 2
    assert run(["watch", str(state), "--explain", "1", "--once"]) == 2
    assert run(["watch", str(state)]) == 2
    assert "Missing option '--profile'" in capsys.readouterr().err
