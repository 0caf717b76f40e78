"""A query under the gate: what its progress tells, and what the policy sees of it."""

from __future__ import annotations

import json
import math
import statistics
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from headway.assumptions.turns import LEASE_RATIO, SHORTEST_LEASE_S
from headway.domain import QueryReport, QueryState, ScheduledQuery
from headway.runtime.gate.learned import BatchDurations
from headway.units import ms_to_s

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_MOST_DELAYS = 400
_OF_SLACK, _OF_LEASE = 0.95, 0.999


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSeen:
    """What the progress of a batch says."""

    batch_id: int
    start_s: float
    rows: int
    duration_s: float
    add_batch_s: float
    commit_s: float
    watermark_s: float | None
    newest_event_s: float | None
    removed_rows: float
    heap_state_bytes: float


class Member:
    """A query that takes turns.

    Parameters
    ----------
    query, clock : StreamingQuery, Java object
        The query and the clock that its trigger goes by.
    declared : ScheduledQuery
        Its trigger, windows and targets.
    predicted_s : callable, optional
        Mean duration of a batch of so many rows; learned as it runs without.
    now_s : float
        When it joined. [s since the epoch]
    """

    def __init__(
        self,
        query: StreamingQuery,
        clock: Any,
        declared: ScheduledQuery,
        *,
        now_s: float,
        predicted_s: Callable[[float], float] | None = None,
    ) -> None:
        self.query, self.clock, self.declared = query, clock, declared
        self.durations = BatchDurations(predicted_s)
        self.is_idle = False
        self.granted_at_s: float | None = None
        self.lease_over = False
        self.last_grant = 0
        self.ready_s = now_s
        self.offset_s: float | None = None
        self.last: BatchSeen | None = None
        self._predicted_s = self._usually_removed_rows = 0.0
        self._idle_since_s = now_s
        self._rate_per_s = 0.0
        self._newest_event_s: float | None = None
        self._emitted_to_s: float | None = None
        self._delays_s: deque[float] = deque(maxlen=_MOST_DELAYS)
        self._parts: deque[tuple[float, float, float]] = deque(maxlen=50)
        self._at_once: deque[int] = deque(maxlen=50)
        self._waits_s: list[float] = []
        self._grants = self._batches = self._windows = self._late = self._leases = self._rows = 0
        self._predictions_s: list[tuple[float, float]] = []

    @property
    def mean_parts_s(self) -> tuple[float, float, float]:
        """Mean time of a batch before, in, and after the executors' work; zeros at first. [s]"""
        if not self._parts:
            return 0.0, 0.0, 0.0
        before, work, after = zip(*self._parts, strict=True)
        return statistics.fmean(before), statistics.fmean(work), statistics.fmean(after)

    @property
    def rate_per_s(self) -> float:
        """Rows per second that the query reads, of late. [rows/s]"""
        return self._rate_per_s

    @property
    def closing_delay_s(self) -> float:
        """Usual time from an event time to the start of the first batch that reads it. [s]"""
        return statistics.median(self._delays_s) if self._delays_s else 0.0

    @property
    def heap_state_bytes(self) -> float:
        """State on the heap of the executors, as the last batch said. [bytes]"""
        return 0.0 if self.last is None else self.last.heap_state_bytes

    @property
    def mean_at_once(self) -> float:
        """Batches that ran at the same time as one of this query, itself among them."""
        return statistics.fmean(self._at_once) if self._at_once else 1.0

    def grant(self, now_s: float, number: int, num_at_once: int = 1) -> None:
        """Let one batch start, beside others."""
        self._at_once.append(num_at_once)
        self._waits_s.append(max(now_s - max(self._idle_since_s, 0.0), 0.0))
        self._predicted_s = self.durations.mean_s(self._rows_by(now_s))
        self.granted_at_s, self.last_grant = now_s, number
        self.is_idle, self.lease_over = False, False
        self._grants += 1
        self.clock.grant(1)

    def lease_s(self) -> float:
        """How long a granted batch may take until others go on without it. [s]"""
        assert self.granted_at_s is not None
        usual_s = self.durations.quantile_s(self._rows_by(self.granted_at_s), _OF_LEASE)
        return max(LEASE_RATIO.value * usual_s, SHORTEST_LEASE_S.value)

    def end_lease(self) -> None:
        """Others go on without it; it is not stopped."""
        self.lease_over = True
        self._leases += 1

    def became_idle(self, at_s: float, target_s: float) -> tuple[float, BatchSeen] | None:
        """The query waits; the batch that it has run since the last time, and its prediction."""
        was_granted = self.granted_at_s is not None
        self.is_idle, self.granted_at_s, self.lease_over = True, None, False
        self._idle_since_s = at_s
        seen = self._new_progress()
        # Nothing came and nothing was due: it looks again at its own trigger.
        self.ready_s = at_s if seen is not None and seen.rows else target_s
        if self.offset_s is not None:
            ticks = math.floor((at_s - self.offset_s) / self.declared.trigger_s) + 1
            self.ready_s = ticks * self.declared.trigger_s + self.offset_s
        if seen is None:
            return None
        self._learn(seen)
        self.last = seen
        if self._emits() and self.offset_s is None:
            self.ready_s = at_s
        if not was_granted:
            return None
        self._predictions_s.append((self._predicted_s, seen.duration_s))
        return self._predicted_s, seen

    def state(self, now_s: float) -> QueryState:
        """What the policy sees."""
        rows = self._rows_by(now_s)
        duration_s = self.durations.quantile_s(rows, _OF_SLACK)
        next_s = self.durations.quantile_s(self._rate_per_s * duration_s, _OF_SLACK)
        declared, last = self.declared, self.last
        closing_s = self._closing_s()
        return QueryState(
            name=declared.name,
            ready_s=self.ready_s,
            oldest_unread_s=self._idle_since_s if last is None else last.start_s,
            last_grant=self.last_grant,
            duration_s=duration_s,
            pair_s=duration_s + next_s,
            closing_s=closing_s,
            emits=self._emits(),
            window_limit_s=declared.window_limit_s(max(self.closing_delay_s, 0.0)),
            row_limit_s=None if declared.row_target is None else declared.row_target.limit_s,
            output_rows=rows if declared.windows is None else 0.0,
            most_wait_s=declared.most_wait_s,
            removed_rows=self._removes_rows(),
        )

    def report(self) -> QueryReport:
        """What became of the query so far."""
        pairs = self._predictions_s
        return QueryReport(
            name=self.declared.name,
            num_grants=self._grants,
            num_batches=self._batches,
            wait_mean_s=statistics.fmean(self._waits_s) if self._waits_s else 0.0,
            wait_max_s=max(self._waits_s, default=0.0),
            predicted_duration_mean_s=statistics.fmean(p for p, _ in pairs) if pairs else None,
            observed_duration_mean_s=statistics.fmean(o for _, o in pairs) if pairs else None,
            num_windows=self._windows,
            num_windows_late=self._late,
            num_lease_ends=self._leases,
            num_rows=self._rows,
        )

    def _rows_by(self, now_s: float) -> float:
        since_s = self._idle_since_s if self.last is None else self.last.start_s
        return self._rate_per_s * max(now_s - since_s, 0.0)

    def _closing_s(self) -> float | None:
        windows = self.declared.windows
        if windows is None or self._emitted_to_s is None:
            return None
        end_s = windows.first_end_after_s(self._emitted_to_s)
        return end_s + windows.watermark_delay_s + self.closing_delay_s

    def _emits(self) -> bool:
        windows = self.declared.windows
        if windows is None or self._emitted_to_s is None or self._newest_event_s is None:
            return False
        watermark_s = self._newest_event_s - windows.watermark_delay_s
        return watermark_s >= windows.first_end_after_s(self._emitted_to_s)

    def _removes_rows(self) -> float:
        """Of a windowed query only the batch that emits removes state."""
        may_remove = self.declared.windows is None or self._emits()
        return self._usually_removed_rows if may_remove else 0.0

    def _new_progress(self) -> BatchSeen | None:
        progress = self.query._jsq.lastProgress()
        if progress is None:
            return None
        seen = _batch_seen(json.loads(progress.json()))
        last = self.last
        if last is not None and (seen.batch_id, seen.start_s) == (last.batch_id, last.start_s):
            return None
        return seen

    def _learn(self, seen: BatchSeen) -> None:
        last, windows = self.last, self.declared.windows
        self._batches += 1
        self._rows += seen.rows
        if seen.removed_rows or windows is None:
            self._usually_removed_rows = seen.removed_rows
        self.durations.observe(seen.rows, seen.duration_s)
        work_s = min(seen.add_batch_s, seen.duration_s)
        after_s = min(seen.commit_s, seen.duration_s - work_s)
        self._parts.append((seen.duration_s - work_s - after_s, work_s, after_s))
        if last is not None and seen.start_s > last.start_s:
            rate = seen.rows / (seen.start_s - last.start_s)
            self._rate_per_s += (0.2 if self._rate_per_s else 1.0) * (rate - self._rate_per_s)
        if seen.newest_event_s is not None:
            newest_s = self._newest_event_s
            self._newest_event_s = max(seen.newest_event_s, newest_s or seen.newest_event_s)
            self._delays_s.append(seen.start_s - seen.newest_event_s)
        if windows is None or seen.watermark_s is None or seen.watermark_s <= 0.0:
            return
        if self._emitted_to_s is not None:
            end_s = windows.first_end_after_s(self._emitted_to_s)
            committed_s = seen.start_s + seen.duration_s - seen.commit_s
            while end_s <= seen.watermark_s:
                self._windows += 1
                target = self.declared.window_target
                late_s = committed_s - end_s
                self._late += target is not None and late_s > target.limit_s
                end_s += windows.slide_s
        self._emitted_to_s = max(seen.watermark_s, self._emitted_to_s or seen.watermark_s)


def _batch_seen(progress: dict[str, Any]) -> BatchSeen:
    spent, event = progress.get("durationMs", {}), progress.get("eventTime", {})
    operators = progress.get("stateOperators", ())
    # RocksDB keeps its state outside of the heap.
    on_heap = [one for one in operators if not _is_rocksdb(one.get("customMetrics", {}))]
    return BatchSeen(
        batch_id=progress["batchId"],
        start_s=_epoch_s(progress["timestamp"]),
        rows=progress.get("numInputRows", 0),
        duration_s=ms_to_s(spent.get("triggerExecution", 0)),
        add_batch_s=ms_to_s(spent.get("addBatch", 0)),
        commit_s=ms_to_s(spent.get("commitOffsets", 0)),
        watermark_s=_epoch_s(event["watermark"]) if "watermark" in event else None,
        newest_event_s=_epoch_s(event["max"]) if "max" in event else None,
        removed_rows=float(sum(one.get("numRowsRemoved", 0) for one in operators)),
        heap_state_bytes=float(sum(one.get("memoryUsedBytes", 0) for one in on_heap)),
    )


def _is_rocksdb(metrics: dict[str, Any]) -> bool:
    return any(name.startswith("rocksdb") for name in metrics)


def _epoch_s(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
