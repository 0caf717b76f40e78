"""The plan of a batch job in words: what is in it, where that is from, that it fits a terminal."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import headway
from headway.api.explain import explain
from headway.assumptions import predictions
from headway.domain import BatchAnswer
from headway.formats.as_json import json_text, plan_json
from headway.planner.kinds.batch_run_time import expected_run_time_s
from headway.report.assumptions import batch_assumptions_of
from headway.report.deadline import deadline_sheet
from headway.report.equations import equations
from headway.report.page import sheet_page
from headway.report.sheet_text import sheet_text
from headway.units import format_duration
from headway.words import all_words
from tests.factories import load_application_profile

EXAMPLES = Path(__file__).parents[2] / "examples"
PROFILE = load_application_profile(EXAMPLES / "nightly-totals.profile.yaml")
PLANS = {
    "in time": {"target": "deadline <= 70s"},
    "one node": {"target": "deadline <= 1h"},
    "too short": {"target": "deadline <= 5s", "max_nodes": 200},
    "cheapest": {"target": "deadline <= 5min", "objective": "cost", "node_types": ["m6i.xlarge"]},
    "shortest": {"target": "deadline <= 5min", "objective": "latency"},
}


@cache
def planned(name: str) -> BatchAnswer:
    options: Any = PLANS[name]
    answer: BatchAnswer = headway.plan(PROFILE, **options)
    return answer


def explained(plan: BatchAnswer) -> str:
    return " ".join(explain(plan).split())


@pytest.mark.parametrize("name", PLANS)
def test_every_plan_can_be_explained_within_a_terminal_and_from_its_file(
    name: str, tmp_path: Path
) -> None:
    text = explain(planned(name))
    assert all(len(line) <= 100 and line == line.rstrip() for line in text.splitlines())
    assert text.startswith("Answer\n")
    (tmp_path / "plan.json").write_text(json_text(plan_json(planned(name))))
    from_file = explain(tmp_path / "plan.json")
    # Files hold six digits, which four may be rounded from another way.
    price = re.compile(r"0\.0\d{3,}")
    assert price.sub("", from_file) == price.sub("", text)


def test_the_cost_of_a_run_has_its_currency() -> None:
    plan = planned("cheapest")
    assert plan.node_type is not None
    assert f" {plan.node_type.currency} per run." in explained(plan)
    assert plan.node_type.currency == "USD"


@pytest.mark.parametrize("name", PLANS)
def test_the_run_time_is_the_sum_of_its_parts(name: str) -> None:
    plan = planned(name)
    slots = plan.executors * int(plan.cores_per_executor / plan.task_cpus)
    assert sum(plan.parts_s.values()) == pytest.approx(plan.expected_s, rel=1e-12)
    assert plan.expected_s == pytest.approx(expected_run_time_s(PROFILE, slots), rel=1e-12)
    for part, part_s in plan.parts_s.items():
        share = part_s / plan.expected_s
        assert (f"{part} {format_duration(part_s)} {share:.0%}" in explained(plan)) == (
            share >= 0.005
        )
    # It took less than its model: the driver's time was measured, only the stages are scaled.
    assert plan.modelled_ratio < 1.0
    assert plan.parts_s["driver"] == PROFILE.driver_only_s


@pytest.mark.parametrize("name", PLANS)
def test_the_binding_constraint_assumptions_and_every_note_are_explained(name: str) -> None:
    plan = planned(name)
    for text in (*plan.binding, *all_words(plan.findings)):
        assert text in explained(plan)
    for one in batch_assumptions_of(plan):
        assert f"{one.name}: {one.text} (" in explained(plan)
    assert predictions.SPREAD_PER_DOUBLING_RATIO in batch_assumptions_of(plan)
    assert f"{plan.planned_s / plan.expected_s:.3g} times as long as expected" in explained(plan)
    for setting in plan.settings:
        assert f"{setting.key} {setting.value}" in explained(plan)


@pytest.mark.parametrize("name", PLANS)
def test_what_is_said_of_the_optimum_holds(name: str) -> None:
    plan = planned(name)
    limit_s = plan.deadline.limit_s
    fewer = [one for one in plan.frontier if one.nodes < plan.nodes]
    tried = f"Every number of nodes below {plan.nodes} was tried" in explained(plan)
    others = "the objective is not the fewest nodes" in explained(plan)
    none = "misses the deadline; (P16)" in explained(plan)
    assert (tried, others, none, "One node is the minimum." in explained(plan)).count(True) == 1
    assert none == (not plan.feasible)
    if plan.feasible and plan.nodes > 1:
        assert others == any(one.planned_s <= limit_s for one in fewer)


def test_a_table_without_prices_has_no_costs_and_a_page_no_marks() -> None:
    plan = planned("too short")
    sheet = deadline_sheet(plan)
    (table,) = (section for section in sheet.sections if section.title == "run time by nodes")
    assert table.head == ("nodes", "expected", "up to ", "deadline")
    assert "~ the nearest plan" in sheet_text(sheet)
    assert "~ the nearest plan" not in sheet_page(sheet)
    assert "~ the nearest plan" in explained(plan)
    priced = replace(plan, run=replace(plan.run, cost_per_run=1.25))
    (table,) = (
        section
        for section in deadline_sheet(priced).sections
        if section.title == "run time by nodes"
    )
    assert {row[-1] for row in table.rows} >= {"1.25"}


def test_equations_that_are_named_exist() -> None:
    known = {one.number for one in equations()}
    named = set(re.findall(r"\(([A-Z]\d+)\)", "".join(explain(planned(one)) for one in PLANS)))
    assert {"P2", "P16", "J1"} <= named <= known


def test_a_declared_job_says_so() -> None:
    from headway.api.specs import plan_spec

    plan = plan_spec(EXAMPLES.parent / "configs" / "nightly-report.yaml").plan
    text = explained(plan)
    assert "Declared costs low middle high" in text
    assert predictions.SPREAD_PER_DOUBLING_RATIO.name not in text
    assert predictions.USUAL_RUN_TO_RUN_RATIO not in batch_assumptions_of(plan)
    assert "on record" not in text


def test_a_part_that_this_version_does_not_have_is_shown_without_a_source(tmp_path: Path) -> None:
    data = json.loads(json_text(plan_json(planned("in time"))))
    data["parts_s"]["shuffle service"] = data["parts_s"].pop("driver")
    (tmp_path / "plan.json").write_text(json.dumps(data))
    (line,) = [
        line for line in explain(tmp_path / "plan.json").splitlines() if "shuffle service" in line
    ]
    assert line.endswith("no source recorded")


def test_a_file_of_an_earlier_version_has_no_parts(tmp_path: Path) -> None:
    data = json.loads(json_text(plan_json(planned("in time"))))
    del data["parts_s"]
    (tmp_path / "plan.json").write_text(json.dumps(data))
    assert explain(tmp_path / "plan.json") == explain(replace(planned("in time"), parts_s={}))
