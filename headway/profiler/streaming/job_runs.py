"""Collected logs -> the runs of one streaming job: chosen, each once, with the same stages."""

from __future__ import annotations

import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache, partial

import numpy as np

from headway.assumptions.fits import LEAST_BATCHES, LEAST_BATCHES_TO_CUT
from headway.domain import QueryShape
from headway.errors import EventLogError, HeadwayError, InputError, argument
from headway.models.estimation.regression import is_spread
from headway.profiler import schema
from headway.profiler.contents import CollectedLogs, each_application
from headway.profiler.logs.sources import EventLog
from headway.profiler.recorded_queries import alike_in_one, query_label
from headway.profiler.rows import Record
from headway.profiler.streaming.fit import fit_duration
from headway.profiler.streaming.log_runs import (
    AppTimes,
    LogRun,
    NumWarmUp,
    RunKey,
    SteadyPart,
    app_times,
    is_named,
    runs_by_key,
    steady_run,
    with_runs,
)
from headway.profiler.streaming.other_shapes import other_shapes
from headway.profiler.streaming.samples import QueryRun
from headway.profiler.streaming.stage_kinds import StageKind
from headway.profiler.streaming.warm_up import num_warm_up_by_rows
from headway.redaction import redact

_MOST_LISTED = 8
_MOST_JOBS = 3
NO_EVENT = 'no Spark event in it; expected JSON lines with an "Event" field'
# A separate number, as in "rowsPerSecond=5000", is a setting, not part of a name.
_SETTING = re.compile(r"(?<![\w.-])\d[\d.]*(?![\w-])")


def runs_of_job(
    logs: CollectedLogs,
    event_logs: Mapping[int, EventLog],
    queries: Sequence[str],
    trigger_s: float | None = None,
) -> tuple[tuple[QueryRun, ...], tuple[int, ...], tuple[str, ...]]:
    """The steady runs of the chosen queries in order of time, the logs they are in, and notes.

    They must be runs of one job.
    Parameters and errors are those of :func:`headway.profiler.streaming.summarize.summarize`.
    """
    names = {number: log.name for number, log in event_logs.items()}
    notes = list(_require_streaming(logs, names))
    chosen_runs = _choose_queries(
        _without_copies(runs_by_key(logs.batches), notes), queries, list(names.values())
    )
    apps = sorted({key.app for key in chosen_runs})
    log_runs_by_key = _measured(logs, chosen_runs, names, queries, trigger_s)
    parts = {key: steady for key, (steady, _) in log_runs_by_key.items()}

    @cache
    def times_of(app: int) -> AppTimes:
        return app_times([row for row in logs.batches if row["app"] == app])

    def cut_part(key: RunKey, num_warm_up: NumWarmUp) -> SteadyPart:
        measured = log_runs_by_key[key][1]
        assert measured is not None, "its load changes"
        return steady_run(measured, times_of(key.app), trigger_s, num_warm_up)

    of_job: list[str] = []
    runs = _runs_in_order(parts)
    _require_runs(runs, list(names.values()), [*notes, *_notes_of(parts)])
    _require_one_job(runs, of_job, chosen_by_name=bool(queries))
    parts = _without_warm_up(parts, cut_part)
    notes += [*_notes_of(parts), *of_job]
    runs = same_stages(_without_short_starts(_runs_in_order(parts), notes), notes)
    _require_runs(runs, list(names.values()), notes)
    return tuple(runs), tuple(apps), tuple(notes)


def _measured(
    logs: CollectedLogs,
    chosen_runs: Collection[RunKey],
    names: Mapping[int, str],
    queries: Sequence[str],
    trigger_s: float | None,
) -> dict[RunKey, LogRun]:
    """The chosen runs; of logs that were measured where they were read, as measured there."""
    of_each = each_application(logs)
    measured: dict[RunKey, LogRun | HeadwayError] = {}
    for app in dict.fromkeys(key.app for key in chosen_runs):
        log = of_each[app]
        if app not in log.runs:
            log = with_runs(log, names[app], queries, trigger_s)
        measured |= log.runs[app]
    runs: dict[RunKey, LogRun] = {}
    for key in chosen_runs:
        run = measured[key]
        if isinstance(run, HeadwayError):
            raise run
        runs[key] = run
    return runs


def _runs_in_order(parts: Mapping[RunKey, SteadyPart]) -> list[QueryRun]:
    runs = [run for run, _ in parts.values() if run is not None]
    return sorted(runs, key=lambda run: run.batches[0].started_s)


def _notes_of(parts: Mapping[RunKey, SteadyPart]) -> list[str]:
    return alike_in_one(note for _, notes in parts.values() for note in notes)


def _without_warm_up(
    parts: Mapping[RunKey, SteadyPart], part_of: Callable[[RunKey, NumWarmUp], SteadyPart]
) -> dict[RunKey, SteadyPart]:
    """The parts, where the load changes cut by what a first fit expects of the rows of batches.

    theory.md (E1).
    """
    changing = {key: run for key, (run, _) in parts.items() if run and run.has_changing_load}
    comparable = same_stages(_runs_in_order(parts), []) if changing else []
    if not comparable:
        return dict(parts)
    # Batches that are cut may be of another size than all that are fitted.
    fit = fit_duration(comparable, uses_range=False)
    return dict(parts) | {
        key: part_of(key, partial(num_warm_up_by_rows, steady=run, fit=fit))
        for key, run in changing.items()
    }


def _without_short_starts(runs: Sequence[QueryRun], notes: list[str]) -> list[QueryRun]:
    """Runs without those that are all warm-up, as far as is known, where a longer run says more.

    A run that fails soon after its start has too few batches to tell its warm-up (E1). A longer run
    in the same configuration, with batches of about the same size, has what it could add.
    """
    longer = [run for run in runs if not _is_short(run)]
    kept_runs = []
    for run in runs:
        is_short_start = _is_short(run) and run.began_in_fresh_jvm
        if is_short_start and any(_has_same_setting(run, long_run) for long_run in longer):
            notes.append(
                f"query {run.numbered_label}: left out, its {len(run.batches)} batches at the "
                "start of an application are too few to tell the warm-up from the rest, and a "
                "longer run has the same setting"
            )
        else:
            kept_runs.append(run)
    return kept_runs


def _is_short(run: QueryRun) -> bool:
    num_batches = len(run.batches) + max(len(run.early) - 1, 0)
    return num_batches < LEAST_BATCHES_TO_CUT.value


def _has_same_setting(run: QueryRun, long_run: QueryRun) -> bool:
    rows = [np.mean([batch.num_rows for batch in of_run.batches]) for of_run in (run, long_run)]
    return run.configuration == long_run.configuration and not is_spread(np.array(rows))


def listed(names: Iterable[str]) -> str:
    """The first names, as text, and the number of further ones."""
    all_names = list(names)
    suffix = f" and {len(all_names) - _MOST_LISTED} more" if len(all_names) > _MOST_LISTED else ""
    return ", ".join(all_names[:_MOST_LISTED]) + suffix


def _require_streaming(logs: CollectedLogs, names: Mapping[int, str]) -> Iterator[str]:
    """Notes on logs without a streaming query, if others have one."""
    streaming = {row["app"] for row in logs.batches}
    reasons = []
    for app, name in names.items():
        facts = logs.applications.get(app)
        if facts is None or not facts.has_events:
            reasons.append(f"{name}: {NO_EVENT}")
        elif app not in streaming:
            reasons.append(
                f"{name}: a Spark log with {facts.num_lines(schema.TASK_END)} tasks but no "
                "streaming query; expected progress events of a Structured Streaming query"
            )
    if not streaming:
        raise EventLogError("; ".join(reasons[:_MOST_LISTED]))
    yield from (f"left out: {why}" for why in reasons)


def _without_copies(
    by_run: dict[RunKey, list[Record]], notes: list[str]
) -> dict[RunKey, list[Record]]:
    """Runs without duplicates: of copies of a run in several logs, the longest is kept."""
    longest: dict[tuple[str, str], RunKey] = {}
    for key, reports in by_run.items():
        # Without run ids, runs of different logs are different.
        name = (key.query_id, key.run_id or f"log {key.app}")
        longest_key = longest.setdefault(name, key)
        if longest_key != key:
            notes.append(
                f"query {query_label(key.query_id, reports[0]['query_name'])}: the same run is in "
                "two logs; one of them is used"
            )
            if len(reports) > len(by_run[longest_key]):
                longest[name] = key
    kept_keys = set(longest.values())
    return {key: reports for key, reports in by_run.items() if key in kept_keys}


def _choose_queries(
    by_run: dict[RunKey, list[Record]], queries: Sequence[str], log_names: Sequence[str]
) -> dict[RunKey, list[Record]]:
    if not queries:
        return by_run
    chosen_runs: dict[RunKey, list[Record]] = {}
    for query in queries:
        matches = {key: reports for key, reports in by_run.items() if is_named(query, key, reports)}
        if not matches:
            query_labels = dict.fromkeys(
                query_label(key.query_id, reports[0]["query_name"])
                for key, reports in by_run.items()
            )
            raise InputError(
                f"{argument('queries')} {redact(query)!r}: no such query in {listed(log_names)}; "
                f"it holds {listed(query_labels)}"
            )
        chosen_runs |= matches
    return chosen_runs


def _require_runs(runs: Sequence[QueryRun], log_names: Sequence[str], notes: Sequence[str]) -> None:
    if not runs:
        raise EventLogError(
            f"{listed(log_names)}: no query left to profile: {'; '.join(notes[:_MOST_LISTED])}; "
            "let the query run for some minutes, or limit the rows of a batch if it ends by "
            "itself, and profile that log"
        )


def _require_one_job(runs: Sequence[QueryRun], notes: list[str], *, chosen_by_name: bool) -> None:
    """Queries with other sources, state or sinks are other jobs, even with similar stages."""
    jobs: dict[QueryShape, list[str]] = defaultdict(list)
    for run in runs:
        jobs[_what_it_does(run.shape)].append(run.label)
    if len(jobs) > 1:
        described = [
            f"{listed(dict.fromkeys(labels))} ({listed(shape.sources)} to {shape.sink})"
            for shape, labels in jobs.items()
        ]
        if not chosen_by_name:
            raise InputError(
                f"the queries are different jobs{_some_of(described)}{_difference_text(jobs)}; if "
                f"they are runs of one job, take them together with {_query_options(runs)}, else "
                "choose those of one job"
            )
        notes.append(f"taken as runs of one job, as chosen: {listed(described)}")
    names = dict.fromkeys(run.query_name for run in runs)
    if len(names) > 1 and not chosen_by_name:
        labels = dict.fromkeys(run.label for run in runs)
        notes.append(
            f"taken as runs of one job, since they look alike: {listed(labels)}; "
            "name queries to choose"
        )


def _difference_text(shapes: Collection[QueryShape]) -> str:
    """What makes jobs with the same sources and sink different; empty if none have the same."""
    alike: dict[tuple[tuple[str, ...], str], list[QueryShape]] = defaultdict(list)
    for shape in shapes:
        alike[shape.sources, shape.sink].append(shape)
    names = [
        field.name.removesuffix("_s").replace("_", " ")
        for field in fields(QueryShape)
        for of_group in alike.values()
        if len({getattr(shape, field.name) for shape in of_group}) > 1
    ]
    if not names:
        return ""
    return (
        f", of which those with the same sources and sink differ in {listed(dict.fromkeys(names))}"
    )


def _some_of(described: Sequence[str]) -> str:
    """Jobs that tell what differs: all of them if they are few."""
    if len(described) <= _MOST_JOBS:
        return f": {listed(described)}"
    return f", {len(described)} in all, e.g. {' and '.join(described[:_MOST_JOBS])}"


def _query_options(runs: Sequence[QueryRun], *, by_id: bool = False) -> str:
    """The options that choose these queries: by name, or by id if they have none."""
    names = [(None if by_id else run.query_name) or run.query_id[:8] for run in runs]
    return " ".join(f"{argument('queries')} {shlex.quote(name)}" for name in dict.fromkeys(names))


def _what_it_does(shape: QueryShape) -> QueryShape:
    """The shape without what differs between runs of a job, i.e. settings and state size."""
    return replace(
        shape,
        sources=tuple(_SETTING.sub("#", source) for source in shape.sources),
        sink=_SETTING.sub("#", shape.sink),
        state_rows=0,
        # A watermark is visible from the first batch that advanced it.
        watermarked=False,
        chain=(),
    )


def _with_common_levels(runs: Sequence[QueryRun]) -> list[QueryRun]:
    """Runs whose stages are at the same levels: at those that most of the runs have them at."""
    levels: dict[StageKind, Counter[int]] = defaultdict(Counter)
    for run in runs:
        sample = run.batches[0]
        for kind, stage in zip(sample.kinds, sample.stages, strict=True):
            levels[kind][stage.level] += 1
    if all(len(of_kind) == 1 for of_kind in levels.values()):
        return list(runs)
    usual = {kind: of_kind.most_common(1)[0][0] for kind, of_kind in levels.items()}
    return [
        replace(
            run,
            batches=tuple(batch.with_levels(usual) for batch in run.batches),
            without_rows=tuple(
                batch.with_levels(usual)
                for batch in run.without_rows
                if set(batch.kinds) <= usual.keys()
            ),
        )
        for run in runs
    ]


def same_stages(runs: Sequence[QueryRun], notes: list[str]) -> list[QueryRun]:
    """Runs reduced to batches with one signature; a run in which another one is more frequent is
    another job.

    Batches of one job may have several: each tenth commit to a Delta table also writes a
    checkpoint, and the next ones read it.
    """
    signatures = [[batch.signature for batch in run.batches] for run in runs]
    counts = [Counter(of_run) for of_run in signatures]
    signature = sum(counts, Counter()).most_common(1)[0][0]
    kept_runs, other_labels = [], []
    for run, of_run, count in zip(runs, signatures, counts, strict=True):
        batches = tuple(
            batch
            for batch, of_batch in zip(run.batches, of_run, strict=True)
            if of_batch == signature
        )
        left_out_s = [
            batch.duration_s
            for batch, of_batch in zip(run.batches, of_run, strict=True)
            if of_batch != signature
        ]
        if len(runs) > 1 and len(batches) < max(count.values(), default=0):
            other_labels.append(run.label)
            continue
        if len(batches) < LEAST_BATCHES.value:
            notes.append(
                f"query {run.numbered_label}: left out, its batches run different stages and only "
                f"{len(batches)} of {len(run.batches)} the most frequent ones"
            )
            continue
        if left_out_s:
            notes.append(f"query {run.numbered_label}: {other_shapes(run.batches, signature)}")
            left_out = len(left_out_s), float(np.mean(left_out_s))
            run = replace(run, num_cut=run.num_cut + len(left_out_s), left_out=left_out)
        kept_runs.append(replace(run, batches=batches))
    kept_runs = _with_common_levels(kept_runs)
    if other_labels:
        usual = dict.fromkeys(run.label for run in kept_runs)
        raise InputError(
            f"the queries are different jobs: {listed(dict.fromkeys(other_labels))} run other "
            f"stages than {listed(usual) or 'the most frequent ones'}; "
            f"choose the runs of one job, e.g. {_query_options(kept_runs or runs[:1], by_id=True)}"
        )
    return kept_runs
