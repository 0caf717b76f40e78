"""What the log of a batch job says of its run time: its work, its longest tasks, what it lacks."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headway
from headway.api.page import page as page_of
from headway.api.result_kinds import sheet_of
from headway.cli.main import run
from headway.domain import ApplicationProfile, Deadline, FindingCode, Share
from headway.domain.application_profile import OtherStages
from headway.domain.configuration import Cluster
from headway.errors import InputError
from headway.formats.as_json import deadline_json, json_text
from headway.formats.from_json import parse_any_plan
from headway.formats.profile_file import dump_profile
from headway.planner.kinds.batch_run_time import BatchRunTime
from headway.planner.kinds.deadline import plan_for_deadline
from headway.planner.kinds.recorded_job import batch_graph, is_complete
from headway.report.batch_explanation import batch_explanation_text
from headway.report.sheet_text import sheet_text
from headway.words import all_words
from tests.domain.test_application_profile import a_batch_application, a_recorded_stage
from tests.planner.test_deadline import NODE, a_long_job
from tests.seeds import seeds

SLOTS = (1, 2, 5, 9, 17, 40, 160)


def a_few_long_tasks() -> ApplicationProfile:
    """25 tasks of 100 s among 75 of half a second, on 40 slots, behind a minute of the driver."""
    stage = a_recorded_stage(
        num_tasks=100, num_finished=100, task_mean_s=25.4, task_sd_s=43.3,
        task_max_s=101.0, submitted_s=60.0, completed_s=190.0,
    )  # fmt: skip
    profile = a_batch_application(stages=(stage,), duration_s=190.0, driver_only_s=60.0)
    return replace(profile, cluster=Cluster(executors=40, executors_mean=20, cores_per_executor=1))


def test_no_run_time_is_below_the_recorded_work_or_the_longest_task() -> None:
    profile = a_few_long_tasks()
    job = BatchRunTime.of(profile, 40)
    work_s = profile.stages[0].task_time_s + profile.other_stages.task_time_s
    for slots in SLOTS:
        assert job.mean_s(slots) >= 60.0 + work_s / slots
        assert job.mean_s(slots) >= job.floor_s() == 60.0 + 101.0
        assert job.least_s(slots, 0.95) <= job.planned_s(slots, 0.95)
    assert job.mean_s(40) == pytest.approx(190.0)


def test_tasks_that_overlap_on_record_do_not_make_the_recorded_run_longer() -> None:
    """1000 tasks of 10 ms on two slots, which took 4 s: each was counted for 2 ms too long."""
    stage = a_recorded_stage(
        num_tasks=1000, num_finished=1000, task_mean_s=0.01, task_sd_s=0.001,
        task_max_s=0.02, submitted_s=2.0, completed_s=6.0,
    )  # fmt: skip
    profile = a_batch_application(
        stages=(stage,), duration_s=6.0, driver_only_s=2.0, other_stages=OtherStages()
    )
    job = BatchRunTime.of(profile, 2)
    for slots, stages_s in ((1, 8.0), (2, 4.0), (8, 1.0)):
        assert job.mean_s(slots) == pytest.approx(2.0 + stages_s, rel=0.02)
        assert job.least_s(slots, 0.95) <= job.planned_s(slots, 0.95)
    assert job.mean_s(2) == pytest.approx(profile.duration_s)


def test_tasks_do_not_vary_by_more_than_their_longest_shows() -> None:
    """A lognormal with their standard deviation has a longest value of nearly three times that."""
    profile = a_few_long_tasks()
    (stage,) = batch_graph(profile).stages
    assert stage.cv < 0.5 * 43.3 / 25.4
    assert BatchRunTime.of(profile, 40).modelled_ratio == pytest.approx(1.0, abs=0.15)
    spread_as_lognormal = replace(profile.stages[0], task_max_s=300.0)
    (stage,) = batch_graph(replace(profile, stages=(spread_as_lognormal,))).stages
    assert stage.cv == pytest.approx(43.3 / 25.4)


@pytest.mark.parametrize("seed", seeds(20, 200))
def test_bounds_hold_for_every_job_number_of_slots_and_speed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    stages, ended_s, chain_s = [], 0.0, 0.0
    for number in range(int(rng.integers(1, 6))):
        mean_s, num_tasks = float(rng.uniform(0.1, 20.0)), int(rng.integers(1, 120))
        longest_s = mean_s * (1.0 if num_tasks == 1 else float(rng.uniform(1.0, 30.0)))
        span_s = longest_s * float(rng.uniform(1.0, 2.0))
        stages.append(
            a_recorded_stage(
                id=number, num_tasks=num_tasks, num_finished=num_tasks, task_mean_s=mean_s,
                task_sd_s=mean_s * float(rng.uniform(0.0, 3.0)), task_max_s=longest_s,
                submitted_s=ended_s + 0.1, completed_s=ended_s + 0.1 + span_s,
            )
        )  # fmt: skip
        ended_s, chain_s = ended_s + 0.1 + span_s, chain_s + longest_s
    driver_s = ended_s * float(rng.uniform(0.0, 1.0))
    profile = a_batch_application(
        stages=tuple(stages), duration_s=ended_s + driver_s, driver_only_s=driver_s
    )
    work_s = sum(stage.task_time_s for stage in stages) + profile.other_stages.task_time_s
    speed = float(rng.uniform(0.5, 2.0))
    seen_slots = int(rng.integers(1, 60))
    # Tasks overlapped on record if they had too few slots for their work.
    work_s = min(work_s, ended_s * seen_slots)
    as_recorded = BatchRunTime.of(profile, seen_slots)
    assert as_recorded.mean_s(seen_slots) == pytest.approx(ended_s + driver_s)
    job = BatchRunTime.of(profile, seen_slots, speed)
    assert job.floor_s() == pytest.approx(driver_s + chain_s / speed)
    for slots in SLOTS:
        mean_s = job.mean_s(slots)
        assert mean_s >= (driver_s + work_s / slots / speed) * (1.0 - 1e-9)
        assert mean_s >= job.floor_s() * (1.0 - 1e-9)
        assert job.least_s(slots, 0.9) <= job.planned_s(slots, 0.9)


def test_of_a_run_shorter_than_its_model_the_driver_is_not_scaled() -> None:
    stages = tuple(replace(stage, task_sd_s=8.0) for stage in a_long_job().stages)
    profile = replace(a_long_job(), stages=stages, duration_s=221.0)
    job = BatchRunTime.of(profile, 8)
    assert job.modelled_ratio < 0.99
    assert job.parts_s(8)["driver"] == profile.driver_only_s
    assert job.mean_s(8) == pytest.approx(221.0)
    plan = plan_for_deadline(profile, Deadline(limit_s=500.0), [NODE])
    text = " ".join(batch_explanation_text(plan).split())
    assert "the time of the stages is scaled to it, that of the driver was measured" in text


def test_a_task_that_outlived_its_stage_is_not_part_of_the_floor() -> None:
    stages = tuple(replace(stage, task_max_s=500.0) for stage in a_long_job().stages)
    job = BatchRunTime.of(replace(a_long_job(), stages=stages), 8)
    assert job.floor_s() == pytest.approx(20.0 + 105.0 + 104.0)


def lacking(**changes: Any) -> ApplicationProfile:
    profile = a_long_job()
    return replace(profile, coverage=replace(profile.coverage, **changes))


def failed_last(**changes: Any) -> ApplicationProfile:
    return replace(lacking(**changes), num_jobs_failed=1, last_job_failed=1)


def with_unfinished_stage() -> ApplicationProfile:
    first, second = a_long_job().stages
    return replace(a_long_job(), stages=(first, replace(second, num_finished=60)))


LACKING: dict[str, tuple[Callable[[], ApplicationProfile], str]] = {
    "end": (lambda: lacking(has_end=False), "the log lacks its end:"),
    "failed": (failed_last, "the last job failed, so that the run may have ended early:"),
    "failed task": (
        lambda: failed_last(tasks=Share(seen=300, expected=400)),
        "the last job failed and 100 of 400 tasks did not finish, so that the run may have",
    ),
    "start": (lambda: lacking(has_start=False), "the log lacks its start:"),
    "both": (lambda: lacking(has_start=False, has_end=False), "lacks its start and its end:"),
    "all": (
        lambda: lacking(has_start=False, has_end=False, tasks=Share(seen=300, expected=400)),
        "the log lacks its start, its end and 100 of 400 tasks:",
    ),
    "compacted": (lambda: lacking(compacted=True), "the log lacks its start:"),
    "parts": (lambda: lacking(missing_parts=1), "the log has gaps:"),
    "tasks": (lambda: lacking(tasks=Share(seen=300, expected=400)), "lacks 100 of 400 tasks:"),
    "stage": (with_unfinished_stage, "the log lacks 140 of 400 tasks:"),
}


@pytest.mark.parametrize("name", LACKING)
def test_the_plan_of_an_incomplete_log_says_so_and_is_not_calibrated(name: str) -> None:
    make, words = LACKING[name]
    profile = make()
    assert not is_complete(profile)
    plan = plan_for_deadline(profile, Deadline(limit_s=250.0), [NODE])
    assert plan.feasible
    assert not plan.calibrated
    assert plan.modelled_ratio == 1.0
    assert plan.kept_probability is None
    assert plan.findings[0].code is FindingCode.LOG_INCOMPLETE
    data = json.loads(json_text(deadline_json(plan)))
    assert (data["calibrated"], data["kept_probability"]) == (False, None)
    assert words in data["warnings"][0]
    for text in (sheet_text(sheet_of(plan)), batch_explanation_text(plan)):
        assert words in " ".join(text.split())
        assert "% certain" not in text
        assert "for the recorded part of the job" in text
    assert words in page_of(plan)
    again = parse_any_plan(json_text(data), name="plan")
    assert sheet_text(sheet_of(again)) == sheet_text(sheet_of(plan))
    infeasible = plan_for_deadline(profile, Deadline(limit_s=10.0), [NODE])
    assert infeasible.findings[0].code is FindingCode.LOG_INCOMPLETE


def test_where_an_incomplete_log_stops_does_not_make_the_job_faster() -> None:
    cut = replace(lacking(has_end=False), duration_s=60.0)
    assert BatchRunTime.of(cut, 8).mean_s(8) > 200.0


def test_the_command_says_that_the_log_is_incomplete_and_fails_if_strict(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "cut.profile.yaml"
    path.write_text(dump_profile(lacking(has_end=False)), encoding="utf-8")
    arguments = ["plan", str(path), "--target", "deadline <= 250s"]
    assert run([*arguments, "--strict"]) == 5
    assert "note: the log lacks its end:" in capsys.readouterr().out
    assert run([*arguments, "--quiet"]) == 0
    assert "for the recorded part of the job" in capsys.readouterr().out
    assert run([*arguments, "--format", "spark-defaults"]) == 0
    emitted = capsys.readouterr().out
    assert "# caution: the log of the profiled run may lack a part of it" in emitted
    assert "outside the profiled range" not in emitted
    assert run(["plan", str(path), "--target", "deadline <= 5s"]) == 3
    assert "note: the log lacks its end:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("rows_ratio", "cause"),
    [
        (None, ": skew or a slow start, which more nodes do not fix"),
        (4.0, ": skew, which more nodes do not fix"),
        (1.04, ", but no task read more than 1.0 times the mean rows: a slow start, or rows that"),
    ],
)
def test_a_long_task_is_skew_only_if_tasks_read_unequal_rows(
    rows_ratio: float | None, cause: str
) -> None:
    first, second = a_long_job().stages
    first = replace(first, task_max_s=16.0, largest_task_ratio=rows_ratio)
    profile = replace(a_long_job(), stages=(first, second))
    plan = plan_for_deadline(profile, Deadline(limit_s=400.0), [NODE])
    (text,) = (text for text in all_words(plan.findings) if "longest task" in text)
    assert f"16.0 s, 4.0 times the mean{cause}" in text


def test_executors_that_came_and_went_are_named() -> None:
    profile = a_long_job()
    varied = replace(profile.cluster, executors_mean=1.3)
    properties = {"spark.dynamicAllocation.enabled": "true"}
    dynamic = replace(profile.application, properties=properties)

    def notes(**changes: Any) -> str:
        job = replace(profile, **changes)
        return " ".join(all_words(plan_for_deadline(job, Deadline(limit_s=250.0), [NODE]).findings))

    words = "allocated executors dynamically, 2 executors at most and 1.3 on average"
    assert words in notes(cluster=varied, application=dynamic)
    assert words not in notes(application=dynamic)
    # Executors that started late were there for a part of the time, too.
    assert words not in notes(cluster=varied)


def test_a_failed_job_is_said_once() -> None:
    plan = plan_for_deadline(failed_last(), Deadline(limit_s=250.0), [NODE])
    codes = [finding.code for finding in plan.findings]
    assert FindingCode.JOBS_FAILED not in codes
    others = replace(failed_last(), num_jobs_failed=2)
    plan = plan_for_deadline(others, Deadline(limit_s=250.0), [NODE])
    assert "2 jobs failed in the profiled run" in all_words(plan.findings)


def test_a_few_missing_tasks_are_no_reason() -> None:
    profile = lacking(tasks=Share(seen=398, expected=400))
    plan = plan_for_deadline(profile, Deadline(limit_s=250.0), [NODE])
    assert plan.calibrated
    assert plan.kept_probability is not None


@pytest.mark.parametrize("num_seen", [0, 1, 199])
def test_with_less_than_half_of_the_tasks_there_is_no_plan(num_seen: int) -> None:
    profile = lacking(has_end=False, tasks=Share(seen=num_seen, expected=400))
    with pytest.raises(InputError, match=rf"only {num_seen} of 400 tasks .*a finished run"):
        headway.plan(profile, target="deadline <= 250s")
