"""Costs of the batches of profiled queries, for the gate's simulation, and for their driver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headway.domain import JobProfile, ScheduledQuery
from headway.domain.plan_parts import PlannedDriver
from headway.errors import InputError
from headway.models.estimation.batch_noise import noise_ratio_at
from headway.models.job.driver_load import driver_work, planned_driver
from headway.models.job.duration import level_spans
from headway.models.job.setting import AFTER_COMMIT_PHASES
from headway.models.simulation.gate import QueryOutcome, QueryWork
from headway.units import format_duration

_LEAST_ROWS = 1.0


def query_work(
    profile: JobProfile, query: ScheduledQuery, rate_per_s: float, cores: int
) -> QueryWork:
    """Driver time, core time and parallelism of a query's batches on a number of cores.

    The work of the stages is taken as linear in the rows, through a batch without rows and one of a
    trigger interval. The number of cores that a batch can use is its work over its makespan if it
    runs alone. In local mode, the driver takes one of these cores while it works. ``cores`` are
    those of all executors. The state is that of the rate: theory.md (E36).
    """
    rows = max(rate_per_s * query.trigger_s, _LEAST_ROWS)
    held_rows = profile.held_rows_at(rate_per_s)
    empty_core_s, full_core_s = (_core_s(profile, held_rows, num_rows) for num_rows in (0.0, rows))
    spans = level_spans(profile.stages, cores, profile.baseline.shuffle_partitions, held_rows)
    makespan_s = sum(float(level.at(rows)) for level in spans)
    phases = {phase.name: phase.mean_s for phase in profile.driver_phases}
    after_s = sum(phases.get(name, 0.0) for name in AFTER_COMMIT_PHASES)
    arrivals = profile.observed_arrivals
    lag_s = None if arrivals is None else arrivals.event_time_lag_s
    lags = () if arrivals is None else arrivals.lags
    return QueryWork(
        query=query,
        rate_per_s=rate_per_s,
        before_s=sum(phases.values()) - after_s,
        after_s=after_s,
        fixed_core_s=max(empty_core_s, 1e-3),
        per_row_core_s=max(full_core_s - empty_core_s, 0.0) / rows,
        most_cores=max(min(full_core_s / makespan_s, float(cores)), 0.1),
        noise_ratio=float(noise_ratio_at(profile.noise, sum(phases.values()) + makespan_s)),
        closing_delay_s=max(lag_s or 0.0, 0.0),
        closing_lags=lags,
        driver_cores=1.0 if profile.application.is_local else 0.0,
    )


def require_windows_seen(work: QueryWork, outcome: QueryOutcome, length_s: float) -> None:
    """Require that a simulation can show whether a target on windows is met.

    Raises InputError if no window of the query is due in the simulated time.
    """
    query, grid = work.query, work.query.windows
    if grid is None or query.window_target is None or len(outcome.window_latency_s):
        return
    delay_s = grid.watermark_delay_s
    delay = f", {format_duration(delay_s)} of watermark delay" if delay_s > 0.0 else ""
    raise InputError(
        f"{query.name}: target {query.window_target}: no window is due within the "
        f"{format_duration(length_s)} that are simulated (one every "
        f"{format_duration(grid.slide_s)}{delay}); expected shorter ones. Only which windows end "
        "together matters: give a window_slide of some minutes, no watermark_delay, and a target "
        "without that delay"
    )


def _core_s(profile: JobProfile, held_rows: float, rows: float) -> float:
    """Total time of all tasks of a batch."""
    partitions = profile.baseline.shuffle_partitions
    return float(
        sum(
            stage.tasks_s(stage.num_tasks(partitions), partitions, held_rows, rows)
            for stage in profile.stages
        )
    )


def shared_driver(
    profiles: Sequence[JobProfile],
    works: Sequence[QueryWork],
    cores: int,
    driver_cores: int | None,
    *,
    is_cluster: bool = False,
) -> PlannedDriver:
    """The driver that the queries of an application share: theory.md (U1)-(U4).

    ``works`` are what the batches of each query take, in the order of ``profiles``. ``cores`` are
    those of all executors; in local mode they are the driver's, too. Without ``driver_cores`` it
    gets as many as it needs. ``is_cluster`` says whether they will run on a cluster, even if they
    were profiled in one JVM.
    """
    driver_works = []
    for profile, work in zip(profiles, works, strict=True):
        trigger_s = work.query.trigger_s
        rows = work.rate_per_s * trigger_s
        driver_works.append(
            driver_work(
                # The state of which tasks in this JVM go through follows the rate, too.
                replace(profile, arrivals=replace(profile.arrivals, rate_per_s=work.rate_per_s)),
                (cores, profile.baseline.shuffle_partitions),
                batch_rows=rows,
                interval_s=max(trigger_s, work.duration_s(rows, cores)),
                has_tasks=False if is_cluster else None,
            )
        )
    if driver_cores is None and any(work.has_tasks for work in driver_works):
        driver_cores = cores
    return planned_driver(driver_works, driver_cores)
