"""Windows counted from panes and fused are those that Spark's own window counts."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headway
from headway.errors import HeadwayError, InputError
from headway.runtime.sharing.aggregates import read_aggregates
from headway.runtime.sharing.shared_windows import STRICT_KEY, How, exchanges_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WAYS: tuple[How, ...] = ("direct", "panes", "fused")
START = datetime(2026, 3, 28, 23, 59, 0, tzinfo=UTC)
SCHEMA = "ts timestamp, area string, v int, d decimal(10,2), x double"
ALL = {
    "n": "count(*)",
    "known": "count(v)",
    "total": "sum(v)",
    "money": "sum(d)",
    "big": "sum(v) filter (where v > 2)",
    "least": "min(x)",
    "most": "max(area)",
    "mean": "avg(v)",
    "mean_money": "avg(d)",
    "spread": "stddev(x + 1e9)",
    "spread_all": "var_pop(x)",
    "who": "max_by(v, x)",
    "who_least": "min_by(v, struct(x, v))",
    "odd": "bool_or(v % 2 = 1)",
    "values": "approx_count_distinct(v)",
}


def rows(seed: int, number: int, span_s: float) -> list[tuple[Any, ...]]:
    seeded = random.Random(seed)
    return [
        (
            START + timedelta(milliseconds=round(1000 * span_s * place / number)),
            seeded.choice("abc"),
            seeded.choice([None, *range(5)]),
            seeded.choice([None, *("1.25", "3.10")]),
            seeded.choice([None, seeded.random()]),
        )
        for place in range(number)
    ]


def frame(spark: SparkSession, made: list[tuple[Any, ...]]) -> DataFrame:
    loose = spark.createDataFrame(made, SCHEMA.replace("decimal(10,2)", "string"))
    return loose.withColumn("d", loose.d.cast("decimal(10,2)"))


def results_of(df: DataFrame) -> dict[tuple[Any, ...], list[Any]]:
    """Results by key and window, numbers rounded to what the order of sums cannot move."""
    found = {}
    for row in df.collect():
        values = row.asDict()
        window = values.pop("window")
        key = (window.start, window.end, values.pop("area", None))
        assert key not in found
        found[key] = [
            pytest.approx(v, rel=1e-6, abs=1e-9) if isinstance(v, float) else v
            for v in values.values()
        ]
    return found


def test_every_aggregate_is_that_of_the_direct_query(spark: SparkSession) -> None:
    windows = ["20s every 6s offset 2s", "9s"]
    df = frame(spark, rows(1, 120, 60.0))
    asked: dict[str, Any] = {"time": "ts", "key": ["area"], "windows": windows, "aggregates": ALL}
    direct = headway.shared_windows(df, how="direct", **asked)
    expected = results_of(direct)
    for how in WAYS[1:]:
        shared = headway.shared_windows(df, how=how, **asked)
        assert [(f.name, f.dataType) for f in shared.schema] == [
            (f.name, f.dataType) for f in direct.schema
        ]
        assert results_of(shared) == expected


@pytest.fixture
def strict(spark: SparkSession) -> Iterator[None]:
    yield
    spark.conf.unset(STRICT_KEY)


def stream(spark: SparkSession, folder: Path) -> DataFrame:
    source = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder))
    return source.withWatermark("ts", "2 seconds")


def run(df: DataFrame, checkpoint: Path, name: str) -> list[Any]:
    spark = df.sparkSession
    found: list[Any] = []

    def take(batch: DataFrame, number: int) -> None:
        found.extend((number, *row) for row in batch.collect())

    query = (
        df.writeStream.foreachBatch(take)
        .outputMode("append")
        .queryName(name)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    assert spark.streams.active == []
    return sorted(found)


def write_batches(spark: SparkSession, folder: Path, first: int, number: int) -> None:
    folder.mkdir(exist_ok=True)
    for place in range(first, first + number):
        seeded = random.Random(place)
        lines = [
            f'{{"ts": "{(START + timedelta(seconds=5 * place + s)).isoformat()}", '
            f'"area": "{seeded.choice("ab")}", "v": {s}}}'
            for s in range(5)
        ]
        (folder / f"{place:03}.json").write_text("\n".join(lines))
        os.utime(folder / f"{place:03}.json", (place + 1, place + 1))  # the order that Spark reads


ASKED: dict[str, Any] = {
    "time": "ts",
    "key": ["area"],
    "windows": ["20 seconds every 5 seconds", "10 seconds"],
    "aggregates": {"n": "count(*)", "total": "sum(v)"},
}


def test_streams_give_the_same_rows_in_the_same_batches(
    spark: SparkSession, tmp_path: Path, strict: None
) -> None:
    source = tmp_path / "in"
    write_batches(spark, source, 0, 3)
    results: dict[str, list[Any]] = {}
    for how in WAYS:
        checkpoint = str(tmp_path / how)
        shared = headway.shared_windows(
            stream(spark, source), how=how, checkpoint=checkpoint, **ASKED
        )
        results[how] = run(shared, tmp_path / how, how)
        spark.conf.unset(STRICT_KEY)
    assert len(results["direct"]) > 5
    assert results["panes"] == results["fused"] == results["direct"]
    # Started again with new rows, on what each kept.
    write_batches(spark, source, 3, 2)
    for how in WAYS:
        shared = headway.shared_windows(
            stream(spark, source), how=how, checkpoint=str(tmp_path / how), **ASKED
        )
        if how == "fused":
            assert len(exchanges_of(shared)) == 1
        results[how] = run(shared, tmp_path / how, f"{how} again")
        spark.conf.unset(STRICT_KEY)
    assert len(results["direct"]) > 3
    assert results["panes"] == results["fused"] == results["direct"]


def test_a_fused_query_starts_only_with_the_plan_of_its_first_start(
    spark: SparkSession, tmp_path: Path, strict: None
) -> None:
    write_batches(spark, tmp_path / "in", 0, 1)
    df, checkpoint = stream(spark, tmp_path / "in"), str(tmp_path / "ckpt")
    headway.shared_windows(df, how="fused", checkpoint=checkpoint, **ASKED)
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    try:
        with pytest.raises(HeadwayError, match=r"now: hashpart.*Rows would not find"):
            headway.shared_windows(df, how="fused", checkpoint=checkpoint, **ASKED)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "2")
    other = tmp_path / "other"
    (other / "offsets").mkdir(parents=True)
    with pytest.raises(HeadwayError, match="not started as fused"):
        headway.shared_windows(df, how="fused", checkpoint=str(other), **ASKED)
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    try:
        alone = headway.shared_windows(df, how="fused", checkpoint=str(tmp_path / "alone"), **ASKED)
        assert exchanges_of(alone) == ["SinglePartition"]
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "2")
    with pytest.raises(InputError, match="at least one key"):
        headway.shared_windows(df, **{**ASKED, "key": []}, how="fused", checkpoint="x")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"aggregates": {"n": "sum(v)", "total": "count(*)"}}, r"aggregates .*: n = count\(\*\), "),
        ({"key": ["v"]}, "key at the first start: area string; now: v int"),
        ({"windows": ["20 seconds every 5 seconds"]}, "windows at the first start: 10 s, 20 s ev"),
        ({"how": "fused"}, "how at the first start: panes; now: fused"),
    ],
)
def test_panes_of_a_checkpoint_stay_those_of_its_first_start(
    spark: SparkSession, tmp_path: Path, strict: None, change: dict[str, Any], why: str
) -> None:
    """Spark would take state of the same types for that of another aggregate or window."""
    write_batches(spark, tmp_path / "in", 0, 1)
    df, checkpoint = stream(spark, tmp_path / "in"), str(tmp_path / "ckpt")
    for _ in range(2):
        headway.shared_windows(df, how="panes", checkpoint=checkpoint, **ASKED)
    with pytest.raises(HeadwayError, match=why):
        headway.shared_windows(df, **{"how": "panes", "checkpoint": checkpoint, **ASKED, **change})


def test_what_cannot_be_counted_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    df = frame(spark, rows(1, 3, 1.0))
    for change, why in (
        ({"time": "when"}, "no column when"),
        ({"time": "v"}, "v is of type int; expected a timestamp"),
        ({"aggregates": {"area": "count(*)"}}, "area: expected different names"),
        ({"how": "magic"}, "expected one of direct, panes, fused"),
        ({"key": "area"}, "key is 'area'; expected a list"),
    ):
        with pytest.raises(InputError, match=why):
            headway.shared_windows(df, **{**ASKED, **change})
    (tmp_path / "in").mkdir()
    unmarked = spark.readStream.schema(SCHEMA).json(str(tmp_path / "in"))
    with pytest.raises(InputError, match="has no watermark"):
        headway.shared_windows(unmarked, **ASKED)
    if spark.version >= "4":
        # Spark's state refuses such keys when the query runs; tables may have them.
        collated = "* EXCEPT (area)", "area COLLATE UTF8_LCASE AS area"
        for how in WAYS:
            with pytest.raises(InputError, match="the key area is compared by a collation"):
                headway.shared_windows(
                    unmarked.withWatermark("ts", "1 second").selectExpr(*collated),
                    **ASKED, how=how, checkpoint=str(tmp_path / how),
                )  # fmt: skip
            assert headway.shared_windows(df.selectExpr(*collated), **ASKED, how=how).columns


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("count(distinct v)", "approx_count_distinct"),
        ("median(x)", "every value of the window"),
        ("first(v)", "order of rows"),
        ("my_udaf(v)", "my_udaf is not known to merge"),
        ("sum(a) + sum(b)", "not one call"),
        ("sum(a", "not one call"),
        ("price", "not one call"),
    ],
)
def test_aggregates_that_do_not_merge_are_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        read_aggregates({"it": text})
    with pytest.raises(InputError, match="none given"):
        read_aggregates({})


def test_commas_and_brackets_inside_arguments_belong_to_them() -> None:
    (found,) = read_aggregates({"it": "max_by(concat(a, ',)', b), if(x > 0, x, y))"})
    (partial,) = found.partials.values()
    assert "if(x > 0, x, y) AS o, concat(a, ',)', b) AS v" in partial
