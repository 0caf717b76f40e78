"""The policy of a gate and its batches at the same time, by core time learned meanwhile."""

from __future__ import annotations

import logging
import statistics
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from headway.assumptions.turns import LEARNED_NOISE_RATIO
from headway.domain import Policy
from headway.errors import InputError
from headway.formats.event_lines import tell_event
from headway.models.scheduling.stagger import num_at_once, stagger_offsets_s
from headway.models.simulation.batch_parts import QueryWork
from headway.runtime.gate.member import Member
from headway.units import ms_to_s

_LOOK_EVERY_S = 5.0
_LEAST_OBSERVED_S = 1.0
_LOG = logging.getLogger("headway.gate")

Chooser = Callable[[Sequence[QueryWork], float, Policy], tuple[Policy, int]]
"""From the works of the queries, the cores and the requested policy to a policy and ``at_once``."""


class Sizes:
    """The current policy, and how many batches may run at the same time.

    ``auto`` is first come first served until the costs of batches are known, then the choice of
    ``choose``, which is repeated once twice as much is known. By default, as many batches run at
    once as keep the cores busy while drivers work, then as many as ``choose`` finds best, which
    chooses among the policies of ``auto``, or only this number. Callers hold the lock; the choice
    in the background acquires it.
    """

    def __init__(
        self,
        requested_policy: Policy,
        at_once: int | None,
        choose: Chooser | None,
        lock: AbstractContextManager[object],
    ) -> None:
        is_count = isinstance(at_once, int) and not isinstance(at_once, bool) and at_once >= 1
        if at_once is not None and not is_count:
            raise InputError(f"at_once is {at_once!r}; expected a whole number, 1 or more")
        self._asked, self.choose = requested_policy, choose
        self.policy: Policy = Policy.FCFS if requested_policy is Policy.AUTO else requested_policy
        self.at_once, self._at_once_is_given = at_once or 2, at_once is not None
        self._lock = lock
        self._known_then: dict[str, tuple[int, float]] = {}
        self._choosing: threading.Thread | None = None
        self._next_look_s = 0.0

    def look_at(self, members: Sequence[Member], task_time: TaskTime, now_s: float) -> None:
        """Choose from time to time, once the batch costs of all queries are known."""
        if now_s < self._next_look_s:
            return
        self._next_look_s = now_s + _LOOK_EVERY_S
        if not members or not all(member.durations.are_known for member in members):
            return
        if self.policy is Policy.STAGGER:
            self._keep_apart(members)
        elif not (self._known_then or self._at_once_is_given):
            self.at_once = usual_at_once(members, task_time.driver_cores / task_time.cores)
        if self._may_choose and self._more_is_known(members):
            self._known_then = _extents(members)
            arguments = task_time.works_of(members), task_time.cores, members
            # Simulations take longer than the arbiter's heartbeat allows.
            self._choosing = threading.Thread(target=self._take_best, args=arguments, daemon=True)
            self._choosing.start()

    @property
    def _may_choose(self) -> bool:
        """Whether there is a choice: the queries that are staggered all run at their ticks."""
        has_choice = self._asked is Policy.AUTO or not self._at_once_is_given
        return self.choose is not None and self._asked is not Policy.STAGGER and has_choice

    def _more_is_known(self, members: Sequence[Member]) -> bool:
        """Whether the last choice was for other queries, or twice as much is known of one by now.

        A policy makes batches of other sizes than those from which it was chosen.
        """
        if self._choosing is not None and self._choosing.is_alive():
            return False
        then, now = self._known_then, _extents(members)
        return now.keys() != then.keys() or any(
            num_batches >= 2 * then[name][0] or most_rows > 2.0 * then[name][1]
            for name, (num_batches, most_rows) in now.items()
        )

    def _keep_apart(self, members: Sequence[Member]) -> None:
        """Give queries different ticks, so that none has to wait."""
        if not self._at_once_is_given:
            self.at_once = len(members)
        if all(member.offset_s is not None for member in members):
            return
        for member, offset_s in zip(members, best_offsets_s(members), strict=True):
            member.offset_s = offset_s

    def _take_best(
        self, works: Sequence[QueryWork], cores: float, members: Sequence[Member]
    ) -> None:
        assert self.choose is not None
        try:
            policy, at_once = self.choose(works, cores, self._asked)
        except Exception as error:
            _LOG.warning("%s stays in force: %s", self.policy, error)
            return
        with self._lock:
            if policy is not self.policy:
                self.policy = policy
                for member in members:
                    member.offset_s = None
                # Offsets, if the policy needs them.
                self._next_look_s = 0.0
            if not self._at_once_is_given:
                self.at_once = at_once
        _LOG.info("policy %s, %d at once", policy, at_once)
        why = "simulated with the costs that are known, it meets the targets best"
        tell_event("gate", "policy", why, policy=str(policy), at_once=at_once)


def _extents(members: Sequence[Member]) -> dict[str, tuple[int, float]]:
    """Batches that are known of each query, and the rows of the largest."""
    return {member.declared.name: member.durations.extent for member in members}


class TaskTime:
    """Cores of a session, and time of tasks over that of their batches, from the driver's store.

    Progress contains the duration of a batch, but not how many cores it kept busy. ``cores`` are
    those of all executors, ``driver_cores`` those of them that a driver takes while it works: one
    in local mode. [-]
    """

    def __init__(self, context: Any) -> None:
        self.cores = float(context.defaultParallelism)
        self.driver_cores = 1.0 if context._jsc.isLocal() else 0.0
        self._store = context._jsc.sc().statusStore()
        self._work_s = 0.0
        self._tasks_then_s = self._total_s()

    def observe(self, work_s: float) -> None:
        """Add a finished batch with the duration of its executors' part."""
        self._work_s += work_s

    @property
    def busy_cores(self) -> float | None:
        """Cores that a batch keeps busy while executors work for it; None if not yet known."""
        if self._work_s < _LEAST_OBSERVED_S:
            return None
        return (self._total_s() - self._tasks_then_s) / self._work_s

    def works_of(self, members: Sequence[Member]) -> list[QueryWork]:
        """Costs of the batches of each query."""
        cores = self.cores, self.busy_cores, self.driver_cores
        return [learned_work(member, *cores) for member in members]

    def _total_s(self) -> float:
        executors = self._store.executorList(False)
        return ms_to_s(sum(executors.apply(at).totalDuration() for at in range(executors.size())))


def learned_work(
    member: Member, cores: float, busy_cores: float | None, driver_cores: float = 0.0
) -> QueryWork:
    """Costs of the batches of a query.

    ``cores`` and ``driver_cores`` are those of :class:`TaskTime`. Batches kept ``busy_cores`` busy
    on average while executors worked for them; None assumes all cores that a batch had. [-]
    """
    before_s, work_s, after_s = member.mean_parts_s
    # While others ran at the same time, a batch had its share of the cores.
    share_cores = cores / member.mean_at_once
    core_s = work_s * min(busy_cores or share_cores, share_cores)
    fixed_s, per_row_s = member.durations.line
    # On the same cores, others slow down the driver too.
    driver_ratio = min(share_cores / driver_cores, 1.0) if driver_cores > 0.0 else 1.0
    rows = max((before_s + work_s + after_s - fixed_s) / per_row_s, 0.0) if per_row_s > 0 else 0.0
    per_row_core_s = min(per_row_s * share_cores, core_s / rows if rows > 0 else 0.0)
    return QueryWork(
        query=member.declared,
        rate_per_s=max(member.rate_per_s, 1e-9),
        # Time in which executors were not busy is the driver's.
        before_s=driver_ratio * (before_s + max(work_s - core_s / share_cores, 0.0)),
        after_s=driver_ratio * after_s,
        fixed_core_s=max(core_s - per_row_core_s * rows, 1e-3),
        per_row_core_s=per_row_core_s,
        noise_ratio=LEARNED_NOISE_RATIO.value,
        closing_delay_s=max(member.closing_delay_s, 0.0),
        closing_lags=member.closing_lags,
        driver_cores=driver_cores,
    )


def usual_at_once(members: Sequence[Member], driver_ratio: float) -> int:
    """Number of concurrent batches that keeps the cores busy while drivers plan and commit."""
    parts = [member.mean_parts_s for member in members]
    work_s = max(statistics.fmean(work for _, work, _ in parts), 1e-3)
    total_s = max(statistics.fmean(map(sum, parts)), 1e-3)
    return num_at_once(total_s, work_s, len(members), driver_ratio=driver_ratio)


def best_offsets_s(members: Sequence[Member]) -> tuple[float, ...]:
    """Separate ticks for all queries, just after their windows close if they have windows [s]."""
    windows_and_delays = [(member.declared.windows, member.closing_delay_s) for member in members]
    return stagger_offsets_s(
        [member.declared.trigger_s for member in members],
        [sum(member.mean_parts_s) for member in members],
        [
            0.0 if windows is None else windows.offset_s + windows.watermark_delay_s + delay_s
            for windows, delay_s in windows_and_delays
        ],
    )
