"""The policies stagger and auto on real queries."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headway.api.schedule import schedule
from headway.domain import Decision, Policy, ScheduledQuery
from headway.models.scheduling.order import grant_order
from headway.runtime.gate.arbiter import Gate
from headway.runtime.gate.decision_log import read_decision_log
from headway.turns.scheduling import ASKED
from tests.runtime.gate.small_queries import Queries, wait_until


def test_staggered_queries_tick_each_at_a_time_of_its_own(
    spark: SparkSession, queries: Queries, tmp_path: Path
) -> None:
    names = ["a", "b", "c"]
    every_2s = {"processingTime": "2 seconds"}
    started = [queries.start(name, trigger=every_2s) for name in names]
    log = tmp_path / "gate.jsonl"
    with schedule(spark, "stagger", decisions=log) as gate:
        for query in started:
            gate.add(query, target="p99 <= 5s")
        members = gate.gate._members
        wait_until(
            lambda: all(one.offset_s is not None for one in members.values()), "offsets for all"
        )
        # Nobody is held back for others: each has its own tick.
        assert gate.report().at_once == len(names)
        offsets_s = {name: one.offset_s or 0.0 for name, one in members.items()}
        from_s = time.time() + 2.0
        before = {name: one.last_grant for name, one in members.items()}
        wait_until(
            lambda: all(one.last_grant >= before[name] + 8 for name, one in members.items()),
            "ticks",
        )
    assert len({round(one, 2) for one in offsets_s.values()}) == len(names)
    grants = [
        (one.at_s, name)
        for one in read_decision_log(log)
        if isinstance(one, Decision) and one.at_s >= from_s
        for name in one.granted
    ]
    assert {name for _, name in grants} == set(names)
    for name in names:
        mine_s = [at_s for at_s, one in grants if one == name]
        # Never before its tick; the median is on it, whatever else the machine does.
        late_s = sorted((at_s - offsets_s[name]) % 2.0 for at_s in mine_s)
        assert late_s[len(late_s) // 2] < 0.2
        # At most one for each tick, and Spark's own grid is no longer theirs.
        assert all(later - former > 1.0 for former, later in pairwise(mine_s))


@pytest.mark.statistical
def test_auto_takes_the_policy_that_simulation_prefers_and_chooses_anew_for_a_newcomer(
    spark: SparkSession, queries: Queries, tmp_path: Path
) -> None:
    log = tmp_path / "gate.jsonl"
    started = [queries.start(name, windowed=True) for name in ("v", "w")]
    with schedule(spark, "auto", decisions=log) as gate:
        assert gate.report().policy is Policy.FCFS
        for query in started:
            gate.add(query, target="window p99 <= 10s")
        asked: list[frozenset[str]] = []
        choose = gate.gate._sizes.choose
        assert choose is not None

        def choosing(works: Any, cores: float, policy: Policy) -> tuple[Policy, int]:
            asked.append(frozenset(work.query.name for work in works))
            chosen = choose(works, cores, policy)
            answers.append(chosen)
            return chosen

        answers: list[tuple[Policy, int]] = []
        gate.gate._sizes.choose = choosing
        wait_until(lambda: len(answers) > 0, "a choice")
        wait_until(lambda: gate.report().policy is answers[-1][0], "the policy is in force")
        assert gate.report().policy in ASKED
        decided = gate.report().num_decisions
        wait_until(lambda: gate.report().num_decisions > decided + 4, "decisions by it")
        gate.add(queries.start("late"), target="p99 <= 10s")
        wait_until(lambda: "late" in asked[len(answers) - 1], "another choice")
        wait_until(lambda: gate.report().policy is answers[-1][0], "it is in force")
        assert list(dict.fromkeys(asked)) == [frozenset("vw"), frozenset({"v", "w", "late"})]
        assert gate.report().opened_because is None
    decisions = [one for one in read_decision_log(log) if isinstance(one, Decision)]
    assert decisions[0].policy is Policy.FCFS
    for one in decisions:
        assert grant_order(one.policy, one.states, one.at_s) == one.order


@pytest.mark.statistical
def test_a_given_policy_runs_as_many_concurrent_batches_as_simulation_prefers(
    spark: SparkSession, queries: Queries
) -> None:
    # Where three batches take longer than two intervals, one query would wait for ever.
    seldom = {"processingTime": "1 second"}
    started = [queries.start(name, trigger=seldom) for name in ("a", "b", "c")]
    asked: list[Policy] = []

    def choosing(works: Any, cores: float, policy: Policy) -> tuple[Policy, int]:
        asked.append(policy)
        return policy, len(works)

    with Gate(spark, Policy.PROMISE, choose=choosing) as gate:
        for name, query in zip("abc", started, strict=True):
            gate.add(query, ScheduledQuery(name=name, trigger_s=1.0))
        wait_until(lambda: gate.report().at_once == len(started), "the choice")
        assert gate.report().policy is Policy.PROMISE
    assert set(asked) == {Policy.PROMISE}


def test_auto_may_choose_to_stagger(spark: SparkSession, queries: Queries) -> None:
    started = [queries.start(name) for name in ("a", "b")]
    with Gate(spark, Policy.AUTO, choose=lambda works, *_: (Policy.STAGGER, len(works))) as gate:
        for name, query in zip("ab", started, strict=True):
            gate.add(query, ScheduledQuery(name=name, trigger_s=0.5))
        wait_until(lambda: gate.report().policy is Policy.STAGGER, "the choice")
        wait_until(
            lambda: all(one.offset_s is not None for one in gate._members.values()), "offsets"
        )
        grants = [one.num_grants for one in gate.report().queries]
        wait_until(
            lambda: all(
                now.num_grants > then + 3
                for now, then in zip(gate.report().queries, grants, strict=True)
            ),
            "turns by them",
        )
        assert gate.report().opened_because is None
