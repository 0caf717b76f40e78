"""Tables -> the driver: facts per application, its latest batches, their stages; never tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from headway.profiler import aggregates, schema, tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

# Batches of one run that are brought to the driver, the latest: enough for every estimate, and
# the same memory however long the query ran.
MOST_BATCHES_PER_RUN = 5_000


class EventCount(NamedTuple):
    """How often one kind of event was seen; ids are of tasks, jobs or executions."""

    num_lines: int = 0
    num_distinct: int = 0
    first_id: int | None = None
    last_id: int | None = None


class Executor(NamedTuple):
    """One executor: its cores, and when it came and went (None: not on record)."""

    executor_id: str
    num_cores: int
    added_s: float | None
    removed_s: float | None


class StageCounts(NamedTuple):
    """Attempts of stages of an application: all that left a trace, and those seen to end."""

    num_attempts: int = 0
    num_ended: int = 0
    num_tasks: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationFacts:
    """What is known of one application as a whole; names and values as the log has them."""

    app: int
    application_id: str | None
    application_name: str | None
    spark_version: str | None
    java_version: str | None
    properties: Mapping[str, str]
    executors: tuple[Executor, ...]
    task_executor_ids: frozenset[str]
    counts: Mapping[str, EventCount]
    num_damaged: int
    num_lost: int
    num_failed_tasks: int
    num_failed_jobs: int
    started_s: float | None
    ended_s: float | None
    plans: Mapping[str, str]
    stages: StageCounts

    @property
    def has_events(self) -> bool:
        """Whether any line was an event that Spark writes."""
        return any(event in schema.READ_EVENTS for event in self.counts)

    def count(self, event: str) -> EventCount:
        """How often an event of :mod:`headway.profiler.schema` was seen."""
        return self.counts.get(event, EventCount())


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectedLogs:
    """What the pipeline brings to the driver."""

    applications: Mapping[int, ApplicationFacts]
    batches: Sequence[Row]
    stage_runs: Sequence[Row]


def collect(events: DataFrame, progress: Callable[[str], None]) -> CollectedLogs:
    """Run the pipeline over the parsed events; ``progress`` is told of each step."""
    progress("reading events")
    facts = aggregates.facts(events).collect()
    progress("reading batches")
    batches = _latest_batches(events, facts).collect()
    progress("joining batches to stages and tasks")
    stage_runs = aggregates.stage_runs(events).persist()
    try:
        counts = {
            row["app"]: StageCounts(row["num_attempts"], row["num_ended"], row["num_tasks"] or 0)
            for row in aggregates.stage_counts(stage_runs).collect()
        }
        stages = _stages_of(stage_runs, batches, facts).collect()
    finally:
        stage_runs.unpersist()
    by_app: dict[int, list[Row]] = defaultdict(list)
    for row in facts:
        by_app[row["app"]].append(row)
    return CollectedLogs(
        applications={
            app: _application_facts(app, by_app[app], counts.get(app, StageCounts()))
            for app in sorted(by_app)
        },
        batches=batches,
        stage_runs=stages,
    )


def of_application(logs: CollectedLogs, app: int) -> CollectedLogs:
    """What belongs to one application."""
    return CollectedLogs(
        applications={app: logs.applications[app]},
        batches=[row for row in logs.batches if row["app"] == app],
        stage_runs=[row for row in logs.stage_runs if row["app"] == app],
    )


def _latest_batches(events: DataFrame, facts: Sequence[Row]) -> DataFrame:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    batches = tables.batches(events)
    reported = [row["num_lines"] for row in facts if row["Event"] == schema.QUERY_PROGRESS]
    if max(reported, default=0) <= MOST_BATCHES_PER_RUN:
        return batches
    latest = F.row_number().over(
        Window.partitionBy("app", "run_id").orderBy(F.desc("batch_id"), F.desc("num_rows"))
    )
    return (
        batches.withColumn("place", latest)
        .where(F.col("place") <= MOST_BATCHES_PER_RUN)
        .drop("place")
    )


def _stages_of(stage_runs: DataFrame, batches: Sequence[Row], facts: Sequence[Row]) -> DataFrame:
    """Stages of the batches; all stages of an application that has no batches."""
    from functools import reduce
    from operator import or_

    from pyspark.sql import functions as F

    first_batch: dict[tuple[int, str], int] = {}
    for row in batches:
        key = (row["app"], row["query_id"])
        first_batch[key] = min(row["batch_id"], first_batch.get(key, row["batch_id"]))
    streaming = {app for app, _ in first_batch}
    others = sorted({row["app"] for row in facts} - streaming)
    wanted = F.col("app").isin(others) if others else F.lit(False)
    if not any(batch_id > 0 for batch_id in first_batch.values()):
        return stage_runs.where(wanted | F.col("query_id").isNotNull())
    return stage_runs.where(
        reduce(
            or_,
            (
                (F.col("app") == app)
                & (F.col("query_id") == query_id)
                & (F.col("batch_id") >= batch_id)
                for (app, query_id), batch_id in first_batch.items()
            ),
            wanted,
        )
    )


def _application_facts(app: int, rows: Sequence[Row], stages: StageCounts) -> ApplicationFacts:
    def latest(name: str) -> str | None:
        return max((row[name] for row in rows if row[name] is not None), default=None)

    def failed(event: str) -> int:
        return sum(row["num_failed"] for row in rows if row["Event"] == event)

    counts = {
        event: EventCount(
            num_lines=sum(row["num_lines"] for row in rows if row["Event"] == event),
            num_distinct=sum(row["num_distinct"] for row in rows if row["Event"] == event),
            first_id=min(
                (row["first_id"] for row in rows if row["Event"] == event and row["num_distinct"]),
                default=None,
            ),
            last_id=max(
                (row["last_id"] for row in rows if row["Event"] == event and row["num_distinct"]),
                default=None,
            ),
        )
        for event in sorted({row["Event"] for row in rows if row["Event"] is not None})
    }
    return ApplicationFacts(
        app=app,
        application_id=latest("application_id"),
        application_name=latest("application_name"),
        spark_version=latest("spark_version"),
        java_version=latest("java_version"),
        properties=next((row["properties"] for row in rows if row["properties"]), {}),
        executors=_executors(event for row in rows for event in row["executors"]),
        task_executor_ids=frozenset(name for row in rows for name in row["executor_ids"]),
        counts=counts,
        num_damaged=sum(row["num_damaged"] for row in rows),
        num_lost=sum(max(row["num_lost"] or 0, 0) for row in rows),
        num_failed_tasks=failed(schema.TASK_END),
        num_failed_jobs=failed(schema.JOB_END),
        started_s=_of_event(rows, schema.APPLICATION_START, "first_s"),
        ended_s=_of_event(rows, schema.APPLICATION_END, "last_s"),
        plans={row["execution_run_id"] or "": row["plan"] for row in rows if row["plan"]},
        stages=stages,
    )


def _of_event(rows: Sequence[Row], event: str, name: str) -> float | None:
    return next((row[name] for row in rows if row["Event"] == event), None)


def _executors(events: Iterable[Row]) -> tuple[Executor, ...]:
    by_executor: dict[str, list[Row]] = defaultdict(list)
    for event in events:
        if event["executor_id"] is not None:
            by_executor[event["executor_id"]].append(event)
    found = []
    for executor_id in sorted(by_executor):
        said = by_executor[executor_id]
        added = [event for event in said if event["num_cores"] is not None]
        removed_s = [
            event["at_s"]
            for event in said
            if event["num_cores"] is None and event["at_s"] is not None
        ]
        if added:
            found.append(
                Executor(
                    executor_id=executor_id,
                    num_cores=max(event["num_cores"] for event in added),
                    added_s=min(
                        (event["at_s"] for event in added if event["at_s"] is not None),
                        default=None,
                    ),
                    removed_s=max(removed_s, default=None),
                )
            )
    return tuple(found)
