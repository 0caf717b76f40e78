"""Tables -> the driver: facts per application, its latest batches, their stages; never tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from headway.profiler import aggregates, schema, tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# A row of a table, by column.
Record: TypeAlias = Mapping[str, Any]

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
    """Attempts of stages: all that left a trace, those seen to end, and the tasks of these."""

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
    num_passed_over: int
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
    batches: Sequence[Record]
    stage_runs: Sequence[Record]


def collect(events: DataFrame, progress: Callable[[str], None]) -> CollectedLogs:
    """Run the pipeline over the parsed events; ``progress`` is told of each step."""
    progress("reading events")
    with ThreadPoolExecutor(max_workers=1) as reader:
        reading = reader.submit(lambda: _records(aggregates.facts(events)))
        counting = reader.submit(lambda: _records(aggregates.identities(events)))
        # To plan this takes Spark as long as to read a small log.
        stage_runs = aggregates.stage_runs(events, tasks_stand_once=True)
        facts = reading.result()
        progress("reading batches")
        batches = _records(_latest_batches(events, facts))
        identities = counting.result()
    if not _tasks_stand_once(facts, identities):
        stage_runs = aggregates.stage_runs(events)
    progress("joining batches to stages and tasks")
    stages = _records(_stages_of(stage_runs, batches, facts))
    facts_of, stages_of = _by_application(facts), _by_application(stages)
    identities_of = _by_application(identities)
    return CollectedLogs(
        applications={
            app: _application_facts(
                app, rows, identities_of.get(app, ()), _counted(stages_of.get(app, ()))
            )
            for app, rows in sorted(facts_of.items())
        },
        batches=batches,
        stage_runs=stages,
    )


def _records(table: DataFrame) -> list[Record]:
    """Spark's rows look a column up by going through their names."""
    return [row.asDict() for row in table.collect()]


def _tasks_stand_once(facts: Sequence[Record], identities: Sequence[Record]) -> bool:
    num_lines = sum(row["num_lines"] for row in facts if row["Event"] == schema.TASK_END)
    num_distinct = sum(row["num_distinct"] for row in identities if row["Event"] == schema.TASK_END)
    return bool(num_lines == num_distinct)


def each_application(logs: CollectedLogs) -> dict[int, CollectedLogs]:
    """What belongs to each application."""
    batches, stage_runs = _by_application(logs.batches), _by_application(logs.stage_runs)
    return {
        app: CollectedLogs(
            applications={app: facts},
            batches=batches.get(app, []),
            stage_runs=stage_runs.get(app, []),
        )
        for app, facts in logs.applications.items()
    }


def _by_application(rows: Sequence[Record]) -> dict[int, list[Record]]:
    by_app: dict[int, list[Record]] = defaultdict(list)
    for row in rows:
        by_app[row["app"]].append(row)
    return by_app


def _latest_batches(events: DataFrame, facts: Sequence[Record]) -> DataFrame:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    batches = tables.batches(events)
    if not _is_long(facts):
        return batches
    latest = F.row_number().over(
        Window.partitionBy("app", "run_id").orderBy(F.desc("batch_id"), F.desc("num_rows"))
    )
    return (
        batches.withColumn("place", latest)
        .where(F.col("place") <= MOST_BATCHES_PER_RUN)
        .drop("place")
    )


def _stages_of(
    stage_runs: DataFrame, batches: Sequence[Record], facts: Sequence[Record]
) -> DataFrame:
    """All stages, or where batches of a query were left behind those of its latest ones."""
    from pyspark.sql import functions as F

    if not _is_long(facts):
        return stage_runs
    first_batch: dict[tuple[int, str], int] = {}
    for row in batches:
        key = (row["app"], row["query_id"])
        first_batch[key] = min(row["batch_id"], first_batch.get(key, row["batch_id"]))
    wanted = F.col("query_id").isNull()
    for (app, query_id), batch_id in first_batch.items():
        of_query = (F.col("app") == app) & (F.col("query_id") == query_id)
        wanted = wanted | (of_query & (F.col("batch_id") >= batch_id))
    return stage_runs.where(wanted)


def _is_long(facts: Sequence[Record]) -> bool:
    reported = [row["num_lines"] for row in facts if row["Event"] == schema.QUERY_PROGRESS]
    return max(reported, default=0) > MOST_BATCHES_PER_RUN


def _counted(stage_runs: Sequence[Record]) -> StageCounts:
    ended = [max(row["num_tasks"], 0) for row in stage_runs if row["num_tasks"] is not None]
    return StageCounts(num_attempts=len(stage_runs), num_ended=len(ended), num_tasks=sum(ended))


def _application_facts(
    app: int, rows: Sequence[Record], identities: Sequence[Record], stages: StageCounts
) -> ApplicationFacts:
    def latest(name: str) -> str | None:
        return max((row[name] for row in rows if row[name] is not None), default=None)

    def failed(event: str) -> int:
        return sum(row["num_failed"] for row in rows if row["Event"] == event)

    identities_of = {row["Event"]: row for row in identities}

    def count(event: str) -> EventCount:
        num_lines = sum(row["num_lines"] for row in rows if row["Event"] == event)
        ids = identities_of.get(event)
        if ids is None:
            return EventCount(num_lines)
        return EventCount(num_lines, ids["num_distinct"], ids["first_id"], ids["last_id"])

    return ApplicationFacts(
        app=app,
        application_id=latest("application_id"),
        application_name=latest("application_name"),
        spark_version=latest("spark_version"),
        java_version=latest("java_version"),
        properties=next((row["properties"] for row in rows if row["properties"]), {}),
        executors=_executors(event for row in rows for event in row["executors"]),
        task_executor_ids=frozenset(name for row in rows for name in row["executor_ids"]),
        counts={
            event: count(event)
            for event in sorted({row["Event"] for row in rows if row["Event"] is not None})
        },
        num_damaged=sum(row["num_damaged"] for row in rows),
        num_lost=_total(rows, "num_lost"),
        num_passed_over=_total(rows, "num_passed_over"),
        num_failed_tasks=failed(schema.TASK_END),
        num_failed_jobs=failed(schema.JOB_END),
        started_s=_of_event(rows, schema.APPLICATION_START, "first_s"),
        ended_s=_of_event(rows, schema.APPLICATION_END, "last_s"),
        plans={row["execution_run_id"] or "": row["plan"] for row in rows if row["plan"]},
        stages=stages,
    )


def _total(rows: Sequence[Record], name: str) -> int:
    """Sum of what may be missing, or below zero where a line is damaged."""
    return sum(max(row[name] or 0, 0) for row in rows)


def _of_event(rows: Sequence[Record], event: str, name: str) -> float | None:
    return next((row[name] for row in rows if row["Event"] == event), None)


def _executors(events: Iterable[Record]) -> tuple[Executor, ...]:
    by_executor: dict[str, list[Record]] = defaultdict(list)
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
