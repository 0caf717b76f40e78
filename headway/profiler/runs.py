"""Batches and stages of a query as Spark reported them -> its steady part as one run."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headway.domain import Configuration, QueryShape
from headway.errors import EventLogError
from headway.models.estimation import warm_up_length
from headway.profiler.fit import PHASES, BatchSample, QueryRun, StageSample
from headway.profiler.trigger import read_trigger

if TYPE_CHECKING:
    from pyspark.sql import Row

LEAST_BATCHES = 5
_MS_PER_S = 1000.0
_LONGEST_LABEL = 60
# Beyond these a number is damage, not a measurement.
_MOST_ROWS = 1e12
_LONGEST_S = 1e6


class SteadyPart(NamedTuple):
    """A run, or None where there is too little of it, and what to know about it."""

    run: QueryRun | None
    notes: tuple[str, ...]


def query_label(query_id: str, query_name: str | None) -> str:
    """What messages call a query: its name, if it has one, and the start of its id.

    Examples
    --------
    >>> query_label("3f1c7e0a-0d51-4a0e-9d1d-1f2e3d4c5b6a", "orders")
    'orders (3f1c7e0a)'
    """
    short_id = _printable(query_id[:8])
    if not query_name:
        return short_id
    name = _printable(query_name)
    if len(name) > _LONGEST_LABEL:
        name = f"{name[: _LONGEST_LABEL - 1]}…"
    return f"{name} ({short_id})"


def steady_part(
    reports: Sequence[Row], stage_runs: Sequence[Row], executors: Sequence[Row], log_name: str
) -> SteadyPart:
    """The steady part of one run of a query.

    Parameters
    ----------
    reports : sequence of Row
        Its progress (:func:`headway.profiler.tables.batches`), at least one.
    stage_runs : sequence of Row
        The stages of its batches (:func:`headway.profiler.tables.stage_runs`).
    executors : sequence of Row
        Executors of its application: added_s, removed_s, num_cores.
    log_name : str
        For messages.

    Raises
    ------
    EventLogError
        If no executor is on record.
    """
    reports = _one_per_batch(reports)
    last = reports[-1]
    label = f"query {query_label(last['query_id'], last['query_name'])}"
    stages = _stages_by_batch(stage_runs)
    # The first batch has no interval that filled it, and pays for planning and class loading.
    filled = [report for report in reports[1:] if _known_rows(report) != 0]
    usable = [
        report
        for report in filled
        if _known_rows(report) > 0
        and _is_timed(report)
        and _is_complete(stages.get(report["batch_id"], ()))
    ]
    if len(usable) < LEAST_BATCHES:
        why = (
            f"{label}: left out, {len(usable)} of {len(reports)} batches usable (rows, all tasks "
            f"with metrics, durations), at least {LEAST_BATCHES} needed"
        )
        return SteadyPart(None, (why,))
    notes = []
    if len(usable) < len(filled):
        notes.append(
            f"{label}: {len(filled) - len(usable)} of {len(filled)} batches left out: tasks "
            "failed or are missing, or numbers make no sense"
        )
    intervals_s = _intervals_s(reports)
    jvm_started_s = _first_executor_s(executors, label, log_name) or reports[0]["started_s"]
    samples = [
        _batch_sample(
            report,
            stages[report["batch_id"]],
            jvm_started_s,
            intervals_s.get(report["batch_id"]),
        )
        for report in usable
    ]
    num_cut = warm_up_length(np.array([sample.duration_s for sample in samples]))
    if num_cut:
        notes.append(
            f"{label}: cut {num_cut} of {len(samples)} batches as warm-up "
            f"(first {samples[num_cut].started_s - samples[0].started_s:.0f} s)"
        )
    steady = samples[num_cut:]
    observed = [report for report in reports if report["batch_id"] >= steady[0].batch_id]
    rate_per_s = _rate_per_s(observed[1:], intervals_s)
    if rate_per_s is None:
        notes.append(f"{label}: left out, the times of its batches do not tell a rate")
        return SteadyPart(None, tuple(notes))
    # The interval is the same during warm-up: more starts, more that fall after a pause.
    timed = [report for report in reports if _is_timed(report)]
    trigger = read_trigger(
        np.array([report["started_s"] for report in timed]),
        np.array([report["phases_s"]["triggerExecution"] for report in timed]),
    )
    if trigger.trigger_s is None:
        notes.append(
            f"{label}: trigger interval unknown ({trigger.why}); taken as fast as possible"
        )
    # Not the last, before which the clock may have been set back.
    latest_s = max(sample.started_s for sample in steady)
    num_executors, cores = _executors_at(executors, latest_s, label, log_name)
    run = QueryRun(
        query_id=last["query_id"],
        query_name=last["query_name"],
        shape=_shape(last),
        configuration=Configuration(
            executors=num_executors,
            cores_per_executor=cores,
            shuffle_partitions=_shuffle_partitions(last, stages[steady[-1].batch_id]),
            trigger_s=trigger.trigger_s or 0.0,
        ),
        rate_per_s=rate_per_s,
        num_cut=len(reports) - len(steady),
        batches=tuple(steady),
    )
    return SteadyPart(run, tuple(notes))


def _one_per_batch(reports: Sequence[Row]) -> list[Row]:
    """The reports in order, one per batch: an idle query announces the next batch time and again.

    The one with rows is the batch that ran; where lines stand twice any of them will do.
    """
    by_batch: dict[int, Row] = {}
    for report in reports:
        known = by_batch.get(report["batch_id"])
        if known is None or _known_rows(report) > _known_rows(known):
            by_batch[report["batch_id"]] = report
    return [by_batch[batch_id] for batch_id in sorted(by_batch)]


def _known_rows(report: Row) -> float:
    """Rows of the batch; less than none where the report does not tell."""
    rows = report["num_rows"]
    return float(rows) if rows is not None and 0 <= rows < _MOST_ROWS else -1.0


def _is_timed(report: Row) -> bool:
    phases_s = report["phases_s"] or {}
    times_s = [seconds for seconds in phases_s.values() if seconds is not None]
    return (
        report["started_s"] is not None
        and 0 < (phases_s.get("triggerExecution") or 0.0) < _LONGEST_S
        and min(times_s) >= 0
        and max(times_s) < _LONGEST_S
    )


def _is_complete(stages: Sequence[Row]) -> bool:
    """Whether every task of every stage is on record: sums over some tasks would mislead."""
    return bool(stages) and all(
        0 < (stage["num_tasks"] or 0) <= stage["num_finished"]
        and stage["launch_to_finish_s"] < _LONGEST_S
        and 0 <= stage["rows_read"] < _MOST_ROWS
        for stage in stages
    )


def _intervals_s(reports: Sequence[Row]) -> dict[int, float]:
    """Time from the start of the batch before, by batch; without gaps and clocks set back."""
    return {
        this["batch_id"]: this["started_s"] - before["started_s"]
        for before, this in pairwise(reports)
        if this["batch_id"] == before["batch_id"] + 1
        and this["started_s"] is not None
        and before["started_s"] is not None
        and this["started_s"] > before["started_s"]
    }


def _rate_per_s(reports: Sequence[Row], intervals_s: Mapping[int, float]) -> float | None:
    """Rows over the time in which they arrived; batches without rows had that time too."""
    known = [
        (_known_rows(report), intervals_s[report["batch_id"]])
        for report in reports
        if report["batch_id"] in intervals_s and _known_rows(report) >= 0
    ]
    rows, elapsed_s = (sum(values) for values in zip(*known, strict=True)) if known else (0, 0)
    return rows / elapsed_s if rows > 0 else None


def _stages_by_batch(stage_runs: Sequence[Row]) -> dict[int, list[Row]]:
    by_batch: dict[int, list[Row]] = defaultdict(list)
    for row in stage_runs:
        by_batch[row["batch_id"]].append(row)
    return {
        batch_id: sorted(rows, key=lambda row: (row["job_id"], row["stage_id"], row["attempt_id"]))
        for batch_id, rows in by_batch.items()
    }


def _batch_sample(
    report: Row, stages: Sequence[Row], jvm_started_s: float, interval_s: float | None
) -> BatchSample:
    phases_s: dict[str, float] = {}
    for name, seconds in report["phases_s"].items():
        if name in PHASES and seconds is not None:
            phases_s[PHASES[name]] = phases_s.get(PHASES[name], 0.0) + seconds
    levels = _levels(stages)
    return BatchSample(
        batch_id=report["batch_id"],
        started_s=report["started_s"],
        interval_s=interval_s,
        jvm_age_s=max(report["started_s"] - jvm_started_s, 1.0),
        duration_s=report["phases_s"]["triggerExecution"],
        phases_s=phases_s,
        num_rows=int(report["num_rows"]),
        state_commit_s=sum(
            max(operator["commitTimeMs"] or 0, 0) / _MS_PER_S
            for operator in report["stateful_operators"] or ()
        ),
        stages=tuple(
            StageSample(
                level=levels[stage["stage_id"]],
                has_parents=bool(stage["parent_ids"]),
                num_tasks=stage["num_tasks"],
                rows_read=stage["rows_read"],
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
        parents = stage["parent_ids"] or ()
        behind = [levels[parent] + 1 for parent in parents if parent in levels]
        levels[stage["stage_id"]] = max([first_of_job, *behind])
    return levels


def _first_executor_s(executors: Sequence[Row], label: str, log_name: str) -> float | None:
    if not executors:
        raise EventLogError(
            f"{log_name}: {label}: no executor is on record (no ExecutorAdded event), so its "
            "cores are unknown; profile a log that starts with the application"
        )
    return min((row["added_s"] for row in executors if row["added_s"] is not None), default=None)


def _executors_at(
    executors: Sequence[Row], at_s: float, label: str, log_name: str
) -> tuple[int, int]:
    """Executors alive at an instant and their cores; local mode is one executor, the driver."""
    alive = [
        row["num_cores"]
        for row in executors
        if (row["added_s"] or 0.0) <= at_s and (row["removed_s"] is None or row["removed_s"] > at_s)
    ]
    if not alive:
        raise EventLogError(
            f"{log_name}: {label}: none of the {len(executors)} executors on record was alive at "
            "its last batch; profile a log that starts with the application"
        )
    return len(alive), max(int(np.median(alive)), 1)


def _shuffle_partitions(report: Row, stages: Sequence[Row]) -> int:
    """Partitions of the state, which the checkpoint fixed; without state those of the session.

    Where neither is on record, the tasks of the last stage.
    """
    operators = report["stateful_operators"] or ()
    stated = [operator["numShufflePartitions"] for operator in operators]
    if not operators:
        stated = [stages[-1]["shuffle_partitions"]]
    return int(
        next((number for number in stated if number and number > 0), stages[-1]["num_tasks"])
    )


def _shape(report: Row) -> QueryShape:
    operators: Sequence[Any] = report["stateful_operators"] or ()
    return QueryShape(
        sources=tuple(_without_address(source) for source in report["sources"] or ()),
        sink=_without_address(report["sink"]),
        # Versions before 3.2 do not say which.
        stateful_operators=tuple(operator["operatorName"] or "unknown" for operator in operators),
        state_rows=max(sum(operator["numRowsTotal"] or 0 for operator in operators), 0),
        watermarked=bool(report["watermarked"]),
    )


def _without_address(description: str | None) -> str:
    """A description without the address of the object, which differs from run to run."""
    return re.sub(r"@[0-9a-f]+$", "", description or "") or "unknown"


def _printable(text: str) -> str:
    """Logs may hold anything, also terminal commands."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())
