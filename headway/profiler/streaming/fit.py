"""Runs of a query -> the parameters of the duration model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from headway.domain import Configuration, Drift, DriverPhase, DurationNoise, StageProfile
from headway.domain.profile import CHECKPOINT_PHASES
from headway.lazy_classes import dataclass
from headway.limits import MOST_SPREAD_RATIO
from headway.models.arrays import Array
from headway.models.estimation import regression
from headway.models.estimation.batch_noise import batch_spread
from headway.models.job.duration import DurationModel, level_spans
from headway.models.laws.modes import slow_mode
from headway.profiler.streaming.batch_samples import PHASES
from headway.profiler.streaming.batch_sizes import batch_weights, has_one_size, weighted_mean
from headway.profiler.streaming.samples import QueryRun
from headway.profiler.streaming.stage_fit import fit_stage
from headway.profiler.streaming.stage_runs import StageRuns
from headway.profiler.streaming.static_stages import static_places
from headway.profiler.streaming.task_times import row_cost_half_range
from headway.profiler.streaming.times_at_age import RunTimes, by_run, driver_factor

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
    recorded, tables = RunTimes.of(runs), static_places(runs)
    stage_runs = [
        StageRuns(runs=runs, stage_index=stage_index, tables=tables)
        for stage_index in range(len(recorded.stages))
    ]
    # The lines and the drift explain parts of the same differences. Fitting them in turn until
    # neither changes is a joint fit.
    for _ in range(_MOST_ROUNDS):
        drift = replace(drift, driver_exponent=_fit_driver_drift(runs, recorded, drift))
        times = recorded.at_reference_age(drift)
        phases, stages, half_range_ratio = _fit_at_one_age(
            runs, stage_runs, times, at_one_size=at_one_size
        )
        driver_s = sum(phase.mean_s for phase in phases)
        modelled_s = [batches_modelled_s(run, driver_s, stages) for run in runs]
        exponent = _fit_drift(runs, recorded, drift, modelled_s)
        if abs(exponent - drift.exponent) < _EXPONENT_TOLERANCE:
            break
        drift = replace(drift, exponent=exponent)
    drifting_s = sum(phase.mean_s for phase in phases if phase.name not in CHECKPOINT_PHASES)
    ages_s = [run.mean_age_s for run in runs]
    return DurationFit(
        driver_phases=phases,
        stages=stages,
        noise=_noise(by_run(times.duration_s, runs), modelled_s, len(stages)),
        drift=drift,
        modelled_mean_s=tuple(
            (float(of_run_s.mean()) + (driver_factor(drift, age_s) - 1.0) * drifting_s)
            * drift.factor(age_s)
            for of_run_s, age_s in zip(modelled_s, ages_s, strict=True)
        ),
        row_cost_half_range_ratio=half_range_ratio,
    )


def _fit_drift(
    runs: Sequence[QueryRun], recorded: RunTimes, drift: Drift, modelled_s: Sequence[Array]
) -> float:
    """The drift of the whole batch, from runs with the driver as at the reference age."""
    durations_s = recorded.duration_s - recorded.won_s(drift)
    return regression.drift_exponent(
        np.log(durations_s) - np.log(np.concatenate(modelled_s)),
        np.log(recorded.age_s),
        np.repeat(np.arange(len(runs)), [len(run.batches) for run in runs]),
        np.array([run.began_in_fresh_jvm for run in runs]),
    )


def _fit_driver_drift(runs: Sequence[QueryRun], recorded: RunTimes, drift: Drift) -> float:
    """The driver's own drift, from runs without the drift of the whole batch."""
    driver_s = by_run(recorded.driver_s(recorded.factors(drift)), runs)
    points = [
        (float(np.mean(of_run_s)), run.mean_age_s)
        for of_run_s, run in zip(driver_s, runs, strict=True)
    ]
    return regression.driver_drift_exponent(*np.log(np.maximum(np.array(points), 1e-6)).T)


def _fit_at_one_age(
    runs: Sequence[QueryRun],
    stage_runs: Sequence[StageRuns],
    times: RunTimes,
    *,
    at_one_size: bool,
) -> tuple[tuple[DriverPhase, ...], tuple[StageProfile, ...], float]:
    """Phases of the driver, stages, and how far the costs per row may be off."""
    stages: tuple[StageProfile, ...] = ()
    handovers_s, task_times = 0.0, []
    for stage, stage_times in zip(stage_runs, times.stages, strict=True):
        fitted, handover_s, time = fit_stage(stage, stage_times, stages, at_one_size=at_one_size)
        stages += (fitted,)
        handovers_s += handover_s
        if time is not None:
            task_times.append(time)
    phases = _driver_phases(times, handovers_s, batch_weights(runs))
    return phases, stages, row_cost_half_range(task_times)


def _noise(times_s: Sequence[Array], modelled_s: Sequence[Array], num_stages: int) -> DurationNoise:
    """Spread of batches around the model of their run, and of runs around the common model."""
    pairs = list(zip(times_s, modelled_s, strict=True))
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
    correlation = regression.lag_one_correlation(residuals)
    num_effective = float(np.mean([len(values) for values in residuals])) * (
        (1.0 - correlation) / (1.0 + correlation)
    )
    # What a mean over batches varies by, at the durations of the runs.
    usual_ratio = float(np.sqrt(np.mean([np.mean(np.square(values)) for values in residuals])))
    log_ratios, num_terms = np.log(ratios), 1 + 2 * num_stages
    run_ratio = regression.run_to_run_ratio(log_ratios, num_terms, usual_ratio, num_effective)
    return DurationNoise(
        batch_ratio=min(batch_ratio, MOST_SPREAD_RATIO),
        added_sd_s=added_sd_s,
        autocorrelation=correlation,
        run_to_run_ratio=min(run_ratio, MOST_SPREAD_RATIO),
        slow_batch_share=slow_share,
        slow_batch_ratio=slow_ratio,
    )


def batches_modelled_s(run: QueryRun, driver_s: float, stages: Sequence[StageProfile]) -> Array:
    """What each batch of a run is expected to take, by its rows and the rows of its state [s]."""
    rows = np.array([batch.num_rows for batch in run.batches], dtype=np.float64)
    size = run.configuration.size
    modelled_s = DurationModel(driver_s, level_spans(stages, *size)).mean_s(rows)
    if not any(stage.task_per_state_row_s for stage in stages):
        return modelled_s
    in_state = run.held_rows
    most_rows = max(float(in_state.max()), 1.0)
    fullest_s = DurationModel(driver_s, level_spans(stages, *size, most_rows)).mean_s(rows)
    # Every row of the state costs the same.
    return np.asarray(modelled_s + (fullest_s - modelled_s) * in_state / most_rows)


def _driver_phases(times: RunTimes, handovers_s: float, weights: Array) -> tuple[DriverPhase, ...]:
    names = dict.fromkeys(PHASES.values())
    columns = {name: times.phases_s[name] for name in names if name in times.phases_s}
    if "add_batch" in columns:
        # The rest of addBatch without its stages is driver time: physical planning, state
        # bookkeeping, job submission and the sink's commit.
        in_stages_s = times.stages_s - handovers_s
        columns["add_batch"] = np.maximum(columns["add_batch"] - in_stages_s, 0.0)
    columns[OTHER_PHASE] = np.maximum(times.duration_s - sum(times.phases_s.values()), 0.0)
    return tuple(
        DriverPhase(
            name=name,
            mean_s=(mean_s := weighted_mean(values, weights)),
            sd_s=float(np.sqrt(weighted_mean(np.square(values - mean_s), weights))),
        )
        for name, values in columns.items()
    )
