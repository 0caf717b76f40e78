"""Queries of one application on shared cores, as Spark or a gate runs them."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from headway.domain import Z90, EventTimeLag, Policy, QueryState, ScheduledQuery
from headway.models.arrays import Array
from headway.models.laws.distributions import uniform_mixture_quantile
from headway.models.scheduling.order import WaitingQueries, WaitingQuery

# Parts of a batch: its driver before the executors, the executors, and the driver after them.
BEFORE, EXECUTORS, AFTER = range(3)
_TICK_S = 0.001
_DRAWN_AT_ONCE = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryWork:
    """A query and the costs of its batches.

    The driver works for ``before_s`` before the executors and for ``after_s`` after them. They need
    ``fixed_core_s`` of core time, above 0, for a batch without rows; ``noise_ratio`` is the
    coefficient of variation of their work, and ``most_cores`` limits the cores of a batch.
    ``closing_delay_s`` is the usual time from the end of a window plus the watermark delay to the
    row that closes it, ``closing_lags`` how far the newest rows of batches are behind their starts,
    by their shares, if that is known; a closed window emits ``output_rows``. While it works, the
    driver takes ``driver_cores`` from the executors: 0 on a cluster, where it has its own.
    """

    query: ScheduledQuery
    rate_per_s: float
    before_s: float
    after_s: float
    fixed_core_s: float
    per_row_core_s: float
    most_cores: float = math.inf
    noise_ratio: float = 0.0
    closing_delay_s: float = 0.0
    closing_lags: tuple[EventTimeLag, ...] = ()
    output_rows: float = 0.0
    driver_cores: float = 0.0

    def newest_row_lag_s(self, generator: np.random.Generator) -> float:
        """How far the newest row of a batch is behind its start: one of the lags at random [s]."""
        if len(self.closing_lags) < 2:
            return self.closing_delay_s
        shares = np.array([lag.batch_share for lag in self.closing_lags])
        drawn = generator.choice(len(shares), p=shares / shares.sum())
        return max(self.closing_lags[drawn].lag_s, 0.0)

    def duration_s(self, rows: float, cores: float) -> float:
        """Mean duration of a batch with the given number of cores. [s]"""
        work_s = self.fixed_core_s + self.per_row_core_s * rows
        return self.before_s + work_s / min(cores, self.most_cores) + self.after_s


class Parts:
    """Parts of running batches: on the evenly shared cores, or in the driver only."""

    def __init__(self, works: Sequence[QueryWork], cores: float) -> None:
        self._works, self._cores = works, cores
        # Times at which the driver finishes a part.
        self._timers: list[tuple[float, int]] = []
        # Of parts on cores: the core time that is left, and the cores that it can use at most.
        self._left_core_s: dict[int, float] = {}
        self._most_cores: dict[int, float] = {}
        self._share_cores = cores
        self._part: dict[int, int] = {}

    def begin(self, index: int, part: int, now_s: float, executors_core_s: float = 0.0) -> None:
        """Start a part of a query's batch."""
        work, self._part[index] = self._works[index], part
        if part == EXECUTORS:
            self._begin_on_cores(index, executors_core_s, work.most_cores)
            return
        driver_s = work.before_s if part == BEFORE else work.after_s
        if work.driver_cores > 0.0:
            self._begin_on_cores(index, driver_s * work.driver_cores, work.driver_cores)
        else:
            heapq.heappush(self._timers, (now_s + driver_s, index))

    def next_end(self, now_s: float) -> tuple[float, int]:
        """When the first part ends, and of which query; never if there is none."""
        earliest = self._timers[0] if self._timers else (math.inf, -1)
        share_cores, most_cores = self._share_cores, self._most_cores
        for index, core_s in self._left_core_s.items():
            end_s = now_s + core_s / min(share_cores, most_cores[index])
            if end_s <= earliest[0]:
                earliest = end_s, index
        return earliest

    def pass_s(self, elapsed_s: float) -> float:
        """Let time pass, and return the core time used. [core-s]"""
        used_core_s, share_cores, most_cores = 0.0, self._share_cores, self._most_cores
        for index in self._left_core_s:
            done_core_s = elapsed_s * min(share_cores, most_cores[index])
            self._left_core_s[index] -= done_core_s
            used_core_s += done_core_s
        return used_core_s

    def end(self, index: int) -> int:
        """End the current part of a query's batch, and return it."""
        if self._left_core_s.pop(index, None) is None:
            heapq.heappop(self._timers)
        else:
            self._share_cores = self._cores / max(len(self._left_core_s), 1)
        return self._part.pop(index)

    def _begin_on_cores(self, index: int, core_s: float, most_cores: float) -> None:
        self._left_core_s[index], self._most_cores[index] = core_s, most_cores
        self._share_cores = self._cores / len(self._left_core_s)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueryOutcome:
    """Results of a query, after the warm-up.

    Latencies of the windows that were due are beyond the watermark delay; the ``num_open`` windows
    that were still open at the end have their latency by then. ``row_wait_s`` has for each batch
    the latency of its newest and of its oldest row [s], and its rows.
    """

    window_latency_s: Array
    num_open: int
    row_wait_s: Array
    num_batches: int

    @property
    def row_latency_mean_s(self) -> float:
        """Mean latency of a row; nan without rows. [s]"""
        if not len(self.row_wait_s):
            return math.nan
        newest, oldest, rows = self.row_wait_s.T
        return float(np.average(0.5 * (newest + oldest), weights=rows))

    def rows_late(self, limit_s: float) -> tuple[Array, Array]:
        """Rows of each batch with a latency above a limit, and all of its rows."""
        newest, oldest, rows = self.row_wait_s.T
        width = np.maximum(oldest - newest, 1e-9)
        return np.clip((oldest - limit_s) / width, 0.0, 1.0) * rows, rows

    def rows_later_than(self, limit_s: float) -> float:
        """Share of rows with a latency above a limit. [-]"""
        late, rows = self.rows_late(limit_s)
        return float(late.sum() / rows.sum())

    def row_latency_quantile_s(self, quantile: float) -> float:
        """Quantile of the latency of rows. [s]"""
        newest, oldest, rows = self.row_wait_s.T
        return float(uniform_mixture_quantile(quantile, newest, oldest, rows))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GateOutcome:
    """Results of all queries, in the order in which they were given.

    ``busy_ratio`` is the share of core time that was used.
    """

    queries: tuple[QueryOutcome, ...]
    busy_ratio: float

    @property
    def window_latency_s(self) -> Array:
        """Latency of all windows of all queries, beyond the watermark delay. [s]"""
        return np.concatenate([outcome.window_latency_s for outcome in self.queries])


@dataclass(slots=True)
class _Running:
    """State of a query during the simulation."""

    work: QueryWork
    window_limit_s: float | None
    tick_offset_s: float = 0.0
    ready_s: float = 0.0
    read_to_s: float = 0.0
    started_s: float = 0.0
    watermark_s: float = -math.inf
    emits_to_s: float = -math.inf
    last_grant: int = 0
    next_end_s: float = math.inf
    num_batches: int = 0
    windows: list[tuple[float, float]] = field(default_factory=list)
    rows: list[tuple[float, float, float]] = field(default_factory=list)


def simulate_gate(
    works: Sequence[QueryWork],
    policy: Policy | None,
    *,
    cores: float,
    at_once: int,
    length_s: float,
    warm_up_s: float = 40.0,
    seed: int = 1,
    offsets_s: Sequence[float] | None = None,
) -> GateOutcome:
    r"""Simulate queries that share cores evenly, with driver work before and after each batch.

    Parameters
    ----------
    works : sequence of QueryWork, a trigger of a millisecond or less is as fast as possible
    policy : Policy or None, chooses the next query; None starts each at its trigger, as Spark does
    cores : float, > 0, of all executors
    at_once : int, >= 1, batches that may run at the same time; without a policy there is no limit
    length_s, warm_up_s : float, simulated time, and the initial part of it that is not evaluated
    offsets_s : sequence of float, or None, of each query's triggers, for the policy ``stagger``

    **(S7)** Gate: batches of several queries share the cores evenly. Each has driver work before
    and after, which takes one of the same cores in local mode. A batch reads the rows that have
    arrived when it starts; its watermark, behind its start by one of the lags of (T5) drawn by
    their shares, closes windows for the next batch. A policy (G8) chooses the next query.

    >>> from headway.domain import ScheduledQuery
    >>> work = QueryWork(query=ScheduledQuery(name="a", trigger_s=1.0), rate_per_s=100.0,
    ...                  before_s=0.1, after_s=0.1, fixed_core_s=0.4, per_row_core_s=0.0)
    >>> run = simulate_gate([work], None, cores=2, at_once=1, length_s=100.0)
    >>> run.queries[0].num_batches, round(run.queries[0].row_latency_mean_s, 3), run.busy_ratio
    (60, 0.9, 0.2)
    """
    if not (works and cores > 0.0 and at_once >= 1 and 0.0 <= warm_up_s < length_s):
        raise ValueError("need queries, cores, at_once of at least 1, and time after the warm-up")
    queries = [_Running(work, work.query.window_limit_s(work.closing_delay_s)) for work in works]
    for index, running in enumerate(queries):
        running.tick_offset_s = offsets_s[index] if offsets_s is not None else 0.0
        running.ready_s = running.tick_offset_s
        if running.work.query.windows is not None:
            running.next_end_s = running.work.query.windows.first_end_after_s(
                -running.work.query.windows.watermark_delay_s
            )
    on_grid = policy is None or policy is Policy.STAGGER
    limit = len(works) if policy is None else at_once
    grant_policy = policy or Policy.FCFS
    share_cores = cores / min(limit, len(works))
    waiting = WaitingQueries()
    for index, running in enumerate(queries):
        waiting.add(index, WaitingQuery.of(grant_policy, _state(running, share_cores)))
    generator = np.random.default_rng(seed)
    parts, normals = Parts(works, cores), _normals(generator)
    now_s, busy_s, num_grants, num_running = 0.0, 0.0, 0, 0
    must_decide = True
    next_s = math.inf
    while True:
        if must_decide:
            next_s = math.inf
            if num_running < limit:
                for index in sorted(waiting.next_to_run(now_s, limit - num_running)):
                    num_grants += 1
                    num_running += 1
                    running = queries[index]
                    running.last_grant, running.started_s = num_grants, now_s
                    running.emits_to_s = running.watermark_s
                    parts.begin(index, BEFORE, now_s)
                if num_running < limit:
                    next_s = waiting.next_due_s
            must_decide = False
        end_s, first = parts.next_end(now_s)
        event_s = min(end_s, next_s)
        until_s = min(event_s, length_s)
        used_core_s = parts.pass_s(until_s - now_s)
        if until_s > warm_up_s:
            if now_s < warm_up_s:
                # Between two events the cores in use stay the same.
                used_core_s *= (until_s - warm_up_s) / (until_s - now_s)
            busy_s += used_core_s
        if event_s > length_s:
            break
        now_s = event_s
        if event_s < end_s:
            must_decide = True
            continue
        running, ended = queries[first], parts.end(first)
        if ended == BEFORE:
            rows = running.work.rate_per_s * (running.started_s - running.read_to_s)
            mean_s = running.work.fixed_core_s + running.work.per_row_core_s * rows
            core_s = mean_s * _noise(running.work.noise_ratio, normals)
            parts.begin(first, EXECUTORS, now_s, core_s)
        elif ended == EXECUTORS:
            parts.begin(first, AFTER, now_s)
        else:
            lag_s = running.work.newest_row_lag_s(generator)
            _end_batch(running, now_s, warm_up_s, on_grid, lag_s)
            waiting.add(first, WaitingQuery.of(grant_policy, _state(running, share_cores)))
            num_running -= 1
            must_decide = True
    return GateOutcome(
        queries=tuple(_outcome(running, length_s, warm_up_s) for running in queries),
        busy_ratio=busy_s / (cores * (length_s - warm_up_s)),
    )


def _state(running: _Running, share_cores: float) -> QueryState:
    """What the policy sees; it does not change while the query waits."""
    work, query = running.work, running.work.query
    # Rows that have arrived when it is started; rows that arrive later are in the next batch.
    rows = work.rate_per_s * max(running.ready_s - running.read_to_s, 0.0)
    duration_s = work.duration_s(rows, share_cores)
    second_s = work.duration_s(work.rate_per_s * duration_s, share_cores)
    margin = 1.0 + Z90 * work.noise_ratio
    closing_s = None
    if query.windows is not None:
        closing_s = running.next_end_s + query.windows.watermark_delay_s + work.closing_delay_s
    return QueryState(
        name=query.name,
        ready_s=running.ready_s,
        oldest_unread_s=running.read_to_s,
        last_grant=running.last_grant,
        duration_s=margin * duration_s,
        pair_s=margin * (duration_s + second_s),
        closing_s=closing_s,
        emits=running.watermark_s >= running.next_end_s,
        window_limit_s=running.window_limit_s,
        row_limit_s=None if query.row_target is None else query.row_target.limit_s,
        output_rows=work.output_rows,
        most_wait_s=query.most_wait_s,
    )


def _end_batch(
    running: _Running, now_s: float, warm_up_s: float, on_grid: bool, lag_s: float
) -> None:
    query, started_s = running.work.query, running.started_s
    if started_s >= warm_up_s and started_s > running.read_to_s:
        rows = running.work.rate_per_s * (started_s - running.read_to_s)
        running.rows.append((now_s - started_s, now_s - running.read_to_s, rows))
        running.num_batches += 1
    running.read_to_s = started_s
    if query.windows is not None:
        delay_s = query.windows.watermark_delay_s
        while running.next_end_s <= running.emits_to_s:
            running.windows.append((running.next_end_s, now_s - running.next_end_s - delay_s))
            running.next_end_s += query.windows.slide_s
        running.watermark_s = max(running.watermark_s, started_s - lag_s - delay_s)
    running.ready_s = now_s
    if on_grid and query.trigger_s > _TICK_S:
        offset_s = running.tick_offset_s
        next_tick = math.floor((started_s - offset_s) / query.trigger_s + 1e-9) + 1.0
        running.ready_s = max(now_s, next_tick * query.trigger_s + offset_s)


def _outcome(running: _Running, length_s: float, warm_up_s: float) -> QueryOutcome:
    query = running.work.query
    latencies, num_open = [], 0
    if query.windows is not None:
        delay_s = query.windows.watermark_delay_s
        latencies = [late_s for end_s, late_s in running.windows if end_s + delay_s >= warm_up_s]
        limit_s = 0.0 if query.window_target is None else query.window_target.limit_s
        end_s = running.next_end_s
        while end_s + delay_s + running.work.closing_delay_s + limit_s < length_s:
            if end_s + delay_s >= warm_up_s:
                latencies.append(length_s - end_s - delay_s)
                num_open += 1
            end_s += query.windows.slide_s
    return QueryOutcome(
        window_latency_s=np.array(latencies),
        num_open=num_open,
        row_wait_s=np.array(running.rows).reshape(-1, 3),
        num_batches=running.num_batches,
    )


def _noise(cv: float, normals: Iterator[float]) -> float:
    """A lognormal factor of mean 1."""
    if cv == 0.0:
        return 1.0
    variance = math.log1p(cv * cv)
    return math.exp(math.sqrt(variance) * next(normals) - 0.5 * variance)


def _normals(generator: np.random.Generator) -> Iterator[float]:
    """Standard normal numbers, many of them drawn at once."""
    while True:
        yield from generator.standard_normal(_DRAWN_AT_ONCE).tolist()
