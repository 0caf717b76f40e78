"""The tables themselves: what no profile shows is right too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from headway.profiler import schema
from headway.profiler.collect import collect
from headway.profiler.contents import CollectedLogs
from headway.profiler.engines.in_process import read_in_process
from headway.profiler.export import TABLES, table_rows_of
from headway.profiler.logs.sources import find_event_logs
from headway.profiler.logs.unpacking import unpack
from headway.profiler.pieces import pieces_of
from headway.profiler.rows import Record
from tests.profiler.event_log import MAP, AppLog, Query, write_plain, write_rolling

QUERY = Query(num_batches=6, noise=0.0)


class Tables(NamedTuple):
    """What was read of some logs: sums, and rows by table."""

    collected: CollectedLogs
    rows: Mapping[str, Sequence[Record]]


def read(work_folder: Path) -> Tables:
    pieces, engine = pieces_of(work_folder), read_in_process
    collected = collect(pieces, engine)
    rows: dict[str, list[Record]] = {name: [] for name in TABLES}
    for name, of_table in table_rows_of(pieces, engine, collected.applications):
        rows[name] += of_table
    return Tables(collected, rows)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
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
    return read(folder / "work")


def test_only_events_that_are_used_are_read(tables: Tables) -> None:
    kinds = {event for facts in tables.collected.applications.values() for event in facts.counts}
    # The queries here read no files, run no adaptive plans, and not on Databricks, and no command
    # runs an execution inside another.
    absent = {
        "DBCEventLoggingListenerMetadata",
        *schema.RECORDER_EVENTS,
        schema.APPLICATION_END,
        schema.DRIVER_UPDATES,
        schema.ADAPTIVE_UPDATE,
        schema.SQL_EXECUTION_END,
        schema.QUERY_PROGRESS_OF_2_0,
    }
    # Of stages without an end, the start is read.
    assert kinds == {*schema.READ_EVENTS, schema.STAGE_SUBMITTED} - absent


def test_applications_hold_their_executors(tables: Tables) -> None:
    first, second = tables.rows["applications"]
    assert (first["application_id"], second["application_id"]) == ("first", "second")
    assert sorted(event["num_cores"] for event in first["executors"]) == [2, 4]
    assert sorted(event["num_cores"] or 0 for event in second["executors"]) == [0, 8]


def test_stages_sum_up_their_tasks_and_know_their_batch(tables: Tables) -> None:
    stages = [row for row in tables.collected.stage_runs if row["app"] == 0]
    batches = [row for row in tables.collected.batches if row["app"] == 0]
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


def test_tasks_stand_in_their_table_as_their_stages_sum_them_up(tables: Tables) -> None:
    tasks = tables.rows["tasks"]
    for stage in tables.collected.stage_runs:
        key = stage["app"], stage["stage_id"], stage["attempt_id"]
        of_stage = [
            task for task in tasks if (task["app"], task["stage_id"], task["attempt_id"]) == key
        ]
        assert len(of_stage) == stage["num_finished"]
        for name in ("run_s", "rows_read", "shuffle_read_bytes", "shuffle_write_bytes"):
            assert sum(task[name] for task in of_stage) == pytest.approx(stage[name])
        walls_s = [task["wall_s"] for task in of_stage]
        assert stage["task_mean_s"] == pytest.approx(sum(walls_s) / len(walls_s))
        assert stage["task_max_s"] == pytest.approx(max(walls_s))


def test_batches_leave_in_seconds(tables: Tables) -> None:
    (batch,) = (row for row in tables.rows["batches"] if (row["app"], row["batch_id"]) == (0, 3))
    assert batch["phases_s"]["walCommit"] == pytest.approx(0.030)
    assert batch["started_s"] % 1.0 == pytest.approx(QUERY.start_delay_s, abs=1e-5)
    assert (batch["query_id"], batch["run_id"]) == (QUERY.query_id, QUERY.run)
    assert batch["num_rows"] == QUERY.rate_per_s


def test_no_folder_name_confuses_the_number_of_a_log(tmp_path: Path) -> None:
    folder = tmp_path / "query=7" / "it's"
    folder.mkdir(parents=True)
    log = write_plain(AppLog().add(QUERY).lines, folder / "log")
    unpack(find_event_logs([log]).logs, folder / "work")
    assert [row["app"] for row in read(folder / "work").rows["applications"]] == [0]
