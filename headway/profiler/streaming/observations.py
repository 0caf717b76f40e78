"""Measurements of runs besides durations: volumes, state, memory, neighbours, empty batches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from headway.assumptions.fits import LEAST_GROWTH_RATIO, TELLING_SPREAD_RATIO
from headway.assumptions.predictions import POLLING_DELAY_S
from headway.domain import (
    EmptyBatches,
    MemoryProfile,
    StageObserved,
    StageProfile,
    StateOperatorProfile,
    StateProfile,
)
from headway.models.arrays import Array
from headway.models.estimation.regression import power_law
from headway.profiler.rows import Record
from headway.profiler.streaming.batch_samples import is_timed, known_rows
from headway.profiler.streaming.samples import BatchSample, QueryRun, StageSample, batches_of
from headway.profiler.streaming.stage_runs import runs_own_operators

_ALONE = 1.005


def observe_stage(runs: Sequence[QueryRun], stage_index: int, stage: StageProfile) -> StageObserved:
    """Measurements of the tasks of one stage, by its index in the batch, besides their time."""
    samples = [batch.stages[stage_index] for batch in batches_of(runs)]

    def total(name: str) -> float:
        return float(sum(getattr(sample, name) for sample in samples))

    rows, run_s = total("rows_read"), total("run_s")

    def per_row(name: str) -> float:
        return total(name) / rows if rows > 0 else 0.0

    input_bytes, shuffle_bytes = per_row("input_bytes"), per_row("shuffle_read_bytes")
    read_bytes = input_bytes + shuffle_bytes
    python_s = [sample.python_s for sample in samples if sample.python_s is not None]
    largest = [
        sample.rows_largest / (sample.rows_read / sample.num_tasks) if sample.rows_read > 0 else 1.0
        for sample in samples
    ]
    return StageObserved(
        rows_written_ratio=per_row("rows_written"),
        input_bytes_per_row=input_bytes,
        shuffle_read_bytes_per_row=shuffle_bytes,
        shuffle_write_bytes_per_row=per_row("shuffle_write_bytes"),
        spilled_bytes_per_row=per_row("spilled_bytes"),
        task_per_byte_s=stage.task_per_row_s / read_bytes if read_bytes > 0 else None,
        cpu_ratio=share(total("cpu_s"), run_s),
        gc_ratio=share(total("gc_s"), run_s),
        python_ratio=share(float(sum(python_s)), run_s) if python_s else None,
        shared_wait_ratio=_shared_wait_ratio(samples),
        scheduler_delay_s=float(np.mean([sample.scheduler_delay_s for sample in samples])),
        largest_task_ratio=float(np.mean(largest)),
        peak_task_memory_bytes=int(max(sample.peak_memory_bytes for sample in samples)),
    )


def _shared_wait_ratio(samples: Sequence[StageSample]) -> float | None:
    """Share of slots' time in which tasks run but neither compute nor collect garbage."""
    if not runs_own_operators(samples) or not any(sample.cpu_s for sample in samples):
        return None
    slots_s = sum(sample.task_mean_s * sample.num_tasks for sample in samples)
    waits_s = sum(sample.run_s - sample.cpu_s - sample.gc_s for sample in samples)
    return share(max(waits_s, 0.0), slots_s)


def observe_state(runs: Sequence[QueryRun]) -> StateProfile | None:
    """The state at the end of the last run, its commits and updates; None without state."""
    batches = [batch for batch in runs[-1].batches if batch.state.num_stores > 0]
    if not batches:
        return None
    last = batches[-1].state
    return StateProfile(
        rows=last.num_rows,
        memory_bytes=last.memory_bytes,
        commit_per_partition_s=float(
            np.mean([batch.state_commit_s / batch.state.num_stores for batch in batches])
        ),
        growth_per_s=_slope(
            np.array([batch.started_s for batch in batches]),
            np.array([batch.state.num_rows for batch in batches], dtype=np.float64),
        ),
        updated_rows=mean_updated_rows(batches),
        updated_row_s=_updated_row_s(batches_of(runs)),
        rate_exponent=_rate_exponent(runs),
        operators=tuple(_state_operators(batches)),
    )


def _state_operators(batches: Sequence[BatchSample]) -> Iterator[StateOperatorProfile]:
    """Each operator at the end of the last run, with the means over its batches."""
    for position, last in enumerate(batches[-1].state.operators):
        samples = [
            batch.state.operators[position]
            for batch in batches
            if position < len(batch.state.operators)
            if batch.state.operators[position].name == last.name
        ]
        yield replace(
            last,
            commit_s=float(np.mean([sample.commit_s for sample in samples])),
            store_metrics={
                name: float(np.mean([sample.store_metrics.get(name, 0.0) for sample in samples]))
                for name in sorted(last.store_metrics)
            },
        )


def mean_updated_rows(batches: Sequence[BatchSample]) -> float | None:
    """State rows that a batch writes; None if not recorded."""
    updated = [batch.state.num_updated for batch in batches if batch.state.num_stores > 0]
    return (float(np.mean(updated)) or None) if updated else None


def _rate_exponent(runs: Sequence[QueryRun]) -> float:
    """Exponent of state over rate; 0 if the state keeps growing, or never grew.

    **(E36)** State at the requested rate: state from which old rows are removed has a size of
    `S = λ` times its retention. If the state grows by at most a fifth in the later half of most
    runs, `S ∝ λ^e`, with `e` by (E4) from the rates and sizes of the runs, or 1 if their rates are
    similar; else `e = 0`. Wherever (T2) uses `S`, it is `S_0 (λ/λ_0)^e`, with `S_0` and `λ_0` those
    of the last run; of a join without the rows that a batch writes (E29). `λ` is the rate that is
    tried: a max rate, a frontier, or the rate up to which a setting is stable does not depend on
    the requested rate. More rows per second leave more state, and that only makes batches longer;
    so the rates that a setting sustains are still all up to the highest, and `λ max(B, fD)` rises
    with `λ`.
    """
    grown = [
        run.batches[-1].state.num_rows / max(run.batches[len(run.batches) // 2].state.num_rows, 1)
        for run in runs
    ]
    going_on = [ratio > 1.0 + LEAST_GROWTH_RATIO.value for ratio in grown]
    rows = np.array([run.held_rows[-1] for run in runs])
    if 2 * sum(going_on) >= len(runs) or not np.all(rows > 0):
        return 0.0
    rates_per_s = np.array([run.rate_per_s for run in runs])
    return power_law(rates_per_s, rows, np.ones_like(rows)).exponent


def memory_of(stages: Sequence[Any]) -> MemoryProfile:
    """Peaks and spill over measured stages, at least one: of batches, or of an application."""
    heap_bytes = max(stage.peak_heap_bytes for stage in stages)
    return MemoryProfile(
        peak_task_bytes=int(max(stage.peak_memory_bytes for stage in stages)),
        # Spark reports it only for polled executors and long tasks.
        peak_heap_bytes=int(heap_bytes) if heap_bytes > 0 else None,
        spilled_bytes=int(sum(stage.spilled_bytes for stage in stages)),
    )


def share(part_s: float, run_s: float) -> float:
    """A share of the run time; it may be slightly above 1 by clocks of different resolution."""
    return min(part_s / run_s, 1.0) if run_s > 0 else 0.0


def _slope(x: Array, y: Array) -> float:
    """Slope of the line through points; 0 if it falls, or all are at one place."""
    spread = float(np.var(x))
    return max(float(np.mean((x - x.mean()) * (y - y.mean()))) / spread, 0.0) if spread else 0.0


def _updated_row_s(batches: Sequence[BatchSample]) -> float | None:
    """Time of a task per state row that it writes: the update, and its part of the commit.

    Spark's times are sums over the stores. The time of a commit without rows follows from batches
    that wrote more and fewer rows; if all wrote equally many, only the updates count.
    """
    updated = np.array([batch.state.num_updated for batch in batches], dtype=np.float64)
    if not updated.sum() > 0:
        return None
    updates_s = np.array([batch.state.updates_s for batch in batches])
    commits_s = np.array([batch.state_commit_s for batch in batches])
    differ = updated.std() > TELLING_SPREAD_RATIO.value * updated.mean()
    commit_s = _slope(updated, commits_s) if differ else 0.0
    return float(updates_s.sum() / updated.sum()) + commit_s


def batch_times(reports: Sequence[Record]) -> tuple[Array, Array]:
    """Starts and ends of the batches of an application, and the time of all batches until each [s].

    Of a query alone one batch runs at a time. Progress without times is left out, and what is
    reported twice counts once.

    >>> reports = [
    ...     {"run_id": run, "batch_id": 0, "started_s": at_s, "phases_s": {"triggerExecution": 2.0}}
    ...     for run, at_s in (("r0", 0.0), ("r1", 1.0))
    ... ]
    >>> [times_s.tolist() for times_s in batch_times(reports)]
    [[0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 3.0, 4.0]]
    """
    timed = {
        (report["run_id"], report["batch_id"]): report for report in reports if is_timed(report)
    }.values()
    starts_s = np.array([report["started_s"] for report in timed], dtype=np.float64)
    durations_s = [report["phases_s"]["triggerExecution"] for report in timed]
    ends_s = starts_s + np.array(durations_s, dtype=np.float64)
    instants_s = np.concatenate([starts_s, ends_s])
    order = np.argsort(instants_s, kind="stable")
    changes = np.concatenate([np.ones_like(starts_s), -np.ones_like(ends_s)])
    num_running = np.cumsum(changes[order])[:-1]
    until_s = np.cumsum(num_running * np.diff(instants_s[order]))
    return instants_s[order], np.concatenate([[0.0], until_s])


def mean_at_once(batches: Sequence[BatchSample], instants_s: Array, until_s: Array) -> float | None:
    """Batches that ran at once while those of a query did; None if no other query's did.

    The mean over the time of its ``batches``, which are among those of `batch_times`.
    """
    if not len(instants_s):
        return None
    starts_s = np.array([batch.started_s for batch in batches])
    durations_s = np.array([batch.duration_s for batch in batches])
    # Linear between starts and ends.
    batch_s = np.interp(starts_s + durations_s, instants_s, until_s)
    batch_s -= np.interp(starts_s, instants_s, until_s)
    mean = float(batch_s.sum() / durations_s.sum())
    return mean if mean > _ALONE else None


def empty_batches(
    reports: Sequence[Record], from_s: float, trigger_s: float = 0.0
) -> EmptyBatches | None:
    """The batches without rows from an instant on (Y9); None if none ran, or no others did.

    An idle query also reports batches that it did not run: they have no ``addBatch``.
    """
    ran = _ran(reports, from_s)
    empty = [report for report in ran if known_rows(report) == 0]
    num_filled = sum(known_rows(report) > 0 for report in ran)
    if not empty or not num_filled:
        return None
    removed = np.array([_num_removed(report) for report in ran], dtype=np.float64)
    ahead_s = np.array([_ahead_s(ran, index, trigger_s) for index in range(len(ran))])
    is_empty = np.array([known_rows(report) == 0 for report in ran])
    counts = is_empty & (removed > 0) & np.isfinite(ahead_s)
    return EmptyBatches(
        num_per_batch=len(empty) / num_filled,
        duration_s=float(np.mean([_duration_s(report) for report in empty])),
        emitted_share=float(removed[is_empty].sum() / removed.sum()) if removed.sum() else 0.0,
        ahead_s=max(float(np.average(ahead_s[counts], weights=removed[counts])), 0.0)
        if counts.any()
        else 0.0,
    )


def _ran(reports: Sequence[Record], from_s: float) -> list[Record]:
    """The batches that ran, once each, in order."""
    by_batch: dict[int, Record] = {}
    for report in reports:
        has_run = is_timed(report) and report["phases_s"].get("addBatch") is not None
        if has_run and report["started_s"] >= from_s:
            by_batch.setdefault(report["batch_id"], report)
    return [by_batch[batch_id] for batch_id in sorted(by_batch)]


def _ahead_s(ran: Sequence[Record], index: int, trigger_s: float) -> float:
    """From the commit of a batch to that of the next with rows, without empty ones [s].

    Nan if there is none.
    """
    later = (number for number in range(index + 1, len(ran)) if known_rows(ran[number]) > 0)
    next_filled = next(later, None)
    if next_filled is None:
        return np.nan
    filled, empty = ran[next_filled], ran[next_filled - 1]
    return _committed_s(filled) - _held_up_s(empty, filled, trigger_s) - _committed_s(ran[index])


def _held_up_s(empty: Record, filled: Record, trigger_s: float) -> float:
    """How much later a batch began since one without rows ran before it [s]."""
    empty_s, begun_s = _duration_s(empty), float(filled["started_s"])
    if begun_s > empty["started_s"] + empty_s + POLLING_DELAY_S.value:
        return 0.0
    could_begin_s = empty["started_s"] + empty_s / (known_rows(filled) + 1.0)
    if trigger_s > 0.0:
        could_begin_s = math.ceil(could_begin_s / trigger_s) * trigger_s
    return float(max(begun_s - could_begin_s, 0.0))


def _duration_s(report: Record) -> float:
    return float(report["phases_s"]["triggerExecution"])


def _committed_s(report: Record) -> float:
    """When its rows were committed [epoch s]."""
    after_commit_s = report["phases_s"].get("commitOffsets") or 0.0
    return float(report["started_s"]) + _duration_s(report) - after_commit_s


def _num_removed(report: Record) -> int:
    """Rows that left the state: of an aggregation in append mode, those that it emitted."""
    operators = report["stateful_operators"] or ()
    return sum(max(operator["num_removed"] or 0, 0) for operator in operators)
