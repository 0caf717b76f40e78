"""Tables -> job profile. The one place of the profiler that collects: batches, never tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headway.domain import (
    Application,
    Arrivals,
    Configuration,
    JobProfile,
    ObservedSetting,
    QueryShape,
)
from headway.errors import EventLogError, InputError
from headway.models.estimation import warm_up_length
from headway.profiler import tables
from headway.profiler.fit import (
    PHASES,
    BatchSample,
    DurationFit,
    QueryRun,
    StageSample,
    common_signature,
    fit_duration,
)
from headway.profiler.trigger import read_trigger

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

_LEAST_BATCHES = 5
_MS_PER_S = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectedLogs:
    """What the pipeline brings to the driver: one row per application, executor, batch, stage."""

    applications: Sequence[Row]
    executors: Sequence[Row]
    batches: Sequence[Row]
    stage_runs: Sequence[Row]


def collect(events: DataFrame, progress: Callable[[str], None]) -> CollectedLogs:
    """Run the pipeline over the parsed events; ``progress`` is told of each step."""
    progress("reading events")
    applications = tables.applications(events).collect()
    progress("reading executors")
    executors = tables.executors(events).collect()
    progress("reading batches")
    batches = tables.batches(events).collect()
    progress("joining batches to stages and tasks")
    stage_runs = tables.stage_runs(events).collect()
    return CollectedLogs(
        applications=applications, executors=executors, batches=batches, stage_runs=stage_runs
    )


def summarize(
    logs: CollectedLogs, log_names: Sequence[str], queries: Sequence[str], version: str
) -> JobProfile:
    """Fit one profile to the chosen queries of the collected logs.

    Parameters
    ----------
    logs : CollectedLogs
        From :func:`collect`.
    log_names : sequence of str
        The name of each log, for messages.
    queries : sequence of str
        Names or ids (a prefix of 8 characters will do) of the queries that make the profile;
        empty takes all, which must be runs of one job.
    version : str
        The Headway version that makes the profile.

    Raises
    ------
    EventLogError
        If there is no streaming query, or too few batches to profile.
    InputError
        If ``queries`` names none, or the queries found are different jobs.
    """
    _require_streaming(logs, log_names)
    chosen = _choose_queries(logs.batches, queries, log_names)
    notes: list[str] = []
    runs = [
        run
        for key, rows in chosen.items()
        if (run := _query_run(key, rows, logs, notes)) is not None
    ]
    if not runs:
        raise EventLogError(
            f"{', '.join(log_names)}: no query left to profile: {'; '.join(notes)}; "
            "let the query run for some minutes and profile that log"
        )
    runs.sort(key=lambda run: run.batches[0].started_s)
    runs = _same_stages(runs, notes)
    fit = fit_duration(runs)
    last = runs[-1]
    return JobProfile(
        headway_version=version,
        applications=tuple(_application(row) for row in logs.applications),
        shape=_shape(chosen[next(key for key in reversed(chosen) if key[1] == last.query_id)]),
        arrivals=Arrivals(rate_per_s=last.rate_per_s, dispersion_ratio=_dispersion_ratio(runs)),
        driver_phases=fit.driver_phases,
        stages=fit.stages,
        noise=fit.noise,
        drift=fit.drift,
        settings=tuple(
            _setting(run, modelled_s)
            for run, modelled_s in zip(runs, fit.modelled_mean_s, strict=True)
        ),
        notes=tuple(notes) + _drift_notes(runs, fit),
    )


def _require_streaming(logs: CollectedLogs, log_names: Sequence[str]) -> None:
    seen = {row["app"] for row in logs.applications}
    for number, name in enumerate(log_names):
        if number not in seen:
            raise EventLogError(
                f'{name}: no Spark event in it; expected JSON lines with an "Event" field'
            )
    for row in logs.applications:
        if not row["num_progress_events"]:
            raise EventLogError(
                f"{log_names[row['app']]}: a Spark log with {row['num_tasks']} tasks but no streaming "
                "query; expected progress events of a Structured Streaming query"
            )


QueryKey = tuple[int, str]


def _choose_queries(
    batches: Sequence[Row], queries: Sequence[str], log_names: Sequence[str]
) -> dict[QueryKey, list[Row]]:
    by_query: dict[QueryKey, list[Row]] = defaultdict(list)
    for row in sorted(batches, key=lambda row: (row["app"], row["started_s"], row["batch_id"])):
        by_query[row["app"], row["query_id"]].append(row)
    if not queries:
        return dict(by_query)
    chosen: dict[QueryKey, list[Row]] = {}
    for wanted in queries:
        matches = {
            key: rows
            for key, rows in by_query.items()
            if wanted in (key[1], rows[0]["query_name"])
            or (len(wanted) >= 8 and key[1].startswith(wanted))
        }
        if not matches:
            known = ", ".join(
                _query_label(key[1], rows[0]["query_name"]) for key, rows in by_query.items()
            )
            raise InputError(
                f"--query {wanted!r}: no such query in {', '.join(log_names)}; it holds {known}"
            )
        chosen |= matches
    return chosen


def _query_label(query_id: str, query_name: str | None) -> str:
    return f"{query_name} ({query_id[:8]})" if query_name else query_id[:8]


def _query_run(
    key: QueryKey, rows: Sequence[Row], logs: CollectedLogs, notes: list[str]
) -> QueryRun | None:
    """The steady part of a query as a run, or None with a note where there is too little of it."""
    app, query_id = key
    label = f"query {_query_label(query_id, rows[0]['query_name'])}"
    stages = _stages_by_batch(logs.stage_runs, key)
    # The first batch has no interval that filled it, and pays for planning and class loading.
    usable = [
        row
        for row in rows[1:]
        if row["num_rows"] > 0
        and row["batch_id"] in stages
        and "triggerExecution" in row["phases_s"]
    ]
    if len(usable) < _LEAST_BATCHES:
        notes.append(
            f"{label}: left out, {len(usable)} of {len(rows)} batches usable (rows, tasks and "
            f"durations seen), at least {_LEAST_BATCHES} needed"
        )
        return None
    jvm_started_s = min(
        row["added_s"] or rows[0]["started_s"] for row in logs.executors if row["app"] == app
    )
    samples = [_batch_sample(row, stages[row["batch_id"]], jvm_started_s) for row in usable]
    num_cut = warm_up_length(np.array([sample.duration_s for sample in samples]))
    if num_cut:
        notes.append(
            f"{label}: cut {num_cut} of {len(samples)} batches as warm-up "
            f"(first {samples[num_cut].started_s - samples[0].started_s:.0f} s)"
        )
    steady = samples[num_cut:]
    started_s = np.array([sample.started_s for sample in steady])
    trigger = read_trigger(started_s, np.array([sample.duration_s for sample in steady]))
    if trigger.trigger_s is None:
        notes.append(
            f"{label}: trigger interval unknown ({trigger.why}); taken as fast as possible"
        )
    executors, cores = _executors(logs.executors, app, started_s[-1])
    return QueryRun(
        query_id=query_id,
        query_name=rows[0]["query_name"],
        configuration=Configuration(
            executors=executors,
            cores_per_executor=cores,
            shuffle_partitions=_shuffle_partitions(rows[-1], stages),
            trigger_s=trigger.trigger_s or 0.0,
        ),
        rate_per_s=_rate_per_s(steady),
        num_cut=len(rows) - len(steady),
        batches=tuple(steady),
    )


def _stages_by_batch(stage_runs: Sequence[Row], key: QueryKey) -> dict[int, list[Row]]:
    by_batch: dict[int, list[Row]] = defaultdict(list)
    for row in stage_runs:
        if (row["app"], row["query_id"]) == key:
            by_batch[row["batch_id"]].append(row)
    return {
        batch_id: sorted(rows, key=lambda row: (row["job_id"], row["stage_id"]))
        for batch_id, rows in by_batch.items()
    }


def _batch_sample(row: Row, stages: Sequence[Row], jvm_started_s: float) -> BatchSample:
    phases_s: dict[str, float] = {}
    for name, seconds in row["phases_s"].items():
        if name in PHASES:
            phases_s[PHASES[name]] = phases_s.get(PHASES[name], 0.0) + seconds
    levels = _levels(stages)
    return BatchSample(
        batch_id=row["batch_id"],
        started_s=row["started_s"],
        jvm_age_s=max(row["started_s"] - jvm_started_s, 1.0),
        duration_s=row["phases_s"]["triggerExecution"],
        phases_s=phases_s,
        num_rows=row["num_rows"],
        state_commit_s=sum(
            (operator["commitTimeMs"] or 0) / _MS_PER_S
            for operator in row["stateful_operators"] or ()
        ),
        stages=tuple(
            StageSample(
                level=levels[stage["stage_id"]],
                has_parents=bool(stage["parent_ids"]),
                num_tasks=stage["num_tasks"],
                rows_read=float(stage["rows_read"]),
                task_mean_s=stage["task_mean_s"],
                task_sd_s=stage["task_sd_s"],
                outside_run_s=stage["outside_run_s"],
                rows_variance=stage["rows_variance"],
                rows_time_covariance_s=stage["rows_time_covariance_s"],
                span_s=stage["launch_to_finish_s"],
            )
            for stage in stages
        ),
    )


def _levels(stages: Sequence[Row]) -> dict[int, int]:
    """Level of each stage: behind its parents, and behind the jobs that came before."""
    levels: dict[int, int] = {}
    first_of_job, job_id = 0, None
    for stage in stages:
        if stage["job_id"] != job_id:
            first_of_job, job_id = max(levels.values(), default=-1) + 1, stage["job_id"]
        behind = [levels[parent] + 1 for parent in stage["parent_ids"] if parent in levels]
        levels[stage["stage_id"]] = max([first_of_job, *behind])
    return levels


def _executors(executors: Sequence[Row], app: int, at_s: float) -> tuple[int, int]:
    """Executors alive at an instant and their cores; local mode is one executor, the driver."""
    alive = [
        row["num_cores"]
        for row in executors
        if row["app"] == app
        and (row["added_s"] or 0.0) <= at_s
        and (row["removed_s"] is None or row["removed_s"] > at_s)
    ]
    if not alive:
        raise EventLogError(
            "no executor is on record for the query (no ExecutorAdded event): the log misses its "
            "beginning; profile a log that starts with the application"
        )
    return len(alive), max(int(np.median(alive)), 1)


def _shuffle_partitions(row: Row, stages: Mapping[int, Sequence[Row]]) -> int:
    """Partitions of the state; without state those of the session, or of the last stage."""
    for operator in row["stateful_operators"] or ():
        if operator["numShufflePartitions"]:
            return int(operator["numShufflePartitions"])
    last = stages[max(stages)]
    return int(last[-1]["shuffle_partitions"] or last[-1]["num_tasks"])


def _rate_per_s(batches: Sequence[BatchSample]) -> float:
    """Rows of all batches but the first, over the time in which they arrived."""
    elapsed_s = batches[-1].started_s - batches[0].started_s
    return sum(batch.num_rows for batch in batches[1:]) / elapsed_s


def _dispersion_ratio(runs: Sequence[QueryRun]) -> float:
    """Variance over mean of arrivals, from how far batches stray from rate times interval."""
    ratios = []
    for run in runs:
        interval_s = np.diff([batch.started_s for batch in run.batches])
        rows = np.array([batch.num_rows for batch in run.batches[1:]], dtype=np.float64)
        expected = run.rate_per_s * interval_s
        ratios.append(float(np.mean(np.square(rows - expected) / np.maximum(expected, 1.0))))
    return float(np.median(ratios))


def _same_stages(runs: Sequence[QueryRun], notes: list[str]) -> list[QueryRun]:
    """Runs reduced to batches of one signature; runs without any are another job."""
    signature = common_signature(runs)
    kept, others = [], []
    for run in runs:
        batches = tuple(batch for batch in run.batches if batch.signature == signature)
        if 2 * len(batches) < len(run.batches):
            others.append(_query_label(run.query_id, run.query_name))
            continue
        if len(batches) < len(run.batches):
            notes.append(
                f"query {_query_label(run.query_id, run.query_name)}: "
                f"{len(run.batches) - len(batches)} batches with other stages left out"
            )
        kept.append(
            QueryRun(
                query_id=run.query_id,
                query_name=run.query_name,
                configuration=run.configuration,
                rate_per_s=run.rate_per_s,
                num_cut=run.num_cut + len(run.batches) - len(batches),
                batches=batches,
            )
        )
    if others:
        raise InputError(
            f"the queries are different jobs: {', '.join(others)} have other stages than "
            f"{', '.join(_query_label(run.query_id, run.query_name) for run in kept)}; "
            "choose the runs of one job with --query"
        )
    return kept


def _application(row: Row) -> Application:
    return Application(
        id=row["application_id"] or "unknown",
        name=row["application_name"] or "unknown",
        spark_version=row["spark_version"] or "unknown",
        executor_memory=row["executor_memory"],
    )


def _shape(rows: Sequence[Row]) -> QueryShape:
    row = rows[-1]
    operators: Sequence[Any] = row["stateful_operators"] or ()
    return QueryShape(
        sources=tuple(source.split("@")[0] for source in row["sources"]),
        sink=(row["sink"] or "unknown").split("@")[0],
        stateful_operators=tuple(operator["operatorName"] for operator in operators),
        state_rows=sum(operator["numRowsTotal"] or 0 for operator in operators),
        watermarked=bool(row["watermarked"]),
    )


def _setting(run: QueryRun, modelled_s: float) -> ObservedSetting:
    rows = [batch.num_rows for batch in run.batches]
    durations_s = np.array([batch.duration_s for batch in run.batches])
    return ObservedSetting(
        query_id=run.query_id,
        query_name=run.query_name,
        configuration=run.configuration,
        rate_per_s=run.rate_per_s,
        num_batches=len(rows),
        num_batches_cut=run.num_cut,
        jvm_age_s=float(np.mean([batch.jvm_age_s for batch in run.batches])),
        rows_per_batch_low=float(min(rows)),
        rows_per_batch_high=float(max(rows)),
        batch_duration_mean_s=float(durations_s.mean()),
        batch_duration_sd_s=float(durations_s.std()),
        modelled_duration_mean_s=modelled_s,
    )


def _drift_notes(runs: Sequence[QueryRun], fit: DurationFit) -> tuple[str, ...]:
    """Runs that the common model misses by more than a tenth, in the order they ran."""
    notes = []
    for run, modelled_s in zip(runs, fit.modelled_mean_s, strict=True):
        observed_s = float(np.mean([batch.duration_s for batch in run.batches]))
        if abs(observed_s / modelled_s - 1) > 0.1:
            notes.append(
                f"query {_query_label(run.query_id, run.query_name)}: batches took "
                f"{observed_s / modelled_s - 1:+.0%} of what all runs together suggest "
                "(drift, or load of others)"
            )
    return tuple(notes)
