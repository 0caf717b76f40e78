"""Contents of a piece of a log, in tables that can be merged with those of other pieces.

Pieces may be merged in any order and grouping, with the same resulting tables.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from headway.profiler import schema
from headway.profiler.executions import Executions
from headway.profiler.executors import ExecutorEvent, ResourceProfile
from headway.profiler.ids import Ids, Ranges, holds, latest, united
from headway.profiler.operators import PlanOperators, note_operators
from headway.profiler.recorded_queries import QueryLife
from headway.profiler.rows import Record
from headway.profiler.stage_totals import StageTotals, least, most

MOST_BATCHES_PER_RUN = 5_000  # latest ones: enough for every estimate, with bounded memory

# Of operators; those of some thousand batches.
_MOST_METRICS = 150_000

Attempt: TypeAlias = tuple[int, int]  # a stage and the number of its attempt

Place: TypeAlias = tuple[int, int, int]
"""Position in a log: its part, the bytes before the piece, a number within it."""

JOB_OF_STAGE = (
    *("job_id", "query_id", "batch_id", "run_id", "execution_id"),
    *("dstream_batch_s", "shuffle_partitions", "gated_trigger_s"),
)
"""Columns kept from the first job that needed a stage."""


class Gathered(msgspec.Struct):
    """Data gathered from one log, or from some pieces of it.

    ``counts`` are lines by event; ``plans`` are batch, length and text of the longest plan of the
    latest batch of each run; ``tasks_again`` are ends of tasks that occur more than once, as JSON,
    to be counted once each; ``left_out`` are stages of batches before the kept ones; ``recordings``
    are the recorders that wrote it, and whether each was stopped in order.
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
    resource_profiles: dict[int, ResourceProfile] = {}
    executors: set[ExecutorEvent] = set()
    task_executor_ids: set[str] = set()
    started_ms: int | None = None
    ended_ms: int | None = None
    plans: dict[str, tuple[int, int, str]] = {}
    queries: dict[str, QueryLife] = {}
    operators: PlanOperators = {}
    executions: Executions = msgspec.field(default_factory=Executions)
    batches: dict[str, list[tuple[Place, Record]]] = {}
    num_batches_left_out: int = 0
    job_of_stage: dict[int, Record] = {}
    stages: dict[Attempt, StageTotals] = {}
    tasks_again: dict[tuple[int, int, int | None], bytes] = {}
    left_out: Ranges = ()

    @property
    def repeated_tasks(self) -> Ranges:
        """Ids of tasks whose end occurs more than once."""
        return self.ids.get(schema.TASK_END, Ids()).repeated

    @property
    def must_count_again(self) -> bool:
        """Whether a task may have been counted twice: :meth:`count_tasks_again`."""
        return bool(self.num_unnamed_tasks or self.repeated_tasks)

    def add(self, other: Gathered) -> None:
        """Data gathered from other pieces of the same log."""
        for event, num_lines in other.counts.items():
            self.counts[event] = self.counts.get(event, 0) + num_lines
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in _GREATEST:
            keep_greatest(getattr(self, name), getattr(other, name))
        for event, ids in other.ids.items():
            self.ids[event] = self.ids.get(event, Ids()).with_others(ids)
        if other.properties is not None:
            self.properties = min(self.properties or other.properties, other.properties)
        self.executors |= other.executors
        self.task_executor_ids |= other.task_executor_ids
        self.started_ms = least(self.started_ms, other.started_ms)
        self.ended_ms = most(self.ended_ms, other.ended_ms)
        for run_id, life in other.queries.items():
            self.note_query(run_id, life)
        note_operators(self.operators, other.operators.items())
        self.executions.add(other.executions)
        for run_id, batches in other.batches.items():
            self.batches.setdefault(run_id, []).extend(batches)
        for stage_id, job in other.job_of_stage.items():
            self.note_job(stage_id, job)
        for attempt, totals in other.stages.items():
            before = self.stages.setdefault(attempt, totals)
            if before is not totals:
                before.add(totals)
        self.left_out = united(self.left_out, other.left_out)
        self.leave_out_old()

    def note_job(self, stage_id: int, job: Record) -> None:
        """A job that may need a stage; the stage ran in the first of these jobs."""
        first_job = self.job_of_stage.get(stage_id)
        if first_job is None or _order_of(job) < _order_of(first_job):
            self.job_of_stage[stage_id] = job

    def note_query(self, run_id: str, life: QueryLife) -> None:
        self.queries[run_id] = life.with_other(self.queries.get(run_id, life))

    def leave_out_old(self) -> None:
        """Keep what is latest, of executions and of batches, for any length of the log."""
        self.executions.leave_out_old()
        self.operators = latest(self.operators, _MOST_METRICS)
        self._leave_out_old_batches()

    def _leave_out_old_batches(self) -> None:
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
_GREATEST = ("recordings", "said", "resource_profiles", "plans", "tasks_again")


def keep_greatest(table: dict[Any, Any], entries: Mapping[Any, Any]) -> None:
    """Add entries to a table; of several with one key, the greatest, in whatever order they come.

    >>> said = {"spark_version": "3.5.1"}
    >>> keep_greatest(said, {"spark_version": "4.0.1", "application_id": "app-1"})
    >>> said
    {'spark_version': '4.0.1', 'application_id': 'app-1'}
    """
    for key, entry in entries.items():
        table[key] = max(entry, table.get(key, entry))


def _order_of(job: Record) -> tuple[int, str]:
    return job["job_id"], repr(job)


def _latest(placed: tuple[Place, Record]) -> tuple[int, float, Place]:
    position, batch = placed
    return batch["batch_id"], -1.0 if batch["num_rows"] is None else batch["num_rows"], position
