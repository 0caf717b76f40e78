"""Declared figures of a batch job stand for a run that was just like that."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway import plan as plan_job
from headway.domain import Z90, ApplicationProfile, Deadline
from headway.models.job.declared import work_at
from headway.planner.kinds.batch_run_time import expected_run_time_s
from headway.spec.declared_batch import declared_application
from headway.spec.forms.quantities import Quantity
from headway.spec.kinds.jobs import DeclaredBatch
from headway.words import all_words
from tests.oracles.stage_dag import simulated_lognormal_stage_dag

REPORT = DeclaredBatch(
    work_s=Quantity(low=30_000.0, mid=36_000.0, high=60_000.0),
    driver_s=Quantity.exactly(60.0),
    num_tasks=400,
    num_stages=3,
    executor_memory_bytes=8 * 2**30,
)


def nodes(declared: DeclaredBatch, deadline_s: float, end: str | None = None) -> int:
    profile = declared_application("report", declared, deadline_s, end=end)
    plan = plan_job(profile, target=Deadline(limit_s=deadline_s), max_nodes=500)
    assert plan.feasible
    return plan.nodes


def test_all_work_is_in_its_stages() -> None:
    profile = declared_application("report", REPORT, 1500.0)
    assert profile.provenance == "declared"
    assert sum(stage.task_time_s for stage in profile.stages) == pytest.approx(36_000.0)
    assert profile.driver_only_s == 60.0
    assert [stage.parents for stage in profile.stages] == [(), (0,), (1,)]


def test_the_run_that_stands_for_it_is_modelled_as_it_is() -> None:
    profile = declared_application("report", REPORT, 1500.0)
    slots = profile.cluster.num_slots
    assert slots is not None
    assert expected_run_time_s(profile, slots) == pytest.approx(profile.duration_s)


@pytest.mark.parametrize("deadline_s", [700.0, 1500.0, 4000.0])
def test_enough_and_not_far_more_than_the_work_fills(deadline_s: float) -> None:
    found = nodes(REPORT, deadline_s, "mid")
    least = 36_000.0 / (deadline_s - 60.0) / REPORT.cores_per_executor
    # Beyond the bulk of its work each stage waits for the last of its tasks.
    assert least < found < 2.5 * least


def test_a_wider_range_and_an_earlier_deadline_need_more() -> None:
    sure = replace(REPORT, work_s=Quantity.exactly(36_000.0))
    assert nodes(sure, 1500.0) < nodes(REPORT, 1500.0)
    assert nodes(REPORT, 3000.0) < nodes(REPORT, 1500.0)


@given(
    work_s=st.floats(1.0, 1e7),
    num_tasks=st.integers(1, 100_000),
    num_stages=st.integers(1, 100),
    cores=st.integers(1, 64),
    deadline_s=st.floats(1.0, 1e6),
)
def test_any_figures_make_a_profile(
    work_s: float, num_tasks: int, num_stages: int, cores: int, deadline_s: float
) -> None:
    declared = DeclaredBatch(
        work_s=Quantity.exactly(work_s),
        num_tasks=num_tasks,
        num_stages=num_stages,
        cores_per_executor=cores,
    )
    profile = declared_application("any", declared, deadline_s)
    assert profile.duration_s >= profile.driver_only_s
    assert len(profile.stages) == num_stages


def simulated_s(profile: ApplicationProfile, slots: int) -> float:
    """The mean run time of the job, task by task on the slots."""
    stages = profile.stages
    trace = simulated_lognormal_stage_dag(
        [
            (stage.num_tasks, stage.task_mean_s, (stage.task_sd_s or 0.0) / stage.task_mean_s)
            for stage in stages
        ],
        [stage.parents for stage in stages],
        slots,
        num_replications=20,
        seed=1,
    )
    return profile.driver_only_s + float(trace.run_time_s.mean())


def test_the_plan_is_in_time_at_the_upper_end_and_one_node_fewer_is_not() -> None:
    """The whole range of the work counts, and nothing beside it."""
    profile = declared_application("report", REPORT, 1500.0)
    plan = plan_job(profile, target=Deadline(limit_s=1500.0), max_nodes=500)
    at_end = work_at(profile, Z90)
    assert sum(stage.task_time_s for stage in at_end.stages) == pytest.approx(60_000.0)
    assert simulated_s(at_end, 4 * plan.nodes) <= 1500.0
    assert simulated_s(at_end, 4 * (plan.nodes - 1)) > 1500.0
    assert plan.run.planned_s == pytest.approx(simulated_s(at_end, 4 * plan.nodes), rel=0.03)
    assert plan.run.mean_s == pytest.approx(simulated_s(profile, 4 * plan.nodes), rel=0.03)


def test_certain_work_needs_no_margin_and_nothing_is_changed() -> None:
    sure = replace(REPORT, work_s=Quantity.exactly(36_000.0))
    profile = declared_application("report", sure, 1500.0)
    plan = plan_job(profile, target=Deadline(limit_s=1500.0), max_nodes=500)
    assert plan.run.planned_s == plan.run.mean_s
    assert plan.changes == ()
    assert not plan.calibrated
    assert plan.declared == profile.declared
    assert (
        all_words(plan.findings)[0] == "based on declared costs: nothing of this job was measured"
    )


def test_one_end_of_the_range_is_certain() -> None:
    """A fleet asks for one end after the other and adds no margin of its own."""
    high = declared_application("report", REPORT, 1500.0, end="high")
    assert sum(stage.task_time_s for stage in high.stages) == pytest.approx(60_000.0)
    plan = plan_job(high, target=Deadline(limit_s=1500.0), max_nodes=500)
    assert plan.run.planned_s == plan.run.mean_s
