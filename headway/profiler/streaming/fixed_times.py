"""What a log shows of the time of a task without rows: parts, empty batches, CPU time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from headway.models.arrays import Array
from headway.models.estimation.fixed_time import Estimate, usual_fixed_time
from headway.models.estimation.task_times import AlmostEmpty, time_without_rows
from headway.profiler.streaming.samples import BatchSample, QueryRun, StageSample

# Operators that call code of the user, which may wait for anything, and those around typed ones.
_OF_USERS = re.compile(r"Python|Pandas|Arrow|Map|FromObject|ToObject|TransformWithState|Generate")
_WRITES_STATE = re.compile(
    r"StateStoreSave|WithState|StreamingSymmetricHashJoin|StreamingDeduplicate|StreamingGlobalLimit"
)
_SHORTEST_S = 1e-9


class StateShares(NamedTuple):
    """What a stage has of the rows of all state, and of the time of commits, for each batch. [-]"""

    of_rows: Array
    of_commits: Array


def parts_s(batches: Sequence[BatchSample], stage_index: int) -> Array:
    """Reported time of a task that does not depend on rows, for each batch."""
    samples = [batch.stages[stage_index] for batch in batches]
    commits_s = np.array([batch.state_commit_s for batch in batches])
    of_stage_s = commits_s * state_shares(batches, stage_index).of_commits
    num_tasks = np.array([sample.num_tasks for sample in samples])
    outside_s = np.array([sample.outside_run_s for sample in samples])
    return np.asarray(outside_s + of_stage_s / num_tasks)


def state_shares(batches: Sequence[BatchSample], stage_index: int) -> StateShares:
    """What a stage has of the state of a query, in batches with the same stages.

    Spark reports stateful operators from the sink to the sources: if as many stages hold state, one
    after another, each has one of them. Else all state is in the last stage behind an exchange.
    """
    behind = [number for number, stage in enumerate(batches[0].stages) if stage.has_parents]
    num_operators = {len(batch.state.operators) for batch in batches}
    holders = _stages_with_state(batches[0], behind) if max(num_operators) > 1 else []
    if not holders or num_operators != {len(holders)}:
        is_last = np.full(len(batches), float(stage_index in behind[-1:]))
        return StateShares(is_last, is_last)
    if stage_index not in holders:
        return StateShares(np.zeros(len(batches)), np.zeros(len(batches)))
    operator_index = -1 - holders.index(stage_index)
    figures = np.array(
        [
            [(float(operator.rows), operator.commit_s) for operator in batch.state.operators]
            for batch in batches
        ]
    )
    of_all = np.maximum(figures.sum(axis=1), (1.0, _SHORTEST_S))
    return StateShares(*(figures[:, operator_index] / of_all).T)


def _stages_with_state(batch: BatchSample, behind: Sequence[int]) -> list[int]:
    """Stages behind an exchange that hold state; none if two of them run side by side."""
    kinds = batch.kinds
    holders = [number for number in behind if any(map(_WRITES_STATE.search, kinds[number].scopes))]
    levels = {batch.stages[number].level for number in holders}
    return holders if len(levels) == len(holders) else []


def usual_fixed_time_of(
    samples: Sequence[StageSample], reported_s: Array, weights: Array
) -> Estimate | None:
    """The fixed time of a task by (E46); None if that is not known of its stage."""
    cpu_s = weighted_mean([sample.cpu_s / sample.num_tasks for sample in samples], weights)
    task_s = weighted_mean([sample.task_mean_s for sample in samples], weights)
    if cpu_s <= 0.0 or not runs_own_operators(samples):
        return None
    reported_s = np.minimum(reported_s, [sample.task_mean_s for sample in samples])
    return usual_fixed_time(
        weighted_mean(reported_s, weights),
        task_s,
        cpu_s,
        is_behind_exchange=samples[0].has_parents,
    )


def without_rows(
    runs: Sequence[QueryRun], stage_index: int, per_partition_s: float
) -> tuple[float, float] | None:
    """Fixed time of a task from batches without rows, and its spread; None if there are none."""
    usual = runs[0].batches[0].signature
    empty_batches = [
        AlmostEmpty(
            task_s=batch.stages[stage_index].task_mean_s,
            rows=rows_per_task(batch, stage_index),
            usual_task_s=_mean(full.stages[stage_index].task_mean_s for full in run.batches),
            usual_rows=_mean(rows_per_task(full, stage_index) for full in run.batches),
            readers=num_readers(run, stage_index),
        )
        for run in runs
        for batch in run.without_rows
        if batch.signature == usual
        and batch.stages[stage_index].has_tasks
        and (batch.batch_id > 0 or not _first_one_compiles(run, stage_index))
    ]
    return time_without_rows(empty_batches, per_partition_s)


def _first_one_compiles(run: QueryRun, stage_index: int) -> bool:
    """Whether the first batch of a query compiles the code that later ones run.

    Its own operators may not be in the log.
    """
    return runs_own_operators([full.stages[stage_index] for full in run.batches])


def runs_own_operators(samples: Sequence[StageSample]) -> bool:
    """Whether a stage is known to run Spark's own operators only."""
    return not runs_code_of_users(samples) and any(sample.operators for sample in samples)


def runs_code_of_users(samples: Sequence[StageSample]) -> bool:
    """Whether a stage runs Python, or an operator that calls functions of the user."""
    names = {operator.name for sample in samples for operator in sample.operators}
    return any(sample.python_s for sample in samples) or any(map(_OF_USERS.search, names))


def rows_per_task(batch: BatchSample, stage_index: int) -> float:
    """Rows of the batch, if its source does not report what its tasks read."""
    stage = batch.stages[stage_index]
    return (stage.rows_read or batch.num_rows) / stage.num_tasks


def num_readers(run: QueryRun, stage_index: int) -> int:
    """Tasks that a task of the stage writes for; none if no exchange follows."""
    behind = run.batches[0].stages[stage_index + 1 : stage_index + 2]
    followed = any(stage.has_parents for stage in behind)
    return run.configuration.shuffle_partitions if followed else 0


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def weighted_mean(values: Sequence[float] | Array, weights: Array) -> float:
    """The mean over batches by their weights."""
    return float(np.average(np.asarray(values, dtype=np.float64), weights=weights))
