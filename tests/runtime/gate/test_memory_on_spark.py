"""Where state outgrows its limit, the query that frees the most goes first."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from headway.api.schedule import replay_decisions, schedule
from headway.domain import Decision
from headway.runtime.gate.decision_log import read_decision_log
from tests.runtime.gate.small_queries import Queries, wait_until


def test_short_memory_is_seen_in_progress_and_in_the_log(
    spark: SparkSession, queries: Queries, tmp_path: Path
) -> None:
    log = tmp_path / "gate.jsonl"
    windowed, plain = queries.start("windowed", windowed=True), queries.start("plain")
    with schedule(spark, "fcfs", at_once=1, decisions=log, memory_limit="1k") as gate:
        gate.add(windowed)
        gate.add(plain)
        wait_until(lambda: gate.report().num_reliefs >= 1, "state above a kilobyte")
        wait_until(lambda: gate.report().queries[0].num_windows >= 2, "windows that leave")
    decisions = [one for one in read_decision_log(log) if isinstance(one, Decision)]
    assert not decisions[0].memory_is_short
    assert any(one.memory_is_short for one in decisions)
    # Both waited, memory was short, and one could free state: it went first.
    first = [
        one.order[0]
        for one in decisions
        if one.memory_is_short
        and len(one.order) == 2
        and {state.removed_rows > 0.0 for state in one.states} == {True, False}
    ]
    assert set(first) <= {"windowed"}
    assert replay_decisions(log).num_differing == 0


def test_without_a_limit_memory_is_never_short(spark: SparkSession, queries: Queries) -> None:
    windowed = queries.start("windowed", windowed=True)
    with schedule(spark, "fcfs") as gate:
        gate.add(windowed)
        wait_until(lambda: gate.report().queries[0].num_windows >= 1, "a window")
        assert gate.report().num_reliefs == 0
