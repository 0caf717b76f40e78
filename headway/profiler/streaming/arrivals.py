"""Arrivals at the sources of a query, from offsets if they count rows, and lags of the newest rows.

Of a run that drains a backlog (AvailableNow, Once), how fast it reads is no rate of arrival.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from headway.assumptions import logs
from headway.assumptions.fits import LEAST_BATCHES
from headway.domain import Drain, EventTimeLag, ObservedArrivals
from headway.few_numbers import median_of, quantiles_of
from headway.models.arrays import Array
from headway.models.estimation.regression import is_spread
from headway.profiler.offsets import counts_rows, num_source_partitions, rows_between
from headway.profiler.recorded_queries import QueryLife
from headway.profiler.rows import Record
from headway.profiler.streaming.batch_samples import is_timed, known_rows, source_samples
from headway.profiler.streaming.samples import ArrivalSeries, QueryRun, SourceSample
from headway.units import format_rate

_MOST_LAGS = 12
_NUM_PARTS = 4
_P95 = np.array([0.95])
_DIGITS_OF_MS = 3

_Sources: TypeAlias = tuple[SourceSample, ...]


def arrival_series(
    intervals_s: Sequence[float],
    rows: Sequence[float],
    sources: Sequence[tuple[_Sources, _Sources]],
    idle_s: Sequence[float] | float = 0.0,
) -> ArrivalSeries:
    """Arrivals in the intervals of consecutive batches, each after a pause of ``idle_s``.

    ``sources`` has the offsets of each batch, and of the one before it; empty if they are not used.
    Offsets are used only if, over the batches, the difference between start and end equals the rows
    that the batch read. Arrivals are the rows that a batch took plus the increase of the rows that
    it left behind: the advance of the latest offset, which no rate limit affects.
    """
    arrived_rows, lag_rows, by_partition = np.array(rows, np.float64), None, Counter[str]()
    by_offsets = _offsets_count(sources, rows)
    if by_offsets:
        lag_rows, lag_before_rows = np.array([tuple(map(_total_lag, both)) for both in sources]).T
        arrived_rows = np.maximum(arrived_rows + lag_rows - lag_before_rows, 0.0)
        for source in (source for of_batch, _ in sources for source in of_batch):
            # Other offsets are positions, too, but not of partitions.
            if num_source_partitions(source.end) is not None:
                by_partition.update(rows_between(source.start, source.end))
    return ArrivalSeries(
        counted="offsets" if by_offsets else "rows",
        arrived_rows=arrived_rows,
        interval_s=np.array(intervals_s, np.float64),
        lag_rows=lag_rows,
        partition_rows=by_partition if len(by_partition) > 1 else {},
        idle_s=np.array(idle_s, np.float64),
    )


def observed_arrivals(
    series: ArrivalSeries,
    event_time_lag_s: float | None,
    mean_file: tuple[float, float] | None = None,
) -> ObservedArrivals:
    """Variation of the rate between batches; intervals are weighted by their length.

    ``event_time_lag_s``: delay of the newest rows; ``mean_file``: rows and bytes, for file sources.
    """
    file_mean_rows, file_mean_bytes = mean_file or (None, None)
    rates_per_s = series.arrived_rows / series.interval_s
    order = np.argsort(rates_per_s)
    weight = np.cumsum(series.interval_s[order]) / series.interval_s.sum()

    def quantile(q: float) -> float:
        index = min(int(np.searchsorted(weight, q)), len(order) - 1)
        return float(rates_per_s[order[index]])

    rows, lag = series.partition_rows.values(), series.lag_rows
    return ObservedArrivals(
        counted=series.counted,
        rate_p05_per_s=quantile(0.05),
        rate_p50_per_s=quantile(0.5),
        rate_p95_per_s=quantile(0.95),
        rate_max_per_s=float(rates_per_s.max()),
        lag_p95_rows=None if lag is None else float(quantiles_of(lag, _P95)[0]),
        lag_max_rows=None if lag is None else float(lag.max()),
        largest_partition_share=max(rows) / sum(rows) if any(rows) else None,
        event_time_lag_s=event_time_lag_s,
        file_mean_rows=file_mean_rows,
        file_mean_bytes=file_mean_bytes,
    )


def rate_change(series: ArrivalSeries) -> str | None:
    """That the rate changed within the run, so that its mean is not the one to plan for."""
    lengths_s, num_parts = series.interval_s, _NUM_PARTS
    if len(lengths_s) < num_parts * LEAST_BATCHES.value:
        return None
    middle_s = np.cumsum(lengths_s) - 0.5 * lengths_s
    part = np.minimum((num_parts * middle_s / lengths_s.sum()).astype(int), num_parts - 1)
    part_s = np.bincount(part, lengths_s, minlength=num_parts)
    if not part_s.all():
        return None
    rates_per_s = np.bincount(part, series.arrived_rows, minlength=num_parts) / part_s
    mean_per_s = series.rate_per_s
    if mean_per_s is None or not is_spread(rates_per_s):
        return None
    low, high = map(format_rate, (float(rates_per_s.min()), float(rates_per_s.max())))
    return (
        f"its rate changed during the run: from {low} to {high} between quarters of its time; "
        f"{format_rate(mean_per_s)} is the mean, so state the rate to plan for"
    )


def _offsets_count(sources: Sequence[tuple[_Sources, _Sources]], rows: Sequence[float]) -> bool:
    samples = [source for of_batch, before in sources for source in (*of_batch, *before)]
    if not samples or any(source.end is None or source.latest is None for source in samples):
        return False
    return counts_rows([[(at.start, at.end) for at in of_batch] for of_batch, _ in sources], rows)


def _total_lag(sources: Sequence[SourceSample]) -> float:
    return float(sum(sum(rows_between(source.end, source.latest).values()) for source in sources))


def arrivals_or_drain(
    reports: Sequence[Record],
    observed: Sequence[Record],
    intervals_s: Mapping[int, float],
    idle_s: Mapping[int, float],
    life: QueryLife | None,
) -> tuple[ArrivalSeries, Drain | None]:
    """Arrivals while the ``observed`` batches ran; in a drain, what these read instead.

    ``reports`` are all batches of the run, ``idle_s`` the pauses before rows of a batch arrived,
    and ``life`` is how it ended.
    """
    # Batches without rows took time, too.
    batches = [
        (before, report)
        for before, report in pairwise(observed)
        if report["batch_id"] in intervals_s and known_rows(report) >= 0
    ]
    lengths_s = [intervals_s[report["batch_id"]] for _, report in batches]
    rows = [known_rows(report) for _, report in batches]
    drain = _drain_of(reports, intervals_s, life)
    if drain is not None:
        # What arrives meanwhile is left to the next run: rows that were read stand for a rate.
        return arrival_series(lengths_s, rows, ()), drain
    sources = [(source_samples(report), source_samples(before)) for before, report in batches]
    pauses_s = [idle_s.get(report["batch_id"], 0.0) for _, report in batches]
    return arrival_series(lengths_s, rows, sources, pauses_s), None


def _drain_of(
    reports: Sequence[Record], intervals_s: Mapping[int, float], life: QueryLife | None
) -> Drain | None:
    filled = [report for report in reports if known_rows(report) > 0 and is_timed(report)]
    if len(filled) < logs.LEAST_BATCHES_WITH_OFFSETS.value:
        return None
    is_drain = _ends_are_fixed(filled)
    if is_drain is None:
        has_ended = life is not None and life.has_ended and not life.has_failed
        is_drain = has_ended and _reads_equal_batches(filled, intervals_s)
    if not is_drain:
        return None
    last, rows = filled[-1], [known_rows(report) for report in filled]
    ended_s = last["started_s"] + last["phases_s"]["triggerExecution"]
    return Drain(
        backlog_rows=sum(rows),
        batch_rows=median_of(rows),
        num_batches=len(rows),
        duration_s=ended_s - filled[0]["started_s"],
    )


def _ends_are_fixed(filled: Sequence[Record]) -> bool | None:
    """Whether the latest offsets stood still while the query read up to them; None if unknown."""
    # As text: to read the offsets of every batch would take longer than all else here.
    latest = [[source["latest_offset"] for source in report["sources"] or ()] for report in filled]
    first_and_last = [source_samples(report) for report in (filled[0], filled[-1])]
    if not all(of_batch and all(of_batch) for of_batch in latest) or any(
        source.latest is None for of_batch in first_and_last for source in of_batch
    ):
        return None
    first, last = ([source.end for source in of_batch] for of_batch in first_and_last)
    return all(of_batch == latest[-1] for of_batch in latest) and first != last


def _reads_equal_batches(filled: Sequence[Record], intervals_s: Mapping[int, float]) -> bool:
    """Whether batches of equal size followed each other at once, however long each took.

    Rows of a query that keeps up as fast as possible follow the time since the last batch instead.
    The last batch of a drain has what is left.
    """
    middle = [report for report in filled[:-1] if report["batch_id"] in intervals_s]
    if len(middle) < logs.LEAST_BATCHES_WITH_OFFSETS.value:
        return False
    rows = np.array([known_rows(report) for report in middle])
    interval_s = np.array([intervals_s[report["batch_id"]] for report in middle])
    duration_s = np.array([report["phases_s"]["triggerExecution"] for report in filled[:-1]])
    starts_s = np.array([report["started_s"] for report in filled])
    pause_s = median_of(np.diff(starts_s) - duration_s)
    usual_s, at_once_s = median_of(duration_s), logs.AT_ONCE_MS.value / 1000.0
    short_s = max(at_once_s, logs.SHORT_PAUSE_RATIO.value * usual_s)
    are_equal = _spread_ratio(rows) <= logs.EQUAL_BATCHES_RATIO.value * _spread_ratio(
        rows / interval_s
    )
    return pause_s <= short_s and are_equal


def _spread_ratio(values: Array) -> float:
    return float(np.std(values) / np.mean(values))


def event_time_lags(runs: Sequence[QueryRun]) -> tuple[EventTimeLag, ...]:
    """How far the newest rows of batches are behind the triggers that read them: theory.md (T5).

    In groups of equal shares, if there are many lags. Runs weigh the same, however many batches
    they have. Runs without a trigger count only if none has one: their batches start at any time,
    so a millisecond decides nothing.
    """
    on_trigger = [run for run in runs if _trigger_s(run) > 0]
    lags_of_runs_s = [lags_s for run in on_trigger or runs if len(lags_s := _lags_s(run))]
    if not lags_of_runs_s:
        return ()
    weights = [np.full(len(lags_s), 1.0 / len(lags_s)) for lags_s in lags_of_runs_s]
    lag_s, lag_index = np.unique(np.concatenate(lags_of_runs_s), return_inverse=True)
    weight = np.bincount(lag_index, np.concatenate(weights))
    share = np.asarray(weight / weight.sum())
    if len(lag_s) > _MOST_LAGS:
        lag_s, share = _in_groups(lag_s, share)
    return tuple(
        EventTimeLag(lag_s=lag_of_group_s, batch_share=min(share_of_group, 1.0))
        for lag_of_group_s, share_of_group in zip(lag_s.tolist(), share.tolist(), strict=True)
    )


def typical_lag_s(run: QueryRun) -> float | None:
    """The median of these lags in a run, since a single row may be from another time."""
    lags_s = _lags_s(run)
    return median_of(lags_s) if len(lags_s) else None


def _in_groups(lag_s: Array, share: Array) -> tuple[Array, Array]:
    """Means of consecutive lags that have about the same share together."""
    middle = np.cumsum(share) - 0.5 * share
    _, group = np.unique(np.floor(_MOST_LAGS * middle), return_inverse=True)
    group_share = np.asarray(np.bincount(group, share), dtype=np.float64)
    return np.bincount(group, share * lag_s) / group_share, group_share


def _lags_s(run: QueryRun) -> Array:
    """Of each batch, from its trigger, after which it starts by a few milliseconds."""
    trigger_s = _trigger_s(run)
    lags_s = [
        batch.event_time_lag_s - _behind_trigger_s(batch.started_s, trigger_s)
        for batch in run.batches
        if batch.event_time_lag_s is not None
    ]
    # Spark writes times in whole milliseconds.
    return np.asarray(np.round(lags_s, _DIGITS_OF_MS), dtype=np.float64)


def _trigger_s(run: QueryRun) -> float:
    return 0.0 if run.is_gated else run.configuration.trigger_s


def _behind_trigger_s(started_s: float, trigger_s: float) -> float:
    """How long after its trigger a batch started; 0 for batches not started by a trigger."""
    behind_s = started_s % trigger_s if trigger_s > 0 else 0.0
    return behind_s if behind_s < logs.ON_TIME_RATIO.value * trigger_s else 0.0
