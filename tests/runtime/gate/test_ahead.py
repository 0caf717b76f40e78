"""The order that is left in the JVM: what it hands out is what the policy would have decided."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headway.api.schedule import replay_decisions, schedule
from headway.domain import ComingBack, Decision, Policy, QueryState
from headway.models.scheduling.order import grant_order
from headway.runtime.gate.ahead import Ahead
from headway.runtime.gate.clock import new_clock, new_hub
from headway.runtime.gate.decision_log import read_decision_log
from headway.runtime.jars import new_object
from tests.runtime.gate.small_queries import Queries, num_batches, wait_until

MADE_S = 1_763_884_800.0
OF_ALL = [policy for policy in Policy if policy is not Policy.AUTO]


def made(policy: Policy, at_once: int) -> Decision:
    """The decision after which the order is left."""
    return Decision(
        at_s=MADE_S, policy=policy, num_running=0, at_once=at_once, states=(), order=(), granted=()
    )


@dataclass
class Runs:
    """Stands for a member that runs."""

    number: int
    back: ComingBack | None
    lease_over: bool = False
    granted_at_s: float | None = MADE_S
    last_grant: int = 0

    def coming_back(self, now_s: float, next_grant: int) -> ComingBack | None:
        return self.back


class Hub:
    """Takes what is left with it."""

    def __init__(self) -> None:
        self.order: str | None = None

    def stand(self, order: str | None) -> bool:
        self.order = order
        return True


def a_state(generator: random.Random, number: int, **changes: Any) -> QueryState:
    state = QueryState(
        name=f"q{number}",
        ready_s=MADE_S + generator.uniform(-3.0, 1.0),
        oldest_unread_s=MADE_S - generator.uniform(0.0, 9.0),
        last_grant=generator.randrange(50),
        duration_s=generator.uniform(0.1, 2.0),
        pair_s=generator.uniform(0.2, 3.0),
        closing_s=generator.choice([None, MADE_S + generator.uniform(-3.0, 3.0)]),
        emits=generator.random() < 0.3,
        window_limit_s=2.0,
        row_limit_s=generator.choice([None, 3.0]),
        output_rows=generator.uniform(0.0, 100.0),
        most_wait_s=60.0,
    )
    return replace(state, **changes)


def a_case(generator: random.Random, at_once: int) -> tuple[dict[int, QueryState], list[Runs]]:
    waiting = {number: a_state(generator, number) for number in range(1, 7)}
    running = [
        Runs(
            number=number,
            back=ComingBack(
                state=a_state(generator, number, ready_s=MADE_S, emits=False),
                closes_at_s=MADE_S + 5.0,
            ),
        )
        for number in range(7, 7 + at_once)
    ]
    return waiting, running


def standing_order(spark: SparkSession, hub: Hub) -> Any:
    """The order as the JVM reads it."""
    name = "headway.gate.StandingOrder"
    return new_object(spark.sparkContext._gateway, "headway.runtime.gate", name, hub.order)


@pytest.mark.parametrize("policy", OF_ALL)
def test_the_jvm_hands_out_what_the_policy_would_decide(
    spark: SparkSession, policy: Policy
) -> None:
    generator = random.Random(policy.value)
    num_handed_out = 0
    for _ in range(12):
        at_once = generator.choice([1, 2, 3])
        waiting, running = a_case(generator, at_once)
        hub = Hub()
        ahead = Ahead(hub)
        ahead.give(made(policy, at_once), waiting, running)  # type: ignore[arg-type]
        standing = standing_order(spark, hub)
        now_ms = round(1000 * MADE_S)
        for one in running:
            now_ms += generator.randrange(1, 400)
            has_rows, closes = generator.random() < 0.7, generator.random() < 0.5
            newest_ms = now_ms + (9000 if closes else -9000)
            standing.cameBack(one.number, has_rows, newest_ms, now_ms, now_ms + 300)
            if policy is Policy.STAGGER:
                # It stands by its tick, which only the arbiter gives.
                assert standing.first(now_ms) == -1
                break
            free, all_waiting, went = standing.free(), standing.waiting(), []
            assert free == 1
            if (number := standing.first(now_ms)) >= 0:
                standing.letGo(number)
                went.append(number)
            assert standing.first(now_ms) == -1
            if not went:
                break
            decision, numbers, since_s = ahead.went(
                f"go\t250\t{now_ms}\t{free}\t{went[0]}\t{all_waiting}"
            )
            assert numbers == (went[0],)
            assert since_s == pytest.approx(0.00025)
            assert decision.ahead
            assert decision.num_running == at_once - 1
            assert len(decision.states) == 7
            found = grant_order(policy, decision.states, decision.at_s)
            assert (decision.order, decision.granted) == (found, found[:1])
            back = next(state for state in decision.states if state.name == f"q{one.number}")
            assert back.emits == closes
            num_handed_out += 1
    assert num_handed_out > 10 or policy is Policy.STAGGER


def test_a_clock_that_is_released_says_whether_a_batch_is_marked(
    spark: SparkSession, queries: Queries
) -> None:
    query = queries.start("released")
    hub = new_hub(spark, 60.0)
    clock = new_clock(spark, hub, 1, query, 0.5)
    clock.grant(1)
    assert clock.waitTillTime(0) > 0
    # The batch that was let go runs: its clock must stay, for it alone takes the mark off.
    assert clock.release()
    assert clock.waitTillTime(0) > 0
    assert not clock.release()
    clock.grant(1)
    assert clock.release()


def test_an_order_ends_with_a_query_that_it_does_not_know_or_when_its_time_is_up(
    spark: SparkSession,
) -> None:
    generator = random.Random(3)
    now_ms = round(1000 * MADE_S)
    waits = a_state(generator, 1, ready_s=MADE_S - 1.0, row_limit_s=9.0, closing_s=None)
    hub = Hub()
    ahead = Ahead(hub)

    def standing(running: list[Runs], state: QueryState, at_once: int = 1) -> Any:
        ahead.give(made(Policy.FCFS, at_once), {1: state}, running)  # type: ignore[arg-type]
        return standing_order(spark, hub)

    order = standing([Runs(number=7, back=None)], waits)
    order.cameBack(7, True, now_ms, now_ms, now_ms)
    assert order.first(now_ms) == -1
    starves = replace(waits, oldest_unread_s=MADE_S - 58.0)
    order = standing([], starves)
    assert order.first(now_ms + 1500) == 1
    assert order.first(now_ms + 2500) == -1
    # Whoever hangs has no turn to bring back, and whoever leaves is let go by nobody.
    back = ComingBack(
        state=a_state(generator, 7, ready_s=MADE_S, emits=False), closes_at_s=MADE_S + 5.0
    )
    order = standing([Runs(number=7, back=back, lease_over=True), Runs(number=8, back=None)], waits)
    order.cameBack(7, True, now_ms, now_ms, now_ms)
    assert (order.free(), order.first(now_ms)) == (0, -1)
    order = standing([], waits)
    order.forget(1)
    assert order.first(now_ms + 10) == -1
    # More run than may since it was lowered: one must come back without a successor.
    order = standing([Runs(number=at, back=replace(back, state=replace(back.state, name=f"q{at}")))
                      for at in (7, 8)], waits)  # fmt: skip
    order.cameBack(7, True, now_ms, now_ms, now_ms)
    assert order.first(now_ms) == -1
    order.cameBack(8, True, now_ms, now_ms, now_ms)
    assert order.first(now_ms) > 0


def test_turns_are_passed_on_in_the_jvm_and_the_log_replays(
    spark: SparkSession, queries: Queries, tmp_path: Path
) -> None:
    log = tmp_path / "gate.jsonl"
    started = [queries.start(name, windowed=name != "rows") for name in ("v", "w", "rows")]
    with schedule(spark, "promise", at_once=1, decisions=log) as gate:
        for query in started:
            gate.add(query, target="p99 <= 5s")
        wait_until(lambda: gate.report().num_ahead >= 12, "turns that were passed on")
        wait_until(
            lambda: all(one.num_batches >= 2 for one in gate.report().queries), "two batches each"
        )
        assert gate.report().opened_because is None
    found = [one for one in read_decision_log(log) if isinstance(one, Decision)]
    assert {one.ahead for one in found} == {True, False}
    assert replay_decisions(log).num_differing == 0


def test_turns_go_on_while_the_arbiter_is_at_something_else(
    spark: SparkSession, queries: Queries
) -> None:
    started = [queries.start(name) for name in ("a", "b", "c")]
    with schedule(spark, "fcfs", at_once=1) as gate:
        for query in started:
            gate.add(query)
        wait_until(lambda: gate.report().num_ahead >= 3, "turns that were passed on")
        assert any(two_batches_end_without(gate.gate._lock, started) for _ in range(20))
        before = sum(map(num_batches, started))
        wait_until(lambda: sum(map(num_batches, started)) > before + 6, "and turns go on")
        assert gate.report().opened_because is None


def two_batches_end_without(lock: Any, started: list[StreamingQuery]) -> bool:
    """Whether the one that ran and its successor end before the gate would open by itself."""
    with lock:
        before, began_s = sum(map(num_batches, started)), time.monotonic()
        while time.monotonic() < began_s + 3.5:
            if sum(map(num_batches, started)) >= before + 2:
                return True
            time.sleep(0.02)
    return False
