"""Batches without rows: how many ran, and how much earlier they emitted windows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from headway.assumptions.predictions import POLLING_DELAY_S
from headway.domain import EmptyBatches
from headway.profiler.rows import Record
from headway.profiler.streaming.batch_samples import is_timed, known_rows


def empty_batches(
    reports: Sequence[Record], from_s: float, trigger_s: float = 0.0
) -> EmptyBatches | None:
    """The batches without rows from an instant on (Y9); None if none ran, or no others did.

    An idle query also reports batches that it did not run: they have no ``addBatch``.
    """
    ran = _ran(reports, from_s)
    empty = [report for report in ran if known_rows(report) == 0]
    num_filled = sum(known_rows(report) > 0 for report in ran)
    if not empty or not num_filled:
        return None
    removed = np.array([_num_removed(report) for report in ran], dtype=np.float64)
    ahead_s = np.array([_ahead_s(ran, index, trigger_s) for index in range(len(ran))])
    is_empty = np.array([known_rows(report) == 0 for report in ran])
    counts = is_empty & (removed > 0) & np.isfinite(ahead_s)
    return EmptyBatches(
        num_per_batch=len(empty) / num_filled,
        duration_s=float(np.mean([_duration_s(report) for report in empty])),
        emitted_share=float(removed[is_empty].sum() / removed.sum()) if removed.sum() else 0.0,
        ahead_s=max(float(np.average(ahead_s[counts], weights=removed[counts])), 0.0)
        if counts.any()
        else 0.0,
    )


def _ran(reports: Sequence[Record], from_s: float) -> list[Record]:
    """The batches that ran, once each, in order."""
    by_batch: dict[int, Record] = {}
    for report in reports:
        has_run = is_timed(report) and report["phases_s"].get("addBatch") is not None
        if has_run and report["started_s"] >= from_s:
            by_batch.setdefault(report["batch_id"], report)
    return [by_batch[batch_id] for batch_id in sorted(by_batch)]


def _ahead_s(ran: Sequence[Record], index: int, trigger_s: float) -> float:
    """From the commit of a batch to that of the next with rows, without empty ones [s].

    Nan if there is none.
    """
    later = (number for number in range(index + 1, len(ran)) if known_rows(ran[number]) > 0)
    next_filled = next(later, None)
    if next_filled is None:
        return np.nan
    filled, empty = ran[next_filled], ran[next_filled - 1]
    return _committed_s(filled) - _held_up_s(empty, filled, trigger_s) - _committed_s(ran[index])


def _held_up_s(empty: Record, filled: Record, trigger_s: float) -> float:
    """How much later a batch began since one without rows ran before it [s]."""
    empty_s, begun_s = _duration_s(empty), float(filled["started_s"])
    if begun_s > empty["started_s"] + empty_s + POLLING_DELAY_S.value:
        return 0.0
    could_begin_s = empty["started_s"] + empty_s / (known_rows(filled) + 1.0)
    if trigger_s > 0.0:
        could_begin_s = math.ceil(could_begin_s / trigger_s) * trigger_s
    return float(max(begun_s - could_begin_s, 0.0))


def _duration_s(report: Record) -> float:
    return float(report["phases_s"]["triggerExecution"])


def _committed_s(report: Record) -> float:
    """When its rows were committed [epoch s]."""
    after_commit_s = report["phases_s"].get("commitOffsets") or 0.0
    return float(report["started_s"]) + _duration_s(report) - after_commit_s


def _num_removed(report: Record) -> int:
    """Rows that left the state: of an aggregation in append mode, those that it emitted."""
    operators = report["stateful_operators"] or ()
    return sum(max(operator["num_removed"] or 0, 0) for operator in operators)
