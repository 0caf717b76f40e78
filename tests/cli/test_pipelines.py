"""``headway predict``, ``plan`` and ``simulate`` of pipelines, and the calls of their names."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import headway
from headway.api.file_kinds import is_pipeline
from headway.api.plan import plan_job
from headway.cli.main import run
from headway.domain.ordered import OrderedPipeline as Operators
from headway.errors import InputError
from headway.formats.as_json import json_text
from headway.models.pipeline.latency import PHASES
from headway.planner.kinds.operators import OperatorsPlan, OperatorsPrediction
from headway.planner.kinds.pipeline_search import RoundsPlan
from headway.planner.kinds.pipelines import PipelinePrediction
from headway.spec.kinds.ordered import OrderedPipeline
from headway.spec.kinds.pipelines import MicroBatchPipeline
from headway.spec.spec_file import load_spec_of, scaffold

EXAMPLES = Path(__file__).parents[2] / "examples" / "pipelines"
WORDS, WINDOWS, SESSIONS = (
    str(EXAMPLES / f"{name}.yaml") for name in ("word-count", "windowed-word-count", "sessions")
)


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
    assert out == json_text(found.to_dict()) + "\n"
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


def test_plan_prints_proof_and_rules(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Planned once for both forms.
    plans = list[object]()

    def planned_once(*question: Any) -> object:
        plans[:] = plans or [plan_job(*question)]
        return plans[0]

    monkeypatch.setattr("headway.cli.plan.plan_job", planned_once)
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


def test_a_single_period_is_no_range(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "fixed.yaml"
    search = "  search: {shuffle_period: 200ms, poll_period: [50ms, 200ms]}\n"
    path.write_text(Path(WORDS).read_text() + search)
    assert run(["plan", str(path)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "over shuffle periods of 200 ms and poll periods from 50 ms to 200 ms" in out


def test_a_plan_that_cannot_be_exits_with_3(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--rate", "300k/s", "--target", "mean <= 5ms", "--max-nodes", "4")
    out = printed(capsys, "plan", WORDS, *asked, code=3)
    assert out.startswith("infeasible: no setting meets mean <= 5 ms at 300k/s")
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


def test_a_phase_that_is_predicted_almost_exactly_has_no_error_of_minus_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = printed(capsys, "simulate", small(tmp_path), "--runs", "1")
    errors = [line.split()[-1] for line in out.splitlines() if line.endswith("%")]
    assert any("<" in error for error in errors)
    assert not [error for error in errors if float(error.replace("<", "")[:-1]) == 0.0]


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


def test_ordered_operators_are_predicted(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "predict", SESSIONS)
    assert out.startswith("keeps up at 500k/s, ")
    assert "16 workers carry up to " in out
    for name in ("parse", "sessions", "top"):
        assert f"\n{name} " in out
    assert "on Spark, 16 slots: micro-batches " in out
    data = json.loads(printed(capsys, "predict", SESSIONS, "--rate", "9M/s", "--json"))
    assert data["saturated"] is True
    assert data["max_rate_per_s"] <= data["max_rate_without_order_per_s"] * (1 + 1e-9)
    out = printed(capsys, "predict", SESSIONS, "--rate", "9M/s")
    assert out.startswith("saturated at 9M/s: 16 workers carry up to ")


def test_one_worker_carries(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "sessions.yaml"
    path.write_text(Path(SESSIONS).read_text().replace("workers: 16", "workers: 1"))
    assert "1 worker carries up to " in printed(capsys, "predict", str(path), "--rate", "1k/s")
    assert "cannot carry" not in printed(capsys, "plan", str(path), "--rate", "1k/s")


def test_schedulers_stand_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "sessions.yaml"
    text = Path(SESSIONS).read_text()
    path.write_text(text.replace("[CT, CT keep, LP, ET, QST]", "[CT, LP]"))
    data = json.loads(printed(capsys, "simulate", str(path), "--json"))
    assert set(data["schedulers"]) == {"CT", "LP"}
    for name in ("CT", "LP"):
        assert data["schedulers"][name]["rate_per_s"] == pytest.approx(500e3, rel=0.03)
    path.write_text(text.replace("[CT, CT keep, LP, ET, QST]", "CT keep"))
    assert "\nCT keep " in printed(capsys, "simulate", str(path))
    assert run(["simulate", str(path), "--runs", "3"]) == 2
    assert "--runs: ordered operators are simulated without chance" in capsys.readouterr().err


def test_workers_are_planned(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "plan", SESSIONS)
    assert " meet p99 <= 100 ms at 500k/s" in out.splitlines()[0]
    assert "\nproved: fewer than " in out
    found: object = headway.plan(SESSIONS, target="p99 <= 100ms")
    assert isinstance(found, OperatorsPlan)
    assert found.feasible
    fewer = predict_with(found.pipeline.num_workers - 1)
    assert fewer.is_saturated == (found.pipeline.num_workers == found.proved_workers)
    out = printed(capsys, "plan", SESSIONS, "--rate", "900M/s", "--max-nodes", "20", code=3)
    assert out.startswith("infeasible: saturated, 20 workers cannot carry 900M/s in order")


def predict_with(workers: int) -> OperatorsPrediction:
    from dataclasses import replace

    spec = load_spec_of(SESSIONS, OrderedPipeline)
    found = headway.predict(replace(spec, workers=workers))
    assert isinstance(found, OperatorsPrediction)
    return found


def test_the_noun_of_ordered_operators_is_taken_too() -> None:
    pipeline = load_spec_of(SESSIONS, OrderedPipeline).pipeline()
    found = headway.predict(pipeline)
    assert isinstance(found, OperatorsPrediction)
    assert found.pipeline.rate_per_s == 500e3


def test_what_a_pipeline_is() -> None:
    assert is_pipeline(WORDS)
    assert not is_pipeline("no/such.yaml")
    assert not is_pipeline(EXAMPLES.parent / "word-count.profile.yaml")
    with pytest.raises(InputError, match="profile is of the type int"):
        headway.predict(3)  # type: ignore[call-overload]  # on purpose
    with pytest.raises(InputError, match="trigger, partitions: not for pipelines"):
        headway.plan(WORDS, target="mean <= 1s", trigger="2s", partitions=3)
    with pytest.raises(InputError, match="rate_trace: not for pipelines"):
        headway.simulate(WORDS, "trace.csv")
    plan = headway.plan(WORDS, rate=1e9, max_nodes=8)
    assert isinstance(plan, RoundsPlan)
    assert plan.rounds[0].question.space.max_nodes == 8
    assert plan.rounds[0].question.rate_per_s == 1e9


def test_a_simulation_never_hangs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One tuple an hour is a second's work; a million outputs of each tuple are refused."""
    path = tmp_path / "sessions.yaml"
    text = Path(SESSIONS).read_text().replace("[CT, CT keep, LP, ET, QST]", "[CT]")
    path.write_text(
        text.replace("cost: 10us", "cost: 10us, selectivity: 1000000").replace("8us", "10ms")
    )
    assert run(["simulate", str(path)]) == 2
    said = capsys.readouterr().err
    assert "million slices would take too long to simulate; expected at most 50 million" in said
    assert run(["plan", str(path)]) == 2
    assert "would take too long" in capsys.readouterr().err
    assert "saturated" in printed(capsys, "predict", str(path))


@pytest.mark.parametrize("needed_workers", [5, 12, 30, 61])
def test_the_planned_workers_are_the_fewest_that_meet_the_target(
    needed_workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def simulated(pipeline: Operators, *_: object, **__: object) -> SimpleNamespace:
        latency_s = 0.1 if pipeline.num_workers >= needed_workers else 9.0
        return SimpleNamespace(mean_s=latency_s, p50_s=latency_s, p99_s=latency_s)

    monkeypatch.setattr("headway.planner.kinds.operators.simulate_scheduler", simulated)
    plan: object = headway.plan(str(EXAMPLES / "sessions.yaml"), rate="50k/s", target="p99 <= 1s")
    assert isinstance(plan, OperatorsPlan)
    assert plan.feasible
    assert plan.pipeline.num_workers == max(needed_workers, plan.proved_workers)
