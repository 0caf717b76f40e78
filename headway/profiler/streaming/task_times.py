"""Times of the tasks of a stage: without rows, and by how much they differ.

A log shows the time without rows by its parts, empty batches and CPU time; batches of one size only
show bounds of it. Tasks differ by chance, and because a key is hot, which gives one task more rows
in every batch: its tasks are modelled by that share; all other differences are noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from headway.assumptions import fits
from headway.domain import Z90, StageProfile
from headway.limits import MOST_SPREAD_RATIO
from headway.models.arrays import Array
from headway.models.estimation.task_times import (
    Estimate,
    combined,
    task_spread_ratio,
    time_without_rows,
    usual_fixed_time,
    within,
)
from headway.profiler.streaming.batch_sizes import weighted_mean
from headway.profiler.streaming.stage_runs import StageRuns
from headway.profiler.streaming.times_at_age import StageTimes

# Half the width of a uniform distribution over its standard deviation.
_HALF_WIDTH_PER_SD = math.sqrt(3.0)
_LEAST_S = 1e-9
_LEAST_ROWS = 1e-9
# Of the fixed time that Spark reports: commits take longer with rows, too.
_LEAST_REPORTED_SHARE = 1.0 - _HALF_WIDTH_PER_SD * fits.EMPTY_BATCH_SD_RATIO.value


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


def without_rows(stage: StageRuns, times: StageTimes, per_partition_s: float) -> Estimate | None:
    """Fixed time of a task from batches without rows, and its spread; None if there are none."""
    almost_empty = stage.almost_empty(times.task_mean_s, times.empty_task_s)
    return time_without_rows(almost_empty, per_partition_s)


def task_noise_ratio(stage: StageRuns, times: StageTimes) -> float:
    """Coefficient of variation of tasks of one batch, over the batches that have several.

    Where one task has more rows than the others, what their rows explain is left out.
    """
    has_hot_key = stage.without_costs.hot_share_ratio > 0
    sd_s = np.sqrt(unexplained_s2(stage, times)) if has_hot_key else times.task_sd_s
    num_seen = np.array([sample.num_seen for sample in stage.samples], dtype=np.float64)
    has_spread = np.isfinite(sd_s) & (times.task_mean_s > 0) & (num_seen > 1)
    if not has_spread.any():
        return 0.0
    sd_ratios = sd_s[has_spread] / times.task_mean_s[has_spread]
    ratio = task_spread_ratio(sd_ratios, num_seen[has_spread], stage.weights[has_spread])
    return min(ratio, MOST_SPREAD_RATIO)


def unexplained_s2(stage: StageRuns, times: StageTimes) -> Array:
    """Variance of task times that the rows of the tasks do not explain, for each batch [s2]."""
    variances = np.where(stage.rows_variances > 0.0, stage.rows_variances, np.inf)
    explained_s2 = np.square(times.rows_time_covariance_s) / variances
    return np.maximum(np.square(times.task_sd_s) - explained_s2, 0.0)


class TaskTime(NamedTuple):
    """Time of a task, the range of its part without rows [s], its rows, and tasks of a batch.

    The rows of its stage grow with those of the batch by ``rows_exponent``.
    """

    mean_s: float
    fixed_low_s: float
    fixed_high_s: float
    rows: float
    num_tasks: float
    rows_share: float = 0.0
    rows_exponent: float = 1.0

    @property
    def fixed_s(self) -> float:
        """The place in the range that is usual."""
        below_s = self.rows_share * (self.fixed_high_s - self.fixed_low_s)
        return max(self.fixed_high_s - below_s, 0.0)


def task_time(stage: StageRuns, times: StageTimes, fitted: StageProfile) -> TaskTime:
    r"""The time of a task without rows, as far as batches of one size determine it.

    Without a range if the batches of the ``fitted`` stage determine its costs by other differences
    than their rows.

    **(E43)** If the rows of all batches are not spread by (E2), the fixed time `t_0` of a task that
    takes `t` is only known to be in a range, and the rest of `t` is for the rows. It is at least
    what Spark reports of it, (E32), less a deviation of 30%, since commits take longer with rows,
    too; and behind an exchange, a row takes Spark's own operators 10 ms at most, so tasks of few
    rows are mostly fixed. Where (E46) applies, the fit takes the mean of its normal distribution
    within these bounds, and the range is that give or take `sqrt(3)` standard deviations, as wide
    as the uniform distribution with that deviation. Batches without rows (E32) and tasks of unequal
    rows (E2) are a further estimate, weighted by its precision, or the only one; the mean of both
    is then kept within the bounds, and may be all of the time. Without any of them, not more of the
    CPU time `u` than 1.645 times the standard deviation of (E3) is set-up that Spark does not
    report, so the rows take at least `u` less that; waiting may be either. This bound is not used
    in a JVM younger than 30 s, nor for stages behind an exchange of a query with state, whose whole
    map may be copied. The fit then takes the usual place in the range: three quarters of it are for
    the rows. The standard deviation of a slope between tasks is `sqrt(v/(T V))`, with `T` tasks of
    a batch whose rows have the variance `V`, and `v` the variance of their times that rows do not
    explain: the same partitions return in each batch. If batches without rows took as long as
    others, they say nothing. The cost per row of the whole job may be off by the share `h`: the sum
    over stages of what the largest fixed time has beyond the fitted one, over that of the time for
    rows, both times the number of tasks and the exponent `e` of (E4): rows that do not follow those
    of the batch add nothing to larger ones. The stages may all be at the same end.
    """
    weights = stage.weights
    mean_s = weighted_mean(times.task_mean_s, weights)
    time = TaskTime(
        mean_s=mean_s,
        fixed_low_s=fitted.task_fixed_s,
        fixed_high_s=fitted.task_fixed_s,
        rows=weighted_mean(np.maximum(stage.rows_of_tasks, _LEAST_ROWS), weights),
        num_tasks=weighted_mean(stage.num_tasks, weights),
        rows_exponent=fitted.rows.exponent,
    )
    if fitted.separation == "batches" or fitted.is_static:
        return time
    reported_s = np.minimum(parts_s(stage, times), times.task_mean_s)
    low_s = weighted_mean(reported_s, weights) * _LEAST_REPORTED_SHARE
    if stage.samples[0].has_parents and stage.runs_own_operators:
        low_s = max(low_s, mean_s - time.rows * fits.MOST_SHUFFLED_ROW_S.value)
    usual = usual_fixed_time_of(stage, times, reported_s)
    sd_s = _fixed_sd_s(stage, times, fitted, mean_s)
    if usual is not None:
        if sd_s is None:
            return _around(*within(usual, low_s, mean_s), time)
        both = combined((usual, (fitted.task_fixed_s, sd_s)))
        # What was measured without rows may be all of the time.
        fixed_s = float(np.clip(both[0], low_s, mean_s))
        return _around(fixed_s, within(both, low_s, mean_s)[1], time)
    if sd_s is None:
        for_rows_s = min(_least_for_rows_s(stage), mean_s - low_s)
        return time._replace(
            fixed_low_s=low_s,
            fixed_high_s=mean_s - for_rows_s,
            rows_share=fits.USUAL_ROWS_SHARE.value,
        )
    return _around(fitted.task_fixed_s, sd_s, time)


def _around(fixed_s: float, sd_s: float, time: TaskTime) -> TaskTime:
    """A range as wide as the uniform distribution with the deviation of an estimate.

    It may begin below zero. Where the time of a task ends it, the estimate is not in its middle.
    """
    half_s = _HALF_WIDTH_PER_SD * sd_s
    low_s, high_s = fixed_s - half_s, min(fixed_s + half_s, time.mean_s)
    share = (high_s - fixed_s) / (high_s - low_s) if high_s > low_s else 0.0
    return time._replace(fixed_low_s=low_s, fixed_high_s=high_s, rows_share=share)


def row_cost_half_range(times: Sequence[TaskTime]) -> float:
    """How far the cost of a row may be from the fitted one, over that cost: (E43)."""
    # Rows that are as many in every batch take time, but none that larger batches add.
    weighted = [(time, time.rows_exponent * time.num_tasks) for time in times]
    half_s = sum(weight * (time.fixed_high_s - time.fixed_s) for time, weight in weighted)
    rows_s = sum(weight * (time.mean_s - time.fixed_s) for time, weight in weighted)
    return min(half_s / rows_s, 1.0) if rows_s > _LEAST_S else 0.0


def _least_for_rows_s(stage: StageRuns) -> float:
    """CPU time of a task that can only be for its rows."""
    batches, samples = stage.batches, stage.samples
    is_young = min(batch.jvm_age_s for batch in batches) < fits.FRESH_JVM_S.value
    holds_state = samples[0].has_parents and any(batch.state.num_stores > 0 for batch in batches)
    if is_young or holds_state:
        return 0.0
    has_python = any(sample.python_s for sample in samples)
    set_up_sd_s = fits.USUAL_PARTS_SD_WITH_PYTHON_S if has_python else fits.USUAL_PARTS_SD_S
    return max(stage.cpu_s - Z90 * set_up_sd_s.value, 0.0)


def _fixed_sd_s(
    stage: StageRuns, times: StageTimes, fitted: StageProfile, mean_s: float
) -> float | None:
    """Standard deviation of the fitted fixed time; None if it was not fitted."""
    if fitted.separation == "empty" and fitted.task_fixed_s < mean_s - _LEAST_S:
        return fits.EMPTY_BATCH_SD_RATIO.value * fitted.task_fixed_s
    if fitted.separation != "tasks":
        return None
    unequal = np.isfinite(times.task_sd_s) & (stage.rows_variances > 0.0)
    if not unequal.any():
        return None
    rows_variance = float(np.mean(stage.rows_variances[unequal]))
    num_tasks = float(np.mean(stage.num_tasks[unequal]))
    rows_read = np.array([sample.rows_read for sample in stage.samples])[unequal]
    rows = float(np.mean(rows_read / stage.num_tasks[unequal]))
    variance_s2 = float(np.mean(unexplained_s2(stage, times)[unequal]))
    return rows * math.sqrt(variance_s2 / (num_tasks * rows_variance))
