"""What people get wrong most: each message says what is wrong, where, and what to type instead."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from headway.cli.main import run
from headway.errors import InputError

ROOT = Path(__file__).parents[2]
PROFILE = str(ROOT / "examples/word-count.profile.yaml")
BATCH = str(ROOT / "examples/nightly-totals.profile.yaml")
SPEC = str(ROOT / "configs/orders.yaml")
FLEET = str(ROOT / "configs/fleet.yaml")
PLAN = ("plan", PROFILE, "--rate", "24k/s", "--target")
RATE = ("plan", PROFILE, "--target", "p99 <= 2s", "--rate")
CASES: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "target from below": (
        (*PLAN, "p99 >= 2s"),
        ("'--target'", "upper limit", "did you mean 'p99 <= 2s'?"),
    ),
    "average": ((*PLAN, "avg <= 2s"), ("'--target'", "did you mean 'mean <= 2s'?")),
    "capital": ((*PLAN, "P99 <= 2s"), ("'--target'", "did you mean 'p99 <= 2s'?")),
    "sign": ((*PLAN, "p99 ≤ 2s"), ("'--target'", "did you mean 'p99 <= 2s'?")),
    "bytes": ((*RATE, "24MB/s"), ("'--rate'", "counts bytes", "bytes of a row", "24k/s")),
    "kps": ((*RATE, "24kps"), ("'--rate'", "did you mean '24k/s'?")),
    "confidence": (
        (*PLAN, "p99 <= 2s", "--confidence", "95"),
        ("'--confidence'", "range", "95%"),
    ),
    "prediction of a plan": (
        ("predict", "{plan.json}"),
        ("plan.json:1:12", "a plan; expected headway.profile/v1", "headway explain"),
    ),
    "prediction of a spec": (("predict", SPEC), ("orders.yaml: a spec file", "headway plan ")),
    "explanation of a spec": (
        ("explain", SPEC),
        ("orders.yaml: a spec file", "plan it first: headway plan ", "--json > plan.json"),
    ),
    "explanation of a profile": (
        ("explain", PROFILE),
        ("word-count.profile.yaml: a profile", "headway plan ", "--json > plan.json"),
    ),
    "latency of a batch job": (
        ("plan", BATCH, "--target", "p99 <= 3s"),
        (":3:9: schema", "batch application", "--target 'deadline <= 10m'"),
    ),
    "command": (("plna",), ("no command 'plna'", "did you mean 'headway plan'?")),
    "format": (
        ("emit", "{plan.json}", "--format", "kubeflw"),
        ("'--format'", "Did you mean 'kubeflow'?"),
    ),
    "tab": (("plan", "{tab.yaml}"), ("tab.yaml:3:1", "not YAML: a tab; expected blanks")),
    "cost": (
        ("check", SPEC, "--max-cost", "5"),
        ("'--max-cost'", "'5' would be 500%", "write 5% or 0.05"),
    ),
    "month": (("capacity", FLEET, "--by", "2027-13"), ("--by 2027-13", "no month 13", "2027-06")),
    "files and format": (
        ("emit", "{plan.json}", "--format", "spark-defaults", "--files", "out"),
        ("--format and --files contradict", "leave one of them out"),
    ),
}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "plan.json").write_text('{"schema": "headway.plan/v1"}')
    (tmp_path / "tab.yaml").write_text("kind: StreamingJob\nmetadata:\n\tname: x\n")
    return tmp_path


@pytest.mark.parametrize("name", CASES)
def test_a_message_says_what_where_and_what_to_type(
    name: str, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, parts = CASES[name]
    typed = [str(files / word[1:-1]) if word.startswith("{") else word for word in words]
    assert run(typed) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    for part in parts:
        assert part in err, part


def test_a_share_may_be_written_in_percent(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*PLAN, "p99 <= 2s", "--confidence", "95%"]) == 0
    with_percent = capsys.readouterr().out
    assert run([*PLAN, "p99 <= 2s"]) == 0
    assert capsys.readouterr().out == with_percent


def test_all_faults_of_a_file_are_reported_at_once_though_its_kind_is_misspelt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "job.yaml"
    spec.write_text(
        "apiVersion: headway/v1\nkind: StremingJob\nmetadata: {nme: orders}\nspec:\n"
        "  profil: job.profile.yaml\n  rate: 24kps\n  target: p99 >= 2s\n  trigger: 2x\n"
    )
    assert run(["validate", str(spec)]) == 2
    shown = "".join(capsys.readouterr())
    for part in (
        "job.yaml:2:7: kind: got 'StremingJob'",
        "did you mean 'StreamingJob'?",
        "job.yaml:3:12: metadata.nme",
        "job.yaml:5:3: spec.profil",
        "job.yaml:6:9: spec.rate",
        "job.yaml:7:11: spec.target",
        "job.yaml:8:",
    ):
        assert part in shown, part


def test_a_long_simulation_says_what_makes_it_long(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.cli.simulate.run_simulation", _no_simulation)
    plan, trace = tmp_path / "plan.json", tmp_path / "week.csv"
    run([*PLAN, "p99 <= 2s", "--json"])
    plan.write_text(capsys.readouterr().out)
    trace.write_text("time,rate\n0,20k/s\n7d,20k/s\n")
    assert run(["simulate", str(plan), "--rate-trace", str(trace)]) == 2
    err = capsys.readouterr().err
    for part in (
        "week.csv: 7 d with a batch every 1.00 s are 9.68 million",
        "--runs 3",
        "--for 34",
    ):
        assert part in err, part


def _no_simulation(*_: object, **__: object) -> None:
    raise InputError("not simulated here")
