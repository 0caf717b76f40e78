"""Turns where Spark keeps its trigger clock elsewhere: batches wait within `foreachBatch`."""

from __future__ import annotations

import ctypes
import threading
import time
from itertools import pairwise
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from headway.api.schedule import schedule
from headway.domain import Policy, ScheduledQuery
from headway.errors import InputError
from headway.runtime.gate.arbiter import Gate
from headway.runtime.gate.clock import trigger_of
from tests.runtime.gate.small_queries import PATIENCE_S, Queries, num_batches, wait_until

AS_FAST_AS_POSSIBLE: dict[str, Any] = {}


def test_a_spark_whose_inside_differs_is_refused_with_the_way_that_is_left(
    spark: SparkSession,
) -> None:
    jvm: Any = spark._jvm
    known = {"_jsq": jvm.java.util.ArrayList(), "isActive": True, "name": "other", "id": 1}
    with pytest.raises(InputError, match=r"streamingQuery.*add it with in_turn=turn"):
        trigger_of(type("Other", (), known)())


def test_batches_that_wait_within_take_turns_and_go_on_when_the_gate_is_open(
    spark: SparkSession, queries: Queries
) -> None:
    spans: list[tuple[float, float]] = []

    def works(batch: DataFrame, batch_id: int) -> None:
        began_s = time.monotonic()
        batch.count()
        spans.append((began_s, time.monotonic()))

    with schedule(spark, "fcfs", at_once=1) as gate:
        turns = {name: gate.in_turn(works) for name in "ab"}
        started = [
            queries.start(name, each=turn, trigger=AS_FAST_AS_POSSIBLE)
            for name, turn in turns.items()
        ]
        wait_until(lambda: all(num_batches(one) >= 2 for one in started), "batches before")
        for query, turn in zip(started, turns.values(), strict=True):
            gate.add(query, target="p99 <= 5s", in_turn=turn)
        wait_until(
            lambda: all(one.num_batches >= 3 for one in gate.report().queries), "turns of both"
        )
        spans.clear()
        wait_until(
            lambda: all(one.num_batches >= 8 for one in gate.report().queries), "more of them"
        )
        gated = sorted(spans)
        report = gate.report()
    assert report.opened_because is None
    assert len(gated) >= 6
    assert all(later[0] >= former[1] for former, later in pairwise(gated))
    # The wait is no part of what is expected of a batch.
    for one in report.queries:
        assert one.observed_duration_mean_s is not None
        assert one.wait_mean_s > 0.0
    counts = [num_batches(one) for one in started]
    wait_until(
        lambda: all(
            num_batches(one) > count + 2 for one, count in zip(started, counts, strict=True)
        ),
        "batches after the gate",
    )
    assert all(one.exception() is None for one in started)


def test_a_query_that_is_stopped_while_it_waits_within_loses_no_row(
    spark: SparkSession, queries: Queries
) -> None:
    rows: dict[int, list[int]] = {}
    goes_on = threading.Event()

    def collects(batch: DataFrame, batch_id: int) -> None:
        found = batch.selectExpr("unix_micros(arrival) AS us").collect()
        rows[batch_id] = sorted(row.us for row in found)

    def holds(batch: DataFrame, batch_id: int) -> None:
        if batch_id == 3:
            goes_on.wait(PATIENCE_S)

    origin_s = float(int(time.time()))
    try:
        with schedule(spark, "fcfs", at_once=1) as gate:
            turn = gate.in_turn(collects)
            waiting = queries.start("waiting", each=turn, start_epoch_s=origin_s)
            gate.add(waiting, in_turn=turn)
            holding = queries.start("holding", each=holds)
            gate.add(holding)
            members = gate.gate._members
            wait_until(
                lambda: num_batches(holding) == 3 and members["waiting"].is_idle, "a long wait"
            )
            waiting.stop()
            goes_on.set()
            wait_until(lambda: "waiting" not in members, "it has left")
            assert gate.report().opened_because is None
    finally:
        goes_on.set()
    assert waiting.exception() is None
    again = queries.start("waiting", each=collects, start_epoch_s=origin_s)
    before = len(rows)
    wait_until(lambda: len(rows) >= before + 2, "it goes on")
    again.stop()
    seen = [us for batch in sorted(rows) for us in rows[batch]]
    assert seen == [round(origin_s * 1e6) + 5000 * at for at in range(len(seen))]


def test_an_arbiter_whose_thread_is_killed_holds_no_query(
    spark: SparkSession, queries: Queries
) -> None:
    query = queries.start("q")
    with schedule(spark, "fcfs") as gate:
        gate.add(query)
        wait_until(lambda: gate.report().queries[0].num_grants >= 1, "a grant")
        thread = gate.gate._thread
        assert thread.ident is not None
        with pytest.warns(UserWarning, match="SystemExit"):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)
            )
            thread.join(PATIENCE_S)
        assert not thread.is_alive()
        count = num_batches(query)
        wait_until(lambda: num_batches(query) > count + 1, "batches by its own trigger")


def test_names_may_hold_what_parts_lines_and_decisions_are_timed(
    spark: SparkSession, queries: Queries
) -> None:
    names = ["tab\there", "line\nhere", "other\u2028line"]
    with schedule(spark, "promise", at_once=1) as gate:
        for at, name in enumerate(names):
            gate.add(queries.start(f"q{at}"), name=name, target="p99 <= 5s")
        wait_until(
            lambda: all(one.num_batches >= 3 for one in gate.report().queries), "turns of all"
        )
        report = gate.report()
    assert [one.name for one in report.queries] == names
    assert report.opened_because is None
    # From the moment at which a query was idle until the grant was given.
    assert 0.0 < report.decision_p50_s <= report.decision_p99_s


def test_every_gate_of_a_session_lets_go_at_once_when_it_is_closed(
    spark: SparkSession, queries: Queries
) -> None:
    """Not only when the clocks miss the arbiter's sign of life."""
    query = queries.start("q")
    for _ in range(3):
        with Gate(spark, Policy.FCFS, heartbeat_within_s=PATIENCE_S) as gate:
            gate.add(query, ScheduledQuery(name="q", trigger_s=0.5))
            wait_until(lambda: gate.report().queries[0].num_grants >= 2, "grants")
        count = num_batches(query)
        deadline_s = time.monotonic() + PATIENCE_S / 3.0
        while num_batches(query) < count + 2:
            assert time.monotonic() < deadline_s, "it waits for a gate that is closed"
            time.sleep(0.05)
