"""Arrivals at the sources of a query, from offsets if they count rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headway.domain import ObservedArrivals
from headway.profiler.offsets import counts_rows, num_source_partitions, rows_between
from headway.profiler.streaming.samples import ArrivalSeries, MeanFile, SourceSample

OFFSETS = "offsets"
ROWS = "rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchArrivals:
    """One batch at its sources: the time since the previous batch, its rows, the offsets.

    ``sources_before`` are the offsets at the previous batch.
    """

    interval_s: float
    num_rows: float
    sources: tuple[SourceSample, ...]
    sources_before: tuple[SourceSample, ...]


def arrival_series(batches: Sequence[BatchArrivals]) -> ArrivalSeries:
    """Arrivals in the intervals of consecutive batches.

    Offsets are used only if, over the batches, the difference between start and end equals the rows
    that the batch read. Arrivals are the rows that a batch took plus the increase of the rows that
    it left behind: the advance of the latest offset, which no rate limit affects.
    """
    interval_s = np.array([batch.interval_s for batch in batches], dtype=np.float64)
    taken_rows = np.array([batch.num_rows for batch in batches], dtype=np.float64)
    if not batches or not _offsets_count_rows(batches):
        return ArrivalSeries(
            counted=ROWS,
            arrived_rows=taken_rows,
            interval_s=interval_s,
            lag_rows=None,
            partition_rows={},
        )
    lag_rows = np.array([_total_lag(batch.sources) for batch in batches])
    lag_before_rows = np.array([_total_lag(batch.sources_before) for batch in batches])
    by_partition: Counter[str] = Counter()
    for source in (source for batch in batches for source in batch.sources):
        # Other offsets are positions, too, but not of partitions.
        if num_source_partitions(source.end) is not None:
            by_partition.update(rows_between(source.start, source.end))
    return ArrivalSeries(
        counted=OFFSETS,
        arrived_rows=np.maximum(taken_rows + lag_rows - lag_before_rows, 0.0),
        interval_s=interval_s,
        lag_rows=lag_rows,
        partition_rows=by_partition if len(by_partition) > 1 else {},
    )


def observed_arrivals(
    series: ArrivalSeries, event_time_lag_s: float | None, mean_file: MeanFile | None = None
) -> ObservedArrivals:
    """Variation of the rate between batches; intervals are weighted by their length.

    ``event_time_lag_s``: delay of the newest rows; ``mean_file``: for file sources.
    """
    rates_per_s = series.arrived_rows / series.interval_s
    order = np.argsort(rates_per_s)
    weight = np.cumsum(series.interval_s[order]) / series.interval_s.sum()

    def quantile(q: float) -> float:
        index = min(int(np.searchsorted(weight, q)), len(order) - 1)
        return float(rates_per_s[order[index]])

    rows = series.partition_rows
    lag = series.lag_rows
    return ObservedArrivals(
        counted=series.counted,
        rate_p05_per_s=quantile(0.05),
        rate_p50_per_s=quantile(0.5),
        rate_p95_per_s=quantile(0.95),
        rate_max_per_s=float(rates_per_s.max()),
        lag_p95_rows=None if lag is None else float(np.quantile(lag, 0.95)),
        lag_max_rows=None if lag is None else float(lag.max()),
        largest_partition_share=max(rows.values()) / sum(rows.values())
        if rows and sum(rows.values()) > 0
        else None,
        event_time_lag_s=event_time_lag_s,
        file_mean_rows=None if mean_file is None else mean_file.rows,
        file_mean_bytes=None if mean_file is None else mean_file.size_bytes,
    )


def _offsets_count_rows(batches: Sequence[BatchArrivals]) -> bool:
    sources = [source for batch in batches for source in (*batch.sources, *batch.sources_before)]
    if not sources or any(source.end is None or source.latest is None for source in sources):
        return False
    pairs = [[(source.start, source.end) for source in batch.sources] for batch in batches]
    return counts_rows(pairs, [batch.num_rows for batch in batches])


def _total_lag(sources: Sequence[SourceSample]) -> float:
    return float(sum(sum(rows_between(source.end, source.latest).values()) for source in sources))
