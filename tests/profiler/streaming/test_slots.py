"""Slots are those on which tasks ran, with their cause where the log names it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import headway
from headway.api.profile import profile_and_tables
from headway.domain import ApplicationProfile, Configuration
from headway.errors import InputError
from headway.profiler.stage_totals import StageTotals, most_waited_for
from headway.profiler.streaming.slots import setting_seen
from headway.report.profiles import profile_summary
from headway.report.sheet_text import sheet_text
from headway.report.stream import stream_sheet
from headway.sparkconf import spark_conf, task_cpus_of, task_limit
from tests.profiler.event_log import EPOCH_S, AppLog, Query, Stage, Work, write_plain

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


def slots_of(
    properties: dict[str, str], cores: int, *at_once: int | None
) -> tuple[int | None, list[str]]:
    """Tasks at once on an executor by the most of some stages, and notes."""
    stages: list[dict[str, Any]] = [
        {"most_at_once": number, "resource_profile_id": 0} for number in at_once
    ]
    setting, _, notes = setting_seen(
        properties, {0: (1, cores)}, stages, {}, shuffle_partitions=4, trigger_s=1.0
    )
    return setting.tasks_per_executor, notes


def test_few_or_unlike_stages_show_no_limit() -> None:
    assert slots_of({}, 8, 2, 2, None)[0] is None
    assert slots_of({}, 8, 2, 3, 4, 5, 6, 7)[0] is None
    assert slots_of({}, 8, 2, 2, 2, 1)[0] == 2
    assert slots_of({"spark.task.cpus": "4"}, 8, 2, 2, 2)[0] is None


def test_contradictions_are_noted() -> None:
    limit, notes = slots_of(GPU, 8, 5, 6, 8)
    assert limit is None
    assert "but 8 ran at once" in notes[0]
    _, notes = slots_of({"spark.task.cpus": "0.5"}, 2, 5, 5, 5)
    assert "more than the 4 that spark.task.cpus=0.5 has room for" in notes[0]


@pytest.mark.parametrize(
    ("each", "amount", "num_tasks"),
    [("1", "2", 2), ("2", "5", 2), ("0.25", "1", 4), ("0.33333", "2", 6), ("0.3", "1", 3)],
)
def test_amounts_limit_tasks_as_in_spark(each: str, amount: str, num_tasks: int) -> None:
    limit = task_limit(
        {"spark.task.resource.gpu.amount": each, "spark.executor.resource.gpu.amount": amount}
    )
    assert limit is not None
    assert limit[0] == num_tasks
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
    assert slots_of({"spark.task.cpus": "1"}, 1, 2, 2, 2, 2)[1] == []
    assert slots_of({}, 1, 2, 2, 2, 2)[1] == []
    _, (note,) = slots_of({"spark.task.cpus": "0.5"}, 1, 3, 3, 3, 3)
    assert "up to 3 tasks ran at once on an executor of 1 core" in note


def batch_job(*stages: Work, **properties: str) -> AppLog:
    """The log of a batch job on an executor of eight cores that runs two tasks at once."""
    log = AppLog(executors=(2,))
    log.end(log.add_job(stages, EPOCH_S + 1.0))
    for event in log.of("ExecutorAdded"):
        event["Executor Info"]["Total Cores"] = 8
    for event in log.of("EnvironmentUpdate"):
        event["Spark Properties"] |= properties
    return log


def batch_profile_of(log: AppLog, folder: Path) -> ApplicationProfile:
    profile, _ = profile_and_tables(write_plain(log.lines, folder / "log"), None)
    assert isinstance(profile, ApplicationProfile)
    return profile


def test_batch_jobs_count_resources_too(tmp_path: Path) -> None:
    amounts = {"spark.task.resource.gpu.amount": "1", "spark.executor.resource.gpu.amount": "2"}
    log = batch_job(Work(task_s=(1.0,) * 16), **amounts)
    profile = batch_profile_of(log, tmp_path)
    assert (profile.cluster.tasks_per_executor, profile.cluster.num_slots) == (2, 2)
    assert any("2 tasks at a time on an executor" in note for note in profile.notes)
    plan = headway.plan(profile, target="deadline <= 30s", max_nodes=8)
    blind = replace(profile, cluster=replace(profile.cluster, tasks_per_executor=None))
    # Sixteen seconds of work on two slots an executor, not on eight.
    assert plan.feasible
    assert plan.run.mean_s == pytest.approx(9.0, abs=0.5)
    assert headway.plan(blind, target="deadline <= 30s").run.mean_s == pytest.approx(9.0, abs=0.5)
    assert "spark.task.resource.gpu.amount=1" in headway.emit(plan, "spark-submit").text
    place = tmp_path / "batch.profile.yaml"
    profile.save(place)
    assert "tasks_per_executor: 2" in place.read_text(encoding="utf-8")


def test_batch_jobs_with_resource_profiles_say_so(tmp_path: Path) -> None:
    log = batch_job(Work(task_s=(1.0,) * 4))
    for event in log.of("StageCompleted"):
        event["Stage Info"]["Resource Profile Id"] = 2
    profile = batch_profile_of(log, tmp_path)
    assert any("resource profiles of the job's code (2)" in note for note in profile.notes)


# A barrier stage, whose six tasks start together.

TOGETHER = Stage(num_tasks=None, per_row_s=20e-6, is_barrier=True)
SIX_AT_ONCE = "barrier stage, whose 6 tasks start together: there are 4 slots"


@pytest.fixture(scope="module", params=[0, 1])
def together(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> headway.JobProfile:
    """Of a job whose first or second stage is a barrier stage, on eight slots."""
    stages = [READ, replace(TOGETHER, is_barrier=False)]
    stages[request.param] = replace(stages[request.param], is_barrier=True)
    log = AppLog(executors=(8,)).add(replace(QUERY, jobs=(stages,)))
    profile = profile_of(log, tmp_path_factory.mktemp("together"))
    assert profile.stages[request.param].is_barrier
    return profile


def test_a_barrier_stage_has_a_slot_for_each_task(together: headway.JobProfile) -> None:
    assert "a barrier stage: a slot for each of its tasks" in profile_summary(together)
    assert headway.predict(together, cores=6).stable
    with pytest.raises(InputError, match=SIX_AT_ONCE):
        headway.predict(together, cores=4)


def test_no_plan_has_fewer_slots_than_a_barrier_stage_has_tasks(
    together: headway.JobProfile,
) -> None:
    usual = replace(
        together, stages=tuple(replace(stage, is_barrier=None) for stage in together.stages)
    )
    question: dict[str, Any] = {"rate": "5k/s", "target": "p99 <= 30s", "cores": 4}
    assert headway.plan(usual, partitions=6, **question).nodes == 1
    plan = headway.plan(together, partitions=6, **question)
    assert plan.feasible
    assert plan.nodes == 2
    assert any(SIX_AT_ONCE in rejection.reason for rejection in plan.rejected)
    with_one = headway.plan(together, partitions=6, max_nodes=1, **question)
    assert not with_one.feasible
    assert SIX_AT_ONCE in with_one.binding[0]
    if together.stages[1].is_barrier:
        assert headway.plan(together, **question).configuration.shuffle_partitions <= 4


def test_more_tasks_than_slots_are_no_barrier(tmp_path: Path) -> None:
    """The log contradicts itself: Spark would have failed the job."""
    log = AppLog(executors=(4,)).add(replace(QUERY, jobs=((READ, TOGETHER),)))
    assert not profile_of(log, tmp_path).stages[1].is_barrier


# Stage-level scheduling: the second stage asks for a GPU for each task, by a profile in the code.

INFER = Stage(num_tasks=None, per_row_s=60e-6, slots=1, resource_profile_id=1)


def log_with_profiles(
    *stages: Stage,
    executors: tuple[int, ...] = (4,),
    of_task: dict[int, dict[str, float]],
    of_executor: dict[int, dict[str, float]],
) -> AppLog:
    """The log of a job whose stages have resource profiles, with these as Spark writes them."""
    log = AppLog(executors=executors).add(replace(QUERY, jobs=(stages,), rate_per_s=7_000.0))
    for profile_id in sorted(of_task.keys() | of_executor.keys()):
        requests = {
            f"{owner} Resource Requests": {
                name: {"Resource Name": name, "Amount": amount, "Vendor": ""}
                for name, amount in amounts.get(profile_id, {}).items()
            }
            for owner, amounts in (("Task", of_task), ("Executor", of_executor))
        }
        added = {"Event": "SparkListenerResourceProfileAdded", "Resource Profile Id": profile_id}
        log.events.insert(2, added | requests)
    return log


@pytest.fixture(scope="module")
def inferring(tmp_path_factory: pytest.TempPathFactory) -> headway.JobProfile:
    """Four slots, but one GPU on an executor."""
    log = log_with_profiles(
        READ,
        INFER,
        of_task={0: {"cpus": 1.0}, 1: {"cpus": 1.0, "gpu": 1.0}},
        of_executor={0: {"cores": 4, "gpu": 1}},
    )
    return profile_of(log, tmp_path_factory.mktemp("inferring"))


def test_a_stage_with_a_resource_profile_has_slots_of_its_own(
    inferring: headway.JobProfile, tmp_path: Path
) -> None:
    assert inferring.baseline.num_slots == 4
    read, infer = inferring.stages
    assert read.resources is None
    assert infer.resources is not None
    assert (infer.resources.slots_ratio, infer.usable_slots(4)) == (0.25, 1)
    assert infer.resources.needs == "cpus=1, gpu=1"
    (note,) = slot_notes(inferring)
    assert "resource profile 1 of the job's code ran 1 task at a time on an executor" in note
    assert "the others 4 (cpus=1, gpu=1)" in note
    assert "; cpus=1, gpu=1: 0.25 times the slots" in profile_summary(inferring)
    (seen,) = inferring.settings
    assert seen.modelled_duration_mean_s == pytest.approx(seen.batch_duration_mean_s, rel=0.03)
    place = tmp_path / "job.profile.yaml"
    inferring.save(place)
    assert headway.load_profile(place).stages[1].resources == infer.resources


def test_predictions_and_plans_count_the_slots_of_each_stage(
    inferring: headway.JobProfile,
) -> None:
    twice = headway.predict(inferring, executors=2)
    assert twice.batch_duration is not None
    read, infer = inferring.stages
    rows = inferring.arrivals.rate_per_s * 3.0
    infer_s = infer.task_fixed_s * 6 + infer.task_per_row_s * rows
    # Six tasks on two slots are even.
    assert twice.phases_s["stage 1"] == pytest.approx(infer_s / 2, rel=0.1)
    plan = headway.plan(inferring, rate="20k/s", target="p99 <= 8s", max_nodes=20)
    blind = replace(inferring, stages=(read, replace(infer, resources=None)))
    assert plan.nodes > headway.plan(blind, rate="20k/s", target="p99 <= 8s", max_nodes=20).nodes


def test_a_job_whose_stages_all_have_a_profile_counts_by_it(tmp_path: Path) -> None:
    stages = [replace(stage, slots=2, resource_profile_id=3) for stage in (READ, INFER)]
    log = log_with_profiles(
        *stages, of_task={0: {"cpus": 1.0}, 3: {"cpus": 2.0}}, of_executor={0: {"cores": 4}}
    )
    profile = profile_of(log, tmp_path)
    assert profile.baseline.num_slots == 2
    assert [stage.resources for stage in profile.stages] == [None, None]
    assert any("its stages ran with resource profile 3 of the job's" in x for x in profile.notes)


def test_executors_of_a_profile_are_counted_for_its_stages(tmp_path: Path) -> None:
    """With dynamic allocation; a plan, which is for a fixed number of executors, is refused."""
    log = log_with_profiles(
        replace(READ, slots=4),
        replace(INFER, slots=2),
        executors=(4, 2),
        of_task={0: {"cpus": 1.0}, 1: {"cpus": 1.0, "gpu": 1.0}},
        of_executor={0: {"cores": 4}, 1: {"cores": 2, "gpu": 2}},
    )
    log.of("ExecutorAdded")[1]["Executor Info"]["Resource Profile Id"] = 1
    profile = profile_of(log, tmp_path)
    assert (profile.baseline.executors, profile.baseline.num_slots) == (1, 4)
    resources = profile.stages[1].resources
    assert resources is not None
    assert (resources.slots_ratio, resources.has_own_executors) == (0.5, True)
    assert headway.predict(profile).stable
    with pytest.raises(InputError, match=r"stage 1 has executors of its own.*dynamic allocation"):
        headway.plan(profile, rate="20k/s", target="p99 <= 20s")


# Fractional cores per task, since Spark 4.3: eight tasks at once on four cores.

HALVES = {"spark.task.cpus": "0.5"}


def test_fractions_of_a_core_make_more_slots_than_cores(tmp_path: Path) -> None:
    log = log_of(cores=4, at_once=8, **HALVES)
    profile = profile_of(log, tmp_path)
    assert (profile.baseline.task_cpus, profile.baseline.num_slots) == (0.5, 8)
    assert not slot_notes(profile)
    (seen,) = profile.settings
    assert seen.modelled_duration_mean_s == pytest.approx(seen.batch_duration_mean_s, rel=0.03)
    assert headway.predict(profile, cores=2).configuration.num_slots == 4
    # A whole number is asked for: the job is then submitted with it.
    assert headway.predict(profile, task_cpus=1).configuration.num_slots == 4
    place = tmp_path / "job.profile.yaml"
    profile.save(place)
    assert headway.load_profile(place).baseline == profile.baseline


def test_a_plan_of_fractions_carries_them(tmp_path: Path) -> None:
    profile = profile_of(log_of(cores=4, at_once=8, **HALVES), tmp_path)
    plan = headway.plan(profile, rate="20k/s", target="p99 <= 20s", max_nodes=20)
    assert plan.configuration.num_slots == 8 * plan.nodes
    assert "(0.5 per task)" in sheet_text(stream_sheet(plan))
    assert "spark.task.cpus=0.5" in headway.emit(plan, "spark-submit").text
    assert not any("spark.task.cpus" in change.setting for change in plan.changes)


@pytest.mark.parametrize(
    ("cores", "each", "num_slots"),
    [(4, 0.5, 8), (4, 0.3, 13), (1, 0.1, 10), (8, 1.5, 5), (3, 2, 1), (4, 1, 4)],
)
def test_slots_are_whole_tasks(cores: int, each: float, num_slots: int) -> None:
    setting = Configuration(
        executors=2, cores_per_executor=cores, shuffle_partitions=8, trigger_s=1.0, task_cpus=each
    )
    assert setting.num_slots == 2 * num_slots
    assert task_cpus_of({"spark.task.cpus": str(each)}) == each


def test_whole_cores_stay_whole() -> None:
    setting = Configuration(
        executors=1, cores_per_executor=4, shuffle_partitions=8, trigger_s=1.0, task_cpus=2.0
    )
    assert spark_conf(setting, executor_memory=None)["spark.task.cpus"] == "2"
    for unusable in (0.0, -1.0, 1e-9, float("nan")):
        with pytest.raises(ValueError, match="task_cpus"):
            replace(setting, task_cpus=unusable)
