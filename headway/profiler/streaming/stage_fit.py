"""One stage of a query's batches -> costs of its tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from headway.assumptions.fits import (
    USUAL_PARTITION_S,
    USUAL_PARTS_SD_S,
    USUAL_PARTS_SD_WITH_PYTHON_S,
    USUAL_STATE_ROW_S,
)
from headway.domain import Coalescing, RowsLaw, Separation, StageProfile, TasksRule
from headway.domain.profile import is_rocksdb
from headway.lazy_classes import dataclass
from headway.models.arrays import Array
from headway.models.estimation.regression import (
    Prior,
    is_spread,
    is_spread_within,
    power_law,
    relative_huber,
)
from headway.models.estimation.task_times import handover_s
from headway.models.stages.makespan import makespan_moments
from headway.profiler.streaming.adaptive import coalescing_of
from headway.profiler.streaming.one_size import (
    TaskTime,
    at_usual_place,
    state_grows,
    task_time,
    without_feedback,
)
from headway.profiler.streaming.samples import QueryRun, batches_of
from headway.profiler.streaming.source_rules import source_reading
from headway.profiler.streaming.stage_kinds import stage_work
from headway.profiler.streaming.static_stages import static_rows
from headway.profiler.streaming.task_times import (
    batch_weights,
    hot_share_ratio,
    num_readers,
    parts_s,
    runs_code_of_users,
    state_shares,
    task_noise_ratio,
    usual_fixed_time_of,
    weighted_mean,
    without_rows,
)

_BATCHES_WITH_NAMES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFit:
    """A stage, and the driver's time to read the result of a level's last task.

    ``task_time`` is the range of the fixed time if all batches have one size; else None.
    """

    stage: StageProfile
    handover_s: float
    task_time: TaskTime | None = None


def fit_stage(
    runs: Sequence[QueryRun],
    stage_index: int,
    earlier_stages: Sequence[StageProfile],
    tables: frozenset[int] = frozenset(),
    *,
    at_one_size: bool = False,
) -> StageFit:
    """Costs of the tasks of one stage, and the time to hand over their slots.

    ``tables`` are the indices of stages that read static tables. With ``at_one_size`` the fixed
    time is at the usual place in the range that batches of one size leave open.
    """
    fitted = _fit_stage(runs, stage_index, earlier_stages, tables)
    time = task_time(runs, stage_index, fitted) if at_one_size else None
    if time is not None:
        fitted = at_usual_place(fitted, time)
    taken_s = min(_handover_s(runs, stage_index, fitted), fitted.task_fixed_s)
    # By then, the next task has the slot already, so it is not part of slot time.
    stage = replace(
        fitted,
        task_fixed_s=fitted.task_fixed_s - taken_s,
        is_barrier=_is_barrier(runs, stage_index, fitted) or None,
    )
    return StageFit(stage=stage, handover_s=taken_s, task_time=time)


def _is_barrier(runs: Sequence[QueryRun], stage_index: int, stage: StageProfile) -> bool:
    """Whether its tasks start together, which the slots that were counted must have room for."""
    return all(
        batch.stages[stage_index].is_barrier
        and batch.stages[stage_index].num_tasks <= stage.usable_slots(run.configuration.num_slots)
        for run in runs
        for batch in run.batches
    )


def _fit_stage(
    runs: Sequence[QueryRun],
    stage_index: int,
    earlier_stages: Sequence[StageProfile],
    tables: frozenset[int],
) -> StageProfile:
    weights = batch_weights(runs)
    batches = batches_of(runs)
    samples = [batch.stages[stage_index] for batch in batches]
    batch_rows = np.array([batch.num_rows for batch in batches], dtype=np.float64)
    has_tasks = all(sample.has_tasks for sample in samples)
    num_tasks = np.array([sample.num_tasks for sample in samples], dtype=np.float64)
    task_mean_s = np.maximum(np.array([sample.task_mean_s for sample in samples]), 1e-6)
    rows_read = np.array([sample.rows_read for sample in samples])
    if not np.all(rows_read > 0):
        rows_read = batch_rows  # a source that reports no input rows reads those of the batch
    task_rows = rows_read / num_tasks
    if stage_index in tables:
        law = RowsLaw(scale=0.0, exponent=0.0, static_rows=float(np.median(rows_read)))
    else:
        of_tables = static_rows(runs, stage_index, tables)
        of_stream = power_law(batch_rows, rows_read - of_tables, weights)
        law = replace(of_stream, static_rows=of_tables)
    per_partition_s, per_state_row_s = 0.0, 0.0
    mean_s, mean_rows = weighted_mean(task_mean_s, weights), weighted_mean(task_rows, weights)
    if is_spread(task_rows) and is_spread(task_rows * without_feedback(runs)):
        terms = [np.ones_like(task_rows), task_rows]
        partitions = _partitions_written(runs, stage_index)
        tells_partitions = _is_separable(partitions, np.column_stack(terms))
        if tells_partitions:
            terms.append(partitions)
        held_rows = np.concatenate([run.held_rows for run in runs])
        in_stage = state_shares(batches, stage_index)
        in_store = held_rows * in_stage / num_tasks
        copies_join = has_tasks and _copies_a_join(runs[-1], in_stage)
        tells_state = copies_join or (
            _state_grows(runs, in_stage) and _is_separable(in_store, np.column_stack(terms))
        )
        if tells_state:
            terms.append(in_store)
        prior = None
        if has_tasks:
            prior = _prior(runs, stage_index, tells_partitions, tells_state, copies_join)
        fixed_s, per_row_s, *extra_costs_s = (
            float(value)
            for value in relative_huber(np.column_stack(terms), task_mean_s, weights, prior)
        )
        if tells_state:
            # The state is known as a whole, of which the stage has a part.
            part = float((held_rows * in_stage).sum()) / max(float(held_rows.sum()), 1.0)
            per_state_row_s = part * extra_costs_s.pop()
        per_partition_s = extra_costs_s.pop() if tells_partitions else 0.0
        separation = Separation.BATCHES
    elif not runs_code_of_users(samples) and is_spread_within(
        np.array([sample.rows_variance for sample in samples]), task_rows
    ):
        separation = Separation.TASKS
        slope_s = sum(sample.rows_time_covariance_s for sample in samples) / sum(
            sample.rows_variance for sample in samples
        )
        per_row_s = float(np.clip(slope_s, 0.0, mean_s / mean_rows))
        fixed_s = mean_s - per_row_s * mean_rows
    elif (empty := without_rows(runs, stage_index, 0.0)) is not None:
        separation = Separation.EMPTY
        fixed_s = min(empty[0], mean_s)
        per_row_s = (mean_s - fixed_s) / mean_rows
    else:
        # Launch, deserialization and the state commit are fixed time; the rest is for rows.
        fixed_s = weighted_mean(np.minimum(parts_s(batches, stage_index), task_mean_s), weights)
        per_row_s = (mean_s - fixed_s) / mean_rows
        if earlier_stages and samples[0].has_parents:
            # The rest of a short task is mostly set-up, so the cost of a shuffled row is at most
            # that of the most expensive row before the exchange.
            dearest_s = max(stage.task_per_row_s for stage in earlier_stages)
            total_s = fixed_s + per_row_s * mean_rows
            per_row_s = min(per_row_s, dearest_s)
            fixed_s = total_s - per_row_s * mean_rows
        separation = Separation.PARTS
    if not has_tasks:
        separation = Separation.TOTALS
    coalescing = coalescing_of(runs, stage_index)
    rule, num_source_tasks = _tasks_rule(
        runs, stage_index, coalescing, is_static=stage_index in tables
    )
    reads_source = rule is TasksRule.SOURCE
    hot_ratio = hot_share_ratio(samples) if rule is TasksRule.SHUFFLE else 0.0
    return StageProfile(
        name=f"stage {stage_index}",
        work=stage_work(
            samples[0].kind, [sample.operators for sample in samples], _actions(runs, tables)
        ),
        level=samples[0].level,
        tasks_rule=rule,
        num_source_tasks=num_source_tasks,
        coalescing=coalescing,
        source_tasks=source_reading(runs, stage_index)[0] if reads_source else None,
        resources=runs[-1].resources.get(samples[-1].resource_profile_id),
        rows=law,
        task_fixed_s=float(fixed_s),
        task_per_row_s=float(per_row_s),
        task_per_partition_s=per_partition_s,
        task_per_state_row_s=per_state_row_s,
        task_noise_ratio=task_noise_ratio(samples, weights, has_hot_key=hot_ratio > 0),
        hot_share_ratio=hot_ratio,
        separation=separation,
    )


def _handover_s(runs: Sequence[QueryRun], stage_index: int, stage: StageProfile) -> float:
    """Time of a stage in excess of its slots' time, if it is alone on its level."""
    samples = [batch.stages[stage_index] for batch in batches_of(runs)]
    levels = [other.level for other in runs[0].batches[0].stages]
    if levels.count(stage.level) > 1 or stage.hot_share_ratio > 0:
        return 0.0
    waves = [
        makespan_moments(
            batch.stages[stage_index].num_tasks, usable_slots, stage.task_noise_ratio
        ).mean
        for run in runs
        for usable_slots in [stage.usable_slots(run.configuration.num_slots)]
        for batch in run.batches
    ]
    return handover_s(
        np.array([sample.span_s for sample in samples]),
        np.array([sample.task_mean_s for sample in samples]),
        np.array(waves),
        np.array([sample.outside_run_s for sample in samples]),
        batch_weights(runs),
    )


def _partitions_written(runs: Sequence[QueryRun], stage_index: int) -> Array:
    written = [num_readers(run, stage_index) for run in runs]
    return np.repeat(np.array(written, dtype=np.float64), [len(run.batches) for run in runs])


def _is_separable(column: Array, terms: Array) -> bool:
    """Whether a column differs enough between batches beyond what the other terms explain.

    Two settings that differ in both rows and partitions do not separate their costs.
    """
    explained = terms @ np.linalg.lstsq(terms, column, rcond=None)[0]
    return is_spread(column.mean() + column - explained)


def _prior(
    runs: Sequence[QueryRun],
    stage_index: int,
    tells_partitions: bool,
    tells_state: bool,
    copies_join: bool,
) -> Prior:
    """Prior of fixed time, time per row, per partition and per row of state.

    A line through a few runs, each of which deviates by some per cent as a whole, determines the
    time of a task without rows only to tens of milliseconds. Batches without rows show it;
    otherwise, the time that Spark reports is closer, except for parts that it does not report. A
    partition is a buffer and a part of a file.
    """
    partition_s = USUAL_PARTITION_S.value
    state_row_s, state_row_sd_s = (USUAL_STATE_ROW_S.value,) * 2 if copies_join else (0.0, np.inf)
    batches = batches_of(runs)
    samples = [batch.stages[stage_index] for batch in batches]
    reported_s = parts_s(batches, stage_index)
    fixed = without_rows(runs, stage_index, partition_s if tells_partitions else 0.0)
    if fixed is None:
        fixed = usual_fixed_time_of(samples, reported_s, batch_weights(runs))
    if fixed is None:
        runs_python = any(sample.python_s for sample in samples)
        fixed = (
            float(np.mean(reported_s)),
            USUAL_PARTS_SD_WITH_PYTHON_S.value if runs_python else USUAL_PARTS_SD_S.value,
        )
    fixed_s, fixed_sd_s = fixed
    is_fitted = np.array([True, True, tells_partitions, tells_state])
    return Prior(
        mean=np.array([fixed_s, 0.0, partition_s, state_row_s])[is_fitted],
        sd=np.array([fixed_sd_s, np.inf, partition_s, state_row_sd_s])[is_fitted],
    )


def _state_grows(runs: Sequence[QueryRun], in_stage: Array) -> bool:
    """Whether the state of a stage grows during most runs, like an unbounded one.

    State that follows the rate differs only between runs, like the rows, so their costs cannot be
    separated.

    Notes
    -----
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
    of_runs = np.split(in_stage, np.cumsum([len(run.batches) for run in runs])[:-1])
    return 2 * sum(map(state_grows, runs, of_runs)) > len(runs)


def _copies_a_join(last: QueryRun, in_stage: Array) -> bool:
    """Whether a stage holds the rows of two joined streams in a store that copies them (E29)."""
    holds_rows = in_stage[-len(last.batches)] > 0.0
    return bool(holds_rows and last.shape.keeps_rows and not is_rocksdb(last.state_store))


def _actions(runs: Sequence[QueryRun], tables: frozenset[int]) -> dict[int, str | None]:
    """SQL executions of a batch that write, or read more than tables, and what each writes.

    `foreachBatch` has several. What they write is known of one batch in four.
    """
    first_batches = [batch for run in runs for batch in run.batches[:_BATCHES_WITH_NAMES]]
    actions: dict[int, str | None] = {}
    for stage_index, kind in enumerate(runs[0].batches[0].kinds):
        writes = (batch.stages[stage_index].write for batch in first_batches)
        write = next(filter(None, writes), None)
        if write is not None or stage_index not in tables:
            actions[kind.write] = actions.get(kind.write) or write
    return actions


def _tasks_rule(
    runs: Sequence[QueryRun], stage_index: int, coalescing: Coalescing | None, *, is_static: bool
) -> tuple[TasksRule, int | None]:
    has_parents = runs[0].batches[0].stages[stage_index].has_parents
    follows_partitions = has_parents and all(
        batch.stages[stage_index].num_tasks == run.configuration.shuffle_partitions
        for run in runs
        for batch in run.batches
    )
    if follows_partitions and coalescing is None:
        return TasksRule.SHUFFLE, None
    counts = [batch.stages[stage_index].num_tasks for batch in batches_of(runs)]
    if coalescing is not None:
        return TasksRule.COALESCED, max(int(np.median(counts)), 1)
    rule = TasksRule.FIXED if is_static or has_parents else TasksRule.SOURCE
    return rule, int(np.median(counts))
