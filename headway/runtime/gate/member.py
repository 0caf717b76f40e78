"""A query under the gate: information from its progress, and its state for the policy."""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headway.assumptions.turns import LEASE_RATIO, SHORTEST_LEASE_S
from headway.domain import ComingBack, EventTimeLag, QueryReport, QueryState, ScheduledQuery
from headway.runtime.gate.decision_log import BatchEnd
from headway.runtime.gate.learned import BatchDurations
from headway.runtime.gate.progress import BatchSeen, batch_seen

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_MOST_DELAYS = 400
_OF_SLACK, _OF_LEASE = 0.95, 0.999


class Member:
    """A query that takes turns.

    ``clock`` is that of its trigger, or the turn in which its batches wait, ``number`` its number
    in the hub, and ``run_id`` Spark's id of this run. ``predicted_s`` is the mean duration of a
    batch by number of rows; by default it is learned while it runs. With ``waits_within`` it waits
    within its batches, after their rows have been chosen. It joined at ``now_s`` since the epoch.
    """

    def __init__(
        self,
        query: StreamingQuery,
        clock: Any,
        declared: ScheduledQuery,
        *,
        now_s: float,
        predicted_s: Callable[[float], float] | None = None,
        number: int = 0,
        run_id: str = "",
        waits_within: bool = False,
    ) -> None:
        self.query, self.clock, self.declared = query, clock, declared
        self.number, self.run_id, self.waits_within = number, run_id, waits_within
        self.durations = BatchDurations(predicted_s)
        self.is_idle = False
        self.granted_at_s: float | None = None
        self.lease_over = False
        self.last_grant = 0
        self.ready_s = now_s
        self.offset_s: float | None = None
        self.last: BatchSeen | None = None
        self.closing_delay_s = 0.0
        """Usual time from an event time to the start of the first batch that reads it [s]."""
        self.rate_per_s = 0.0
        """Rows per second that the query has read recently. [rows/s]"""
        self._predicted_s = self._usually_removed_rows = self._waited_within_s = 0.0
        self._has_run = False
        self._unlearned: list[BatchSeen] = []
        self._idle_since_s = now_s
        self._newest_event_s: float | None = None
        self._emitted_to_s: float | None = None
        self._delays_s: deque[float] = deque(maxlen=_MOST_DELAYS)
        self._parts: deque[tuple[float, float, float]] = deque(maxlen=50)
        self._at_once: deque[int] = deque(maxlen=50)
        self._waited_s = self._longest_wait_s = 0.0
        self._grants = self._batches = self._windows = self._late = self._leases = self._rows = 0
        self._num_predicted = 0
        self._all_predicted_s = self._all_observed_s = 0.0

    @property
    def mean_parts_s(self) -> tuple[float, float, float]:
        """Mean time of a batch before, in, and after the executors' work; zeros at first. [s]"""
        if not self._parts:
            return 0.0, 0.0, 0.0
        before, work, after = zip(*self._parts, strict=True)
        return statistics.fmean(before), statistics.fmean(work), statistics.fmean(after)

    @property
    def heap_state_bytes(self) -> float:
        """State on the heap of the executors, reported by the last batch. [bytes]"""
        return 0.0 if self.last is None else self.last.heap_state_bytes

    @property
    def mean_at_once(self) -> float:
        """Mean number of concurrent batches during one of this query, including itself."""
        return statistics.fmean(self._at_once) if self._at_once else 1.0

    def grant(self, now_s: float, number: int, num_at_once: int = 1) -> None:
        """Let one batch start, in parallel with others."""
        waited_s = max(now_s - max(self._idle_since_s, 0.0), 0.0)
        self._at_once.append(num_at_once)
        self._waited_s += waited_s
        self._longest_wait_s = max(self._longest_wait_s, waited_s)
        self._waited_within_s = waited_s if self.waits_within else 0.0
        self._predicted_s = self.durations.mean_s(self._rows_by(now_s))
        self.granted_at_s, self.last_grant = now_s, number
        self.is_idle, self.lease_over, self._has_run = False, False, True
        self._grants += 1

    def lease_s(self) -> float:
        """How long a granted batch may take before others continue without it. [s]"""
        assert self.granted_at_s is not None
        usual_s = self.durations.quantile_s(self._rows_by(self.granted_at_s), _OF_LEASE)
        return max(LEASE_RATIO.value * usual_s, SHORTEST_LEASE_S.value)

    def hangs(self, now_s: float) -> bool:
        """Whether its batch has exceeded its lease, and the lease has not been ended yet."""
        if self.granted_at_s is None or self.lease_over:
            return False
        return now_s - self.granted_at_s > self.lease_s()

    def end_lease(self) -> None:
        """Let others continue without it; it is not stopped."""
        self.lease_over = True
        self._leases += 1

    def turn_is_over(self) -> None:
        """Its turn is over, but it has not come back for another turn yet."""
        self.granted_at_s, self.lease_over = None, False

    def became_idle(self, at_s: float, target_s: float, progress: str) -> BatchEnd | None:
        """The query waits; returns the batch that it has run since then, if it was granted one."""
        was_granted, self._has_run = self._has_run, False
        self.is_idle, self.granted_at_s, self.lease_over = True, None, False
        self._idle_since_s = at_s
        batch = self._new_batch(progress)
        # No rows arrived and no window was due, so it looks again at its own trigger.
        self.ready_s = at_s if batch is not None and batch.rows else target_s
        if self.offset_s is not None:
            ticks = math.floor((at_s - self.offset_s) / self.declared.trigger_s) + 1
            self.ready_s = ticks * self.declared.trigger_s + self.offset_s
        if batch is None:
            return None
        self._take(batch)
        self.last = batch
        if self._emits() and self.offset_s is None:
            self.ready_s = at_s
        if not was_granted:
            return None
        self._num_predicted += 1
        self._all_predicted_s += self._predicted_s
        self._all_observed_s += batch.duration_s
        return BatchEnd(
            at_s=at_s,
            name=self.declared.name,
            batch_id=batch.batch_id,
            rows=batch.rows,
            predicted_s=self._predicted_s,
            observed_s=batch.duration_s,
        )

    @property
    def closing_lags(self) -> tuple[EventTimeLag, ...]:
        """How far the newest rows of its last batches were behind their starts, all as likely."""
        share = 1.0 / max(len(self._delays_s), 1)
        return tuple(EventTimeLag(lag_s=lag_s, batch_share=share) for lag_s in self._delays_s)

    def learn(self) -> None:
        """Learn durations of finished batches; separate, since no query has to wait for it."""
        for batch in self._unlearned:
            self.durations.observe(batch.rows, batch.duration_s)
        self._unlearned.clear()

    def state(self, now_s: float) -> QueryState:
        """State for the policy."""
        read_until_s = self._idle_since_s if self.last is None else self.last.start_s
        return self._state(
            self._rows_by(now_s),
            ready_s=self.ready_s,
            read_until_s=read_until_s,
            emitted_to_s=self._emitted_to_s,
        )

    def coming_back(self, now_s: float, next_grant: int) -> ComingBack | None:
        """How it will wait after its current or next batch; None if too little is known."""
        last, windows = self.last, self.declared.windows
        if last is None:
            return None
        granted_at_s = now_s if self.granted_at_s is None else self.granted_at_s
        closes_at_s, emitted_to_s = math.inf, self._emitted_to_s
        if windows is not None:
            if self._newest_event_s is None or emitted_to_s is None:
                return None
            # This batch emits windows closed before; only rows that it reads can close further.
            emitted_to_s = max(self._newest_event_s - windows.watermark_delay_s, emitted_to_s)
            closes_at_s = windows.first_end_after_s(emitted_to_s) + windows.watermark_delay_s
        new_rows = self.rate_per_s * max(self._predicted_s, now_s - granted_at_s)
        rows = float(last.rows) if last.behind_rows else new_rows
        state = self._state(
            rows, ready_s=now_s, read_until_s=granted_at_s, emitted_to_s=emitted_to_s
        )
        at_its_tick = self.offset_s is not None
        last_grant = next_grant if self.granted_at_s is None else self.last_grant
        return ComingBack(
            state=replace(state, emits=False, last_grant=last_grant),
            closes_at_s=math.inf if at_its_tick else closes_at_s,
            at_its_tick=at_its_tick,
        )

    def _state(
        self, rows: float, *, ready_s: float, read_until_s: float, emitted_to_s: float | None
    ) -> QueryState:
        duration_s = self.durations.quantile_s(rows, _OF_SLACK)
        next_s = self.durations.quantile_s(self.rate_per_s * duration_s, _OF_SLACK)
        declared, windows, emits = self.declared, self.declared.windows, self._emits()
        closing_s = None
        if windows is not None and emitted_to_s is not None:
            end_s = windows.first_end_after_s(emitted_to_s)
            closing_s = end_s + windows.watermark_delay_s + self.closing_delay_s
        return QueryState(
            name=declared.name,
            ready_s=ready_s,
            oldest_unread_s=read_until_s - self._behind_s(),
            last_grant=self.last_grant,
            duration_s=duration_s,
            pair_s=duration_s + next_s,
            num_batches=self._num_batches(),
            closing_s=closing_s,
            emits=emits,
            window_limit_s=declared.window_limit_s(max(self.closing_delay_s, 0.0)),
            row_limit_s=None if declared.row_target is None else declared.row_target.limit_s,
            output_rows=rows if windows is None else 0.0,
            most_wait_s=declared.most_wait_s,
            # In a windowed query, only the batch that emits removes state.
            removed_rows=self._usually_removed_rows if windows is None or emits else 0.0,
        )

    def report(self) -> QueryReport:
        count = self._num_predicted
        return QueryReport(
            name=self.declared.name,
            num_grants=self._grants,
            num_batches=self._batches,
            wait_mean_s=self._waited_s / max(self._grants, 1),
            wait_max_s=self._longest_wait_s,
            predicted_duration_mean_s=self._all_predicted_s / count if count else None,
            observed_duration_mean_s=self._all_observed_s / count if count else None,
            num_windows=self._windows,
            num_windows_late=self._late,
            num_lease_ends=self._leases,
            num_rows=self._rows,
        )

    def _rows_by(self, now_s: float) -> float:
        since_s = self._idle_since_s if self.last is None else self.last.start_s
        until_s = min(now_s, self._idle_since_s) if self.waits_within else now_s
        new_rows = self.rate_per_s * max(until_s - since_s, 0.0)
        if self.last is None or not self.last.behind_rows:
            return new_rows
        # The source's rate limit is the number of rows read last.
        return min(self.last.behind_rows + new_rows, self.last.rows)

    def _num_batches(self) -> int:
        """Batches until no rows are left, if a rate limit leaves rows behind."""
        last = self.last
        if last is None or not last.behind_rows or not last.rows:
            return 1
        return math.ceil(last.behind_rows / last.rows)

    def _behind_s(self) -> float:
        """Rows left behind arrived before the batch that left them, at the rate of reading."""
        if self.last is None or not self.rate_per_s > 0.0:
            return 0.0
        return self.last.behind_rows / self.rate_per_s

    def _emits(self) -> bool:
        windows = self.declared.windows
        if windows is None or self._emitted_to_s is None or self._newest_event_s is None:
            return False
        watermark_s = self._newest_event_s - windows.watermark_delay_s
        return watermark_s >= windows.first_end_after_s(self._emitted_to_s)

    def _new_batch(self, progress: str) -> BatchSeen | None:
        if '"addBatch"' not in progress:  # what an idle query reports every ten seconds ran nothing
            return None
        batch, last = batch_seen(progress), self.last
        if last is not None and (batch.batch_id, batch.start_s) == (last.batch_id, last.start_s):
            return None
        duration_s = max(batch.duration_s - self._waited_within_s, 0.0)
        add_batch_s = max(batch.add_batch_s - self._waited_within_s, 0.0)
        return replace(batch, duration_s=duration_s, add_batch_s=add_batch_s)

    def _take(self, batch: BatchSeen) -> None:
        last, windows = self.last, self.declared.windows
        self._batches += 1
        self._rows += batch.rows
        if batch.removed_rows or windows is None:
            self._usually_removed_rows = batch.removed_rows
        self._unlearned.append(batch)
        work_s = min(batch.add_batch_s, batch.duration_s)
        after_s = min(batch.commit_s, batch.duration_s - work_s)
        self._parts.append((batch.duration_s - work_s - after_s, work_s, after_s))
        if last is not None and batch.start_s > last.start_s:
            rate = batch.rows / (batch.start_s - last.start_s)
            self.rate_per_s += (0.2 if self.rate_per_s else 1.0) * (rate - self.rate_per_s)
        if batch.newest_event_s is not None:
            newest_s = self._newest_event_s
            self._newest_event_s = max(batch.newest_event_s, newest_s or batch.newest_event_s)
            self._delays_s.append(batch.start_s - batch.newest_event_s)
            self.closing_delay_s = statistics.median(self._delays_s)
        if windows is None or batch.watermark_s is None or batch.watermark_s <= 0.0:
            return
        if self._emitted_to_s is not None:
            end_s = windows.first_end_after_s(self._emitted_to_s)
            spent_s = self._waited_within_s + batch.duration_s - batch.commit_s
            committed_s = batch.start_s + spent_s
            while end_s <= batch.watermark_s:
                self._windows += 1
                target = self.declared.window_target
                self._late += target is not None and committed_s - end_s > target.limit_s
                end_s += windows.slide_s
        self._emitted_to_s = max(batch.watermark_s, self._emitted_to_s or batch.watermark_s)
