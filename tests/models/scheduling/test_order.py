"""Policies on the state of queries: what each puts first, and the rules over all of them."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from headway.domain import Policy, QueryState
from headway.models.scheduling.order import (
    MemoryReading,
    WaitingQueries,
    WaitingQuery,
    due_s,
    grant_order,
    next_due_s,
    order_holds_until_s,
    ranked,
    slack_s,
)

OF_ALL = [policy for policy in Policy if policy is not Policy.AUTO]


def a_state(name: str, **changes: object) -> QueryState:
    state = QueryState(
        name=name, ready_s=0.0, oldest_unread_s=0.0, last_grant=0, duration_s=0.2, pair_s=0.4
    )
    return replace(state, **changes)  # type: ignore[arg-type]


def first(policy: Policy, *states: QueryState, now_s: float = 10.0) -> str:
    return grant_order(policy, states, now_s)[0]


def test_each_policy_has_its_own_first() -> None:
    oldest = a_state("oldest", oldest_unread_s=1.0, last_grant=9, closing_s=30.0)
    longest_passed = a_state("passed", oldest_unread_s=2.0, last_grant=1, closing_s=29.0)
    closes = a_state("closes", oldest_unread_s=3.0, last_grant=8, closing_s=20.0)
    costly = a_state("costly", oldest_unread_s=4.0, last_grant=7, closing_s=21.0, pair_s=3.0)
    rich = a_state("rich", oldest_unread_s=5.0, last_grant=6, closing_s=28.0, output_rows=900.0)
    early = a_state("early", ready_s=-1.0, oldest_unread_s=6.0, last_grant=5, closing_s=27.0)
    emits = a_state("emits", oldest_unread_s=7.0, last_grant=4, closing_s=26.0, emits=True)
    states = (oldest, longest_passed, closes, costly, rich, early, emits)
    firsts = {policy: first(policy, *states) for policy in OF_ALL}
    assert firsts == {
        Policy.FCFS: "oldest",
        Policy.ROUND_ROBIN: "passed",
        Policy.SBOX: "closes",
        Policy.HIGHEST_RATE: "rich",
        Policy.LEAST_SLACK: "costly",
        Policy.PROMISE: "emits",
        Policy.ECONOMY: "emits",
        Policy.STAGGER: "early",
    }


def test_the_promise_compares_windows_and_rows_by_their_slack() -> None:
    window = a_state("window", closing_s=9.5, window_limit_s=2.0)
    rows = a_state("rows", oldest_unread_s=9.0, row_limit_s=2.0)
    assert slack_s(window) == pytest.approx(11.1)
    assert slack_s(rows) == pytest.approx(10.8)
    assert first(Policy.PROMISE, window, rows) == "rows"
    # A closed window has one batch left to go, and goes first all the same.
    assert first(Policy.PROMISE, replace(window, emits=True), rows) == "window"


def test_economy_runs_nothing_before_a_window_closes_but_row_queries() -> None:
    states = [a_state("later", closing_s=12.0), a_state("rows", row_limit_s=2.0)]
    assert grant_order(Policy.ECONOMY, states, 10.0) == ("rows",)
    assert next_due_s(Policy.ECONOMY, states, 10.0) == 12.0
    assert set(grant_order(Policy.ECONOMY, states, 12.0)) == {"later", "rows"}


@pytest.mark.parametrize("policy", OF_ALL)
def test_nothing_runs_before_its_trigger_under_any_policy(policy: Policy) -> None:
    states = [a_state("due"), a_state("later", ready_s=11.0)]
    assert grant_order(policy, states, 10.0) == ("due",)
    assert next_due_s(policy, states, 10.0) == 11.0


@pytest.mark.parametrize("policy", OF_ALL)
def test_who_was_passed_over_for_too_long_goes_first_under_any_policy(policy: Policy) -> None:
    urgent = a_state("urgent", closing_s=99.0, emits=True, oldest_unread_s=95.0, ready_s=95.0)
    passed = a_state("passed", oldest_unread_s=80.0, last_grant=50, ready_s=98.0, row_limit_s=60.0)
    assert grant_order(policy, [urgent, replace(passed, most_wait_s=15.0)], 100.0)[0] == "passed"
    longer = a_state(
        "longer", oldest_unread_s=70.0, ready_s=98.0, row_limit_s=60.0, most_wait_s=9.0
    )
    both = [replace(passed, most_wait_s=15.0), longer]
    assert grant_order(policy, both, 100.0)[0] == "longer"


def test_where_memory_is_short_the_query_that_frees_most_goes_first() -> None:
    states = [a_state("due", closing_s=1.0, emits=True), a_state("big", removed_rows=1e9)]
    assert grant_order(Policy.PROMISE, states, 10.0, memory_is_short=True)[0] == "big"
    assert grant_order(Policy.PROMISE, states, 10.0)[0] == "due"


def test_a_relief_begins_at_the_limit_and_ends_at_half_or_after_three_seconds() -> None:
    reading = MemoryReading(limit_bytes=800.0)
    looks = [(700.0, 1.0), (900.0, 2.0), (600.0, 3.0), (440.0, 4.0), (700.0, 5.0), (850.0, 6.0),
             (850.0, 8.0), (850.0, 9.5)]  # fmt: skip
    since = []
    for used_bytes, now_s in looks:
        reading = reading.later(used_bytes, now_s)
        since.append(reading.relieving_since_s)
    # Nothing is free after three seconds: a relief of its own begins.
    assert since == [None, 2.0, 2.0, None, None, 6.0, 6.0, 9.5]


def test_equal_queries_take_turns_by_name_so_that_a_log_replays() -> None:
    states = [a_state(name) for name in "cab"]
    for policy in OF_ALL:
        assert grant_order(policy, states, 1.0) == ("a", "b", "c")


@pytest.mark.parametrize("policy", [Policy.PROMISE, Policy.ECONOMY])
def test_of_queries_without_targets_none_is_passed_over_for_its_name(policy: Policy) -> None:
    late = a_state("a", oldest_unread_s=9.0)
    passed_over = a_state("b", oldest_unread_s=1.0)
    assert first(policy, late, passed_over) == "b"


def test_auto_is_no_order_of_its_own() -> None:
    with pytest.raises(ValueError, match="simulation prefers"):
        grant_order(Policy.AUTO, [a_state("a")], 0.0)


def states_of_all_kinds(generator: random.Random, count: int) -> list[QueryState]:
    return [
        a_state(
            f"q{at}",
            ready_s=generator.uniform(0.0, 14.0),
            oldest_unread_s=generator.uniform(0.0, 10.0),
            last_grant=generator.randrange(50),
            duration_s=generator.uniform(0.1, 2.0),
            pair_s=generator.uniform(0.2, 3.0),
            closing_s=generator.choice([None, generator.uniform(5.0, 15.0)]),
            emits=generator.random() < 0.3,
            window_limit_s=2.0,
            row_limit_s=generator.choice([None, 3.0]),
            output_rows=generator.uniform(0.0, 100.0),
            most_wait_s=generator.uniform(2.0, 12.0),
        )
        for at in range(count)
    ]


@pytest.mark.parametrize("policy", OF_ALL)
def test_an_order_that_is_made_ahead_stays_right_for_as_long_as_it_says(policy: Policy) -> None:
    generator = random.Random(policy.value)
    num_compared = 0
    for _ in range(200):
        states = states_of_all_kinds(generator, 12)
        made_s = 10.0
        until_s = order_holds_until_s(states, made_s)
        ahead = ranked(policy, states, made_s)
        for at_s in (generator.uniform(made_s, min(until_s, 20.0)) for _ in range(5)):
            due = tuple(one.name for one in ahead if due_s(policy, one) <= at_s)
            assert grant_order(policy, states, at_s) == due
            num_compared += len(due) > 1
    assert num_compared > 500


def test_an_order_ends_when_the_next_query_has_been_passed_over_for_too_long() -> None:
    starves = a_state("starves", oldest_unread_s=9.0, row_limit_s=9.0, most_wait_s=3.0)
    first_come = a_state("first", oldest_unread_s=8.0, row_limit_s=9.0)
    states = [starves, first_come]
    assert order_holds_until_s(states, 10.0) == pytest.approx(12.0)
    assert ranked(Policy.FCFS, states, 11.9)[0].name == "first"
    assert ranked(Policy.FCFS, states, 12.1)[0].name == "starves"


@pytest.mark.parametrize("policy", OF_ALL)
def test_the_next_turns_are_the_first_of_the_order(policy: Policy) -> None:
    generator = random.Random(policy.value)
    num_granted = 0
    for _ in range(50):
        states = states_of_all_kinds(generator, 12)
        waiting = WaitingQueries()
        for number, state in enumerate(states):
            waiting.add(number, WaitingQuery.of(policy, state))
        left = dict(enumerate(states))
        for now_s in (5.0, 10.0, 25.0):
            for most in (0, 1, 3):
                order = grant_order(policy, list(left.values()), now_s)
                numbers = waiting.next_to_run(now_s, most)
                assert [left.pop(number).name for number in numbers] == list(order[:most])
                num_granted += len(numbers)
            due_later_s = next_due_s(policy, list(left.values()), now_s)
            assert waiting.next_due_s == due_later_s
    assert num_granted > 300
