"""Rows and windows followed through a simulated run of the pipeline."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from headway.models.arrays import Array
from headway.models.simulation.pipeline_events import PipelineRun

_KEYS_PER_WINDOW = 64


def followed_rows(
    run: PipelineRun, begin_s: float, end_s: float, num_rows: int, random: np.random.Generator
) -> Array:
    """Time in each of the 12 phases, (12, rows), of rows that arrived between two times (S5)."""
    number, share = _rows_between(run, begin_s, end_s, num_rows)
    entry = run.input
    period_s = float(run.pipeline.setting.input_period_s)
    packed = entry.packed_s[number]
    mapped_from, mapped_to = run.map_start_s[number], run.map_end_s[number]
    with np.errstate(invalid="ignore"):
        mapped = mapped_from + share * (mapped_to - mapped_from)
    position = entry.rows_before[number] + share * entry.num_rows[number]
    batch, batch_share = _batches_of(run, entry.mapper[number], position)
    reducer = random.integers(run.num_reducers, size=num_rows)
    moments = [
        packed - (1.0 - share) * period_s,
        packed,
        entry.sent_s[number],
        entry.arrived_s[number],
        mapped_from,
        mapped,
        _at(run.batches.packed_s, batch),
        _at(run.batches.write_start_s, batch),
        _at(run.batches.write_end_s, batch),
        *_reduced(run, batch, batch_share, reducer),
    ]
    with np.errstate(invalid="ignore"):
        phases = np.diff(np.array(moments), axis=0)
    return np.where(np.isfinite(moments[-1]), phases, np.inf)


def followed_windows(run: PipelineRun, begin_s: float, end_s: float) -> Array:
    """From the end of each window between two times to the end of finalizing its keys (S5)."""
    final = run.pipeline.finalizing
    if final is None:
        return np.zeros(0)
    num_keys = float(final.num_keys)
    positions = (np.arange(_KEYS_PER_WINDOW) + 0.5) / _KEYS_PER_WINDOW
    key = np.ceil(positions * num_keys) / num_keys
    latencies = []
    for window, window_end_s in enumerate(run.window_ends_s):
        if not begin_s <= window_end_s <= end_s:
            continue
        for reducer in range(run.num_reducers):
            start, end = run.final_times_s.get((reducer, window), (math.inf, math.inf))
            took_s = end - start if math.isfinite(end) else 0.0
            latencies.append(start + key * took_s - window_end_s)
    return np.concatenate(latencies) if latencies else np.zeros(0)


def _rows_between(
    run: PipelineRun, begin_s: float, end_s: float, num_rows: int
) -> tuple[NDArray[np.int64], Array]:
    """Input batch of each followed row, and its position in it from 0 to 1."""
    entry = run.input
    period_s = float(run.pipeline.setting.input_period_s)
    batch_numbers = np.flatnonzero(
        (entry.packed_s >= begin_s + period_s) & (entry.packed_s <= end_s)
    )
    until = np.cumsum(entry.num_rows[batch_numbers])
    if not (len(until) and until[-1] > 0.0):
        raise ValueError("no row arrives in length_s")
    target = (np.arange(num_rows) + 0.5) / num_rows * until[-1]
    index = np.searchsorted(until, target)
    rows = entry.num_rows[batch_numbers[index]]
    return batch_numbers[index], 1.0 - (until[index] - target) / rows


def _batches_of(
    run: PipelineRun, mapper: NDArray[np.int64], position: Array
) -> tuple[NDArray[np.int64], Array]:
    """Shuffle batch of each row, -1 if it is not packed, and the row's position in it."""
    batches = run.batches
    of_mapper = np.array(batches.mapper, dtype=np.int64)
    until, rows = np.array(batches.rows_until), np.array(batches.num_rows)
    batch = np.full(len(position), -1)
    for number in range(run.num_mappers):
        mapper_batches = np.flatnonzero(of_mapper == number)
        mapper_rows = np.flatnonzero(mapper == number)
        index = np.searchsorted(until[mapper_batches], position[mapper_rows])
        packed = index < len(mapper_batches)
        batch[mapper_rows[packed]] = mapper_batches[index[packed]]
    batch_share = 1.0 - (until[batch] - position) / rows[batch]
    return batch, np.clip(batch_share, 0.0, 1.0)


def _reduced(
    run: PipelineRun, batch: NDArray[np.int64], batch_share: Array, reducer: NDArray[np.int64]
) -> tuple[Array, Array, Array, Array]:
    """Start and end of each row's transfer, start of its batch, and end of its own update."""
    groups = run.groups
    rank = np.where(batch >= 0, np.array(run.batches.rank)[batch], -1)
    of_reducer = np.array(groups.reducer, dtype=np.int64)
    first, after = np.array(groups.first, dtype=np.int64), np.array(groups.after, dtype=np.int64)
    group = np.full(len(rank), -1)
    for number in range(run.num_reducers):
        reducer_groups = np.flatnonzero(of_reducer == number)
        reducer_rows = np.flatnonzero((reducer == number) & (rank >= 0))
        index = np.searchsorted(after[reducer_groups], rank[reducer_rows], side="right")
        fetched = index < len(reducer_groups)
        group[reducer_rows[fetched]] = reducer_groups[index[fetched]]
    rows_before = np.array(run.ranked_rows)
    start = _at(groups.update_start_s, group)
    with np.errstate(invalid="ignore"):
        took_s = _at(groups.update_end_s, group) - start
    safe_group, safe_rank = np.maximum(group, 0), np.maximum(rank, 0)
    head, tail = first[safe_group], after[safe_group]

    def work(num_batches: Array, rows: Array) -> Array:
        return num_batches * run.batch_fixed_s + rows * run.update_per_row_s

    group_work = work(tail - head, rows_before[tail] - rows_before[head])
    before = work(safe_rank - head, rows_before[safe_rank] - rows_before[head])
    own_rows = batch_share * (rows_before[safe_rank + 1] - rows_before[safe_rank])
    until = before + work(np.ones(len(batch_share)), own_rows)
    return (
        _at(groups.fetch_start_s, group),
        _at(groups.fetch_end_s, group),
        start + before / group_work * took_s,
        start + until / group_work * took_s,
    )


def _at(values: list[float], index: NDArray[np.int64]) -> Array:
    """Elements of a list, ``inf`` for the index -1."""
    return np.where(index >= 0, np.array([*values, math.inf])[index], math.inf)
