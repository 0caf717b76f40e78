"""Refits of batch durations on few of the committed runs, judged on the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from campaign.figures import Row, median_size, share_within
from pages import headed

from headway.domain import Configuration, QueryShape
from headway.models.job.duration import DurationModel, level_spans
from headway.profiler.streaming.fit import fit_duration
from headway.profiler.streaming.samples import (
    ArrivalSeries,
    BatchSample,
    QueryRun,
    StageSample,
    StateSample,
)

_GROUP, _SLOTS, _NUM_MAP_TASKS = "two-cores", 2, 2
_NUM_CHOICES, _SEED, _GOAL_RATIO = 40, 1, 0.1
_SIZES = (1, 2, 4, 8)
_BATCHES = 2  # only means are on record


def refit_rows(rows: Sequence[Row]) -> Iterator[str]:
    """A table: how far durations are off when few runs are fitted."""
    by_workload: dict[str, list[QueryRun]] = {}
    for row in rows:
        if row["group"] == _GROUP and row["parts"] is not None:
            by_workload.setdefault(row["workload"], []).append(_as_run(row))
    yield from headed("| fitted on | median error of duration | within 10% | p90 of the error |")
    rng = np.random.default_rng(_SEED)
    for size in _SIZES:
        errors = [
            error
            for runs in by_workload.values()
            for _ in range(_NUM_CHOICES)
            for error in _errors(runs, list(rng.choice(len(runs), size, replace=False)))
        ]
        name = "one run" if size == 1 else f"{size} runs, any"
        yield _line(name, errors)
    for size in _SIZES[2:]:
        errors = [
            error
            for runs in by_workload.values()
            for error in _errors(runs, _far_apart(runs, size))
        ]
        yield _line(f"{size} runs, far apart, each twice", errors)


def _line(name: str, errors: Sequence[float]) -> str:
    worst = float(np.quantile(np.abs(errors), 0.9))
    return (
        f"| {name} | {median_size(errors)} | {share_within(errors, _GOAL_RATIO)} "
        f"| {100 * worst:.0f}% |"
    )


def _errors(runs: Sequence[QueryRun], chosen: Sequence[int]) -> list[float]:
    """Fitted over measured duration, less one, of all runs that were not chosen."""
    fit = fit_duration([runs[place] for place in chosen])
    driver_s = sum(phase.mean_s for phase in fit.driver_phases)
    found = []
    for place, run in enumerate(runs):
        if place not in chosen:
            batch = run.batches[0]
            spans = level_spans(fit.stages, _SLOTS, run.configuration.shuffle_partitions)
            told_s = float(DurationModel(driver_s, spans).mean_s(batch.num_rows))
            found.append(told_s / batch.duration_s - 1.0)
    return found


def _far_apart(runs: Sequence[QueryRun], size: int) -> list[int]:
    """Two repeats each of the smallest and the largest batches, then of other partitions."""
    by_setting: dict[tuple[float, int, int], list[int]] = {}
    for place, run in enumerate(runs):
        setting = run.configuration
        size_class = round(np.log2(max(run.batches[0].num_rows, 1)))
        key = (setting.trigger_s, setting.shuffle_partitions, size_class)
        by_setting.setdefault(key, []).append(place)
    pairs = sorted(
        (places[:2] for places in by_setting.values()),
        key=lambda places: runs[places[0]].batches[0].num_rows,
    )
    most = max(pairs, key=lambda places: runs[places[0]].configuration.shuffle_partitions)
    ordered = [pairs[0], pairs[-1], most, pairs[len(pairs) // 2], *pairs]
    chosen: list[int] = []
    for places in ordered:
        chosen += [place for place in places if place not in chosen]
    return chosen[:size]


def _as_run(row: Row) -> QueryRun:
    """The means of a run, as a run of batches that are all alike."""
    parts, partitions = row["parts"], row["setting"]["partitions"]
    stages = tuple(
        _as_stage(place, level, parts["rows"], partitions)
        for place, level in enumerate(parts["levels"])
    )
    duration_s = parts["duration"][1]
    stages_s = sum(stage.span_s for stage in stages)
    batch = BatchSample(
        batch_id=0,
        started_s=0.0,
        interval_s=1.0,
        jvm_age_s=row["predicted"]["jvm_age_s"],
        duration_s=duration_s,
        phases_s={"add_batch": duration_s},
        num_rows=round(parts["rows"]),
        state_commit_s=parts["state_commit"] * stages[-1].num_tasks,
        state=StateSample(num_rows=0, memory_bytes=0, num_stores=partitions),
        event_time_lag_s=None,
        stages_s=min(stages_s, duration_s),
        stages=stages,
    )
    return QueryRun(
        query_id=row["name"],
        query_name=row["name"],
        shape=QueryShape(
            sources=(), sink="noop", stateful_operators=(), state_rows=0, watermarked=False
        ),
        configuration=Configuration(
            executors=1,
            cores_per_executor=_SLOTS,
            shuffle_partitions=partitions,
            trigger_s=row["setting"]["trigger_s"],
        ),
        arrivals=ArrivalSeries(
            counted="rows",
            arrived_rows=np.full(_BATCHES, parts["rows"]),
            interval_s=np.ones(_BATCHES),
            lag_rows=None,
            partition_rows={},
        ),
        rate_per_s=row["rate_per_s"],
        num_cut=0,
        pinned_state_partitions=partitions,
        source_partitions=_NUM_MAP_TASKS,
        batches=tuple(replace(batch, batch_id=number) for number in range(_BATCHES)),
    )


def _as_stage(place: int, level: Row, rows: float, partitions: int) -> StageSample:
    num_tasks = partitions if level["shuffled"] else _NUM_MAP_TASKS
    return StageSample(
        level=place,
        has_parents=level["shuffled"],
        has_tasks=True,
        num_tasks=num_tasks,
        num_seen=num_tasks,
        rows_read=rows,
        task_mean_s=level["tasks"][1],
        task_sd_s=None,
        outside_run_s=min(level["launch"], level["tasks"][1]),
        scheduler_delay_s=0.0,
        rows_variance=0.0,
        rows_time_covariance_s=0.0,
        span_s=level["span"][1],
        run_s=level["tasks"][1] * num_tasks,
        cpu_s=0.0,
        gc_s=0.0,
        python_s=None,
        rows_largest=rows / num_tasks,
        rows_written=0.0,
        input_bytes=0.0,
        shuffle_read_bytes=0.0,
        shuffle_write_bytes=0.0,
        spilled_bytes=0.0,
        peak_memory_bytes=0.0,
        peak_heap_bytes=0.0,
    )
