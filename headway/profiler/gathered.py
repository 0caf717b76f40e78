"""Contents of a piece of a log, in tables that can be merged with those of other pieces.

Pieces may be merged in any order and grouping, with the same resulting tables.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

import msgspec

from headway.profiler import schema
from headway.profiler.events import read_line
from headway.profiler.files_read import FilesRead
from headway.profiler.ids import Ids, Ranges, holds, united
from headway.profiler.operators import PlanOperators, reads_operators
from headway.profiler.plan_nodes import plan_of
from headway.profiler.recorded_queries import QueryLife, life_of, run_without_batches
from headway.profiler.redaction import name_of
from headway.profiler.rows import Record, batch_row, job_row
from headway.profiler.stage_totals import SAID_AGAIN, StageTotals, least, most

MOST_BATCHES_PER_RUN = 5_000
"""Number of latest batches of a run that are kept: enough for every estimate, with bounded memory
for any length of the run.
"""

# Tasks at once are counted in some stages, of each kind of a batch in turn.
_STAGES_PER_COUNT = 13
_FAILED_UNLESS = ("Success", SAID_AGAIN)
_IDS_OF = (schema.TASK_END, schema.JOB_START, schema.JOB_END, schema.SQL_EXECUTION_START)

Attempt: TypeAlias = tuple[int, int]
"""A stage and the number of its attempt."""


class Place(NamedTuple):
    """Position in a log: its part, the bytes before the piece, a number within it."""

    part: int
    before_bytes: int
    number: int


class Plan(NamedTuple):
    """The text of a plan; of several, the longest one of the latest batch is used."""

    batch_id: int
    length: int
    text: str


class ExecutorEvent(NamedTuple):
    """Event of an executor; ``num_cores`` is None if it was removed."""

    executor_id: str | None
    num_cores: int | None
    at_ms: int | None


class Gathered(msgspec.Struct):
    """Data gathered from one log, or from some pieces of it.

    ``counts`` are lines by event; ``tasks_again`` are ends of tasks that occur more than once, as
    JSON, to be counted once each; ``left_out`` are stages of batches before the kept ones;
    ``recordings`` are the recorders that wrote it, and whether each was stopped in order.
    """

    counts: dict[str, int] = {}
    num_damaged: int = 0
    num_failed_tasks: int = 0
    num_failed_jobs: int = 0
    num_lost: int = 0
    num_passed_over: int = 0
    ids: dict[str, Ids] = {}
    num_unnamed_tasks: int = 0
    recordings: dict[str, bool] = {}
    said: dict[str, str] = {}
    properties: tuple[Place, dict[str, str]] | None = None
    executors: set[ExecutorEvent] = set()
    task_executor_ids: set[str] = set()
    started_ms: int | None = None
    ended_ms: int | None = None
    plans: dict[str, Plan] = {}
    queries: dict[str, QueryLife] = {}
    files: FilesRead = msgspec.field(default_factory=FilesRead)
    operators: PlanOperators = msgspec.field(default_factory=PlanOperators)
    batches: dict[str, list[tuple[Place, Record]]] = {}
    num_batches_left_out: int = 0
    job_of_stage: dict[int, Record] = {}
    stages: dict[Attempt, StageTotals] = {}
    tasks_again: dict[tuple[int, int, int | None], bytes] = {}
    left_out: Ranges = ()

    def add(self, other: Gathered) -> None:
        """Data gathered from other pieces of the same log."""
        for event, num_lines in other.counts.items():
            self.counts[event] = self.counts.get(event, 0) + num_lines
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for event, ids in other.ids.items():
            self.ids[event] = self.ids.get(event, Ids()).with_others(ids)
        for recording_id, has_ended in other.recordings.items():
            self.note_recording(recording_id, has_ended=has_ended)
        for name, text in other.said.items():
            self.said[name] = max(text, self.said.get(name, text))
        if other.properties is not None:
            self.properties = min(self.properties or other.properties, other.properties)
        self.executors |= other.executors
        self.task_executor_ids |= other.task_executor_ids
        self.started_ms = least(self.started_ms, other.started_ms)
        self.ended_ms = most(self.ended_ms, other.ended_ms)
        for run_id, plan in other.plans.items():
            self.plans[run_id] = max(plan, self.plans.get(run_id, plan))
        for run_id, life in other.queries.items():
            self.note_query(run_id, life)
        self.files.add(other.files)
        self.operators.add(other.operators)
        for run_id, batches in other.batches.items():
            self.batches.setdefault(run_id, []).extend(batches)
        for stage_id, job in other.job_of_stage.items():
            self.note_job(stage_id, job)
        for attempt, totals in other.stages.items():
            own_totals = self.stages.get(attempt)
            if own_totals is None:
                self.stages[attempt] = totals
            else:
                own_totals.add(totals)
        for key, task in other.tasks_again.items():
            self.tasks_again[key] = max(task, self.tasks_again.get(key, task))
        self.left_out = united(self.left_out, other.left_out)
        self.leave_out_old_batches()

    def note_job(self, stage_id: int, job: Record) -> None:
        """A job that may need a stage; the stage ran in the first of these jobs."""
        first_job = self.job_of_stage.get(stage_id)
        if first_job is None or _order_of(job) < _order_of(first_job):
            self.job_of_stage[stage_id] = job

    def note_query(self, run_id: str, life: QueryLife) -> None:
        self.queries[run_id] = life.with_other(self.queries.get(run_id, life))

    def note_recording(self, recording_id: str, *, has_ended: bool) -> None:
        """A recorder that began or ended; each of its files says that it began."""
        self.recordings[recording_id] = has_ended or self.recordings.get(recording_id, False)

    def leave_out_old_batches(self) -> None:
        """Keep the latest batches of each run, and the stages of those."""
        for run_id, batches in self.batches.items():
            if len(batches) > MOST_BATCHES_PER_RUN:
                self.num_batches_left_out += len(batches) - MOST_BATCHES_PER_RUN
                self.batches[run_id] = heapq.nlargest(MOST_BATCHES_PER_RUN, batches, _latest)
        if not self.num_batches_left_out:
            return
        first = {
            run_id: min(batch["batch_id"] for _, batch in batches)
            for run_id, batches in self.batches.items()
            if len(batches) == MOST_BATCHES_PER_RUN
        }
        old_stage_ids = Ids.of(
            stage_id
            for stage_id, job in self.job_of_stage.items()
            if job["run_id"] in first and (job["batch_id"] or 0) < first[job["run_id"]]
        )
        self.left_out = united(self.left_out, old_stage_ids.seen)
        for stage_id in [key for key in self.job_of_stage if holds(self.left_out, key)]:
            del self.job_of_stage[stage_id]
        for attempt in [attempt for attempt in self.stages if holds(self.left_out, attempt[0])]:
            del self.stages[attempt]

    def count_tasks_again(self) -> None:
        """Count each task whose end occurs more than once in the log, when all pieces are known."""
        for (stage_id, attempt_id, _), task in self.tasks_again.items():
            if not holds(self.left_out, stage_id):
                totals = self.stages.setdefault((stage_id, attempt_id), StageTotals())
                totals.add_task(msgspec.json.decode(task, type=schema.TaskEnd))
        self.tasks_again = {}


_SUMS = (
    *("num_damaged", "num_failed_tasks", "num_failed_jobs", "num_lost", "num_passed_over"),
    *("num_unnamed_tasks", "num_batches_left_out"),
)


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

    def gather(self, lines: Iterable[bytes]) -> int:
        gathered = self._gathered
        counts = gathered.counts
        num_events = 0
        for line in lines:
            parsed_line = read_line(line)
            if parsed_line is None:
                continue
            name, event, damaged = parsed_line
            num_events += 1
            gathered.num_damaged += damaged
            if name is not None:
                counts[name] = counts.get(name, 0) + 1
            if event is not None and (add := _ADD.get(type(event))) is not None:
                add(self, event)
        return num_events

    def done(self) -> Gathered:
        self._gathered.task_executor_ids = {
            name_of(name) or "" for name in self._gathered.task_executor_ids
        }
        self._gathered.ids = {event: Ids.of(ids) for event, ids in self._ids.items() if ids}
        self._gathered.files.leave_out_old()
        self._gathered.operators.leave_out_old()
        self._gathered.leave_out_old_batches()
        return self._gathered

    def _place(self) -> Place:
        self._num_placed += 1
        return Place(self._part, self._before_bytes, self._num_placed)

    def _say(self, name: str, text: str | None) -> None:
        if text is not None:
            self._gathered.said[name] = max(text, self._gathered.said.get(name, text))

    def _log_start(self, event: schema.LogStart) -> None:
        self._say("spark_version", event.spark_version)

    def _application_start(self, event: schema.ApplicationStart) -> None:
        self._say("application_id", event.application_id)
        self._say("application_name", event.application_name)
        self._gathered.started_ms = least(self._gathered.started_ms, event.timestamp_ms)

    def _application_end(self, event: schema.ApplicationEnd) -> None:
        self._gathered.ended_ms = most(self._gathered.ended_ms, event.timestamp_ms)

    def _environment(self, event: schema.Environment) -> None:
        if event.jvm is not None:
            self._say("java_version", event.jvm.java_version)
        if event.properties is not None and self._gathered.properties is None:
            stated = {key: value or "" for key, value in event.properties.items()}
            self._gathered.properties = self._place(), stated

    def _executor_added(self, event: schema.ExecutorAdded) -> None:
        num_cores = event.info.num_cores if event.info is not None else None
        self._gathered.executors.add(
            ExecutorEvent(event.executor_id, num_cores, event.timestamp_ms)
        )

    def _executor_removed(self, event: schema.ExecutorRemoved) -> None:
        self._gathered.executors.add(ExecutorEvent(event.executor_id, None, event.timestamp_ms))

    def _job_start(self, event: schema.JobStart) -> None:
        if event.job_id is None:
            return
        self._ids[schema.JOB_START].append(event.job_id)
        row = job_row(event)
        job = {name: row[name] for name in JOB_OF_STAGE}
        for stage_id in event.stage_ids or ():
            if stage_id is not None:
                self._gathered.note_job(stage_id, job)

    def _job_end(self, event: schema.JobEnd) -> None:
        if event.job_id is not None:
            self._ids[schema.JOB_END].append(event.job_id)
        result = event.result.result if event.result is not None else None
        self._gathered.num_failed_jobs += result is not None and result != "JobSucceeded"

    def _stage_completed(self, event: schema.StageCompleted) -> None:
        info = event.info
        if info is not None and info.stage_id is not None:
            self._attempt((info.stage_id, info.attempt_id or 0)).add_end(info)

    def _task_end(self, event: schema.TaskEnd) -> None:
        gathered, info = self._gathered, event.info
        task_id = None
        if info is not None:
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
        if self._tasks_again is None or (
            task_id is not None and not holds(self._tasks_again, task_id)
        ):
            totals = self._attempt(attempt)
            totals.add_task(event)
            if event.stage_id % _STAGES_PER_COUNT == 0:
                totals.keep_span(event)
        else:
            key, task = (*attempt, task_id), msgspec.json.encode(event)
            gathered.tasks_again[key] = max(task, gathered.tasks_again.get(key, task))

    def _attempt(self, attempt: Attempt) -> StageTotals:
        totals = self._gathered.stages.get(attempt)
        if totals is None:
            totals = self._gathered.stages[attempt] = StageTotals()
        return totals

    def _sql_execution_start(self, event: schema.SqlExecutionStart) -> None:
        if event.execution_id is not None:
            self._ids[schema.SQL_EXECUTION_START].append(event.execution_id)
        batch = event.batch
        if batch is None or batch.is_sampled or reads_operators(batch, event.operators):
            tree = plan_of(event.operators)
            if tree is not None:
                self._gathered.operators.note_plan(tree, is_replanned=False)
                if batch is not None and batch.is_sampled:
                    self._gathered.files.note_scan(tree, batch)
        if event.plan is None or (batch is not None and not batch.is_sampled):
            return
        run_id, batch_id = batch or (run_without_batches(event.description), -1)
        plan = Plan(batch_id, len(event.plan), event.plan)
        self._gathered.plans[run_id] = max(plan, self._gathered.plans.get(run_id, plan))

    def _adaptive_update(self, event: schema.AdaptiveUpdate) -> None:
        if (tree := plan_of(event.operators)) is not None:
            self._gathered.operators.note_plan(tree, is_replanned=True)

    def _query_progress(self, event: schema.QueryProgress) -> None:
        progress = event.progress
        if progress is None or progress.query_id is None or progress.batch_id is None:
            return
        of_run = self._gathered.batches.setdefault(progress.run_id or "", [])
        of_run.append((self._place(), batch_row(progress)))

    def _query_life(self, event: schema.QueryStarted | schema.QueryTerminated) -> None:
        self._gathered.note_query(event.run_id or "", life_of(event))

    def _recorder_start(self, event: schema.RecorderStart) -> None:
        self._gathered.note_recording(event.recording_id or "", has_ended=False)

    def _recorder_end(self, event: schema.RecorderEnd) -> None:
        self._gathered.note_recording(event.recording_id or "", has_ended=True)

    def _recorder_lost(self, event: schema.RecorderLost) -> None:
        self._gathered.num_lost += event.num_lost or 0

    def _recorder_passed_over(self, event: schema.RecorderPassedOver) -> None:
        self._gathered.num_passed_over += event.num_batches or 0


_ADD: dict[type, Callable[[Gatherer, Any], None]] = {
    schema.LogStart: Gatherer._log_start,
    schema.ApplicationStart: Gatherer._application_start,
    schema.ApplicationEnd: Gatherer._application_end,
    schema.Environment: Gatherer._environment,
    schema.ExecutorAdded: Gatherer._executor_added,
    schema.ExecutorRemoved: Gatherer._executor_removed,
    schema.JobStart: Gatherer._job_start,
    schema.JobEnd: Gatherer._job_end,
    schema.StageCompleted: Gatherer._stage_completed,
    schema.TaskEnd: Gatherer._task_end,
    schema.SqlExecutionStart: Gatherer._sql_execution_start,
    schema.AdaptiveUpdate: Gatherer._adaptive_update,
    schema.DriverUpdates: lambda gatherer, event: gatherer._gathered.files.note_values(event),
    schema.QueryStarted: Gatherer._query_life,
    schema.QueryProgress: Gatherer._query_progress,
    schema.QueryTerminated: Gatherer._query_life,
    schema.RecorderStart: Gatherer._recorder_start,
    schema.RecorderEnd: Gatherer._recorder_end,
    schema.RecorderLost: Gatherer._recorder_lost,
    schema.RecorderPassedOver: Gatherer._recorder_passed_over,
}

JOB_OF_STAGE = (
    *("job_id", "query_id", "batch_id", "run_id", "execution_id"),
    *("dstream_batch_s", "shuffle_partitions", "gated_trigger_s"),
)
"""Columns kept from the first job that needed a stage."""


def _order_of(job: Record) -> tuple[int, str]:
    return job["job_id"], repr(job)


def _latest(placed: tuple[Place, Record]) -> tuple[int, float, Place]:
    position, batch = placed
    return batch["batch_id"], -1.0 if batch["num_rows"] is None else batch["num_rows"], position
