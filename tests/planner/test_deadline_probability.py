"""How likely a batch job keeps its deadline, in every answer that holds one."""

from __future__ import annotations

import html
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from headway import plan as plan_job
from headway.api.page import page as page_of
from headway.api.results import as_text
from headway.domain import ApplicationProfile, Deadline, Verdict
from headway.formats.as_json import deadline_json, json_text
from headway.formats.from_json import parse_any_plan
from headway.planner.kinds.batch_run_time import BatchRunTime, seen_slots_of
from headway.planner.kinds.deadline import plan_for_deadline
from headway.planner.question import SearchSpace
from headway.spec.declared_batch import declared_application
from headway.words import certainty_text
from tests.planner.test_deadline import a_long_job
from tests.spec.test_declared_batch import REPORT

SPACE = SearchSpace(max_nodes=8, executors_per_node=1, cores_per_executor=4)
JOBS = {"profiled": a_long_job(), "declared": declared_application("report", REPORT, 1500.0)}


def run_time(profile: ApplicationProfile) -> BatchRunTime:
    return BatchRunTime.of(profile, seen_slots_of(profile))


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("confidence", [0.2, 0.5, 0.8, 0.95])
@pytest.mark.parametrize("slots", [4, 16, 64])
def test_it_is_the_confidence_where_the_deadline_is_the_planned_run_time(
    job: str, confidence: float, slots: int
) -> None:
    found = run_time(JOBS[job])
    limit_s = found.planned_s(slots, confidence)
    assert found.kept_probability(slots, limit_s) == pytest.approx(confidence, abs=1e-5)


@pytest.mark.parametrize("job", JOBS)
def test_a_later_deadline_is_kept_more_likely(job: str) -> None:
    found = run_time(JOBS[job])
    middle_s = found.mean_s(8)
    limits_s = np.geomspace(middle_s / 3.0, 3.0 * middle_s, 30)
    likely = [found.kept_probability(8, limit_s) for limit_s in limits_s]
    assert likely == sorted(likely)
    assert likely[0] < 0.01 < 0.99 < likely[-1]


def test_certain_figures_are_kept_for_sure_or_not_at_all() -> None:
    sure = declared_application(
        "report", replace(REPORT, work_s=type(REPORT.work_s).exactly(36_000.0)), 1500.0
    )
    found = run_time(sure)
    expected_s = found.mean_s(40)
    assert found.kept_probability(40, 1.001 * expected_s) > 0.99
    assert found.kept_probability(40, 0.999 * expected_s) < 0.01


@pytest.mark.parametrize("job", JOBS)
def test_the_verdict_agrees_with_the_plan(job: str) -> None:
    profile = JOBS[job]
    shortest_s = plan_for_deadline(profile, Deadline(limit_s=1e-3), [SPACE]).run
    seen = set()
    for ratio in np.geomspace(0.3, 3.0, 24):
        plan = plan_for_deadline(profile, Deadline(limit_s=shortest_s.mean_s * ratio), [SPACE])
        assert plan.kept_probability is not None
        assert (plan.verdict is Verdict.KEPT) is plan.feasible
        assert (plan.kept_probability >= plan.confidence) is plan.feasible
        seen.add(plan.verdict)
    assert seen == set(Verdict)


def test_an_open_verdict_is_said_with_what_would_settle_it() -> None:
    shortest = plan_for_deadline(JOBS["profiled"], Deadline(limit_s=1e-3), [SPACE]).run
    plan = plan_for_deadline(JOBS["profiled"], Deadline(limit_s=1.02 * shortest.mean_s), [SPACE])
    assert plan.verdict is Verdict.TOO_CLOSE
    assert plan.kept_probability is not None
    text = " ".join(as_text(plan).split())
    certainty = certainty_text(plan.kept_probability, plan.confidence)
    assert certainty.endswith("% certain, 95% asked")
    assert text.startswith(f"infeasible: {plan.deadline} is {certainty} ")
    assert "would narrow the uncertainty of its run time from" in text
    page = html.unescape(page_of(plan)).replace("\u00a0", " ")
    assert f"Infeasible: {plan.deadline} is {certainty}" in page
    assert "95% asked" in page
    # The same job profiled at the size in question has nothing more to learn.
    slots = SPACE.num_slots(plan.nodes)
    settled = replace(
        JOBS["profiled"],
        cluster=replace(
            JOBS["profiled"].cluster, executors=slots // 4, executors_mean=float(slots // 4)
        ),
    )
    again = plan_for_deadline(
        settled, Deadline(limit_s=run_time(settled).mean_s(slots) * 1.02), [SPACE]
    )
    assert again.verdict is Verdict.TOO_CLOSE
    assert not again.advice


def test_a_plan_that_is_far_from_its_edge_says_nothing_of_settling() -> None:
    plan = plan_for_deadline(JOBS["profiled"], Deadline(limit_s=1e4), [SPACE])
    assert not plan.advice
    assert "; more than 99% certain" in " ".join(as_text(plan).split())


@pytest.mark.parametrize("limit_s", [60.0, 110.0, 1e4])
def test_json_says_it_and_is_read_back(limit_s: float) -> None:
    plan = plan_for_deadline(JOBS["profiled"], Deadline(limit_s=limit_s), [SPACE])
    written = json.loads(json_text(deadline_json(plan)))
    assert written["verdict"] == str(plan.verdict)
    assert math.isclose(written["kept_probability"], plan.kept_probability or 0.0, rel_tol=1e-5)
    read = parse_any_plan(json_text(deadline_json(plan)), name="plan")
    assert read.verdict is plan.verdict
    # Files of before have neither.
    for key in ("kept_probability", "verdict", "advice"):
        del written[key]
    assert parse_any_plan(json.dumps(written), name="plan").verdict is None


def test_the_library_says_the_same() -> None:
    plan = plan_job(JOBS["profiled"], target=Deadline(limit_s=600.0), max_nodes=8)
    assert plan.kept_probability is not None
    assert plan.kept_probability >= plan.confidence
