"""Collected logs -> the profile of one streaming job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from headway.domain import (
    Application,
    Arrivals,
    Coverage,
    DurationNoise,
    JobProfile,
    ObservedSetting,
)
from headway.few_numbers import median_of
from headway.limits import MOST_SPREAD_RATIO
from headway.profiler.contents import ApplicationFacts, CollectedLogs, each_application
from headway.profiler.coverage import coverage_of, gaps, sum_of_shares, together
from headway.profiler.logs.sources import EventLog
from headway.profiler.streaming import observations
from headway.profiler.streaming.adaptive import coalescing_notes
from headway.profiler.streaming.arrivals import event_time_lags, observed_arrivals, typical_lag_s
from headway.profiler.streaming.fit import DurationFit, fit_duration
from headway.profiler.streaming.growth import growth_of, slow_growth_of
from headway.profiler.streaming.job_runs import runs_of_job
from headway.profiler.streaming.samples import QueryRun, batches_of
from headway.profiler.streaming.source_rules import source_notes
from headway.profiler.streaming.warm_up import warm_up_of


def summarize(
    logs: CollectedLogs,
    event_logs: Mapping[int, EventLog],
    queries: Sequence[str],
    version: str,
    trigger_s: float | None = None,
) -> JobProfile:
    """Fit one profile to the chosen queries of the collected logs.

    ``queries`` are names or ids, of which a prefix of 8 characters is enough; if empty, all of
    them, which must be runs of one job. ``version`` is that of Headway. ``trigger_s`` is the
    trigger interval of every run, if the user states it [s]; 0 is as fast as possible. Raises
    EventLogError if there is no streaming query, or too few batches to profile; InputError if
    ``queries`` matches none, or the queries are different jobs.
    """
    runs, apps, notes = runs_of_job(logs, event_logs, queries, trigger_s)
    return profile_from(runs, apps, logs, event_logs, version, notes)


def profile_from(
    runs: Sequence[QueryRun],
    apps: Sequence[int],
    logs: CollectedLogs,
    event_logs: Mapping[int, EventLog],
    version: str,
    notes: Sequence[str] = (),
) -> JobProfile:
    """Fit one profile to runs of one job in some of the logs; parameters as in `summarize`."""
    of_each = each_application(logs)
    coverage = together(
        coverage_of(logs.applications[app], of_each[app].batches, event_logs[app]) for app in apps
    )
    applications = tuple(application_of(logs.applications[app]) for app in apps)
    return profile_of_runs(runs, applications, version, notes=notes, coverage=coverage)


def profile_of_runs(
    runs: Sequence[QueryRun],
    applications: tuple[Application, ...],
    version: str,
    *,
    notes: Sequence[str] = (),
    coverage: Coverage | None = None,
) -> JobProfile:
    """Fit one profile to runs of one job, in order of time, from any logs."""
    noted, fit, last = list(notes), fit_duration(runs), runs[-1]
    return JobProfile(
        headway_version=version,
        applications=applications,
        shape=last.shape,
        arrivals=Arrivals(rate_per_s=last.rate_per_s, dispersion_ratio=_dispersion_ratio(runs)),
        driver_phases=fit.driver_phases,
        stages=tuple(
            replace(stage, observed=observations.observe_stage(runs, stage_index, stage))
            for stage_index, stage in enumerate(fit.stages)
        ),
        noise=_less_sure(fit, runs, noted),
        row_cost_half_range_ratio=fit.row_cost_half_range_ratio or None,
        drift=fit.drift,
        warm_up=warm_up_of(runs, fit),
        growth=growth_of(last, fit),
        slow_growth=tuple(slow_growth_of(last, applications[-1].properties)),
        drain=last.drain,
        empty_batches=last.empty,
        settings=tuple(
            _setting(run, modelled_s)
            for run, modelled_s in zip(runs, fit.modelled_mean_s, strict=True)
        ),
        observed_arrivals=replace(
            observed_arrivals(last.arrivals, typical_lag_s(last), last.mean_file),
            event_time_lags=event_time_lags(runs),
        ),
        state=observations.observe_state(runs),
        memory=observations.memory_of(
            [stage for batch in batches_of(runs) for stage in batch.stages]
        ),
        state_partitions=last.pinned_state_partitions,
        source_partitions=last.source_partitions,
        state_store=last.state_store,
        coverage=coverage,
        notes=(
            *noted,
            *coalescing_notes(fit.stages),
            *source_notes(runs, fit.stages),
            *_concurrency_notes(runs),
            *_drift_notes(runs, fit),
            *(gaps(coverage) if coverage else ()),
        ),
    )


def application_of(facts: ApplicationFacts) -> Application:
    properties = facts.properties
    return Application(
        id=facts.application_id or "unknown",
        name=facts.application_name or "unknown",
        spark_version=facts.spark_version or "unknown",
        java_version=facts.java_version,
        executor_memory=properties.get("spark.executor.memory"),
        properties=dict(sorted(properties.items())),
    )


def _dispersion_ratio(runs: Sequence[QueryRun]) -> float:
    """Variance over mean of arrivals, from deviations of batches from rate times interval."""
    ratios = [ratio for run in runs if (ratio := run.arrivals.dispersion_ratio) is not None]
    # If no interval is known, arrivals are at random times.
    return median_of(ratios) if ratios else 1.0


def _less_sure(fit: DurationFit, runs: Sequence[QueryRun], notes: list[str]) -> DurationNoise:
    """The noise, including the uncertainty from tasks that are not recorded.

    If the missing tasks are on average one standard deviation slower or faster than the recorded
    ones, the mean of all is off by their share of it.
    """
    missing = 1 - sum_of_shares(run.tasks for run in runs).ratio
    if missing == 0:
        return fit.noise
    hidden_ratio = missing * max(stage.task_noise_ratio for stage in fit.stages)
    notes.append(
        f"{missing:.1%} of the tasks are not recorded: intervals are wider by up to "
        f"{hidden_ratio:.1%}"
    )
    spread_ratio = float(np.hypot(fit.noise.run_to_run_ratio, hidden_ratio))
    return replace(fit.noise, run_to_run_ratio=min(spread_ratio, MOST_SPREAD_RATIO))


def _setting(run: QueryRun, modelled_s: float) -> ObservedSetting:
    rows = [float(batch.num_rows) for batch in run.batches]
    durations_s = np.array([batch.duration_s for batch in run.batches])
    num_left_out, left_out_mean_s = run.left_out or (None, None)
    return ObservedSetting(
        query_id=run.query_id,
        query_name=run.query_name,
        configuration=run.configuration,
        rate_per_s=run.rate_per_s,
        num_batches=len(rows),
        num_batches_cut=run.num_cut,
        jvm_age_s=run.mean_age_s,
        rows_per_batch_low=min(rows),
        rows_per_batch_high=max(rows),
        batch_duration_mean_s=float(durations_s.mean()),
        batch_duration_sd_s=float(durations_s.std()),
        modelled_duration_mean_s=modelled_s,
        updated_rows=observations.mean_updated_rows(run.batches),
        written_files_per_batch=run.written_files,
        concurrent_batches=run.concurrent_batches,
        other_batches=num_left_out,
        other_batch_mean_s=left_out_mean_s,
    )


def _concurrency_notes(runs: Sequence[QueryRun]) -> Iterator[str]:
    """Runs beside which other queries of the application ran."""
    for run in runs:
        if run.concurrent_batches is not None:
            num_beside = run.concurrent_batches - 1.0
            yield (
                f"query {run.numbered_label}: while its batches ran, so did batches of other "
                f"queries of its application ({num_beside:.2g} on average): its durations include "
                "what these took of the slots, and so do predictions"
            )


def _drift_notes(runs: Sequence[QueryRun], fit: DurationFit) -> Iterator[str]:
    """Runs from which the common model deviates by more than a tenth, in order of time."""
    for run, modelled_s in zip(runs, fit.modelled_mean_s, strict=True):
        observed_s = float(np.mean([batch.duration_s for batch in run.batches]))
        if abs(observed_s / modelled_s - 1) <= 0.1:
            continue
        difference = f"{observed_s / modelled_s - 1:+.0%}"
        took = f"query {run.numbered_label}: batches took {difference} compared with"
        if len(runs) > 1:
            yield f"{took} what all runs together suggest (drift, or other load on the machine)"
        else:
            yield (
                f"{took} the fit to them, whose costs therefore are uncertain: batches for which "
                "rows and time do not go together weigh less in it; a longer run shows more"
            )
