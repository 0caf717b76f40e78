"""Times of the tasks of a stage: without rows, and by how much they differ.

A log shows the time without rows by its parts, empty batches and CPU time. Tasks differ by chance,
and because a key is hot, which gives one task more rows in every batch: its tasks are modelled by
that share; all other differences are noise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from headway.assumptions.fits import LEAST_HOT_RATIO, MOST_HOT_RATIO
from headway.limits import MOST_SPREAD_RATIO
from headway.models.arrays import Array
from headway.models.estimation.fixed_time import Estimate, usual_fixed_time
from headway.models.estimation.task_times import AlmostEmpty, task_spread_ratio, time_without_rows
from headway.profiler.streaming.samples import BatchSample, QueryRun, StageSample

# Operators that call code of the user, which may wait for anything, and those around typed ones.
_OF_USERS = re.compile(r"Python|Pandas|Arrow|Map|FromObject|ToObject|TransformWithState|Generate")
_LEAST_OF_ALL = {"rows": 1.0, "commit_s": 1e-9}


def batch_weights(runs: Sequence[QueryRun]) -> Array:
    """One for every run, however many batches it has."""
    return np.concatenate([np.full(len(run.batches), 1.0 / len(run.batches)) for run in runs])


def parts_s(batches: Sequence[BatchSample], stage_index: int) -> Array:
    """Reported time of a task that does not depend on rows, for each batch."""
    samples = [batch.stages[stage_index] for batch in batches]
    commits_s = np.array([batch.state_commit_s for batch in batches])
    of_stage_s = commits_s * state_shares(batches, stage_index, "commit_s")
    num_tasks = np.array([sample.num_tasks for sample in samples])
    outside_s = np.array([sample.outside_run_s for sample in samples])
    return np.asarray(outside_s + of_stage_s / num_tasks)


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


def task_noise_ratio(samples: Sequence[StageSample], weights: Array, *, has_hot_key: bool) -> float:
    """Coefficient of variation of tasks of one batch, over the batches that have several.

    Where one task has more rows than the others, what their rows explain is left out.
    """
    even_samples = [spread_beside_rows(sample) for sample in samples] if has_hot_key else samples
    spreads = [
        (sample.task_sd_s / sample.task_mean_s, sample.num_seen, weight)
        for sample, weight in zip(even_samples, weights, strict=True)
        if sample.task_sd_s is not None and sample.task_mean_s > 0 and sample.num_seen > 1
    ]
    if not spreads:
        return 0.0
    return min(task_spread_ratio(*np.array(spreads).T), MOST_SPREAD_RATIO)


def hot_share_ratio(samples: Sequence[StageSample]) -> float:
    """Share of the rows that one task has beyond an even share; 0 below a tenth.

    A hot key keeps its share for any number of tasks, but random unevenness does not. So of several
    numbers of tasks, the one with the smallest share counts.
    """
    of_count: dict[int, list[float]] = {}
    for sample in samples:
        if sample.num_tasks > 1 and sample.rows_read > 0:
            even = 1.0 / sample.num_tasks
            beyond = (sample.rows_largest / sample.rows_read - even) / (1.0 - even)
            of_count.setdefault(sample.num_tasks, []).append(
                min(max(beyond, 0.0), MOST_HOT_RATIO.value)
            )
    smallest_share = min((float(np.median(shares)) for shares in of_count.values()), default=0.0)
    return smallest_share if smallest_share >= LEAST_HOT_RATIO.value else 0.0


def spread_beside_rows(sample: StageSample) -> StageSample:
    """The stage with the spread of task times that their rows do not explain."""
    if sample.task_sd_s is None or sample.rows_variance <= 0:
        return sample
    explained_s2 = sample.rows_time_covariance_s**2 / sample.rows_variance
    return replace(sample, task_sd_s=max(sample.task_sd_s**2 - explained_s2, 0.0) ** 0.5)
