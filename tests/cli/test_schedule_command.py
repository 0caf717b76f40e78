"""``headway schedule``: the verdict, its exit codes, and replays of a log."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from headway.cli.main import run
from headway.domain import Decision, Policy, QueryState
from headway.runtime.gate.decision_log import BatchEnd, DecisionLog

HEAD = """\
apiVersion: headway/v1
kind: QuerySchedule
metadata: {name: clicks}
spec:
  cores: 2
  cores_per_node: 2
  queries:
"""
QUERY = (
    "  - {{name: q{at}, declared: {{source_partitions: 2, task_per_row: 4us, task_fixed: 20ms, "
    "driver: 80ms, shuffle_task_per_row: 1us, shuffle_partitions: 2}}, rate: {rate}, "
    "target: window p99 <= {limit}, trigger: 1s, window_slide: 10s, window_start: {start}s}}\n"
)


def a_file(folder: Path, *, rate: str = "8k/s", limit: str = "3s", aligned: bool = False) -> str:
    file = folder / "queries.yaml"
    lines = [
        QUERY.format(at=at, rate=rate, limit=limit, start=0 if aligned else at) for at in range(8)
    ]
    file.write_text(HEAD + "".join(lines))
    return str(file)


def test_the_answer_first_then_each_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["schedule", a_file(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Taking turns pays: policy promise")
    for name in ("Spark as it is", "Spark, as fast as possible", "stagger", "fcfs", "economy"):
        assert f"\n{name}" in out
    assert re.search(r"\npromise \* .*\n(.*\n)*\* the recommended policy\n", out)
    assert max(map(len, out.splitlines())) <= 100


def test_the_answer_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schedule", a_file(tmp_path), "--policy", "fcfs,promise", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "headway.schedule/v1"
    assert found["pays"] is True
    assert found["policy"] == "promise"
    assert [one["policy"] for one in found["policies"]] == [None, None, "fcfs", "promise"]
    assert set(found["offsets_s"]) == {f"q{at}" for at in range(8)}
    assert found["nodes_with"] == 1


def test_windows_that_end_together_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["schedule", a_file(tmp_path, aligned=True), "--policy", "promise"]) == 0
    assert "All windows end at the same time" in capsys.readouterr().out


def test_targets_that_cannot_be_met_exit_with_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["schedule", a_file(tmp_path, limit="100ms"), "--policy", "fcfs"]) == 3
    assert run(["schedule", a_file(tmp_path, rate="300k/s"), "--policy", "fcfs"]) == 3
    assert "the backlog grows under every" in capsys.readouterr().out


def test_what_is_wrong_with_a_file_has_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = Path(a_file(tmp_path))
    file.write_text(file.read_text().replace("name: q1,", "name: q0,"))
    assert run(["schedule", str(file)]) == 2
    assert "two queries are called 'q0'" in capsys.readouterr().err
    file.write_text(file.read_text().replace("trigger: 1s", "tigger: 1s"))
    assert run(["schedule", str(file)]) == 2
    assert "did you mean 'trigger'" in capsys.readouterr().err
    assert run(["schedule", a_file(tmp_path), "--policy", "fastest"]) == 2
    assert "expected one of fcfs" in capsys.readouterr().err
    assert run(["schedule"]) == 2
    assert run(["schedule", str(tmp_path / "none.yaml")]) == 2


def a_log(file: Path, *, order: tuple[str, ...]) -> str:
    state = QueryState(
        name="a", ready_s=0.0, oldest_unread_s=1.0, last_grant=0, duration_s=0.2, pair_s=0.4
    )
    log = DecisionLog(file)
    log.write(
        Decision(
            at_s=2.0, policy=Policy.FCFS, num_running=0, at_once=1,
            states=(state, replace(state, name="b", oldest_unread_s=0.5)),
            order=order, granted=order[:1],
        )
    )  # fmt: skip
    log.write(
        BatchEnd(at_s=2.5, name=order[0], batch_id=3, rows=10, predicted_s=0.2, observed_s=0.3)
    )
    log.close()
    return str(file)


def test_a_log_is_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    same = a_log(tmp_path / "same.jsonl", order=("b", "a"))
    assert run(["schedule", "--decisions", same]) == 0
    out = capsys.readouterr().out
    assert "The log replays exactly: 1 decision, none different (fcfs)." in out
    assert "predicted 200 ms, measured 300 ms" in out
    other = a_log(tmp_path / "other.jsonl", order=("a", "b"))
    assert run(["schedule", "--decisions", other, "--json"]) == 4
    assert json.loads(capsys.readouterr().out)["differing"] == 1
    assert run(["schedule", "--decisions", str(tmp_path / "none")]) == 2


def test_a_log_that_names_no_policy_of_its_own_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = Path(a_log(tmp_path / "gate.jsonl", order=("b", "a")))
    file.write_text(file.read_text().replace('"fcfs"', '"auto"'))
    assert run(["schedule", "--decisions", str(file)]) == 2
    assert "gate.jsonl:1: a decision by auto" in capsys.readouterr().err


def test_triggers_below_a_millisecond_and_policies_that_name_none_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = Path(a_file(tmp_path))
    assert run(["schedule", str(file), "--policy", " , "]) == 2
    assert "--policy names none" in capsys.readouterr().err
    file.write_text(file.read_text().replace("trigger: 1s", "trigger: 0.1ms"))
    assert run(["schedule", str(file)]) == 2
    assert "trigger: got 100 us; expected 1ms or more" in capsys.readouterr().err
