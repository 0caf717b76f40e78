"""Runs of a query -> the parameters of the duration model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from headway.domain import (
    Drift,
    DriverPhase,
    DurationNoise,
    RowsLaw,
    Separation,
    StageProfile,
    TasksRule,
)
from headway.models.arrays import Array
from headway.models.estimation.regression import (
    Prior,
    drift_exponent,
    is_spread,
    is_spread_within,
    lag_one_correlation,
    power_law,
    relative_huber,
    run_to_run_ratio,
)
from headway.models.job.duration import DurationModel, level_spans
from headway.models.laws.modes import slow_mode
from headway.profiler.streaming.batch_samples import PHASES
from headway.profiler.streaming.samples import BatchSample, QueryRun, StageSample

OTHER_PHASE = "other"
_MOST_ROUNDS = 20
_EXPONENT_TOLERANCE = 1e-3
_RUN_NOISE_RATIO = 0.1
_PARTS_SD_S, _PARTS_SD_WITH_PYTHON_S = 0.015, 0.030
_PARTITION_S = 0.0005
_LEAST_HOT_RATIO, _MOST_HOT_RATIO = 0.1, 0.99


@dataclass(frozen=True, slots=True, kw_only=True)
class DurationFit:
    """The fitted duration model and how it meets the runs it was fitted on."""

    driver_phases: tuple[DriverPhase, ...]
    stages: tuple[StageProfile, ...]
    noise: DurationNoise
    drift: Drift
    modelled_mean_s: tuple[float, ...]


def common_signature(runs: Sequence[QueryRun]) -> tuple[tuple[int, bool], ...]:
    """The stages that most batches have."""
    counts = Counter(batch.signature for run in runs for batch in run.batches)
    return counts.most_common(1)[0][0]


def fit_duration(runs: Sequence[QueryRun]) -> DurationFit:
    """Fit driver phases, task costs and noise on runs whose batches share one signature.

    Every run weighs the same however many batches it has: runs differ by more than the batches
    of one run do. Durations are brought to the age of the last run before the final fit, so that
    what compilation won in between is not mistaken for an effect of the settings.
    """
    drift = Drift(exponent=0.0, reference_age_s=_mean_age_s(runs[-1]))
    aged = list(runs)
    # The lines and the drift explain parts of the same differences: fitted in turn until neither
    # moves, they are fitted together.
    for _ in range(_MOST_ROUNDS):
        fit = _fit_at_one_age(aged)
        exponent = _fit_drift(runs, fit)
        if abs(exponent - drift.exponent) < _EXPONENT_TOLERANCE:
            break
        drift = replace(drift, exponent=exponent)
        aged = [_at_reference_age(run, drift) for run in runs]
    return replace(
        fit,
        drift=drift,
        modelled_mean_s=tuple(
            modelled_s * drift.factor(_mean_age_s(run))
            for modelled_s, run in zip(fit.modelled_mean_s, runs, strict=True)
        ),
    )


def _mean_age_s(run: QueryRun) -> float:
    return float(np.mean([batch.jvm_age_s for batch in run.batches]))


def _fit_drift(runs: Sequence[QueryRun], fit: DurationFit) -> float:
    driver_s = sum(phase.mean_s for phase in fit.driver_phases)
    modelled_s = np.concatenate([_modelled_s(run, driver_s, fit.stages) for run in runs])
    batches = [batch for run in runs for batch in run.batches]
    return drift_exponent(
        np.log([batch.duration_s for batch in batches]) - np.log(modelled_s),
        np.log([batch.jvm_age_s for batch in batches]),
        np.repeat(np.arange(len(runs)), [len(run.batches) for run in runs]),
    )


def _at_reference_age(run: QueryRun, drift: Drift) -> QueryRun:
    return replace(
        run, batches=tuple(_rescaled(batch, drift.factor(batch.jvm_age_s)) for batch in run.batches)
    )


def _rescaled(batch: BatchSample, factor: float) -> BatchSample:
    """The batch with every time in it divided by a factor."""
    return replace(
        batch,
        duration_s=batch.duration_s / factor,
        phases_s={name: seconds / factor for name, seconds in batch.phases_s.items()},
        state_commit_s=batch.state_commit_s / factor,
        stages_s=batch.stages_s / factor,
        stages=tuple(
            replace(
                stage,
                task_mean_s=stage.task_mean_s / factor,
                task_sd_s=None if stage.task_sd_s is None else stage.task_sd_s / factor,
                outside_run_s=stage.outside_run_s / factor,
                rows_time_covariance_s=stage.rows_time_covariance_s / factor,
                span_s=stage.span_s / factor,
            )
            for stage in batch.stages
        ),
    )


def _fit_at_one_age(runs: Sequence[QueryRun]) -> DurationFit:
    stages: tuple[StageProfile, ...] = ()
    for place in range(len(runs[0].batches[0].stages)):
        stages += (_fit_stage(runs, place, stages),)
    phases = _fit_driver_phases(runs)
    driver_s = sum(phase.mean_s for phase in phases)
    modelled = [_modelled_s(run, driver_s, stages) for run in runs]
    observed = [np.array([batch.duration_s for batch in run.batches]) for run in runs]
    ratios = [float(seen.mean() / fit.mean()) for seen, fit in zip(observed, modelled, strict=True)]
    residuals = [
        # The ratio of the run is fitted too: it takes one degree of freedom.
        (seen / (ratio * fit) - 1.0) * np.sqrt(len(seen) / (len(seen) - 1))
        for seen, fit, ratio in zip(observed, modelled, ratios, strict=True)
    ]
    batch_ratio = float(np.sqrt(np.mean(np.square(np.concatenate(residuals)))))
    slow = slow_mode(
        np.concatenate(
            [
                np.log(seen / (ratio * fit))
                for seen, fit, ratio in zip(observed, modelled, ratios, strict=True)
            ]
        )
    )
    return DurationFit(
        driver_phases=phases,
        stages=stages,
        noise=DurationNoise(
            batch_ratio=batch_ratio,
            autocorrelation=lag_one_correlation(residuals),
            run_to_run_ratio=run_to_run_ratio(np.log(ratios), 1 + 2 * len(stages), batch_ratio),
            slow_batch_share=slow.share,
            slow_batch_ratio=slow.ratio,
        ),
        drift=Drift(exponent=0.0, reference_age_s=_mean_age_s(runs[-1])),
        modelled_mean_s=tuple(float(fit.mean()) for fit in modelled),
    )


def _modelled_s(run: QueryRun, driver_s: float, stages: Sequence[StageProfile]) -> Array:
    configuration = run.configuration
    spans = level_spans(stages, configuration.num_slots, configuration.shuffle_partitions)
    rows = np.array([batch.num_rows for batch in run.batches], dtype=np.float64)
    return DurationModel(driver_s, spans).mean_s(rows)


def _weights(runs: Sequence[QueryRun]) -> Array:
    return np.concatenate([np.full(len(run.batches), 1.0 / len(run.batches)) for run in runs])


def _fit_driver_phases(runs: Sequence[QueryRun]) -> tuple[DriverPhase, ...]:
    weights = _weights(runs)
    batches = [batch for run in runs for batch in run.batches]
    seen = {name for batch in batches for name in batch.phases_s}
    names = [name for name in dict.fromkeys(PHASES.values()) if name in seen]
    columns = {
        name: np.array([batch.phases_s.get(name, 0.0) for batch in batches]) for name in names
    }
    if "add_batch" in columns:
        # What is left of addBatch without its stages is the driver's: physical planning, state
        # bookkeeping, job submission and the sink's commit.
        in_stages = np.array([batch.stages_s for batch in batches])
        columns["add_batch"] = np.maximum(columns["add_batch"] - in_stages, 0.0)
    total = np.array([sum(batch.phases_s.values()) for batch in batches])
    duration = np.array([batch.duration_s for batch in batches])
    columns[OTHER_PHASE] = np.maximum(duration - total, 0.0)
    return tuple(
        DriverPhase(
            name=name,
            mean_s=(mean_s := float(np.average(values, weights=weights))),
            sd_s=float(np.sqrt(np.average(np.square(values - mean_s), weights=weights))),
        )
        for name, values in columns.items()
    )


def _fit_stage(
    runs: Sequence[QueryRun], place: int, before: Sequence[StageProfile]
) -> StageProfile:
    weights = _weights(runs)
    batches = [batch for run in runs for batch in run.batches]
    samples = [batch.stages[place] for batch in batches]
    batch_rows = np.array([batch.num_rows for batch in batches], dtype=np.float64)
    has_tasks = all(sample.has_tasks for sample in samples)
    num_tasks = np.array([sample.num_tasks for sample in samples], dtype=np.float64)
    task_mean_s = np.maximum(np.array([sample.task_mean_s for sample in samples]), 1e-6)
    rows_read = np.array([sample.rows_read for sample in samples])
    if not np.all(rows_read > 0):
        rows_read = batch_rows  # a source that reports no input rows reads those of the batch
    rows_per_task = rows_read / num_tasks
    law = power_law(batch_rows, rows_read, weights)
    per_partition_s = 0.0
    mean_rows = float(np.average(rows_per_task, weights=weights))
    if is_spread(rows_per_task):
        terms = [np.ones_like(rows_per_task), rows_per_task]
        partitions = _partitions_written(runs, place)
        if _is_told_apart(partitions, np.column_stack(terms)):
            terms.append(partitions)
        prior = _prior(batches, place, len(terms)) if has_tasks else None
        fixed_s, per_row_s, *more = relative_huber(
            np.column_stack(terms), task_mean_s, weights, prior
        )
        per_partition_s = float(more[0]) if more else 0.0
        separation = Separation.BATCHES
    elif is_spread_within(np.array([sample.rows_variance for sample in samples]), rows_per_task):
        separation = Separation.TASKS
        mean_s = float(np.average(task_mean_s, weights=weights))
        slope_s = sum(sample.rows_time_covariance_s for sample in samples) / sum(
            sample.rows_variance for sample in samples
        )
        per_row_s = float(np.clip(slope_s, 0.0, mean_s / mean_rows))
        fixed_s = mean_s - per_row_s * mean_rows
    else:
        fixed_s, per_row_s = _by_parts(batches, place, mean_rows, task_mean_s, weights)
        if before and samples[0].has_parents:
            # What is left of a short task is mostly set-up: a row that was shuffled is charged
            # with no more than the dearest row before the exchange.
            dearest_s = max(stage.task_per_row_s for stage in before)
            total_s = fixed_s + per_row_s * mean_rows
            per_row_s = min(per_row_s, dearest_s)
            fixed_s = total_s - per_row_s * mean_rows
        separation = Separation.PARTS
    if not has_tasks:
        separation = Separation.TOTALS
    rule, num_source_tasks = _tasks_rule(runs, place)
    hot_share_ratio = _hot_share_ratio(samples) if rule is TasksRule.SHUFFLE else 0.0
    return StageProfile(
        name=f"stage {place}",
        level=samples[0].level,
        tasks_rule=rule,
        num_source_tasks=num_source_tasks,
        rows=RowsLaw(scale=law.scale, exponent=law.exponent),
        task_fixed_s=float(fixed_s),
        task_per_row_s=float(per_row_s),
        task_per_partition_s=per_partition_s,
        task_noise_ratio=_task_noise_ratio(
            [_beside_rows(sample) for sample in samples] if hot_share_ratio else samples, weights
        ),
        hot_share_ratio=hot_share_ratio,
        separation=separation,
    )


def _partitions_written(runs: Sequence[QueryRun], place: int) -> Array:
    """Readers that a task of the stage writes for: none where no exchange follows."""
    behind = runs[0].batches[0].stages[place + 1 : place + 2]
    followed = any(stage.has_parents for stage in behind)
    written = [run.configuration.shuffle_partitions if followed else 0 for run in runs]
    return np.repeat(np.array(written, dtype=np.float64), [len(run.batches) for run in runs])


def _is_told_apart(column: Array, terms: Array) -> bool:
    """Whether a column differs enough between batches beyond what the other terms explain.

    Two settings that differ in rows and partitions cannot tell what each of them costs.
    """
    explained = terms @ np.linalg.lstsq(terms, column)[0]
    return is_spread(column.mean() + column - explained)


def _by_parts(
    batches: Sequence[BatchSample], place: int, mean_rows: float, task_mean_s: Array, weights: Array
) -> tuple[float, float]:
    """Fixed: launch, deserialization, and the state commit. The rows are charged with the rest."""
    fixed = _parts_s(batches, place)
    fixed_s = float(np.average(np.minimum(fixed, task_mean_s), weights=weights))
    mean_s = float(np.average(task_mean_s, weights=weights))
    return fixed_s, (mean_s - fixed_s) / mean_rows


def _parts_s(batches: Sequence[BatchSample], place: int) -> Array:
    """What Spark reports of a task's time apart from its rows, for each batch."""
    fixed = np.array([batch.stages[place].outside_run_s for batch in batches])
    if _holds_state(batches[0], place):
        fixed = fixed + np.array(
            [batch.state_commit_s / batch.stages[place].num_tasks for batch in batches]
        )
    return np.asarray(fixed)


def _prior(batches: Sequence[BatchSample], place: int, num_terms: int) -> Prior:
    """What is known of fixed time, time per row and time per partition before any fit.

    The line through a few runs, each off by some per cent as a whole, leaves the time of a task
    without rows open by tens of milliseconds; what Spark reports of it is closer, but for what it
    does not report. A partition is a buffer and a part of a file.
    """
    parts_s = float(np.mean(_parts_s(batches, place)))
    runs_python = any(batch.stages[place].python_s for batch in batches)
    sd_s = _PARTS_SD_WITH_PYTHON_S if runs_python else _PARTS_SD_S
    return Prior(
        mean=np.array([parts_s, 0.0, _PARTITION_S])[:num_terms],
        sd=np.array([sd_s, np.inf, _PARTITION_S])[:num_terms],
        group_noise_ratio=_RUN_NOISE_RATIO,
    )


def _holds_state(batch: BatchSample, place: int) -> bool:
    """The state is committed in the last stage behind an exchange."""
    behind = [number for number, stage in enumerate(batch.stages) if stage.has_parents]
    return bool(behind) and place == behind[-1]


def _tasks_rule(runs: Sequence[QueryRun], place: int) -> tuple[TasksRule, int | None]:
    has_parents = runs[0].batches[0].stages[place].has_parents
    follows_partitions = has_parents and all(
        batch.stages[place].num_tasks == run.configuration.shuffle_partitions
        for run in runs
        for batch in run.batches
    )
    if follows_partitions:
        return TasksRule.SHUFFLE, None
    counts = [batch.stages[place].num_tasks for run in runs for batch in run.batches]
    return TasksRule.SOURCE, int(np.median(counts))


def _task_noise_ratio(samples: Sequence[StageSample], weights: Array) -> float:
    """Coefficient of variation of tasks of one batch, pooled over the batches that have several."""
    pairs = [
        (sample.task_sd_s / sample.task_mean_s, weight)
        for sample, weight in zip(samples, weights, strict=True)
        if sample.task_sd_s is not None and sample.task_mean_s > 0
    ]
    if not pairs:
        return 0.0
    ratios, ratio_weights = np.array(pairs).T
    return float(np.sqrt(np.average(np.square(ratios), weights=ratio_weights)))


def _hot_share_ratio(samples: Sequence[StageSample]) -> float:
    """Share of the rows that one task has beyond an even deal; 0 below a tenth.

    A hot key keeps its share however many tasks there are. What chance deals unevenly does not:
    of several numbers of tasks the one with the least share counts.
    """
    of_count: dict[int, list[float]] = {}
    for sample in samples:
        if sample.num_tasks > 1 and sample.rows_read > 0:
            even = 1.0 / sample.num_tasks
            beyond = (sample.rows_largest / sample.rows_read - even) / (1.0 - even)
            of_count.setdefault(sample.num_tasks, []).append(min(max(beyond, 0.0), _MOST_HOT_RATIO))
    least = min((float(np.median(shares)) for shares in of_count.values()), default=0.0)
    return least if least >= _LEAST_HOT_RATIO else 0.0


def _beside_rows(sample: StageSample) -> StageSample:
    """The spread of task times that their rows do not explain."""
    if sample.task_sd_s is None or sample.rows_variance <= 0:
        return sample
    explained_s2 = sample.rows_time_covariance_s**2 / sample.rows_variance
    return replace(sample, task_sd_s=max(sample.task_sd_s**2 - explained_s2, 0.0) ** 0.5)
