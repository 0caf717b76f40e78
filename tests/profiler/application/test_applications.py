"""Logs of batch and DStreams applications whose every cost is known, and real ones -> profiles."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

import headway
from headway.api.profile import profile_and_tables
from headway.domain import ApplicationProfile, RecordedStage
from headway.domain.application_profile import MOST_STAGES
from headway.errors import EventLogError
from headway.formats.profile_file import dump_profile
from headway.planner.kinds.batch_run_time import BatchRunTime
from headway.profiler import schema
from headway.profiler.application.applications import profile_application
from headway.profiler.collect import collect
from headway.profiler.contents import CollectedLogs, each_application
from headway.profiler.coverage import coverage_of
from headway.profiler.engines.in_process import read_in_process
from headway.profiler.logs.sources import EventLog, find_event_logs
from headway.profiler.logs.unpacking import unpack
from headway.profiler.pieces import pieces_of
from headway.report.profiles import profile_summary
from tests.factories import load_application_profile
from tests.profiler.event_log import EPOCH_S, AppLog, DStreams, Event, Work, write_plain
from tests.shared_data import EVENT_LOGS, RECORDED, needs

if TYPE_CHECKING:
    pass

SCAN = Work(
    task_s=(1.0, 1.0, 2.0, 4.0),
    outside_s=0.25,
    rows=(100, 100, 100, 500),
    rows_written=50,
    input_bytes=10_000,
    shuffle_bytes=600,
    peak_memory_bytes=7_000,
    python_s=3.5,
)
OTHER_SCAN = Work(task_s=(1.0, 1.0), rows=(10, 10), rows_written=10, shuffle_bytes=100)
JOIN = Work(
    task_s=(0.5, 1.5),
    parents=(0, 1),
    rows=(110, 110),
    shuffle_bytes=1_300,
    spilled_bytes=2_000,
    peak_memory_bytes=9_000,
)
STARTED_S = EPOCH_S + 30.0


def log(*, executors: tuple[int, ...] = (4, 4)) -> AppLog:
    return AppLog(app_id="app-1", executors=executors)


def joined() -> AppLog:
    """Two scans at the same time and a join behind them, then ten idle seconds and a scan."""
    written = log()
    ended_s = written.add_job([SCAN, OTHER_SCAN, JOIN], STARTED_S)
    ended_s = written.add_job([OTHER_SCAN], ended_s + 10)
    return written.end(ended_s + 2)


def without_end() -> AppLog:
    return joined().drop("ApplicationEnd")


def without_cores() -> AppLog:
    """As local mode was before Spark 1.4: the driver runs the tasks, and nobody added it."""
    written = joined().drop("ExecutorAdded", "LogStart")
    for event in written.of("TaskEnd"):
        event["Task Info"]["Executor ID"] = "<driver>"
    return written


def of_unknown_executor() -> AppLog:
    """A task ran on an executor that is not on record otherwise."""
    written = joined()
    written.of("TaskEnd")[0]["Task Info"]["Executor ID"] = "77"
    return written


def dynamic() -> AppLog:
    """The second of two executors goes half-way, a third of eight cores comes then."""
    written = AppLog(app_id="app-1", executors=(4, 4))
    written.add_job([Work(task_s=(100.0,))], EPOCH_S)
    for at_s, more in (
        (50.0, {"Event": schema.EXECUTOR_REMOVED, "Executor ID": "1"}),
        (51.0, _added("2", cores=8)),
    ):
        written.events.append({**more, "Timestamp": round(1000 * (EPOCH_S + at_s))})
    return written.end(EPOCH_S + 100)


def two_cores_per_task() -> AppLog:
    written = joined()
    written.of("EnvironmentUpdate")[0]["Spark Properties"]["spark.task.cpus"] = "2"
    return written


def without_stage_times() -> AppLog:
    """Stages whose submission, or completion, is null."""
    written = joined()
    for place, stage in enumerate(written.of("StageCompleted")):
        stage["Stage Info"]["Submission Time" if place % 2 else "Completion Time"] = None
    return written


def without_stage_ends() -> AppLog:
    return joined().drop("StageCompleted")


def set_back() -> AppLog:
    """While the second job ran, the clock was set back by an hour."""
    written = joined()
    job = written.of("JobStart")[1]
    job["Submission Time"] -= 3_600_000
    stage = written.of("StageCompleted")[-1]["Stage Info"]
    stage["Completion Time"] -= 3_600_000
    return written


def parents_last() -> AppLog:
    """The clock was set back by an hour before the join."""
    written = joined()
    join = written.of("StageCompleted")[2]["Stage Info"]
    for event in [join, *(e["Task Info"] for e in written.of("TaskEnd") if e["Stage ID"] == 2)]:
        for name in ("Submission Time", "Completion Time", "Launch Time", "Finish Time"):
            if name in event:
                event[name] -= 3_600_000
    return written


def retried() -> AppLog:
    """The first attempt of the large scan fails after three of four tasks; one is done again."""
    written = joined()
    events: list[Event] = []
    for event in written.events:
        info = event.get("Stage Info", {})
        if info.get("Stage ID") == 0 and event["Event"].endswith("StageCompleted"):
            again = copy.deepcopy(event)
            info["Failure Reason"] = "FetchFailed"
            again["Stage Info"] |= {
                "Stage Attempt ID": 1,
                "Number of Tasks": 1,
                "Completion Time": info["Completion Time"] + 6_000,
            }
            events += [event, again]
            continue
        events.append(event)
        of_scan = event["Event"].endswith("TaskEnd") and event["Stage ID"] == 0
        if of_scan and event["Task Info"]["Index"] == 3:
            again = copy.deepcopy(event)
            again["Stage Attempt ID"] = 1
            again["Task Info"]["Task ID"] += 1_000
            for name in ("Launch Time", "Finish Time"):
                again["Task Info"][name] += 6_000
            event["Task End Reason"] = {"Reason": "FetchFailed"}
            events.append(again)
    written.events = events
    return written


def failed() -> AppLog:
    """The second of two jobs fails."""
    written = joined()
    written.of("StageCompleted")[-1]["Stage Info"]["Failure Reason"] = "Job aborted: secret"
    written.of("JobEnd")[-1]["Job Result"] = {"Result": "JobFailed"}
    return written


def recovered() -> AppLog:
    """The first of two jobs fails, and the program goes on."""
    written = joined()
    written.of("StageCompleted")[2]["Stage Info"]["Failure Reason"] = "Job aborted"
    written.of("JobEnd")[0]["Job Result"] = {"Result": "JobFailed"}
    return written


def of_many_stages() -> AppLog:
    """Stages in one chain, light and heavy in turn, 120 of the heavy ones."""
    written = log()
    chain = [
        Work(
            task_s=(0.2 if place % 2 else 0.1,),
            parents=(place - 1,) if place else (),
            outside_s=0.01,
            shuffle_bytes=10,
        )
        for place in range(240)
    ]
    return written.end(written.add_job(chain, STARTED_S))


def of_many_jobs() -> AppLog:
    """A loop of 240 jobs of one task each, on eight slots."""
    written, ended_s = log(), STARTED_S
    for number in range(240):
        ended_s = written.add_job([Work(task_s=(0.2 if number % 2 else 0.1,))], ended_s + 0.05)
    return written.end(ended_s)


def of_many_wide_jobs() -> AppLog:
    """A loop of 240 jobs of four tasks each, on two slots."""
    written, ended_s = log(executors=(2,)), STARTED_S
    for _ in range(240):
        ended_s = written.add_job([Work(task_s=(0.2,) * 4)], ended_s + 0.05)
    return written.end(ended_s)


def with_empty_stage() -> AppLog:
    """The join waits for a stage whose tasks are not on record, and that for the scans."""
    written = joined()
    written.of("StageCompleted")[2]["Stage Info"]["Parent IDs"] = [3]
    events = written.of("StageCompleted")
    events[2]["Stage Info"]["Stage ID"] = 3
    events[3]["Stage Info"]["Stage ID"] = 4
    for event in written.of("TaskEnd"):
        event["Stage ID"] += event["Stage ID"] >= 2
    info = {**events[2]["Stage Info"], "Stage ID": 2, "Parent IDs": [0, 1], "Number of Tasks": 5}
    events[2]["Stage Info"]["Parent IDs"] = [2]
    written.events.append({**events[2], "Stage Info": info})
    return written


def without_tasks() -> AppLog:
    return joined().drop("TaskEnd")


def garbled() -> AppLog:
    """Numbers that cannot be, in one task each."""
    written = joined()
    first, second, *_ = written.of("TaskEnd")
    first["Task Info"]["Finish Time"] = 2**61
    second["Task Metrics"]["JVM GC Time"] = -5
    written.of("StageCompleted")[1]["Stage Info"]["Number of Tasks"] = -3
    written.of("StageCompleted")[2]["Stage Info"]["Parent IDs"] = [None, 0, 2, 900]
    written.of("ExecutorAdded")[0]["Timestamp"] = 2**61
    return written


def dstreams() -> AppLog:
    """Sixty batches, the first five slow."""
    run = DStreams(slowness=(6.0, 4.0, 3.0, 2.5, 2.0))
    return log().add_dstreams(run).end(EPOCH_S + 150)


def growing() -> AppLog:
    """Sixty batches, the last four times as long as the first."""
    return log().add_dstreams(DStreams(slowness=tuple(1.0 + number / 20 for number in range(60))))


def overloaded() -> AppLog:
    """Two jobs of a second and a half each two seconds."""
    job = (Work(task_s=(1.4,), rows=(100,)), Work(task_s=(0.1,), parents=(0,)))
    return log().add_dstreams(DStreams(num_batches=40, jobs=(job, job), noise=0.0))


def with_receiver() -> AppLog:
    return log().add_dstreams(DStreams(receiver=True))


def with_idle_batches() -> AppLog:
    """Of five batches one runs one stage only, and one runs nothing at all."""
    written = log().add_dstreams(DStreams(num_batches=50, noise=0.0))
    skipped = {job["Stage IDs"][0] for job in written.of("JobStart")[1::5]}
    gone = {stage for job in written.of("JobStart")[3::5] for stage in job["Stage IDs"]} | skipped
    written.events = [
        event
        for event in written.events
        if event.get("Stage ID", event.get("Stage Info", {}).get("Stage ID")) not in gone
    ]
    return written


def torn() -> AppLog:
    """The log ends between the two jobs of a batch, and one batch failed."""
    job = (Work(task_s=(0.2,)),)
    written = log().add_dstreams(DStreams(num_batches=20, jobs=(job, job), noise=0.0))
    last = written.of("JobStart")[-1]
    written.events = written.events[: written.events.index(last)]
    written.of("StageCompleted")[20]["Stage Info"]["Failure Reason"] = "lost"
    return written


def all_failed() -> AppLog:
    written = dstreams()
    for stage in written.of("StageCompleted"):
        stage["Stage Info"]["Failure Reason"] = "lost"
    return written


def _added(executor_id: str, *, cores: int) -> Event:
    return {
        "Event": schema.EXECUTOR_ADDED,
        "Executor ID": executor_id,
        "Executor Info": {"Host": "h", "Total Cores": cores},
    }


CASES: dict[str, Callable[[], AppLog]] = {
    case.__name__: case
    for case in (
        joined,
        without_end,
        without_cores,
        of_unknown_executor,
        dynamic,
        two_cores_per_task,
        without_stage_times,
        without_stage_ends,
        set_back,
        parents_last,
        retried,
        failed,
        recovered,
        of_many_stages,
        of_many_jobs,
        of_many_wide_jobs,
        with_empty_stage,
        without_tasks,
        garbled,
        dstreams,
        growing,
        overloaded,
        with_receiver,
        with_idle_batches,
        torn,
        all_failed,
    )
}


class Read(NamedTuple):
    """Logs as the pipeline read them, and where their plain lines are."""

    collected: CollectedLogs
    logs: dict[int, EventLog]
    folder: Path

    def profile(self, app: int) -> ApplicationProfile:
        of_app = each_application(self.collected)[app]
        facts = of_app.applications[app]
        coverage = coverage_of(facts, of_app.batches, self.logs[app])
        return profile_application(facts, of_app.stage_runs, coverage, "0.1.0")


def read(logs: tuple[EventLog, ...], folder: Path) -> Read:
    unpacked = unpack(logs, folder)
    collected = collect(pieces_of(folder), read_in_process)
    return Read(collected, dict(unpacked.logs), folder)


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Read:
    folder = tmp_path_factory.mktemp("applications")
    paths = [write_plain(case().lines, folder / name) for name, case in CASES.items()]
    return read(find_event_logs(paths).logs, folder / "work")


Profiled = Callable[[str], ApplicationProfile]


@pytest.fixture
def profiled(cases: Read) -> Profiled:
    """Call it with the name of a case."""
    by_name = {Path(log.name).name: app for app, log in cases.logs.items()}
    return lambda name: cases.profile(by_name[name])


def test_a_batch_application_is_its_stages(profiled: Profiled) -> None:
    profile = profiled("joined")
    assert profile.kind == "batch"
    assert profile.dstreams is None
    assert (profile.num_jobs, profile.num_jobs_failed) == (2, 0)
    assert [stage.id for stage in profile.stages] == [0, 1, 2, 3]
    assert [stage.job for stage in profile.stages] == [0, 0, 0, 1]
    assert [stage.parents for stage in profile.stages] == [(), (), (0, 1), ()]
    scan, _, join, _ = profile.stages
    assert (scan.num_tasks, scan.num_finished, scan.num_failed) == (4, 4, 0)
    assert scan.task_mean_s == pytest.approx(2.0)
    assert scan.task_sd_s == pytest.approx(math.sqrt(2))
    assert (scan.task_max_s, scan.task_fixed_s) == (4.0, 0.25)
    assert (scan.rows_read, scan.rows_written) == (800, 200)
    assert scan.largest_task_ratio == 2.5
    assert scan.gc_ratio == pytest.approx(0.25, rel=0.01)
    assert scan.cpu_ratio == pytest.approx(0.5)
    assert scan.python_ratio == pytest.approx(0.5)
    assert join.python_ratio is None
    assert (scan.input_bytes, scan.shuffle_write_bytes) == (40_000, 2_400)
    assert (join.shuffle_read_bytes, join.spilled_bytes) == (2_600, 4_000)
    assert (join.peak_task_bytes, profile.memory.peak_task_bytes) == (9_000, 9_000)
    assert profile.memory.spilled_bytes == 4_000
    assert profile.other_stages.num_stages == 0


def test_the_wall_clock_counts_from_the_start(profiled: Profiled) -> None:
    profile = profiled("joined")
    spans = [(s.submitted_s, s.completed_s) for s in profile.stages]
    assert spans == [
        pytest.approx(span) for span in ((30.0, 34.0), (30.0, 31.0), (34.0, 35.5), (45.5, 46.5))
    ]
    assert profile.started == "2026-09-21T14:13:20Z"
    assert profile.duration_s == pytest.approx(48.5)
    # Stages ran from 30 to 35.5 and from 45.5 to 46.5 s.
    assert profile.driver_only_s == pytest.approx(48.5 - 6.5)


def test_a_log_without_its_end_ends_with_its_last_stage(profiled: Profiled) -> None:
    profile = profiled("without_end")
    assert profile.duration_s == pytest.approx(46.5)
    assert not profile.coverage.has_end
    assert any("end of the log is missing" in note for note in profile.notes)


def test_executors_are_counted_over_time(profiled: Profiled) -> None:
    fixed = profiled("joined").cluster
    assert (fixed.executors, fixed.cores_per_executor, fixed.num_slots) == (2, 4, 8)
    profile = profiled("dynamic")
    assert profile.cluster.executors == 2
    # One all the time, one from 1 to 50, one from 51 to 100 s.
    assert profile.cluster.executors_mean == pytest.approx((100 + 49 + 49) / 100)
    assert profile.cluster.cores_per_executor == 4
    assert "executors have 4 to 8 cores; the median is used for all" in profile.notes
    assert profiled("two_cores_per_task").cluster.num_slots == 4


def test_executors_that_nobody_added_are_known_by_their_tasks(profiled: Profiled) -> None:
    local = profiled("without_cores")
    assert (local.cluster.executors, local.cluster.cores_per_executor) == (1, None)
    assert local.cluster.num_slots is None
    assert any("cores of the executors are unknown" in note for note in local.notes)
    assert profiled("of_unknown_executor").cluster.executors == 3


def test_a_log_that_names_no_executor_had_one(tmp_path: Path) -> None:
    log = AppLog()
    log.add_job([Work()], EPOCH_S + 20.0)
    for event in log.events:
        event.get("Task Info", {}).pop("Executor ID", None)
    log.events = [one for one in log.events if one["Event"] != "SparkListenerExecutorAdded"]
    (survey,) = headway.survey(write_plain(log.lines, tmp_path / "log")).logs
    assert isinstance(survey.profile, ApplicationProfile), survey.why_not
    cluster = survey.profile.cluster
    assert (cluster.executors, cluster.cores_per_executor) == (1, None)


@pytest.mark.parametrize("case", ["without_stage_times", "without_stage_ends"])
def test_times_of_tasks_stand_in_for_those_of_stages(profiled: Profiled, case: str) -> None:
    profile, whole = profiled(case), profiled("joined")
    assert [(stage.submitted_s, stage.completed_s) for stage in profile.stages] == [
        (stage.submitted_s, stage.completed_s) for stage in whole.stages
    ]
    assert profile.driver_only_s == pytest.approx(whole.driver_only_s)


def test_a_clock_set_back_does_not_turn_stages_around(profiled: Profiled) -> None:
    profile = profiled("set_back")
    assert profile.stages == profiled("joined").stages
    profile = profiled("parents_last")
    assert [stage.id for stage in profile.stages] == [0, 1, 2, 3]
    assert profile.stages[2].parents == (0, 1)
    assert all(stage.submitted_s >= 0 for stage in profile.stages)


def test_attempts_of_a_stage_are_one_stage(profiled: Profiled) -> None:
    profile = profiled("retried")
    scan = profile.stages[0]
    assert (scan.num_attempts, scan.num_tasks, scan.num_finished) == (2, 4, 4)
    assert scan.num_failed == 1
    times = attrgetter("task_mean_s", "task_sd_s", "task_max_s", "task_fixed_s")
    assert times(scan) == times(profiled("joined").stages[0])
    assert scan.rows_read == 800
    assert scan.largest_task_ratio == 2.5
    assert scan.completed_s == pytest.approx(40.0)
    assert (profile.num_jobs_failed, profile.last_job_failed) == (0, None)
    again = "attempts of tasks that failed or were stopped: 1 (1 stage ran again); what they took"
    assert any(again in note for note in profile.notes)
    assert not any("attempts" in note for note in profiled("joined").notes)


def test_failed_jobs_are_counted_and_their_reasons_kept_out(profiled: Profiled) -> None:
    profile = profiled("failed")
    assert (profile.num_jobs, profile.num_jobs_failed, profile.last_job_failed) == (2, 1, 1)
    assert "the last job failed: the run may have ended early" in profile.notes
    assert len(profile.stages) == 4
    assert "secret" not in dump_profile(profile)


def test_a_program_that_goes_on_after_a_failed_job_ended_by_itself(profiled: Profiled) -> None:
    profile = profiled("recovered")
    assert (profile.num_jobs_failed, profile.last_job_failed) == (1, None)
    assert "1 job failed" in profile.notes


def test_the_summary_says_how_long_the_driver_was_alone(profiled: Profiled) -> None:
    text = profile_summary(profiled("joined"))
    assert "  the driver alone, without a running stage: 42.0 s, 87% of the run time\n" in text
    assert "driver alone" not in profile_summary(profiled("dstreams"))


def test_of_many_stages_the_heaviest_are_listed_and_the_others_summed(profiled: Profiled) -> None:
    profile = profiled("of_many_stages")
    assert len(profile.stages) == MOST_STAGES
    assert {round(stage.task_mean_s, 3) for stage in profile.stages} == {0.2}
    others = profile.other_stages
    assert (others.num_stages, others.num_tasks) == (140, 140)
    assert others.task_time_s == pytest.approx(120 * 0.1 + 20 * 0.2)
    written = sum(stage.shuffle_write_bytes for stage in profile.stages)
    read_back = sum(stage.shuffle_read_bytes for stage in profile.stages)
    assert written + others.shuffle_write_bytes == 10
    assert read_back + others.shuffle_read_bytes == 239 * 10
    # The chain holds through the light stages that are not listed.
    assert [stage.parents for stage in profile.stages] == [
        (place - 1,) if place else () for place in range(MOST_STAGES)
    ]
    assert any("100 of 240 stages are listed, with 55.6% of" in note for note in profile.notes)
    assert others.chain_s == pytest.approx(120 * 0.1 + 120 * 0.2)


def test_more_slots_do_not_shorten_a_loop_of_many_small_jobs(profiled: Profiled) -> None:
    profile = profiled("of_many_jobs")
    chain_s = 120 * (0.1 + 0.2)
    assert profile.other_stages.chain_s == pytest.approx(chain_s)
    job = BatchRunTime.of(profile, 8)
    assert job.modelled_ratio == pytest.approx(1.0, abs=0.01)
    for slots in (1, 8, 64):
        assert job.mean_s(slots) == pytest.approx(profile.duration_s, rel=0.01)
    assert job.floor_s() == pytest.approx(profile.driver_only_s + chain_s)


def test_light_stages_share_the_slots_down_to_their_longest_tasks(profiled: Profiled) -> None:
    """Of 240 jobs of four tasks, those that are not listed are as fast as the others."""
    profile = profiled("of_many_wide_jobs")
    job = BatchRunTime.of(profile, 2)
    for slots, rounds in ((1, 4), (2, 2), (4, 1), (32, 1)):
        expected_s = profile.driver_only_s + 240 * rounds * 0.2
        assert job.mean_s(slots) == pytest.approx(expected_s, rel=0.01)


def test_a_stage_without_finished_tasks_is_passed_through(profiled: Profiled) -> None:
    profile = profiled("with_empty_stage")
    assert [stage.id for stage in profile.stages] == [0, 1, 3, 4]
    assert [stage.parents for stage in profile.stages] == [(), (), (0, 1), ()]
    assert (profile.other_stages.num_stages, profile.other_stages.num_tasks) == (1, 0)


def test_nothing_to_profile_is_one_line_that_says_what_to_record(profiled: Profiled) -> None:
    with pytest.raises(EventLogError, match="none of its 4 stages") as caught:
        profiled("without_tasks")
    assert "spark.eventLog.enabled=true" in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(EventLogError, match="none of its DStreams batches is complete"):
        profiled("all_failed")


def test_numbers_that_cannot_be_harm_nothing_else(profiled: Profiled) -> None:
    profile, whole = profiled("garbled"), profiled("joined")
    damaged = {stage.id for stage in whole.stages} - {stage.id for stage in profile.stages}
    assert damaged == {0}
    assert "1 stage left out of all sums: their times make no sense" in profile.notes
    assert profile.stages[0].num_tasks == 2
    assert profile.stages[1].parents == ()
    # What Spark said of its end lies in a far future, what it said of its stages does not.
    assert profile.duration_s == pytest.approx(48.5)
    assert profile.cluster.executors == 2


def test_a_profile_fits_its_file(profiled: Profiled, tmp_path: Path) -> None:
    for case in CASES:
        if case in ("without_tasks", "all_failed"):
            continue
        text = dump_profile(profiled(case))
        assert "secret" not in text
        assert all(len(line) <= 100 for line in text.splitlines() if "{" in line)
        (tmp_path / "app.yaml").write_text(text, encoding="utf-8")
        assert dump_profile(load_application_profile(tmp_path / "app.yaml")) == text
    assert len(dump_profile(profiled("joined"))) < 4_000


def test_batches_of_dstreams_tell_interval_and_processing_time(profiled: Profiled) -> None:
    profile = profiled("dstreams")
    assert profile.kind == "dstreams"
    found = profile.dstreams
    assert found is not None
    assert found.batch_interval_s == 2.0
    assert (found.num_batches_cut, found.num_batches) == (5, 55)
    assert found.num_batches_incomplete == found.num_receivers == 0
    # The slower of two tasks, then one.
    assert found.processing_time.mean_s == pytest.approx(0.4, rel=0.02)
    assert found.processing_time.sd_s == pytest.approx(0.05 * 0.4, rel=0.3)
    assert found.processing_time.p50_s < found.processing_time.p95_s < found.processing_time.p99_s
    assert found.scheduling_delay.p99_s == pytest.approx(0.005, abs=1e-3)
    assert found.rows_per_batch == 150.0
    assert found.num_typical_batches == 55
    assert "cut 5 batches as warm-up" in profile.notes


def test_the_fast_half_of_growing_batches_is_no_warm_up(profiled: Profiled) -> None:
    growing = profiled("growing").dstreams
    assert growing is not None
    assert (growing.num_batches_cut, growing.num_batches) == (0, 60)


def test_stages_of_dstreams_are_those_of_a_typical_batch(profiled: Profiled) -> None:
    profile = profiled("dstreams")
    first, second = profile.stages
    assert (first.id, first.job, first.parents) == (0, 0, ())
    assert (second.id, second.job, second.parents) == (1, 0, (0,))
    assert (first.num_tasks, second.num_tasks) == (2, 1)
    assert first.task_mean_s == pytest.approx(0.25, rel=0.02)
    # Tasks of 0.2 and 0.3 s: what differs between batches is no spread of tasks.
    assert first.task_sd_s == pytest.approx(0.1 / math.sqrt(2), rel=0.03)
    assert second.task_sd_s is None
    assert first.rows_read == 150
    assert first.largest_task_ratio == pytest.approx(100 / 75)
    assert second.submitted_s == pytest.approx(0.3, rel=0.02)
    # Ten stages of the five batches of the warm-up.
    assert profile.other_stages.num_stages == 10
    assert profile.other_stages.task_time_s == pytest.approx(17.5 * 0.6, rel=0.05)


def test_a_queue_that_grows_is_reported(profiled: Profiled) -> None:
    profile = profiled("overloaded")
    found = profile.dstreams
    assert found is not None
    assert found.processing_time.mean_s == pytest.approx(3.0, rel=0.01)
    assert found.scheduling_delay.max_s == pytest.approx(39.0, rel=0.01)
    assert any("could not keep up" in note for note in profile.notes)
    assert [stage.job for stage in profile.stages] == [0, 0, 1, 1]
    # Both jobs read the same rows.
    assert found.rows_per_batch == 100.0
    assert not any("could not keep up" in note for note in profiled("dstreams").notes)


def test_receivers_hold_cores_and_are_no_work(profiled: Profiled) -> None:
    profile = profiled("with_receiver")
    assert profile.dstreams is not None
    assert profile.dstreams.num_receivers == 1
    assert len(profile.stages) == 2
    assert profile.dstreams.processing_time.mean_s == pytest.approx(0.4, rel=0.02)
    # Each batch computes for less than half of its two seconds.
    assert profile.driver_only_s > 60


def test_batches_with_other_stages_and_without_any(profiled: Profiled) -> None:
    profile = profiled("with_idle_batches")
    found = profile.dstreams
    assert found is not None
    assert found.batch_interval_s == 2.0
    assert (found.num_batches, found.num_typical_batches) == (40, 30)
    assert len(profile.stages) == 2
    assert profile.other_stages.num_stages == 10
    assert any("10 of 40 batches ran other stages" in note for note in profile.notes)


def test_batches_that_failed_or_are_not_whole_are_left_out(profiled: Profiled) -> None:
    profile = profiled("torn")
    found = profile.dstreams
    assert found is not None
    assert (found.num_batches, found.num_batches_incomplete) == (18, 2)
    assert found.processing_time.max_s == pytest.approx(0.4)
    assert any("2 batches left out" in note for note in profile.notes)


class Totals(NamedTuple):
    """What the tasks of an application that finished add up to."""

    num_tasks: int
    num_failed: int
    task_time_s: float
    input_bytes: int
    shuffle_read_bytes: int
    shuffle_write_bytes: int
    spilled_bytes: int


def counted(lines: list[str]) -> Totals:
    """The totals of a log, without Spark and without the profiler."""
    ends: dict[tuple[int, int, int], Event] = {}
    for line in lines:
        if "SparkListenerTaskEnd" not in line:
            continue
        try:
            event = json.loads(line)
        except json.JSONDecodeError:
            continue
        if event.get("Event") == "SparkListenerTaskEnd":
            key = (event["Stage ID"], event["Stage Attempt ID"], event["Task Info"]["Task ID"])
            ends.setdefault(key, event)
    succeeded = [e for e in ends.values() if e["Task End Reason"]["Reason"] == "Success"]
    finished = [e for e in succeeded if e.get("Task Metrics") and e["Task Info"]["Launch Time"] > 0]

    def total(*route: str) -> int:
        found = 0
        for event in finished:
            value = event["Task Metrics"]
            for name in route:
                value = (value or {}).get(name)
            found += value or 0
        return found

    read = "Shuffle Read Metrics"
    return Totals(
        num_tasks=len(finished),
        num_failed=len(ends) - len(succeeded),
        task_time_s=sum(
            (event["Task Info"]["Finish Time"] - event["Task Info"]["Launch Time"]) / 1000
            for event in finished
        ),
        input_bytes=total("Input Metrics", "Bytes Read"),
        shuffle_read_bytes=total(read, "Remote Bytes Read") + total(read, "Local Bytes Read"),
        shuffle_write_bytes=total("Shuffle Write Metrics", "Shuffle Bytes Written"),
        spilled_bytes=total("Memory Bytes Spilled"),
    )


def profiled_totals(profile: ApplicationProfile) -> Totals:
    others = profile.other_stages

    def total(value: Callable[[RecordedStage], float]) -> int:
        return round(sum(value(stage) for stage in profile.stages))

    return Totals(
        num_tasks=total(lambda stage: stage.num_finished) + others.num_tasks,
        num_failed=total(lambda stage: stage.num_failed) + others.num_failed,
        task_time_s=sum(stage.task_time_s for stage in profile.stages) + others.task_time_s,
        input_bytes=total(lambda stage: stage.input_bytes) + others.input_bytes,
        shuffle_read_bytes=total(lambda stage: stage.shuffle_read_bytes)
        + others.shuffle_read_bytes,
        shuffle_write_bytes=total(lambda stage: stage.shuffle_write_bytes)
        + others.shuffle_write_bytes,
        spilled_bytes=total(lambda stage: stage.spilled_bytes) + others.spilled_bytes,
    )


def lines_of(real: Read, app: int) -> list[str]:
    parts = sorted((real.folder / f"app={app}").rglob("*"))
    texts = [part.read_text(encoding="utf-8") for part in parts if part.suffix == ".json"]
    return [line for text in texts for line in text.split("\n") if line]


def check_profiles_add_up(logs: tuple[EventLog, ...], folder: Path) -> int:
    """The number of logs that have a profile; each adds up to what the tasks in it took."""
    real, num_profiled = read(logs, folder), 0
    for app, one in real.logs.items():
        if app not in real.collected.applications:
            continue
        totals = counted(lines_of(real, app))
        if totals.num_tasks == 0:
            with pytest.raises(
                EventLogError, match=r"has a finished task|no stage is on record|ran no Spark job"
            ):
                real.profile(app)
            continue
        profile = real.profile(app)
        assert profiled_totals(profile) == pytest.approx(totals, rel=1e-9), one.name
        assert profile.driver_only_s <= profile.duration_s, one.name
        text = dump_profile(profile)
        assert len(text) < 60_000, one.name
        num_profiled += 1
    return num_profiled


def test_a_recorded_log_with_stages_gives_a_profile_that_adds_up(tmp_path: Path) -> None:
    (path,) = RECORDED.glob("eventlog_v2_*")
    assert check_profiles_add_up(find_event_logs([path]).logs, tmp_path) == 1


@needs(
    EVENT_LOGS,
    stand_in="tests/profiler/application/test_applications.py::"
    "test_a_recorded_log_with_stages_gives_a_profile_that_adds_up",
)
def test_published_logs_with_stages_give_a_profile_that_adds_up(tmp_path: Path) -> None:
    assert check_profiles_add_up(find_event_logs([EVENT_LOGS]).logs, tmp_path) > 60


def test_a_log_without_stages_says_so(tmp_path: Path) -> None:
    """Not "none of its 0 stages"."""
    start = {"Event": "SparkListenerLogStart", "Spark Version": "3.5.0"}
    log_file = write_plain([json.dumps(start)], tmp_path / "log")
    with pytest.raises(EventLogError, match="no stage is on record; record the application"):
        profile_and_tables([log_file], None)


def test_a_whole_log_without_jobs_says_so(tmp_path: Path) -> None:
    log_file = write_plain(log().end(EPOCH_S + 9).lines, tmp_path / "log")
    with pytest.raises(EventLogError, match="ran no Spark job from its start to its end, so"):
        profile_and_tables([log_file], None)
    log_file = write_plain(log().lines, tmp_path / "cut")
    with pytest.raises(EventLogError, match="no stage is on record; record the application"):
        profile_and_tables([log_file], None)


def test_stages_are_named_by_their_operators_else_by_calls_of_the_program(tmp_path: Path) -> None:
    written = joined()
    metric = {"name": "number of output rows", "accumulatorId": 901, "metricType": "sum"}
    scan = {"nodeName": "Scan parquet shop.orders", "children": [], "metrics": []}
    written.events.insert(
        1,
        {
            "Event": "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart",
            "executionId": 0,
            "description": "collect at report.py:12",
            "sparkPlanInfo": {"nodeName": "HashAggregate", "children": [scan], "metrics": [metric]},
        },
    )
    for event in written.of("StageCompleted"):
        info = event["Stage Info"]
        if info["Stage ID"] == 0:
            scopes = ("textFile", "mapPartitionsInternal", "map")
            info["RDD Info"] = [
                {"RDD ID": number, "Scope": json.dumps({"id": "0", "name": scope})}
                for number, scope in enumerate(scopes)
            ]
        if info["Stage ID"] == 2:
            info["Accumulables"] = [{"ID": 901, "Name": metric["name"], "Value": "7"}]
    log_file = write_plain(written.lines, tmp_path / "log")
    profile, _ = profile_and_tables([log_file], None)
    assert isinstance(profile, ApplicationProfile)
    assert [stage.called for stage in profile.stages] == [
        "stage 0 (collect at words.py:7: textFile, map)", "stage 1 (collect at words.py:7)",
        "stage 2 (aggregate)", "stage 3 (collect at words.py:7)",
    ]  # fmt: skip
    profile.save(tmp_path / "app.profile.yaml")
    read_back = load_application_profile(tmp_path / "app.profile.yaml")
    assert [one.called for one in read_back.stages] == [one.called for one in profile.stages]
    assert "stage 0 (collect at words.py:7: textFile, map): " in profile_summary(profile)
