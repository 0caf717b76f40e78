"""The gate: queries of one session take turns by a policy, through their trigger clocks."""

from __future__ import annotations

import contextlib
import itertools
import logging
import math
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headway.assumptions.turns import HEARTBEAT_WITHIN_S
from headway.domain import Decision, Policy, QueryReport, QueryState, ScheduledQuery, ScheduleReport
from headway.errors import InputError, first_line
from headway.formats.event_lines import tell_event
from headway.models.scheduling.order import MemoryReading, grant_order, next_due_s
from headway.runtime.gate import clock
from headway.runtime.gate.ahead import Ahead
from headway.runtime.gate.decision_log import BatchEnd, DecisionLog
from headway.runtime.gate.member import Member
from headway.runtime.gate.sizes import Chooser, Sizes
from headway.runtime.gate.turn import Turn
from headway.runtime.gate.works import TaskTime
from headway.runtime.given import require_session
from headway.units import US_PER_MS, ms_to_s, s_to_ms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


_LOOK_EVERY_S = 0.25
_LONGEST_WAIT_S = 0.5
_AGAIN_S = 0.05
_MOST_TIMES = 20_000
_MOST_GONE = 1000
_LOG = logging.getLogger("headway.gate")


class Gate(contextlib.AbstractContextManager["Gate"]):
    """Lets queries of a session start their batches one after the other.

    A waiting query has not chosen offsets and holds nothing; its plan, sink and checkpoint are
    untouched. When the gate is left, is closed or fails, every query runs by its own trigger.

    The parameters are those of :func:`headway.schedule`. ``choose`` is that of
    :class:`headway.runtime.gate.sizes.Sizes`, ``off`` the file that opens the gate, and
    ``heartbeat_within_s`` the maximum silence of the arbiter before the gate opens [s].
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
        off: Path | None = None,
        heartbeat_within_s: float = HEARTBEAT_WITHIN_S.value,
    ) -> None:
        require_session(spark)
        self._spark = spark
        self._task_time = TaskTime(spark.sparkContext)
        self._lock = threading.RLock()
        self._sizes = Sizes(policy, at_once, choose, self._lock)
        self._hub: Any = clock.new_hub(spark, heartbeat_within_s)
        self._ahead = Ahead(self._hub)
        self._log = DecisionLog(decisions)
        self._memory = MemoryReading(limit_bytes=memory_limit_bytes or math.inf)
        self._members: dict[str, Member] = {}
        self._numbered: dict[int, Member] = {}
        self._numbers = itertools.count(1)
        self._gone: list[QueryReport] = []
        self._before: dict[str, tuple[Any, Any]] = {}
        self._times_s: deque[float] = deque(maxlen=_MOST_TIMES)
        self._num_grants = self._num_decisions = self._num_reliefs = self._num_ahead = 0
        self._next_look_s = 0.0
        self._off = off
        self._is_closing = self._is_switched_off = False
        self.opened_because: str | None = None
        self._thread = threading.Thread(target=self._run, name="headway-gate", daemon=True)
        self._thread.start()

    def add(
        self,
        query: StreamingQuery,
        declared: ScheduledQuery,
        *,
        predicted_s: Callable[[float], float] | None = None,
        in_turn: Turn | None = None,
        pool: str | None = None,
    ) -> None:
        """Add a running query; it waits for grants from its next trigger on.

        Its own trigger applies when the gate is open; a query whose trigger cannot be gated is
        refused, and continues unchanged. ``predicted_s`` is the mean duration of a batch by number
        of rows, by default learned while it runs. [s] ``in_turn`` is its function for each batch,
        if that should wait instead of its trigger. ``pool`` is that of the fair scheduler to which
        its jobs go.
        """
        clock.require_classic(query)
        if self._is_switched_off and not self._is_closing:
            # Whoever switched it off wants its queries to run, also those that start later.
            _LOG.warning("%s goes by its own trigger: %s", declared.name, self.opened_because)
            return
        if self.opened_because is not None or self._is_closing:
            raise InputError(
                f"the gate is open ({self.opened_because or 'closed'}); make another with "
                "headway.schedule. The query goes on ungated"
            )
        executor = clock.trigger_of(query)[0] if in_turn is None else None
        run_id = str(query.runId)
        with self._lock:
            ended = [member for member in self._members.values() if not member.query.isActive]
            for member in ended:  # the arbiter hears of it only at its next look
                self._leave(member)
            if declared.name in self._members:
                raise InputError(
                    f"{declared.name} is already under the gate; give another query a name of its "
                    "own: name='...'"
                )
            for other in self._members.values():
                if other.run_id == run_id:
                    raise InputError(
                        f"the query is already under the gate, as {other.declared.name}; expected "
                        "each query once: remove it first"
                    )
            number = next(self._numbers)
            gate_clock = in_turn or clock.new_clock(
                self._spark, self._hub, number, query, declared.trigger_s, pool
            )
            member = Member(
                query,
                gate_clock,
                declared,
                now_s=time.time(),
                predicted_s=predicted_s,
                number=number,
                run_id=run_id,
                waits_within=in_turn is not None,
            )
            if in_turn is None:
                own_clock = clock.replace_clock(executor, gate_clock, query)
                self._before[declared.name] = (executor, own_clock)
            else:
                self._hub.join(number, query._jsq)
                in_turn.join(self._hub, number, query)
            self._members[declared.name] = self._numbered[number] = member
        tell_event("gate", "joined", f"{declared.name} takes turns", query=declared.name)

    def remove(self, name: str) -> None:
        """Remove a query, which then runs by its own trigger again."""
        with self._lock:
            if name not in self._members:
                raise InputError(f"{name} is not under the gate")
            self._leave(self._members[name])

    def close(self) -> None:
        """Open the gate permanently: every query runs by its own trigger."""
        self._is_closing = True
        if self._thread is not threading.current_thread():
            self._thread.join(timeout=2.0 * _LONGEST_WAIT_S + 5.0)
        with self._lock:
            with contextlib.suppress(Exception):
                # The JVM may be gone, and all queries with it.
                self._hub.open()
            for member in list(self._members.values()):
                self._leave(member)
        self._log.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def report(self) -> ScheduleReport:
        """Waits, missed windows, predicted and observed durations."""
        with self._lock:
            times = np.array(self._times_s) if self._times_s else np.zeros(1)
            return ScheduleReport(
                policy=self._sizes.policy,
                at_once=self._sizes.at_once,
                num_decisions=self._num_decisions,
                decision_p50_s=float(np.quantile(times, 0.5)),
                decision_p99_s=float(np.quantile(times, 0.99)),
                opened_because=self.opened_because,
                queries=(*(member.report() for member in self._members.values()), *self._gone),
                num_reliefs=self._num_reliefs,
                num_ahead=self._num_ahead,
                num_queries=len(self._members),
            )

    def _run(self) -> None:
        wait_s = 0.05
        try:
            while not self._is_closing and self.opened_because is None:
                reports = str(self._hub.next(max(round(s_to_ms(wait_s)), 1)))
                with self._lock:
                    wait_s = self._step(reports, time.time())
        except BaseException as error:
            if not self._is_closing:
                self._break(error)

    def _break(self, error: BaseException) -> None:
        """After an internal fault, open the gate and report it: a fault must never hold a query."""
        self._open(f"the arbiter failed: {type(error).__name__}: {first_line(error)}")
        with contextlib.suppress(Warning):
            warnings.warn(f"headway: the gate is open; {self.opened_because}", stacklevel=2)

    def _open(self, why: str) -> None:
        """Every query goes by its own trigger from now on."""
        self.opened_because = why
        with contextlib.suppress(Exception):
            self._hub.open()
        tell_event("gate", "opened", why)
        _LOG.error("the gate is open, every query goes by its own trigger: %s", why)

    def _step(self, reports: str, now_s: float) -> float:
        """Grants come before all other work, since queries wait for them."""
        ended = self._take(reports)
        wait_s = self._decide(now_s)
        for member, batch in ended:
            member.learn()
            if batch is not None:
                assert member.last is not None
                self._task_time.observe(member.last.add_batch_s)
                self._log.write(batch)
        # By a clock that nobody sets: after a jump back of the other one, nobody would look.
        look_s = time.monotonic()
        if look_s >= self._next_look_s:
            self._next_look_s = look_s + _LOOK_EVERY_S
            if self._look_after(now_s):
                wait_s = 0.0
        self._sizes.look_at(list(self._members.values()), self._task_time, look_s)
        return wait_s

    def _take(self, reports: str) -> list[tuple[Member, BatchEnd | None]]:
        """Read reports: idle queries and their last batches, turns over or passed on, ends."""
        ended = []
        # Split only at the hub's separator, since progress may contain other line separators.
        for line in filter(None, reports.split("\n")):
            event, number, *fields = line.split("\t", 4)
            if event == "go":
                # The JVM has granted turns by the prepared order.
                decision, numbers, since_s = self._ahead.went(line)
                granted = [self._numbered[at] for at in numbers if at in self._numbered]
                self._num_ahead += len(granted)
                self._book(granted, decision, since_s)
                continue
            member = self._numbered.get(int(number))
            if member is None:
                continue
            if event == "ended":
                self._leave(member)
            elif event == "over":
                member.turn_is_over()
            else:
                target_s, at_s = ms_to_s(float(fields[0])), ms_to_s(float(fields[1]))
                ended.append((member, member.became_idle(at_s, target_s, progress=fields[2])))
        return ended

    def _look_after(self, now_s: float) -> bool:
        """Queries that hang no longer block others; returns whether there is a new one."""
        self._look_at_switch()
        hanging = [member for member in self._members.values() if member.hangs(now_s)]
        for member in hanging:
            name = member.declared.name
            why = f"its batch has run for more than {member.lease_s():.0f} s"
            _LOG.warning("query %s: %s; others go on without it", name, why)
            tell_event("gate", "lease ended", why, query=name)
            member.end_lease()
        self._log.flush()
        return bool(hanging)

    def _look_at_switch(self) -> None:
        """Open the gate if its switch is there, or if that can no longer be known."""
        try:
            self._is_switched_off = self._off is not None and self._off.exists()
        except OSError as error:
            self._open(f"off: {self._off} cannot be looked at ({error.strerror})")
        if self._is_switched_off:
            self._open(f"it was switched off: {self._off} is there")

    def _decide(self, now_s: float) -> float:
        members, at_once = self._members.values(), self._sizes.at_once
        num_running = sum(
            member.granted_at_s is not None and not member.lease_over for member in members
        )
        waiting = {member.number: member.state(now_s) for member in members if member.is_idle}
        states, policy = tuple(waiting.values()), self._sizes.policy
        memory_is_short = self._memory_is_short(now_s)
        order: tuple[str, ...] = ()
        if num_running < at_once:
            order = grant_order(policy, states, now_s, memory_is_short=memory_is_short)
        decision = Decision(
            at_s=now_s,
            policy=policy,
            num_running=num_running,
            at_once=at_once,
            states=states,
            order=order,
            granted=order[: max(at_once - num_running, 0)],
            memory_is_short=memory_is_short,
        )
        granted_now = [self._members[name] for name in decision.granted]
        if granted_now and not self._let_go(granted_now, decision):
            return _AGAIN_S
        self._leave_order(waiting, decision)
        if num_running >= at_once:
            return _LONGEST_WAIT_S
        return min(max(next_due_s(policy, states, now_s) - now_s, 0.001), _LONGEST_WAIT_S)

    def _leave_order(self, waiting: dict[int, QueryState], decision: Decision) -> None:
        """Prepare the order for the JVM until the next decision; none if it could not be used."""
        members = list(self._members.values())
        may_wait = any(member.waits_within for member in members)
        if math.isfinite(self._memory.limit_bytes) or may_wait:
            self._ahead.take_back()
            return
        idle = {member.number: waiting[member.number] for member in members if member.is_idle}
        self._ahead.give(decision, idle, members)

    def _let_go(self, granted: list[Member], decision: Decision) -> bool:
        """Whether the JVM, in which more may have happened, has started them."""
        since_us = self._hub.grant(",".join(str(member.number) for member in granted))
        if since_us < 0:
            return False
        for member in granted:
            if isinstance(member.clock, Turn):
                member.clock.grant()
        self._book(granted, decision, ms_to_s(since_us / US_PER_MS))
        return True

    def _book(self, granted: list[Member], decision: Decision, since_s: float) -> None:
        num_at_once = decision.num_running + len(decision.granted)
        for member in granted:
            self._num_grants += 1
            member.grant(decision.at_s, self._num_grants, num_at_once)
        self._num_decisions += 1
        self._log.write(decision)
        if since_s:
            self._times_s.append(since_s)

    def _memory_is_short(self, now_s: float) -> bool:
        used_bytes = sum(member.heap_state_bytes for member in self._members.values())
        before, self._memory = self._memory, self._memory.later(used_bytes, now_s)
        since_s = self._memory.relieving_since_s
        if since_s is not None and since_s != before.relieving_since_s:
            self._num_reliefs += 1
            why = "state is above the limit: the query that frees the most goes first"
            tell_event("gate", "memory short", why, used_bytes=used_bytes)
        return since_s is not None

    def _leave(self, member: Member) -> None:
        """Restore its own clock; a query that waits at the gate's clock continues."""
        del self._members[member.declared.name], self._numbered[member.number]
        executor, own_clock = self._before.pop(member.declared.name, (None, None))
        with contextlib.suppress(Exception):
            # The JVM may be gone. A batch granted here or by the prepared order is marked. The
            # gate's clock removes the mark when the batch is over, and from then on only sleeps.
            is_marked = member.clock.release()
            self._hub.leave(member.number)
            if executor is not None and not is_marked and member.query.isActive:
                clock.replace_clock(executor, own_clock, member.query)
        self._gone.insert(0, member.report())
        del self._gone[_MOST_GONE:]
        tell_event("gate", "left", "it takes no more turns", query=member.declared.name)
