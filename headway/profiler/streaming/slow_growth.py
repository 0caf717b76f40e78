"""Growth over days: phases of the driver, compactions of logs, and the state, with their slopes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

import numpy as np

from headway.assumptions.files import COMPACTION_BATCHES
from headway.assumptions.fits import (
    LEAST_BATCHES_TO_CUT,
    LEAST_COMPACTION_SCORE,
    LEAST_LATER_SHARE,
    LEAST_SLOW_RISE_RATIO,
    LEAST_SLOW_SPAN_S,
    LEAST_TREND_SCORE,
)
from headway.domain import GrowthCause, SlowGrowth, SlowMeasure
from headway.models.arrays import Array
from headway.models.estimation.trend import Trend, trend_of
from headway.profiler.streaming.adaptive_settings import count_of
from headway.profiler.streaming.growth import LISTING_PHASE, SINK_PHASE, cause_of_phase, phase_s
from headway.profiler.streaming.samples import QueryRun
from headway.units import S_PER_DAY

_COMPACTED = {LISTING_PHASE: GrowthCause.LISTING, SINK_PHASE: GrowthCause.SINK_LOG}
_INTERVAL_KEYS = {
    GrowthCause.LISTING: "spark.sql.streaming.fileSource.log.compactInterval",
    GrowthCause.SINK_LOG: "spark.sql.streaming.fileSink.log.compactInterval",
}


def slow_growth_of(run: QueryRun, properties: Mapping[str, str]) -> tuple[SlowGrowth, ...]:
    """What grows slowly in a run of days, and compactions of its logs: theory.md (E52).

    Notes
    -----
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
    if len(batches) < LEAST_BATCHES_TO_CUT.value:
        return ()
    last = batches[-1]
    ended = datetime.fromtimestamp(last.started_s + last.duration_s, UTC)
    at_s = np.array([batch.started_s for batch in batches]) - batches[0].started_s
    return tuple(_growths(run, properties, at_s, f"{ended:%Y-%m-%dT%H:%M:%SZ}"))


def _growths(
    run: QueryRun, properties: Mapping[str, str], at_s: Array, ended: str
) -> Iterator[SlowGrowth]:
    rows = np.array([float(batch.num_rows) for batch in run.batches])
    is_long = at_s[-1] >= LEAST_SLOW_SPAN_S.value
    for name in dict.fromkeys(name for batch in run.batches for name in batch.phases_s):
        times_s = np.array([phase_s(batch, name) for batch in run.batches])
        cause = cause_of_phase(name, run.shape)
        if cause is not None and _COMPACTED.get(name) is cause:
            interval = count_of(properties.get(_INTERVAL_KEYS[cause])) or COMPACTION_BATCHES.value
            yield from _compaction(run, name, cause, interval, at_s, times_s, ended)
        trend = trend_of(at_s, _at_mean_rows(at_s, rows, times_s))
        if is_long and _is_slow_growth(trend):
            yield _growth("phase", name, trend, at_s, ended, cause=cause)
    if not is_long or not run.shape.stateful_operators:
        return
    sizes: Mapping[SlowMeasure, Sequence[float]] = {
        "state_rows": [batch.state.num_rows for batch in run.batches],
        "state_bytes": [batch.state.memory_bytes for batch in run.batches],
    }
    for measure, values in sizes.items():
        trend = trend_of(at_s, np.array(values, dtype=np.float64))
        if _is_slow_growth(trend):
            yield _growth(measure, "state", trend, at_s, ended)


def _is_slow_growth(trend: Trend) -> bool:
    return (
        trend.score >= LEAST_TREND_SCORE.value
        and trend.rise >= LEAST_SLOW_RISE_RATIO.value * max(trend.first, 0.0)
        and trend.later_share >= LEAST_LATER_SHARE.value
        and trend.rise_low > 0.0
    )


def _growth(
    measure: SlowMeasure,
    part: str,
    trend: Trend,
    at_s: Array,
    ended: str,
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
        ended=ended,
        every_batches=every_batches,
        cause=cause,
    )


def _at_mean_rows(at_s: Array, rows: Array, times_s: Array) -> Array:
    """Times of batches without what a line attributes to their rows."""
    more_rows = rows - rows.mean()
    if not np.any(more_rows):
        return times_s
    columns = np.column_stack([np.ones_like(at_s), at_s / at_s[-1], more_rows])
    (*_, per_row_s), *_ = np.linalg.lstsq(columns, times_s, rcond=None)
    return np.asarray(times_s - per_row_s * more_rows)


def _compaction(
    run: QueryRun,
    phase: str,
    cause: GrowthCause,
    interval: int,
    at_s: Array,
    times_s: Array,
    ended: str,
) -> Iterator[SlowGrowth]:
    """The growth of what one batch in an interval takes longer in a phase, if one does."""
    if interval > len(run.batches):
        return
    remainders = np.array([batch.batch_id % interval for batch in run.batches])
    medians_s = [
        float(np.median(times_s[remainders == remainder]))
        if np.any(remainders == remainder)
        else 0.0
        for remainder in range(interval)
    ]
    compacts = remainders == int(np.argmax(medians_s))
    if compacts.sum() < LEAST_BATCHES_TO_CUT.value or compacts.all():
        return
    if _rank_score(times_s[compacts], times_s[~compacts]) < LEAST_COMPACTION_SCORE.value:
        return
    extra_s = [
        times_s[index] - float(np.median(before_s))
        for index in np.flatnonzero(compacts)
        if len(before_s := times_s[max(index - interval + 1, 0) : index])
    ]
    compacted_at_s = at_s[compacts][-len(extra_s) :]
    trend = trend_of(compacted_at_s, np.array(extra_s))
    yield _growth(
        "compaction",
        phase,
        trend,
        compacted_at_s - compacted_at_s[0],
        ended,
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
