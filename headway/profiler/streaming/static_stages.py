"""Stages that read the same rows in every batch: scans of static tables, whatever the rate."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from headway.assumptions.logs import SAME_ROWS_RATIO
from headway.few_numbers import median_of
from headway.models.arrays import Array
from headway.profiler.operators import DELTA_STATE
from headway.profiler.streaming.samples import QueryRun, StageSample, batches_of

_MOST_TABLES = 8


def static_places(runs: Sequence[QueryRun]) -> frozenset[int]:
    """Indices of the stages that read a static table, of batches with one signature.

    Their rows stay the same while those of the batch vary. If batches are of one size, it is those
    whose rows are no multiple of the rows of the batch while another stage's are. The log of a
    Delta table is always one: its rows follow the number of commits.
    """
    batches = batches_of(runs)
    log_rows = np.log([batch.num_rows for batch in batches])
    first = batches[0].stages
    log_read = {
        stage_index: np.log(read)
        for stage_index, stage in enumerate(first)
        if not stage.has_parents and stage.has_tasks
        if np.all((read := _rows_read(runs, stage_index)) > 0)
    }
    follow_exactly = {
        stage_index
        for stage_index, logs in log_read.items()
        if np.std(logs - log_rows) < SAME_ROWS_RATIO.value
        and _is_multiple(median_of(logs - log_rows))
    }
    return frozenset(
        stage_index
        for stage_index, logs in log_read.items()
        if _reads_table_log(first[stage_index])
        or (
            np.std(logs) < SAME_ROWS_RATIO.value
            and stage_index not in follow_exactly
            and (np.std(log_rows) > 3 * SAME_ROWS_RATIO.value or follow_exactly)
        )
    )


def static_rows(runs: Sequence[QueryRun], stage_index: int, tables: frozenset[int]) -> float:
    """Rows that a stage behind an exchange gets from static tables in every batch.

    Which tables it reads is not always recorded, so those are taken that leave rows which follow
    the rows of the batch most closely; of equally good ones, the most.
    """
    batches = batches_of(runs)
    stage = batches[0].stages[stage_index]
    written = {
        table: float(np.mean([batch.stages[table].rows_written for batch in batches]))
        for table in sorted(tables)
        if batches[0].stages[table].level < stage.level
    }
    read = _rows_read(runs, stage_index)
    if not stage.has_parents or not written or not np.all(read > 0):
        return 0.0
    log_rows = np.log([batch.num_rows for batch in batches])
    largest = sorted(written.values(), reverse=True)[:_MOST_TABLES]
    sums = {
        sum(subset, 0.0)
        for size in range(len(largest) + 1)
        for subset in combinations(largest, size)
    }
    possible = [rows for rows in sums if np.all(read > rows)]
    return max(possible, key=lambda rows: (-_misfit(np.log(read - rows), log_rows), rows))


def _reads_table_log(stage: StageSample) -> bool:
    """Whether a stage reads which files a Delta table has, as a merge into it does first."""
    scopes = () if stage.kind is None else stage.kind.scopes
    tables = [(operator.table or "").rstrip("/") for operator in stage.operators]
    reads_log = any(table.endswith("/_delta_log") for table in tables)
    return reads_log or any(DELTA_STATE in scope for scope in scopes)


def _rows_read(runs: Sequence[QueryRun], stage_index: int) -> Array:
    return np.array([batch.stages[stage_index].rows_read for batch in batches_of(runs)])


def _is_multiple(log_ratio: float) -> bool:
    ratio = float(np.exp(log_ratio))
    return round(ratio) >= 1 and abs(ratio / round(ratio) - 1.0) < SAME_ROWS_RATIO.value


def _misfit(log_read: Array, log_rows: Array) -> float:
    """Spread around a power law with an exponent up to 1, in steps that noise does not decide."""
    spread = log_rows - log_rows.mean()
    slope = float(spread @ log_read / max(spread @ spread, 1e-12))
    residuals = log_read - log_read.mean() - min(max(slope, 0.0), 1.0) * spread
    return round(float(np.sqrt(np.mean(np.square(residuals)))), 3)
