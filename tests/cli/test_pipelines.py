"""``headway predict``, ``plan`` and ``simulate`` of pipelines, and the calls of their names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import headway
from headway.api.pipelines import is_pipeline, plan_pipeline, predict_pipeline
from headway.cli.main import run
from headway.errors import InputError
from headway.formats.as_json import json_text
from headway.models.pipeline.latency import PHASES
from headway.planner.pipeline_search import RoundsPlan
from headway.planner.pipelines import PipelinePrediction
from headway.report.pipelines import pipeline_prediction_json
from headway.spec.kinds import MicroBatchPipeline
from headway.spec.scaffolds import scaffold
from headway.spec.spec_file import load_spec_of

EXAMPLES = Path(__file__).parents[2] / "examples" / "pipelines"
WORDS, WINDOWS = (str(EXAMPLES / f"{name}.yaml") for name in ("word-count", "windowed-word-count"))


def printed(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert run(words) == code, capsys.readouterr()
    return capsys.readouterr().out


def small(folder: Path) -> str:
    """A pipeline of a quarter of the nodes, quick to simulate."""
    text = scaffold("MicroBatchPipeline", name="p", file="p.yaml")
    text = text.replace("rate: 1M/s", "rate: 100k/s").replace("nodes: 10", "nodes: 2")
    path = folder / "p.yaml"
    path.write_text(text)
    return str(path)


def test_predict_tells_the_phases(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "predict", WORDS)
    assert out.startswith("latency of rows at 1M/s: mean ")
    assert "target mean <= 1.00 s: met" in out
    for phase in PHASES:
        assert f"\n{phase}" in out
    for level in ("p50", "p95", "p99", "p99.9"):
        assert f"\n{level} " in out
    assert max(map(len, out.splitlines())) <= 100


def test_predict_as_json_is_the_call(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "predict", WORDS, "--json")
    found: object = headway.predict(WORDS)
    assert isinstance(found, PipelinePrediction)
    assert out == json_text(pipeline_prediction_json(found)) + "\n"
    data = json.loads(out)
    assert data["saturated"] is False
    assert [one["name"] for one in data["latency_s"]["phases"]] == list(PHASES)
    total = sum(one["mean"] for one in data["latency_s"]["phases"])
    assert total == pytest.approx(data["latency_s"]["mean"], rel=1e-4)
    noun = load_spec_of(WORDS, MicroBatchPipeline)
    by_noun = headway.predict(noun, rate="1M/s")
    assert isinstance(by_noun, PipelinePrediction)
    assert float(by_noun.latency.mean_s) == float(found.latency.mean_s)


def test_windows_have_a_latency_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "predict", WINDOWS)
    assert out.startswith("latency of windows at 1M/s: mean ")
    assert "\nfinalize " in out


def test_too_much_is_saturated(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "predict", WORDS, "--rate", "9M/s")
    assert out.startswith("saturated at 9M/s: latency grows without bound; too busy: a mapper;")
    assert "phase" not in out
    assert json.loads(printed(capsys, "predict", WORDS, "--rate", "9M/s", "--json"))["saturated"]
    out = printed(capsys, "simulate", WORDS, "--rate", "9M/s")
    assert out.startswith("saturated at 9M/s")


def test_plan_prints_proof_and_rules(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "plan", WORDS, "--target", "p99 <= 1s", "--rate", "300k/s")
    assert " meet p99 <= 1.00 s at 300k/s" in out.splitlines()[0]
    assert "\nproved: fewer nodes miss it" in out
    assert "rules of thumb, 4 mappers and 4 reducers on each node:" in out
    assert max(map(len, out.splitlines())) <= 100
    data = json.loads(
        printed(capsys, "plan", WORDS, "--target", "p99 <= 1s", "--rate", "300k/s", "--json")
    )
    assert data["schema"] == "headway.pipeline-plan/v1"
    (one,) = data["rounds"]
    assert one["nodes"] == data["nodes"] == one["setting"]["nodes"]
    assert one["planned_latency_s"] <= 1.0
    assert one["sustainable_rate_per_s"] >= 300e3
    assert one["proof"]["gap_nodes"] == 0
    assert len(one["rules"]) == 9
    assert "phases" in data["latency_s"]


def test_a_plan_that_cannot_be_exits_with_3(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "plan", WORDS, "--target", "mean <= 5ms", "--max-nodes", "12", code=3)
    assert out.startswith("infeasible: no setting meets mean <= 5 ms at 1M/s")
    assert "lowest mean found: " in out
    out = printed(capsys, "plan", WORDS, "--rate", "90M/s", "--max-nodes", "3", code=3)
    assert "saturated: up to 3 nodes" in out
    assert "proved: up to 3 nodes" in out


def test_simulate_stands_beside_the_prediction(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = small(tmp_path)
    out = printed(capsys, "simulate", file, "--runs", "1", "--for", "3s")
    assert out.startswith("latency of rows at 100k/s, 1 run of 3.00 s: mean ")
    assert "\nupdate " in out
    data = json.loads(printed(capsys, "simulate", file, "--runs", "1", "--for", "3s", "--json"))
    for name in ("mean", "p99"):
        assert data["predicted_s"][name] == pytest.approx(data["simulated_s"][name], rel=0.1)
    again = json.loads(printed(capsys, "simulate", file, "--runs", "1", "--for", "3s", "--json"))
    assert again == data
    other = printed(capsys, "simulate", file, "--runs", "1", "--for", "3s", "--json", "--seed", "9")
    assert json.loads(other)["simulated_s"] != data["simulated_s"]


def test_a_simulation_that_would_never_end_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", WORDS, "--for", "100h"]) == 2
    assert "million events would take too long to simulate" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["predict", WORDS, "--trigger", "2s"], "--trigger: "),
        (["plan", WORDS, "--node-cores", "8"], "--node-cores: "),
        (["plan", WORDS, "--format", "spark-defaults"], "a pipeline does not run on Spark"),
        (["plan", WORDS, "--target", "window p99 <= 3s"], "it has no windows"),
        (["plan", WINDOWS, "--target", "p99 <= 3s"], "its results come by the window"),
        (["plan", WORDS, "--target", "deadline <= 3m"], "it has no windows"),
        (["plan", WORDS, "--target", "mean <= 1s", "--target", "p99 <= 3s"], "for one target"),
        (["simulate", WORDS, "--outage", "5m at 1h"], "--outage: "),
    ],
)
def test_what_says_nothing_of_a_pipeline_is_refused(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 2
    assert said in capsys.readouterr().err


def test_a_pipeline_without_target_names_the_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.yaml"
    text = scaffold("MicroBatchPipeline", name="p", file="p.yaml")
    path.write_text(text.replace("  target: mean <= 1s\n", ""))
    assert run(["plan", str(path)]) == 2
    assert f"{path}:" in (said := capsys.readouterr().err)
    assert "spec.target: missing" in said
    assert run(["predict", str(path)]) == 0


def test_a_bad_pipeline_is_one_line_of_every_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = small(tmp_path)
    path = Path(file)
    path.write_text(path.read_text().replace("mappers: 2", "mappers: 0"))
    for command in ("predict", "plan", "simulate", "validate"):
        assert run([command, file]) == 2
        out = capsys.readouterr()
        (line,) = (out.err or out.out).splitlines()
        assert f"{file}:" in line
        assert "spec.setting.mappers: got 0; expected a whole number, at least 1" in line


def test_what_a_pipeline_is() -> None:
    assert is_pipeline(WORDS)
    assert not is_pipeline("no/such.yaml")
    assert not is_pipeline(EXAMPLES.parent / "word-count.profile.yaml")
    with pytest.raises(InputError, match="expected a MicroBatchPipeline"):
        predict_pipeline(3)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(InputError, match="partitions, trigger: not for pipelines"):
        headway.plan(WORDS, target="mean <= 1s", trigger="2s", partitions=3)  # type: ignore[call-overload]
    with pytest.raises(InputError, match="rate_trace and outages are not for pipelines"):
        headway.simulate(WORDS, "trace.csv")
    plan = plan_pipeline(WORDS, rate=200e3, max_nodes=8)
    assert isinstance(plan, RoundsPlan)
    assert plan.rounds[0].question.space.max_nodes == 8
