"""One answer, given by several commands: they must agree, for random jobs and questions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from headway.cli.main import run
from headway.domain import Metric
from headway.formats.profile_file import dump_profile
from headway.units import parse_duration_s
from tests.planner.enumeration import Case, random_case
from tests.seeds import seeds

_FEASIBLE, _INFEASIBLE = 0, 3


def question(seed: int) -> Case:
    """A random question in the words that both a command line and a spec can ask."""
    case = random_case(seed)
    return replace(
        case,
        # What is asked passes through text: as many digits as people write.
        arrivals=replace(case.arrivals, rate_per_s=float(f"{case.arrivals.rate_per_s:.3g}")),
        target=replace(case.target, limit_s=round(case.target.limit_s, 3)),
    )


class Asked:
    """A question as files and options, and what the commands print of it."""

    def __init__(self, case: Case, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.case, self.capsys = case, capsys
        self.profile = folder / "job.profile.yaml"
        self.profile.write_text(dump_profile(case.profile), encoding="utf-8")
        self.plan_file, self.spec_file = folder / "plan.json", folder / "job.yaml"

    def printed(self, *arguments: str) -> tuple[int, str]:
        """Exit code and stdout; nothing is written to stderr off a terminal."""
        code = run(list(arguments))
        out, err = self.capsys.readouterr()
        assert err == ""
        return code, out

    @property
    def rate(self) -> str:
        return f"{self.case.arrivals.rate_per_s:.10g}/s"

    @property
    def target(self) -> str:
        metric = "batch " if self.case.target.metric is Metric.BATCH else ""
        quantile = self.case.target.quantile
        statistic = "mean" if quantile is None else f"p{100 * quantile:.10g}"
        return f"{metric}{statistic} <= {self.case.target.limit_s * 1000:.10g}ms"

    def options(self) -> list[str]:
        """The question on the command line, but for the node."""
        space = self.case.space
        options = [
            *("--rate", self.rate, "--target", self.target),
            *("--max-nodes", str(space.max_nodes), "--cores", str(space.cores_per_executor)),
            *("--confidence", str(self.case.confidence)),
        ]
        if space.shuffle_partitions is not None:
            options += ["--partitions", str(space.shuffle_partitions)]
        if space.trigger_s is not None:
            options += ["--trigger", f"{space.trigger_s * 1000:.10g}ms"]
        return options

    def plan(self) -> tuple[int, dict[str, Any]]:
        """The plan on plain nodes, and how the command exits."""
        space = self.case.space
        node_cores = str(space.executors_per_node * space.cores_per_executor)
        options = [*self.options(), "--node-cores", node_cores]
        code, out = self.printed("plan", str(self.profile), *options, "--json")
        self.plan_file.write_text(out, encoding="utf-8")
        return code, json.loads(out)

    def predict(self, configuration: dict[str, Any]) -> dict[str, Any]:
        limit = configuration["max_offsets_per_trigger"]
        code, out = self.printed(
            "predict", str(self.profile), "--json", "--rate", self.rate,
            "--trigger", f"{configuration['trigger_s'] * 1000:.10g}ms",
            "--executors", str(configuration["executors"]),
            "--cores", str(configuration["cores_per_executor"]),
            "--partitions", str(configuration["shuffle_partitions"]),
            *(() if limit is None else ("--max-offsets", str(limit))),
        )  # fmt: skip
        assert code == 0
        return dict(json.loads(out))


@pytest.fixture(params=seeds(3, 60), ids=lambda seed: f"seed{seed}")
def asked(
    request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Asked:
    return Asked(question(request.param), tmp_path, capsys)


def test_what_plan_says_predict_explain_and_emit_say_too(asked: Asked) -> None:
    code, plan = asked.plan()
    assert code == (_FEASIBLE if plan["feasible"] else _INFEASIBLE)
    assert_predict_agrees(asked, plan)
    assert_plan_is_coherent(plan)
    if plan["feasible"]:
        assert_emitted_is_planned(asked, plan)


def assert_predict_agrees(asked: Asked, plan: dict[str, Any]) -> None:
    predicted = asked.predict(plan["configuration"])
    keys = predicted.keys() | plan["prediction"].keys()
    if not asked.target.startswith("p99"):
        keys -= {"next_run"}  # which run tells most depends on the statistic that is asked about
    differing = {key for key in keys if predicted.get(key) != plan["prediction"].get(key)}
    assert not differing, {
        key: (predicted.get(key), plan["prediction"].get(key)) for key in differing
    }


def assert_plan_is_coherent(plan: dict[str, Any]) -> None:
    """Its own numbers agree: setting, Spark's words, frontier, prediction."""
    configuration, conf = plan["configuration"], plan["spark_conf"]
    assert conf["spark.executor.instances"] == str(configuration["executors"])
    assert conf["spark.executor.cores"] == str(configuration["cores_per_executor"])
    assert conf["spark.sql.shuffle.partitions"] == str(configuration["shuffle_partitions"])
    trigger = plan["query_options"]["trigger"]
    assert parse_duration_s(trigger) == pytest.approx(configuration["trigger_s"], abs=1e-3)
    for name in ("batch_duration_s", "tuple_latency_s", "window_latency_s"):
        law = plan["prediction"][name]
        if law is not None:
            assert law["p50"] <= law["p95"] <= law["p99"]
            assert law["mean"] <= law["p99"]
    if plan["rules"]:
        own = plan["rules"][0]
        assert own["rule"] == "the plan"
        assert own["sustainable_rate_per_s"] == plan["chosen"]["sustainable_rate_per_s"]
        assert own["latency_s"] == plan["planned_latency_s"]
    counts = [row["nodes"] for row in plan["frontier"]]
    assert counts == sorted(set(counts))
    rates = [row["sustainable_rate_per_s"] for row in plan["frontier"]]
    assert rates == sorted(rates), "a node more never carries less"
    if plan["feasible"]:
        own = plan["frontier"][counts.index(plan["nodes"])]
        assert own["sustainable_rate_per_s"] >= plan["arrivals"]["rate_per_s"] * (1 - 1e-9)
        assert plan["chosen"]["configuration"] == configuration
        assert plan["chosen"]["nodes"] == plan["nodes"]
        least = plan["arrivals"]["rate_per_s"] * (1 - 1e-3)
        assert least <= plan["chosen"]["sustainable_rate_per_s"]


def assert_emitted_is_planned(asked: Asked, plan: dict[str, Any]) -> None:
    """Every format that has a parser here says the plan's configuration, no more, no less."""
    source = str(asked.plan_file)
    _, defaults = asked.printed("emit", source, "--format", "spark-defaults")
    lines = [line.split(None, 1) for line in defaults.splitlines() if line[:1] not in ("", "#")]
    assert dict(lines) == plan["spark_conf"]
    _, manifest = asked.printed("emit", source, "--format", "kubeflow")
    spec = yaml.safe_load(manifest)["spec"]
    assert spec["executor"]["instances"] == plan["configuration"]["executors"]
    assert spec["executor"]["cores"] == plan["configuration"]["cores_per_executor"]


def test_a_spec_and_a_command_line_get_the_same_plan(asked: Asked) -> None:
    case = asked.case
    cores = case.space.executors_per_node * case.space.cores_per_executor
    pinned = {
        "shuffle_partitions": case.space.shuffle_partitions,
        "trigger": None if case.space.trigger_s is None else f"{case.space.trigger_s:g}s",
    }
    spec = {
        "apiVersion": "headway/v1",
        "kind": "StreamingJob",
        "metadata": {"name": "job"},
        "spec": {
            "profile": asked.profile.name,
            "rate": asked.rate,
            "target": asked.target,
            "confidence": case.confidence,
            "pinned": {key: value for key, value in pinned.items() if value is not None},
            "cluster": {
                "platform": "standalone",
                # Figures on the command line are what executors get.
                "reserved_cores": 0,
                "reserved_memory": "0m",
                "node": {"name": "box", "cores": cores, "memory": "256Gi", "price_per_hour": 0.5},
                "max_nodes": case.space.max_nodes,
                "cores_per_executor": case.space.cores_per_executor,
            },
        },
    }
    asked.spec_file.write_text(yaml.safe_dump(spec), encoding="utf-8")
    by_spec = asked.printed("plan", str(asked.spec_file), "--json")
    options = [*asked.options(), "--node-type", f"box:cores={cores},memory=256Gi,price=0.5"]
    by_options = asked.printed("plan", str(asked.profile), *options, "--json")
    assert by_spec[0] == by_options[0]
    first, second = (json.loads(out) for _, out in (by_spec, by_options))
    # Who said what the node keeps is the one thing that may differ.
    assert first["node_type"].pop("reserved_by") != second["node_type"].pop("reserved_by")
    assert first == second
