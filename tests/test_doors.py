"""What a command prints, the call of its name gives: the doors at the top of the package."""

from __future__ import annotations

from pathlib import Path

import pytest

import headway
from headway.api.results import figures_of
from headway.cli.main import run
from headway.domain import StreamAnswer
from headway.formats.as_json import json_text, plan_json, prediction_json
from headway.spec.kinds import KINDS

ROOT = Path(__file__).parents[1]
PROFILE = ROOT / "examples" / "word-count.profile.yaml"
SPEC = ROOT / "configs" / "orders.yaml"
TRACE = ROOT / "examples" / "burst.csv"
ASKED = ("--rate", "5k/s", "--target", "p99 <= 3s", "--max-nodes", "2")


@pytest.fixture(scope="module")
def plan() -> StreamAnswer:
    return headway.plan(PROFILE, rate="5k/s", target="p99 <= 3s", max_nodes=2)


@pytest.fixture
def plan_file(plan: StreamAnswer, tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    path.write_text(json_text(plan_json(plan)), encoding="utf-8")
    return path


def printed(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert run([str(word) for word in words]) == 0
    return capsys.readouterr().out


def test_predict_is_the_same_by_call_and_command(capsys: pytest.CaptureFixture[str]) -> None:
    found = headway.predict(PROFILE, rate="5k/s", trigger="2s")
    out = printed(capsys, "predict", PROFILE, "--rate", "5k/s", "--trigger", "2s", "--json")
    assert out == json_text(prediction_json(found)) + "\n"


def test_plan_is_the_same_by_call_and_command(
    plan: StreamAnswer, capsys: pytest.CaptureFixture[str]
) -> None:
    out = printed(capsys, "plan", PROFILE, *ASKED, "--json")
    assert out == json_text(plan_json(plan)) + "\n"


def test_explain_reads_a_file_or_takes_a_plan(
    plan_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = printed(capsys, "explain", plan_file)
    assert out == headway.explain(plan_file) + "\n"
    assert out == headway.explain(headway.load_plan(plan_file)) + "\n"
    infeasible = headway.plan(PROFILE, rate="5k/s", target="p99 <= 1ms", max_nodes=1)
    assert "p99 <= 1 ms" in headway.explain(infeasible)


@pytest.mark.parametrize("output_format", ["kubeflow", "emr"])
def test_emit_is_the_same_by_call_and_command(
    output_format: str, plan_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["emit", str(plan_file), "--format", output_format]) == 0
    out = capsys.readouterr()
    found = headway.emit(plan_file, output_format)
    assert out.out == found.text
    assert out.err == "".join(f"{line}\n" for line in found.beside)
    named = headway.emit(plan_file, "kubeflow", submission={"name": "Orders (EU)"})
    assert "name: orders-eu" in named.text or 'name: "orders-eu"' in named.text
    with pytest.raises(headway.HeadwayError, match="'pigeon' is no format; expected one of spark"):
        headway.emit(plan_file, "pigeon")


def test_simulate_is_the_same_by_call_and_command(
    plan_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = headway.simulate(plan_file, TRACE, runs=2)
    out = printed(capsys, "simulate", plan_file, "--rate-trace", TRACE, "--runs", "2", "--json")
    assert out == json_text(figures_of(found)) + "\n"


def test_lock_and_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours, theirs = tmp_path / "ours.lock", tmp_path / "theirs.lock"
    headway.save_lock(headway.lock([SPEC]), ours)
    printed(capsys, "lock", SPEC, "-o", theirs)
    assert ours.read_text() == theirs.read_text()
    report = headway.check([SPEC], baseline=headway.load_lock(ours))
    assert report.exit_code == 0
    assert report.headline in printed(capsys, "check", SPEC, "--baseline", theirs)


def test_init_and_validate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert headway.init("Cluster") == printed(capsys, "init", "-", "--kind", "Cluster")
    path = tmp_path / "cluster.yaml"
    path.write_text(headway.init("Cluster", name="ours", file=path), encoding="utf-8")
    assert headway.validate(path).kind == "Cluster"


def test_what_is_infeasible_is_explained_too() -> None:
    answer = headway.plan(PROFILE, rate="5k/s", target="p99 <= 1ms", max_nodes=2)
    assert not answer.feasible
    text = headway.explain(answer)
    assert "Nearest feasible targets" in text
    assert "Comparison with rules of thumb" not in text


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_file_can_be_begun_where_nothing_is_yet(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert headway.init(kind) == printed(capsys, "init", "-", "--kind", kind)
