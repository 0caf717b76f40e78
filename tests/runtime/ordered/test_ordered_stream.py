"""On a real Spark: rows out are those of one worker, and what cannot be ordered is refused."""

from __future__ import annotations

import os
import random
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headway
from headway.errors import HeadwayError, InputError
from headway.runtime.given import options_set
from headway.runtime.measure import progress_events
from headway.runtime.ordered.layout import GUARD_FILE
from tests.runtime.ordered.ordered_cases import Case, a_case, serial, step
from tests.runtime.ordered.spark_cases import (
    ASKED,
    ROCKSDB,
    SCHEMA,
    expected,
    rows_in,
    started,
    stream,
    write_batch,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STREAMS = pytest.mark.skipif(
    tuple(map(int, version("pyspark").split(".")[:2])) < (4, 3)
    and (int(version("pyarrow").split(".")[0]) >= 19 or version("pandas") >= "3"),
    reason="PySpark before 4.3 hands state to Python with pandas<3 and pyarrow<19 only",
)
NUM_RUNS = int(os.environ.get("HEADWAY_ORDERED_RUNS", "1"))


def a_long_case(seeded: random.Random, *, waits: bool) -> Case:
    while True:
        case = a_case(seeded)
        rows = sum(map(len, serial(case).values()))
        if (case.delay_ms is not None) == waits and len(case.batches) > 3 and rows > 8:
            return case


@STREAMS
@pytest.mark.parametrize("seed", range(NUM_RUNS))
def test_a_real_run_is_the_serial_program(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    case = a_long_case(random.Random(seed), waits=seed % 2 == 1)
    half = len(case.batches) // 2
    for number, rows in enumerate(case.batches[:half]):
        write_batch(tmp_path / "in", number, rows)
    place = tmp_path / "keys.csv"
    place.write_text("key,share\na,0.5\nü,0.2\n", encoding="utf-8")
    placed = place if seed % 3 == 0 else None
    store = ROCKSDB if seed // 2 % 2 == 1 else {}
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", str(1 + seed % 4))
    try:
        with options_set(spark, store):
            assert started(spark, tmp_path, case, placed).awaitTermination(300)
        # Begun again on what the checkpoint kept, with another number of partitions set, and
        # another store: those of the checkpoint count.
        for number, rows in enumerate(case.batches[half:], half):
            write_batch(tmp_path / "in", number, rows)
        spark.conf.set("spark.sql.shuffle.partitions", "3")
        assert started(spark, tmp_path, case, placed).awaitTermination(300)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    assert rows_in(spark.read.parquet(str(tmp_path / "out"))) == expected(case)


def test_a_table_is_one_batch(spark: SparkSession, tmp_path: Path) -> None:
    case = a_long_case(random.Random(5), waits=False)
    rows = tuple(row for batch in case.batches for row in batch)
    write_batch(tmp_path / "in", 0, rows)
    table = spark.read.schema(SCHEMA).json(str(tmp_path / "in"))
    found = headway.ordered(table, **ASKED, by="offset", step=step)
    assert rows_in(found) == expected(Case((rows,), ("offset",), None))


@pytest.mark.statistical
def test_nested_columns_break_ties(spark: SparkSession) -> None:
    rows = spark.sql("SELECT 1 AS k, 0 AS t, map('a', v) AS m FROM (VALUES (3), (1), (2)) AS x(v)")
    found = headway.ordered(
        rows, key="k", by="t", state="n int", output="n int, v int",
        step=lambda row, state: (
            ((state.n if state else 0) + 1,), [((state.n if state else 0), dict(row.m)["a"])]
        ),
    )  # fmt: skip
    assert sorted(map(tuple, found.collect())) == [(0, 1), (1, 2), (2, 3)]


@STREAMS
def test_what_cannot_be_ordered_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    case = Case(((),), ("offset",), None)
    df = stream(spark, tmp_path / "in", case)
    checkpoint = str(tmp_path / "checkpoint")
    asked: dict[str, Any] = {**ASKED, "by": "offset", "step": step, "checkpoint": checkpoint}
    place = tmp_path / "keys.csv"
    place.write_text("key,share\na,0.5\n")
    refused: list[tuple[str, dict[str, Any]]] = [
        ("key names no column", {"key": []}),
        ("by names no column", {"by": ()}),
        ("no column card; the DataFrame has k, at", {"key": "card"}),
        ("expected one of batch, watermark", {"wait": "soon"}),
        ("needs checkpoint=", {"checkpoint": None}),
        ("at has no watermark", {"wait": "watermark", "by": "at"}),
        ("offset is of type bigint; expected a timestamp", {"wait": "watermark"}),
        ("the state f is of type float, which Python does not", {"state": "f float"}),
        ("expected columns as in", {"state": "n longest"}),
        ("cannot be made of Python's values", {"output": "i interval year"}),
        ("one key column", {"key": ["k", "text"], "place": place}),
        ("keys cannot be read as int64", {"key": "offset", "place": place}),
        ("none.csv: no such file", {"place": tmp_path / "none.csv"}),
    ]
    for said, changed in refused:
        with pytest.raises(InputError, match=said):
            headway.ordered(df, **(asked | changed))
    with pytest.raises(InputError, match="the key k is of type double, of which equal"):
        headway.ordered(df.withColumn("k", df.number / 2), **asked)
    if spark.version >= "4":
        collated = df.selectExpr("* EXCEPT (k)", "k COLLATE UTF8_LCASE AS k")
        with pytest.raises(InputError, match="the key k is of type string collate UTF8_LCASE, of"):
            headway.ordered(collated, **asked)
        with pytest.raises(InputError, match=r"by: k has an order of its own.*collation_key"):
            headway.ordered(collated, **(asked | {"key": "offset", "by": "k"}))
    with pytest.raises(InputError, match="none beginning with _headway_"):
        headway.ordered(df.withColumn("_headway_k", df.k), **asked)
    counted = df.groupBy("k").count().withColumnRenamed("count", "offset")
    with pytest.raises(InputError, match="the stream has Aggregate before"):
        headway.ordered(counted, **asked)
    with pytest.raises(InputError, match="Deduplicate"):
        headway.ordered(df.dropDuplicates(["k"]), **asked)
    assert not (tmp_path / "checkpoint").exists()


@STREAMS
def test_a_checkpoint_is_begun_with_one_layout(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    df = stream(spark, tmp_path / "in", Case(((),), ("offset",), None))
    checkpoint = tmp_path / "checkpoint"
    asked: dict[str, Any] = {**ASKED, "by": "offset", "step": step, "checkpoint": str(checkpoint)}
    headway.ordered(df, **asked)
    # It never ran: another layout takes its place.
    headway.ordered(df, **(asked | {"by": ["at", "offset"]}))
    (checkpoint / "offsets").mkdir()
    headway.ordered(df, **(asked | {"by": ["at", "offset"]}))
    with pytest.raises(HeadwayError, match="begun with another by; rows would not find"):
        headway.ordered(df, **asked)
    place = tmp_path / "keys.csv"
    place.write_text("key,share\na,0.5\n")
    with pytest.raises(HeadwayError, match="begun with another state and another place;"):
        headway.ordered(df, **(asked | {"by": ["at", "offset"], "state": "n long", "place": place}))
    (checkpoint / GUARD_FILE).unlink()
    with pytest.raises(HeadwayError, match="started without ordered"):
        headway.ordered(df, **asked)


def test_inside_foreach_batch_there_is_no_state(spark: SparkSession, tmp_path: Path) -> None:
    write_batch(tmp_path / "in", 0, a_long_case(random.Random(3), waits=False).batches[-1])
    said: list[str] = []

    def take(batch: DataFrame, number: int) -> None:
        with pytest.raises(InputError) as refused:
            headway.ordered(batch, **ASKED, by="offset", step=step)
        said.append(str(refused.value))

    query = (
        stream(spark, tmp_path / "in", Case(((),), ("offset",), None))
        .writeStream.foreachBatch(take)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    assert len(said) == 1
    assert "inside foreachBatch each batch would begin without state" in said[0]


def test_an_older_spark_is_refused_for_streams(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    df = stream(spark, tmp_path / "in", Case(((),), ("offset",), None))
    found = {"pyspark": "4.0.1", "pandas": "2.3.3", "pyarrow": "19.0.0"}
    monkeypatch.setattr("headway.runtime.ordered.ordered_stream.version", found.__getitem__)
    asked: dict[str, Any] = {**ASKED, "by": "offset", "step": step}
    with pytest.raises(HeadwayError, match=r"by PySpark 4\.0\.1 with pandas 2"):
        headway.ordered(df, **asked, checkpoint=str(tmp_path / "c"))
    found["pyarrow"] = "18.1.0"
    headway.ordered(df, **asked, checkpoint=str(tmp_path / "c"))


@STREAMS
def test_ties_and_late_rows_are_in_the_progress_of_the_query(
    spark: SparkSession, tmp_path: Path
) -> None:
    def at(second: int) -> datetime:
        return datetime(2026, 5, 1, 0, 0, second, tzinfo=UTC)

    first = (("a", at(9), 1, 1, "x"), ("a", at(9), 2, 1, "y"), ("b", at(9), 3, 1, "x"))
    second = (("a", at(2), 4, 1, "late"), ("a", None, 5, 1, "no time"), ("b", at(40), 6, 1, "x"))
    last = (("b", at(59), 7, 1, "x"),)
    case = Case((first, second, last), ("at",), 1000)
    for number, rows in enumerate(case.batches):
        write_batch(tmp_path / "in", number, rows)
    query = started(spark, tmp_path, case)
    assert query.awaitTermination(300)
    counted = {"tied": 0, "late": 0, "untimed": 0}
    for progress in progress_events(query):
        row = progress.get("observedMetrics", {}).get("ordered", {})
        counted = {name: number + row.get(name, 0) for name, number in counted.items()}
    assert counted == {"tied": 1, "late": 1, "untimed": 1}
    assert rows_in(spark.read.parquet(str(tmp_path / "out"))) == expected(case)
