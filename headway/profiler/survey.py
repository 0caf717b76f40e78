"""Each log on its own: its contents, what it lacks, and its profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from headway.domain import Application, ApplicationProfile, Coverage, JobProfile
from headway.errors import EventLogError, HeadwayError, InputError, argument
from headway.lazy_classes import dataclass
from headway.profiler import schema
from headway.profiler.application.applications import profile_application
from headway.profiler.contents import ApplicationFacts, CollectedLogs, each_application
from headway.profiler.coverage import coverage_of
from headway.profiler.logs.sources import EventLog
from headway.profiler.recorded_queries import RecordedQuery, recorded_queries
from headway.profiler.rows import Record
from headway.profiler.streaming.job_runs import NO_EVENT, listed
from headway.profiler.streaming.summarize import application_of, summarize

_OPTIONS = {"queries": "--query"}


@dataclass(frozen=True, slots=True, kw_only=True)
class EventCounts:
    """Numbers of recorded objects, each once; ``failed_tasks`` and ``progress`` are lines."""

    jobs: int
    stages: int
    tasks: int
    failed_tasks: int
    sql_executions: int
    progress: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSurvey:
    """One log; ``why_not`` is the reason if there is no profile.

    A log without any Spark event has no application, counts or coverage. ``queries`` are the runs
    of all streaming queries that it mentions.
    """

    name: str
    application: Application | None = None
    counts: EventCounts | None = None
    coverage: Coverage | None = None
    profile: JobProfile | ApplicationProfile | None = None
    why_not: str = ""
    queries: tuple[RecordedQuery, ...] = ()


def surveys(
    logs: CollectedLogs, event_logs: Mapping[int, EventLog], version: str
) -> Iterator[LogSurvey]:
    of_each = each_application(logs)
    for app, log in event_logs.items():
        facts = logs.applications.get(app)
        if facts is None or not facts.has_events:
            yield LogSurvey(name=log.name, why_not=NO_EVENT)
            continue
        of_app = of_each[app]
        coverage = coverage_of(facts, of_app.batches, log)
        queries = recorded_queries(facts.queries, of_app.batches, facts.plans)
        profile: JobProfile | ApplicationProfile | None = None
        why_not = ""
        try:
            if facts.num_lines(schema.QUERY_PROGRESS):
                profile = summarize(of_app, {app: log}, (), version)
            else:
                _require_no_silent_queries(queries, facts, of_app.stage_runs)
                profile = profile_application(facts, of_app.stage_runs, coverage, version)
        except HeadwayError as error:
            # It is read beside `headway profile`, whose options choose among what is listed.
            why_not = error.message_with(_OPTIONS).removeprefix(f"{log.name}: ")
        yield LogSurvey(
            name=log.name,
            application=application_of(facts),
            counts=EventCounts(
                jobs=facts.ids_of(schema.JOB_START).num_distinct,
                stages=facts.num_attempts_ended,
                tasks=facts.ids_of(schema.TASK_END).num_distinct,
                failed_tasks=facts.num_failed_tasks,
                sql_executions=facts.ids_of(schema.SQL_EXECUTION_START).num_distinct,
                progress=facts.num_lines(schema.QUERY_PROGRESS),
            ),
            coverage=coverage,
            profile=profile,
            why_not=why_not,
            queries=queries,
        )


def _require_no_silent_queries(
    queries: Sequence[RecordedQuery], facts: ApplicationFacts, stage_runs: Sequence[Record]
) -> None:
    """An application whose queries ended no batch that can be read is no batch job."""
    if queries:
        raise EventLogError(f"no query ended a batch: {listed(query.text for query in queries)}")
    if facts.num_lines(schema.QUERY_PROGRESS_OF_2_0):
        contents = "it has" if stage_runs else "there is nothing in it but"
        raise EventLogError(
            f"{contents} the progress of streaming queries as Spark 2.0 writes it, without the "
            "times and rows of batches; record a run on Spark 2.1 or later from its start to its "
            "end (spark.eventLog.enabled=true) and profile that log"
        )


def profile_together(
    logs: CollectedLogs,
    event_logs: Mapping[int, EventLog],
    queries: Sequence[str],
    version: str,
    trigger_s: float | None = None,
) -> JobProfile | ApplicationProfile:
    """One profile of all logs: of their streaming job, else of the one application.

    ``queries``, ``trigger_s`` and errors are those of
    :func:`headway.profiler.streaming.summarize.summarize`.
    """
    if logs.batches or queries:
        return summarize(logs, event_logs, queries, version, trigger_s)
    apps = [app for app, facts in logs.applications.items() if facts.has_events]
    names = [event_logs[app].name for app in apps]
    if not names:
        raise EventLogError(f"{listed(log.name for log in event_logs.values())}: {NO_EVENT}")
    if len(names) != 1:
        raise InputError(
            f"{len(names)} applications without a streaming query, each a job of its own: "
            f"{listed(names)}; profile one of them, or each by itself: "
            "headway profile LOG... -o FOLDER/, in Python headway.survey"
        )
    if trigger_s is not None:
        raise InputError(
            f"{names[0]}: {argument('trigger')} is for streaming queries; the log has none"
        )
    facts = logs.applications[apps[0]]
    coverage = coverage_of(facts, (), event_logs[apps[0]])
    try:
        queries_without_batches = recorded_queries(facts.queries, (), facts.plans)
        _require_no_silent_queries(queries_without_batches, facts, logs.stage_runs)
        return profile_application(facts, logs.stage_runs, coverage, version)
    except EventLogError as error:
        raise EventLogError(f"{names[0]}: {error}") from None
