"""One stage of a query's batches -> costs of its tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from headway.assumptions import fits
from headway.domain import Separation, StageProfile
from headway.few_numbers import distinct
from headway.models.estimation.regression import Prior, relative_huber
from headway.models.estimation.task_times import handover_s
from headway.models.stages.makespan import makespan_moments
from headway.profiler.streaming import task_times
from headway.profiler.streaming.batch_sizes import weighted_mean
from headway.profiler.streaming.stage_runs import CostTerms, StageRuns
from headway.profiler.streaming.times_at_age import StageTimes, by_run

_SHORTEST_S = 1e-6


def fit_stage(
    stage: StageRuns,
    times: StageTimes,
    earlier_stages: Sequence[StageProfile],
    *,
    at_one_size: bool = False,
) -> tuple[StageProfile, float, task_times.TaskTime | None]:
    """Costs of the tasks of one stage, and the time to hand over their slots [s].

    With ``at_one_size`` the fixed time is at the usual place in the range that batches of one size
    leave open, which comes third.
    """
    noise_ratio = task_times.task_noise_ratio(stage, times)
    fitted = replace(stage.without_costs, task_noise_ratio=noise_ratio)
    if stage.cost_terms is not None:
        fitted = _by_batches(fitted, stage, times, stage.cost_terms)
    else:
        fixed_s, per_row_s, separation = _costs(stage, times, earlier_stages)
        fitted = replace(
            fitted,
            task_fixed_s=float(fixed_s),
            task_per_row_s=float(per_row_s),
            separation=separation,
        )
    if not stage.has_tasks:
        fitted = replace(fitted, separation="totals")
    time = task_times.task_time(stage, times, fitted) if at_one_size else None
    if time is not None and time.fixed_high_s > time.fixed_low_s:
        per_row_s = (time.mean_s - time.fixed_s) / time.rows
        fitted = replace(fitted, task_fixed_s=time.fixed_s, task_per_row_s=per_row_s)
    taken_s = min(_handover_s(stage, times, fitted), fitted.task_fixed_s)
    # By then, the next task has the slot already, so it is not part of slot time.
    fitted = replace(
        fitted,
        task_fixed_s=fitted.task_fixed_s - taken_s,
        is_barrier=_is_barrier(stage, fitted) or None,
    )
    return fitted, taken_s, time


def _is_barrier(stage: StageRuns, fitted: StageProfile) -> bool:
    """Whether its tasks start together, which the slots that were counted must have room for."""
    return all(
        batch.stages[stage.stage_index].is_barrier
        and batch.stages[stage.stage_index].num_tasks
        <= fitted.usable_slots(run.configuration.num_slots)
        for run in stage.runs
        for batch in run.batches
    )


def _costs(
    stage: StageRuns, times: StageTimes, earlier_stages: Sequence[StageProfile]
) -> tuple[float, float, Separation]:
    """Times of a task without rows and per row [s], and what tells them apart."""
    task_mean_s, weights = np.maximum(times.task_mean_s, _SHORTEST_S), stage.weights
    mean_s = weighted_mean(task_mean_s, weights)
    mean_rows = weighted_mean(stage.task_rows, weights)
    if stage.has_unequal_tasks:
        covariances_s, variances = times.rows_time_covariance_s, stage.rows_variances
        slope_s = sum(covariances_s.tolist()) / sum(variances.tolist())
        per_row_s = float(np.clip(slope_s, 0.0, mean_s / mean_rows))
        return mean_s - per_row_s * mean_rows, per_row_s, "tasks"
    empty = task_times.without_rows(stage, times, 0.0)
    if empty is not None:
        fixed_s = min(empty[0], mean_s)
        return fixed_s, (mean_s - fixed_s) / mean_rows, "empty"
    # Launch, deserialization and the state commit are fixed time; the rest is for rows.
    fixed_s = weighted_mean(np.minimum(task_times.parts_s(stage, times), task_mean_s), weights)
    per_row_s = (mean_s - fixed_s) / mean_rows
    if earlier_stages and stage.samples[0].has_parents:
        # The rest of a short task is mostly set-up, so the cost of a shuffled row is at most that
        # of the most expensive row before the exchange.
        dearest_s = max(earlier.task_per_row_s for earlier in earlier_stages)
        total_s = fixed_s + per_row_s * mean_rows
        per_row_s = min(per_row_s, dearest_s)
        fixed_s = total_s - per_row_s * mean_rows
    return fixed_s, per_row_s, "parts"


def _by_batches(
    without_costs: StageProfile, stage: StageRuns, times: StageTimes, terms: CostTerms
) -> StageProfile:
    """The stage with the costs that batches of several sizes tell apart."""
    task_mean_s = np.maximum(times.task_mean_s, _SHORTEST_S)
    prior = _prior(stage, times, terms) if stage.has_tasks else None
    fixed_s, per_row_s, *extra_costs_s = relative_huber(
        terms.columns, task_mean_s, stage.weights, prior
    ).tolist()
    # The state is known as a whole, of which the stage has a part.
    per_state_row_s = terms.state_share * extra_costs_s.pop() if terms.tells_state else 0.0
    return replace(
        without_costs,
        task_fixed_s=fixed_s,
        task_per_row_s=per_row_s,
        task_per_partition_s=extra_costs_s.pop() if terms.tells_partitions else 0.0,
        task_per_state_row_s=per_state_row_s,
        separation="batches",
    )


def _handover_s(stage: StageRuns, times: StageTimes, fitted: StageProfile) -> float:
    """Time of a stage in excess of its slots' time, if it is alone on its level."""
    levels = [other.level for other in stage.batches[0].stages]
    if levels.count(fitted.level) > 1 or fitted.hot_share_ratio > 0:
        return 0.0
    waves = []
    for run, counts in zip(stage.runs, by_run(stage.num_tasks, stage.runs), strict=True):
        usable_slots = fitted.usable_slots(run.configuration.num_slots)
        numbers = distinct(counts)
        makespans = [
            makespan_moments(int(num_tasks), usable_slots, fitted.task_noise_ratio).mean
            for num_tasks in numbers.tolist()
        ]
        waves.append(np.array(makespans)[np.searchsorted(numbers, counts)])
    return handover_s(
        times.span_s, times.task_mean_s, np.concatenate(waves), times.outside_run_s, stage.weights
    )


def _prior(stage: StageRuns, times: StageTimes, terms: CostTerms) -> Prior:
    """Prior of fixed time, time per row, per partition and per row of state.

    A line through a few runs, each of which deviates by some per cent as a whole, determines the
    time of a task without rows only to tens of milliseconds. Batches without rows show it;
    otherwise, the time that Spark reports is closer, except for parts that it does not report. A
    partition is a buffer and a part of a file.
    """
    partition_s = fits.USUAL_PARTITION_S.value
    state_row_s, state_row_sd_s = 0.0, np.inf
    if terms.copies_join:
        state_row_s = state_row_sd_s = fits.USUAL_STATE_ROW_S.value
    reported_s = task_times.parts_s(stage, times)
    fixed = task_times.without_rows(stage, times, partition_s if terms.tells_partitions else 0.0)
    if fixed is None:
        fixed = task_times.usual_fixed_time_of(stage, times, reported_s)
    if fixed is None:
        runs_python = any(sample.python_s for sample in stage.samples)
        fixed = (
            float(np.mean(reported_s)),
            fits.USUAL_PARTS_SD_WITH_PYTHON_S.value if runs_python else fits.USUAL_PARTS_SD_S.value,
        )
    fixed_s, fixed_sd_s = fixed
    is_fitted = np.array([True, True, terms.tells_partitions, terms.tells_state])
    return (
        np.array([fixed_s, 0.0, partition_s, state_row_s])[is_fitted],
        np.array([fixed_sd_s, np.inf, partition_s, state_row_sd_s])[is_fitted],
    )
