"""Collected logs -> the profile of one streaming job."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headway.domain import (
    Application,
    Arrivals,
    DurationNoise,
    JobProfile,
    ObservedSetting,
    QueryShape,
    Share,
)
from headway.errors import EventLogError, InputError
from headway.profiler import schema
from headway.profiler.collect import ApplicationFacts, CollectedLogs, each_application
from headway.profiler.coverage import coverage_of, gaps, together
from headway.profiler.logs.sources import EventLog
from headway.profiler.plan_text import read_plan
from headway.profiler.redaction import allowed_properties, redact
from headway.profiler.streaming.arrivals import observed_arrivals
from headway.profiler.streaming.fit import DurationFit, common_signature, fit_duration
from headway.profiler.streaming.observations import (
    observe_memory,
    observe_stage,
    observe_state,
    pins_of,
)
from headway.profiler.streaming.runs import LEAST_BATCHES, query_label, steady_part
from headway.profiler.streaming.samples import QueryRun

if TYPE_CHECKING:
    from pyspark.sql import Row

_LEAST_ID_PREFIX = 8
_MOST_LISTED = 8
NO_EVENT = 'no Spark event in it; expected JSON lines with an "Event" field'
# A number that stands alone, as in "rowsPerSecond=5000": a setting, not part of a name.
_SETTING = re.compile(r"(?<![\w.-])\d[\d.]*(?![\w-])")


class RunKey(NamedTuple):
    """One run of a query; a restart from the checkpoint keeps the query's id, not the run's."""

    app: int
    query_id: str
    run_id: str


def summarize(
    logs: CollectedLogs,
    event_logs: Mapping[int, EventLog],
    queries: Sequence[str],
    version: str,
) -> JobProfile:
    """Fit one profile to the chosen queries of the collected logs.

    Parameters
    ----------
    logs : CollectedLogs
        From :func:`headway.profiler.collect.collect`.
    event_logs : mapping of int to EventLog
        The logs by number.
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
    names = {number: log.name for number, log in event_logs.items()}
    notes = list(_require_streaming(logs, names))
    chosen = _choose_queries(
        _without_copies(_by_run(logs.batches), notes), queries, list(names.values())
    )
    stage_runs = _stages_by_run(logs.stage_runs, chosen)
    runs = []
    for key, reports in chosen.items():
        facts = logs.applications[key.app]
        plan = read_plan(facts.plans.get(key.run_id, ""))
        part = steady_part(reports, stage_runs[key], facts, plan, names[key.app])
        notes += part.notes
        if part.run is not None:
            runs.append(part.run)
    _require_runs(runs, list(names.values()), notes)
    runs.sort(key=lambda run: run.batches[0].started_s)
    _require_one_job(runs, notes, chosen_by_name=bool(queries))
    runs = _same_stages(runs, notes)
    _require_runs(runs, list(names.values()), notes)
    fit = fit_duration(runs)
    last = runs[-1]
    of_each = each_application(logs)
    apps = sorted({key.app for key in chosen})
    coverage = together(
        coverage_of(logs.applications[app], of_each[app].batches, event_logs[app]) for app in apps
    )
    return JobProfile(
        headway_version=version,
        applications=tuple(application_of(logs.applications[app]) for app in apps),
        shape=last.shape,
        arrivals=Arrivals(rate_per_s=last.rate_per_s, dispersion_ratio=_dispersion_ratio(runs)),
        driver_phases=fit.driver_phases,
        stages=tuple(
            replace(stage, observed=observe_stage(runs, place, stage))
            for place, stage in enumerate(fit.stages)
        ),
        noise=_less_sure(fit, runs, notes),
        drift=fit.drift,
        settings=tuple(
            _setting(run, modelled_s)
            for run, modelled_s in zip(runs, fit.modelled_mean_s, strict=True)
        ),
        observed_arrivals=observed_arrivals(last.arrivals),
        state=observe_state(last),
        memory=observe_memory(runs),
        pins=pins_of(last),
        coverage=coverage,
        notes=(*notes, *_drift_notes(runs, fit), *gaps(coverage)),
    )


def application_of(facts: ApplicationFacts) -> Application:
    """The application as a profile may show it."""
    properties = allowed_properties(facts.properties)
    return Application(
        id=redact(facts.application_id or "unknown"),
        name=redact(facts.application_name or "unknown"),
        spark_version=redact(facts.spark_version or "unknown"),
        java_version=redact(facts.java_version) if facts.java_version else None,
        executor_memory=properties.get("spark.executor.memory"),
        properties=dict(sorted(properties.items())),
    )


def _dispersion_ratio(runs: Sequence[QueryRun]) -> float:
    """Variance over mean of arrivals, from how far batches stray from rate times interval."""
    ratios = [run.arrivals.dispersion_ratio for run in runs]
    known = [ratio for ratio in ratios if ratio is not None]
    # Where no interval is known, arrivals at random times.
    return float(np.median(known)) if known else 1.0


def _less_sure(fit: DurationFit, runs: Sequence[QueryRun], notes: list[str]) -> DurationNoise:
    """The noise, with what tasks that are not on record may hide.

    If the missing tasks are on average one standard deviation slower or faster than those seen,
    the mean of all is off by their share of it.
    """
    tasks = [run.tasks for run in runs]
    seen, expected = (sum(share.seen for share in tasks), sum(share.expected for share in tasks))
    missing = 1 - Share(seen=seen, expected=expected).ratio
    if missing == 0:
        return fit.noise
    hidden_ratio = missing * max(stage.task_noise_ratio for stage in fit.stages)
    notes.append(
        f"{missing:.1%} of the tasks are not on record: intervals are wider by up to "
        f"{hidden_ratio:.1%}"
    )
    return replace(
        fit.noise, run_to_run_ratio=float(np.hypot(fit.noise.run_to_run_ratio, hidden_ratio))
    )


def _require_streaming(logs: CollectedLogs, names: Mapping[int, str]) -> Iterator[str]:
    """Notes on the logs without a streaming query, if others have one."""
    streaming = {row["app"] for row in logs.batches}
    without = []
    for app, name in names.items():
        facts = logs.applications.get(app)
        if facts is None or not facts.has_events:
            without.append(f"{name}: {NO_EVENT}")
        elif app not in streaming:
            without.append(
                f"{name}: a Spark log with {facts.count(schema.TASK_END).num_lines} tasks but no "
                "streaming query; expected progress events of a Structured Streaming query"
            )
    if not streaming:
        raise EventLogError("; ".join(without[:_MOST_LISTED]))
    yield from (f"left out: {why}" for why in without)


def _by_run(batches: Sequence[Row]) -> dict[RunKey, list[Row]]:
    by_run: dict[RunKey, list[Row]] = defaultdict(list)
    for row in batches:
        by_run[RunKey(row["app"], row["query_id"], row["run_id"] or "")].append(row)
    # In order of log and time, so that messages and choices do not hang on Spark's order.
    return {
        key: by_run[key]
        for key in sorted(
            by_run,
            key=lambda key: (
                key.app,
                min(row["started_s"] or 0.0 for row in by_run[key]),
                key.query_id,
                key.run_id,
            ),
        )
    }


def _without_copies(by_run: dict[RunKey, list[Row]], notes: list[str]) -> dict[RunKey, list[Row]]:
    """Runs that stand in several logs, which are then copies, once: the longest of them."""
    longest: dict[tuple[str, str], RunKey] = {}
    for key, reports in by_run.items():
        # Without a run id each log has runs of its own.
        name = (key.query_id, key.run_id or f"log {key.app}")
        known = longest.setdefault(name, key)
        if known != key:
            notes.append(
                f"query {query_label(key.query_id, reports[0]['query_name'])}: the same run stands "
                "in two logs; one of them is used"
            )
            if len(reports) > len(by_run[known]):
                longest[name] = key
    kept = set(longest.values())
    return {key: reports for key, reports in by_run.items() if key in kept}


def _choose_queries(
    by_run: dict[RunKey, list[Row]], queries: Sequence[str], log_names: Sequence[str]
) -> dict[RunKey, list[Row]]:
    if not queries:
        return by_run
    chosen: dict[RunKey, list[Row]] = {}
    for wanted in queries:
        matches = {
            key: reports
            for key, reports in by_run.items()
            if wanted in (key.query_id, reports[0]["query_name"])
            or (len(wanted) >= _LEAST_ID_PREFIX and key.query_id.startswith(wanted))
        }
        if not matches:
            known = dict.fromkeys(
                query_label(key.query_id, reports[0]["query_name"])
                for key, reports in by_run.items()
            )
            raise InputError(
                f"--query {wanted!r}: no such query in {listed(log_names)}; "
                f"it holds {listed(known)}"
            )
        chosen |= matches
    return chosen


def _stages_by_run(stage_runs: Sequence[Row], runs: Iterable[RunKey]) -> dict[RunKey, list[Row]]:
    """Stages by the run whose batch they belong to."""
    runs_of: dict[tuple[int, str], list[RunKey]] = defaultdict(list)
    for key in runs:
        runs_of[key.app, key.query_id].append(key)
    by_run: dict[RunKey, list[Row]] = defaultdict(list)
    for row in stage_runs:
        candidates = runs_of.get((row["app"], row["query_id"]), [])
        # A query gives its jobs its run's id as group; only the job's own code can change that.
        owners = [key for key in candidates if key.run_id == row["run_id"]]
        for key in owners or candidates[:1]:
            by_run[key].append(row)
    return by_run


def _require_runs(runs: Sequence[QueryRun], log_names: Sequence[str], notes: Sequence[str]) -> None:
    if not runs:
        raise EventLogError(
            f"{listed(log_names)}: no query left to profile: {'; '.join(notes[:_MOST_LISTED])}; "
            "let the query run for some minutes and profile that log"
        )


def _require_one_job(runs: Sequence[QueryRun], notes: list[str], *, chosen_by_name: bool) -> None:
    """Queries that read, keep or write other things are other jobs, however alike their stages."""
    jobs: dict[QueryShape, list[str]] = defaultdict(list)
    for run in runs:
        jobs[_what_it_does(run.shape)].append(query_label(run.query_id, run.query_name))
    if len(jobs) > 1:
        described = [
            f"{listed(dict.fromkeys(labels))} ({listed(shape.sources)} to {shape.sink})"
            for shape, labels in jobs.items()
        ]
        if not chosen_by_name:
            raise InputError(
                f"the queries are different jobs: {listed(described)}; "
                "choose the runs of one job with --query"
            )
        notes.append(f"taken as runs of one job, as chosen: {listed(described)}")
    names = dict.fromkeys(run.query_name for run in runs)
    if len(names) > 1 and not chosen_by_name:
        labels = dict.fromkeys(query_label(run.query_id, run.query_name) for run in runs)
        notes.append(
            f"taken as runs of one job, since they look alike: {listed(labels)}; "
            "--query would choose"
        )


def _what_it_does(shape: QueryShape) -> QueryShape:
    """The shape without what differs between runs of a job: settings and state size."""
    return replace(
        shape,
        sources=tuple(_SETTING.sub("#", source) for source in shape.sources),
        sink=_SETTING.sub("#", shape.sink),
        state_rows=0,
        # A watermark shows from the first batch that advanced it.
        watermarked=False,
    )


def _same_stages(runs: Sequence[QueryRun], notes: list[str]) -> list[QueryRun]:
    """Runs reduced to batches of one signature; runs of mostly others are another job."""
    signature = common_signature(runs)
    kept, others = [], []
    for run in runs:
        label = query_label(run.query_id, run.query_name)
        batches = tuple(batch for batch in run.batches if batch.signature == signature)
        num_others = len(run.batches) - len(batches)
        if len(runs) > 1 and len(batches) < num_others:
            others.append(label)
            continue
        if len(batches) < LEAST_BATCHES:
            notes.append(
                f"query {label}: left out, its batches run different stages and only "
                f"{len(batches)} of {len(run.batches)} the most frequent ones"
            )
            continue
        if num_others:
            notes.append(f"query {label}: {num_others} batches with other stages left out")
        kept.append(replace(run, num_cut=run.num_cut + num_others, batches=batches))
    if others:
        usual = [query_label(run.query_id, run.query_name) for run in kept]
        raise InputError(
            f"the queries are different jobs: {listed(dict.fromkeys(others))} run other stages "
            f"than {listed(dict.fromkeys(usual)) or 'the most frequent ones'}; "
            "choose the runs of one job with --query"
        )
    return kept


def _setting(run: QueryRun, modelled_s: float) -> ObservedSetting:
    rows = [batch.num_rows for batch in run.batches]
    durations_s = np.array([batch.duration_s for batch in run.batches])
    return ObservedSetting(
        query_id=run.query_id,
        query_name=None if run.query_name is None else redact(run.query_name),
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
                f"query {query_label(run.query_id, run.query_name)}: batches took "
                f"{observed_s / modelled_s - 1:+.0%} of what all runs together suggest "
                "(drift, or load of others)"
            )
    return tuple(notes)


def listed(names: Iterable[str]) -> str:
    """The first names in words, and how many more there are."""
    every = list(names)
    more = f" and {len(every) - _MOST_LISTED} more" if len(every) > _MOST_LISTED else ""
    return ", ".join(every[:_MOST_LISTED]) + more
