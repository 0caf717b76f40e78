"""The gate: queries of one session take turns, by a policy, through their trigger clocks."""

from __future__ import annotations

import contextlib
import logging
import math
import statistics
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from headway.assumptions.turns import HEARTBEAT_WITHIN_S, KNOWN_BATCHES
from headway.domain import Decision, Policy, ScheduledQuery, ScheduleReport
from headway.errors import InputError
from headway.models.scheduling.memory import MemoryReading
from headway.models.scheduling.order import grant_order, next_due_s, num_at_once
from headway.models.scheduling.stagger import stagger_offsets_s
from headway.models.simulation.gate import QueryWork
from headway.runtime.gate.clock import GateClasses, replace_clock, trigger_of
from headway.runtime.gate.decision_log import BatchEnd, DecisionLog
from headway.runtime.gate.member import Member
from headway.runtime.gate.works import TaskTime, learned_work
from headway.units import ms_to_s, s_to_ms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


_LOOK_EVERY_S = 0.25
_LONGEST_WAIT_S = 0.5
_SIZES_EVERY_S = 5.0
_MOST_TIMES = 20_000
_LOG = logging.getLogger("headway.gate")

Chooser = Callable[[Sequence[QueryWork], float], tuple[Policy, int]]
"""From the works of the queries and the number of cores to a policy and how many at once."""


class Gate:
    """Lets queries of a session start their batches one after the other.

    A waiting query has chosen no offsets and holds nothing; its plan, sink and checkpoint are
    untouched. When the gate is left, closed or broken, every query goes by its own trigger.

    Parameters
    ----------
    spark : SparkSession
        A classic session.
    policy : Policy
        Who goes next. ``auto`` is first come first served until it is known what batches cost,
        then what ``choose`` says.
    at_once : int, optional
        Batches that may run at the same time; by what drivers leave idle without.
    decisions : path, optional
        File to which every decision is appended.
    memory_limit_bytes : float, optional
        State on the heap from which on the query that frees the most goes first. [bytes]
    choose : callable, optional
        For ``auto``: from the works of the queries and the cores to a policy and how many at once.
    heartbeat_within_s : float
        How long the arbiter may be silent until the gate opens. [s]
    jar_folder : Path, optional
        Where the gate's jar is kept.

    Raises
    ------
    InputError
        If the session is one of Spark Connect.
    SparkUnavailableError
        If there is no Java compiler.
    """

    def __init__(
        self,
        spark: SparkSession,
        policy: Policy,
        *,
        at_once: int | None = None,
        decisions: str | Path | None = None,
        memory_limit_bytes: float | None = None,
        choose: Chooser | None = None,
        heartbeat_within_s: float = HEARTBEAT_WITHIN_S.value,
        jar_folder: Path | None = None,
    ) -> None:
        if at_once is not None and at_once < 1:
            raise InputError(f"at_once is {at_once}; expected 1 or more")
        self._classes = GateClasses(spark, jar_folder)
        self._task_time = TaskTime(spark.sparkContext)
        self._cores = float(spark.sparkContext.defaultParallelism)
        self._asked, self._choose = policy, choose
        self._policy: Policy = Policy.FCFS if policy is Policy.AUTO else policy
        self._at_once = at_once or 2
        self._at_once_is_given = at_once is not None
        self._hub: Any = self._classes.hub(heartbeat_within_s)
        self._log = DecisionLog(decisions)
        limit_bytes = math.inf if memory_limit_bytes is None else memory_limit_bytes
        self._memory = MemoryReading(used_bytes=0.0, limit_bytes=limit_bytes)
        self._lock = threading.RLock()
        self._members: dict[str, Member] = {}
        self._gone: list[Member] = []
        self._before: dict[str, tuple[Any, Any]] = {}
        self._times_s: deque[float] = deque(maxlen=_MOST_TIMES)
        self._num_grants = self._num_decisions = self._num_reliefs = 0
        self._next_look_s = self._next_sizes_s = 0.0
        self._chosen_for: frozenset[str] = frozenset()
        self._is_closing = False
        self.opened_because: str | None = None
        self._thread = threading.Thread(target=self._run, name="headway-gate", daemon=True)
        self._thread.start()

    def add(
        self,
        query: StreamingQuery,
        declared: ScheduledQuery,
        *,
        predicted_s: Callable[[float], float] | None = None,
    ) -> None:
        """Take a running query in; it waits for grants from its next trigger on.

        Parameters
        ----------
        query : StreamingQuery
            Started with ``trigger(processingTime=...)``, which is in force when the gate is open.
        declared : ScheduledQuery
            Its windows and targets; the trigger is read off the query.
        predicted_s : callable, optional
            Mean duration of a batch of so many rows; learned as it runs without. [s]

        Raises
        ------
        InputError
            If its trigger cannot be gated; the query goes on as it is.
        """
        if self.opened_because is not None or self._is_closing:
            raise InputError(f"the gate is open ({self.opened_because or 'closed'})")
        executor, _ = trigger_of(query)
        with self._lock:
            if declared.name in self._members:
                raise InputError(f"{declared.name} is already under the gate")
            clock = self._classes.clock(self._hub, declared.name, declared.trigger_s)
            member = Member(query, clock, declared, now_s=time.time(), predicted_s=predicted_s)
            self._before[declared.name] = (executor, replace_clock(executor, clock, query))
            self._members[declared.name] = member

    def remove(self, name: str) -> None:
        """Let a query go by its own trigger again."""
        with self._lock:
            member = self._members.pop(name, None)
            if member is None:
                raise InputError(f"{name} is not under the gate")
            self._leave(member)

    def close(self) -> None:
        """Open the gate for good: every query goes by its own trigger."""
        self._is_closing = True
        if self._thread is not threading.current_thread():
            self._thread.join(timeout=2.0 * _LONGEST_WAIT_S + 5.0)
        with self._lock, contextlib.suppress(Exception):
            # The JVM may be gone, and all queries with it.
            self._hub.open()
            for member in list(self._members.values()):
                self._leave(member)
        self._members.clear()
        self._log.close()

    def __enter__(self) -> Gate:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def report(self) -> ScheduleReport:
        """Waits, windows missed, predicted beside observed durations."""
        with self._lock:
            times = np.array(self._times_s) if self._times_s else np.zeros(1)
            return ScheduleReport(
                policy=self._policy,
                at_once=self._at_once,
                num_decisions=self._num_decisions,
                decision_p50_s=float(np.quantile(times, 0.5)),
                decision_p99_s=float(np.quantile(times, 0.99)),
                opened_because=self.opened_because,
                queries=tuple(one.report() for one in (*self._members.values(), *self._gone)),
                num_reliefs=self._num_reliefs,
            )

    def _run(self) -> None:
        wait_s = 0.05
        try:
            while not self._is_closing:
                became_idle = str(self._hub.nextIdle(max(round(s_to_ms(wait_s)), 1)))
                began_s = time.perf_counter()
                with self._lock:
                    wait_s = self._step(became_idle, time.time())
                if became_idle:
                    self._times_s.append(time.perf_counter() - began_s)
        except BaseException as error:
            if not self._is_closing:
                self._break(error)

    def _break(self, error: BaseException) -> None:
        """Never hold a query because of a fault of ours, and never silently."""
        self.opened_because = f"the arbiter failed: {type(error).__name__}: {error}"
        with contextlib.suppress(Exception):
            self._hub.open()
        _LOG.error("the gate is open, every query goes by its own trigger: %s", self.opened_because)
        with contextlib.suppress(Warning):
            warnings.warn(f"headway: the gate is open; {self.opened_because}", stacklevel=2)

    def _step(self, became_idle: str, now_s: float) -> float:
        for line in became_idle.splitlines():
            name, target_ms, at_ms = line.split("\t")
            if name in self._members:
                self._take_idle(
                    self._members[name], ms_to_s(float(at_ms)), ms_to_s(float(target_ms))
                )
        if now_s >= self._next_look_s:
            self._next_look_s = now_s + _LOOK_EVERY_S
            self._look_after(now_s)
        if now_s >= self._next_sizes_s:
            self._next_sizes_s = now_s + _SIZES_EVERY_S
            self._measure_up()
        return self._decide(now_s)

    def _take_idle(self, member: Member, at_s: float, target_s: float) -> None:
        ended = member.became_idle(at_s, target_s)
        if ended is not None:
            predicted_s, seen = ended
            self._task_time.observe(seen.add_batch_s)
            self._log.write(
                BatchEnd(
                    at_s=at_s,
                    name=member.declared.name,
                    batch_id=seen.batch_id,
                    rows=seen.rows,
                    predicted_s=predicted_s,
                    observed_s=seen.duration_s,
                )
            )

    def _look_after(self, now_s: float) -> None:
        """Queries that have ended give their turn back; those that hang no longer hold others."""
        for name, member in list(self._members.items()):
            if not member.query.isActive:
                del self._members[name]
                self._leave(member)
            elif member.granted_at_s is not None and not member.lease_over:
                held_s = now_s - member.granted_at_s
                if held_s > member.lease_s():
                    member.end_lease()
                    _LOG.warning(
                        "query %s: its batch has run for %.0f s; others go on without it",
                        name,
                        held_s,
                    )
        self._log.flush()

    def _decide(self, now_s: float) -> float:
        members = self._members.values()
        num_running = sum(one.granted_at_s is not None and not one.lease_over for one in members)
        if num_running >= self._at_once:
            return _LONGEST_WAIT_S
        states = tuple(one.state(now_s) for one in members if one.is_idle)
        is_short = self._memory_is_short(now_s)
        order = grant_order(self._policy, states, now_s, memory_is_short=is_short)
        granted = order[: self._at_once - num_running]
        for name in granted:
            self._num_grants += 1
            self._members[name].grant(now_s, self._num_grants, num_running + len(granted))
        if order:
            self._num_decisions += 1
            self._log.write(
                Decision(
                    at_s=now_s,
                    policy=self._policy,
                    num_running=num_running,
                    at_once=self._at_once,
                    states=states,
                    order=order,
                    granted=granted,
                    memory_is_short=is_short,
                )
            )
        due_s = next_due_s(self._policy, states, now_s)
        return min(max(due_s - now_s, 0.001), _LONGEST_WAIT_S)

    def _memory_is_short(self, now_s: float) -> bool:
        used_bytes = sum(one.heap_state_bytes for one in self._members.values())
        before, self._memory = self._memory, self._memory.later(used_bytes, now_s)
        since_s = self._memory.relieving_since_s
        self._num_reliefs += since_s is not None and since_s != before.relieving_since_s
        return since_s is not None

    def _measure_up(self) -> None:
        """How many at once, where each query ticks, and under ``auto`` which policy."""
        members = list(self._members.values())
        if not members or any(len(one.durations) < KNOWN_BATCHES.value for one in members):
            return
        if self._policy is Policy.STAGGER:
            self._keep_apart(members)
        elif self._asked is not Policy.AUTO or not self._chosen_for:
            self._size_up(members)
        names = frozenset(self._members)
        if self._asked is Policy.AUTO and self._choose is not None and names != self._chosen_for:
            self._chosen_for = names
            busy_cores = self._task_time.busy_cores
            works = [learned_work(one, self._cores, busy_cores) for one in members]
            # Beside the arbiter: simulations take longer than its heartbeat may.
            threading.Thread(target=self._choose_policy, args=(works,), daemon=True).start()

    def _size_up(self, members: list[Member]) -> None:
        """As many at once as keep the cores busy while drivers plan and commit."""
        if self._at_once_is_given:
            return
        parts = [one.mean_parts_s for one in members]
        work_s = statistics.fmean(work for _, work, _ in parts)
        total_s = statistics.fmean(map(sum, parts))
        self._at_once = num_at_once(max(total_s, 1e-3), max(work_s, 1e-3), len(members))

    def _keep_apart(self, members: list[Member]) -> None:
        """Ticks of their own; then nobody needs to be held back."""
        if not self._at_once_is_given:
            self._at_once = len(members)
        if all(one.offset_s is not None for one in members):
            return
        wishes_s = [
            0.0
            if one.declared.windows is None
            else one.declared.windows.offset_s
            + one.declared.windows.watermark_delay_s
            + one.closing_delay_s
            for one in members
        ]
        offsets_s = stagger_offsets_s(
            [one.declared.trigger_s for one in members],
            [sum(one.mean_parts_s) for one in members],
            wishes_s,
        )
        for one, offset_s in zip(members, offsets_s, strict=True):
            one.offset_s = offset_s

    def _choose_policy(self, works: list[QueryWork]) -> None:
        assert self._choose is not None
        try:
            policy, at_once = self._choose(works, self._cores)
        except Exception as error:
            _LOG.warning("%s stays in force: %s", self._policy, error)
            return
        with self._lock:
            self._policy = policy
            if not self._at_once_is_given:
                self._at_once = at_once
            for member in self._members.values():
                member.offset_s = None
            # Offsets, where the policy needs them.
            self._next_sizes_s = 0.0
        _LOG.info("policy %s, %d at once", policy, at_once)

    def _leave(self, member: Member) -> None:
        """Its own clock again; whoever waits at ours goes on."""
        executor, before = self._before.pop(member.declared.name)
        with contextlib.suppress(Exception):
            # A batch that was granted is marked as such. Our clock takes the mark off when it is
            # over, and from then on does nothing but sleep.
            if member.granted_at_s is None and member.query.isActive:
                replace_clock(executor, before, member.query)
        with contextlib.suppress(Exception):
            # The JVM may be gone.
            member.clock.release()
        self._gone.append(member)
