"""Batches of one size: between which bounds the fixed time of a task is known."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from headway.assumptions.fits import (
    EMPTY_BATCH_SD_RATIO,
    FRESH_JVM_S,
    MOST_SHUFFLED_ROW_S,
    USUAL_PARTS_SD_S,
    USUAL_PARTS_SD_WITH_PYTHON_S,
    USUAL_ROWS_SHARE,
)
from headway.domain import Z90, Separation, StageProfile
from headway.models.arrays import Array
from headway.models.estimation.regression import is_spread
from headway.profiler.streaming.samples import QueryRun, StageSample

# Half the width of a uniform distribution over its standard deviation.
_HALF_WIDTH_PER_SD = math.sqrt(3.0)
_LEAST_S = 1e-9
# Operators that call code of the user, which may wait for anything, and those around typed ones.
_OF_USERS = re.compile(r"Python|Pandas|Arrow|Map|FromObject|ToObject|TransformWithState|Generate")


class TaskTime(NamedTuple):
    """Time of a task, the range of its part without rows [s], its rows, and tasks of a batch."""

    mean_s: float
    fixed_low_s: float
    fixed_high_s: float
    rows: float
    num_tasks: float
    rows_share: float = 0.0

    @property
    def fixed_s(self) -> float:
        """The place in the range that is usual."""
        below_s = self.rows_share * (self.fixed_high_s - self.fixed_low_s)
        return max(self.fixed_high_s - below_s, 0.0)


def has_one_size(runs: Sequence[QueryRun]) -> bool:
    """Whether all batches have about the same rows, by (E2)."""
    rows = [float(batch.num_rows) for run in runs for batch in run.batches]
    return not is_spread(np.array(rows))


def task_time(
    runs: Sequence[QueryRun],
    stage_index: int,
    stage: StageProfile,
    *,
    reported_s: Array,
    rows_per_task: Array,
    weights: Array,
) -> TaskTime:
    r"""The time of a task without rows, as far as batches of one size determine it.

    Parameters
    ----------
    runs : sequence of QueryRun
        Runs whose batches have about the same rows.
    stage_index : int
        The stage's index in its batches.
    stage : StageProfile
        The stage as fitted.
    reported_s : (n,) array
        What Spark reports of a task's fixed time, for each batch. [s]
    rows_per_task : (n,) array
        Rows that a task reads, for each batch. [rows]
    weights : (n,) array
        Weights of the batches. [-]

    Returns
    -------
    TaskTime
        Without a range if batches determine the costs by other differences than their rows.

    Notes
    -----
    **(E43)** If the rows of all batches are not spread by (E2), the fixed time `t_0` of a task that
    takes `t` is only known to be in a range, and the rest of `t` is for the rows. It is at least
    what Spark reports of it, (E32), less a deviation of 30%, since commits take longer with rows,
    too. Not more of the CPU time `u` than 1.645 times the standard deviation of (E3) is set-up that
    Spark does not report, so the rows take at least `u` less that; waiting may be either. This
    bound is not used in a JVM younger than 30 s, nor for stages behind an exchange of a query with
    state, whose whole map may be copied. Behind an exchange, a row takes Spark's own operators 10
    ms at most, so tasks of few rows are mostly fixed; code of the user may take any time. The fit
    takes the usual place in this range: three quarters of it are for the rows. Batches without rows
    (E32) and tasks of unequal rows (E2) narrow the range to their estimate give or take `sqrt(3)`
    standard deviations, as wide as the uniform distribution with that deviation. That of a slope
    between tasks is `sqrt(v/(T V))`, with `T` tasks of a batch whose rows have the variance `V`,
    and `v` the variance of their times that rows do not explain: the same partitions return in each
    batch. If batches without rows took as long as others, they say nothing. The cost per row of the
    whole job may be off by the share `h`: the sum over stages of what the largest fixed time has
    beyond the fitted one, over that of the time for rows, both times the number of tasks. The
    stages may all be at the same end.
    """
    samples = [batch.stages[stage_index] for run in runs for batch in run.batches]
    mean_s = _mean([sample.task_mean_s for sample in samples], weights)
    num_tasks = _mean([float(sample.num_tasks) for sample in samples], weights)
    rows = _mean(rows_per_task, weights)
    if stage.separation is Separation.BATCHES or stage.is_static:
        return TaskTime(mean_s, stage.task_fixed_s, stage.task_fixed_s, rows, num_tasks)
    sd_s = _fixed_sd_s(stage, samples, mean_s)
    if sd_s is None:
        reported_s = np.minimum(reported_s, [sample.task_mean_s for sample in samples])
        low_s = _mean(reported_s, weights) * (1.0 - _HALF_WIDTH_PER_SD * EMPTY_BATCH_SD_RATIO.value)
        if _has_own_operators(samples):
            low_s = max(low_s, mean_s - rows * MOST_SHUFFLED_ROW_S.value)
        high_s = mean_s - min(
            _least_for_rows_s(runs, stage_index, samples, weights), mean_s - low_s
        )
        return TaskTime(mean_s, low_s, high_s, rows, num_tasks, USUAL_ROWS_SHARE.value)
    half_s = _HALF_WIDTH_PER_SD * sd_s
    # Also below zero; the estimate is no longer in the middle where the time of a task ends it.
    low_s = stage.task_fixed_s - half_s
    high_s = min(stage.task_fixed_s + half_s, mean_s)
    share = (high_s - stage.task_fixed_s) / (high_s - low_s) if high_s > low_s else 0.0
    return TaskTime(mean_s, low_s, high_s, rows, num_tasks, share)


def at_usual_place(stage: StageProfile, time: TaskTime) -> StageProfile:
    """The stage with the fixed time of its tasks at the usual place in the range."""
    if time.fixed_high_s <= time.fixed_low_s:
        return stage
    per_row_s = (time.mean_s - time.fixed_s) / time.rows
    return replace(stage, task_fixed_s=time.fixed_s, task_per_row_s=per_row_s)


def row_cost_half_range(times: Sequence[TaskTime]) -> float:
    """How far the cost of a row may be from the fitted one, over that cost: (E43)."""
    half_s = sum(time.num_tasks * (time.fixed_high_s - time.fixed_s) for time in times)
    rows_s = sum(time.num_tasks * (time.mean_s - time.fixed_s) for time in times)
    return min(half_s / rows_s, 1.0) if rows_s > _LEAST_S else 0.0


def _mean(values: Sequence[float] | Array, weights: Array) -> float:
    return float(np.average(np.asarray(values, dtype=np.float64), weights=weights))


def _least_for_rows_s(
    runs: Sequence[QueryRun], stage_index: int, samples: Sequence[StageSample], weights: Array
) -> float:
    """CPU time of a task that can only be for its rows."""
    batches = [batch for run in runs for batch in run.batches]
    is_young = min(batch.jvm_age_s for batch in batches) < FRESH_JVM_S.value
    holds_state = batches[0].stages[stage_index].has_parents and any(
        batch.state.num_stores > 0 for batch in batches
    )
    if is_young or holds_state:
        return 0.0
    has_python = any(sample.python_s for sample in samples)
    set_up_sd_s = USUAL_PARTS_SD_WITH_PYTHON_S if has_python else USUAL_PARTS_SD_S
    cpu_s = _mean([sample.cpu_s / sample.num_tasks for sample in samples], weights)
    return max(cpu_s - Z90 * set_up_sd_s.value, 0.0)


def _has_own_operators(samples: Sequence[StageSample]) -> bool:
    """Whether a stage behind an exchange is known to run Spark's own operators only."""
    names = {operator.name for sample in samples for operator in sample.operators}
    return (
        samples[0].has_parents
        and bool(names)
        and not any(sample.python_s for sample in samples)
        and not any(_OF_USERS.search(name) for name in names)
    )


def _fixed_sd_s(stage: StageProfile, samples: Sequence[StageSample], mean_s: float) -> float | None:
    """Standard deviation of the fitted fixed time; None if it was not fitted."""
    if stage.separation is Separation.EMPTY and stage.task_fixed_s < mean_s - _LEAST_S:
        return EMPTY_BATCH_SD_RATIO.value * stage.task_fixed_s
    if stage.separation is not Separation.TASKS:
        return None
    unequal = [
        sample for sample in samples if sample.task_sd_s is not None and sample.rows_variance > 0.0
    ]
    if not unequal:
        return None
    unexplained_s2 = [
        max(
            (sample.task_sd_s or 0.0) ** 2
            - sample.rows_time_covariance_s**2 / sample.rows_variance,
            0.0,
        )
        for sample in unequal
    ]
    rows_variance = float(np.mean([sample.rows_variance for sample in unequal]))
    num_tasks = float(np.mean([sample.num_tasks for sample in unequal]))
    rows = float(np.mean([sample.rows_read / sample.num_tasks for sample in unequal]))
    return rows * math.sqrt(float(np.mean(unexplained_s2)) / (num_tasks * rows_variance))
