"""Runs that drain a backlog (AvailableNow, Once): how fast they read is no rate of arrival."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from headway.assumptions.logs import (
    AT_ONCE_MS,
    EQUAL_BATCHES_RATIO,
    LEAST_BATCHES_WITH_OFFSETS,
    SHORT_PAUSE_RATIO,
)
from headway.domain import Drain
from headway.models.arrays import Array
from headway.profiler.recorded_queries import QueryLife
from headway.profiler.rows import Record
from headway.profiler.streaming.arrivals import BatchArrivals, arrival_series
from headway.profiler.streaming.batch_samples import is_timed, known_rows, source_samples
from headway.profiler.streaming.samples import ArrivalSeries


def arrivals_of(reports: Sequence[Record], intervals_s: Mapping[int, float]) -> list[BatchArrivals]:
    """State of the sources at each batch; batches without rows took time, too."""
    return [
        BatchArrivals(
            interval_s=intervals_s[report["batch_id"]],
            num_rows=known_rows(report),
            sources=source_samples(report),
            sources_before=source_samples(before),
        )
        for before, report in pairwise(reports)
        if report["batch_id"] in intervals_s and known_rows(report) >= 0
    ]


def arrivals_or_drain(
    reports: Sequence[Record], observed: Sequence[Record], intervals_s: Mapping[int, float],
    life: QueryLife | None,
) -> tuple[ArrivalSeries, Drain | None]:  # fmt: skip
    """Arrivals while the ``observed`` batches ran; in a drain, what these read instead.

    ``reports`` are all batches of the run, and ``life`` how it ended.
    """
    batches = arrivals_of(observed, intervals_s)
    drain = _drain_of(reports, intervals_s, life)
    if drain is None:
        return arrival_series(batches), None
    # What arrives meanwhile is left to the next run: rows that were read stand for a rate.
    without_offsets = [replace(batch, sources=(), sources_before=()) for batch in batches]
    return arrival_series(without_offsets), drain


def _drain_of(
    reports: Sequence[Record], intervals_s: Mapping[int, float], life: QueryLife | None
) -> Drain | None:
    filled = [report for report in reports if known_rows(report) > 0 and is_timed(report)]
    if len(filled) < LEAST_BATCHES_WITH_OFFSETS.value:
        return None
    is_drain = _ends_are_fixed(filled)
    if is_drain is None:
        is_drain = _ended(life) and _reads_equal_batches(filled, intervals_s)
    if not is_drain:
        return None
    first_s, last_s = filled[0]["started_s"], filled[-1]["started_s"]
    duration_s = last_s + filled[-1]["phases_s"]["triggerExecution"] - first_s
    rows = [known_rows(report) for report in filled]
    return Drain(
        backlog_rows=sum(rows),
        batch_rows=float(np.median(rows)),
        num_batches=len(rows),
        duration_s=duration_s,
    )


def _ended(life: QueryLife | None) -> bool:
    return life is not None and life.has_ended and not life.has_failed


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
    if len(middle) < LEAST_BATCHES_WITH_OFFSETS.value:
        return False
    rows = np.array([known_rows(report) for report in middle])
    interval_s = np.array([intervals_s[report["batch_id"]] for report in middle])
    duration_s = np.array([report["phases_s"]["triggerExecution"] for report in filled[:-1]])
    starts_s = np.array([report["started_s"] for report in filled])
    pause_s = float(np.median(np.diff(starts_s) - duration_s))
    short_s = max(AT_ONCE_MS.value / 1000.0, SHORT_PAUSE_RATIO.value * float(np.median(duration_s)))
    return pause_s <= short_s and _spread_ratio(rows) <= EQUAL_BATCHES_RATIO.value * _spread_ratio(
        rows / interval_s
    )


def _spread_ratio(values: Array) -> float:
    return float(np.std(values) / np.mean(values))
