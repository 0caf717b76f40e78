"""Sums of a log -> its contents: facts about its application, its latest batches and their stages.

Without tasks. Runs of queries may be measured where a log is read, in place of their stages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from headway.lazy_classes import dataclass
from headway.profiler import schema
from headway.profiler.executors import Executor, ExecutorEvent, ResourceProfile, executors_of
from headway.profiler.gathered import JOB_OF_STAGE, Gathered
from headway.profiler.ids import Ids
from headway.profiler.known_values import DATABRICKS_RUNTIME, spark_of_runtime
from headway.profiler.operators import operators_of_stage
from headway.profiler.recorded_queries import QueryLife
from headway.profiler.rows import Record
from headway.profiler.stage_totals import most_waited_for, seconds

_OF_STAGE = ("scopes", "call", "first_rdd_id", "num_scans", "is_barrier")
_SAID: tuple[Any, ...] = ("application_id", "application_name", "spark_version", "java_version")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationFacts:
    """Facts about one application as a whole; names and values as in the log.

    ``counts`` are lines by event, ``ids`` those of tasks, jobs and executions by theirs. ``files``
    are number and bytes of the files that a batch read. Attempts of stages are all that occur,
    those with a recorded end, and the tasks of these.
    """

    app: int
    application_id: str | None
    application_name: str | None
    spark_version: str | None
    java_version: str | None
    properties: Mapping[str, str]
    resource_profiles: Mapping[int, ResourceProfile]
    executors: tuple[Executor, ...]
    executor_events: tuple[ExecutorEvent, ...]
    task_executor_ids: frozenset[str]
    counts: Mapping[str, int]
    ids: Mapping[str, Ids]
    recordings: Mapping[str, bool]
    num_damaged: int
    num_lost: int
    num_passed_over: int
    num_failed_tasks: int
    num_failed_jobs: int
    started_s: float | None
    ended_s: float | None
    plans: Mapping[str, str]
    queries: Mapping[str, QueryLife]
    files: Mapping[schema.BatchOf, tuple[int, int]]
    written_files: Mapping[schema.BatchOf, int]
    num_attempts: int
    num_attempts_ended: int
    num_tasks_of_ended: int
    num_tasks_cut: int

    @property
    def has_events(self) -> bool:
        """Whether any line was an event that Spark writes."""
        return any(event in schema.READ_EVENTS for event in self.counts)

    def num_lines(self, event: str) -> int:
        """How often an event of :mod:`headway.profiler.schema` occurred."""
        return self.counts.get(event, 0)

    def ids_of(self, event: str) -> Ids:
        """The ids in an event of that module."""
        return self.ids.get(event, Ids())


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectedLogs:
    """Contents of some logs; ``failures`` has the reasons why others could not be read.

    ``runs`` are those of the queries of a log that were measured where it was read, by log
    (:mod:`.streaming.log_runs`); its stages are left out then.
    """

    applications: Mapping[int, ApplicationFacts]
    batches: Sequence[Record]
    stage_runs: Sequence[Record]
    failures: Mapping[int, str] = field(default_factory=dict)
    runs: Mapping[int, Any] = field(default_factory=dict)


def contents_of(app: int, gathered: Gathered) -> CollectedLogs:
    """Contents of one log; without an application if it has no event of Spark's."""
    gathered.count_tasks_again()
    stage_runs = [{"app": app, **row} for row in stage_records(gathered)]
    applications: dict[int, ApplicationFacts] = {}
    if gathered.counts or gathered.num_damaged:
        applications[app] = _application_facts(app, gathered, stage_runs)
    placed = sorted(
        (position, row) for of_run in gathered.batches.values() for position, row in of_run
    )
    return CollectedLogs(
        applications=applications,
        batches=[{"app": app, **row} for _, row in placed],
        stage_runs=stage_runs,
    )


def stage_records(gathered: Gathered) -> Iterator[Record]:
    """One row per attempt of a stage with a recorded end, or with recorded tasks, with sums.

    Columns: stage_id, attempt_id; those of
    :meth:`headway.profiler.stage_totals.StageTotals.record`; of the first job that needed the
    stage: job_id, query_id, batch_id, run_id, execution_id, dstream_batch_s, shuffle_partitions,
    gated_trigger_s; scopes, call (of the program), first_rdd_id, num_scans, resource_profile_id,
    is_barrier, most_at_once (tasks on an executor while others waited; of some stages), operators
    of its plan (:mod:`.operators`), write (what its action writes, of some batches;
    :mod:`.executions`).
    """
    nothing, writes = dict.fromkeys(JOB_OF_STAGE), gathered.executions.writes()
    for (stage_id, attempt_id), totals in sorted(gathered.stages.items()):
        job = gathered.job_of_stage.get(stage_id, nothing)
        yield {
            "stage_id": stage_id,
            "attempt_id": attempt_id,
            **totals.record(),
            **job,
            **{name: getattr(totals, name) for name in _OF_STAGE},
            "resource_profile_id": totals.resource_profile_id or 0,
            "most_at_once": most_waited_for(totals.spans),
            "operators": operators_of_stage(gathered.operators, totals.metric_ids or ()),
            "write": writes.get(job["execution_id"]),
        }


def each_application(logs: CollectedLogs) -> dict[int, CollectedLogs]:
    """The contents of each log on its own."""
    batches, stage_runs = _by_application(logs.batches), _by_application(logs.stage_runs)
    return {
        app: CollectedLogs(
            applications={app: facts},
            batches=batches.get(app, []),
            stage_runs=stage_runs.get(app, []),
            runs={app: logs.runs[app]} if app in logs.runs else {},
        )
        for app, facts in logs.applications.items()
    }


def _by_application(rows: Sequence[Record]) -> dict[int, list[Record]]:
    by_app: dict[int, list[Record]] = defaultdict(list)
    for row in rows:
        by_app[row["app"]].append(row)
    return by_app


def _application_facts(
    app: int, gathered: Gathered, stage_runs: Sequence[Record]
) -> ApplicationFacts:
    properties = gathered.properties[1] if gathered.properties is not None else {}
    identity = {name: gathered.said.get(name) for name in _SAID}
    identity["spark_version"] = identity["spark_version"] or spark_of_runtime(
        properties.get(DATABRICKS_RUNTIME)
    )
    tasks_of_ended = [
        # If a stage was interrupted, e.g. by the end of its query, tasks that never ran are not
        # missing.
        max(row["num_ended"] if row["failed"] else row["num_tasks"], 0)
        for row in stage_runs
        if row["num_tasks"] is not None
    ]
    executors = executors_of(gathered.executors)
    num_cores = sum(executor.num_cores for executor in executors)
    # Tasks that ran then may end without an event.
    tasks_cut = [
        min(max(row["num_tasks"] - row["num_ended"], 0), num_cores)
        for row in stage_runs
        if row["num_tasks"] is not None and row["failed"]
    ]
    return ApplicationFacts(
        app=app,
        **identity,
        properties=properties,
        resource_profiles=dict(sorted(gathered.resource_profiles.items())),
        executors=executors,
        executor_events=tuple(sorted(gathered.executors, key=repr)),
        task_executor_ids=frozenset(gathered.task_executor_ids),
        counts=dict(sorted(gathered.counts.items())),
        ids=gathered.ids,
        recordings=dict(sorted(gathered.recordings.items())),
        num_damaged=gathered.num_damaged,
        # Negative if a line is damaged.
        num_lost=max(gathered.num_lost, 0),
        num_passed_over=max(gathered.num_passed_over, 0),
        num_failed_tasks=gathered.num_failed_tasks,
        num_failed_jobs=gathered.num_failed_jobs,
        started_s=seconds(gathered.started_ms),
        ended_s=seconds(gathered.ended_ms),
        files=gathered.executions.files_read(),
        written_files=gathered.executions.files_written(),
        queries=dict(sorted(gathered.queries.items())),
        plans={run_id: text for run_id, (_, _, text) in gathered.plans.items()},
        num_attempts=len(stage_runs),
        num_attempts_ended=len(tasks_of_ended),
        num_tasks_of_ended=sum(tasks_of_ended),
        num_tasks_cut=sum(tasks_cut),
    )
