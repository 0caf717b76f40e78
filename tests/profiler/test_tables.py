"""The tables themselves: what the driver never sees is right too."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headway.profiler import aggregates, schema, tables
from headway.profiler.events import read_events
from headway.profiler.logs.sources import find_event_logs
from headway.profiler.logs.unpacking import unpack
from tests.profiler.event_log import MAP, AppLog, Query, write_plain, write_rolling

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUERY = Query(num_batches=6, noise=0.0)


@pytest.fixture(scope="module")
def events(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    """Two logs, the second a rolling one of another cluster, its executor removed again."""
    folder = tmp_path_factory.mktemp("logs")
    first = AppLog(app_id="first", executors=(4, 2)).add(QUERY)
    second = AppLog(app_id="second", executors=(8,)).add(QUERY)
    second.events.append(
        {"Event": schema.EXECUTOR_REMOVED, "Executor ID": "0", "Timestamp": 1_790_000_900_000}
    )
    logs = [
        write_plain(first.lines, folder / "first"),
        write_rolling(second.lines, folder / "eventlog_v2_second"),
    ]
    unpack(find_event_logs(logs).logs, folder / "work")
    return read_events(spark, folder / "work")


def test_only_events_that_are_used_are_parsed(events: DataFrame) -> None:
    kinds = {row["Event"] for row in events.select("Event").distinct().collect()}
    assert kinds == set(schema.READ_EVENTS) - {*schema.RECORDER_EVENTS, schema.APPLICATION_END}


def test_applications_hold_their_executors(events: DataFrame) -> None:
    first, second = sorted(tables.applications(events).collect(), key=lambda row: row["app"])
    assert (first["application_id"], second["application_id"]) == ("first", "second")
    assert sorted(event["num_cores"] for event in first["executors"]) == [2, 4]
    assert sorted(event["num_cores"] or 0 for event in second["executors"]) == [0, 8]


def test_stages_sum_up_their_tasks_and_know_their_batch(events: DataFrame) -> None:
    stages = aggregates.stage_runs(events).where("app = 0").orderBy("stage_id").collect()
    batches = tables.batches(events).where("app = 0").orderBy("batch_id").collect()
    assert [stage["batch_id"] for stage in stages] == [n for n in range(6) for _ in range(2)]
    assert {stage["run_id"] for stage in stages} == {QUERY.run}
    for batch, stage in zip(batches, stages[::2], strict=True):
        rows = batch["num_rows"]
        assert stage["num_tasks"] == stage["num_finished"] == MAP.num_tasks
        assert stage["rows_read"] == pytest.approx(rows, abs=4)
        assert stage["task_mean_s"] == pytest.approx(
            MAP.fixed_s + MAP.per_row_s * rows / 4, abs=0.001
        )
        assert stage["outside_run_s"] == pytest.approx(MAP.fixed_s / 2, abs=0.001)
        assert stage["launch_to_finish_s"] >= stage["task_max_s"]
        assert not stage["parent_ids"]
    assert [stage["parent_ids"] for stage in stages[1::2]] == [
        [stage["stage_id"]] for stage in stages[::2]
    ]


def test_batches_leave_in_seconds(events: DataFrame) -> None:
    batch = tables.batches(events).where("app = 0 AND batch_id = 3").head()
    assert batch is not None
    assert batch["phases_s"]["walCommit"] == pytest.approx(0.030)
    assert batch["started_s"] % 1.0 == pytest.approx(QUERY.start_delay_s, abs=1e-5)
    assert (batch["query_id"], batch["run_id"]) == (QUERY.query_id, QUERY.run)
    assert batch["num_rows"] == QUERY.rate_per_s


def test_no_folder_name_is_taken_for_a_column(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "query=7" / "it's"
    folder.mkdir(parents=True)
    log = write_plain(AppLog().add(QUERY).lines, folder / "log")
    unpack(find_event_logs([log]).logs, folder / "work")
    read = read_events(spark, folder / "work")
    assert "query" not in read.columns
    assert [row["app"] for row in tables.applications(read).collect()] == [0]
