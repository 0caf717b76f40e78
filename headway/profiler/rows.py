"""Events -> rows of tables: times in seconds (instants since the epoch), sizes in bytes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import msgspec

from headway.profiler import schema, stage_totals
from headway.profiler.events import read_block
from headway.profiler.redaction import name_of
from headway.profiler.stage_totals import seconds

Record: TypeAlias = Mapping[str, Any]  # a row of a table, by column

JOB_ENDS = "job_ends"  # a table from which that of jobs is completed
_RUN_ID = re.compile(r"[0-9a-f-]{8,36}")
# Of RocksDB, and of the default store; others are of somebody's own operators.
_STORE_METRIC = re.compile(r"(?:rocksdb|loadedMapCache|stateOnCurrentVersion)[A-Za-z]{1,60}")
_WHOLE_NUMBER = re.compile(r"\s*[+-]?\d{1,19}\s*", re.ASCII)
_OPERATOR = re.compile(r"(?m)^\(\d+\) ([A-Za-z]+)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LARGEST_LONG = 2**63 - 1
_LARGEST_INT = 2**31 - 1


def batch_row(progress: schema.Progress) -> Record:
    """One progress event; missing or malformed values are None."""
    event_time, phases_ms = progress.event_time or {}, progress.phases_ms
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
        else [_source(source or schema.SourceProgress()) for source in progress.sources],
        "sink": progress.sink.description if progress.sink is not None else None,
        "stateful_operators": None
        if progress.operators is None
        else [_operator(operator or schema.StateOperator()) for operator in progress.operators],
        "watermarked": event_time.get("watermark") is not None,
        "newest_event_s": instant_s(event_time.get("max")),
    }


def _num_rows(progress: schema.Progress) -> float | None:
    """Not every version contains the sum, and not every source its part."""
    of_sources = [(source or schema.SourceProgress()).num_rows for source in progress.sources or ()]
    reported_rows = [rows for rows in of_sources if rows is not None]
    if progress.sources is None or len(reported_rows) < len(of_sources):
        return None if progress.num_rows is None else float(progress.num_rows)
    return float(sum(reported_rows))


def _source(source: schema.SourceProgress) -> Record:
    return {
        "description": source.description,
        "start_offset": _as_text(source.start_offset),
        "end_offset": _as_text(source.end_offset),
        "latest_offset": _as_text(source.latest_offset),
        "num_rows": source.num_rows,
    }


def _operator(operator: schema.StateOperator) -> Record:
    metrics = operator.store_metrics if isinstance(operator.store_metrics, dict) else {}
    return {
        "name": operator.name,
        "num_rows": operator.num_rows,
        "memory_bytes": operator.memory_bytes,
        "commit_s": seconds(operator.commit_ms),
        "shuffle_partitions": operator.shuffle_partitions,
        "num_stores": operator.num_stores,
        "num_updated": operator.num_updated,
        "num_removed": operator.num_removed,
        "updates_s": seconds(operator.updates_ms),
        "store_metrics": {
            name: float(value)
            for name, value in metrics.items()
            if _STORE_METRIC.fullmatch(name) and type(value) in (int, float)
        },
    }


def job_row(job: schema.JobEvent) -> dict[str, Any]:
    """The start of a job, with the micro-batch, SQL execution or DStreams batch it belongs to."""
    of_job = job.properties or schema.JobProperties()
    return {
        "job_id": job.job_id,
        "submitted_s": seconds(job.submitted_ms),
        "stage_ids": job.stage_ids,
        "query_id": of_job.query_id,
        "batch_id": _whole_number(of_job.batch_id, _LARGEST_LONG),
        # Spark uses the run id of a query as group of its jobs; other groups are free text.
        "run_id": of_job.group if of_job.group and _RUN_ID.fullmatch(of_job.group) else None,
        "execution_id": _whole_number(of_job.execution_id, _LARGEST_LONG),
        "dstream_batch_s": seconds(_number(of_job.dstream_batch_ms)),
        # Some vendors know the value "auto".
        "shuffle_partitions": _whole_number(of_job.shuffle_partitions, _LARGEST_INT),
        "gated_trigger_s": seconds(_whole_number(of_job.gated_trigger_ms, _LARGEST_INT)),
    }


def instant_s(text: str | None) -> float | None:
    """A timestamp as written by Spark, in seconds since the epoch.

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


def add_rows(tables: dict[str, list[Record]], block: bytes) -> int:
    """Add the rows of a block of whole lines to their tables; returns how many were events.

    What occurs twice in the log occurs twice there. Tables are batches, jobs and their ends,
    stages, tasks, plans.
    """
    num_events = 0
    for name, event, _ in read_block(block):
        num_events += 1
        if event is not None and name in _ROWS:
            table, row_of = _ROWS[name]
            row = row_of(event)
            if row is not None:
                tables.setdefault(table, []).append(row)
    return num_events


def _job(job: schema.JobEvent) -> Record | None:
    return None if job.job_id is None else job_row(job)


def _job_end(job: schema.JobEvent) -> Record | None:
    if job.job_id is None:
        return None
    result = job.result.result if job.result is not None else None
    succeeded = None if result is None else result == "JobSucceeded"
    return {"job_id": job.job_id, "ended_s": seconds(job.completed_ms), "succeeded": succeeded}


def _stage(event: schema.StageCompleted) -> Record | None:
    info = event.info
    if info is None or info.stage_id is None:
        return None
    totals = stage_totals.StageTotals()
    totals.add_end(info)
    return {"stage_id": info.stage_id, "attempt_id": info.attempt_id or 0, **totals.end()}


def _task(task: schema.TaskEnd) -> Record | None:
    """Also for a failed task; ``measured`` is whether it reported metrics."""
    reason = task.reason.reason if task.reason is not None else None
    if task.stage_id is None or reason == stage_totals.SAID_AGAIN:
        return None
    info = task.info or schema.TaskInfo()
    launched_ms, finished_ms = info.launched_ms, info.finished_ms
    wall_ms = None if launched_ms is None or finished_ms is None else finished_ms - launched_ms
    return {
        "stage_id": task.stage_id,
        "attempt_id": task.attempt_id or 0,
        "task_id": info.task_id,
        "partition_id": info.partition_id,
        "executor_id": name_of(info.executor_id),
        "launched_s": seconds(launched_ms),
        "finished_s": seconds(finished_ms),
        "succeeded": stage_totals.succeeded(task),
        "measured": stage_totals.measured_ms(task) is not None,
        **stage_totals.measures(task, wall_ms or 0).in_units(),
        "wall_s": seconds(wall_ms),
    }


def _plan(execution: schema.SqlExecution) -> Record | None:
    """For one in sixteen micro-batches; only names of operators, as plans may contain secrets."""
    batch = execution.batch
    if execution.execution_id is None or execution.plan is None:
        return None
    if batch is not None and not batch.is_sampled:
        return None
    return {
        "execution_id": execution.execution_id,
        "root_execution_id": execution.root_execution_id,
        "started_s": seconds(execution.at_ms),
        "run_id": None if batch is None else batch.run_id,
        "batch_id": None if batch is None else batch.batch_id,
        "operators": _OPERATOR.findall(execution.plan),
    }


def reported_batch(event: schema.QueryProgress) -> Record | None:
    """The row of a batch; None for progress that does not say which one it is."""
    progress = event.progress
    if progress is None or progress.query_id is None or progress.batch_id is None:
        return None
    return batch_row(progress)


_ROWS: dict[str, tuple[str, Callable[[Any], Record | None]]] = {
    schema.JOB_START: ("jobs", _job),
    schema.JOB_END: (JOB_ENDS, _job_end),
    schema.STAGE_COMPLETED: ("stages", _stage),
    schema.TASK_END: ("tasks", _task),
    schema.SQL_EXECUTION_START: ("plans", _plan),
    schema.QUERY_PROGRESS: ("batches", reported_batch),
}
"""Tables by the event of which each has a row, and what makes the row."""
