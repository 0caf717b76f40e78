"""On a real Spark: state in pieces, timers and the time to live, also in batches without rows."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headway
from headway.errors import HeadwayError, InputError, MissingPackagesError
from headway.runtime.given import options_set
from headway.runtime.ordered.kept_state import KeyTimes
from headway.runtime.ordered.layout import GUARD_FILE
from tests.runtime.ordered import test_key_times
from tests.runtime.ordered.ordered_cases import EPOCH, Case, a_case, batches_of, micros
from tests.runtime.ordered.spark_cases import ROCKSDB, stream, write_batch
from tests.runtime.ordered.test_key_times import TimedCase, on_timer, serial, step
from tests.runtime.ordered.test_ordered_stream import STREAMS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ASKED: dict[str, Any] = {
    "key": "k", "step": step, "on_timer": on_timer, "timer": "until",
    "state": "n long, until timestamp", "output": "k string, n long, at timestamp",
}  # fmt: skip
IN_PIECES = pytest.mark.skipif(
    tuple(map(int, version("pyspark").split(".")[:2])) < (4, 3),
    reason="state in pieces needs PySpark 4.3",
)


def a_timed_case() -> TimedCase:
    """Rows that wait, timers in batches with and without rows, and keys that are forgotten."""
    times = KeyTimes(timer="until", on_timer=on_timer, idle_us=900_000, row_time="at", by_row=True)
    for seed in range(1000):
        case = a_case(random.Random(seed))
        # Without a delay, the watermark is often at the very time of a row that waits.
        if case.delay_ms != 0 or len(case.batches) not in (3, 4):
            continue
        timed = TimedCase(case, batches_of(case), times)
        rows = [row for rows in serial(timed).values() for row in rows]
        endless = TimedCase(case, timed.batches, KeyTimes(timer="until", on_timer=on_timer,
                                                          row_time="at", by_row=True))  # fmt: skip
        fired = sum(row[2] is not None for row in rows)
        if fired > 2 and len(rows) > 10 and serial(endless) != serial(timed):
            return timed
    raise AssertionError("no such case")


@IN_PIECES
def test_a_timed_stream_is_the_serial_program(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark import cloudpickle

    # Python of the executors does not know the tests.
    cloudpickle.register_pickle_by_value(test_key_times)  # type: ignore[no-untyped-call]
    timed = a_timed_case()
    half = len(timed.case.batches) // 2
    with options_set(spark, ROCKSDB):
        for first, last in ((0, half), (half, len(timed.case.batches))):
            for number in range(first, last):
                write_batch(tmp_path / "in", number, timed.case.batches[number])
            output = headway.ordered(
                stream(spark, tmp_path / "in", timed.case), **ASKED, by=timed.case.by,
                wait="watermark", forget_after="900ms", checkpoint=tmp_path / "checkpoint",
            )  # fmt: skip
            query = (
                output.writeStream.format("parquet")
                .option("path", str(tmp_path / "out"))
                .option("checkpointLocation", str(tmp_path / "checkpoint"))
                .trigger(availableNow=True)
                .start()
            )
            assert query.awaitTermination(120)
    layout = json.loads((tmp_path / "checkpoint" / GUARD_FILE).read_text())
    assert (layout.get("logged"), layout["clock"], layout["forgets"]) == (True, "event", True)
    rows = spark.read.parquet(str(tmp_path / "out")).selectExpr("k", "n", "unix_micros(at)")
    expected = Counter(
        (k, n, at and micros(at)) for rows in serial(timed).values() for k, n, at in rows
    )
    assert Counter(tuple(row) for row in rows.collect()) == expected


@STREAMS
def test_processing_time_passes_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    def wait(row: Any, state: Any) -> Any:
        return (1, row.now + timedelta(milliseconds=300)), []

    def say(key: Any, state: Any) -> Any:
        return None, [(key.k, state.n, state.until)]

    write_batch(tmp_path / "in", 0, (("a", EPOCH, 0, 0, ""), ("b", EPOCH, 1, 0, "")))
    rows = stream(spark, tmp_path / "in", Case(((),), ("offset",), None))
    output = headway.ordered(
        rows.withColumn("now", F.current_timestamp()),
        **(ASKED | {"step": wait, "on_timer": say}), by="offset", clock="processing",
        checkpoint=tmp_path / "checkpoint",
    )  # fmt: skip
    said: list[str] = []

    def take(batch: DataFrame, _number: int) -> None:
        said.extend(row.k for row in batch.collect())

    query = (
        output.writeStream.foreachBatch(take)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    until_s = time.monotonic() + 60.0
    while len(said) < 2 and query.isActive and time.monotonic() < until_s:
        time.sleep(0.02)
    query.stop()
    assert query.exception() is None
    assert sorted(said) == ["a", "b"]


@STREAMS
def test_what_is_said_about_time_is_checked(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    plain = stream(spark, tmp_path / "in", Case(((),), ("offset",), None))
    marked = stream(spark, tmp_path / "in", Case(((),), ("at",), 10))
    timed: dict[str, Any] = {**ASKED, "by": "offset", "checkpoint": tmp_path / "checkpoint"}
    for df, message, changed in (
        (marked, "on_timer is missing for timer", {"on_timer": None}),
        (marked, "timer is missing for on_timer", {"timer": None}),
        (marked, "timer: no column soon in the state; expected one of n, until", {"timer": "soon"}),
        (marked, "timer: n is of type bigint; expected a timestamp", {"timer": "n"}),
        (marked, "clock is 'wall'; expected one of event, processing", {"clock": "wall"}),
        (marked, "a query has one clock",
         {"clock": "processing", "wait": "watermark", "by": "at"}),
        (marked, "forget_after is '0s'; expected more than no time", {"forget_after": "0s"}),
        (marked, "forget_after: 'soon' is not a duration", {"forget_after": "soon"}),
        (plain, "needs one column with a watermark, and the stream has none", {}),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            headway.ordered(df, **(timed | changed))
    assert not (tmp_path / "checkpoint").exists()
    headway.ordered(marked, **timed)
    (tmp_path / "checkpoint" / "offsets").mkdir()
    headway.ordered(marked, **timed)
    with pytest.raises(HeadwayError, match="begun with another forget_after; rows would not"):
        headway.ordered(marked, **timed, forget_after="1h")
    with pytest.raises(HeadwayError, match="begun with another timer or clock; rows would not"):
        headway.ordered(plain, **timed, clock="processing")
    guard = tmp_path / "checkpoint" / GUARD_FILE
    layout = json.loads(guard.read_text())
    guard.with_name(f".{guard.name}.crc").unlink()
    guard.write_text(json.dumps(layout | {"logged": True}))
    module = "headway.runtime.ordered.ordered_stream"
    monkeypatch.setattr(f"{module}._spark_release", lambda: (4, 0))
    monkeypatch.setattr(f"{module}._TOO_NEW", {})
    with pytest.raises(MissingPackagesError, match=r"state in pieces.*expected PySpark 4\.3"):
        headway.ordered(marked, **timed)
