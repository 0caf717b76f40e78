"""Simulation of a plan under a changing rate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from headway.domain import (
    CatchUp,
    DuringBurst,
    FindingCode,
    Metric,
    Outage,
    PlannedDurations,
    Playback,
    Promise,
    RateTrace,
    Recovery,
    SimulatedTarget,
    StreamAnswer,
    Target,
    TraceStretch,
)
from headway.errors import InputError, argument
from headway.models.arrays import Array
from headway.models.batches.intervals import grid_point_after
from headway.models.job.duration import DurationModel, LevelSpan
from headway.models.job.setting import MOST_BATCH_ROWS
from headway.models.simulation.rate_trace import BatchNoise, RateTraceRuns, simulate_rate_trace
from headway.planner.row_waits import LEAST_WIDTH_S, Waits, longest_late_s, overdue_waits
from headway.units import counted, format_duration, round_step_s

_STRETCHES_PER_STEP = 6
_MOST_BATCHES = 4_000_000
_SAME_LENGTH_RATIO = 1.0 + 1e-9
_MILLION_ROWS = 1e6
#: Growth of batches that a simulation does not continue.
_GROWTH_LEFT_OUT = (
    FindingCode.BATCHES_GROW,
    FindingCode.GROWTH_ENDS_PROMISE,
    FindingCode.SLOW_GROWTH_ENDS_PROMISE,
)


def simulate_plan(
    plan: StreamAnswer,
    trace: RateTrace,
    *,
    outages: Sequence[Outage] = (),
    num_runs: int = 16,
    seed: int = 1,
) -> Playback:
    """Simulated latencies of rows for a plan under a trace.

    The plan has its setting, its rate limit, and the durations that it was planned with. In
    outages, which are counted from the start of the trace, the query starts no batch. Each of
    ``num_runs`` has its own random draws of noise and of the deviation of this start. Latencies are
    those of all runs; lateness is of rows, or of batches for a target on batches. Rows that no
    batch has read at the end, and that have waited for longer than the limit by then, are late, and
    count with that time. Durations are the predicted ones, not the longer planned ones, so what is
    expected is shown; a state that grows does so with the rows that are read: theory.md (S6).
    Raises InputError if the plan lacks its durations, no batch starts within the trace, an outage
    ends after it, or it would take too long.
    """
    if plan.durations is None:
        raise InputError("the plan does not contain batch durations; plan again")
    first_s, length = trace.times_s[0], format_duration(trace.length_s)
    for outage in outages:
        if outage.start_s + outage.length_s > trace.length_s:
            raise InputError(
                f"an outage of {format_duration(outage.length_s)} at "
                f"{format_duration(outage.start_s)} ends after the trace of {length}"
            )
    trigger_s = plan.configuration.trigger_s
    if trigger_s > 0 and grid_point_after(np.array(first_s), trigger_s) >= trace.end_s:
        raise InputError(
            f"no batch starts in the trace of {length}, since the trigger interval is "
            f"{format_duration(trigger_s)}; give a longer trace"
        )
    model = _model(plan.durations)
    _require_short_enough(plan, trace, model, num_runs)
    limit = plan.configuration.max_offsets_per_trigger
    simulated = simulate_rate_trace(
        model.mean_s,
        np.array([*trace.times_s, trace.end_s]),
        np.array(trace.rates_per_s),
        trigger_s,
        noise=BatchNoise(
            batch_ratio=plan.durations.batch_noise_ratio,
            autocorrelation=plan.durations.autocorrelation,
            run_to_run_ratio=plan.durations.run_to_run_ratio,
        ),
        seed=seed,
        num_runs=num_runs,
        after_commit_s=plan.durations.after_commit_s,
        max_rows_per_trigger=math.inf if limit is None else limit,
        dispersion=plan.arrivals.dispersion_ratio,
        outages_s=[
            (first_s + outage.start_s, first_s + outage.start_s + outage.length_s)
            for outage in outages
        ],
        longer_s_per_row=_longer_s_per_row(plan),
    )
    return _playback(plan, trace, tuple(outages), simulated, model)


def _longer_s_per_row(plan: StreamAnswer) -> float:
    """How much longer a batch takes for each row read before it: what it adds to the state."""
    for finding in plan.prediction.findings:
        if finding.code is FindingCode.STATE_GROWS:
            numbers = finding.numbers
            per_state_row_s = numbers["batch_s_per_million_rows"] / _MILLION_ROWS
            return per_state_row_s * numbers["growth_per_s"] / plan.rate_per_s
    return 0.0


def _model(durations: PlannedDurations) -> DurationModel:
    return DurationModel(
        durations.driver_s,
        tuple(
            LevelSpan(
                level.name,
                level.fixed_s,
                tuple((term.per_row_s, term.scale, term.exponent) for term in level.terms),
            )
            for level in durations.levels
        ),
    )


def _require_short_enough(
    plan: StreamAnswer, trace: RateTrace, model: DurationModel, num_runs: int
) -> None:
    shortest_s = max(plan.configuration.trigger_s, float(model.mean_s(0.0)), 1e-3)
    num_batches = trace.length_s / shortest_s * num_runs
    if num_batches > _MOST_BATCHES:
        raise InputError(
            f"the trace of {format_duration(trace.length_s)} has about {num_batches:,.0f} batches "
            f"in {counted(num_runs, 'run')}, more than the maximum of {_MOST_BATCHES:,.0f}; give a "
            f"shorter trace or fewer {argument('runs')}"
        )


def _playback(
    plan: StreamAnswer,
    trace: RateTrace,
    outages: tuple[Outage, ...],
    simulated: RateTraceRuns,
    model: DurationModel,
) -> Playback:
    if not len(simulated.run):
        raise InputError("no row of the trace is processed before it ends; give a longer trace")
    num_runs = simulated.arrivals.num_runs
    read = Waits(
        num_rows=simulated.num_rows,
        low_s=simulated.commit_s - simulated.last_arrival_s,
        high_s=simulated.commit_s - simulated.first_arrival_s,
        batch_s=simulated.duration_s,
    )
    edges = _stretch_edges(trace)
    overdue = overdue_waits(simulated, edges, plan.target)
    waits, late_rows = read.with_others(overdue), read.late_rows(plan.target)
    by_run = [simulated.run == number for number in range(num_runs)]
    overdue_rows = overdue.num_rows.reshape(-1, num_runs)
    late_ratios = [
        float((late_rows[run].sum() + rows) / max(simulated.num_rows[run].sum() + rows, 1.0))
        for run, rows in zip(by_run, overdue_rows.sum(axis=0), strict=True)
    ]
    p50_s, p95_s, p99_s = waits.quantiles_s(0.5, 0.95, 0.99)
    met = read.met(_recovered_target(plan))
    of_runs = [(simulated.start_s[run], met[run]) for run in by_run]
    recoveries = tuple(_recovery(outage, trace, of_runs) for outage in outages)
    return Playback(
        trace=trace,
        outages=outages,
        num_runs=num_runs,
        num_batches=len(simulated.run),
        limit_s=None if plan.target.metric is Metric.WINDOW else plan.target.limit_s,
        mean_s=waits.mean_s(),
        p50_s=p50_s,
        p95_s=p95_s,
        p99_s=p99_s,
        max_s=float(waits.high_s.max()),
        late_ratio=float((late_rows.sum() + overdue_rows.sum()) / waits.num_rows.sum()),
        late_ratio_worst_run=max(late_ratios),
        longest_late_s=float(np.median(list(longest_late_s(simulated, late_rows, overdue, edges)))),
        peak_backlog_rows=float(np.median(simulated.peak_backlog_rows(edges).max(axis=0))),
        ends_behind=_ends_behind(plan, trace, simulated, model),
        growth_left_out=_is_growth_left_out(plan, trace),
        recoveries=recoveries,
        targets=tuple(
            _simulated_target(promise, read, simulated, edges, recoveries)
            for promise in plan.promises
        ),
        stretches=tuple(_stretches(trace, edges, simulated, plan.target, overdue_rows.sum(axis=1))),
    )


def _is_growth_left_out(plan: StreamAnswer, trace: RateTrace) -> bool:
    """Whether batches would grow until they miss a target within the length of the trace."""
    return any(
        finding.code in _GROWTH_LEFT_OUT and finding.numbers.get("held_s", 0.0) < trace.length_s
        for finding in plan.findings
    )


def _simulated_target(
    promise: Promise,
    read: Waits,
    simulated: RateTraceRuns,
    edges: Array,
    recoveries: Sequence[Recovery],
) -> SimulatedTarget:
    """The value of a target under the trace, or why there is none."""
    value_s, reason = None, ""
    if isinstance(promise, CatchUp):
        taken_s = [
            recovery.worst_s
            for recovery in recoveries
            if promise.outage_s is not None
            and recovery.outage.length_s <= promise.outage_s * _SAME_LENGTH_RATIO
        ]
        value_s = max(taken_s, default=None)
        reason = "" if taken_s else "no such outage in the simulation"
    elif isinstance(promise, DuringBurst):
        reason = "its burst is not singled out in the trace"
    elif promise.metric is Metric.WINDOW:
        reason = "windows are not simulated"
    else:
        value_s = read.with_others(overdue_waits(simulated, edges, promise)).statistic_s(promise)
    return SimulatedTarget(
        target=str(promise), limit_s=promise.limit_s, value_s=value_s, reason=reason
    )


def _recovered_target(plan: StreamAnswer) -> Target:
    """The target that a batch meets again after an outage; for windows, the usual p99 of rows."""
    usual, target = plan.prediction.tuple_latency, plan.target
    if target.metric is Metric.WINDOW and usual is not None and math.isfinite(usual.p99_s):
        return Target(metric=Metric.TUPLE, quantile=0.99, limit_s=usual.p99_s)
    return target


def _recovery(
    outage: Outage, trace: RateTrace, of_runs: Sequence[tuple[Array, NDArray[np.bool_]]]
) -> Recovery:
    """From the end of an outage until a batch that by itself meets the target.

    ``of_runs`` are the starts of the batches of each run, and which of these meet it.
    """
    back_s = trace.times_s[0] + outage.start_s + outage.length_s
    recoveries_s = [
        float(np.min(start_s[(start_s >= back_s) & met], initial=math.inf)) - back_s
        for start_s, met in of_runs
    ]
    return Recovery(
        outage=outage, median_s=float(np.median(recoveries_s)), worst_s=max(recoveries_s)
    )


def _ends_behind(
    plan: StreamAnswer, trace: RateTrace, simulated: RateTraceRuns, model: DurationModel
) -> bool:
    """Whether more rows arrive at the end than the setting can process.

    The rate is above its capacity in the last tenth of the trace, and in the later half of that.
    """
    limit, capacity_per_s = plan.configuration.max_offsets_per_trigger, math.inf
    if limit is not None:
        read_rows = float(simulated.num_rows.sum()) / simulated.arrivals.num_runs
        full_batch_s = float(model.mean_s(limit)) + _longer_s_per_row(plan) * read_rows
        capacity_per_s = limit / max(plan.configuration.trigger_s, full_batch_s)
    elif (slope_s := float(model.slope_s(MOST_BATCH_ROWS))) > 0.0:
        # However large batches become, a row takes this long.
        capacity_per_s = 1.0 / slope_s
    return all(
        _mean_rates(trace, trace.end_s - np.array([part * trace.length_s, 0.0]))[0] > capacity_per_s
        for part in (0.1, 0.05)
    )


def _stretch_edges(trace: RateTrace) -> Array:
    """Round moments from the start of the trace, several for each of its round steps."""
    width_s = round_step_s(trace.round_step_s / _STRETCHES_PER_STEP)
    # What is left of less than half a stretch is part of the last whole one.
    inner = np.arange(max(round(trace.length_s / width_s), 1)) * width_s
    return np.append(trace.times_s[0] + inner, trace.end_s)


def _stretches(
    trace: RateTrace, edges: Array, simulated: RateTraceRuns, target: Target, overdue_rows: Array
) -> Iterator[TraceStretch]:
    """Latencies of the rows that arrived between two edges, and the backlog."""
    num_stretches = len(edges) - 1
    first, last = (
        np.clip(np.searchsorted(edges, moment_s, side="right") - 1, 0, num_stretches - 1)
        for moment_s in (simulated.first_arrival_s, simulated.last_arrival_s)
    )
    # Rows of one batch may have arrived over several periods: each gets its part.
    parts = last - first + 1
    batch = np.repeat(np.arange(len(parts)), parts)
    stretch_index = (
        np.arange(len(batch)) - np.repeat(np.cumsum(parts) - parts, parts) + first[batch]
    )
    first_s, last_s = simulated.first_arrival_s[batch], simulated.last_arrival_s[batch]
    begin_s = np.maximum(first_s, edges[stretch_index])
    end_s = np.maximum(np.minimum(last_s, edges[stretch_index + 1]), begin_s)
    width_s = np.maximum(last_s - first_s, LEAST_WIDTH_S)
    share = np.where(parts[batch] == 1, 1.0, (end_s - begin_s) / width_s)
    waits = Waits(
        num_rows=share * simulated.num_rows[batch],
        low_s=simulated.commit_s[batch] - end_s,
        high_s=simulated.commit_s[batch] - begin_s,
        batch_s=simulated.duration_s[batch],
    )
    rates = _mean_rates(trace, edges)
    backlog = np.median(simulated.peak_backlog_rows(edges), axis=1)
    for stretch in range(num_stretches):
        in_stretch = (stretch_index == stretch) & (waits.num_rows > 0.0)
        p50_s = p99_s = None
        arrived = Waits(*(values[in_stretch] for values in waits))
        if in_stretch.any():
            p50_s, p99_s = arrived.quantiles_s(0.5, 0.99)
        num_late = arrived.late_rows(target).sum() + overdue_rows[stretch]
        num_rows = arrived.num_rows.sum() + overdue_rows[stretch]
        late_ratio = float(num_late / num_rows) if num_rows > 0.0 else None
        yield TraceStretch(
            start_s=float(edges[stretch]),
            rate_per_s=float(rates[stretch]),
            p50_s=p50_s,
            p99_s=p99_s,
            late_ratio=late_ratio,
            backlog_rows=float(backlog[stretch]),
        )


def _mean_rates(trace: RateTrace, edges: Array) -> Array:
    times = np.array([*trace.times_s, trace.end_s])
    rows_until = np.concatenate([[0.0], np.cumsum(np.diff(times) * np.array(trace.rates_per_s))])
    return np.asarray(np.diff(np.interp(edges, times, rows_until)) / np.diff(edges))
