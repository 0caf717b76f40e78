"""Events -> rows of tables: times in seconds (instants since the epoch), sizes in bytes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import msgspec

from headway.profiler.schema import (
    JobEnd,
    JobStart,
    Progress,
    SourceProgress,
    SqlExecutionStart,
    StageInfo,
    StateOperator,
    TaskEnd,
    TaskInfo,
)
from headway.profiler.stage_totals import (
    measured_ms,
    measures,
    python_ms,
    seconds,
    succeeded,
)

Record: TypeAlias = Mapping[str, Any]
"""A row of a table, by column."""

_RUN_ID = re.compile(r"[0-9a-f-]{8,36}")
_WHOLE_NUMBER = re.compile(r"\s*[+-]?\d{1,19}\s*", re.ASCII)
_OPERATOR = re.compile(r"(?m)^\(\d+\) ([A-Za-z]+)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LARGEST_LONG = 2**63 - 1
_LARGEST_INT = 2**31 - 1


def batch_row(progress: Progress) -> Record:
    """One progress event; what it lacks or garbles is None.

    Columns: query_id, run_id, query_name, batch_id, started_s, phases_s (driver phase to seconds),
    num_rows, sources (description, start, end and latest offset, num_rows), sink,
    stateful_operators, watermarked, newest_event_s (event time).
    """
    event_time, phases_ms = progress.event_time, progress.phases_ms
    return {
        "query_id": progress.query_id,
        "run_id": progress.run_id,
        "query_name": progress.query_name,
        "batch_id": progress.batch_id,
        "started_s": instant_s(progress.timestamp),
        "phases_s": None
        if phases_ms is None
        else {name: seconds(phase_ms) for name, phase_ms in phases_ms.items()},
        "num_rows": _num_rows(progress),
        "sources": None
        if progress.sources is None
        else [_source(source or SourceProgress()) for source in progress.sources],
        "sink": progress.sink.description if progress.sink is not None else None,
        "stateful_operators": None
        if progress.operators is None
        else [_operator(operator or StateOperator()) for operator in progress.operators],
        "watermarked": event_time is not None and event_time.watermark is not None,
        "newest_event_s": instant_s(event_time.newest) if event_time else None,
    }


def _num_rows(progress: Progress) -> float | None:
    """Not every version states the sum, and not every source its part."""
    of_sources = [(source or SourceProgress()).num_rows for source in progress.sources or ()]
    known = [rows for rows in of_sources if rows is not None]
    if progress.sources is None or len(known) < len(of_sources):
        return None if progress.num_rows is None else float(progress.num_rows)
    return float(sum(known))


def _source(source: SourceProgress) -> Record:
    return {
        "description": source.description,
        "start_offset": _as_text(source.start_offset),
        "end_offset": _as_text(source.end_offset),
        "latest_offset": _as_text(source.latest_offset),
        "num_rows": source.num_rows,
    }


def _operator(operator: StateOperator) -> Record:
    return {
        "name": operator.name,
        "num_rows": operator.num_rows,
        "memory_bytes": operator.memory_bytes,
        "commit_s": seconds(operator.commit_ms),
        "num_partitions": operator.num_partitions,
        "num_stores": operator.num_stores,
        "num_updated": operator.num_updated,
        "updates_s": seconds(operator.updates_ms),
    }


def job_row(job: JobStart) -> dict[str, Any]:
    """The start of a job.

    Columns: job_id, submitted_s, stage_ids, query_id, run_id and batch_id (of a micro-batch),
    execution_id (of SQL), dstream_batch_s (time of a DStreams batch), shuffle_partitions.
    """
    row: dict[str, Any] = {
        "job_id": job.job_id,
        "submitted_s": seconds(job.submitted_ms),
        "stage_ids": job.stage_ids,
    }
    of_job = job.properties
    if of_job is None:
        return row | dict.fromkeys(_OF_PROPERTIES)
    return row | {
        "query_id": of_job.query_id,
        "batch_id": _whole_number(of_job.batch_id, _LARGEST_LONG),
        # Spark makes the run of a query the group of its jobs; others' groups are free text.
        "run_id": of_job.group if of_job.group and _RUN_ID.fullmatch(of_job.group) else None,
        "execution_id": _whole_number(of_job.execution_id, _LARGEST_LONG),
        "dstream_batch_s": seconds(_number(of_job.dstream_batch_ms)),
        # Some vendors know the value "auto".
        "shuffle_partitions": _whole_number(of_job.shuffle_partitions, _LARGEST_INT),
    }


_OF_PROPERTIES = (
    *("query_id", "batch_id", "run_id", "execution_id", "dstream_batch_s", "shuffle_partitions"),
)


def job_end_row(job: JobEnd) -> Record:
    """The end of a job: ended_s, succeeded."""
    result = job.result.result if job.result is not None else None
    return {
        "ended_s": seconds(job.completed_ms),
        "succeeded": None if result is None else result == "JobSucceeded",
    }


def stage_row(info: StageInfo) -> Record:
    """An attempt of a stage that was seen to end.

    Columns: stage_id, attempt_id, num_tasks, parent_ids, submitted_s, completed_s, failed, python_s
    (time of all tasks in Python workers; None without).
    """
    return {
        "stage_id": info.stage_id,
        "attempt_id": info.attempt_id or 0,
        "num_tasks": info.num_tasks,
        "parent_ids": info.parent_ids,
        "submitted_s": seconds(info.submitted_ms),
        "completed_s": seconds(info.completed_ms),
        "failed": info.failure is not None,
        "python_s": seconds(python_ms(info)),
    }


def task_row(task: TaskEnd) -> Record:
    """A task that was seen to end, a failed one too.

    Columns: stage_id, attempt_id, task_id, partition_id, executor_id, launched_s, finished_s,
    succeeded, measured (it reported metrics), and those of
    :meth:`headway.profiler.stage_totals.Measures.in_units`.
    """
    info = task.info or TaskInfo()
    launched_ms, finished_ms = info.launched_ms, info.finished_ms
    wall_ms = None if launched_ms is None or finished_ms is None else finished_ms - launched_ms
    return {
        "stage_id": task.stage_id,
        "attempt_id": task.attempt_id or 0,
        "task_id": info.task_id,
        "partition_id": info.partition_id,
        "executor_id": info.executor_id,
        "launched_s": seconds(launched_ms),
        "finished_s": seconds(finished_ms),
        "succeeded": succeeded(task),
        "measured": measured_ms(task.info, task.metrics) is not None,
        **measures(task, wall_ms or 0).in_units(),
        "wall_s": seconds(wall_ms),
    }


def plan_row(execution: SqlExecutionStart, run_id: str | None, batch_id: int | None) -> Record:
    """An SQL execution whose plan was read: of micro-batches one in sixteen.

    Columns: execution_id, root_execution_id, started_s, run_id and batch_id (of a micro-batch),
    operators (names only: what plans say beyond may be secret).
    """
    return {
        "execution_id": execution.execution_id,
        "root_execution_id": execution.root_execution_id,
        "started_s": seconds(execution.started_ms),
        "run_id": run_id,
        "batch_id": batch_id,
        "operators": _OPERATOR.findall(execution.plan or ""),
    }


def instant_s(text: str | None) -> float | None:
    """Seconds since the epoch of a timestamp as Spark writes them.

    >>> instant_s("2026-09-25T20:53:20.500Z"), instant_s("never")
    (1790369600.5, None)
    """
    if text is None:
        return None
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        return None
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=UTC)
    return (instant - _EPOCH) // _MICROSECOND / 1e6


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


def _whole_number(text: str | None, largest: int) -> int | None:
    if text is None or not _WHOLE_NUMBER.fullmatch(text):
        return None
    number = int(text)
    return number if -largest - 1 <= number <= largest else None


def _number(text: str | None) -> float | None:
    try:
        number = float(text) if text is not None and "_" not in text else None
    except ValueError:
        return None
    return number if number is not None and math.isfinite(number) else None
