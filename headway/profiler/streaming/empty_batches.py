"""Batches without rows: how many ran, and how much earlier they emitted windows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headway.domain import EmptyBatches
from headway.profiler.rows import Record
from headway.profiler.streaming.batch_samples import is_timed, known_rows


def empty_batches(reports: Sequence[Record], from_s: float) -> EmptyBatches | None:
    """The batches without rows from an instant on; None if none ran, or no others did.

    An idle query also reports batches that it did not run: they have no ``addBatch``.

    Notes
    -----
    theory.md (Y9).
    """
    ran = _ran(reports, from_s)
    empty = [report for report in ran if known_rows(report) == 0]
    num_filled = sum(known_rows(report) > 0 for report in ran)
    if not empty or not num_filled:
        return None
    removed = np.array([_num_removed(report) for report in ran], dtype=np.float64)
    ahead_s = np.array([_ahead_s(ran, index) for index in range(len(ran))])
    is_empty = np.array([known_rows(report) == 0 for report in ran])
    counts = is_empty & (removed > 0) & np.isfinite(ahead_s)
    return EmptyBatches(
        num_per_batch=len(empty) / num_filled,
        duration_s=float(np.mean([_duration_s(report) for report in empty])),
        emitted_share=float(removed[is_empty].sum() / removed.sum()) if removed.sum() else 0.0,
        ahead_s=float(np.average(ahead_s[counts], weights=removed[counts]))
        if counts.any()
        else 0.0,
    )


def _ran(reports: Sequence[Record], from_s: float) -> list[Record]:
    """The batches that ran, once each, in order."""
    by_batch: dict[int, Record] = {}
    for report in reports:
        if is_timed(report) and report["started_s"] >= from_s and _has_run(report):
            by_batch.setdefault(report["batch_id"], report)
    return [by_batch[batch_id] for batch_id in sorted(by_batch)]


def _has_run(report: Record) -> bool:
    return report["phases_s"].get("addBatch") is not None


def _ahead_s(ran: Sequence[Record], index: int) -> float:
    """From the commit of a batch to that of the next one with rows; nan if there is none [s]."""
    later = (report for report in ran[index + 1 :] if known_rows(report) > 0)
    filled = next(later, None)
    return np.nan if filled is None else _committed_s(filled) - _committed_s(ran[index])


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
