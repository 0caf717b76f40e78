"""Windows, keys and aggregates as columns are counted as Spark counts them, in each way."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headway
from headway.errors import HeadwayError, InputError
from headway.runtime.sharing.shared_windows import GUARD_FILE, STRICT_KEY, How, checked_at_start

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

START = datetime(2026, 3, 28, 23, 59, 0, tzinfo=UTC)
SCHEMA = "ts timestamp, area string, v int, x double"


def frame(spark: SparkSession) -> DataFrame:
    rows = [
        (START + timedelta(milliseconds=350 * at), "aAb"[at % 3], at % 7 or None, at / 8)
        for at in range(150)
    ]
    return spark.createDataFrame(rows, SCHEMA)


def windows() -> list[Column]:
    from pyspark.sql import functions as F  # noqa: N812

    return [F.window("ts", "20 seconds", "6 seconds", "2 seconds"), F.window("ts", "9 seconds")]


def aggregates() -> list[Column]:
    from pyspark.sql import functions as F  # noqa: N812

    return [
        F.count("*").alias("n"),
        F.sum(F.col("v") * 2).alias("twice"),
        F.expr("sum(v) filter (where x > 3)").alias("late sum"),
        F.max_by("v", F.struct("x")).alias("last"),
        (F.sum("v") / F.count("v")).alias("ratio"),
        F.round(F.avg("x") + F.max("v"), 2).alias("around two"),
        F.when(F.count("*") > 5, F.max("area")).alias("name"),
        F.min("v"),  # named by Spark: min(v)
    ]


def values_of(df: DataFrame) -> dict[Any, list[Any]]:
    return {
        (row["where"], row.window.start, row.window.end): [
            pytest.approx(value, rel=1e-6) if isinstance(value, float) else value
            for value in tuple(row)[2:]
        ]
        for row in df.collect()
    }


def test_columns_are_counted_as_spark_counts_them(spark: SparkSession) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    df, key = frame(spark), F.upper("area").alias("where")
    parts = [df.groupBy(window.alias("window"), key).agg(*aggregates()) for window in windows()]
    direct = reduce(lambda union, part: union.unionByName(part), parts)
    columns = ["where", "window", *direct.columns[2:]]
    expected = values_of(direct.select(*(F.col(f"`{name}`") for name in columns)))
    assert len(expected) > 20
    ways: tuple[How, ...] = ("direct", "panes")
    for how in ways:
        shared = headway.shared_windows(df, *windows(), keys=[key], how=how).agg(*aggregates())
        assert shared.columns == columns
        assert [field.dataType for field in shared.schema][2:] == [
            field.dataType for field in direct.schema
        ][2:]
        assert values_of(shared) == expected


def test_text_may_have_an_expression_around_aggregates(spark: SparkSession) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    df = frame(spark).withColumnRenamed("area", "where")
    asked: dict[str, Any] = {"key": ["where"], "windows": ["20s every 6s offset 2s", "9s"]}
    by_text = headway.shared_windows(
        df, time="ts", **asked, aggregates={"ratio": "sum(v) / count(v)", "n": "count(*)"}
    )
    by_column = headway.shared_windows(df, *windows(), keys=[df["where"]]).agg(
        (F.sum("v") / F.count("v")).alias("ratio"), F.count("*").alias("n")
    )
    assert values_of(by_text) == values_of(by_column)
    assert by_text.schema == by_column.schema


def refusals() -> dict[str, tuple[Callable[[DataFrame], object], str]]:
    from pyspark.sql import functions as F  # noqa: N812

    window, spent = F.window("ts", "9 seconds"), F.sum("v").alias("spent")

    def shared(*columns: Column, aggregate: Column = spent) -> Callable[[DataFrame], object]:
        return lambda df: headway.shared_windows(df, *columns, keys=["area"]).agg(aggregate)

    around = F.median("x") / F.count("*")
    return {
        "distinct": (shared(window, aggregate=F.count_distinct("v").alias("c")), "^c: .*DISTINCT"),
        "around": (shared(window, aggregate=around.alias("m")), "^m: .*median.*every value"),
        "unmergeable": (shared(window, aggregate=F.skewness("x").alias("s")), "not known to merge"),
        "none": (shared(window, aggregate=F.lit(1).alias("one")), "^one: 1 .*aggregates nothing"),
        "of a row": (shared(window, aggregate=F.col("v") + F.sum("v")), "MISSING_AGG|GROUP"),
        "no column": (shared(window, aggregate=F.sum("nothing")), "nothing"),
        "twice": (shared(window, aggregate=F.sum("v").alias("area")), "area: expected different"),
        "no window": (shared(F.col("ts")), "expected windows, e.g. F.window"),
        "session": (shared(F.session_window("ts", "9 seconds")), "expected windows, e.g. F.window"),
        "two times": (shared(window, F.window("x", "5 seconds")), "the times ts, x; expected"),
        "same size": (shared(window, window), "expected different sizes"),
        "fine": (shared(F.window("ts", "100 microseconds")), "whole milliseconds"),
        "no windows": (lambda df: headway.shared_windows(df).agg(spent), "the times none"),
        "windows twice": (
            lambda df: headway.shared_windows(df, window, windows=["9s"]),  # type: ignore[call-overload]
            "windows are given twice",
        ),
        "empty": (lambda df: headway.shared_windows(df, window, keys=["area"]).agg(), "none given"),
        "no text": (
            lambda df: headway.shared_windows(
                df, time="ts", key=[5], windows=["9s"], aggregates={"n": "count(*)"}  # type: ignore[list-item]
            ),
            "got 5; expected a column",
        ),
    }  # fmt: skip


def test_what_cannot_be_shared_is_refused_in_words(spark: SparkSession) -> None:
    df = frame(spark)
    for call, why in refusals().values():
        with pytest.raises(InputError, match=why):
            call(df)


def stream(spark: SparkSession, folder: Path) -> DataFrame:
    folder.mkdir()
    lines = [
        json.dumps(
            {"ts": (START + timedelta(seconds=at)).isoformat(), "area": "ab"[at % 2], "v": at}
        )
        for at in range(60)
    ]
    (folder / "rows.json").write_text("\n".join(lines))
    rows = spark.readStream.schema(SCHEMA).json(str(folder))
    return rows.withWatermark("ts", "2 seconds")


@pytest.fixture
def lenient(spark: SparkSession) -> Iterator[None]:
    before = spark.conf.get(STRICT_KEY)
    yield
    assert spark.conf.get(STRICT_KEY) == before, "an option of one query is left on the session"


def test_a_writer_names_the_checkpoint_and_another_query_is_refused(
    spark: SparkSession, tmp_path: Path, lenient: None
) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    rows, checkpoint = stream(spark, tmp_path / "in"), tmp_path / "checkpoint"
    found: list[Any] = []

    def counted(*aggregate: Column) -> Any:
        shared = headway.shared_windows(
            rows, F.window("ts", "20 seconds", "10 seconds"), keys=[F.col("area")], how="fused"
        ).agg(*aggregate)
        return (
            shared.writeStream.foreachBatch(lambda batch, _: found.extend(batch.collect()))
            .options(checkpointLocation=str(checkpoint))
            .trigger(availableNow=True)
        )

    total = (F.sum("v") / 2).alias("half")
    assert counted(total).start().awaitTermination(60)
    kept = json.loads((checkpoint / GUARD_FILE).read_text())
    assert (kept["how"], len(kept["exchanges"])) == ("fused", 1)
    assert kept["aggregates"][0].startswith("half = ")
    assert "sum(v)" in kept["aggregates"][0]
    # By hand: windows [-10, 10) to [30, 50) end before the watermark, 59 s - 2 s.
    halves = {
        (row.area, (row.window.end.astimezone(UTC) - START).total_seconds()): row.half
        for row in found
    }
    assert halves == {
        (area, end): sum(v for v in range(max(end - 20, 0), end) if v % 2 == odd) / 2
        for end in (10, 20, 30, 40, 50)
        for odd, area in enumerate("ab")
    }
    with pytest.raises(HeadwayError, match="aggregates at the first start: half = "):
        counted((F.sum("v") / 3).alias("half")).start()
    shared = headway.shared_windows(
        rows, F.window("ts", "20 seconds"), keys=["area"], how="fused"
    ).agg(total)
    with pytest.raises(InputError, match="the writer has no checkpoint"):
        shared.writeStream.format("noop").start()
    assert spark.streams.active == []


def test_a_log_takes_columns_too(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    found: dict[str, list[Any]] = {"all": [], "long": []}
    log = headway.window_log(
        stream(spark, tmp_path / "in"),
        F.window("ts", "10 seconds"),
        keys=[F.upper("area").alias("where")],
        store=str(tmp_path / "store"),
        emit="early",
    ).agg((F.max("v") - F.min("v")).alias("span"))
    log.add(
        windows=[F.window("ts", "20 seconds")],
        sink=lambda windows, _: found["long"].extend(windows.collect()),
    )
    query = log.start(
        sink=lambda windows, _: found["all"].extend(windows.collect()),
        checkpoint=str(tmp_path / "checkpoint"),
        trigger={"availableNow": True},
    )
    assert query.awaitTermination(60)
    # Every other second of ten, or twenty: 8 and 18 between the first and the last.
    assert {(row["where"], row.span) for row in found["all"]} == {("A", 8), ("B", 8)}
    assert [row.span for row in found["long"]] == [18] * 4
    assert len(found["all"]) == 10


class Writer:
    """A writer that notes what it is called with."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def option(self, key: str, value: object) -> Writer:
        self.calls.append(f"{key}={value}")
        return self

    def options(self, **options: object) -> Writer:
        self.calls += [f"{key}={value}" for key, value in options.items()]
        return self

    def start(self, path: str | None = None, **options: object) -> str:
        self.calls.append("start")
        return "query"

    def toTable(self, name: str, **options: object) -> str:  # noqa: N802
        self.calls.append(name)
        return "query"


class Stream:
    sparkSession = None  # noqa: N815

    @property
    def writeStream(self) -> Writer:  # noqa: N802
        return Writer()


@pytest.mark.parametrize(
    "begin",
    [
        lambda writer: writer.option("CHECKPOINTLOCATION", "/ck/").option("path", "x").start(),
        lambda writer: writer.options(checkpointLocation="/ck").toTable("table"),
        lambda writer: writer.option("checkpointLocation", "/old").start(checkpointLocation="/ck"),
    ],
)
def test_the_checkpoint_is_that_of_the_writer(begin: Callable[[Any], str]) -> None:
    checked: list[str] = []
    df: Any = Stream()
    checked_df: Any = checked_at_start(df, checked.append)
    assert checked_df is df
    assert isinstance(checked_df, Stream)
    assert begin(df.writeStream) == "query"
    assert checked == ["/ck"]


def test_without_a_checkpoint_there_is_nothing_to_check() -> None:
    checked: list[str] = []
    stream: Any = checked_at_start(Stream(), checked.append)  # type: ignore[arg-type]
    assert stream.writeStream.option("path", "x").start() == "query"
    assert checked == []
