"""What is recorded, against Spark's own event log of the same queries; and what may go wrong."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyspark
import pytest
import zstandard
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import headway
from headway.errors import HeadwayError, InputError
from headway.formats.text_file import AppendedFile
from headway.profiler import schema
from headway.profiler.coverage import gaps
from headway.profiler.recording.driver_store import DriverStore
from headway.profiler.recording.listener import recording_listener
from headway.profiler.recording.recorder import RECORDED_PROPERTIES, Recorder, record
from headway.profiler.recording.recorder_file import Json
from headway.runtime.measure import progress_events
from headway.runtime.word_count import word_count

JOB, STAGE, TASK, JOB_END = (
    f"SparkListener{name}" for name in ("JobStart", "StageCompleted", "TaskEnd", "JobEnd")
)
LISTENER = "org.apache.spark.sql.streaming.StreamingQueryListener"
PROGRESS = f"{LISTENER}$QueryProgressEvent"
TERMINATED = f"{LISTENER}$QueryTerminatedEvent"
HEADER = ["HeadwayRecorderStart"] + [
    f"SparkListener{name}"
    for name in ("LogStart", "ApplicationStart", "EnvironmentUpdate", "ExecutorAdded")
]
END = schema.RECORDER_END
SECRET = "hunter2"
NAME = f"recorded from https://me:{SECRET}@example.org/words"
NUM_BATCHES = 8


@dataclass(frozen=True)
class Recorded:
    """A query that was recorded from start to end."""

    path: Path
    progress: Sequence[Mapping[str, Any]]
    num_events: int
    num_lost: int
    last_error: Exception | None


def start(
    spark: SparkSession, checkpoint: Path, *, trigger: str = "0 seconds", name: str | None = None
) -> StreamingQuery:
    words = word_count(spark, rate_per_s=400, num_source_partitions=3, hash_rounds=1)
    writer = words.writeStream.format("noop").outputMode("update")
    if name is not None:
        writer = writer.queryName(name)
    return (
        writer.option("checkpointLocation", str(checkpoint)).trigger(processingTime=trigger).start()
    )


def wait(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline_s, "nothing for a minute"
        time.sleep(0.02)


def num_batches(query: StreamingQuery) -> int:
    assert query.isActive, query.exception()
    return sum(event["numInputRows"] > 0 for event in progress_events(query))


def events_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def of_name(events: Sequence[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [event for event in events if event["Event"] == name]


def listeners(spark: SparkSession) -> int:
    session: Any = spark
    return len(session._jsparkSession.streams().listListeners())


def recorder_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if "headway" in thread.name]


def looks_at_every_batch_in_time(patch: pytest.MonkeyPatch) -> None:
    """Each batch's work comes with the batch.

    On a busy machine it may come with a later event, for the events of queries and of tasks are
    delivered side by side; or not at all, for looking at it has taken as long as is allowed.
    """
    work_before = DriverStore.work_before

    def work_delivered_before(self: DriverStore, event: Json) -> Iterator[list[Json]]:
        self.wait_for_delivery()
        return work_before(self, event)

    patch.setattr(DriverStore, "work_before", work_delivered_before)
    patch.setattr("headway.profiler.recording.recorder._MOST_SAVED_S", 60.0)


@pytest.fixture(scope="module")
def recorded(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    folder = tmp_path_factory.mktemp("recorded")
    path = folder / "words.headway.jsonl"
    secrets = ("spark.hadoop.fs.s3a.secret.key", "spark.sql.catalog.orders.password")
    for key in secrets:
        spark.conf.set(key, SECRET)
    try:
        with pytest.MonkeyPatch.context() as patch:
            looks_at_every_batch_in_time(patch)
            with record(spark, path, max_cost_ratio=1.0) as recorder:
                query = start(spark, folder / "checkpoint", trigger="250 milliseconds", name=NAME)
                try:
                    wait(lambda: num_batches(query) >= NUM_BATCHES)
                finally:
                    query.stop()
    finally:
        for key in secrets:
            spark.conf.unset(key)
    yield Recorded(
        path,
        progress_events(query),
        recorder.num_events,
        recorder.num_lost,
        recorder.last_error,
    )


@pytest.fixture(scope="module")
def lines_of_log(recorded: Recorded, spark_event_log_dir: Path) -> list[bytes]:
    """The event log of the whole session, as far as it is written."""
    (part,) = spark_event_log_dir.glob("eventlog_v2_*/events_1_*.zstd")
    text = io.BytesIO()
    with part.open("rb") as packed:
        reader = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
        while chunk := reader.read(1 << 20):
            text.write(chunk)
    return text.getvalue().splitlines()


@pytest.fixture(scope="module")
def logged(lines_of_log: list[bytes]) -> list[dict[str, Any]]:
    """Its jobs, stages, tasks and progress."""
    wanted = tuple(f'{{"Event":"{name}"'.encode() for name in (JOB, STAGE, TASK, JOB_END, PROGRESS))
    return [json.loads(line) for line in lines_of_log if line.startswith(wanted)]


def assert_within(part: Mapping[str, Any], whole: Mapping[str, Any], where: str) -> None:
    """Everything in one is in the other, and the same."""
    for key, value in part.items():
        if isinstance(value, dict):
            assert_within(value, whole[key], f"{where}/{key}")
        else:
            assert value == whole[key], f"{where}/{key}"


def by_id(events: Sequence[dict[str, Any]], name: str, *path: str) -> dict[Any, dict[str, Any]]:
    found = {}
    for event in of_name(events, name):
        value: Any = event
        for key in path:
            value = value[key]
        found[value] = event
    return found


def test_jobs_stages_and_tasks_are_those_of_the_event_log(
    recorded: Recorded, logged: list[dict[str, Any]]
) -> None:
    events = events_of(recorded.path)
    run_id = recorded.progress[0]["runId"]
    finished = {str(report["batchId"]) for report in recorded.progress}
    jobs = {
        number: job
        for number, job in by_id(logged, JOB, "Job ID").items()
        if job["Properties"].get("spark.jobGroup.id") == run_id
        and job["Properties"]["streaming.sql.batchId"] in finished
    }
    stage_ids = {stage for job in jobs.values() for stage in job["Stage IDs"]}
    expected = {
        JOB: (("Job ID",), jobs),
        JOB_END: (
            ("Job ID",),
            {n: end for n, end in by_id(logged, JOB_END, "Job ID").items() if n in jobs},
        ),
        STAGE: (
            ("Stage Info", "Stage ID"),
            {
                number: stage
                for number, stage in by_id(logged, STAGE, "Stage Info", "Stage ID").items()
                if number in stage_ids
            },
        ),
        TASK: (
            ("Task Info", "Task ID"),
            {
                number: task
                for number, task in by_id(logged, TASK, "Task Info", "Task ID").items()
                if task["Stage ID"] in stage_ids
            },
        ),
    }
    for name, (path, in_log) in expected.items():
        ours = by_id(events, name, *path)
        assert ours.keys() == in_log.keys()
        for number, event in ours.items():
            assert_within(event, in_log[number], f"{name} {number}")
    # Three map tasks and two reduce tasks a batch, and the reduce stage behind the map stage.
    assert len(of_name(events, TASK)) == 5 * len(jobs)
    parents = [stage["Stage Info"]["Parent IDs"] for stage in of_name(events, STAGE)]
    assert Counter(map(len, parents)) == {0: len(jobs), 1: len(jobs)}
    rows_read = sum(
        task["Task Metrics"]["Input Metrics"]["Records Read"] for task in of_name(events, TASK)
    )
    assert rows_read == sum(report["numInputRows"] for report in recorded.progress) > 0


def test_batches_are_those_that_the_query_tells_of(recorded: Recorded) -> None:
    events = of_name(events_of(recorded.path), PROGRESS)
    clean = json.loads(json.dumps(list(recorded.progress)).replace(f"me:{SECRET}@", ""))
    assert [event["progress"] for event in events] == clean
    assert (recorded.num_lost, recorded.last_error) == (0, None)
    assert recorded.num_events == len(events_of(recorded.path)) - len([*HEADER, END])


def test_work_stands_before_the_progress_of_its_batch(recorded: Recorded) -> None:
    events = events_of(recorded.path)
    names = [event["Event"] for event in events]
    assert names[: len(HEADER)] == HEADER
    assert names[-2:] == [TERMINATED, END]
    done = -1
    for event in events:
        if event["Event"] == JOB:
            assert int(event["Properties"]["streaming.sql.batchId"]) == done + 1
        if event["Event"] == PROGRESS and "addBatch" in event["progress"]["durationMs"]:
            done = event["progress"]["batchId"]


def without_operators(lines: Sequence[bytes], path: Path) -> Path:
    """A log that says as little of what its stages run as a recording does."""
    with path.open("w") as log:
        for event in map(json.loads, lines):
            if event["Event"] == schema.SQL_EXECUTION_START:
                continue
            if "Stage Info" in event:
                event["Stage Info"]["RDD Info"] = []
            log.write(json.dumps(event) + "\n")
    return path


def test_a_recording_gives_the_profile_of_the_event_log(
    spark: SparkSession, recorded: Recorded, lines_of_log: list[bytes], tmp_path: Path
) -> None:
    log = without_operators(lines_of_log, tmp_path / "log.jsonl")
    query = [str(recorded.progress[0]["id"])]
    ours = headway.profile(recorded.path, session=spark)
    theirs = headway.profile(log, queries=query, session=spark)
    (setting,), (expected,) = ours.settings, theirs.settings
    assert setting.configuration == expected.configuration
    assert (setting.configuration.executors, setting.configuration.cores_per_executor) == (1, 2)
    assert setting.num_batches == expected.num_batches
    # Spark sums in no fixed order.
    assert setting.rate_per_s == pytest.approx(expected.rate_per_s)
    assert setting.jvm_age_s == pytest.approx(expected.jvm_age_s)
    assert setting.batch_duration_mean_s == pytest.approx(expected.batch_duration_mean_s)
    assert setting.modelled_duration_mean_s == pytest.approx(expected.modelled_duration_mean_s)
    assert [stage.level for stage in ours.stages] == [stage.level for stage in theirs.stages]
    assert len(ours.stages) == 2


def test_no_secret_is_written(recorded: Recorded) -> None:
    text = recorded.path.read_text()
    assert SECRET not in text
    assert "https://example.org/words" in text
    (environment,) = of_name(events_of(recorded.path), "SparkListenerEnvironmentUpdate")
    assert environment.keys() == {"Event", "Spark Properties"}
    assert environment["Spark Properties"].keys() <= set(RECORDED_PROPERTIES)
    assert environment["Spark Properties"]["spark.sql.shuffle.partitions"] == "2"


def test_the_text_of_a_failure_is_not_written(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "failing.headway.jsonl"
    rows = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
    with record(spark, path, max_cost_ratio=1.0) as recorder:
        query = (
            rows.selectExpr(f"raise_error('{SECRET}')")
            .writeStream.format("noop")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .start()
        )
        wait(lambda: not query.isActive)
        wait(lambda: bool(of_name(events_of(path), TERMINATED)))
    assert SECRET in str(query.exception())
    assert SECRET not in path.read_text()
    (terminated,) = of_name(events_of(path), TERMINATED)
    assert terminated["exception"] == "left out"
    assert recorder.last_error is None


def test_stop_leaves_nothing_behind_and_may_be_repeated(
    spark: SparkSession, tmp_path: Path
) -> None:
    before = listeners(spark)
    recorder = record(spark, tmp_path / "a.headway.jsonl", max_cost_ratio=1.0)
    assert listeners(spark) == before + 1
    assert recorder_threads() == ["headway-recorder"]
    recorder.stop()
    recorder.stop()
    assert listeners(spark) == before
    assert recorder_threads() == []
    assert [event["Event"] for event in events_of(tmp_path / "a.headway.jsonl")] == [*HEADER, END]
    assert (recorder.num_events, recorder.num_lost, recorder.last_error) == (0, 0, None)
    assert recorder.ended_because is None


def test_a_query_that_runs_already_is_recorded_from_now_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks_at_every_batch_in_time(monkeypatch)
    path = tmp_path / "late.headway.jsonl"
    query = start(spark, tmp_path / "checkpoint")
    try:
        wait(lambda: num_batches(query) >= 3)
        with record(spark, path, max_cost_ratio=1.0) as recorder:
            done = num_batches(query)
            wait(lambda: num_batches(query) >= done + 3)
    finally:
        query.stop()
    events = events_of(path)
    batches = {str(event["progress"]["batchId"]) for event in of_name(events, PROGRESS)}
    assert len(batches) >= 2
    assert "0" not in batches
    assert {job["Properties"]["streaming.sql.batchId"] for job in of_name(events, JOB)} == batches
    assert (recorder.num_lost, recorder.last_error) == (0, None)


def test_the_query_outlives_the_folder_of_the_recording(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "recording"
    folder.mkdir()
    query = start(spark, tmp_path / "checkpoint")
    try:
        with record(spark, folder / "a.headway.jsonl", max_cost_ratio=1.0) as recorder:
            wait(lambda: recorder.num_events > 0)
            shutil.rmtree(folder)
            wait(lambda: recorder.last_error is not None)
            wait(lambda: recorder_threads() == [])
            done = num_batches(query)
            wait(lambda: num_batches(query) >= done + 3)
    finally:
        query.stop()
    assert recorder.num_lost > 0
    assert "recording ended" in str(recorder.last_error)
    assert not folder.exists()


def test_a_full_disk_ends_the_recording_and_is_said(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = tmp_path / "a.headway.jsonl"
    query = start(spark, tmp_path / "checkpoint")

    def full(_: AppendedFile, __: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    try:
        with record(spark, path, max_cost_ratio=1.0) as recorder:
            wait(lambda: recorder.num_events > 0)
            monkeypatch.setattr(AppendedFile, "append", full)
            wait(lambda: recorder_threads() == [])
            done = num_batches(query)
            wait(lambda: num_batches(query) >= done + 2)
    finally:
        query.stop()
    reason = f"{path}: cannot be written any more (No space left on device); recording ended"
    assert recorder.ended_because == reason
    (said,) = [
        record.getMessage() for record in caplog.records if record.name == "headway.recorder"
    ]
    assert said == f"{reason}; the queries go on"
    assert recorder.num_lost > 0


def test_a_second_recorder_on_the_same_file_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.headway.jsonl"
    before = listeners(spark)
    with record(spark, path):
        with pytest.raises(InputError, match="another writer appends to it"):
            record(spark, path)
        assert listeners(spark) == before + 1
        assert recorder_threads() == ["headway-recorder"]
    record(spark, path).stop()


def test_an_error_of_ours_costs_one_event(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.headway.jsonl"
    with record(spark, path, max_cost_ratio=1.0) as recorder:
        recorder._hand_over(lambda: {"Event": str(1 // 0)})
        recorder._hand_over(lambda: {"Event": "next"})
    assert isinstance(recorder.last_error, ZeroDivisionError)
    assert recorder.num_lost == 1
    assert events_of(path)[len(HEADER) : -1] == [
        {"Event": "next"},
        {"Event": schema.RECORDER_LOST, "num_lost": 1},
    ]


def test_tasks_of_some_batches_are_passed_over_where_all_would_cost_too_much(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As much as looks at some batches take, and hardly any more later.
    monkeypatch.setattr("headway.profiler.recording.recorder._MOST_SAVED_S", 0.3)
    path = tmp_path / "a.headway.jsonl"
    with record(spark, path, max_cost_ratio=1e-6) as recorder:
        query = start(spark, tmp_path / "checkpoint")
        try:
            wait(lambda: recorder.num_passed_over >= 2)
        finally:
            query.stop()
    events = events_of(path)
    reported = {event["progress"]["batchId"] for event in of_name(events, PROGRESS)}
    looked_at = {int(job["Properties"]["streaming.sql.batchId"]) for job in of_name(events, JOB)}
    passed_over = of_name(events, schema.RECORDER_PASSED_OVER)
    assert looked_at
    assert looked_at < reported
    assert recorder.num_passed_over == len(reported - looked_at)
    assert sum(event["num_batches"] for event in passed_over) == recorder.num_passed_over
    assert (recorder.num_lost, recorder.last_error) == (0, None)
    (log,) = headway.survey([path], session=spark).logs
    assert log.coverage is not None
    assert log.coverage.passed_over_batches == recorder.num_passed_over
    assert any("max_cost_ratio=1.0" in gap for gap in gaps(log.coverage))


def test_an_idle_query_is_recorded_too() -> None:
    deferred: list[Callable[[], Json]] = []
    event: Any = SimpleNamespace(id="q", runId="r", timestamp="2026-11-30T09:08:52.000Z")
    recording_listener(deferred.append).onQueryIdle(event)
    said = {"id": "q", "runId": "r", "timestamp": event.timestamp}
    assert [line() for line in deferred] == [{"Event": f"{LISTENER}$QueryIdleEvent", **said}]


def test_what_finds_no_room_in_the_queue_is_counted(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.headway.jsonl"
    release = threading.Event()

    def slow() -> Mapping[str, Any]:
        release.wait(60)
        return {"Event": "slow"}

    with record(spark, path, max_cost_ratio=1.0) as recorder:
        recorder._hand_over(slow)
        for _ in range(1500):
            recorder._hand_over(lambda: {"Event": "quick"})
        lost = recorder.num_lost
        release.set()
    # One is out of the queue and being written, or not yet.
    assert lost in (500, 501)
    events = events_of(path)
    assert len(of_name(events, "quick")) == 1500 - lost
    assert sum(event["num_lost"] for event in of_name(events, schema.RECORDER_LOST)) == lost


def test_full_files_make_way(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks_at_every_batch_in_time(monkeypatch)
    path = tmp_path / "a.headway.jsonl"
    most_bytes = 20_000
    with record(spark, path, max_cost_ratio=1.0, max_bytes=most_bytes, max_files=3) as recorder:
        query = start(spark, tmp_path / "checkpoint")
        try:
            wait(lambda: num_batches(query) >= 16)
        finally:
            query.stop()
    files = sorted(tmp_path.glob("a.headway.jsonl*"), reverse=True)
    assert [file.name[len(path.name) :] for file in files] == [".2", ".1", ""]
    batches = []
    for file in files:
        assert file.stat().st_size <= most_bytes
        events = events_of(file)
        assert [event["Event"] for event in events[: len(HEADER)]] == HEADER
        # Each file has the work of each of its batches.
        progress = [event["progress"]["batchId"] for event in of_name(events, PROGRESS)]
        jobs = [int(job["Properties"]["streaming.sql.batchId"]) for job in of_name(events, JOB)]
        assert len(of_name(events, TASK)) == 5 * len(jobs)
        assert jobs == progress
        batches += progress
    assert batches == list(range(batches[0], batches[-1] + 1))
    assert (recorder.num_lost, recorder.last_error) == (0, None)


def test_a_file_that_exists_is_appended_to(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.headway.jsonl"
    record(spark, path).stop()
    with path.open("a") as file:
        file.write('{"Event":"SparkListenerTaskEnd","Stage I')
    before = path.read_text()
    record(spark, path).stop()
    text = path.read_text()
    assert text.startswith(before + "\n")
    names = [json.loads(line)["Event"] for line in text[len(before) :].split("\n")[1:-1]]
    assert names == [*HEADER, END]
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_another_application_gets_a_file_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.headway.jsonl"
    other = '{"Event":"SparkListenerApplicationStart","App Name":"a","App ID":"app-1"}\n'
    path.write_text(other)
    record(spark, path).stop()
    assert (tmp_path / "a-app-1.headway.jsonl").read_text() == other
    assert [event["Event"] for event in events_of(path)] == [*HEADER, END]


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"max_files": 0}, "max_files is 0"),
        ({"max_bytes": 1.5}, "max_bytes is 1.5"),
        ({"executors": True, "cores_per_executor": 1}, "executors is True"),
        ({"executors": 2}, "go together"),
        ({"max_cost_ratio": 0.0}, "max_cost_ratio is 0.0"),
        ({"max_cost_ratio": 1.5}, "max_cost_ratio is 1.5"),
        ({"max_cost_ratio": "1%"}, "max_cost_ratio is '1%'; expected a share above 0, at most 1"),
    ],
)
def test_settings_that_make_no_sense(
    spark: SparkSession, tmp_path: Path, settings: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(InputError, match=complaint):
        record(spark, tmp_path / "a.headway.jsonl", **settings)
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_is_reported_at_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    before = listeners(spark)
    with pytest.raises(HeadwayError, match=r"nowhere/a\.headway\.jsonl: cannot be written"):
        record(spark, tmp_path / "nowhere" / "a.headway.jsonl")
    if os.path.exists("/dev/full"):  # noqa: PTH110
        with pytest.raises(HeadwayError, match="No space left"):
            record(spark, "/dev/full")
    assert listeners(spark) == before
    assert recorder_threads() == []


def test_connect_of_spark_3_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from headway.profiler.recording.recorder import _require_listeners_on_this_side

    monkeypatch.setattr(pyspark, "__version__", "4.0.0")
    _require_listeners_on_this_side()
    monkeypatch.setattr(pyspark, "__version__", "3.5.9")
    with pytest.raises(HeadwayError, match="on the server"):
        _require_listeners_on_this_side()


def test_the_recorder_is_a_context_manager(spark: SparkSession, tmp_path: Path) -> None:
    with (
        pytest.raises(KeyError),
        record(spark, tmp_path / "a.headway.jsonl") as recorder,
    ):
        assert isinstance(recorder, Recorder)
        raise KeyError
    assert recorder_threads() == []
