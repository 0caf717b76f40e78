"""Lines of a log -> rows of its tables, for those who want them one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from headway.profiler import schema
from headway.profiler.events import read_line
from headway.profiler.files_read import batch_of
from headway.profiler.gathered import has_its_plan_read
from headway.profiler.rows import (
    Record,
    batch_row,
    instant_s,
    job_end_row,
    job_row,
    plan_row,
    stage_row,
    task_row,
)
from headway.profiler.stage_totals import SAID_AGAIN

QUERY_EVENTS, JOB_ENDS = "query_events", "job_ends"
"""Tables that others are made of: what is said of queries, and ends of jobs."""


class TableRows:
    """Rows by table, line after line: what stands twice in the log stands twice here.

    Tables are batches, jobs, stages, tasks, plans, and those that others are made of.
    """

    def __init__(self) -> None:
        self.tables: dict[str, list[Record]] = {
            name: []
            for name in ("batches", "jobs", "stages", "tasks", "plans", QUERY_EVENTS, JOB_ENDS)
        }

    def add(self, lines: Iterable[bytes]) -> int:
        """The rows of some more lines; how many of them were events."""
        num_events = 0
        for line in lines:
            said = read_line(line)
            if said is None:
                continue
            num_events += 1
            if said.event is not None and (rows_of := _ROWS_OF.get(type(said.event))) is not None:
                for table, row in rows_of(said.event):
                    self.tables[table].append(row)
        return num_events


_Rows = Iterable[tuple[str, Record]]


def _of_job_start(event: schema.JobStart) -> _Rows:
    if event.job_id is not None:
        yield "jobs", job_row(event)


def _of_job_end(event: schema.JobEnd) -> _Rows:
    if event.job_id is not None:
        yield JOB_ENDS, {"job_id": event.job_id} | dict(job_end_row(event))


def _of_stage_completed(event: schema.StageCompleted) -> _Rows:
    if event.info is not None and event.info.stage_id is not None:
        yield "stages", stage_row(event.info)


def _of_task_end(event: schema.TaskEnd) -> _Rows:
    reason = event.reason.reason if event.reason is not None else None
    if event.stage_id is not None and reason != SAID_AGAIN:
        yield "tasks", task_row(event)


def _of_sql_execution_start(event: schema.SqlExecutionStart) -> _Rows:
    batch = batch_of(event)
    if event.execution_id is None or event.plan is None:
        return
    if batch is None:
        yield "plans", plan_row(event, None, None)
    elif has_its_plan_read(batch):
        yield "plans", plan_row(event, batch.run_id, batch.batch_id)


def _of_query_progress(event: schema.QueryProgress) -> _Rows:
    progress = event.progress
    if progress is None:
        return
    yield (
        QUERY_EVENTS,
        {
            **_query_event(progress.query_id, progress.run_id, progress.query_name),
            "started_s": instant_s(progress.timestamp),
            "batch_id": progress.batch_id,
        },
    )
    if progress.query_id is not None and progress.batch_id is not None:
        yield "batches", batch_row(progress)


def _of_query_started(event: schema.QueryStarted) -> _Rows:
    yield QUERY_EVENTS, _query_event(event.query_id, event.run_id, event.query_name)


def _of_query_terminated(event: schema.QueryTerminated) -> _Rows:
    said = _query_event(event.query_id, event.run_id, None)
    yield QUERY_EVENTS, {**said, "terminated": True, "failed": event.exception is not None}


def _query_event(query_id: str | None, run_id: str | None, query_name: str | None) -> Record:
    return {
        "query_id": query_id,
        "run_id": run_id,
        "query_name": query_name,
        "started_s": None,
        "batch_id": None,
        "terminated": False,
        "failed": False,
    }


_ROWS_OF: dict[type, Callable[[Any], _Rows]] = {
    schema.JobStart: _of_job_start,
    schema.JobEnd: _of_job_end,
    schema.StageCompleted: _of_stage_completed,
    schema.TaskEnd: _of_task_end,
    schema.SqlExecutionStart: _of_sql_execution_start,
    schema.QueryStarted: _of_query_started,
    schema.QueryProgress: _of_query_progress,
    schema.QueryTerminated: _of_query_terminated,
}
