"""Batches that become slower for the same rows, within a run or over days: how much, where, why."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from headway.assumptions import fits
from headway.assumptions.files import COMPACTION_BATCHES
from headway.domain import DurationGrowth, GrowthCause, QueryShape, SlowGrowth, SlowMeasure
from headway.domain.profile import CHECKPOINT_PHASES
from headway.few_numbers import median_of
from headway.models.arrays import Array
from headway.models.estimation.regression import is_spread, lag_one_correlation
from headway.models.estimation.trend import Trend, trend_of
from headway.profiler.streaming.adaptive import count_of
from headway.profiler.streaming.fit import DurationFit, batches_modelled_s
from headway.profiler.streaming.samples import BatchSample, QueryRun
from headway.sparkconf import reader_limit
from headway.units import S_PER_DAY

#: Causes that go on as they did: not those that end with the memory of executors, or a single key.
_STEADY_CAUSES = frozenset({"state_rows", "listing", "sink_log", "checkpoint"})
_FILE_SINK = "FileSink"
_LISTING_PHASE, _SINK_PHASE = "latest_offset", "add_batch"
_COMPACTED: Mapping[str, GrowthCause] = {_LISTING_PHASE: "listing", _SINK_PHASE: "sink_log"}
_INTERVAL_KEYS = {
    "listing": "spark.sql.streaming.fileSource.log.compactInterval",
    "sink_log": "spark.sql.streaming.fileSink.log.compactInterval",
}


def growth_of(run: QueryRun, fit: DurationFit) -> DurationGrowth | None:
    """Growth of the batches of a run, compared with what the fit expects of their rows and state.

    None if they do not grow: theory.md (E45).
    """
    at_s = _since_first_s(run)
    durations_s = np.array([batch.duration_s for batch in run.batches])
    driver_s = sum(phase.mean_s for phase in fit.driver_phases)
    expected_s = batches_modelled_s(run, driver_s, fit.stages)
    ratios = durations_s / expected_s
    trend = trend_of(at_s, ratios)
    if not trend.is_growth or at_s[-1] < fits.LEAST_GROWTH_SPAN_S.value:
        return None
    first, last = np.clip((trend.first, trend.last), ratios.min(), ratios.max()).tolist()
    rows = np.array([float(batch.num_rows) for batch in run.batches])
    parts_s = _parts_s(run, fit)
    ends_s = {}
    for name, times_s in parts_s.items():
        # By a line in time and rows, at the mean rows.
        first_s, rise_s, _ = _line(at_s, rows, times_s).tolist()
        ends_s[name] = max(first_s, 0.0), max(first_s + rise_s, 0.0)
    part = max(ends_s, key=lambda name: ends_s[name][1] - ends_s[name][0])
    usual_s = float(expected_s.mean())
    growth = DurationGrowth(
        first_s=first * usual_s,
        last_s=last * usual_s,
        span_s=float(at_s[-1]),
        is_same_load=not is_spread(rows),
        part=part,
        part_first_s=ends_s[part][0],
        part_last_s=ends_s[part][1],
        **_causes(run, fit, part, at_s),
    )
    part_trend = trend_of(at_s, parts_s[part])
    if not _is_foreseeable(growth, part_trend):
        return growth
    around = ratios / (first + (last - first) * at_s / at_s[-1])
    residuals = (around / around.mean() - 1.0) * np.sqrt(len(around) / (len(around) - 1))
    return replace(
        growth,
        part_rise_ratio=part_trend.rise_high / growth.span_s,
        ended=_ended(run),
        batch_ratio=min(float(np.sqrt(np.mean(np.square(residuals)))), fit.noise.batch_ratio),
        autocorrelation=lag_one_correlation([residuals]),
    )


def _since_first_s(run: QueryRun) -> Array:
    """Starts of the batches of a run, from that of the first one."""
    return np.array([batch.started_s for batch in run.batches]) - run.batches[0].started_s


def _ended(run: QueryRun) -> str:
    """When the last batch of a run ended."""
    last = run.batches[-1]
    ended = datetime.fromtimestamp(last.started_s + last.duration_s, UTC)
    return f"{ended:%Y-%m-%dT%H:%M:%SZ}"


def _is_foreseeable(growth: DurationGrowth, part: Trend) -> bool:
    """Whether the growth of its part is known well enough to be extrapolated: (P31)."""
    grown_s, part_grown_s = growth.last_s - growth.first_s, growth.part_last_s - growth.part_first_s
    return (
        growth.is_same_load
        and bool(growth.causes)
        and set(growth.causes) <= _STEADY_CAUSES
        and part_grown_s >= fits.LEAST_GROWN_PART_RATIO.value * grown_s
        and part.is_growth
        and part.later_share <= 1.0 - fits.LEAST_LATER_SHARE.value
        and part.rise_high - part.rise_low <= 2.0 * fits.MOST_RISE_ERROR_RATIO.value * part.rise
    )


def _parts_s(run: QueryRun, fit: DurationFit) -> dict[str, Array]:
    """Times of the phases of the driver and of the stages, by name, in each batch."""
    parts_s = {
        phase.name: np.array([_phase_s(batch, phase.name) for batch in run.batches])
        for phase in fit.driver_phases
    }
    for index, stage in enumerate(fit.stages):
        parts_s[stage.called] = np.array([batch.stages[index].span_s for batch in run.batches])
    return parts_s


def _phase_s(batch: BatchSample, name: str) -> float:
    """Time of the driver in a phase, which for addBatch is the part without a running stage."""
    recorded_s = batch.phases_s.get(name, 0.0)
    return max(recorded_s - batch.stages_s, 0.0) if name == _SINK_PHASE else recorded_s


def _line(at_s: Array, rows: Array, values_s: Array) -> Array:
    """A value at the first batch, its rise until the last one, and by each row beyond the mean."""
    columns = np.column_stack([np.ones_like(at_s), at_s / at_s[-1], rows - rows.mean()])
    return np.asarray(np.linalg.lstsq(columns, values_s, rcond=None)[0])


def _causes(run: QueryRun, fit: DurationFit, part: str, at_s: Array) -> dict[str, Any]:
    """What grew together with the batches, the likeliest first, and the numbers of it."""
    names = [stage.called for stage in fit.stages]
    if part not in names:
        cause = _cause_of_phase(part, run.shape)
        return {"causes": () if cause is None else (cause,)}
    stages = [batch.stages[names.index(part)] for batch in run.batches]
    in_state = trend_of(at_s, np.array([float(batch.state.num_rows) for batch in run.batches]))
    largest = [stage.rows_largest / max(stage.rows_read, 1.0) for stage in stages]
    in_largest = trend_of(at_s, np.array(largest))
    in_gc = trend_of(at_s, np.array([stage.gc_s for stage in stages]))
    in_tasks = trend_of(at_s, np.array([stage.run_s for stage in stages]))
    causes: list[GrowthCause] = []
    numbers: dict[str, float] = {}
    if in_state.is_growth:
        causes.append("state_rows")
        numbers |= {"state_first_rows": max(in_state.first, 0.0), "state_last_rows": in_state.last}
    if in_largest.is_growth:
        causes.append("largest_task")
        numbers["largest_first_share"] = max(in_largest.first, 0.0)
        numbers["largest_last_share"] = min(in_largest.last, 1.0)
    if in_gc.is_growth and in_gc.rise >= fits.LEAST_GC_SHARE.value * in_tasks.rise:
        causes.append("gc")
        numbers |= {"gc_first_s": max(in_gc.first, 0.0), "gc_last_s": in_gc.last}
    return {"causes": tuple(causes), **numbers}


def _cause_of_phase(name: str, shape: QueryShape) -> GrowthCause | None:
    """What makes a phase of the driver longer and longer; None if that is not known."""
    if name == _LISTING_PHASE:
        files = any(reader_limit(source).counts.of_files for source in shape.sources)
        return "listing" if files else None
    if name == _SINK_PHASE and shape.sink.startswith(_FILE_SINK):
        return "sink_log"
    return "checkpoint" if name in CHECKPOINT_PHASES else None


def slow_growth_of(run: QueryRun, properties: Mapping[str, str]) -> Iterator[SlowGrowth]:
    """What grows slowly in a run of days, and compactions of its logs: theory.md (E52).

    **(E52)** Slow growth: for each phase of the driver, minus what a line in rows and time
    attributes to the rows, and for the rows and bytes of the state, the sign test and the slope of
    (E45) are applied to runs of two days or more, since a shorter one may show a part of the daily
    cycle. A phase grows slowly if the score is 3.1 or more, the rise is at least 2% of the first
    value, a third of it or more is in the later half, and the lower end of the 90% interval of its
    slope is above 0. Spark's logs of file sources and file sinks are compacted in one of `c`
    batches, ten unless `compactInterval` of the log says otherwise, which rewrites all entries: of
    the `c` remainders of the batch number, the one with the longest median phase is compared with
    the other batches by ranks (Mann and Whitney 1947, doi:10.1214/aoms/1177730491), and is
    compaction if the score is 4 or more. What it takes beyond the median of the `c - 1` batches
    before has a slope by (E45), however short the run is.
    """
    batches = run.batches
    if len(batches) < fits.LEAST_BATCHES_TO_CUT.value:
        return
    at_s = _since_first_s(run)
    rows = np.array([float(batch.num_rows) for batch in batches])
    is_long = at_s[-1] >= fits.LEAST_SLOW_SPAN_S.value
    for name in dict.fromkeys(name for batch in batches for name in batch.phases_s):
        times_s = np.array([_phase_s(batch, name) for batch in batches])
        cause = _cause_of_phase(name, run.shape)
        if cause is not None and _COMPACTED.get(name) == cause:
            interval = count_of(properties.get(_INTERVAL_KEYS[cause])) or COMPACTION_BATCHES.value
            yield from _compaction(run, name, cause, interval, at_s, times_s)
        trend = trend_of(at_s, _at_mean_rows(at_s, rows, times_s))
        if is_long and _is_slow_growth(trend):
            yield _slow_growth(run, "phase", name, trend, at_s, cause=cause)
    if not is_long or not run.shape.stateful_operators:
        return
    sizes: Mapping[SlowMeasure, Sequence[float]] = {
        "state_rows": [batch.state.num_rows for batch in batches],
        "state_bytes": [batch.state.memory_bytes for batch in batches],
    }
    for measure, values in sizes.items():
        trend = trend_of(at_s, np.array(values, dtype=np.float64))
        if _is_slow_growth(trend):
            yield _slow_growth(run, measure, "state", trend, at_s)


def _is_slow_growth(trend: Trend) -> bool:
    return (
        trend.score >= fits.LEAST_TREND_SCORE.value
        and trend.rise >= fits.LEAST_SLOW_RISE_RATIO.value * max(trend.first, 0.0)
        and trend.later_share >= fits.LEAST_LATER_SHARE.value
        and trend.rise_low > 0.0
    )


def _slow_growth(
    run: QueryRun,
    measure: SlowMeasure,
    part: str,
    trend: Trend,
    at_s: Array,
    *,
    every_batches: int = 1,
    cause: GrowthCause | None = None,
) -> SlowGrowth:
    span_s = float(at_s[-1])
    per_day, low_per_day, high_per_day = (
        rise * S_PER_DAY / span_s for rise in (trend.rise, trend.rise_low, trend.rise_high)
    )
    return SlowGrowth(
        measure=measure,
        part=part,
        span_s=span_s,
        rise_per_day=per_day,
        rise_low_per_day=min(low_per_day, per_day),
        rise_high_per_day=max(high_per_day, per_day),
        ended=_ended(run),
        every_batches=every_batches,
        cause=cause,
    )


def _at_mean_rows(at_s: Array, rows: Array, times_s: Array) -> Array:
    """Times of batches without what a line attributes to their rows."""
    more_rows = rows - rows.mean()
    if not np.any(more_rows):
        return times_s
    return np.asarray(times_s - _line(at_s, rows, times_s)[2] * more_rows)


def _compaction(
    run: QueryRun, phase: str, cause: GrowthCause, interval: int, at_s: Array, times_s: Array
) -> Iterator[SlowGrowth]:
    """The growth of what one batch in an interval takes longer in a phase, if one does."""
    if interval > len(run.batches):
        return
    remainders = np.array([batch.batch_id % interval for batch in run.batches])
    medians_s = [
        median_of(times_s[remainders == remainder]) if np.any(remainders == remainder) else 0.0
        for remainder in range(interval)
    ]
    compacts = remainders == int(np.argmax(medians_s))
    if compacts.sum() < fits.LEAST_BATCHES_TO_CUT.value or compacts.all():
        return
    if _rank_score(times_s[compacts], times_s[~compacts]) < fits.LEAST_COMPACTION_SCORE.value:
        return
    extra_s = [
        times_s[index] - median_of(before_s)
        for index in np.flatnonzero(compacts)
        if len(before_s := times_s[max(index - interval + 1, 0) : index])
    ]
    compacted_at_s = at_s[compacts][-len(extra_s) :]
    yield _slow_growth(
        run,
        "compaction",
        phase,
        trend_of(compacted_at_s, np.array(extra_s)),
        compacted_at_s - compacted_at_s[0],
        every_batches=interval,
        cause=cause,
    )


def _rank_score(larger: Array, others: Array) -> float:
    """The statistic of Mann and Whitney over its standard deviation, from its mean."""
    sorted_others = np.sort(others)
    below = np.searchsorted(sorted_others, larger, side="left")
    not_above = np.searchsorted(sorted_others, larger, side="right")
    wins = 0.5 * float(np.sum(below + not_above))
    num_larger, num_others = len(larger), len(others)
    deviation = math.sqrt(num_larger * num_others * (num_larger + num_others + 1) / 12.0)
    return (wins - 0.5 * num_larger * num_others) / deviation
