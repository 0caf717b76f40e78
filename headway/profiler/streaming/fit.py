"""Runs of a query -> the parameters of the duration model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from headway.domain import Configuration, Drift, DriverPhase, DurationNoise, StageProfile
from headway.domain.profile import CHECKPOINT_PHASES
from headway.lazy_classes import changed, dataclass
from headway.limits import MOST_SPREAD_RATIO
from headway.models.arrays import Array
from headway.models.estimation.batch_noise import batch_spread
from headway.models.estimation.regression import (
    drift_exponent,
    driver_drift_exponent,
    lag_one_correlation,
    run_to_run_ratio,
)
from headway.models.job.duration import DurationModel, level_spans
from headway.models.laws.modes import slow_mode
from headway.profiler.streaming.batch_samples import PHASES
from headway.profiler.streaming.one_size import has_one_size, row_cost_half_range
from headway.profiler.streaming.samples import BatchSample, QueryRun, StageSample, batches_of
from headway.profiler.streaming.stage_fit import fit_stage
from headway.profiler.streaming.static_stages import static_places
from headway.profiler.streaming.task_times import batch_weights, weighted_mean

OTHER_PHASE = "other"
_MOST_ROUNDS = 20
_EXPONENT_TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class DurationFit:
    """The fitted duration model, and its deviation from the runs that it was fitted to.

    ``row_cost_half_range_ratio`` is how far the costs per row may be off: 0 unless all batches have
    one size.
    """

    driver_phases: tuple[DriverPhase, ...]
    stages: tuple[StageProfile, ...]
    noise: DurationNoise
    drift: Drift
    modelled_mean_s: tuple[float, ...]
    row_cost_half_range_ratio: float = 0.0

    def model(self, configuration: Configuration) -> DurationModel:
        """Batch duration by rows at a setting."""
        return DurationModel(
            sum(phase.mean_s for phase in self.driver_phases),
            level_spans(self.stages, *configuration.size),
        )


def fit_duration(runs: Sequence[QueryRun], *, uses_range: bool = True) -> DurationFit:
    """Fit driver phases, task costs and noise on runs whose batches share one signature.

    Every run has the same weight, however many batches it has, since runs differ by more than the
    batches of one run. Durations are scaled to the age of the last run before the final fit, so
    that speed-up by compilation is not mistaken for an effect of the settings.

    If all batches have one size, fixed times are at the usual place in their range (E43); without
    ``uses_range`` they are at its lower end, as of batches of several sizes.
    """
    at_one_size = uses_range and has_one_size(runs)
    drift = Drift(exponent=0.0, reference_age_s=runs[-1].mean_age_s)
    # The lines and the drift explain parts of the same differences. Fitting them in turn until
    # neither changes is a joint fit.
    for _ in range(_MOST_ROUNDS):
        drift = replace(drift, driver_exponent=_fit_driver_drift(runs, drift))
        alike = [_at_reference_age(run, drift) for run in runs]
        phases, stages, half_range_ratio = _fit_at_one_age(alike, at_one_size=at_one_size)
        driver_s = sum(phase.mean_s for phase in phases)
        modelled_s = [batches_modelled_s(run, driver_s, stages) for run in runs]
        exponent = _fit_drift(runs, drift, modelled_s)
        if abs(exponent - drift.exponent) < _EXPONENT_TOLERANCE:
            break
        drift = replace(drift, exponent=exponent)
    drifting_s = sum(phase.mean_s for phase in phases if phase.name not in CHECKPOINT_PHASES)
    ages_s = [run.mean_age_s for run in runs]
    return DurationFit(
        driver_phases=phases,
        stages=stages,
        noise=_noise(alike, modelled_s, len(stages)),
        drift=drift,
        modelled_mean_s=tuple(
            (float(of_run_s.mean()) + (_driver_factor(drift, age_s) - 1.0) * drifting_s)
            * drift.factor(age_s)
            for of_run_s, age_s in zip(modelled_s, ages_s, strict=True)
        ),
        row_cost_half_range_ratio=half_range_ratio,
    )


def _fit_drift(runs: Sequence[QueryRun], drift: Drift, modelled_s: Sequence[Array]) -> float:
    """The drift of the whole batch, from runs with the driver as at the reference age."""
    batches = batches_of(runs)
    durations_s = [
        batch.duration_s - _won_s(_driver_s(batch), _driver_factor(drift, batch.jvm_age_s))
        for batch in batches
    ]
    return drift_exponent(
        np.log(durations_s) - np.log(np.concatenate(modelled_s)),
        np.log([batch.jvm_age_s for batch in batches]),
        np.repeat(np.arange(len(runs)), [len(run.batches) for run in runs]),
        np.array([run.began_in_fresh_jvm for run in runs]),
    )


def _fit_driver_drift(runs: Sequence[QueryRun], drift: Drift) -> float:
    """The driver's own drift, from runs without the drift of the whole batch."""
    driver_s = [
        float(np.mean([_driver_s(batch, drift.factor(batch.jvm_age_s)) for batch in run.batches]))
        for run in runs
    ]
    points = [(seconds, run.mean_age_s) for seconds, run in zip(driver_s, runs, strict=True)]
    return driver_drift_exponent(*np.log(np.maximum(np.array(points), 1e-6)).T)


def _driver_factor(drift: Drift, age_s: float) -> float:
    """For ages within those of the runs."""
    return drift.driver_factor(age_s, oldest_s=age_s)


def _driver_s(batch: BatchSample, factor: float = 1.0) -> float:
    """Driver time in a batch, except for the files of the checkpoint, with times over a factor."""
    files_s = sum([batch.phases_s.get(name, 0.0) / factor for name in CHECKPOINT_PHASES])
    return max(batch.duration_s / factor - batch.stages_s / factor - files_s, 0.0)


def _won_s(driver_s: float, driver_factor: float) -> float:
    """How much shorter a batch is with the driver as at the reference age."""
    return driver_s * (1.0 - 1.0 / driver_factor)


def _at_reference_age(run: QueryRun, drift: Drift) -> QueryRun:
    """The run as at the reference age; batches without rows with the driver at their own."""
    return replace(
        run,
        batches=tuple(
            _rescaled(batch, drift, _driver_factor(drift, batch.jvm_age_s)) for batch in run.batches
        ),
        without_rows=tuple(_rescaled(batch, drift) for batch in run.without_rows),
    )


def _rescaled(batch: BatchSample, drift: Drift, driver_factor: float | None = None) -> BatchSample:
    """The batch with every time in it divided by a factor, and driver times by one of their own."""
    factor = drift.factor(batch.jvm_age_s)
    duration_s, stages_s = batch.duration_s / factor, batch.stages_s / factor
    phases_s = {name: seconds / factor for name, seconds in batch.phases_s.items()}
    if driver_factor is not None:
        duration_s -= _won_s(_driver_s(batch, factor), driver_factor)
        whole_s = phases_s.get("add_batch")
        phases_s = {
            name: seconds if name in CHECKPOINT_PHASES else seconds / driver_factor
            for name, seconds in phases_s.items()
        }
        if whole_s is not None:
            in_stages_s = min(stages_s, whole_s)
            phases_s["add_batch"] = in_stages_s + (whole_s - in_stages_s) / driver_factor
    return changed(
        batch,
        duration_s=duration_s,
        phases_s=phases_s,
        state_commit_s=batch.state_commit_s / factor,
        stages_s=stages_s,
        stages=batch.stages if factor == 1.0 else _stages_rescaled(batch.stages, factor),
    )


def _stages_rescaled(stages: Sequence[StageSample], factor: float) -> tuple[StageSample, ...]:
    return tuple(
        changed(
            stage,
            task_mean_s=stage.task_mean_s / factor,
            task_sd_s=None if stage.task_sd_s is None else stage.task_sd_s / factor,
            outside_run_s=stage.outside_run_s / factor,
            rows_time_covariance_s=stage.rows_time_covariance_s / factor,
            span_s=stage.span_s / factor,
        )
        for stage in stages
    )


def _fit_at_one_age(
    runs: Sequence[QueryRun], *, at_one_size: bool
) -> tuple[tuple[DriverPhase, ...], tuple[StageProfile, ...], float]:
    """Phases of the driver, stages, and how far the costs per row may be off."""
    stages: tuple[StageProfile, ...] = ()
    handovers_s = 0.0
    times = []
    tables = static_places(runs)
    for stage_index in range(len(runs[0].batches[0].stages)):
        fit = fit_stage(runs, stage_index, stages, tables, at_one_size=at_one_size)
        stages += (fit.stage,)
        handovers_s += fit.handover_s
        if fit.task_time is not None:
            times.append(fit.task_time)
    return _fit_driver_phases(runs, handovers_s), stages, row_cost_half_range(times)


def _noise(runs: Sequence[QueryRun], modelled_s: Sequence[Array], num_stages: int) -> DurationNoise:
    """Spread of batches around the model of their run, and of runs around the common model."""
    observed = [np.array([batch.duration_s for batch in run.batches]) for run in runs]
    pairs = list(zip(observed, modelled_s, strict=True))
    ratios = [float(observed_s.mean() / fit.mean()) for observed_s, fit in pairs]
    duration_ratios = [
        observed_s / (ratio * fit) for (observed_s, fit), ratio in zip(pairs, ratios, strict=True)
    ]
    residuals = [
        # The ratio of the run is fitted, too, which uses one degree of freedom.
        (values - 1.0) * np.sqrt(len(values) / (len(values) - 1))
        for values in duration_ratios
    ]
    batch_ratio, added_sd_s = batch_spread(residuals, modelled_s)
    slow_share, slow_ratio = slow_mode(np.log(np.concatenate(duration_ratios)))
    correlation = lag_one_correlation(residuals)
    num_effective = float(np.mean([len(values) for values in residuals])) * (
        (1.0 - correlation) / (1.0 + correlation)
    )
    # What a mean over batches varies by, at the durations of the runs.
    usual_ratio = float(np.sqrt(np.mean([np.mean(np.square(values)) for values in residuals])))
    return DurationNoise(
        batch_ratio=min(batch_ratio, MOST_SPREAD_RATIO),
        added_sd_s=added_sd_s,
        autocorrelation=correlation,
        run_to_run_ratio=min(
            run_to_run_ratio(np.log(ratios), 1 + 2 * num_stages, usual_ratio, num_effective),
            MOST_SPREAD_RATIO,
        ),
        slow_batch_share=slow_share,
        slow_batch_ratio=slow_ratio,
    )


def batches_modelled_s(run: QueryRun, driver_s: float, stages: Sequence[StageProfile]) -> Array:
    """What each batch of a run is expected to take, by its rows and the rows of its state [s]."""
    configuration = run.configuration
    rows = np.array([batch.num_rows for batch in run.batches], dtype=np.float64)
    modelled_s = DurationModel(driver_s, level_spans(stages, *configuration.size)).mean_s(rows)
    if not any(stage.task_per_state_row_s for stage in stages):
        return modelled_s
    in_state = run.held_rows
    most_rows = max(float(in_state.max()), 1.0)
    fullest = DurationModel(driver_s, level_spans(stages, *configuration.size, most_rows)).mean_s(
        rows
    )
    # Every row of the state costs the same.
    return np.asarray(modelled_s + (fullest - modelled_s) * in_state / most_rows)


def _fit_driver_phases(runs: Sequence[QueryRun], handovers_s: float) -> tuple[DriverPhase, ...]:
    weights = batch_weights(runs)
    batches = batches_of(runs)
    recorded_names = {name for batch in batches for name in batch.phases_s}
    names = [name for name in dict.fromkeys(PHASES.values()) if name in recorded_names]
    columns = {
        name: np.array([batch.phases_s.get(name, 0.0) for batch in batches]) for name in names
    }
    if "add_batch" in columns:
        # The rest of addBatch without its stages is driver time: physical planning, state
        # bookkeeping, job submission and the sink's commit.
        in_stages = np.array([batch.stages_s for batch in batches]) - handovers_s
        columns["add_batch"] = np.maximum(columns["add_batch"] - in_stages, 0.0)
    total = np.array([sum(batch.phases_s.values()) for batch in batches])
    duration = np.array([batch.duration_s for batch in batches])
    columns[OTHER_PHASE] = np.maximum(duration - total, 0.0)
    return tuple(
        DriverPhase(
            name=name,
            mean_s=(mean_s := weighted_mean(values, weights)),
            sd_s=float(np.sqrt(weighted_mean(np.square(values - mean_s), weights))),
        )
        for name, values in columns.items()
    )
