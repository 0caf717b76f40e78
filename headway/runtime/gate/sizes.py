"""The current policy of a gate, and the number of batches at the same time."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from headway.domain import Policy
from headway.domain.argument_values import Count
from headway.formats.event_lines import tell_event
from headway.limits import MOST_INT
from headway.models.simulation.gate import QueryWork
from headway.runtime.gate.member import Member
from headway.runtime.gate.works import TaskTime, best_offsets_s, usual_at_once

_LOOK_EVERY_S = 5.0
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
        at_once = None if at_once is None else Count(maximum=MOST_INT).read(at_once, "at_once")
        self._asked, self.choose = requested_policy, choose
        self.policy: Policy = Policy.FCFS if requested_policy is Policy.AUTO else requested_policy
        self.at_once, self._at_once_is_given = at_once or 2, at_once is not None
        self._lock = lock
        self._known_then: dict[str, tuple[int, float]] = {}
        self._choosing: threading.Thread | None = None
        self._next_look_s = 0.0

    def look_at(self, members: Sequence[Member], task_time: TaskTime, now_s: float) -> None:
        """Choose from time to time, once the batch costs of all queries are known.

        ``now_s`` is the time of a clock that nobody sets. [s]
        """
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
