"""Runs that drain a backlog have no rate; runs without use are listed with the reason."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import headway
from headway.cli.main import run
from headway.domain import JobProfile
from headway.errors import EventLogError, InputError
from headway.formats.profile_file import load_profile, save_profile
from headway.profiler import schema
from headway.profiler.known_values import DATABRICKS_RUNTIME
from tests.profiler.event_log import EPOCH_S, AppLog, Query

Event = dict[str, Any]
FAST = Query(name="orders", rate_per_s=20_000.0, trigger_s=0.0, num_batches=30, seed=5)
ROWS = 40_000


def events_of(*queries: Query) -> list[Event]:
    log = AppLog(executors=(4,))
    for query in queries:
        log.add(query)
    return [json.loads(line) for line in log.lines]


def written(folder: Path, events: Sequence[Event]) -> Path:
    path = folder / "app-1"
    path.write_text("\n".join(map(json.dumps, events)), encoding="utf-8")
    return path


def with_rows(events: list[Event], rows: int = ROWS, *, fixed_end: bool) -> list[Event]:
    """Batches that read equal numbers of rows, from offsets that count them or from files."""
    progress = [event["progress"] for event in events if "progress" in event]
    total = rows * len(progress)
    for place, one in enumerate(progress):
        one["numInputRows"] = one["sources"][0]["numInputRows"] = rows
        if fixed_end:
            one["sources"][0]["startOffset"] = {"orders": {"0": place * rows}}
            one["sources"][0]["endOffset"] = {"orders": {"0": (place + 1) * rows}}
            one["sources"][0]["latestOffset"] = {"orders": {"0": total}}
        else:
            one["sources"][0]["description"] = "FileStreamSource[file:/landing]"
            one["sources"][0]["endOffset"] = {"logOffset": place}
    return events


def drained(folder: Path, *, fixed_end: bool) -> JobProfile:
    return headway.profile(written(folder, with_rows(events_of(FAST), fixed_end=fixed_end)))


@pytest.mark.parametrize("fixed_end", [True, False])
def test_a_drain_has_no_rate(tmp_path: Path, fixed_end: bool) -> None:
    profile = drained(tmp_path, fixed_end=fixed_end)
    assert profile.drain is not None
    assert profile.drain.backlog_rows == pytest.approx(ROWS * FAST.num_batches)
    assert any("which is unknown" in note for note in profile.notes)
    with pytest.raises(InputError, match="rate is missing: the profiled query read a backlog"):
        headway.predict(profile)
    assert headway.predict(profile, rate=10_000, trigger=2.0).stable


def test_the_profile_file_carries_the_drain(tmp_path: Path) -> None:
    profile = drained(tmp_path, fixed_end=True)
    path = tmp_path / "job.profile.yaml"
    save_profile(profile, path)
    again = load_profile(path).drain
    assert again is not None
    assert profile.drain is not None
    assert again.backlog_rows == pytest.approx(profile.drain.backlog_rows)
    save_profile(replace(profile, drain=None), path)
    assert "drain" not in path.read_text(encoding="utf-8").replace("which is unknown", "")
    assert load_profile(path).drain is None


def test_the_heading_of_a_drain_asks_for_what_it_can_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "job.profile.yaml"
    save_profile(drained(tmp_path, fixed_end=True), path)
    heading = [line for line in path.read_text(encoding="utf-8").splitlines() if line[0] == "#"]
    assert not any("--rate" in line for line in heading)
    (command,) = (line.partition("headway ")[2] for line in heading if "headway plan" in line)
    assert run(shlex.split(command.replace("FILE", str(path)))) == 0
    assert "meets deadline <= 10 min" in capsys.readouterr().out


def test_a_query_that_keeps_up_is_no_drain(tmp_path: Path) -> None:
    profile = headway.profile(written(tmp_path, events_of(FAST)))
    assert profile.drain is None
    assert profile.arrivals.rate_per_s == pytest.approx(20_000, rel=0.05)


def test_equal_batches_on_a_trigger_are_no_drain(tmp_path: Path) -> None:
    events = with_rows(events_of(replace(FAST, trigger_s=1.0)), 20_000, fixed_end=False)
    profile = headway.profile(written(tmp_path, events))
    assert profile.drain is None


def test_offsets_that_move_are_no_drain(tmp_path: Path) -> None:
    events = with_rows(events_of(FAST), fixed_end=True)
    for place, event in enumerate(event for event in events if "progress" in event):
        event["progress"]["sources"][0]["latestOffset"] = {"orders": {"0": 2 * ROWS * (place + 1)}}
    profile = headway.profile(written(tmp_path, events))
    assert profile.drain is None


def test_predict_and_plan_ask_for_the_rate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "job.profile.yaml"
    save_profile(drained(tmp_path, fixed_end=True), path)
    assert run(["predict", str(path)]) == 2
    assert "--rate is missing: the profiled query read a backlog" in capsys.readouterr().err
    assert run(["plan", str(path), "--target", "p99 <= 10s"]) == 2
    assert "--rate is missing" in capsys.readouterr().err


SILENT = replace(
    FAST, name="silent", query_id="bbbbbbbb-0000-4000-8000-000000000002", num_batches=0
)
BROKEN = replace(SILENT, name="broken", query_id="bbbbbbbb-0000-4000-8000-000000000003")
CONTINUOUS = replace(SILENT, name="direct", query_id="bbbbbbbb-0000-4000-8000-000000000004")


def of_no_use() -> list[Event]:
    """A query that goes on without a batch, one that failed, and one in continuous mode."""
    events = events_of(SILENT, BROKEN, CONTINUOUS)
    of_run = f"id = {CONTINUOUS.query_id}\nrunId = {CONTINUOUS.run}"
    plan = {
        "Event": "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart",
        "executionId": 900,
        "description": f"direct\n{of_run}\nbatch = init",
        "physicalPlanDescription": "== Physical Plan ==\nWriteToContinuousDataSource (2)\n"
        "+- ContinuousScan (1)\n",
    }
    for event in events:
        if event["Event"].endswith("QueryTerminatedEvent") and event["id"] == BROKEN.query_id:
            event["exception"] = "java.lang.IllegalStateException: password=hunter2"
    return [
        event
        for event in events
        if not (event["Event"].endswith("TerminatedEvent") and event["id"] == SILENT.query_id)
    ] + [plan]


def test_queries_of_no_use_are_listed_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, [*events_of(FAST), *of_no_use()])
    assert run(["profile", str(path), "--check"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "4 runs of streaming queries: orders" in printed
    assert "0 batches, no end recorded; of no use: none of its batches ended in the log" in printed
    assert "failed; of no use: it failed before its first batch ended" in printed
    assert "of no use: it runs in continuous mode" in printed
    assert "hunter2" not in printed
    assert run(["profile", str(path), "--check", "--json"]) == 0
    (log,) = json.loads(capsys.readouterr().out)["logs"]
    assert log["profiled"] is True
    states = {query["name"]: query["state"] for query in log["queries"]}
    assert states == {
        "orders": "ended",
        "silent": "running",
        "broken": "failed",
        "direct": "ended",
    }
    assert [query["name"] for query in log["queries"] if not query["why_not"]] == ["orders"]


def test_a_log_of_such_queries_is_no_batch_job(tmp_path: Path) -> None:
    jobs = [event for event in events_of(FAST) if "progress" not in event]
    path = written(tmp_path, [*jobs, *of_no_use()])
    with pytest.raises(EventLogError, match="no query ended a batch"):
        headway.profile(path)


@pytest.mark.parametrize(("has_jobs", "words"), [(False, "nothing in it but"), (True, "it has")])
def test_progress_of_spark_2_0_says_what_to_record(
    has_jobs: bool, words: str, tmp_path: Path
) -> None:
    """It has neither times nor rows; what else such a log has is no batch job."""
    events = events_of(FAST) if has_jobs else []
    jobs = [event for event in events if "StreamingQueryListener" not in event["Event"]]
    sources = [{"description": "FileStreamSource[file:/data/in]", "offsetDesc": "#0"}]
    sink = {"description": "MemorySink@2b85b3a5", "offsetDesc": "[#0]"}
    query = {"name": "hello", "id": 0, "sourceStatuses": sources, "sinkStatus": sink}
    of_2_0 = {"Event": schema.QUERY_PROGRESS_OF_2_0, "queryInfo": query}
    end = {"Event": "SparkListenerApplicationEnd", "Timestamp": 1_477_593_059_313}
    with pytest.raises(EventLogError, match=rf"{words} the progress .* record a run on Spark 2\.1"):
        headway.profile(written(tmp_path, [*jobs, of_2_0, end]))


def test_runs_of_a_restarted_query_are_numbered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = replace(
        FAST, run_id="aaaaaaaa-0000-4000-8000-00000000000a", started_s=EPOCH_S + 300, seed=6
    )
    path = written(tmp_path, events_of(FAST, again))
    assert run(["profile", str(path), "--check"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "run 1 of 2: 30 batches" in printed
    assert "run 2 of 2, the newest: 30 batches" in printed


def of_databricks(*, metadata: bool) -> list[Event]:
    """The log of a Databricks cluster, whose own event is first, with an event of its own."""
    events = [event for event in events_of(FAST) if event["Event"] != "SparkListenerLogStart"]
    for event in events:
        if event["Event"] == "SparkListenerEnvironmentUpdate":
            event["Spark Properties"][DATABRICKS_RUNTIME] = "13.3.x-photon-scala2.12"
    vendors: list[Event] = [{"Event": "com.databricks.backend.SomeEvent", "secret": "hunter2"}]
    if metadata:
        first = {"Event": "DBCEventLoggingListenerMetadata", "Rollover Number": 0}
        vendors.append({**first, "Spark Version": "3.4.1"})
    return [*vendors, *events]


@pytest.mark.parametrize(("metadata", "version"), [(True, "3.4.1"), (False, "3.4")])
def test_databricks_says_its_spark_version(tmp_path: Path, metadata: bool, version: str) -> None:
    profile = headway.profile(written(tmp_path, of_databricks(metadata=metadata)))
    assert profile.application.spark_version == version
    assert profile.application.properties[DATABRICKS_RUNTIME] == "13.3.x-photon-scala2.12"
    assert profile.coverage is not None
    assert profile.coverage.unknown_events == 1


@pytest.mark.parametrize("runtime", ["hunter2", "13.3.x-hunter2", "custom:13.3.x", "13.3.x a"])
def test_another_runtime_is_not_shown(tmp_path: Path, runtime: str) -> None:
    events = of_databricks(metadata=True)
    for event in events:
        if event["Event"] == "SparkListenerEnvironmentUpdate":
            event["Spark Properties"][DATABRICKS_RUNTIME] = runtime
    profile = headway.profile(written(tmp_path, events))
    assert DATABRICKS_RUNTIME not in profile.application.properties


def test_jobs_with_the_same_sources_and_sink_are_set_apart(tmp_path: Path) -> None:
    other = replace(
        FAST, name="others", query_id="9c1c7e0a-0d51-4a0e-9d1d-1f2e3d4c5b6a",
        operators=("dedupe",), started_s=FAST.started_s + 600.0,
    )  # fmt: skip
    with pytest.raises(InputError, match="with the same sources and sink differ in stateful oper"):
        headway.profile(written(tmp_path, events_of(FAST, other)))
    elsewhere = replace(other, sink="KafkaTable")
    with pytest.raises(InputError, match="different jobs") as refused:
        headway.profile(written(tmp_path, events_of(FAST, elsewhere)))
    assert "differ in" not in str(refused.value)
