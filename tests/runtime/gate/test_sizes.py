"""When a gate chooses its policy, and chooses again."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import pytest

from headway.domain import Policy, ScheduledQuery
from headway.models.simulation.gate import QueryWork
from headway.runtime.gate.member import Member
from headway.runtime.gate.sizes import Sizes
from headway.runtime.gate.works import learned_work


class OfTwoCores:
    """Cores of a session and the works of its queries, without a session."""

    cores, driver_cores = 2.0, 1.0

    def works_of(self, members: Sequence[Member]) -> list[QueryWork]:
        return [learned_work(one, self.cores, None, self.driver_cores) for one in members]


class Watched:
    """Members whose batches are given, sizes that look at them, and the works of each choice."""

    def __init__(self, best: Policy = Policy.PROMISE) -> None:
        self.best = best
        self.chosen_for: list[Sequence[QueryWork]] = []
        self.sizes = Sizes(Policy.AUTO, None, self._choose, threading.RLock())
        self.members = [
            Member(None, None, ScheduledQuery(name=one, trigger_s=1.0), now_s=0.0)  # type: ignore[arg-type]
            for one in "ab"
        ]
        self._looks_s: Iterator[int] = count(10, 10)

    def _choose(
        self, works: Sequence[QueryWork], cores: float, asked: Policy
    ) -> tuple[Policy, int]:
        assert (cores, asked) == (2.0, Policy.AUTO)
        self.chosen_for.append(works)
        return self.best, 1

    def num_choices_after(self, *rows_of_batches: float) -> int:
        """Batches of these rows for each query, and a look."""
        for rows in rows_of_batches:
            for one in self.members:
                one.durations.observe(rows, 0.1 + 1e-5 * rows)
        task_time: Any = OfTwoCores()
        self.sizes.look_at(self.members, task_time, float(next(self._looks_s)))
        if self.sizes._choosing is not None:
            self.sizes._choosing.join()
        return len(self.chosen_for)


# Two first batches are ignored: Spark compiles.
COMPILED = (100.0, 100.0)


def test_auto_chooses_once_rows_have_a_cost() -> None:
    watched = Watched()
    # Batches enough for a mean, yet not for a line: their rows would cost nothing.
    assert watched.num_choices_after(*COMPILED, *[900.0, 1000.0, 1100.0] * 3) == 0
    before = watched.sizes.policy
    assert watched.num_choices_after(1000.0) == 1
    assert (before, watched.sizes.policy) == (Policy.FCFS, Policy.PROMISE)
    assert watched.sizes.at_once == 1
    for member in watched.members:
        assert member.durations.line == pytest.approx((0.1, 1e-5))


def test_auto_chooses_again_once_twice_as_much_is_known() -> None:
    watched = Watched()
    assert watched.num_choices_after(*COMPILED, *[900.0, 1100.0] * 5) == 1
    assert watched.num_choices_after() == 1
    assert watched.num_choices_after(*[900.0, 1100.0] * 4) == 1
    # Twice the batches.
    assert watched.num_choices_after(900.0, 1100.0) == 2
    # A batch of more than twice the rows: what a policy makes of five seconds, say.
    assert watched.num_choices_after(2000.0) == 2
    assert watched.num_choices_after(5000.0) == 3
    assert watched.num_choices_after() == 3


def test_queries_without_rows_are_no_reason_to_choose_again() -> None:
    watched = Watched()
    assert watched.num_choices_after(*COMPILED, *[0.0] * 10) == 1
    assert watched.num_choices_after(*[0.0] * 9) == 1
    assert watched.num_choices_after(0.0) == 2


def test_staggered_queries_keep_their_ticks_when_they_are_chosen_again() -> None:
    watched = Watched(Policy.STAGGER)
    assert watched.num_choices_after(*COMPILED, *[900.0, 1100.0] * 5) == 1
    ticks_s = (0.0, 0.4)
    for one, tick_s in zip(watched.members, ticks_s, strict=True):
        one.offset_s = tick_s
    assert watched.num_choices_after(*[900.0, 1100.0] * 5) == 2
    assert tuple(one.offset_s for one in watched.members) == ticks_s
