"""Which waiting query runs next: one function for simulation, replay and the real gate."""

from __future__ import annotations

import heapq
import math
from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from headway.assumptions.turns import MEMORY_LOOK_AHEAD_S
from headway.domain import Policy, QueryState


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryReading:
    """How much state all queries together may have, and whether some of it is being freed."""

    limit_bytes: float  # Limit from which memory is short, > 0.
    relieving_since_s: float | None = None
    """Time since when the query that frees the most goes first; None if it does not. [s]"""
    used_then_bytes: float = 0.0  # Memory used at that time.

    def later(self, used_bytes: float, now_s: float) -> MemoryReading:
        """The next reading of memory, with which relief continues, ends or begins.

        theory.md (G7); Klink (SIGMOD 2021, 3.4): from when the limit is reached until half of the
        used memory is free or 3 s have passed.

        >>> reading = MemoryReading(limit_bytes=800.0).later(900.0, 10.0)
        >>> reading.relieving_since_s, reading.used_then_bytes
        (10.0, 900.0)
        >>> [reading.later(used, 11.0).relieving_since_s for used in (500.0, 400.0)]
        [10.0, None]
        """
        if (
            self.relieving_since_s is not None
            and now_s - self.relieving_since_s < MEMORY_LOOK_AHEAD_S.value
            and used_bytes > 0.5 * self.used_then_bytes
        ):
            return self
        if used_bytes < self.limit_bytes:
            return MemoryReading(limit_bytes=self.limit_bytes)
        return replace(self, relieving_since_s=now_s, used_then_bytes=used_bytes)


class WaitingQuery(NamedTuple):
    """A query that waits, with what does not change meanwhile: theory.md (G8).

    ``rank`` is its place among queries none of which has been passed over for too long.
    """

    state: QueryState
    due_s: float
    waits_since_s: float
    rank: tuple[float | str, ...]

    @classmethod
    def of(
        cls, policy: Policy, state: QueryState, *, memory_is_short: bool = False
    ) -> WaitingQuery:
        """The query as a policy, any but ``auto``, ranks it."""
        if policy is Policy.AUTO:
            raise ValueError("auto stands for the policy that the simulation prefers")
        freed = -state.removed_rows if memory_is_short else 0.0
        rank: tuple[float | str, ...] = (freed, *_KEYS[policy](state), state.name)
        return cls(state, due_s(policy, state), _waits_since_s(state), rank)

    @property
    def patient_until_s(self) -> float:
        """Until when it may be passed over. [s]"""
        return self.waits_since_s + self.state.most_wait_s

    def rank_at(self, now_s: float) -> tuple[float | str, ...]:
        """Its place at a time: before all others if it has waited longer than it may."""
        waited_s = now_s - self.waits_since_s
        return (-waited_s if waited_s > self.state.most_wait_s else 0.0, *self.rank)


def grant_order(
    policy: Policy, states: Sequence[QueryState], now_s: float, *, memory_is_short: bool = False
) -> tuple[str, ...]:
    r"""Names of the waiting queries that may run now, the next one first.

    Queries that are not due yet are left out.

    Parameters
    ----------
    policy : Policy, any but ``auto``
    states : sequence of QueryState, of the queries that wait
    now_s : float
    memory_is_short : bool, whether the query that frees the most goes first (G7)

    **(G8)** Slack on Spark: a window needs two batches, one that reads its closing row and one that
    emits it: `e + W + δ + target - t - q(D_n+D_(n+1))`. A row needs one batch: oldest unread `+`
    target `-t - q(D)`. Number of batches at the same time: `⌈ D/D_executor⌉`; in local mode, where
    the driver takes a share `r` of the cores, `⌈ D/(D_executor + r·(D - D_executor))⌉`.

    ``fcfs``: oldest unread row; ``rr``: longest time without a turn; ``sbox``: the window that
    closes first; ``hr``: most output rows per second of work; ``least-slack``: equation 1 of Klink
    (SIGMOD 2021), ``w - t - cost``; ``promise``: first the batch that emits a closed window, then
    the least slack to the target, and of equal slack, as of queries without targets, the oldest
    unread row; ``economy``: the same, but no windowed query runs before a window closes;
    ``stagger``: by due time. Two rules override all of them: if memory is short, the query that
    frees the most runs first, and so does a query that has waited longer than it may.

    >>> early = QueryState(name="early", ready_s=0.0, oldest_unread_s=0.0, last_grant=2,
    ...                    duration_s=0.2, pair_s=0.4, closing_s=9.0, window_limit_s=2.0)
    >>> due = QueryState(name="due", ready_s=0.0, oldest_unread_s=1.0, last_grant=1,
    ...                  duration_s=0.2, pair_s=0.4, closing_s=2.0, window_limit_s=2.0)
    >>> [grant_order(Policy(name), [early, due], 3.0) for name in ("fcfs", "promise", "economy")]
    [('early', 'due'), ('due', 'early'), ('due',)]
    """
    due = [state for state in states if due_s(policy, state) <= now_s]
    ordered_states = ranked(policy, due, now_s, memory_is_short=memory_is_short)
    return tuple(state.name for state in ordered_states)


def ranked(
    policy: Policy, states: Sequence[QueryState], now_s: float, *, memory_is_short: bool = False
) -> tuple[QueryState, ...]:
    r"""Queries in the order in which they would run if all of them were due (G8).

    The place of each does not depend on the others. The criterion of a policy does not change while
    a query waits, unless a query has been passed over for too long: the order is valid until
    `order_holds_until_s`.

    Parameters
    ----------
    policy, states, now_s, memory_is_short : as in `grant_order`

    >>> later = QueryState(name="later", ready_s=9.0, oldest_unread_s=0.0, last_grant=0,
    ...                    duration_s=0.2, pair_s=0.4)
    >>> due = QueryState(name="due", ready_s=0.0, oldest_unread_s=1.0, last_grant=0,
    ...                  duration_s=0.2, pair_s=0.4)
    >>> [state.name for state in ranked(Policy.FCFS, [due, later], 3.0)]
    ['later', 'due']
    """
    waiting = [WaitingQuery.of(policy, state, memory_is_short=memory_is_short) for state in states]
    return tuple(query.state for query in sorted(waiting, key=lambda query: query.rank_at(now_s)))


class WaitingQueries:
    """The queries that wait in a simulation of many decisions, in the order of `grant_order`.

    What does not change while a query waits is computed when it begins to wait: theory.md (G8).

    >>> early = QueryState(name="early", ready_s=0.0, oldest_unread_s=0.0, last_grant=0,
    ...                    duration_s=0.2, pair_s=0.4)
    >>> due = QueryState(name="due", ready_s=0.0, oldest_unread_s=1.0, last_grant=0,
    ...                  duration_s=0.2, pair_s=0.4)
    >>> waiting = WaitingQueries()
    >>> for number, state in enumerate([due, early]):
    ...     waiting.add(number, WaitingQuery.of(Policy.FCFS, state))
    >>> waiting.next_to_run(3.0, 1), waiting.next_to_run(3.0, 5), waiting.next_due_s
    ([1], [0], inf)
    """

    def __init__(self) -> None:
        # Those that are due, by rank, and the others, by the time from which they are.
        self._due: list[tuple[tuple[float | str, ...], int, WaitingQuery]] = []
        self._later: list[tuple[float, int, WaitingQuery]] = []
        # None of those that are due has been passed over for too long by then.
        self._patient_until_s = math.inf

    def add(self, number: int, query: WaitingQuery) -> None:
        """A query that begins to wait, by its number."""
        heapq.heappush(self._later, (query.due_s, number, query))

    def next_to_run(self, now_s: float, most: int) -> list[int]:
        """Numbers of those that get the next turns, which wait no longer; not due ones get none."""
        while self._later and self._later[0][0] <= now_s:
            _, number, query = heapq.heappop(self._later)
            insort(self._due, (query.rank, number, query))
            self._patient_until_s = min(self._patient_until_s, query.patient_until_s)
        if now_s <= self._patient_until_s:
            first, self._due = self._due[:most], self._due[most:]
        else:
            first = heapq.nsmallest(most, self._due, key=lambda waiting: waiting[2].rank_at(now_s))
            for waiting in first:
                self._due.remove(waiting)
            ends_s = (query.patient_until_s for _, _, query in self._due)
            self._patient_until_s = min(ends_s, default=math.inf)
        return [number for _, number, _ in first]

    @property
    def next_due_s(self) -> float:
        """When the next of those that were not due at the last decision is; never if all were."""
        return self._later[0][0] if self._later else math.inf


def order_holds_until_s(states: Sequence[QueryState], now_s: float) -> float:
    r"""Until when the order of waiting queries is valid if nothing happens to them (G8).

    Then the next of them will have been passed over for too long; ``inf`` if none will. [s] Time is
    the only thing besides the states that the order depends on. Klink (SIGMOD 2021) decides anew
    every 120 ms.

    Parameters
    ----------
    states : sequence of QueryState
    now_s : float

    >>> state = QueryState(name="a", ready_s=1.0, oldest_unread_s=0.0, last_grant=0,
    ...                    duration_s=0.2, pair_s=0.4, most_wait_s=5.0)
    >>> order_holds_until_s([state], 3.0), order_holds_until_s([state], 7.0)
    (6.0, inf)
    """
    ends_s = (_waits_since_s(state) + state.most_wait_s for state in states)
    return min((at_s for at_s in ends_s if at_s >= now_s), default=math.inf)


def next_due_s(policy: Policy, states: Sequence[QueryState], now_s: float) -> float:
    r"""When the next waiting query becomes due (G8); ``inf`` if all are. [s]

    It is when to decide again if nothing happens before.

    Parameters
    ----------
    states : sequence of QueryState
    now_s : float

    >>> state = QueryState(name="a", ready_s=7.0, oldest_unread_s=0.0, last_grant=0,
    ...                    duration_s=0.2, pair_s=0.4)
    >>> next_due_s(Policy.FCFS, [state], 3.0)
    7.0
    """
    return min(
        (at_s for state in states if (at_s := due_s(policy, state)) > now_s), default=math.inf
    )


def slack_s(state: QueryState) -> float:
    r"""Latest start at which a query meets its targets; minus the current time, its slack (G8).

    It is ``inf`` without targets. [s] If the window is already closed, one batch is left. Rows left
    over by a rate limit need their own batches before that, one after another. After Klink (SIGMOD
    2021), equation 1.

    >>> slack_s(QueryState(name="a", ready_s=0.0, oldest_unread_s=4.0, last_grant=0,
    ...                    duration_s=0.25, pair_s=0.5, closing_s=5.0, window_limit_s=2.0))
    6.5
    """
    latest = math.inf
    before_s = (state.num_batches - 1) * state.duration_s
    if state.closing_s is not None:
        needs_s = state.duration_s if state.emits else state.pair_s + before_s
        latest = state.closing_s + (state.window_limit_s or 0.0) - needs_s
    if state.row_limit_s is not None:
        needs_s = before_s + state.duration_s
        latest = min(latest, state.oldest_unread_s + state.row_limit_s - needs_s)
    return latest


def due_s(policy: Policy, state: QueryState) -> float:
    r"""Time from which a waiting query may run (G8). [s]

    It is its trigger; with ``economy`` not before its window closes. A windowed query that runs
    before a row closes its window must run once more to emit it. ``economy`` avoids the first run,
    Klink (SIGMOD 2021) does not.

    >>> state = QueryState(name="a", ready_s=7.0, oldest_unread_s=0.0, last_grant=0,
    ...                    duration_s=0.2, pair_s=0.4, closing_s=9.0)
    >>> due_s(Policy.PROMISE, state), due_s(Policy.ECONOMY, state)
    (7.0, 9.0)
    """
    if policy is Policy.ECONOMY and state.closing_s is not None and not state.emits:
        return max(state.ready_s, state.closing_s)
    return state.ready_s


def _waits_since_s(state: QueryState) -> float:
    """Since when the query has work waiting: its window, or its oldest row."""
    since_s = state.oldest_unread_s if state.closing_s is None else state.closing_s
    return max(since_s, state.ready_s) if state.row_limit_s is None else since_s


def _closes_first(state: QueryState) -> tuple[float, ...]:
    if state.closing_s is not None:
        return (state.closing_s,)
    return (state.oldest_unread_s + (state.row_limit_s or 0.0),)


def _klink(state: QueryState) -> tuple[float, ...]:
    if state.closing_s is not None:
        return (state.closing_s - state.pair_s,)
    return (state.oldest_unread_s + (state.row_limit_s or 0.0) - state.duration_s,)


_KEYS: dict[Policy, Callable[[QueryState], tuple[float, ...]]] = {
    Policy.FCFS: lambda state: (state.oldest_unread_s,),
    Policy.ROUND_ROBIN: lambda state: (float(state.last_grant),),
    Policy.SBOX: _closes_first,
    Policy.HIGHEST_RATE: lambda state: (-state.output_rows / max(state.duration_s, 1e-9),),
    Policy.LEAST_SLACK: _klink,
    # Queries without targets all have the same slack.
    Policy.PROMISE: lambda state: (not state.emits, slack_s(state), state.oldest_unread_s),
    Policy.ECONOMY: lambda state: (not state.emits, slack_s(state), state.oldest_unread_s),
    Policy.STAGGER: lambda state: (state.ready_s,),
}
