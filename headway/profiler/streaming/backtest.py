"""Runs of a job -> prediction errors for runs that are left out of the fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeAlias

import numpy as np

from headway.assumptions.fits import LEAST_BATCHES
from headway.assumptions.logs import SAME_RATE_RATIO
from headway.domain import Arrivals, Backtest, HeldOut, JobProfile, LatencyDistribution
from headway.domain.prediction import QUOTED_PROBABILITIES
from headway.errors import EventLogError
from headway.models.batches.tuple_latency import empirical_latency_mean, empirical_latency_quantile
from headway.models.job.predict import predict
from headway.models.job.setting import AFTER_COMMIT_PHASES
from headway.profiler.contents import CollectedLogs
from headway.profiler.logs.sources import EventLog
from headway.profiler.streaming.job_runs import runs_of_job
from headway.profiler.streaming.samples import BatchSample, QueryRun
from headway.profiler.streaming.summarize import profile_from
from headway.units import counted

BY_SETTING = "each setting predicted from the runs at all other settings"
BY_TIME = "the later half of each run predicted from the earlier half: one setting only"


_Fold: TypeAlias = tuple[tuple[QueryRun, ...], tuple[QueryRun, ...]]  # fitted, held out


def backtest(
    logs: CollectedLogs,
    event_logs: Mapping[int, EventLog],
    queries: Sequence[str],
    version: str,
    trigger_s: float | None = None,
) -> Backtest:
    """Predict runs of a job from its other runs; parameters as in `summarize`.

    EventLogError also if there is not enough data to leave a part out.
    """
    runs, apps, notes = runs_of_job(logs, event_logs, queries, trigger_s)
    by_setting = _settings(runs)
    rule, folds = BY_SETTING, _without_each(by_setting)
    if len(by_setting) == 1:
        rule, folds = BY_TIME, _halves(runs)
    judged = []
    for fitted, held_out in folds:
        profile = profile_from(fitted, apps, logs, event_logs, version)
        judged += [(run.batches[0].started_s, _judged(run, profile)) for run in held_out]
    judged.sort(key=lambda placed: placed[0])
    return Backtest(rule=rule, runs=tuple(run for _, run in judged), notes=notes)


def _settings(runs: Sequence[QueryRun]) -> list[list[QueryRun]]:
    """Runs by setting: the same configuration, and rates that differ by at most a tenth."""
    settings: list[list[QueryRun]] = []
    for run in runs:
        for setting in settings:
            ratio = run.rate_per_s / setting[0].rate_per_s
            if (
                run.configuration == setting[0].configuration
                and max(ratio, 1.0 / ratio) <= SAME_RATE_RATIO.value
            ):
                setting.append(run)
                break
        else:
            settings.append([run])
    return settings


def _without_each(settings: Sequence[Sequence[QueryRun]]) -> Iterator[_Fold]:
    for index, left_out in enumerate(settings):
        other_runs = list(chain(*settings[:index], *settings[index + 1 :]))
        other_runs.sort(key=lambda run: run.batches[0].started_s)
        yield tuple(other_runs), tuple(left_out)


def _halves(runs: Sequence[QueryRun]) -> Iterator[_Fold]:
    """All earlier halves compared with all later ones."""
    if any(len(run.batches) < 2 * LEAST_BATCHES.value for run in runs):
        raise EventLogError(
            f"{counted(len(runs), 'run')} at one setting, with "
            f"{min(len(run.batches) for run in runs)} steady batches: expected "
            f"{2 * LEAST_BATCHES.value} to fit on half of them, or runs at several settings; "
            "name more logs"
        )
    halves = [(run, len(run.batches) // 2) for run in runs]
    yield (
        tuple(_part(run, run.batches[:middle]) for run, middle in halves),
        tuple(_part(run, run.batches[middle:]) for run, middle in halves),
    )


def _part(run: QueryRun, batches: Sequence[BatchSample]) -> QueryRun:
    """Some of a run's batches, with the rate at which their own rows arrived."""
    timed = [batch for batch in batches if batch.interval_s is not None]
    seconds = sum(batch.interval_s or 0.0 for batch in timed)
    rows = sum(batch.num_rows for batch in timed)
    rate_per_s = rows / seconds if rows > 0 and seconds > 0 else run.rate_per_s
    return replace(run, batches=tuple(batches), rate_per_s=rate_per_s)


def _judged(run: QueryRun, profile: JobProfile) -> HeldOut:
    prediction = predict(
        profile,
        run.configuration,
        Arrivals(rate_per_s=run.rate_per_s, dispersion_ratio=profile.arrivals.dispersion_ratio),
        jvm_age_s=run.mean_age_s,
    )
    durations_s = np.array([batch.duration_s for batch in run.batches])
    return HeldOut(
        label=run.label,
        num_batches=len(run.batches),
        prediction=prediction,
        observed_latency=observed_latency(run),
        observed_duration=LatencyDistribution.of(
            float(durations_s.mean()), np.quantile(durations_s, QUOTED_PROBABILITIES)
        ),
    )


def observed_latency(run: QueryRun) -> LatencyDistribution:
    """Latency of rows from batches: theory.md (B7). No row waits for what follows the commit."""
    timed = [batch for batch in run.batches if batch.interval_s is not None]
    if not timed:
        raise EventLogError(
            f"query {run.label}: no two consecutive batches are recorded, so the latency of its "
            "rows is unknown; profile a log without gaps"
        )
    arrivals_s = np.array([(batch.interval_s or 0.0) - batch.idle_s for batch in timed])
    late_s = [sum(batch.phases_s.get(name, 0.0) for name in AFTER_COMMIT_PHASES) for batch in timed]
    durations_s = np.array([batch.duration_s for batch in timed])
    rows = np.array([float(batch.num_rows) for batch in timed])
    to_commit_s = np.maximum(durations_s - np.array(late_s), 0.0)
    return LatencyDistribution.of(
        empirical_latency_mean(arrivals_s, to_commit_s, rows),
        empirical_latency_quantile(np.array(QUOTED_PROBABILITIES), arrivals_s, to_commit_s, rows),
    )
