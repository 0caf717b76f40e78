"""Decisions that are made ahead, and executed in the JVM when a batch ends.

A decision that starts when a batch has ended waits twice for a core: for Python's thread, and for
the JVM thread that receives it. A prepared order is executed by the thread that ended the batch.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from headway.domain import ComingBack, Decision, Policy, QueryState
from headway.models.scheduling.order import due_s, grant_order, order_holds_until_s, ranked
from headway.runtime.gate.member import Member
from headway.units import US_PER_MS, ms_to_s, s_to_ms

_NEVER_MS = 2**63 - 1


class Ahead:
    """The order in which the hub grants turns until the arbiter has decided again."""

    def __init__(self, hub: Any) -> None:
        self._hub = hub
        self._is_given = False
        self._given_at: Decision | None = None
        self._states: dict[int, QueryState] = {}
        self._backs: dict[int, ComingBack] = {}

    def give(
        self, decision: Decision, waiting: Mapping[int, QueryState], members: Sequence[Member]
    ) -> None:
        """Give an order to the hub, unless something has happened since the arbiter's decision.

        ``waiting`` are the queries that wait after it, by their numbers, and ``members`` all.
        """
        policy, now_s = decision.policy, decision.at_s
        next_grant = 1 + max((member.last_grant for member in members), default=0)
        # With stagger, a query that comes back is ranked by its tick, whether known or not.
        backs = {
            member.number: back
            for member in members
            if (back := member.coming_back(now_s, next_grant)) is not None
            and (back.at_its_tick or policy is not Policy.STAGGER)
        }
        foreseen = {number: (back.state, back.emitting) for number, back in backs.items()}
        cases = [*waiting.values(), *itertools.chain.from_iterable(foreseen.values())]
        ranks = {id(state): rank for rank, state in enumerate(ranked(policy, cases, now_s))}

        def then(number: int, holds_turn: bool) -> str:
            """How a query will come back, in the hub's format; empty if unknown."""
            if (back := backs.get(number)) is None:
                return ""
            due_ms = _NEVER_MS if back.at_its_tick else _first_ms_from(due_s(policy, back.state))
            rank, closed_rank = (ranks[id(state)] for state in foreseen[number])
            closes_at_ms = _first_ms_from(back.closes_at_s)
            return f" {int(holds_turn)} {rank} {due_ms} {closed_rank} {closes_at_ms}"

        until_s = order_holds_until_s(cases, now_s)
        # A millisecond that is certainly before it.
        until_ms = s_to_ms(until_s) - 1 if math.isfinite(until_s) else _NEVER_MS
        running = [member for member in members if member.granted_at_s is not None]
        num_running = sum(not member.lease_over for member in running)
        order = [f"{decision.at_once - num_running} {until_ms}"]
        for number, state in waiting.items():
            due_ms = _first_ms_from(due_s(policy, state))
            order.append(f"w {number} {ranks[id(state)]} {due_ms}{then(number, True)}")
        order += [
            f"r {member.number}{then(member.number, not member.lease_over)}"
            for member in running
            if member.number in backs
        ]
        if self._hub.stand(";".join(order)):
            self._is_given = True
            self._given_at = decision
            self._states, self._backs = dict(waiting), backs

    def take_back(self) -> None:
        if self._is_given:
            self._is_given = not self._hub.stand(None)

    def went(self, line: str) -> tuple[Decision, tuple[int, ...], float]:
        """Grants of the hub by the current order, parsed from its report line.

        Returns the decision, the numbers of the queries that it granted turns, and the time from
        the end of the batch to the grants; 0 if the wait was for a trigger, not for a turn. [s]
        """
        assert self._given_at is not None
        policy, at_once = self._given_at.policy, self._given_at.at_once
        _, since_us, at_ms, free, granted_numbers, waiting = line.split("\t")
        at_s = ms_to_s(float(at_ms))
        states = dict(self._waited(waiting))
        numbers = tuple(map(int, granted_numbers.split(",")))
        decision = Decision(
            at_s=at_s,
            policy=policy,
            num_running=at_once - int(free),
            at_once=at_once,
            states=tuple(states.values()),
            order=grant_order(policy, tuple(states.values()), at_s),
            granted=tuple(states[number].name for number in numbers),
            ahead=True,
        )
        return decision, numbers, ms_to_s(float(since_us) / US_PER_MS)

    def _waited(self, waiting: str) -> Iterator[tuple[int, QueryState]]:
        for entry in waiting.split(","):
            number, how, ready_ms = entry.split(":")
            if how == "w":
                yield int(number), self._states[int(number)]
                continue
            back = self._backs[int(number)]
            state = back.emitting if how == "c" else back.state
            # A query that waits for a tick does not wait for a turn yet.
            if not back.at_its_tick:
                yield int(number), replace(state, ready_s=ms_to_s(float(ready_ms)))


def _first_ms_from(at_s: float) -> int:
    """The first millisecond that is not before a time."""
    if not math.isfinite(at_s):
        return _NEVER_MS
    at_ms = s_to_ms(at_s) - 1
    while ms_to_s(at_ms) < at_s:
        at_ms += 1
    return at_ms
