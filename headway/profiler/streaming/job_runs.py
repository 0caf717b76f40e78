"""Collected logs -> the runs of one streaming job: chosen, each once, with the same stages."""

from __future__ import annotations

import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeAlias

from headway.assumptions.fits import LEAST_BATCHES
from headway.domain import QueryShape
from headway.errors import EventLogError, InputError, argument
from headway.profiler import schema
from headway.profiler.collect import CollectedLogs
from headway.profiler.logs.sources import EventLog
from headway.profiler.plan_text import read_plan
from headway.profiler.recorded_queries import query_label
from headway.profiler.rows import Record
from headway.profiler.streaming.fit import fit_duration
from headway.profiler.streaming.measured_runs import measured_run
from headway.profiler.streaming.observations import batch_times, mean_at_once
from headway.profiler.streaming.other_shapes import other_shapes
from headway.profiler.streaming.runs import steady_part
from headway.profiler.streaming.samples import BatchSample, QueryRun
from headway.profiler.streaming.stage_kinds import StageKind
from headway.profiler.streaming.warm_up import num_warm_up_by_rows
from headway.redaction import redact

_LEAST_ID_PREFIX = 8
_MOST_LISTED = 8
_MOST_JOBS = 3
NO_EVENT = 'no Spark event in it; expected JSON lines with an "Event" field'
# A separate number, as in "rowsPerSecond=5000", is a setting, not part of a name.
_SETTING = re.compile(r"(?<![\w.-])\d[\d.]*(?![\w-])")


NumWarmUp: TypeAlias = Callable[[Sequence[BatchSample]], int]
_Part: TypeAlias = tuple[QueryRun | None, list[str]]
"""The steady part of a run, if it has one, and notes."""


class RunKey(NamedTuple):
    """One run of a query; a restart from the checkpoint keeps the query's id, not the run's."""

    app: int
    query_id: str
    run_id: str


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
        _without_copies(_by_run(logs.batches), notes), queries, list(names.values())
    )
    stage_runs = _stages_by_run(logs.stage_runs, chosen_runs)
    apps = sorted({key.app for key in chosen_runs})
    of_app = {app: [row for row in logs.batches if row["app"] == app] for app in apps}
    times_of = {app: batch_times(rows) for app, rows in of_app.items()}
    # Only the first query of an application has a fresh JVM, whether it is chosen or not.
    first_s = {app: _started_s(rows) for app, rows in of_app.items()}

    measured = {
        key: measured_run(
            reports,
            stage_runs[key],
            logs.applications[key.app],
            read_plan(logs.applications[key.app].plans.get(key.run_id, "")),
            names[key.app],
        )
        for key, reports in chosen_runs.items()
    }

    def part_of(key: RunKey, num_warm_up: NumWarmUp | None = None) -> _Part:
        of_key = measured[key]
        if isinstance(of_key, str):
            return None, [of_key]
        run, notes = steady_part(of_key, trigger_s, num_warm_up)
        if run is None:
            return None, notes
        is_first = _started_s(chosen_runs[key]) <= first_s[key.app]
        at_once = mean_at_once(run.batches, *times_of[key.app])
        return replace(run, early=run.early if is_first else (), concurrent_batches=at_once), notes

    parts = {key: part_of(key) for key in chosen_runs}
    of_job: list[str] = []
    runs = _runs_in_order(parts)
    _require_runs(runs, list(names.values()), [*notes, *_notes_of(parts)])
    _require_one_job(runs, of_job, chosen_by_name=bool(queries))
    parts = _without_warm_up(parts, part_of)
    notes += [*_notes_of(parts), *of_job]
    runs = same_stages(_runs_in_order(parts), notes)
    _require_runs(runs, list(names.values()), notes)
    return tuple(runs), tuple(apps), tuple(notes)


def _runs_in_order(parts: Mapping[RunKey, _Part]) -> list[QueryRun]:
    runs = [run for run, _ in parts.values() if run is not None]
    return sorted(runs, key=lambda run: run.batches[0].started_s)


def _notes_of(parts: Mapping[RunKey, _Part]) -> list[str]:
    return [note for _, notes in parts.values() for note in notes]


def _without_warm_up(
    parts: Mapping[RunKey, _Part], part_of: Callable[[RunKey, NumWarmUp], _Part]
) -> dict[RunKey, _Part]:
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


def _started_s(reports: Sequence[Record]) -> float:
    return min(row["started_s"] or 0.0 for row in reports)


def _by_run(batches: Sequence[Record]) -> dict[RunKey, list[Record]]:
    by_run: dict[RunKey, list[Record]] = defaultdict(list)
    for row in batches:
        by_run[RunKey(row["app"], row["query_id"], row["run_id"] or "")].append(row)
    # In order of log and time, so that messages and choices do not depend on Spark's order.
    return {
        key: by_run[key]
        for key in sorted(
            by_run, key=lambda key: (key.app, _started_s(by_run[key]), key.query_id, key.run_id)
        )
    }


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
        # Names are redacted where they enter; so is the one to look for.
        redacted_query = redact(query)
        matches = {
            key: reports
            for key, reports in by_run.items()
            if redacted_query in (key.query_id, reports[0]["query_name"])
            or (len(redacted_query) >= _LEAST_ID_PREFIX and key.query_id.startswith(redacted_query))
        }
        if not matches:
            query_labels = dict.fromkeys(
                query_label(key.query_id, reports[0]["query_name"])
                for key, reports in by_run.items()
            )
            raise InputError(
                f"{argument('queries')} {redacted_query!r}: no such query in {listed(log_names)}; "
                f"it holds {listed(query_labels)}"
            )
        chosen_runs |= matches
    return chosen_runs


def _stages_by_run(
    stage_runs: Sequence[Record], runs: Iterable[RunKey]
) -> dict[RunKey, list[Record]]:
    """Stages by the run whose batch they belong to."""
    runs_of: dict[tuple[int, str], list[RunKey]] = defaultdict(list)
    for key in runs:
        runs_of[key.app, key.query_id].append(key)
    by_run: dict[RunKey, list[Record]] = defaultdict(list)
    for row in stage_runs:
        candidates = runs_of.get((row["app"], row["query_id"]), [])
        # A query sets its run id as the group of its jobs; only the job's own code can change that.
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
                f"the queries are different jobs{_some_of(described)}; if they are runs "
                f"of one job, take them together with {_query_options(runs)}, else "
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
        num_others = len(run.batches) - len(batches)
        if len(runs) > 1 and len(batches) < max(count.values(), default=0):
            other_labels.append(run.label)
            continue
        if len(batches) < LEAST_BATCHES.value:
            notes.append(
                f"query {run.label}: left out, its batches run different stages and only "
                f"{len(batches)} of {len(run.batches)} the most frequent ones"
            )
            continue
        if num_others:
            notes.append(f"query {run.label}: {other_shapes(run.batches, signature)}")
        kept_runs.append(replace(run, num_cut=run.num_cut + num_others, batches=batches))
    kept_runs = _with_common_levels(kept_runs)
    if other_labels:
        usual = dict.fromkeys(run.label for run in kept_runs)
        raise InputError(
            f"the queries are different jobs: {listed(dict.fromkeys(other_labels))} run other "
            f"stages than {listed(usual) or 'the most frequent ones'}; "
            f"choose the runs of one job, e.g. {_query_options(kept_runs or runs[:1], by_id=True)}"
        )
    return kept_runs
