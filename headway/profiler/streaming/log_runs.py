"""Contents of one log -> the runs of its queries: measured, each with its steady part."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from headway.errors import HeadwayError
from headway.models.arrays import Array
from headway.profiler.contents import CollectedLogs
from headway.profiler.plan_text import read_plan
from headway.profiler.recorded_queries import recorded_queries
from headway.profiler.rows import Record
from headway.profiler.streaming.measured_runs import MeasuredRun, measured_run
from headway.profiler.streaming.observations import batch_times, mean_at_once
from headway.profiler.streaming.runs import steady_part
from headway.profiler.streaming.samples import BatchSample, QueryRun
from headway.redaction import redact

_LEAST_ID_PREFIX = 8

NumWarmUp: TypeAlias = Callable[[Sequence[BatchSample]], int]
SteadyPart: TypeAlias = tuple[QueryRun | None, list[str]]
"""The steady part of a run, if it has one, and notes."""

AppTimes: TypeAlias = tuple[float, tuple[Array, Array]]
"""When the first batch of an application started, and when its batches ran (`batch_times`)."""


LogRun: TypeAlias = tuple[SteadyPart, MeasuredRun | None]
"""A run of a log, and its measurements if its steady part depends on other runs of its job."""


class RunKey(NamedTuple):
    """One run of a query; a restart from the checkpoint keeps the query's id, not the run's."""

    app: int
    query_id: str
    run_id: str


def with_runs(
    log: CollectedLogs,
    name: str,
    queries: Sequence[str] = (),
    trigger_s: float | None = None,
) -> CollectedLogs:
    """A log with the runs of the chosen queries in place of its stages, if it has any batch.

    What is wrong with a run is kept as an error, in place of the run.
    """
    if not log.batches:
        return log
    (app,) = log.applications
    chosen_runs = {
        key: reports
        for key, reports in runs_by_key(log.batches).items()
        if not queries or any(is_named(query, key, reports) for query in queries)
    }
    return replace(log, stage_runs=(), runs={app: _runs_of(log, name, chosen_runs, trigger_s)})


def _runs_of(
    log: CollectedLogs,
    name: str,
    reports_by_run: Mapping[RunKey, Sequence[Record]],
    trigger_s: float | None,
) -> dict[RunKey, LogRun | HeadwayError]:
    """Some runs of one log, from their reports."""
    (facts,) = log.applications.values()
    stage_runs = _stages_by_run(log.stage_runs, reports_by_run)
    times = app_times(log.batches)
    recorded = recorded_queries(facts.queries, log.batches, {})
    number_texts = {query.run_id: query.number_text for query in recorded}
    runs: dict[RunKey, LogRun | HeadwayError] = {}
    for key, reports in reports_by_run.items():
        plan = read_plan(facts.plans.get(key.run_id, ""))
        try:
            number_text = number_texts.get(key.run_id, "")
            measured = measured_run(reports, stage_runs[key], facts, plan, name, number_text)
            if isinstance(measured, str):
                runs[key] = (None, [measured]), None
                continue
            steady = steady_run(measured, times, trigger_s)
        except HeadwayError as error:
            runs[key] = error
        else:
            needs_others = steady[0] is not None and steady[0].has_changing_load
            runs[key] = steady, measured if needs_others else None
    return runs


def steady_run(
    measured: MeasuredRun,
    times: AppTimes,
    trigger_s: float | None,
    num_warm_up: NumWarmUp | None = None,
) -> SteadyPart:
    """The steady part of a run, with what the other queries of its application say about it."""
    run, notes = steady_part(measured, trigger_s, num_warm_up)
    if run is None:
        return None, notes
    first_s, of_batches = times
    # Only the first query of an application has a fresh JVM, whether it is chosen or not.
    early = run.early if started_s(measured.all_reports) <= first_s else ()
    at_once = mean_at_once(run.batches, *of_batches)
    return replace(run, early=early, concurrent_batches=at_once), notes


def app_times(batches: Sequence[Record]) -> AppTimes:
    return started_s(batches), batch_times(batches)


def started_s(reports: Iterable[Record]) -> float:
    return min(row["started_s"] or 0.0 for row in reports)


def runs_by_key(batches: Sequence[Record]) -> dict[RunKey, list[Record]]:
    """The reports of each run, in order of log and time.

    So messages and choices do not depend on Spark's order.
    """
    by_run: dict[RunKey, list[Record]] = defaultdict(list)
    for row in batches:
        by_run[RunKey(row["app"], row["query_id"], row["run_id"] or "")].append(row)
    return {
        key: by_run[key]
        for key in sorted(
            by_run, key=lambda key: (key.app, started_s(by_run[key]), key.query_id, key.run_id)
        )
    }


def is_named(query: str, key: RunKey, reports: Sequence[Record]) -> bool:
    """Whether a run is one of the query with this name or id, of which a prefix is enough."""
    # Names are redacted where they enter; so is the one to look for.
    redacted_query = redact(query)
    return redacted_query in (key.query_id, reports[0]["query_name"]) or (
        len(redacted_query) >= _LEAST_ID_PREFIX and key.query_id.startswith(redacted_query)
    )


def _stages_by_run(
    stage_runs: Sequence[Record], runs: Iterable[RunKey]
) -> dict[RunKey, list[Record]]:
    """Stages by the run whose batch they belong to."""
    runs_of: dict[str, list[RunKey]] = defaultdict(list)
    for key in runs:
        runs_of[key.query_id].append(key)
    by_run: dict[RunKey, list[Record]] = defaultdict(list)
    for row in stage_runs:
        candidates = runs_of.get(row["query_id"], [])
        # A query sets its run id as the group of its jobs; only the job's own code can change that.
        owners = [key for key in candidates if key.run_id == row["run_id"]]
        for key in owners or candidates[:1]:
            by_run[key].append(row)
    return by_run
