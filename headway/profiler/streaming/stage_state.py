"""What a stage has of the state of its query, and whether the cost of a row of it shows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headway.domain.profile import is_rocksdb
from headway.models.arrays import Array
from headway.profiler.streaming.batch_sizes import state_grows
from headway.profiler.streaming.samples import BatchSample, QueryRun
from headway.profiler.streaming.times_at_age import by_run

_LEAST_OF_ALL = {"rows": 1.0, "commit_s": 1e-9}


def state_shares(batches: Sequence[BatchSample], stage_index: int, figure: str = "rows") -> Array:
    """What a stage has of the ``rows``, or of the ``commit_s``, of all state, for each batch. [-]

    The batches have the same stages. Spark reports stateful operators from the sink to the sources:
    if as many stages hold state, one after another, each has one of them. Else all state is in the
    last stage behind an exchange.
    """
    behind = [number for number, stage in enumerate(batches[0].stages) if stage.has_parents]
    num_operators = {len(batch.state.operators) for batch in batches}
    holders = _stages_with_state(batches[0], behind) if max(num_operators) > 1 else []
    if not holders or num_operators != {len(holders)}:
        return np.full(len(batches), float(stage_index in behind[-1:]))
    if stage_index not in holders:
        return np.zeros(len(batches))
    figures = np.array(
        [
            [float(getattr(operator, figure)) for operator in batch.state.operators]
            for batch in batches
        ]
    )
    of_stage = figures[:, -1 - holders.index(stage_index)]
    return np.asarray(of_stage / np.maximum(figures.sum(axis=1), _LEAST_OF_ALL[figure]))


def _stages_with_state(batch: BatchSample, behind: Sequence[int]) -> list[int]:
    """Stages behind an exchange that hold state; none if two of them run side by side."""
    kinds = batch.kinds
    holders = [number for number in behind if kinds[number].holds_state]
    levels = {batch.stages[number].level for number in holders}
    return holders if len(levels) == len(holders) else []


def most_states_grow(runs: Sequence[QueryRun], in_stage: Array) -> bool:
    """Whether the state of a stage grows during most runs, like an unbounded one.

    State that follows the rate differs only between runs, like the rows, so their costs cannot be
    separated.

    **(E29)** Cost of a row of state, `t_3` of (T2): Spark's default store copies the map of its
    rows for every batch. It is fitted by (E3), with the other terms of the stage that holds the
    state, if its rows at least double within most runs, and rows and state are separable by (E2).
    Of several stateful operators in a row, each stage has the rows, and the commits, of its own. It
    is also fitted for a join of two streams, whose state follows the rate: it is `v λ (w+H) + u`
    (Z3), and the `u` rows that the batch writes are part of what its rows cost, so `S` is without
    them. Since rows and state may not be separable then, a row of state has a prior cost of 0.9 us,
    give or take as much, unless RocksDB keeps it, which copies nothing. Of other states the cost is
    0, since those that follow the rate differ between runs just like the rows. A prediction is for
    the state at its rate (E36); growing state has the size at the end of the last run.
    """
    return 2 * sum(map(state_grows, runs, by_run(in_stage, runs))) > len(runs)


def copies_a_join(last: QueryRun, in_stage: Array) -> bool:
    """Whether a stage holds the rows of two joined streams in a store that copies them (E29)."""
    holds_rows = in_stage[-len(last.batches)] > 0.0
    return bool(holds_rows and last.shape.keeps_rows and not is_rocksdb(last.state_store))
