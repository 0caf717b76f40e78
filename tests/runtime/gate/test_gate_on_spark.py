"""The gate on real queries: turns, rows, refusals, and every fault, made to happen."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headway.api.schedule import schedule
from headway.domain import Decision, Policy, ScheduledQuery
from headway.errors import InputError
from headway.models.scheduling.order import grant_order
from headway.runtime.gate import member as member_module
from headway.runtime.gate.arbiter import Gate
from headway.runtime.gate.clock import replace_clock
from headway.runtime.gate.decision_log import BatchEnd, read_decision_log
from headway.runtime.gate.windows import windows_of_query
from tests.runtime.gate.small_queries import PATIENCE_S, Queries, num_batches, wait_until


def intervals(query: StreamingQuery, since_s: float) -> list[tuple[float, float]]:
    """Starts and ends of its batches from a time on."""
    found = []
    for progress in query.recentProgress:
        text = progress["timestamp"].replace("Z", "+00:00")
        start_s = datetime.fromisoformat(text).timestamp()
        if start_s >= since_s:
            found.append((start_s, start_s + progress["durationMs"]["triggerExecution"] / 1000.0))
    return found


def test_queries_take_turns_and_go_on_by_themselves_afterwards(
    spark: SparkSession, queries: Queries, tmp_path: Path
) -> None:
    names = ["a", "b", "c"]
    started = [queries.start(name) for name in names]
    log = tmp_path / "gate.jsonl"
    with schedule(spark, "fcfs", at_once=1, decisions=log) as gate:
        for query in started:
            gate.add(query, target="p99 <= 5s")
        wait_until(
            lambda: all(one.num_batches >= 3 for one in gate.report().queries), "three batches each"
        )
        report = gate.report()
        gated_from_s = time.time()
        wait_until(
            lambda: all(one.num_batches >= 6 for one in gate.report().queries), "six batches each"
        )
        gated_to_s = time.time()
    assert report.opened_because is None
    assert {one.name for one in report.queries} == set(names)
    # One batch at a time: none overlaps with another by more than the clocks' milliseconds.
    spans = sorted(
        span
        for query in started
        for span in intervals(query, gated_from_s)
        if span[1] <= gated_to_s
    )
    assert len(spans) >= 6
    assert all(later[0] >= former[1] - 0.02 for former, later in pairwise(spans))
    # Exactly one batch for a grant, and every decision can be made again from the log.
    entries = list(read_decision_log(log))
    decisions = [one for one in entries if isinstance(one, Decision)]
    ends = [one for one in entries if isinstance(one, BatchEnd)]
    num_granted = sum(len(one.granted) for one in decisions)
    assert num_granted - 1 <= len(ends) <= num_granted
    assert len({(one.name, one.batch_id) for one in ends}) == len(ends)
    for one in decisions:
        assert grant_order(one.policy, one.states, one.at_s) == one.order
        assert one.granted == one.order[: one.at_once - one.num_running]
    # The gate is open: all go on, by their own triggers.
    before = [num_batches(query) for query in started]
    wait_until(
        lambda: all(
            num_batches(query) > count + 1 for query, count in zip(started, before, strict=True)
        ),
        "batches after the gate",
    )
    assert all(query.exception() is None for query in started)


def test_a_waiting_query_stops_at_once_and_loses_no_row(
    spark: SparkSession, queries: Queries
) -> None:
    rows: dict[str, dict[int, list[int]]] = {"a": {}, "b": {}}

    def collect(name: str) -> Callable[[DataFrame, int], None]:
        def each(batch: DataFrame, batch_id: int) -> None:
            found = batch.selectExpr("unix_micros(arrival) AS us").collect()
            rows[name][batch_id] = sorted(row.us for row in found)

        return each

    # A new start goes on where the checkpoint is, whatever it is given.
    origin_s = float(int(time.time()))
    first = queries.start("a", each=collect("a"), start_epoch_s=origin_s)
    other = queries.start("b", each=collect("b"), start_epoch_s=origin_s)
    with schedule(spark, "rr", at_once=1) as gate:
        gate.add(first)
        gate.add(other)
        wait_until(lambda: all(len(one) >= 3 for one in rows.values()), "three batches each")
        first.stop()
        assert first.exception() is None
        wait_until(lambda: len(rows["b"]) >= 6, "the other goes on")
        again = queries.start("a", each=collect("a"), start_epoch_s=origin_s)
        wait_until(lambda: "a" not in gate.gate._members, "the stopped one has left")
        gate.add(again)
        before = len(rows["a"])
        wait_until(lambda: len(rows["a"]) >= before + 2, "and comes back")
        other.stop()
    again.stop()
    for batches in rows.values():
        seen = [us for batch in sorted(batches) for us in batches[batch]]
        assert seen == [round(origin_s * 1e6) + 5000 * i for i in range(len(seen))]
    assert sorted(rows["a"]) == list(range(len(rows["a"])))


def test_windows_are_read_off_the_plan_and_those_that_leave_are_counted(
    spark: SparkSession, queries: Queries
) -> None:
    query = queries.start("w", windowed=True)
    grid = windows_of_query(query)
    assert grid is not None
    assert (grid.slide_s, grid.offset_s, grid.watermark_delay_s) == (3.0, 1.0, 0.5)
    with schedule(spark, "promise") as gate:
        gate.add(query, target="window p99 <= 60s")
        wait_until(lambda: gate.report().queries[0].num_windows >= 2, "windows that leave")
        report = gate.report().queries[0]
    assert report.num_windows_late == 0
    assert report.num_rows > 0


def test_a_query_that_dies_gives_its_turn_back(spark: SparkSession, queries: Queries) -> None:
    def fails(batch: DataFrame, batch_id: int) -> None:
        if batch_id == 2:
            raise RuntimeError("made to fail")

    dying, living = queries.start("dying", each=fails), queries.start("living")
    with schedule(spark, "fcfs", at_once=1) as gate:
        gate.add(living)
        gate.add(dying)
        wait_until(lambda: not dying.isActive, "the failure")
        count = num_batches(living)
        wait_until(lambda: num_batches(living) > count + 2, "the other goes on")
        wait_until(lambda: "dying" not in gate.gate._members, "it has left")
        assert gate.report().opened_because is None
    assert "made to fail" in str(dying.exception())


def test_a_batch_that_hangs_holds_nobody_else_for_longer_than_its_lease(
    spark: SparkSession, queries: Queries, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_gated, goes_on = threading.Event(), threading.Event()

    def hangs(batch: DataFrame, batch_id: int) -> None:
        # A batch that hung before the first grant would have no lease that could end.
        if is_gated.is_set():
            goes_on.wait(PATIENCE_S)

    monkeypatch.setattr(member_module.Member, "lease_s", lambda _: 2.0)
    hanging, other = queries.start("hanging", each=hangs), queries.start("other")
    try:
        with schedule(spark, "fcfs", at_once=1) as gate:
            gate.add(hanging)
            gate.add(other)

            def of(name: str) -> Any:
                return next(one for one in gate.report().queries if one.name == name)

            wait_until(lambda: of("hanging").num_grants >= 1, "a grant")
            is_gated.set()
            wait_until(lambda: of("hanging").num_lease_ends >= 1, "the end of the lease")
            count = num_batches(other)
            wait_until(lambda: num_batches(other) > count + 2, "the other goes on")
            # It is not killed, and takes turns again when it is done.
            assert hanging.isActive
            goes_on.set()
            wait_until(lambda: num_batches(hanging) > 5, "its own batches")
    finally:
        goes_on.set()


def test_an_arbiter_that_fails_opens_the_gate_and_says_so(
    spark: SparkSession, queries: Queries, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = queries.start("q")
    with schedule(spark, "fcfs") as gate:
        gate.add(query)
        wait_until(lambda: gate.report().queries[0].num_grants >= 1, "a grant")

        def breaks(*_: object) -> float:
            raise ZeroDivisionError("made to break")

        with pytest.warns(UserWarning, match="ZeroDivisionError: made to break"):
            monkeypatch.setattr(gate.gate, "_decide", breaks)
            gate.gate._thread.join(PATIENCE_S)
        count = num_batches(query)
        wait_until(lambda: num_batches(query) > count + 1, "batches by its own trigger")
        assert "made to break" in str(gate.report().opened_because)
        with pytest.raises(InputError, match="the gate is open"):
            gate.add(query, name="again")


def test_an_arbiter_without_a_sign_of_life_holds_no_query(
    spark: SparkSession, queries: Queries, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = queries.start("q")
    comes_back = threading.Event()
    with Gate(spark, Policy.FCFS, heartbeat_within_s=1.0) as gate:
        gate.add(query, ScheduledQuery(name="q", trigger_s=0.5))
        wait_until(lambda: gate.report().queries[0].num_grants >= 1, "a grant")
        step = gate._step

        def hangs(*arguments: Any) -> float:
            comes_back.wait(PATIENCE_S)
            return step(*arguments)

        monkeypatch.setattr(gate, "_step", hangs)
        count = num_batches(query)
        try:
            wait_until(lambda: num_batches(query) > count + 2, "batches without the arbiter")
        finally:
            comes_back.set()
        grants = gate.report().queries[0].num_grants
        wait_until(lambda: gate.report().queries[0].num_grants > grants + 1, "grants again")


def test_a_query_without_data_looks_again_at_its_own_trigger_and_holds_nobody(
    spark: SparkSession, queries: Queries
) -> None:
    idle, busy = queries.start("idle", rows=False), queries.start("busy")
    with schedule(spark, "promise", at_once=1) as gate:
        gate.add(idle, target="p99 <= 1s")
        gate.add(busy, target="p99 <= 1s")
        wait_until(lambda: num_batches(busy) >= 3, "batches of the busy one")
        began_s = time.monotonic()
        before = gate.report().queries[0].num_grants
        count = num_batches(busy)
        wait_until(lambda: num_batches(busy) > count + 4, "more of them")
        granted = gate.report().queries[0].num_grants - before
        # Every half second at most, whatever the other one does.
        assert granted <= (time.monotonic() - began_s) / 0.5 + 2
        # Spark runs a first batch whether or not there is data.
        assert gate.report().queries[0].num_batches <= 1


def test_economy_waits_for_the_window_to_close(spark: SparkSession, queries: Queries) -> None:
    query = queries.start("w", windowed=True)
    with schedule(spark, "economy") as gate:
        gate.add(query, target="window p99 <= 60s")
        wait_until(lambda: gate.report().queries[0].num_windows >= 1, "a window")
        before, windows = num_batches(query), gate.report().queries[0].num_windows
        wait_until(lambda: gate.report().queries[0].num_windows >= windows + 2, "two more")
        # A pair of batches a window, not one every half second.
        more = gate.report().queries[0].num_windows - windows
        assert num_batches(query) - before <= 3 * more + 2


def test_what_cannot_be_gated_is_refused_with_the_way_out(
    spark: SparkSession, queries: Queries
) -> None:
    free_running = queries.start("free", trigger={})
    once = queries.start("once", trigger={"availableNow": True}, rows=False)
    plain = queries.start("plain")
    with schedule(spark, "fcfs") as gate:
        with pytest.raises(InputError, match=r"trigger\(processingTime='1 second'\)"):
            gate.add(free_running)
        with pytest.raises(InputError, match=r"another kind|has ended"):
            gate.add(once)
        with pytest.raises(InputError, match="Spark Connect"):
            gate.add(type("Remote", (), {"name": "remote", "id": 1})())
        with pytest.raises(InputError, match="no window in event time"):
            gate.add(plain, target="window p99 <= 3s")
        gate.add(plain)
        with pytest.raises(InputError, match="already under the gate"):
            gate.add(plain)
        with pytest.raises(InputError, match="is not under the gate"):
            gate.remove("nobody")
        gate.remove("plain")
        count = num_batches(plain)
        wait_until(lambda: num_batches(plain) > count + 1, "batches by its own trigger")
    plain.stop()
    with (
        schedule(spark, "fcfs") as gate,
        pytest.raises(InputError, match="has ended"),
    ):
        gate.add(plain)
    with pytest.raises(InputError, match="Spark Connect gives no access to the triggers"):
        schedule(type("Remote", (), {"readStream": None})(), "fcfs")
    with pytest.raises(InputError, match="expected one of fcfs, rr"):
        schedule(spark, "fastest")


def test_a_query_that_has_failed_is_refused_with_its_own_error(
    spark: SparkSession, queries: Queries
) -> None:
    def fails(rows: DataFrame, batch: int) -> None:
        raise ValueError("the sink is full")

    query = queries.start("q", each=fails)
    wait_until(lambda: not query.isActive, "the end of the query")
    with (
        schedule(spark, "fcfs") as gate,
        pytest.raises(InputError, match=r"q has ended with an error \(.*; add a query while"),
    ):
        gate.add(query)


def test_another_spark_that_keeps_its_clock_elsewhere_is_refused(
    spark: SparkSession, queries: Queries
) -> None:
    query = queries.start("q")
    jvm: Any = spark._jvm
    elsewhere = jvm.java.util.ArrayList()
    with pytest.raises(InputError, match="NoSuchFieldException"):
        replace_clock(elsewhere, None, query)


def test_jobs_of_a_query_go_to_its_pool(
    spark: SparkSession, queries: Queries, monkeypatch: pytest.MonkeyPatch
) -> None:
    pools: list[str | None] = []

    def note(batch: DataFrame, _number: int) -> None:
        pools.append(batch.sparkSession.sparkContext.getLocalProperty("spark.scheduler.pool"))

    query = queries.start("pooled", each=note)
    with schedule(spark, "fcfs") as gate:
        with pytest.raises(InputError, match=r"spark\.scheduler\.mode=FIFO, which has no"):
            gate.add(query, pool="orders")
        read = spark.conf.get
        monkeypatch.setattr(
            type(spark.conf),
            "get",
            lambda _self, key, *more: "FAIR" if key == "spark.scheduler.mode" else read(key, *more),
        )
        with pytest.raises(InputError, match="expected the name of a pool"):
            gate.add(query, pool="")
        wait_until(lambda: bool(pools), "a batch in no pool")
        gate.add(query, pool="orders")
        wait_until(lambda: pools[-1] == "orders", "a batch in the pool")
    assert pools[0] is None


def test_a_file_switches_the_gate_off_from_outside(
    spark: SparkSession, queries: Queries, tmp_path: Path
) -> None:
    off = tmp_path / "gate.off"
    with schedule(spark, "fcfs", off=off) as gate:
        query = queries.start("switched")
        gate.add(query)
        wait_until(lambda: gate.report().queries[0].num_batches >= 1, "a batch in turn")
        off.touch()
        wait_until(lambda: gate.report().opened_because is not None, "the gate to open")
        num_grants, before = gate.report().queries[0].num_grants, num_batches(query)
        wait_until(lambda: num_batches(query) > before + 1, "batches by its own trigger")
        report = gate.report()
        # A query that starts later goes by its own trigger, too, whoever adds it.
        later = queries.start("later")
        gate.add(later)
        assert [one.name for one in gate.report().queries] == ["switched"]
        wait_until(lambda: num_batches(later) > 1, "batches of the one that was added later")
    assert report.opened_because == f"it was switched off: {off} is there"
    assert report.queries[0].num_grants == num_grants
