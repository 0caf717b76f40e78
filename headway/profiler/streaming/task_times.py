"""Times of the tasks of a stage: without rows, and by how much they differ.

A log shows the time without rows by its parts, empty batches and CPU time. Tasks differ by chance,
and because a key is hot, which gives one task more rows in every batch: its tasks are modelled by
that share; all other differences are noise.
"""

from __future__ import annotations

import numpy as np

from headway.limits import MOST_SPREAD_RATIO
from headway.models.arrays import Array
from headway.models.estimation.task_times import (
    Estimate,
    task_spread_ratio,
    time_without_rows,
    usual_fixed_time,
)
from headway.profiler.streaming.batch_sizes import weighted_mean
from headway.profiler.streaming.stage_runs import StageRuns
from headway.profiler.streaming.times_at_age import StageTimes


def parts_s(stage: StageRuns, times: StageTimes) -> Array:
    """Reported time of a task that does not depend on rows, for each batch."""
    of_stage_s = times.state_commit_s * stage.commit_shares
    return np.asarray(times.outside_run_s + of_stage_s / stage.num_tasks)


def usual_fixed_time_of(stage: StageRuns, times: StageTimes, reported_s: Array) -> Estimate | None:
    """The fixed time of a task by (E46); None if that is not known of its stage."""
    if stage.cpu_s <= 0.0 or not stage.runs_own_operators:
        return None
    return usual_fixed_time(
        weighted_mean(np.minimum(reported_s, times.task_mean_s), stage.weights),
        weighted_mean(times.task_mean_s, stage.weights),
        stage.cpu_s,
        is_behind_exchange=stage.samples[0].has_parents,
    )


def without_rows(
    stage: StageRuns, times: StageTimes, per_partition_s: float
) -> tuple[float, float] | None:
    """Fixed time of a task from batches without rows, and its spread; None if there are none."""
    almost_empty = stage.almost_empty(times.task_mean_s, times.empty_task_s)
    return time_without_rows(almost_empty, per_partition_s)


def task_noise_ratio(stage: StageRuns, times: StageTimes) -> float:
    """Coefficient of variation of tasks of one batch, over the batches that have several.

    Where one task has more rows than the others, what their rows explain is left out.
    """
    has_hot_key = stage.hot_share_ratio > 0
    sd_s = np.sqrt(unexplained_s2(stage, times)) if has_hot_key else times.task_sd_s
    num_seen = stage.num_seen
    has_spread = np.isfinite(sd_s) & (times.task_mean_s > 0) & (num_seen > 1)
    if not has_spread.any():
        return 0.0
    sd_ratios = sd_s[has_spread] / times.task_mean_s[has_spread]
    ratio = task_spread_ratio(sd_ratios, num_seen[has_spread], stage.weights[has_spread])
    return min(ratio, MOST_SPREAD_RATIO)


def unexplained_s2(stage: StageRuns, times: StageTimes) -> Array:
    """Variance of task times that the rows of the tasks do not explain, for each batch [s2]."""
    differ = stage.rows_variances > 0.0
    explained_s2 = np.square(times.rows_time_covariance_s) / np.where(
        differ, stage.rows_variances, np.inf
    )
    return np.maximum(np.square(times.task_sd_s) - explained_s2, 0.0)
