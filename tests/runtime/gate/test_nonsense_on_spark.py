"""What makes no sense to the calls about turns and shedding, where it takes a Spark to see it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

from headway import bring_back, schedule, shed
from headway.api.schedule import ScheduleGate
from headway.errors import InputError
from tests.runtime.gate.small_queries import Queries, num_batches, wait_until
from tests.sources import ROOT

WITHIN_S = 30.0
"""On a machine that does other things, too; alone each takes less than a second."""
NAN = float("nan")


class Given(NamedTuple):
    """A gate and queries that are not under it, rows of a stream and of a batch."""

    spark: SparkSession
    gate: ScheduleGate
    closed: ScheduleGate
    elsewhere: StreamingQuery
    plain: StreamingQuery
    ended: StreamingQuery
    stream: DataFrame
    rows: DataFrame
    checkpoint: Path


@pytest.fixture(scope="module")
def given(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Given]:
    folder = tmp_path_factory.mktemp("nonsense")
    queries = Queries(spark, folder)
    plain, elsewhere, ended = (queries.start(name) for name in ("plain", "elsewhere", "ended"))
    wait_until(lambda: all(num_batches(one) >= 1 for one in (plain, elsewhere, ended)), "batches")
    ended.stop()
    closed = schedule(spark, "fcfs")
    closed.close()
    stream = spark.readStream.format("rate").load()
    rows = spark.sql("SELECT current_timestamp() timestamp, 1L value, 'a' kind, 0 batch")
    with schedule(spark, "fcfs") as gate, schedule(spark, "fcfs") as other:
        other.add(elsewhere)
        yield Given(spark, gate, closed, elsewhere, plain, ended, stream, rows, folder / "plain")
    for query in queries.started:
        query.stop()


def back(of: Given, rows: DataFrame, **changes: Any) -> DataFrame:
    """Rows brought back by a rule that is right but for the changes."""
    rule: dict[str, Any] = {"arrived": "timestamp", "older_than": "2s"}
    return bring_back(of.checkpoint, rows, **(rule | changes))


def marked(of: Given, **changes: Any) -> DataFrame:
    """A stream marked by a rule that is right but for the changes."""
    rule: dict[str, Any] = {"arrived": "timestamp", "older_than": "2s"}
    return shed(of.stream, **(rule | changes))


BATCH_JOB = ROOT / "examples" / "nightly-totals.profile.yaml"
CASES: dict[str, tuple[Callable[[Given], object], str]] = {
    "none at once": (lambda of: schedule(of.spark, at_once=0), "at_once is 0; expected a whole"),
    "fewer than none at once": (lambda of: schedule(of.spark, at_once=-1), "at_once is -1"),
    "half a batch at once": (lambda of: schedule(of.spark, at_once=1.5), "1.5; expected a whole"),  # type: ignore[arg-type]
    "true at once": (lambda of: schedule(of.spark, at_once=True), "at_once is True"),
    "two as a text": (lambda of: schedule(of.spark, at_once="2"), "at_once is '2'"),  # type: ignore[arg-type]
    "a log in no folder": (
        lambda of: schedule(of.spark, decisions=of.checkpoint / "no" / "gate.jsonl"),
        "decisions: .*cannot be written: No such file",
    ),
    "a query that has ended": (lambda of: of.gate.add(of.ended), "has ended; add a query while"),
    "a query in Java": (lambda of: of.gate.add(of.plain._jsq), "expected a running StreamingQu"),
    "a session as a query": (lambda of: of.gate.add(of.spark), "query: got .*SparkSession"),  # type: ignore[arg-type]
    "a query of another gate": (lambda of: of.gate.add(of.elsewhere), "is under another gate"),
    "a gate that is closed": (lambda of: of.closed.add(of.plain), r"open \(closed\); make another"),
    "a target of windows of a query without": (
        lambda of: of.gate.add(of.plain, target="window p99 <= 3s"), "no window in event time",
    ),
    "a target of another unit": (
        lambda of: of.gate.add(of.plain, target="p99 <= 3 furlongs"), "not a duration",
    ),
    "a target of batches": (lambda of: of.gate.add(of.plain, target="batch p99 <= 2s"), "at most"),
    "windows that end before they begin": (
        lambda of: of.gate.add(of.plain, window_slide=-1), "window_slide is -1",
    ),
    "a delay without a number": (
        lambda of: of.gate.add(of.plain, window_slide="5s", watermark_delay=NAN), "is nan",
    ),
    "a profile of a batch job": (
        lambda of: of.gate.add(of.plain, profile=BATCH_JOB), "profile of a batch application",
    ),
    "a profile that is no file": (lambda of: of.gate.add(of.plain, profile=3), "profile is 3"),  # type: ignore[arg-type]
    "a name that is a list": (lambda of: of.gate.add(of.plain, name=["x"]), "expected a text"),  # type: ignore[arg-type]
    "turns of a function": (lambda of: of.gate.add(of.plain, in_turn=print), "expected what gate"),  # type: ignore[arg-type]
    "turns of a query that has none": (
        lambda of: of.gate.add(of.plain, in_turn=of.gate.in_turn(print)),
        r"writes to .*; expected one that was started with foreachBatch\(turn\)",
    ),
    "turns at nothing": (lambda of: of.gate.in_turn(None), "in_turn: got None"),  # type: ignore[arg-type]
    "nobody removed": (lambda of: of.gate.remove("nobody"), "nobody is not under the gate"),
    "rows without the arrival": (lambda of: marked(of, arrived="t"), "no column 't'; expected one"),
    "an arrival that is calculated": (
        lambda of: marked(of, arrived=sf.lower(sf.col("timestamp"))), "arrived: no column .*lower",
    ),
    "no arrival": (lambda of: marked(of, arrived=None), "arrived: got None"),
    "an arrival that two columns have": (
        lambda of: shed(
            of.stream.withColumn("other", sf.col("timestamp")).toDF("timestamp", "v", "TimeStamp"),
            arrived="timestamp",
            older_than="2s",
        ),
        "arrived: 'timestamp' names several columns; rename all but one",
    ),
    "an arrival that is no time": (
        lambda of: marked(of, arrived="value"), "is of type bigint; expected timestamp",
    ),
    "rows without the class": (
        lambda of: marked(of, older_than={"a": "2s"}, cost="kind"), "cost: no column 'kind'",
    ),
    "classes without a column": (
        lambda of: marked(of, older_than={"a": "2s"}), "need the column of the class",
    ),
    "a batch to shed of": (
        lambda of: shed(of.rows, arrived="timestamp", older_than="2s"), "expected a stream",
    ),
    "shed twice": (
        lambda of: shed(marked(of), arrived="timestamp", older_than="2s"), "already; rename it",
    ),
    "a stream to bring back": (lambda of: back(of, of.stream), "spark.read, not readStream"),
    "rows brought back without the arrival": (
        lambda of: back(of, of.rows, arrived="t"), "no column 't'",
    ),
    "rows brought back without the class": (
        lambda of: back(of, of.rows, older_than={"a": "2s"}, cost="c"), "no column 'c'",
    ),
    "rows brought back without their batch": (
        lambda of: back(of, of.rows.drop("batch")), "no column 'topic'",
    ),
    "batches with names": (
        lambda of: back(of, of.rows.withColumn("batch", sf.lit("x"))),
        "column 'batch' is of type string; expected the number",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("call", "says"), CASES.values(), ids=list(CASES))
def test_what_makes_no_sense_has_one_clear_answer_and_changes_nothing(
    given: Given, call: Callable[[Given], object], says: str
) -> None:
    began_s = time.monotonic()
    with pytest.raises(InputError, match=says) as refused:
        call(given)
    assert time.monotonic() - began_s < WITHIN_S
    words = str(refused.value)
    assert not re.search("py4j|Traceback|\n|\tat ", words), words
    # Nothing is half done: the query is under no gate, and goes on by its own trigger.
    assert not given.gate.gate._members
    assert given.plain.isActive


def test_queries_that_were_refused_go_on_and_can_be_added(given: Given) -> None:
    count = num_batches(given.plain)
    wait_until(lambda: num_batches(given.plain) > count + 1, "batches by its own trigger")
    assert given.plain.exception() is None
    given.gate.add(given.plain)
    try:
        with pytest.raises(InputError, match="already under the gate, as plain; expected each"):
            given.gate.add(given.plain, name="again")
        with pytest.raises(InputError, match=r"already under the gate; give another query a name"):
            given.gate.add(given.plain)
        wait_until(lambda: given.gate.report().queries[0].num_grants >= 2, "grants")
        assert [*given.gate.gate._members] == ["plain"]
    finally:
        given.gate.remove("plain")


def test_a_turn_is_for_one_query(given: Given, spark: SparkSession, tmp_path: Path) -> None:
    queries = Queries(spark, tmp_path)
    turn = given.gate.in_turn(lambda batch, number: None)
    first, second = (queries.start(name, each=turn) for name in ("first", "second"))
    try:
        wait_until(lambda: num_batches(first) >= 1 and num_batches(second) >= 1, "batches")
        given.gate.add(first, in_turn=turn)
        with pytest.raises(InputError, match="another query under a gate has this turn"):
            given.gate.add(second, in_turn=turn)
        count = num_batches(second)
        wait_until(lambda: num_batches(second) > count + 1, "batches of the one that was refused")
    finally:
        for query in (first, second):
            query.stop()
        # The gate hears a moment later that it has ended; other tests expect nobody there.
        wait_until(lambda: not given.gate.gate._members, "it has left")


def test_a_query_of_another_session_of_the_application_takes_turns_too(
    given: Given, spark: SparkSession, tmp_path: Path
) -> None:
    """Sessions of one application share its cores, and a gate is about these."""
    queries = Queries(spark.newSession(), tmp_path)
    query = queries.start("guest")
    try:
        with schedule(spark, "fcfs") as gate:
            gate.add(query)
            wait_until(lambda: gate.report().queries[0].num_grants >= 2, "grants")
    finally:
        query.stop()
