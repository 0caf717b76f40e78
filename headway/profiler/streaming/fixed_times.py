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


class StateShare(NamedTuple):
    """What a stage has of the rows of all state of a query, and of the time of its commits. [-]"""

    of_rows: float
    of_commits: float


def parts_s(batches: Sequence[BatchSample], stage_index: int) -> Array:
    """Reported time of a task that does not depend on rows, for each batch."""
    return np.array(
        [
            batch.stages[stage_index].outside_run_s
            + batch.state_commit_s
            * state_share(batch, stage_index).of_commits
            / batch.stages[stage_index].num_tasks
            for batch in batches
        ]
    )


def state_share(batch: BatchSample, stage_index: int) -> StateShare:
    """What a stage has of the state of a query.

    Spark reports stateful operators from the sink to the sources: if as many stages hold state, one
    after another, each has one of them. Else all state is in the last stage behind an exchange.
    """
    behind = [number for number, stage in enumerate(batch.stages) if stage.has_parents]
    operators = batch.state.operators
    holders = _stages_with_state(batch, behind) if len(operators) > 1 else []
    if len(holders) != len(operators) or not holders:
        is_last = float(stage_index in behind[-1:])
        return StateShare(is_last, is_last)
    if stage_index not in holders:
        return StateShare(0.0, 0.0)
    own = operators[-1 - holders.index(stage_index)]
    commits_s = sum(operator.commit_s for operator in operators)
    return StateShare(own.rows / max(batch.state.num_rows, 1), own.commit_s / max(commits_s, 1e-9))


def _stages_with_state(batch: BatchSample, behind: Sequence[int]) -> list[int]:
    """Stages behind an exchange that hold state; none if two of them run side by side."""
    kinds = batch.kinds
    holders = [
        number for number in behind if any(map(_WRITES_STATE.search, kinds[number].scopes))
    ]
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
