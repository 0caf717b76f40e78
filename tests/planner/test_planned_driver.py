"""The driver of plans, of queries of one application, and of fleets: what it gets."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

import headway
from headway.cli.main import run
from headway.domain import Application, JobProfile, Plan
from headway.formats.as_json import json_text, plan_json
from headway.formats.from_json import parse_plan
from headway.models.job.driver_load import DriverWork, planned_driver
from headway.report.driver import driver_text
from headway.report.sheet_text import sheet_text
from headway.report.stream import stream_sheet
from tests.factories import a_profile, kept

HEAD = """\
apiVersion: headway/v1
kind: QuerySchedule
metadata: {name: many}
spec:
  cores: 16
"""
QUERY = (
    "  - {{name: q{at}, declared: {{source_partitions: 1, task_per_row: 1us, task_fixed: 5ms, "
    "driver: {driver}ms}}, rate: 1k/s, target: p99 <= 30s, trigger: 1s}}\n"
)


def planned(profile: JobProfile) -> Plan:
    return kept(headway.plan(profile, rate=5000.0, target="p99 <= 30s", cores=4, trigger="1s"))


def with_driver(profile: JobProfile, ratio: float, **properties: str) -> JobProfile:
    """The job with driver phases so many times as long, and settings of its application."""
    application = replace(profile.application, properties=properties)
    phases = tuple(replace(one, mean_s=ratio * one.mean_s) for one in profile.driver_phases)
    return replace(profile, applications=(application,), driver_phases=phases)


def test_a_driver_with_room_keeps_the_defaults_of_spark() -> None:
    plan = planned(a_profile())
    assert plan.driver is not None
    assert plan.driver.cores == 1
    assert 0.0 < plan.driver.utilization_ratio < 0.2
    assert not [key for key in plan.spark_conf if key.startswith("spark.driver")]
    assert "such queries that saturate it" in sheet_text(stream_sheet(plan))


def test_a_busy_driver_gets_cores_and_says_why(tmp_path: Path) -> None:
    # 810 ms of phases in each second: more than seven tenths of a core at the upper end.
    plan = planned(with_driver(a_profile(), 10.0))
    assert plan.driver is not None
    assert plan.driver.needed_cores == 2
    assert plan.spark_conf["spark.driver.cores"] == "2"
    text = str(headway.emit(plan, "spark-defaults"))
    assert "cores that the queries need of their driver" in text
    manifest = yaml.safe_load(str(headway.emit(plan, "kubeflow")))
    assert manifest["spec"]["driver"]["cores"] == 2
    assert "spark.driver.cores" not in manifest["spec"]["sparkConf"]


def test_one_query_takes_and_several_take() -> None:
    for num_queries, start in ((1, "1 query takes "), (2, "2 queries take ")):
        driver = planned_driver([DriverWork(0.1, 1.0)] * num_queries)
        assert driver_text(driver).startswith(start)


def test_a_driver_that_had_more_keeps_it() -> None:
    properties = {"spark.driver.cores": "4", "spark.driver.memory": "4g"}
    plan = planned(with_driver(a_profile(), 10.0, **properties))
    assert plan.driver is not None
    assert plan.driver.cores == 4
    assert not [key for key in plan.spark_conf if key.startswith("spark.driver")]
    # The settings of a local run are those of its executor.
    local = with_driver(a_profile(), 10.0, **properties)
    application = Application(id="local-1", name="a", spark_version="4.3.0", properties=properties)
    of_local = planned(replace(local, applications=(application,)))
    assert of_local.spark_conf["spark.driver.cores"] == "2"


def test_the_driver_of_a_plan_is_read_back_and_may_be_missing() -> None:
    plan = planned(a_profile())
    written = plan_json(plan)
    again = parse_plan(json_text(written), name="plan.json")
    assert again.driver is not None
    assert plan.driver is not None
    assert again.driver.knee_queries == pytest.approx(plan.driver.knee_queries, rel=1e-5)
    without = {key: value for key, value in written.items() if key != "driver"}
    assert parse_plan(json_text(without), name="plan.json").driver is None


def a_schedule(
    folder: Path, num_queries: int, driver_cores: int | None = None, *, driver_ms: int = 400
) -> str:
    file = folder / "many.yaml"
    given = "" if driver_cores is None else f"  driver_cores: {driver_cores}\n"
    queries = "".join(QUERY.format(at=at, driver=driver_ms) for at in range(num_queries))
    file.write_text(f"{HEAD}{given}  queries:\n{queries}")
    return str(file)


def test_queries_of_one_application_share_its_driver(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["schedule", a_schedule(tmp_path, 2, driver_ms=100), "--policy", "fcfs", "--json"]
    run(arguments)
    driver = json.loads(capsys.readouterr().out)["driver"]
    run(["schedule", a_schedule(tmp_path, 4, driver_ms=100), *arguments[2:]])
    twice = json.loads(capsys.readouterr().out)["driver"]
    assert driver["num_queries"] == 2
    assert twice["busy_cores"] == pytest.approx(2.0 * driver["busy_cores"])
    assert driver["needed_cores"] == 1


def test_a_schedule_says_that_the_driver_is_saturated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["schedule", a_schedule(tmp_path, 4, driver_cores=1), "--policy", "fcfs"])
    printed = " ".join(capsys.readouterr().out.split())
    assert "The driver is saturated: 4 queries take 1" in printed
    assert "spark.driver.cores=" in printed
    run(["schedule", a_schedule(tmp_path, 4), "--policy", "fcfs"])
    assert "saturated:" not in capsys.readouterr().out


def test_a_fleet_refuses_an_application_whose_driver_is_too_small(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("cvxpy")
    a_schedule(tmp_path, 4, driver_cores=1)
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(
        "apiVersion: headway/v1\nkind: CapacityPlan\nmetadata: {name: fleet}\nspec:\n"
        "  catalog:\n    currency: USD\n    date: 2026-11-01\n"
        "    nodes: [{name: small, cores: 4, memory: 16g, price_per_hour: 0.1}]\n"
        "  jobs:\n  - {name: many, file: many.yaml}\n"
        "  pools: [{name: shared, cores_per_executor: 4}]\n"
    )
    assert run(["capacity", str(fleet)]) == 3
    printed = " ".join(capsys.readouterr().out.split())
    assert "4 queries saturate a driver of 1 core" in printed
    assert "driver_cores: " in printed
