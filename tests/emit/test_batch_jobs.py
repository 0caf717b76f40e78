"""Plans of batch jobs in every format: nothing of a query in them."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from headway.api.specs import plan_spec
from headway.cli.main import run
from headway.domain import BatchAnswer, DeadlinePlan
from headway.emitters import ALL_FORMATS
from headway.emitters.difference import only_what_differs, reasons_text
from headway.emitters.submission import Submission
from headway.formats.as_json import deadline_json, json_text
from headway.formats.from_json import parse_any_plan
from headway.sparkconf import parse_properties

ROOT = Path(__file__).parents[2]
TOTALS = str(ROOT / "configs" / "nightly-totals.yaml")
NIGHTLY = Submission(name="nightly", spark_version="4.1.2", node_type="m6i.xlarge")


@pytest.fixture(scope="module")
def plan() -> BatchAnswer:
    found = plan_spec(TOTALS).plan
    assert isinstance(found, DeadlinePlan)
    # Cores that every platform has.
    conf = {**found.spark_conf, "spark.executor.cores": "4"}
    return replace(found, cores_per_executor=4, spark_conf=conf)


def text_of(name: str, plan: BatchAnswer) -> str:
    return ALL_FORMATS[name].render(plan, version="9.8.7", submission=NIGHTLY)


@pytest.mark.parametrize("name", ALL_FORMATS)
def test_no_format_speaks_of_a_query(name: str, plan: BatchAnswer) -> None:
    text = text_of(name, plan)
    for word in ("trigger", "Stream", "STREAMING", "continuous", "maxOffsets", "Always"):
        assert word not in text


@pytest.mark.parametrize("name", [n for n, each in ALL_FORMATS.items() if each.has_comments])
def test_run_time_and_deadline_stand_on_top(name: str, plan: BatchAnswer) -> None:
    text = text_of(name, plan)
    assert "# target: deadline <= 90.0 s\n" in text
    assert "# predicted: run time " in text
    missed = replace(plan, feasible=False)
    assert text_of(name, missed).startswith("# !!! INFEASIBLE: no configuration meets")


def test_each_platform_ends_the_job(plan: BatchAnswer) -> None:
    kubeflow = yaml.safe_load(text_of("kubeflow", plan))
    assert kubeflow["spec"]["restartPolicy"] == {"type": "Never"}
    assert json.loads(text_of("emr-serverless", plan))["mode"] == "BATCH"
    (job,) = yaml.safe_load(text_of("databricks", plan))["resources"]["jobs"].values()
    assert set(job) == {"name", "job_clusters", "tasks"}
    assert parse_properties(text_of("spark-defaults", plan)) == dict(plan.spark_conf)


def test_the_snippet_configures_a_builder(plan: BatchAnswer) -> None:
    text = text_of("pyspark", plan)
    names = {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    assert names == {"configure"}


def test_a_plan_is_read_back_from_its_json(plan: BatchAnswer) -> None:
    text = json_text(deadline_json(plan))
    again = parse_any_plan(text, name="plan.json")
    assert isinstance(again, DeadlinePlan)
    assert again.spark_conf == plan.spark_conf
    assert again.run.planned_s == pytest.approx(plan.run.planned_s, rel=1e-5)
    assert json_text(deadline_json(again)) == text


def test_only_what_differs(plan: BatchAnswer) -> None:
    current = {"spark.executor.cores": "4", "spark.executor.memory": "4096m"}
    left = only_what_differs(plan, current).spark_conf
    assert set(left) == {"spark.executor.instances", "spark.dynamicAllocation.enabled"}
    assert "spark.executor.memory: stays 4096m" in reasons_text(plan, current, version="1")


def test_the_command_takes_specs_and_plans(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["emit", TOTALS, "--format", "kubeflow"]) == 0
    from_spec = yaml.safe_load(capsys.readouterr().out)
    assert from_spec["metadata"] == {"name": "nightly-totals", "namespace": "data"}
    assert run(["plan", TOTALS, "--json"]) == 0
    path = tmp_path / "plan.json"
    path.write_text(capsys.readouterr().out)
    assert run(["emit", str(path), "--format", "spark-submit"]) == 0
    assert "spark.executor.instances=" in capsys.readouterr().out
    assert run(["simulate", str(path), "--rate-trace", str(ROOT / "examples" / "burst.csv")]) == 2
    assert "the plan of a batch job" in capsys.readouterr().err
