"""Slots are those on which tasks ran, with their cause where the log names it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import headway
from headway.domain import Configuration
from headway.profiler.stage_totals import StageTotals, most_waited_for
from headway.profiler.streaming.slots import slots_seen
from headway.sparkconf import task_limit
from tests.profiler.event_log import AppLog, Query, Stage, write_plain

READ = Stage(num_tasks=6, per_row_s=100e-6)
QUERY = Query(jobs=((READ, Stage(num_tasks=None, per_row_s=20e-6)),), partitions=6, trigger_s=3.0)
GPU = {"spark.task.resource.gpu.amount": "1", "spark.executor.resource.gpu.amount": "1"}


def log_of(*, cores: int, at_once: int, **properties: str) -> AppLog:
    """The log of an executor with more cores than tasks at once."""
    log = AppLog(executors=(at_once,)).add(QUERY)
    for event in log.of("ExecutorAdded"):
        event["Executor Info"]["Total Cores"] = cores
    for event in log.of("EnvironmentUpdate"):
        event["Spark Properties"] |= properties
    return log


def profile_of(log: AppLog, folder: Path) -> headway.JobProfile:
    return headway.profile(write_plain(log.lines, folder / "log"))


def slot_notes(profile: headway.JobProfile) -> list[str]:
    return [note for note in profile.notes if "on an executor" in note]


def test_a_resource_that_limits_tasks_is_named(tmp_path: Path) -> None:
    profile = profile_of(log_of(cores=8, at_once=1, **GPU), tmp_path)
    assert profile.baseline.tasks_per_executor == 1
    assert profile.baseline.num_slots == 1
    (note,) = slot_notes(profile)
    assert "spark.task.resource.gpu.amount=1 of 1: 1 task at a time on an executor" in note
    (seen,) = profile.settings
    # With eight slots, batches would take an eighth of the time.
    assert seen.modelled_duration_mean_s == pytest.approx(seen.batch_duration_mean_s, rel=0.03)
    place = tmp_path / "job.profile.yaml"
    profile.save(place)
    assert headway.load_profile(place).baseline == profile.baseline


def test_plans_count_the_slots_that_were_seen(tmp_path: Path) -> None:
    profile = profile_of(log_of(cores=8, at_once=1, **GPU), tmp_path)
    more_cores = headway.predict(profile, cores=32)
    assert more_cores.configuration.num_slots == 1
    assert headway.predict(profile, executors=4).configuration.num_slots == 4
    plan = headway.plan(profile, rate="20k/s", target="p99 <= 20s", max_nodes=20)
    assert plan.feasible
    assert plan.configuration.num_slots == plan.configuration.executors
    emitted = headway.emit(plan, "spark-submit").text
    for key, amount in GPU.items():
        assert f"{key}={amount}" in emitted


def test_a_resource_of_any_name_limits_tasks_and_is_carried(tmp_path: Path) -> None:
    amounts = {"spark.task.resource.npu.amount": "2", "spark.executor.resource.npu.amount": "5"}
    profile = profile_of(log_of(cores=8, at_once=2, **amounts), tmp_path)
    assert profile.baseline.tasks_per_executor == 2
    (note,) = slot_notes(profile)
    assert "spark.task.resource.npu.amount=2 of 5: 2 tasks at a time on an executor" in note
    plan = headway.plan(profile, rate="20k/s", target="p99 <= 20s", max_nodes=20)
    emitted = headway.emit(plan, "spark-submit").text
    for key, amount in amounts.items():
        assert f"{key}={amount}" in emitted
    labels = {setting.key: setting.setting for setting in plan.settings}
    assert labels["spark.task.resource.npu.amount"] == "npu of a task"


def test_without_a_named_cause_the_tasks_count(tmp_path: Path) -> None:
    profile = profile_of(log_of(cores=8, at_once=3), tmp_path)
    assert profile.baseline.num_slots == 3
    (note,) = slot_notes(profile)
    assert "never more than 3 tasks ran at once on an executor of 8 cores" in note
    assert "no setting in the log says why" in note


def test_all_slots_in_use_need_no_note(tmp_path: Path) -> None:
    profile = profile_of(log_of(cores=4, at_once=4), tmp_path)
    assert profile.baseline.tasks_per_executor is None
    assert not slot_notes(profile)


def stages(*at_once: int | None) -> list[dict[str, Any]]:
    return [{"most_at_once": number} for number in at_once]


def test_few_or_unlike_stages_show_no_limit() -> None:
    assert slots_seen({}, 8, stages(2, 2, None)).tasks_per_executor is None
    assert slots_seen({}, 8, stages(2, 3, 4, 5, 6, 7)).tasks_per_executor is None
    assert slots_seen({}, 8, stages(2, 2, 2, 1)).tasks_per_executor == 2
    assert slots_seen({"spark.task.cpus": "4"}, 8, stages(2, 2, 2)).tasks_per_executor is None


def test_contradictions_are_noted() -> None:
    seen = slots_seen(GPU, 8, stages(5, 6, 8))
    assert seen.tasks_per_executor is None
    assert "but 8 ran at once" in seen.notes[0]
    shared = slots_seen({"spark.task.cpus": "0.5"}, 2, stages(4, 4, 4))
    assert "more than the 2 that spark.task.cpus=0.5 has room for" in shared.notes[0]


@pytest.mark.parametrize(
    ("each", "amount", "num_tasks"),
    [("1", "2", 2), ("2", "5", 2), ("0.25", "1", 4), ("0.33333", "2", 6), ("0.3", "1", 3)],
)
def test_amounts_limit_tasks_as_in_spark(each: str, amount: str, num_tasks: int) -> None:
    limit = task_limit(
        {"spark.task.resource.gpu.amount": each, "spark.executor.resource.gpu.amount": amount}
    )
    assert limit is not None
    assert limit.num_tasks == num_tasks
    assert task_limit({"spark.task.resource.gpu.amount": each}) is None
    assert task_limit({**GPU, "spark.task.resource.gpu.amount": "much"}) is None


def test_tasks_at_once_add_up_from_pieces_in_any_order() -> None:
    spans = [
        (0, 10, "1", 0), (0, 10, "1", 1), (0, 30, "2", 2), (10, 20, "1", 3), (5, 40, "2", 4),
    ]  # fmt: skip
    assert most_waited_for(spans) == most_waited_for(spans[::-1]) == 2
    one, other = StageTotals(spans=set(spans[:2])), StageTotals(spans=set(spans[1:]))
    one.add(other)
    assert one.spans == set(spans)
    assert most_waited_for(spans[:1]) is None


def test_a_limit_is_of_each_executor() -> None:
    setting = Configuration(
        executors=3, cores_per_executor=8, shuffle_partitions=8, trigger_s=1.0, tasks_per_executor=2
    )
    assert setting.num_slots == 6
    assert replace(setting, tasks_per_executor=None).num_slots == 24
    assert replace(setting, task_cpus=8).num_slots == 3
    with pytest.raises(ValueError, match="tasks_per_executor"):
        replace(setting, tasks_per_executor=0)


def test_an_amount_of_a_task_alone_is_the_likely_cause(tmp_path: Path) -> None:
    """What executors have of it may be in a resource profile, or in the cluster's defaults."""
    task_alone = {key: amount for key, amount in GPU.items() if key.startswith("spark.task.")}
    profile = profile_of(log_of(cores=8, at_once=3, **task_alone), tmp_path)
    assert profile.baseline.num_slots == 3
    (note,) = slot_notes(profile)
    assert "likely because of spark.task.resource.gpu.amount=" in note


def test_more_tasks_than_whole_cores_are_only_believed_of_shares_of_cores() -> None:
    """The driver notes the end of a task late: the next one seems to run beside it."""
    stages = [{"most_at_once": 2}] * 4
    assert slots_seen({"spark.task.cpus": "1"}, 1, stages).notes == ()
    assert slots_seen({}, 1, stages).notes == ()
    (note,) = slots_seen({"spark.task.cpus": "0.5"}, 1, stages).notes
    assert "up to 2 tasks ran at once on an executor of 1 core" in note
