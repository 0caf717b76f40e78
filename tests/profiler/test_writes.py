"""What the actions of a batch write, by the text of their plans and the times of executions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import headway
from headway.profiler.executions import Executions, write_in_words
from headway.profiler.schema import (
    SQL_EXECUTION_END,
    SQL_EXECUTION_START,
    SqlExecution,
)
from tests.profiler.event_log import AppLog, Query, Stage, write_plain


def plan_of(command: str, arguments: str, *, wrapper: str = "Execute ") -> str:
    """The plan of a command in Spark's usual form, with its arguments in a numbered section."""
    return (
        f"== Physical Plan ==\n{wrapper}{command} (2)\n+- Project (1)\n\n\n(1) Project\n"
        f"Input [1]: [n#1L]\n\n(2) {wrapper}{command}\nInput: []\nArguments: {arguments}\n\n"
    )


FILES, SOURCE, MERGE = (
    "InsertIntoHadoopFsRelationCommand",
    "SaveIntoDataSourceCommand",
    "MergeIntoCommand",
)
ORDERS = plan_of(FILES, "s3://shop/out/orders, false, Parquet, [path=s3://x/y], Append, [n]")
LATEST = plan_of(MERGE, "SubqueryAlias new, Delta[version=7, file:/shop/latest], (a#1 = b#2), []")
COUNT = "== Physical Plan ==\nHashAggregate (1)\n\n\n(1) HashAggregate\nKeys: []\n\n"


HIVE = "InsertIntoHiveTable"


@pytest.mark.parametrize(
    ("command", "arguments", "words"),
    [
        (FILES, "/out/sums/day=7/hour=1, false, Parquet, [], Overwrite, []", "overwrite sums"),
        (FILES, "/out/sums, false, Parquet, [], ErrorIfExists, []", "write to sums"),
        ("DeleteCommand", "Delta[version=7, file:/shop/old], [a#1]", "delete from old"),
        (SOURCE, "org.x.Delta@b6, [path=/shop/history], Append", "append to history"),
        (SOURCE, "org.x.Jdbc@b6, [url=***, dbtable=public.facts], Append", "append to facts"),
        (SOURCE, "org.x.Kafka@1, Map(topic -> out, acks -> 1), Append", "write to topic out"),
        (SOURCE, "org.x.Own@1, [], Append", None),
        ("AppendData", "org.x.L@2, IcebergWrite(table=c.shop.lines)", "append to lines"),
        (HIVE, "`hive`.`shop`.`days`, org.x.Serde, Append", "append to days"),
        ("CreateViewCommand", "`batch`, false", None),
    ],
)
def test_a_write_is_named_by_its_target(command: str, arguments: str, words: str | None) -> None:
    assert write_in_words(plan_of(command, arguments)) == words
    assert write_in_words(plan_of(command, arguments, wrapper="")) == words


@pytest.mark.parametrize("plan", [COUNT, "", ORDERS.replace("Arguments", "Nothing")])
def test_what_writes_nothing_has_no_name(plan: str) -> None:
    assert write_in_words(ORDERS) == "append to orders"
    assert write_in_words(plan) is None


def test_secrets_in_a_target_are_not_shown() -> None:
    token = "AKIAIOSFODNN7EXAMPLE"
    words = write_in_words(plan_of(SOURCE, f"org.x.Kafka@1, [topic={token}], Append"))
    assert words == "write to topic ***"


def test_a_hostile_plan_takes_no_time() -> None:
    section = f"(1) {SOURCE}\n"
    assert write_in_words(section * 20_000) is None


def start(execution_id: int, at_ms: int, plan: str = COUNT, root_id: int = 9) -> SqlExecution:
    return SqlExecution(
        execution_id=execution_id, root_execution_id=root_id, at_ms=at_ms, plan=plan
    )


def test_executions_inside_a_command_are_its_own() -> None:
    first, second = Executions(), Executions()
    first.note_start(start(10, 1000, LATEST), reads_plan=True)
    first.note_start(start(11, 1000), reads_plan=True)
    second.note_start(start(12, 1500), reads_plan=False)
    second.note_end(SqlExecution(execution_id=10, at_ms=1600))
    second.note_start(start(13, 1600), reads_plan=True)  # after it
    second.note_start(start(14, 1200, root_id=8), reads_plan=True)  # beside it, in another query
    for one, other in ((first, second), (second, first)):
        both = Executions()
        both.add(one)
        both.add(other)
        assert both.writes() == dict.fromkeys((10, 11, 12), "merge into latest")


def test_a_command_whose_end_is_not_recorded_has_nothing_inside() -> None:
    writes = Executions()
    writes.note_start(start(10, 1000, LATEST), reads_plan=True)
    writes.note_start(start(11, 1100), reads_plan=True)
    assert writes.writes() == {10: "merge into latest"}


def started(
    job: dict[str, Any], ids: dict[str, str], execution_id: int, plan: str, at_ms: int
) -> dict[str, Any]:
    """The start of an execution in the batch of a job."""
    properties = job["Properties"]
    run_id, batch_id = properties["spark.jobGroup.id"], properties["streaming.sql.batchId"]
    return {
        "Event": SQL_EXECUTION_START,
        "executionId": execution_id,
        "rootExecutionId": 100 * (job["Job ID"] // 3),
        "description": f"orders\nid = {ids[run_id]}\nrunId = {run_id}\nbatch = {batch_id}",
        "physicalPlanDescription": plan,
        "time": at_ms,
    }


def test_stages_of_foreach_batch_are_named_by_what_they_write(tmp_path: Path) -> None:
    read = Stage(num_tasks=2, per_row_s=30e-6, scopes=("Scan json",))
    query = Query(jobs=((read,), (read,), (read,)), operators=(), trigger_s=2.0, num_batches=30)
    log = AppLog().add(query).add(
        replace(query, rate_per_s=5_000.0, started_s=query.started_s + 200.0, seed=2)
    )  # fmt: skip
    ids = {event["runId"]: event["id"] for event in log.of("QueryStartedEvent")}
    events: list[dict[str, Any]] = []
    for job in log.of("JobStart"):
        batch, action = divmod(job["Job ID"], 3)
        at_ms, execution_id = job["Submission Time"], 100 * batch + 10 * action
        if action == 1:  # a command, which runs the job in an execution inside
            events.append(started(job, ids, execution_id, LATEST, at_ms - 1))
            ended = {"Event": SQL_EXECUTION_END, "executionId": execution_id, "time": at_ms + 1}
            events.append(ended)
            execution_id += 1
        plan = ORDERS if action == 0 else COUNT
        event = started(job, ids, execution_id, plan, at_ms)
        # Delta describes what it does inside by words of its own.
        events.append(event | {"description": "Delta: merge"} if action == 1 else event)
        job["Properties"]["spark.sql.execution.id"] = str(execution_id)
    log.events += events
    profile = headway.profile(write_plain(log.lines, tmp_path / "log"))
    assert [stage.work for stage in profile.stages] == [
        "append to orders: read json",
        "merge into latest: read json",
        "action 3 of 3: read json",
    ]
