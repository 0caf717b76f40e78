"""Batches of a run that become slower and slower for the same rows: how much, where, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np

from headway.assumptions.fits import (
    LEAST_GC_SHARE,
    LEAST_GROWN_PART_RATIO,
    LEAST_GROWTH_SPAN_S,
    LEAST_LATER_SHARE,
    MOST_RISE_ERROR_RATIO,
)
from headway.domain import DurationGrowth, GrowthCause, QueryShape
from headway.domain.profile import CHECKPOINT_PHASES
from headway.models.arrays import Array
from headway.models.estimation.regression import is_spread, lag_one_correlation
from headway.models.estimation.trend import Trend, trend_of
from headway.profiler.streaming.fit import DurationFit, batches_modelled_s
from headway.profiler.streaming.samples import BatchSample, QueryRun
from headway.sparkconf import reader_limit

#: Causes that go on as they did: not those that end with the memory of executors, or a single key.
_STEADY_CAUSES = frozenset(
    {GrowthCause.STATE_ROWS, GrowthCause.LISTING, GrowthCause.SINK_LOG, GrowthCause.CHECKPOINT}
)
_FILE_SINK = "FileSink"
LISTING_PHASE, SINK_PHASE = "latest_offset", "add_batch"


class _Part(NamedTuple):
    """A driver phase, or a stage by its index, at the beginning and at the end of a run."""

    name: str
    first_s: float
    last_s: float
    values_s: Array
    stage: int | None = None


def growth_of(run: QueryRun, fit: DurationFit) -> DurationGrowth | None:
    """Growth of the batches of a run, compared with what the fit expects of their rows and state.

    None if they do not grow: theory.md (E45).
    """
    batches = run.batches
    at_s = np.array([batch.started_s for batch in batches]) - batches[0].started_s
    durations_s = np.array([batch.duration_s for batch in batches])
    driver_s = sum(phase.mean_s for phase in fit.driver_phases)
    expected_s = batches_modelled_s(run, driver_s, fit.stages)
    ratios = durations_s / expected_s
    trend = trend_of(at_s, ratios)
    if not trend.is_growth or at_s[-1] < LEAST_GROWTH_SPAN_S.value:
        return None
    first, last = np.clip((trend.first, trend.last), ratios.min(), ratios.max()).tolist()
    rows = np.array([float(batch.num_rows) for batch in batches])
    part = max(_parts(run, fit, at_s, rows), key=lambda part: part.last_s - part.first_s)
    usual_s = float(expected_s.mean())
    growth = DurationGrowth(
        first_s=first * usual_s,
        last_s=last * usual_s,
        span_s=float(at_s[-1]),
        is_same_load=not is_spread(rows),
        part=part.name,
        part_first_s=part.first_s,
        part_last_s=part.last_s,
        **_causes(run, part, at_s),
    )
    part_trend = trend_of(at_s, part.values_s)
    if not _is_foreseeable(growth, part_trend):
        return growth
    ended_s = batches[-1].started_s + batches[-1].duration_s
    around = ratios / (first + (last - first) * at_s / at_s[-1])
    residuals = (around / around.mean() - 1.0) * np.sqrt(len(around) / (len(around) - 1))
    return replace(
        growth,
        part_rise_ratio=part_trend.rise_high / growth.span_s,
        ended=f"{datetime.fromtimestamp(ended_s, UTC):%Y-%m-%dT%H:%M:%SZ}",
        batch_ratio=min(float(np.sqrt(np.mean(np.square(residuals)))), fit.noise.batch_ratio),
        autocorrelation=lag_one_correlation([residuals]),
    )


def _is_foreseeable(growth: DurationGrowth, part: Trend) -> bool:
    """Whether the growth of its part is known well enough to be extrapolated: (P31)."""
    grown_s, part_grown_s = growth.last_s - growth.first_s, growth.part_last_s - growth.part_first_s
    return (
        growth.is_same_load
        and bool(growth.causes)
        and set(growth.causes) <= _STEADY_CAUSES
        and part_grown_s >= LEAST_GROWN_PART_RATIO.value * grown_s
        and part.is_growth
        and part.later_share <= 1.0 - LEAST_LATER_SHARE.value
        and part.rise_high - part.rise_low <= 2.0 * MOST_RISE_ERROR_RATIO.value * part.rise
    )


def _parts(run: QueryRun, fit: DurationFit, at_s: Array, rows: Array) -> Iterator[_Part]:
    """The phases of the driver and the stages, each at the mean rows of a batch."""
    for phase in fit.driver_phases:
        values_s = np.array([phase_s(batch, phase.name) for batch in run.batches])
        yield _Part(phase.name, *_ends_s(at_s, rows, values_s), values_s)
    for stage_index, stage in enumerate(fit.stages):
        values_s = np.array([batch.stages[stage_index].span_s for batch in run.batches])
        yield _Part(stage.called, *_ends_s(at_s, rows, values_s), values_s, stage_index)


def phase_s(batch: BatchSample, name: str) -> float:
    """Time of the driver in a phase, which for addBatch is the part without a running stage."""
    recorded_s = batch.phases_s.get(name, 0.0)
    return max(recorded_s - batch.stages_s, 0.0) if name == SINK_PHASE else recorded_s


def _ends_s(at_s: Array, rows: Array, values_s: Array) -> tuple[float, float]:
    """A part at the first and at the last batch, by a line in time and rows, at the mean rows."""
    columns = np.column_stack([np.ones_like(at_s), at_s / at_s[-1], rows - rows.mean()])
    (first_s, rise_s, _), *_ = np.linalg.lstsq(columns, values_s, rcond=None)
    return max(float(first_s), 0.0), max(float(first_s + rise_s), 0.0)


def _causes(run: QueryRun, part: _Part, at_s: Array) -> dict[str, Any]:
    """What grew together with the batches, the likeliest first, and the numbers of it."""
    if part.stage is None:
        cause = cause_of_phase(part.name, run.shape)
        return {"causes": () if cause is None else (cause,)}
    stages = [batch.stages[part.stage] for batch in run.batches]
    in_state = trend_of(at_s, np.array([float(batch.state.num_rows) for batch in run.batches]))
    largest = [stage.rows_largest / max(stage.rows_read, 1.0) for stage in stages]
    in_largest = trend_of(at_s, np.array(largest))
    in_gc = trend_of(at_s, np.array([stage.gc_s for stage in stages]))
    in_tasks = trend_of(at_s, np.array([stage.run_s for stage in stages]))
    causes: list[GrowthCause] = []
    numbers: dict[str, float] = {}
    if in_state.is_growth:
        causes.append(GrowthCause.STATE_ROWS)
        numbers |= {"state_first_rows": max(in_state.first, 0.0), "state_last_rows": in_state.last}
    if in_largest.is_growth:
        causes.append(GrowthCause.LARGEST_TASK)
        numbers["largest_first_share"] = max(in_largest.first, 0.0)
        numbers["largest_last_share"] = min(in_largest.last, 1.0)
    if in_gc.is_growth and in_gc.rise >= LEAST_GC_SHARE.value * in_tasks.rise:
        causes.append(GrowthCause.GC)
        numbers |= {"gc_first_s": max(in_gc.first, 0.0), "gc_last_s": in_gc.last}
    return {"causes": tuple(causes), **numbers}


def cause_of_phase(name: str, shape: QueryShape) -> GrowthCause | None:
    """What makes a phase of the driver longer and longer; None if that is not known."""
    if name == LISTING_PHASE:
        files = any(reader_limit(source).counts.of_files for source in shape.sources)
        return GrowthCause.LISTING if files else None
    if name == SINK_PHASE and shape.sink.startswith(_FILE_SINK):
        return GrowthCause.SINK_LOG
    return GrowthCause.CHECKPOINT if name in CHECKPOINT_PHASES else None
