"""Logs of jobs whose costs are known, and of what goes wrong in logs -> profiles."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from headway.domain import JobProfile, StageProfile
from headway.errors import EventLogError, HeadwayError, InputError
from headway.formats.profile_file import dump_profile, load_profile
from headway.models.job.predict import predict
from headway.profiler.collect import collect
from headway.profiler.contents import CollectedLogs
from headway.profiler.coverage import gaps
from headway.profiler.engines.in_process import read_in_process
from headway.profiler.logs.sources import EventLog, find_event_logs
from headway.profiler.logs.unpacking import unpack
from headway.profiler.pieces import pieces_of
from headway.profiler.streaming.summarize import summarize
from headway.redaction import redact
from tests.profiler.event_log import EPOCH_S, MAP, PHASES_S, REDUCE, AppLog, Event, Query, Stage
from tests.shared_data import GROUND_TRUTH, needs

HOSTILE_NAME = 'a "quoted"\n\x1b[31mname\x00 \u202e: #\'{} \U0001f525'

PLAIN = Query()
SMALL = Query(
    name="small",
    query_id="aaaaaaaa-0000-4000-8000-000000000001",
    rate_per_s=8_000.0,
    trigger_s=0.5,
    partitions=4,
    started_s=EPOCH_S + 20,
    seed=2,
)
LARGE = Query(
    name="large",
    query_id="aaaaaaaa-0000-4000-8000-000000000002",
    rate_per_s=30_000.0,
    trigger_s=2.0,
    partitions=8,
    started_s=EPOCH_S + 80,
    seed=3,
)
OTHER_JOB = Query(
    name="clicks",
    query_id="bbbbbbbb-0000-4000-8000-000000000001",
    source="KafkaV2[Subscribe[clicks]]",
    started_s=EPOCH_S + 200,
    seed=4,
)


def log(*queries: Query, executors: Sequence[int] = (4,), app_id: str = "app-1") -> AppLog:
    """The log of an application that ran the queries."""
    written = AppLog(app_id=app_id, executors=executors)
    for query in queries:
        written.add(query)
    return written


def of_progress(change: Callable[[int, Event], None], query: Query = PLAIN) -> list[str]:
    """The lines of a log whose progress events were changed, each with its number."""
    written = log(query)
    for number, event in enumerate(written.of("QueryProgressEvent")):
        change(number, event["progress"])
    return written.lines


def of_tasks(change: Callable[[int, Event], None], query: Query = PLAIN) -> list[str]:
    """The lines of a log whose task ends were changed, each with its number."""
    written = log(query)
    for number, event in enumerate(written.of("TaskEnd")):
        change(number, event)
    return written.lines


def failed_tasks() -> list[str]:
    """Before each task one that failed after a minute, and one that was killed."""
    written = log(PLAIN)
    events: list[Event] = []
    for event in written.events:
        if event["Event"].endswith("TaskEnd"):
            for flag in ("Failed", "Killed"):
                lost = copy.deepcopy(event)
                lost["Task Info"][flag] = True
                lost["Task Info"]["Task ID"] += 1_000_000
                lost["Task Info"]["Finish Time"] += 60_000
                events.append(lost)
        events.append(event)
    written.events = events
    return written.lines


def retried_stage() -> list[str]:
    """In batch 20 the first attempt of a stage fails; the second takes long."""
    written = log(PLAIN)
    events: list[Event] = []
    for event in written.events:
        info = event.get("Stage Info", {})
        stage_id = info.get("Stage ID", event.get("Stage ID"))
        again = copy.deepcopy(event)
        if stage_id == 40:
            if event["Event"].endswith("TaskEnd"):
                event["Task Info"]["Failed"] = True
                again["Stage Attempt ID"] = 1
                again["Task Info"]["Task ID"] += 1_000_000
                again["Task Info"]["Finish Time"] += 9_000
                events.append(again)
            if event["Event"].endswith("StageCompleted"):
                info["Failure Reason"] = "FetchFailed"
                again["Stage Info"]["Stage Attempt ID"] = 1
                events.append(again)
        events.append(event)
    written.events = events
    return written.lines


def skipped_stages() -> list[str]:
    """Each job also lists a stage that was skipped, and that a job before it ran."""
    written = log(PLAIN)
    for job in written.of("JobStart"):
        job["Stage IDs"] = [max(job["Stage IDs"][0] - 2, 0), 10_000 + job["Job ID"]] + job[
            "Stage IDs"
        ]
    return written.lines


def no_data_batches() -> list[str]:
    """Batches without rows take every third id, and idle triggers announce the next batch."""
    written = log(replace(PLAIN, num_batches=60))
    events: list[Event] = []
    for event in written.events:
        if event["Event"].endswith("QueryProgressEvent"):
            progress = event["progress"]
            if progress["batchId"] % 3 == 2:
                continue
            idle = copy.deepcopy(event)
            idle["progress"]["sources"][0]["numInputRows"] = 0
            idle["progress"]["durationMs"] = {"latestOffset": 1, "triggerExecution": 1}
            events.append(idle)
        events.append(event)
    written.events = events
    return written.lines


def restarted() -> list[str]:
    """The checkpoint's query runs again after an hour, at another setting."""
    return log(
        replace(PLAIN, seed=11),
        replace(
            PLAIN,
            seed=12,
            started_s=EPOCH_S + 3600,
            trigger_s=2.0,
            rate_per_s=15_000.0,
            first_batch_id=40,
        ),
    ).lines


def backwards(number: int, progress: Event) -> None:
    """From batch 20 on the clock is ten minutes behind."""
    if number >= 20:
        start = np.datetime64(progress["timestamp"][:-1]) - np.timedelta64(600, "s")
        progress["timestamp"] = f"{start}Z"


def with_event_times(number: int, progress: Event) -> None:
    """The newest rows 0.7 s old, now and then rows from another time."""
    start = np.datetime64(progress["timestamp"][:-1])
    lag_ms = 700 if number % 5 else 3_600_000
    progress["eventTime"] = {"max": f"{start - np.timedelta64(lag_ms, 'ms')}Z"}


def as_in_2_3(_: int, progress: Event) -> None:
    """Phases and operators as Spark 2.3 named them."""
    progress["durationMs"]["getOffset"] = progress["durationMs"].pop("latestOffset")
    without(progress["stateOperators"][0], "operatorName", "numShufflePartitions")


def without(progress: Event, *names: str) -> None:
    for name in names:
        progress.pop(name, None)


CASES: dict[str, Callable[[], Sequence[str]]] = {
    "plain": lambda: log(PLAIN).lines,
    "two settings": lambda: log(SMALL, LARGE, executors=(2, 2)).lines,
    "of another time": lambda: (
        log(replace(SMALL, run_id="f" * 8, started_s=EPOCH_S + 7000), app_id="app-2").lines
    ),
    "copy": lambda: log(SMALL).lines,
    "two jobs": lambda: log(SMALL, OTHER_JOB).lines,
    "other stages": lambda: (
        log(
            SMALL,
            replace(SMALL, query_id="c" * 12, seed=9, jobs=((MAP,),), started_s=EPOCH_S + 200),
        ).lines
    ),
    "restarted": restarted,
    "skewed": lambda: (
        log(
            replace(
                PLAIN,
                jobs=((replace(MAP, shares=(0.1, 0.2, 0.3, 0.4)), REDUCE),),
            )
        ).lines
    ),
    "two jobs per batch": lambda: (
        log(
            replace(SMALL, jobs=((MAP, REDUCE), (Stage(fixed_s=0.2, per_row_s=0.0, num_tasks=2),))),
            replace(LARGE, jobs=((MAP, REDUCE), (Stage(fixed_s=0.2, per_row_s=0.0, num_tasks=2),))),
        ).lines
    ),
    "warm-up": lambda: (
        log(replace(PLAIN, num_batches=60, warm_up=tuple(3.0 * 0.85**n for n in range(10)))).lines
    ),
    "one run slow": lambda: (
        log(
            SMALL,
            replace(LARGE, slowness=1.6, num_batches=20),
            *(
                replace(base, run_id=f"{number:08}", started_s=EPOCH_S + 300 * number, seed=number)
                for number in range(4, 8)
                for base in (SMALL, LARGE)
            ),
        ).lines
    ),
    "as fast as possible": lambda: (
        log(replace(PLAIN, trigger_s=0.0, num_batches=60, rate_per_s=25_000.0)).lines
    ),
    "failed tasks": failed_tasks,
    "retried stage": retried_stage,
    "skipped stages": skipped_stages,
    "no-data batches": no_data_batches,
    "stateless": lambda: log(replace(PLAIN, operators=())).lines,
    "no executor": lambda: log(PLAIN).drop("ExecutorAdded").lines,
    "no streaming": lambda: log(PLAIN).drop("QueryProgressEvent").lines,
    "progress only": lambda: [
        '{"Event":"HeadwayRecorderStart"}',
        *log(SMALL, LARGE, executors=(2, 2))
        .drop("TaskEnd")
        .drop("StageCompleted")
        .drop("JobStart")
        .lines,
    ],
    "no tasks": lambda: log(PLAIN).drop("TaskEnd").lines,
    "no event": lambda: ['{"a": 1}', "{}"],
    "one batch": lambda: log(replace(PLAIN, num_batches=1)).lines,
    "no metrics": lambda: of_tasks(lambda _, event: without(event, "Task Metrics")),
    "some without metrics": lambda: of_tasks(
        lambda number, event: without(event, "Task Metrics") if number in (100, 201) else None
    ),
    "old flags": lambda: of_tasks(lambda _, event: without(event["Task Info"], "Killed")),
    "Spark 2.3": lambda: of_progress(as_in_2_3),
    "offsets as text": lambda: of_progress(
        lambda _, progress: progress["sources"][0].update(
            endOffset='{"orders":{"0":1}}', startOffset="7", latestOffset=7
        )
    ),
    "rows on top": lambda: of_progress(
        lambda _, progress: progress.update(numInputRows=progress["sources"][0].pop("numInputRows"))
    ),
    "backwards": lambda: of_progress(backwards),
    "event times": lambda: of_progress(with_event_times),
    "negative": lambda: of_progress(
        lambda number, progress: (
            progress["sources"][0].update(numInputRows=-5)
            if number == 10
            else progress["durationMs"].update(triggerExecution=-100)
            if number == 20
            else None
        )
    ),
    "huge": lambda: of_progress(
        lambda number, progress: (
            progress["sources"].append(
                {"description": None, "numInputRows": 9_223_372_036_854_775_807}
            )
            if number == 10
            else progress["durationMs"].update(triggerExecution=10**30, walCommit=2**62)
            if number == 20
            else None
        )
    ),
    "huge tasks": lambda: of_tasks(
        lambda number, event: (
            event["Task Info"].update({"Finish Time": 9_223_372_036_854_775_807})
            if number == 100
            else event["Task Info"].update({"Launch Time": -5})
            if number == 200
            else None
        )
    ),
    "garbled": lambda: of_progress(
        lambda number, progress: progress.update(
            [
                ("timestamp", "yesterday"),
                ("durationMs", None),
                ("sources", None),
                ("stateOperators", "none"),
                ("batchId", None),
                ("sink", 7),
            ][number % 6 : number % 6 + 1]
            if 10 <= number < 16
            else []
        )
    ),
    "every line twice": lambda: [line for line in log(PLAIN).lines for _ in range(2)],
    "half a last line": lambda: (
        (lines := log(PLAIN).lines)
        + [lines[-2][: len(lines[-2]) // 2], '{"Event":"SparkListenerTaskEnd","Stage ID":1,"St']
    ),
    "Windows": lambda: [f"{line}\r" for line in log(PLAIN).lines],
    "long and unknown lines": lambda: [
        '{"Event":"com.vendor.Listener$Event","Stage ID":{}}',
        json.dumps({"Event": "SparkListenerTaskEnd", "Stage ID": "none", "Task Info": []}),
        '{"Event":"SparkListenerSQLExecutionStart","plan":"' + "x" * 2**20 + '"}',
        json.dumps({"Event": "SparkListenerEnvironmentUpdate", "JVM": "y" * 2**20}),
        *log(PLAIN).lines,
    ],
    "hostile name": lambda: (
        log(replace(PLAIN, name=HOSTILE_NAME), replace(OTHER_JOB, name="n" * 5000)).lines
    ),
    "nameless": lambda: log(replace(PLAIN, name=None)).lines,
    "vendor settings": lambda: [
        line.replace('"spark.sql.shuffle.partitions":"4"', '"spark.sql.shuffle.partitions":"auto"')
        for line in log(replace(PLAIN, operators=())).lines
    ],
    "mixed stages": lambda: (
        log(
            *(
                replace(
                    PLAIN,
                    jobs=((MAP,) * (1 + n % 3),),
                    num_batches=4,
                    first_batch_id=4 * n,
                    started_s=EPOCH_S + 20 + 10 * n,
                    run_id="same",
                )
                for n in range(3)
            )
        ).lines
    ),
}


class Pipeline:
    """The logs of all cases, read in one pass: each test looks at its own."""

    def __init__(self, logs: Sequence[EventLog], folder: Path) -> None:
        self._logs = unpack(logs, folder).logs
        self._collected = collect(pieces_of(folder), read_in_process)

    def profile(self, *numbers: int, queries: Sequence[str] = ()) -> JobProfile:
        """The profile of some of the logs."""
        logs = CollectedLogs(
            applications={
                number: facts
                for number, facts in self._collected.applications.items()
                if number in numbers
            },
            batches=[row for row in self._collected.batches if row["app"] in numbers],
            stage_runs=[row for row in self._collected.stage_runs if row["app"] in numbers],
        )
        return summarize(logs, {number: self._logs[number] for number in numbers}, queries, "1.0")


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    folder = tmp_path_factory.mktemp("logs")
    for name, lines in CASES.items():
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            file.writelines(f"{line}\n" for line in lines())
    logs = [EventLog(name=name, files=(folder / name,)) for name in CASES]
    return Pipeline(logs, folder / "work")


@pytest.fixture
def profiled(pipeline: Pipeline) -> Callable[..., JobProfile]:
    """Call it with names of cases."""

    def profile(*names: str, queries: Sequence[str] = ()) -> JobProfile:
        return pipeline.profile(*map(list(CASES).index, names), queries=queries)

    return profile


Profiled = Callable[..., JobProfile]


def assert_stage(found: StageProfile, true: Stage) -> None:
    # Two runs, each of which might be off by a tenth: what Spark reports of a task, less here than
    # the whole fixed time, has a say as well.
    assert found.task_per_row_s == pytest.approx(true.per_row_s, rel=0.08)
    assert found.task_fixed_s == pytest.approx(true.fixed_s, rel=0.12)
    assert found.rows.rows(20_000) == pytest.approx(20_000 * true.rows_scale, rel=0.01)
    assert found.num_source_tasks == true.num_tasks


def test_costs_come_back_from_two_settings(profiled: Profiled) -> None:
    profile = profiled("two settings")
    assert_stage(profile.stages[0], MAP)
    assert_stage(profile.stages[1], REDUCE)
    assert [stage.level for stage in profile.stages] == [0, 1]
    assert [stage.tasks_rule for stage in profile.stages] == ["source", "shuffle"]
    assert {stage.separation for stage in profile.stages} == {"batches"}
    assert profile.stages[0].task_noise_ratio == pytest.approx(0.02, rel=0.3)
    phases = {phase.name: phase.mean_s for phase in profile.driver_phases}
    assert phases["add_batch"] == pytest.approx(PHASES_S["addBatch"], abs=0.004)
    assert phases["wal_commit"] == pytest.approx(PHASES_S["walCommit"], abs=1e-6)
    # Two runs at one age and no drift to see: the usual one of the driver is half believed.
    assert phases["query_planning"] == pytest.approx(PHASES_S["queryPlanning"], rel=0.05)
    for setting, query in zip(profile.settings, (SMALL, LARGE), strict=True):
        assert setting.query_name == query.name
        assert setting.configuration.trigger_s == query.trigger_s
        assert setting.configuration.shuffle_partitions == query.partitions
        assert setting.configuration.executors == 2
        assert setting.configuration.cores_per_executor == 2
        assert setting.rate_per_s == pytest.approx(query.rate_per_s, rel=0.01)
        assert setting.modelled_duration_mean_s == pytest.approx(
            setting.batch_duration_mean_s, rel=0.03
        )
    assert profile.arrivals.rate_per_s == profile.settings[-1].rate_per_s
    assert profile.arrivals.dispersion_ratio < 0.1
    (application,) = profile.applications
    assert (application.id, application.name) == ("app-1", "orders job")
    assert (application.spark_version, application.executor_memory) == ("4.0.1", "3g")
    assert "hunter2" not in dump_profile(profile)


def test_costs_come_back_from_tasks_of_different_size(profiled: Profiled) -> None:
    stage = profiled("skewed").stages[0]
    assert stage.separation == "tasks"
    assert stage.task_per_row_s == pytest.approx(MAP.per_row_s, rel=0.03)
    assert stage.task_fixed_s == pytest.approx(MAP.fixed_s, rel=0.05)


def test_one_query_alone_says_that_its_costs_are_parts(profiled: Profiled) -> None:
    profile = profiled("plain")
    assert [stage.separation for stage in profile.stages] == ["parts"] * 2
    (setting,) = profile.settings
    assert setting.configuration.num_slots == 4
    assert setting.configuration.trigger_s == 1.0
    assert setting.rate_per_s == pytest.approx(20_000, rel=0.01)
    assert setting.num_batches + setting.num_batches_cut == 40


def test_a_second_job_of_the_batch_stands_behind_the_first(profiled: Profiled) -> None:
    stages = profiled("two jobs per batch").stages
    assert [stage.level for stage in stages] == [0, 1, 2]
    assert 0.12 < stages[2].task_fixed_s < 0.2  # of which Spark reports next to nothing
    assert stages[2].num_source_tasks == 2
    assert_stage(stages[0], MAP)
    assert_stage(stages[1], REDUCE)


def test_as_fast_as_possible_is_trigger_zero(profiled: Profiled) -> None:
    (setting,) = profiled("as fast as possible").settings
    assert setting.configuration.trigger_s == 0.0
    assert setting.rate_per_s == pytest.approx(25_000, rel=0.01)


def test_the_warm_up_is_cut_and_said(profiled: Profiled) -> None:
    profile = profiled("warm-up")
    (setting,) = profile.settings
    assert 6 <= setting.num_batches_cut <= 15
    assert setting.rate_per_s == pytest.approx(20_000, rel=0.01)
    assert any("as warm-up" in note for note in profile.notes)


def test_the_first_batches_of_a_fresh_jvm_are_kept(profiled: Profiled) -> None:
    """Batch ``n`` took 3 x 0.85^n times as long as those of the steady part."""
    warm_up = profiled("warm-up").warm_up
    assert warm_up is not None
    assert warm_up.first_batch_extra_s > 0.0
    ratios = [point.duration_ratio for point in warm_up.points]
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[0] == pytest.approx(3.0 * 0.85, rel=0.15)
    assert warm_up.steady_age_s > warm_up.points[-1].jvm_age_s


def test_only_the_first_query_of_an_application_meets_a_fresh_jvm(profiled: Profiled) -> None:
    both, second = profiled("two settings"), profiled("two settings", queries=["large"])
    assert both.warm_up is not None
    assert second.warm_up is None


def test_a_run_that_strays_is_named(profiled: Profiled) -> None:
    notes = [note for note in profiled("one run slow").notes if "drift" in note]
    assert notes
    assert notes[0].startswith("query large (aaaaaaaa), run 1 of 5: batches took +")


@pytest.mark.parametrize("wanted", ["small", SMALL.query_id, SMALL.query_id[:36]])
def test_a_query_is_chosen_by_name_or_id(profiled: Profiled, wanted: str) -> None:
    (setting,) = profiled("two settings", queries=[wanted]).settings
    assert setting.query_name == "small"


@pytest.mark.parametrize("wanted", [["aaaaaaaa"], ["large", "small"], ["small", "large", "large"]])
def test_several_queries_are_chosen_each_once(profiled: Profiled, wanted: list[str]) -> None:
    names = [setting.query_name for setting in profiled("two settings", queries=wanted).settings]
    assert names == ["small", "large"]


@pytest.mark.parametrize("wanted", ["no such", "aaaa", "", "SMALL"])
def test_a_query_that_is_not_there_is_named_with_those_that_are(
    profiled: Profiled, wanted: str
) -> None:
    with pytest.raises(InputError, match=r"two settings; it holds small \(aaaaaaaa\), large"):
        profiled("two settings", queries=[wanted])


def test_different_jobs_are_refused_by_name(profiled: Profiled) -> None:
    with pytest.raises(InputError, match="different jobs") as caught:
        profiled("two jobs")
    assert "small (aaaaaaaa) (KafkaV2[Subscribe[orders]] to" in str(caught.value)
    assert "clicks (bbbbbbbb) (KafkaV2[Subscribe[clicks]] to" in str(caught.value)
    (setting,) = profiled("two jobs", queries=["clicks"]).settings
    assert setting.query_name == "clicks"
    with pytest.raises(InputError, match="run other stages than"):
        profiled("other stages")


def test_two_logs_of_one_job_make_one_profile(profiled: Profiled) -> None:
    profile = profiled("two settings", "of another time")
    assert [setting.query_name for setting in profile.settings] == ["small", "large", "small"]
    assert [application.id for application in profile.applications] == ["app-1", "app-2"]
    assert profile.settings[2].configuration.executors == 1
    for setting in profile.settings:
        assert setting.rate_per_s in (
            pytest.approx(SMALL.rate_per_s, rel=0.01),
            pytest.approx(LARGE.rate_per_s, rel=0.01),
        )
    assert_stage(profile.stages[0], MAP)


def test_a_run_that_stands_in_two_logs_counts_once(profiled: Profiled) -> None:
    profile = profiled("two settings", "copy")
    assert [setting.query_name for setting in profile.settings] == ["small", "large"]
    assert any("the same run is in two logs" in note for note in profile.notes)


def test_a_restart_makes_two_runs_and_its_gap_no_interval(profiled: Profiled) -> None:
    profile = profiled("restarted")
    first, second = profile.settings
    assert first.query_id == second.query_id
    assert (first.configuration.trigger_s, second.configuration.trigger_s) == (1.0, 2.0)
    assert first.rate_per_s == pytest.approx(20_000, rel=0.01)
    assert second.rate_per_s == pytest.approx(15_000, rel=0.01)
    assert first.num_batches + first.num_batches_cut == 40
    assert second.num_batches + second.num_batches_cut == 40
    assert profile.arrivals.dispersion_ratio < 0.1


@pytest.mark.parametrize(
    "name",
    [
        "failed tasks",
        "skipped stages",
        "old flags",
        "offsets as text",
        "rows on top",
        "every line twice",
        "half a last line",
        "Windows",
        "long and unknown lines",
    ],
)
def test_what_does_not_matter_changes_nothing(profiled: Profiled, name: str) -> None:
    expected, found = profiled("plain"), profiled(name)
    assert dump_profile(without_coverage(found)) == dump_profile(without_coverage(expected))


def without_coverage(profile: JobProfile) -> JobProfile:
    """The profile but for what it says of the log itself."""
    assert profile.coverage is not None
    said = gaps(profile.coverage)
    return replace(
        profile, coverage=None, notes=tuple(note for note in profile.notes if note not in said)
    )


@pytest.mark.parametrize(
    ("name", "num_lost"),
    [
        ("retried stage", 1),
        ("negative", 2),
        ("huge", 2),
        ("huge tasks", 1),
    ],
)
def test_batches_that_make_no_sense_are_left_out_and_said(
    profiled: Profiled, name: str, num_lost: int
) -> None:
    expected, found = profiled("plain"), profiled(name)
    assert any(f"{num_lost} of" in note and "left out" in note for note in found.notes)
    (was,), (now,) = expected.settings, found.settings
    assert now.configuration == was.configuration
    assert now.rate_per_s == pytest.approx(20_000, rel=0.01)
    assert now.batch_duration_mean_s == pytest.approx(was.batch_duration_mean_s, rel=0.02)
    assert found.arrivals.dispersion_ratio < 0.1
    for stage, same in zip(found.stages, expected.stages, strict=True):
        assert stage.task_fixed_s == pytest.approx(same.task_fixed_s, rel=0.02)
        assert stage.task_per_row_s == pytest.approx(same.task_per_row_s, rel=0.02)


def test_a_few_missing_tasks_cost_certainty_and_nothing_else(profiled: Profiled) -> None:
    expected, found = profiled("plain"), profiled("some without metrics")
    assert found.settings[0].num_batches == expected.settings[0].num_batches
    assert any("tasks are not recorded: intervals are wider" in note for note in found.notes)
    assert found.noise.run_to_run_ratio > expected.noise.run_to_run_ratio
    for stage, same in zip(found.stages, expected.stages, strict=True):
        assert stage.rows.rows(20_000) == pytest.approx(same.rows.rows(20_000), rel=0.005)
        assert stage.task_per_row_s == pytest.approx(same.task_per_row_s, rel=0.02)


def test_events_that_are_garbled_cost_their_batches(profiled: Profiled) -> None:
    (setting,) = profiled("garbled").settings
    assert setting.rate_per_s == pytest.approx(20_000, rel=0.01)
    assert setting.configuration.trigger_s == 1.0


def test_batches_without_rows_are_no_batches(profiled: Profiled) -> None:
    profile = profiled("no-data batches")
    (setting,) = profile.settings
    assert setting.rows_per_batch_low >= 19_000
    assert setting.batch_duration_mean_s > 0.3
    assert setting.rate_per_s == pytest.approx(20_000, rel=0.01)
    assert setting.configuration.trigger_s == 1.0


def test_a_clock_that_is_set_back_spoils_no_rate(profiled: Profiled) -> None:
    (setting,) = profiled("backwards").settings
    assert setting.rate_per_s == pytest.approx(20_000, rel=0.01)
    assert setting.configuration.trigger_s == 1.0


def test_old_versions_name_phases_and_operators_differently(profiled: Profiled) -> None:
    profile = profiled("Spark 2.3")
    assert {phase.name for phase in profile.driver_phases} >= {"latest_offset", "add_batch"}
    assert profile.shape.stateful_operators == ("unknown",)
    assert profile.baseline.shuffle_partitions == 4


def test_how_late_rows_come_is_reported_where_event_times_are(profiled: Profiled) -> None:
    timed, unknown = (profiled(name).observed_arrivals for name in ("event times", "rows on top"))
    assert timed is not None
    # Batches start 2 ms after their trigger, which is what counts.
    assert timed.event_time_lag_s == pytest.approx(0.698, abs=1e-3)
    assert unknown is not None
    assert unknown.event_time_lag_s is None


@pytest.mark.parametrize("name", ["stateless", "vendor settings"])
def test_without_state_partitions_are_those_of_the_session(profiled: Profiled, name: str) -> None:
    assert profiled(name).baseline.shuffle_partitions == 4


def test_names_are_kept_in_the_file_and_harmless_in_messages(
    profiled: Profiled, tmp_path: Path
) -> None:
    profile = profiled("hostile name", queries=[HOSTILE_NAME])
    (tmp_path / "profile.yaml").write_text(dump_profile(profile), encoding="utf-8")
    loaded = load_profile(tmp_path / "profile.yaml")
    assert loaded.settings[0].query_name == profile.settings[0].query_name == redact(HOSTILE_NAME)
    with pytest.raises(InputError) as caught:
        profiled("hostile name", queries=["other"])
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300
    assert profiled("nameless").settings[0].query_name is None


@pytest.mark.parametrize(
    ("name", "kind", "complaint"),
    [
        ("no executor", EventLogError, r"no executor: query orders \(3f1c7e0a\): no executor is"),
        ("no streaming", EventLogError, "no streaming: a Spark log with 320 tasks but no stream"),
        ("no tasks", EventLogError, "no tasks: no query left .*: left out, 0 of 40 batches"),
        ("no metrics", EventLogError, "no metrics: no query left .* 0 of 40 batches usable"),
        ("no event", EventLogError, "no event: no Spark event in it"),
        ("one batch", EventLogError, "one batch: no query left .* 0 of 1 batches usable"),
        ("mixed stages", EventLogError, "mixed stages: no query left .* different stages"),
    ],
)
def test_a_log_that_cannot_be_profiled_is_refused_in_one_line(
    profiled: Profiled, name: str, kind: type[HeadwayError], complaint: str
) -> None:
    with pytest.raises(kind, match=complaint) as caught:
        profiled(name)
    assert "\n" not in str(caught.value)


@needs(GROUND_TRUTH, stand_in="tests/test_recorded_runs.py::test_the_profile_tells_what_was_run")
def test_measured_runs_come_back(tmp_path: Path, subtests: pytest.Subtests) -> None:
    folder = GROUND_TRUTH / "sha_agg_local2"
    truths = [json.loads(line) for line in (folder / "truth.jsonl").read_text().splitlines()]
    pipeline = Pipeline(find_event_logs([*folder.glob("eventlog_v2_*")]).logs, tmp_path / "work")
    profile = pipeline.profile(0, queries=[truth["query_id"] for truth in truths])
    assert len(pipeline.profile(0, queries=[truths[1]["query_id"], "499de8bd"]).settings) == 2
    for truth, setting in zip(truths, profile.settings, strict=True):
        with subtests.test(query=truth["query_id"]):
            assert setting.query_id == truth["query_id"]
            assert setting.configuration.num_slots == truth["cores"]
            if truth["batch_duration_s"]["mean"] > truth["trigger_s"]:
                # Batches that overrun the interval follow each other: the log does not tell it.
                assert setting.configuration.trigger_s == 0.0
            else:
                assert setting.configuration.trigger_s == truth["trigger_s"]
            assert setting.configuration.shuffle_partitions == truth["shuffle_partitions"]
            assert setting.rate_per_s == pytest.approx(truth["rate_per_s"], rel=0.01)
            # Few batches, and cut after another time than these.
            assert setting.batch_duration_mean_s == pytest.approx(
                truth["batch_duration_s"]["mean"], rel=0.10
            )


def test_progress_alone_tells_how_duration_grows_with_rows(profiled: Profiled) -> None:
    profile = profiled("progress only")
    assert {stage.separation for stage in profile.stages} == {"totals"}
    assert any("only progress" in note for note in profile.notes)
    known = profiled("two settings")
    for setting, other in zip(profile.settings, known.settings, strict=True):
        assert setting.batch_duration_mean_s == other.batch_duration_mean_s
        assert setting.modelled_duration_mean_s == pytest.approx(
            setting.batch_duration_mean_s, rel=0.05
        )
    (first, second) = (setting.configuration for setting in profile.settings)
    assert not predict(profile, replace(second, executors=16), profile.arrivals).calibrated
    assert not predict(profile, replace(second, shuffle_partitions=64), profile.arrivals).calibrated
    assert not predict(profile, replace(second, executors=3), profile.arrivals).calibrated
    assert predict(profile, second, profile.arrivals).calibrated
    assert first.num_slots == second.num_slots == 4
