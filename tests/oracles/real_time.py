"""A query in Real-Time Mode, row by row: oracle of `headway.models.real_time`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from headway.models.arrays import Array
from headway.models.queues.queueing import lindley_waits_s


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedStage:
    """A stage: the share of the rows that each task has, and the time per row.

    Parameters
    ----------
    shares : (n,) array, >= 0
        Of sum 1. [-]
    row_s : float, > 0
        Mean time per row. [s]
    row_cv : float, >= 0
        Its coefficient of variation; lognormal. [-]

    Examples
    --------
    >>> PlayedStage(shares=np.full(4, 0.25), row_s=1e-3, row_cv=0.0).row_s
    0.001
    """

    shares: Array
    row_s: float
    row_cv: float


def simulate_real_time(
    rate_per_s: float,
    stages: Sequence[PlayedStage],
    *,
    flush_s: float,
    trigger_s: float,
    gap_s: float,
    num_rows: int,
    seed: int,
) -> Array:
    r"""Latencies of Poisson rows in a query whose stages run at once.

    Each task works on one row at a time in the order of their coming. A task of the first stage
    begins no row in the gap between two batches. A task sends what it has for the next stage when
    its clock ticks, and when its batch ends; clocks start anew in every batch.

    Parameters
    ----------
    rate_per_s : float, > 0
        Input rate. [rows/s]
    stages : sequence of PlayedStage
        In the order of their work; every row goes through all of them.
    flush_s : float, >= 0
        Period of the clocks; 0 sends every row at once. [s]
    trigger_s : float, > 0
        Duration of a batch. [s]
    gap_s : float, >= 0
        Time between batches. [s]
    num_rows : int, >= 1
        Rows to simulate. [-]
    seed : int
        Seed of the generator.

    Returns
    -------
    (num_rows,) array
        From the arrival of a row to the end of its work in the last stage. [s]

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    **(N8)** Simulation, row by row: queues per task in the order of coming; a source that begins no
    row in a gap; writers with a clock of random phase in each batch, whose buffers leave at its
    ticks and at the end of the batch.

    A row that a task works on when its batch ends waits for the next one.

    Examples
    --------
    >>> stage = PlayedStage(shares=np.ones(1), row_s=1e-3, row_cv=0.0)
    >>> latency = simulate_real_time(
    ...     1.0, [stage], flush_s=0.0, trigger_s=60.0, gap_s=0.0, num_rows=50, seed=1
    ... )
    >>> float(latency.min())
    0.001
    """
    if not stages or not (rate_per_s > 0.0 and flush_s >= 0.0 and trigger_s > 0.0 and gap_s >= 0.0):
        raise ValueError("need a stage, positive rate and trigger, and no negative time")
    if num_rows < 1:
        raise ValueError(f"need at least one row, got {num_rows}")
    generator = np.random.default_rng(seed)
    arrival = np.cumsum(generator.exponential(1.0 / rate_per_s, num_rows))
    cycle_s = trigger_s + gap_s
    task = _tasks(generator, stages[0].shares, num_rows)
    # The first stage has a clock of its own that stands still in the gaps.
    batch = np.floor(arrival / cycle_s)
    worked = batch * trigger_s + np.minimum(arrival - batch * cycle_s, trigger_s)
    done = _served(worked, task, stages[0], generator)
    batch = np.maximum(np.ceil(done / trigger_s) - 1.0, 0.0)
    done = batch * cycle_s + done - batch * trigger_s
    for stage in stages[1:]:
        sent = _sent(done, task, batch, flush_s, cycle_s, trigger_s, generator)
        task = _tasks(generator, stage.shares, num_rows)
        done = _served(sent, task, stage, generator, tie=done)
        batch = np.floor(done / cycle_s)
    latency: Array = done - arrival
    return latency


def _tasks(generator: np.random.Generator, shares: Array, num_rows: int) -> NDArray[np.int64]:
    edges = np.cumsum(np.asarray(shares, dtype=np.float64))
    position = np.searchsorted(edges, generator.random(num_rows) * edges[-1])
    task: NDArray[np.int64] = np.minimum(position, len(edges) - 1)
    return task


def _served(
    came_s: Array,
    task: NDArray[np.int64],
    stage: PlayedStage,
    generator: np.random.Generator,
    tie: Array | None = None,
) -> Array:
    """When each row's work ends: every task serves its own rows first come, first served."""
    log_variance = float(np.log1p(stage.row_cv**2))
    normal = generator.standard_normal(len(came_s))
    service = stage.row_s * np.exp(np.sqrt(log_variance) * normal - log_variance / 2.0)
    order = np.lexsort((came_s if tie is None else tie, came_s, task))
    bounds = np.searchsorted(task[order], np.arange(len(stage.shares) + 1))
    done = np.empty(len(came_s))
    for low, high in pairwise(bounds):
        rows = order[low:high]
        if len(rows):
            between = np.diff(came_s[rows], append=came_s[rows[-1]])
            done[rows] = came_s[rows] + lindley_waits_s(between, service[rows]) + service[rows]
    return done


def _sent(
    done_s: Array,
    task: NDArray[np.int64],
    batch: Array,
    flush_s: float,
    cycle_s: float,
    trigger_s: float,
    generator: np.random.Generator,
) -> Array:
    """When the buffer that holds each row leaves its task."""
    if flush_s == 0.0:
        return done_s
    phases = generator.random((int(batch.max()) + 1, int(task.max()) + 1)) * flush_s
    started = batch * cycle_s + phases[batch.astype(np.int64), task] - flush_s
    ticked = started + flush_s * np.ceil((done_s - started) / flush_s)
    ends = batch * cycle_s + trigger_s
    # What is still at work after the end of its batch leaves at once.
    sent: Array = np.maximum(np.minimum(ticked, ends), done_s)
    return sent
