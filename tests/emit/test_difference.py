"""What differs from today's settings, whatever their spelling."""

from __future__ import annotations

from headway.emitters.difference import (
    is_as_planned,
    merged_text,
    must_set_text,
    only_what_differs,
    reasons_text,
)
from headway.sparkconf import parse_properties
from tests.factories import a_plan

CURRENT = {
    "spark.executor.instances": "10",
    "spark.executor.memory": "8192m",
    "spark.dynamicAllocation.enabled": "FALSE",
    "spark.ui.port": "4040",
}


def test_spellings_of_one_value_are_one() -> None:
    conf = a_plan().spark_conf
    same = {key for key, planned in conf.items() if is_as_planned(key, planned, CURRENT)}
    assert same == {"spark.executor.memory", "spark.dynamicAllocation.enabled"}
    assert conf.keys() - same == {
        "spark.executor.instances",
        "spark.executor.cores",
        "spark.sql.shuffle.partitions",
    }
    # A bare number is MiB there.
    assert is_as_planned("spark.executor.memory", "8g", {"spark.executor.memory": "8192"})
    assert not is_as_planned("spark.executor.memory", "8g", {"spark.executor.memory": "big"})


def test_the_three_files_hold_what_they_say() -> None:
    plan = a_plan()
    must = parse_properties(must_set_text(plan, CURRENT, version="1"))
    merged = parse_properties(merged_text(plan, CURRENT, version="1"))
    assert must == dict(only_what_differs(plan, CURRENT).spark_conf)
    assert merged == {**CURRENT, **plan.spark_conf}
    assert {**CURRENT, **must}.items() <= {**merged, **CURRENT, **must}.items()
    text = reasons_text(plan, CURRENT, version="1")
    assert "spark.executor.instances: 10 -> 2 (was 1; applies when" in text
    assert "spark.executor.memory: stays 8192m" in text
    assert "spark.executor.cores: set to 4; not set before" in text
    assert "trigger: 2 seconds, in the query" in text


def test_nothing_differs_from_itself() -> None:
    plan = a_plan()
    assert not only_what_differs(plan, plan.spark_conf).spark_conf
    assert only_what_differs(plan, plan.spark_conf).query_options == plan.query_options
