"""Lines of a piece of a log -> its contents, event by event."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from headway.profiler import schema
from headway.profiler.events import read_block, submitted_stage
from headway.profiler.executors import ExecutorEvent, amounts_of
from headway.profiler.gathered import JOB_OF_STAGE, Attempt, Gathered, Place, keep_greatest
from headway.profiler.ids import Ids, Ranges, holds
from headway.profiler.operators import names_stages, note_operators, plan_operators, reads_operators
from headway.profiler.plan_nodes import plan_of
from headway.profiler.recorded_queries import QueryLife, run_without_batches
from headway.profiler.redaction import name_of
from headway.profiler.rows import job_row, reported_batch
from headway.profiler.stage_totals import SAID_AGAIN, StageTotals, least, most

# Tasks at once are counted in some stages, of each kind of a batch in turn.
_STAGES_PER_COUNT = 13
_FAILED_UNLESS = ("Success", SAID_AGAIN)
_NO_INFO = schema.TaskInfo()
_SUBMITTED_IDS = re.compile(
    rb'"Stage ID"\s*:\s*(\d{1,10})\s*,\s*"Stage Attempt ID"\s*:\s*(\d{1,10})'
)
_MOST_SUBMITTED = 1_000  # without an end, the latest ones
_IDS_OF = (schema.TASK_END, schema.JOB_START, schema.JOB_END, schema.SQL_EXECUTION_START)


class Gatherer:
    """Gathers the lines of a piece that begins at a given byte offset of a part.

    ``tasks_again`` are kept one by one, since their ends may occur again elsewhere; in that case,
    so are tasks without an id.
    """

    def __init__(self, part: int, before_bytes: int, tasks_again: Ranges | None = None) -> None:
        self._part = part
        self._before_bytes = before_bytes
        self._tasks_again = tasks_again
        self._gathered = Gathered()
        self._ids: dict[str, list[int]] = {event: [] for event in _IDS_OF}
        self._num_placed = 0
        self._submitted: dict[Attempt, bytes] = {}

    def gather(self, block: bytes) -> int:
        """Gather a block of whole lines; returns how many of them were events."""
        gathered = self._gathered
        counts = gathered.counts
        num_events = 0
        for name, event, damaged in read_block(block):
            num_events += 1
            gathered.num_damaged += damaged
            if name is not None:
                counts[name] = counts.get(name, 0) + 1
                if event is not None:
                    _ADD[name](self, event)
        return num_events

    def done(self) -> Gathered:
        for attempt, line in self._submitted.items():
            totals = self._gathered.stages.get(attempt)
            if totals is not None and (info := submitted_stage(line)) is not None:
                totals.add_names(info)
        names = map(name_of, self._gathered.task_executor_ids)
        self._gathered.task_executor_ids = {name or "" for name in names}
        self._gathered.ids = {event: Ids.of(ids) for event, ids in self._ids.items() if ids}
        self._gathered.leave_out_old()
        return self._gathered

    def _place(self) -> Place:
        self._num_placed += 1
        return self._part, self._before_bytes, self._num_placed

    def _say(self, name: str, text: str | None) -> None:
        if text is not None:
            keep_greatest(self._gathered.said, {name: text})

    def _log_start(self, event: schema.ApplicationEvent) -> None:
        self._say("spark_version", event.spark_version)

    def _application_start(self, event: schema.ApplicationEvent) -> None:
        self._say("application_id", event.application_id)
        self._say("application_name", event.application_name)
        self._gathered.started_ms = least(self._gathered.started_ms, event.timestamp_ms)

    def _application_end(self, event: schema.ApplicationEvent) -> None:
        self._gathered.ended_ms = most(self._gathered.ended_ms, event.timestamp_ms)

    def _environment(self, event: schema.Environment) -> None:
        if event.jvm is not None:
            self._say("java_version", event.jvm[schema.JAVA_VERSION])
        if event.properties is not None and self._gathered.properties is None:
            stated = {key: value or "" for key, value in event.properties.items()}
            self._gathered.properties = self._place(), stated

    def _resource_profile_added(self, event: schema.ResourceProfileAdded) -> None:
        if event.profile_id is not None:
            profile = amounts_of(event.of_task), amounts_of(event.of_executor)
            keep_greatest(self._gathered.resource_profiles, {event.profile_id: profile})

    def _executor_change(self, event: schema.ExecutorChange, *, is_removed: bool) -> None:
        info = schema.ExecutorInfo() if is_removed or event.info is None else event.info
        self._gathered.executors.add(
            ExecutorEvent(
                event.executor_id, info.num_cores, event.timestamp_ms, info.resource_profile_id
            )
        )

    def _job_start(self, event: schema.JobEvent) -> None:
        if event.job_id is None:
            return
        self._ids[schema.JOB_START].append(event.job_id)
        row = job_row(event)
        job = {name: row[name] for name in JOB_OF_STAGE}
        for stage_id in event.stage_ids or ():
            if stage_id is not None:
                self._gathered.note_job(stage_id, job)

    def _job_end(self, event: schema.JobEvent) -> None:
        if event.job_id is not None:
            self._ids[schema.JOB_END].append(event.job_id)
        result = event.result.result if event.result is not None else None
        self._gathered.num_failed_jobs += result is not None and result != "JobSucceeded"

    def _stage_completed(self, event: schema.StageCompleted) -> None:
        info = event.info
        if info is not None and info.stage_id is not None:
            attempt = info.stage_id, info.attempt_id or 0
            self._submitted.pop(attempt, None)
            self._attempt(attempt).add_end(info)

    def _stage_submitted(self, line: bytes) -> None:
        """Kept until the end of the stage, which has all of it and more."""
        ids = _SUBMITTED_IDS.search(line)
        if ids is not None:
            self._submitted[int(ids[1]), int(ids[2])] = line
            if len(self._submitted) > _MOST_SUBMITTED:
                del self._submitted[next(iter(self._submitted))]

    def _task_end(self, event: schema.TaskEnd) -> None:
        gathered, info = self._gathered, event.info or _NO_INFO
        task_id = info.task_id
        if info.executor_id is not None:
            gathered.task_executor_ids.add(info.executor_id)
        if task_id is None:
            gathered.num_unnamed_tasks += 1
        else:
            self._ids[schema.TASK_END].append(task_id)
        reason = event.reason.reason if event.reason is not None else None
        if reason is not None and reason not in _FAILED_UNLESS:
            gathered.num_failed_tasks += 1
        if event.stage_id is None or reason == SAID_AGAIN:
            return
        attempt = event.stage_id, event.attempt_id or 0
        again = self._tasks_again
        if again is None or (task_id is not None and not holds(again, task_id)):
            totals = self._attempt(attempt)
            totals.add_task(event)
            if event.stage_id % _STAGES_PER_COUNT == 0:
                totals.keep_span(event)
        else:
            keep_greatest(gathered.tasks_again, {(*attempt, task_id): msgspec.json.encode(event)})

    def _attempt(self, attempt: Attempt) -> StageTotals:
        totals = self._gathered.stages.get(attempt)
        if totals is None:
            totals = self._gathered.stages[attempt] = StageTotals()
        return totals

    def _sql_execution_start(self, event: schema.SqlExecution) -> None:
        if event.execution_id is not None:
            self._ids[schema.SQL_EXECUTION_START].append(event.execution_id)
        batch = event.batch
        if batch is None or batch.is_sampled or reads_operators(batch, event.operators):
            tree = plan_of(event.operators)
            if tree is not None:
                note_operators(self._gathered.operators, plan_operators(tree, is_replanned=False))
                if batch is not None and batch.is_sampled:
                    self._gathered.executions.note_plan(tree, batch)
        reads_plan = batch is not None and names_stages(batch)
        if batch is None or reads_plan:
            self._gathered.executions.note_start(event, reads_plan=reads_plan)
        if event.plan is None or (batch is not None and not batch.is_sampled):
            return
        run_id, batch_id = batch or (run_without_batches(event.description), -1)
        keep_greatest(self._gathered.plans, {run_id: (batch_id, len(event.plan), event.plan)})

    def _adaptive_update(self, event: schema.SqlUpdate) -> None:
        if (tree := plan_of(event.operators)) is not None:
            note_operators(self._gathered.operators, plan_operators(tree, is_replanned=True))

    def _query_progress(self, event: schema.QueryProgress) -> None:
        if (row := reported_batch(event)) is not None:
            of_run = self._gathered.batches.setdefault(row["run_id"] or "", [])
            of_run.append((self._place(), row))

    def _query_change(self, event: schema.QueryChange, *, has_ended: bool) -> None:
        has_failed = has_ended and event.exception is not None
        life = QueryLife(event.query_id, event.query_name, has_ended, has_failed)
        self._gathered.note_query(event.run_id or "", life)

    def _recorder_change(self, event: schema.RecorderEvent, *, has_ended: bool) -> None:
        # Each file of a recording says that it began.
        keep_greatest(self._gathered.recordings, {event.recording_id or "": has_ended})

    def _recorder_gap(self, event: schema.RecorderEvent) -> None:
        self._gathered.num_lost += event.num_lost or 0
        self._gathered.num_passed_over += event.num_batches or 0


_ADD: dict[str, Callable[[Gatherer, Any], None]] = {
    **dict.fromkeys(schema.LOG_STARTS, Gatherer._log_start),
    schema.APPLICATION_START: Gatherer._application_start,
    schema.APPLICATION_END: Gatherer._application_end,
    schema.ENVIRONMENT: Gatherer._environment,
    schema.RESOURCE_PROFILE_ADDED: Gatherer._resource_profile_added,
    schema.EXECUTOR_ADDED: partial(Gatherer._executor_change, is_removed=False),
    schema.EXECUTOR_REMOVED: partial(Gatherer._executor_change, is_removed=True),
    schema.JOB_START: Gatherer._job_start,
    schema.JOB_END: Gatherer._job_end,
    schema.STAGE_SUBMITTED: Gatherer._stage_submitted,
    schema.STAGE_COMPLETED: Gatherer._stage_completed,
    schema.TASK_END: Gatherer._task_end,
    schema.SQL_EXECUTION_START: Gatherer._sql_execution_start,
    schema.SQL_EXECUTION_END: lambda gatherer, event: gatherer._gathered.executions.note_end(event),
    schema.ADAPTIVE_UPDATE: Gatherer._adaptive_update,
    schema.DRIVER_UPDATES: lambda gatherer, event: gatherer._gathered.executions.note_values(event),
    schema.QUERY_STARTED: partial(Gatherer._query_change, has_ended=False),
    schema.QUERY_PROGRESS: Gatherer._query_progress,
    schema.QUERY_PROGRESS_OF_2_0: lambda *_: None,  # is only counted
    schema.QUERY_TERMINATED: partial(Gatherer._query_change, has_ended=True),
    schema.RECORDER_START: partial(Gatherer._recorder_change, has_ended=False),
    schema.RECORDER_END: partial(Gatherer._recorder_change, has_ended=True),
    schema.RECORDER_LOST: Gatherer._recorder_gap,
    schema.RECORDER_PASSED_OVER: Gatherer._recorder_gap,
}
