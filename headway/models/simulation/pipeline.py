"""The mini-batch pipeline, batch by batch: oracle of `headway.models.pipeline.corrected`."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from headway.models.arrays import Array
from headway.models.pipeline.latency import PHASES
from headway.models.pipeline.parameters import Pipeline
from headway.models.simulation.pipeline_events import PipelineRun

_KEYS_PER_WINDOW = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PipelineTrace:
    """Times of rows and windows after the warm-up.

    ``phase_s`` and ``window_latency_s`` are ``inf`` for what had not ended with the simulation.
    """

    phase_s: Array  # In each of the 12 phases, (12, rows), of rows sampled evenly. [s]
    window_latency_s: Array  # From its end, for keys sampled evenly; empty if none. [s]
    map_busy: float  # Share of the time that mappers were working, including slowdown. [-]
    reduce_busy: float  # The same for reducers, including finalizing. [-]

    @property
    def latency_s(self) -> Array:
        """Latency of each row. [s]"""
        total: Array = self.phase_s.sum(axis=0)
        return total

    def phase_means_s(self) -> dict[str, float]:
        """Mean time in each phase. [s]"""
        return dict(zip(PHASES, self.phase_s.mean(axis=1).tolist(), strict=True))


def simulate_pipeline(
    pipeline: Pipeline,
    *,
    length_s: float,
    seed: int,
    warmup_s: float,
    num_rows: int = 100_000,
    most_jobs_per_fetch: int = 64,
) -> PipelineTrace:
    r"""Simulate distributors, mappers, disks, links and reducers, and follow rows through them.

    Fields that are arrays raise ``ValueError``.

    Parameters
    ----------
    length_s : float, > 0, time over which the followed rows arrive, and the followed windows end
    seed : int, of the phases of all clocks, numbers of rows, and noise
    warmup_s : float, >= 0, time before that
    num_rows : int, >= 1, rows to follow
    most_jobs_per_fetch : int, >= 1
        Maximum number of groups in which batches of one poll are processed; a group enters the
        queue of the reducer when all of it has arrived.

    **(S5)** Pipeline: distributors, offset by equal parts of `B_in`, hand batches to the mappers in
    turn, node by node, each through its own link. Counts are `φ · Poisson`. Mappers and reducers
    are threads on the cores of their node (S4), fetches are threads on the link into it, and each
    node has one FIFO disk. Clocks of mappers and reducers have random phases; all queues are FIFO
    by batch. A reducer finalizes a window after the batch that completes it. Rows are followed by
    interpolation within their batch.

    After ``length_s`` the simulation continues for as long as rows need in a pipeline that keeps
    up.
    """
    if not (length_s > 0.0 and warmup_s >= 0.0 and num_rows >= 1 and most_jobs_per_fetch >= 1):
        raise ValueError("need length_s > 0, warmup_s >= 0, and at least one row and job")
    _refuse_arrays(pipeline)
    setting = pipeline.setting
    final_s = 0.0 if pipeline.finalizing is None else float(pipeline.finalizing.window_s)
    drain_s = 5.0 * float(setting.shuffle_period_s + setting.poll_period_s + setting.input_period_s)
    drain_s += 5.0 * final_s + 1.0
    random = np.random.default_rng(seed)
    run = PipelineRun(pipeline, warmup_s + length_s + drain_s, most_jobs_per_fetch, random)
    run.simulate()
    end_s = warmup_s + length_s
    return PipelineTrace(
        phase_s=_followed_rows(run, warmup_s, end_s, num_rows, random),
        window_latency_s=_followed_windows(run, warmup_s, end_s),
        map_busy=run.map_busy,
        reduce_busy=run.reduce_busy,
    )


def _refuse_arrays(pipeline: Pipeline) -> None:
    for part in (pipeline, pipeline.job, pipeline.nodes, pipeline.setting, pipeline.finalizing):
        if part is None:
            continue
        for field in fields(part):
            value = getattr(part, field.name)
            if isinstance(value, np.ndarray) and value.ndim:
                raise ValueError(f"{field.name} must be a scalar to be simulated")


def _followed_rows(
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
        _at([record.packed_s for record in run.batches], batch),
        _at([record.write_start_s for record in run.batches], batch),
        _at([record.write_end_s for record in run.batches], batch),
        *_reduced(run, batch, batch_share, reducer),
    ]
    with np.errstate(invalid="ignore"):
        phases = np.diff(np.array(moments), axis=0)
    return np.where(np.isfinite(moments[-1]), phases, np.inf)


def _followed_windows(run: PipelineRun, begin_s: float, end_s: float) -> Array:
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
    of_mapper = np.array([record.mapper for record in run.batches], dtype=np.int64)
    until = np.array([record.rows_until for record in run.batches])
    rows = np.array([record.num_rows for record in run.batches])
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
    rank = np.where(batch >= 0, np.array([record.rank for record in run.batches])[batch], -1)
    of_reducer = np.array([record.reducer for record in groups], dtype=np.int64)
    first, after = np.array([(record.first, record.after) for record in groups]).T
    group = np.full(len(rank), -1)
    for number in range(run.num_reducers):
        reducer_groups = np.flatnonzero(of_reducer == number)
        reducer_rows = np.flatnonzero((reducer == number) & (rank >= 0))
        index = np.searchsorted(after[reducer_groups], rank[reducer_rows], side="right")
        fetched = index < len(reducer_groups)
        group[reducer_rows[fetched]] = reducer_groups[index[fetched]]
    rows_before = np.array(run.ranked_rows)
    start = _at([record.update_start_s for record in groups], group)
    with np.errstate(invalid="ignore"):
        took_s = _at([record.update_end_s for record in groups], group) - start
    safe_group, safe_rank = np.maximum(group, 0), np.maximum(rank, 0)
    head, tail = first[safe_group], after[safe_group]

    def work(num_batches: Array, rows: Array) -> Array:
        return num_batches * run.batch_fixed_s + rows * run.update_per_row_s

    group_work = work(tail - head, rows_before[tail] - rows_before[head])
    before = work(safe_rank - head, rows_before[safe_rank] - rows_before[head])
    own_rows = batch_share * (rows_before[safe_rank + 1] - rows_before[safe_rank])
    until = before + work(np.ones(len(batch_share)), own_rows)
    return (
        _at([record.fetch_start_s for record in groups], group),
        _at([record.fetch_end_s for record in groups], group),
        start + before / group_work * took_s,
        start + until / group_work * took_s,
    )


def _at(values: list[float], index: NDArray[np.int64]) -> Array:
    """Elements of a list, ``inf`` for the index -1."""
    return np.where(index >= 0, np.array([*values, math.inf])[index], math.inf)
