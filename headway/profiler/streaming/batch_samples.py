"""Collected rows of batches and their stages -> measurements of one batch."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from headway.assumptions.logs import LEAST_TASKS_RATIO
from headway.domain import StateOperatorProfile
from headway.models.estimation.live_latency import asked_in_vain_s
from headway.profiler.offsets import read_offset
from headway.profiler.rows import Record
from headway.profiler.stage_totals import NO_TASKS, SUMS_OF_TASKS
from headway.profiler.streaming.samples import (
    UNKNOWN_NAME,
    BatchSample,
    SourceSample,
    StageSample,
    StateSample,
)
from headway.profiler.streaming.slots import USUAL_PROFILE
from headway.profiler.streaming.stage_kinds import StageKind, kinds_of_batch, levels_of_kinds

# Spark's phase -> Headway's, in the order in which Spark runs them.
PHASES = {
    "latestOffset": "latest_offset",
    "getOffset": "latest_offset",
    "walCommit": "wal_commit",
    "getBatch": "get_batch",
    "queryPlanning": "query_planning",
    "addBatch": "add_batch",
    "commitBatch": "commit_batch",
    "commitOffsets": "commit_offsets",
}
_UNKNOWN_OF_WHOLE_BATCHES = (
    *("python_s", "execution_id", "kind", "scopes", "first_rdd_id", "num_scans", "most_at_once"),
    *("write", "submitted_s", "completed_s", "shuffle_partitions", "gated_trigger_s"),
)
# Columns of a stage that its sample has, too.
_AS_RECORDED = (
    *("num_tasks", "task_mean_s", "task_sd_s", "outside_run_s", "scheduler_delay_s"),
    *("rows_variance", "rows_time_covariance_s", "python_s", "kind", "operators", "write"),
    *("resource_profile_id", "is_barrier"),
)
# Numbers beyond these are damaged, not measured.
_MOST_ROWS = 1e12
_LONGEST_S = 1e6


def known_rows(report: Record) -> float:
    """Rows of the batch; negative if the report does not contain them."""
    rows = report["num_rows"]
    return float(rows) if rows is not None and 0 <= rows < _MOST_ROWS else -1.0


def is_timed(report: Record) -> bool:
    """Whether the times of the batch are complete and plausible."""
    phases_s = report["phases_s"] or {}
    times_s = [seconds for seconds in phases_s.values() if seconds is not None]
    return (
        report["started_s"] is not None
        and 0 < (phases_s.get("triggerExecution") or 0.0) < _LONGEST_S
        and min(times_s) >= 0
        and max(times_s) < _LONGEST_S
    )


def is_usable(stages: Sequence[Record]) -> bool:
    """Whether the stages of a batch are recorded, each with most of its tasks."""
    return bool(stages) and all(
        not stage["failed"]
        and stage["num_tasks"]
        and stage["num_finished"] / stage["num_tasks"] >= LEAST_TASKS_RATIO.value
        and stage["launch_to_finish_s"] < _LONGEST_S
        and 0 <= stage["rows_read"] < _MOST_ROWS
        for stage in stages
    )


def one_per_batch(reports: Sequence[Record]) -> list[Record]:
    """The reports in order, one per batch, since an idle query announces the next batch repeatedly.

    The one with rows is the batch that ran; of duplicate lines, any one is used.
    """
    by_batch: dict[int, Record] = {}
    for report in reports:
        best_report = by_batch.get(report["batch_id"])
        if best_report is None or known_rows(report) > known_rows(best_report):
            by_batch[report["batch_id"]] = report
    return [by_batch[batch_id] for batch_id in sorted(by_batch)]


def intervals_between(reports: Sequence[Record]) -> dict[int, float]:
    """Time since the start of the previous batch, by batch; without gaps and clocks set back."""
    return {
        this["batch_id"]: this["started_s"] - before["started_s"]
        for before, this in pairwise(reports)
        if this["batch_id"] == before["batch_id"] + 1
        and this["started_s"] is not None
        and before["started_s"] is not None
        and this["started_s"] > before["started_s"]
    }


def idle_times(reports: Sequence[Record], trigger_s: float) -> dict[int, float]:
    """How long a query had no rows before those of a batch arrived, by batch: theory.md (A13)."""
    idle_s: dict[int, float] = {}
    for before, this in pairwise(reports):
        if this["batch_id"] == before["batch_id"] + 1 and is_timed(before) and is_timed(this):
            free_s = before["started_s"] + before["phases_s"]["triggerExecution"]
            asked_s = asked_in_vain_s(this["started_s"], free_s, trigger_s)
            if asked_s is not None:
                idle_s[this["batch_id"]] = asked_s - before["started_s"]
    return idle_s


def stages_by_batch(stage_runs: Sequence[Record]) -> dict[int, list[Record]]:
    """The stages of each batch in the order in which they ran.

    Each has what it computes, and a level after its parents and earlier jobs.
    """
    by_batch: dict[int, list[Record]] = defaultdict(list)
    for row in sorted(
        stage_runs, key=lambda row: (row["job_id"], row["stage_id"], row["attempt_id"])
    ):
        by_batch[row["batch_id"]].append(row)
    for batch_id, stages in by_batch.items():
        levels = _levels(stages)
        kinds = kinds_of_batch(stages, levels)
        by_batch[batch_id] = [
            {**stage, "kind": kinds[stage["stage_id"]], "level": levels[stage["stage_id"]]}
            for stage in stages
        ]
    return dict(by_batch)


def jvm_age_s(started_s: float, jvm_started_s: float) -> float:
    """Age of the JVM at the start of a batch, at least a second."""
    return max(started_s - jvm_started_s, 1.0)


def levels_of_batches(batches: Iterable[Sequence[Record]]) -> dict[StageKind, int]:
    """Level of each kind of stage of some batches; empty if the times of stages are missing."""
    return levels_of_kinds(
        {stage["kind"]: (stage["submitted_s"], stage["completed_s"]) for stage in stages}
        for stages in batches
    )


def batch_sample(
    report: Record,
    stages: Sequence[Record],
    jvm_started_s: float,
    interval_s: float | None,
    levels_of_kind: Mapping[StageKind, int],
) -> BatchSample:
    """Measurements of one batch, whose times and stages must be usable.

    ``levels_of_kind`` are levels of its stages (:func:`levels_of_batches`); if empty, a stage is
    after its parents and after earlier jobs.
    """
    phases_s: dict[str, float] = {}
    for name, seconds in report["phases_s"].items():
        if name in PHASES and seconds is not None:
            phases_s[PHASES[name]] = phases_s.get(PHASES[name], 0.0) + seconds
    operators: Sequence[Any] = report["stateful_operators"] or ()
    if {stage["kind"] for stage in stages} <= levels_of_kind.keys():
        at_levels = [(levels_of_kind[stage["kind"]], stage) for stage in stages]
        at_levels.sort(key=lambda level_stage: (level_stage[0], level_stage[1]["kind"]))
    else:
        at_levels = [(stage["level"], stage) for stage in stages]
    return BatchSample(
        batch_id=report["batch_id"],
        started_s=report["started_s"],
        interval_s=interval_s,
        jvm_age_s=jvm_age_s(report["started_s"], jvm_started_s),
        duration_s=report["phases_s"]["triggerExecution"],
        phases_s=phases_s,
        num_rows=int(report["num_rows"]),
        state_commit_s=sum(max(operator["commit_s"] or 0.0, 0.0) for operator in operators),
        state=_state(operators),
        # Negative if rows arrived while the batch was querying its sources for offsets.
        event_time_lag_s=None
        if report["newest_event_s"] is None
        else report["started_s"] - report["newest_event_s"],
        stages_s=covered_s(
            (stage["first_launch_s"], stage["first_launch_s"] + stage["launch_to_finish_s"])
            for stage in stages
        ),
        stages=tuple(_stage_sample(stage, level) for level, stage in at_levels),
    )


def unpacked(sample: BatchSample) -> BatchSample:
    """A batch whose rows `headway.ordered` packed before its exchange, so all arrive after it.

    The rows of each task are not recorded, so they are taken as evenly distributed.
    """
    stages = tuple(
        replace(
            stage,
            rows_read=float(sample.num_rows),
            rows_largest=sample.num_rows / stage.num_tasks,
            rows_variance=0.0,
            rows_time_covariance_s=0.0,
        )
        if stage.has_parents
        else stage
        for stage in sample.stages
    )
    return replace(sample, stages=stages)


def covered_s(spans: Iterable[tuple[float, float]]) -> float:
    """Length of the union of intervals; stages of a level may be consecutive or overlap."""
    total_s, until_s = 0.0, -math.inf
    for start_s, end_s in sorted(spans):
        total_s += max(end_s - max(start_s, until_s), 0.0)
        until_s = max(until_s, end_s)
    return total_s


def source_samples(report: Record) -> tuple[SourceSample, ...]:
    return tuple(
        SourceSample(
            start=read_offset(source["start_offset"]),
            end=read_offset(source["end_offset"]),
            latest=read_offset(source["latest_offset"]),
        )
        for source in report["sources"] or ()
    )


def whole_batch(report: Record, num_slots: int) -> dict[str, Any]:
    """Replacement for the stages of a batch if only its progress is recorded.

    One stage with a task on every slot, as long as ``addBatch``. It shows how the duration grows
    with the rows, but nothing about other slots or partitions.
    """
    add_batch_s = (report["phases_s"] or {}).get("addBatch") or 0.0
    return {
        **NO_TASKS,
        **dict.fromkeys(_UNKNOWN_OF_WHOLE_BATCHES),
        **dict.fromkeys(("level", "job_id", "stage_id", "attempt_id"), 0),
        "operators": (),
        "resource_profile_id": USUAL_PROFILE,
        "is_barrier": False,
        "parent_ids": [],
        "failed": False,
        "num_tasks": num_slots,
        "num_finished": num_slots,
        "rows_read": known_rows(report),
        "task_mean_s": add_batch_s,
        "first_launch_s": report["started_s"],
        "launch_to_finish_s": add_batch_s,
        "outside_run_s": 0.0,
        "scheduler_delay_s": 0.0,
        "rows_variance": 0.0,
        "rows_time_covariance_s": 0.0,
    }


def _state(operators: Sequence[Any]) -> StateSample:
    def total(name: str) -> int:
        return sum(max(operator[name] or 0, 0) for operator in operators)

    samples = tuple(map(_state_of_operator, operators))
    return StateSample(
        num_rows=total("num_rows"),
        memory_bytes=total("memory_bytes"),
        num_stores=sum(sample.num_stores for sample in samples),
        num_updated=total("num_updated"),
        updates_s=sum(max(operator["updates_s"] or 0.0, 0.0) for operator in operators),
        operators=samples,
    )


def _state_of_operator(operator: Any) -> StateOperatorProfile:
    return StateOperatorProfile(
        name=operator["name"] or UNKNOWN_NAME,
        rows=max(operator["num_rows"] or 0, 0),
        memory_bytes=max(operator["memory_bytes"] or 0, 0),
        num_stores=max(operator["num_stores"] or operator["shuffle_partitions"] or 0, 0),
        commit_s=max(operator["commit_s"] or 0.0, 0.0),
        store_metrics=dict(operator["store_metrics"] or {}),
    )


def _stage_sample(stage: Record, level: int) -> StageSample:
    # Sums over the recorded tasks are extrapolated to all tasks.
    all_over_seen = max(stage["num_tasks"] / stage["num_finished"], 1.0)

    def total(name: str) -> Any:
        return float(max(stage[name] or 0.0, 0.0) * all_over_seen)

    return StageSample(
        level=level,
        **{name: stage[name] for name in _AS_RECORDED},
        **{name: total(name) for name in SUMS_OF_TASKS},
        has_parents=bool(stage["parent_ids"]),
        has_tasks=stage["task_max_s"] is not None,
        num_seen=min(stage["num_finished"], stage["num_tasks"]),
        span_s=stage["launch_to_finish_s"],
        rows_largest=stage["rows_largest"] or 0.0,
        peak_memory_bytes=max(stage["peak_memory_bytes"] or 0.0, 0.0),
        peak_heap_bytes=max(stage["peak_heap_bytes"] or 0.0, 0.0),
    )


def _levels(stages: Sequence[Record]) -> Mapping[int, int]:
    """Level of each stage: after its parents, and after earlier jobs."""
    levels: dict[int, int] = {}
    first_of_job, job_id = 0, None
    for stage in stages:
        if stage["job_id"] != job_id:
            first_of_job, job_id = max(levels.values(), default=-1) + 1, stage["job_id"]
        parents = stage["parent_ids"] or ()
        behind = [levels[parent] + 1 for parent in parents if parent in levels]
        levels[stage["stage_id"]] = max([first_of_job, *behind])
    return levels
