"""Run times of jobs that end, beside a deadline: in its unit, and on their side of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headway.api.result_kinds import sheet_of
from headway.domain import Deadline
from headway.domain.sheet import Sheet
from headway.planner.kinds.deadline import plan_for_deadline
from headway.planner.question import SearchSpace
from headway.report.deadline import run_time_texts
from headway.units import parse_duration_s
from tests.planner.test_deadline import NODE, a_long_job


def fact_of(sheet: Sheet, label: str) -> str:
    return next(fact[1] for fact in sheet.facts if fact[0] == label)


@pytest.mark.parametrize(
    ("limit_s", "unit"), [(262.0, "s"), (240.0, "min"), (886.0, "s"), (840.0, "min")]
)
def test_run_times_have_the_unit_of_the_deadline(limit_s: float, unit: str) -> None:
    profile = replace(a_long_job(), duration_s=1200.0, driver_only_s=60.0)
    space = SearchSpace(max_nodes=8, executors_per_node=1, cores_per_executor=4)
    plan = plan_for_deadline(profile, Deadline(limit_s=limit_s), [space])
    sheet = sheet_of(plan)
    texts = [*fact_of(sheet, "run time").split(" expected"), *plan.binding]
    (table,) = (part for part in sheet.sections if part.title == "run time by nodes")
    cells = [cell.strip("* ") for row in table.rows for cell in row[1:3]]
    units = {cell.rpartition(" ")[2] for cell in cells}
    assert str(plan.deadline).endswith(f" {unit}")
    if unit == "s":
        assert units == {"s"}
        assert not any(" min" in text for text in texts)


def test_a_run_time_just_above_the_deadline_does_not_read_as_the_deadline() -> None:
    frontier = plan_for_deadline(a_long_job(), Deadline(limit_s=1e4), [NODE]).frontier
    rounded_s = {float(f"{point.planned_s:.3g}"): point.planned_s for point in frontier}
    limits_s = [limit_s for limit_s, planned_s in rounded_s.items() if limit_s < planned_s]
    assert limits_s
    for limit_s in limits_s:
        plan = plan_for_deadline(a_long_job(), Deadline(limit_s=limit_s), [NODE])
        (table,) = (part for part in sheet_of(plan).sections if part.title == "run time by nodes")
        for row in table.rows:
            text, verdict = row[2].strip("* "), row[3]
            assert (parse_duration_s(text) <= limit_s) == (verdict == "met")


def test_the_floor_and_the_nearest_plan_have_it_too() -> None:
    profile = replace(a_long_job(), duration_s=1200.0, driver_only_s=400.0)
    plan = plan_for_deadline(profile, Deadline(limit_s=262.0), [NODE])
    assert not plan.feasible
    assert fact_of(sheet_of(plan), "physical floor") == "416 s"
    assert all(" min" not in text for text in plan.binding)


@pytest.mark.parametrize("limit_s", [10.0, 30.0, 3600.0])
def test_the_run_time_of_the_plan_is_that_of_its_row(limit_s: float) -> None:
    """It was "675 s" above a table that said "11.3 min", and "0.119 min" of an hour."""
    short = replace(a_long_job(), duration_s=1200.0, driver_only_s=60.0)
    plan = plan_for_deadline(short, Deadline(limit_s=limit_s), [NODE])
    (table,) = (part for part in sheet_of(plan).sections if part.title == "run time by nodes")
    row = table.rows[table.marks.index(">" if plan.feasible else "~")]
    expected, planned = row[1], row[2].strip("* ")
    run_time = fact_of(sheet_of(plan), "run time")
    assert run_time.startswith(f"{expected} expected, up to {planned} with 95% confidence")


def test_one_sentence_has_one_unit() -> None:
    """It was "120 s expected, up to 2.41 min of 2.41 min"."""
    for duration_s in (90.0, 95.0):
        short = replace(a_long_job(), duration_s=duration_s, driver_only_s=0.9 * duration_s)
        plan = plan_for_deadline(short, Deadline(limit_s=150.0), [NODE])
        texts = run_time_texts(plan)
        assert len({text.rpartition(" ")[2] for text in texts}) == 1, texts
