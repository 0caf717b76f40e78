from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from headway.domain import (
    InfeasiblePlan,
    Interval,
    Prediction,
    StreamAnswer,
    Target,
)
from headway.formats.as_json import json_text, plan_json, prediction_json
from tests.factories import a_plan, a_prediction, an_infeasible_plan

PREDICTION_KEYS = {
    "schema",
    "stable",
    "utilization",
    "calibrated",
    "warnings",
    "batch_duration_s",
    "tuple_latency_s",
    "window_latency_s",
    "phases_s",
    "configuration",
}
PLAN_KEYS = {
    "schema",
    "nodes",
    "configuration",
    "spark_conf",
    "query_options",
    "frontier",
    "binding",
    "rejected",
    "feasible",
    "prediction",
}
MORE_KEYS = {
    "source_partitions",
    "driver",
    "writes",
    "bill_per_hour",
    "target",
    "rate_per_s",
    "arrivals",
    "planned_latency_s",
    "floor_s",
    "changes",
    "warnings",
    "confidence",
    "also",
    "promises",
    "objective",
    "cost_per_hour",
    "physical_floor_s",
    "refused_node_types",
    "node_type",
    "settings",
    "memory",
    "optimality",
    "nearest",
    "needs",
    "budget_per_hour",
    "sensitivities",
    "advice",
    "rules",
    "durations",
    "spark_version",
    "chosen",
    "findings",
    "declared",
    "after_start",
    "kept_probability",
    "verdict",
    "skew",
    "rates",
}
CONFIGURATION_KEYS = {
    "executors",
    "cores_per_executor",
    "shuffle_partitions",
    "trigger_s",
    "max_offsets_per_trigger",
    "task_cpus",
    "tasks_per_executor",
}


def read_back(obj: object) -> Any:
    def refuse(constant: str) -> float:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(json_text(obj), parse_constant=refuse)


def unstable(**changes: Any) -> Prediction:
    return a_prediction(stable=False, calibrated=False, **changes)


def test_a_prediction_has_the_keys_of_the_contract_and_a_few_more() -> None:
    found = read_back(prediction_json(a_prediction()))
    assert set(found) == PREDICTION_KEYS | {
        "arrivals",
        "source_partitions",
        "sustainable_rate_per_s",
        "overrun_probability",
        "findings",
        "provenance",
        "next_run",
        "restart",
        "gain_ratio",
        "offered_load",
        "stage_work",
    }
    assert found["schema"] == "headway.prediction/v1"
    assert set(found["configuration"]) == CONFIGURATION_KEYS
    assert found["tuple_latency_s"] == {
        "mean": 1.2,
        "p50": 1.1,
        "p95": 1.9,
        "p99": 2.3,
        "interval90": {"mean": [1.1, 1.3], "p99": [2.1, 2.6]},
    }
    assert set(found["batch_duration_s"]) >= {"mean", "p50", "p95", "p99"}
    assert found["window_latency_s"] is None
    assert found["phases_s"] == {"wait": 0.5, "plan": 0.1, "add_batch": 0.6}


def test_a_windowed_query_has_its_latency_in_the_same_shape() -> None:
    prediction = a_prediction()
    found = read_back(prediction_json(replace(prediction, window_latency=prediction.tuple_latency)))
    assert found["window_latency_s"] == found["tuple_latency_s"]


def test_not_stable_no_latency_is_quoted_whatever_the_prediction_holds() -> None:
    found = read_back(prediction_json(unstable()))
    assert found["stable"] is False
    for key in ("batch_duration_s", "tuple_latency_s", "window_latency_s"):
        assert found[key] is None


def test_what_has_no_bound_is_null() -> None:
    latency = a_prediction().tuple_latency
    assert latency is not None
    latency = replace(latency, interval90_p99_s=Interval(low=2.0, high=math.inf))
    prediction = a_prediction(tuple_latency=latency, sustainable_rate_per_s=math.inf)
    found = read_back(prediction_json(prediction))
    assert found["tuple_latency_s"]["interval90"]["p99"] == [2.0, None]
    assert found["sustainable_rate_per_s"] is None


def test_numbers_have_six_digits_and_counts_all_of_theirs() -> None:
    prediction = a_prediction(utilization_ratio=0.123456789)
    setting = replace(prediction.configuration, max_offsets_per_trigger=123_456_789)
    found = read_back(prediction_json(replace(prediction, configuration=setting)))
    assert found["utilization"] == 0.123457
    assert found["configuration"]["max_offsets_per_trigger"] == 123_456_789
    assert found["configuration"]["executors"] == 2


def test_a_number_that_is_none_is_refused_and_not_written() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_text(prediction_json(a_prediction(utilization_ratio=math.nan)))


def test_a_plan_has_the_keys_of_the_contract_and_a_few_more() -> None:
    plan = a_plan()
    found = read_back(plan_json(plan))
    assert set(found) == PLAN_KEYS | MORE_KEYS
    assert found["schema"] == "headway.plan/v1"
    assert found["prediction"] == read_back(prediction_json(plan.prediction))
    assert found["spark_conf"] == dict(plan.spark_conf)
    assert found["query_options"] == dict(plan.query_options)
    assert found["rate_per_s"] == 50000
    assert found["changes"][0]["applies"] == "new application"
    for row in found["frontier"]:
        assert set(row) == {
            "nodes",
            "sustainable_rate_per_s",
            "configuration",
            "calibrated",
            "cost_per_hour",
        }
    assert found["frontier"][0]["configuration"] is None
    assert set(found["frontier"][1]["configuration"]) == CONFIGURATION_KEYS
    (rejected,) = found["rejected"]
    assert set(rejected) == {"change", "configuration", "reason", "latency_s"}


@pytest.mark.parametrize("text", ["p99 <= 3s", "mean < 1s", "batch p99.9 <= 2s", "p5 <= 1m"])
def test_a_target_can_be_made_again_from_its_fields(text: str) -> None:
    target = Target.parse(text)
    found = read_back(plan_json(a_plan(target=target)))["target"]
    assert Target.parse(found["text"]) == target
    assert found["metric"] == target.metric
    assert found["quantile"] == pytest.approx(target.quantile)
    assert found["limit_s"] == target.limit_s


def over_capacity() -> InfeasiblePlan:
    return an_infeasible_plan(prediction=unstable(), planned_latency_s=math.inf, floor_s=math.inf)


@pytest.mark.parametrize("plan", [over_capacity(), a_plan()])
def test_a_floor_that_is_none_or_nowhere_is_null(plan: StreamAnswer) -> None:
    found = read_back(plan_json(plan))
    assert found["floor_s"] is None
    assert found["feasible"] is plan.feasible
