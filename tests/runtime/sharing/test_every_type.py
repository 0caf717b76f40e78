"""Every aggregate that is offered, and keys of every type, are Spark's own: from panes and logs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headway
from headway.errors import InputError
from headway.runtime.sharing.aggregates import read_aggregates
from headway.runtime.sharing.shared_windows import How
from tests.interpreted import with_settings
from tests.runtime.sharing.stream_cases import NO_DATA_KEY
from tests.runtime.sharing.typed_cases import (
    KEYS,
    OLD_DATES,
    START_MS,
    Results,
    aggregates_of,
    differences,
    typed_results,
    typed_rows,
    typed_stream,
    write_typed,
)
from tests.runtime.sharing.typed_streams import FEW_ROWS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SHARED: tuple[How, ...] = ("panes", "fused")
WINDOWS = ["20s every 10s", "30s", "40s every 20s offset 10s"]


def asked(place: int) -> dict[str, Any]:
    return {
        "time": "ts", "key": KEYS[place], "windows": WINDOWS, "aggregates": aggregates_of(place),
    }  # fmt: skip


@pytest.fixture(autouse=True)
def in_one_task(spark: SparkSession) -> Iterator[None]:
    """Many aggregates of few rows."""
    with with_settings(spark, FEW_ROWS):
        yield


def batches_of(folder: Path) -> None:
    """Rows of a minute in two batches that share panes, and two batches that end all windows."""
    seeded = random.Random(5)
    rows = typed_rows(seeded, [START_MS + 1000 * at for at in range(60)])
    for number in range(2):
        write_typed(folder, number, rows[number::2])
    for number in (2, 3):
        write_typed(folder, number, typed_rows(seeded, [START_MS + 10**6 * number]))


STATISTICAL = [pytest.mark.statistical]


# Keys whose types and names go through files in different ways; the others take minutes more.
def every_key(*always: int) -> list[object]:
    """All keys, these in every run."""
    return [
        pytest.param(place, id=", ".join(key), marks=[] if place in always else STATISTICAL)
        for place, key in enumerate(KEYS)
    ]


@pytest.mark.parametrize("place", every_key(0, 7))
def test_panes_of_any_key_are_spark_s_own_windows(
    spark: SparkSession, tmp_path: Path, place: int
) -> None:
    batches_of(tmp_path / "in")
    table = (
        spark.read.options(**OLD_DATES)
        .parquet(str(tmp_path / "in"))
        .selectExpr("*", "make_dt_interval(0, 0, 0, v) AS gap")
    )
    direct = headway.shared_windows(table, how="direct", **asked(place))
    expected = typed_results(direct, KEYS[place], aggregates_of(place))
    assert len(expected) > 20
    for how in SHARED:
        shared = headway.shared_windows(table, how=how, **asked(place))
        assert shared.schema.simpleString() == direct.schema.simpleString()
        assert differences(typed_results(shared, KEYS[place], aggregates_of(place)), expected) == []


def run(log: Any, place: int, folder: Path, results: Results) -> None:
    def take(rows: DataFrame, number: int) -> None:
        results.update(typed_results(rows, KEYS[place], aggregates_of(place), number))

    query = log.start(
        sink=take, checkpoint=str(folder / "checkpoint"), trigger={"availableNow": True}
    )
    assert query.awaitTermination(300)


@pytest.mark.parametrize("place", every_key(7))
def test_a_log_with_any_key_is_spark_s_own_windows(
    spark: SparkSession, tmp_path: Path, place: int
) -> None:
    """Panes are compacted, a roll-up is kept, the log is started again: all of it in files."""
    results = Results()
    batches_of(tmp_path / "all")
    for life in (range(1), range(1, 4)):
        (tmp_path / "in").mkdir(exist_ok=True)
        for number in life:
            (tmp_path / "all" / f"{number:03}.parquet").rename(
                tmp_path / "in" / f"{number:03}.parquet"
            )
        log = headway.window_log(
    typed_stream(spark, tmp_path / "in"), store=str(tmp_path / "store"),
            delay="5s", rollups=["10s"], **asked(place),
        )  # fmt: skip
        run(log, place, tmp_path, results)
    rows = typed_stream(spark, tmp_path / "in").withWatermark("ts", "5 seconds")
    expected = Results()
    spark.conf.set(NO_DATA_KEY, "false")
    try:
        query = (
            headway.shared_windows(rows, how="direct", **asked(place))
            .writeStream.foreachBatch(
                lambda batch, number: expected.update(
                    typed_results(batch, KEYS[place], aggregates_of(place), number)
                )
            )
            .option("checkpointLocation", str(tmp_path / "direct"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(300)
    finally:
        spark.conf.unset(NO_DATA_KEY)
    assert len(expected) > 20
    assert differences(results, expected) == []


@pytest.mark.parametrize("aggregate", ["sum(d)", "avg(d)"])
def test_a_decimal_that_overflows_is_null_or_an_error_as_spark_s_is(
    spark: SparkSession, aggregate: str
) -> None:
    """Null stays null when panes are merged; a sum of no values is null, too, and adds nothing."""
    huge = Decimal(9 * 10**37)
    # Of key a, one pane overflows alone; of b, only the sum of panes; c fits, d has no values.
    rows = [(1, "a", huge), (1, "a", huge), (11, "a", Decimal(-5)), (1, "b", huge),
            (11, "b", huge), (1, "c", huge), (11, "c", Decimal(2)), (21, "c", None),
            (1, "d", None), (11, "d", None)]  # fmt: skip
    table = spark.createDataFrame(rows, "s int, k string, d decimal(38,0)").selectExpr(
        "timestamp_seconds(s) AS ts", "k", "d"
    )
    query: dict[str, Any] = {
        "time": "ts", "key": ["k"], "windows": ["30s every 10s"], "aggregates": {"it": aggregate},
    }  # fmt: skip

    def counted(how: How) -> Results:
        return typed_results(headway.shared_windows(table, how=how, **query), ["k"], ["it"])

    ansi = str(spark.conf.get("spark.sql.ansi.enabled"))
    try:
        spark.conf.set("spark.sql.ansi.enabled", "false")
        expected = counted("direct")
        values = {row["it"] for row in expected.values()}
        assert {None, huge if aggregate == "avg(d)" else huge + 2} & values
        assert differences(counted("panes"), expected) == []
        spark.conf.set("spark.sql.ansi.enabled", "true")
        ways: tuple[How, ...] = ("direct", "panes")
        for how in ways:
            # Spark 3.5 and 4 name the error differently.
            with pytest.raises(Exception, match=r"(?i)overflow|out_of_range"):
                counted(how)
    finally:
        spark.conf.set("spark.sql.ansi.enabled", ansi)
    # An average has four digits fewer before the point than the sum.
    fits = table.where("k = 'd'" if aggregate == "avg(d)" else "k IN ('c', 'd')")
    for how in ways:
        shared = headway.shared_windows(fits, how=how, **query)
        assert len(typed_results(shared, ["k"], ["it"])) > 2


def test_averages_have_the_digits_of_spark_s_own_division() -> None:
    """Of decimal(38,18), Spark's average has 22 decimal places, and a quotient in SQL has 18."""
    types = {"sum(d)": "decimal(38,18)", "avg(d)": "decimal(38,22)"}
    (mean,) = read_aggregates({"mean": "avg(d)"}, types)
    assert mean.quotient_of == ("`_headway_0`", "`_headway_0_count`")
    assert (mean.final, mean.type) == ("", "decimal(38,22)")
    assert mean.merges["_headway_0"].endswith("AS decimal(38,18))")
    (whole,) = read_aggregates({"mean": "avg(v)"}, {"sum(v)": "bigint", "avg(v)": "double"})
    assert whole.partials["_headway_0"] == "sum(CAST(v AS DOUBLE))"


def test_no_name_of_an_aggregate_is_that_of_another_s_parts() -> None:
    made = read_aggregates({"a": "avg(v)", "a_count": "sum(w)", "size": "count(*)"})
    columns = [column for each in made for column in each.partials]
    assert len(columns) == len(set(columns)) == 4


def test_what_a_file_cannot_hold_is_refused_before_the_stream_starts(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    rows = typed_stream(spark, tmp_path / "in")
    for aggregates, why in (
        ({"it": "max(NULL)"}, "it: a log keeps partial results in Parquet .* type void"),
        # PySpark 3.5 does not know such a type.
        (
            {"it": "max_by(make_interval(0, 1), id)"},
            "type struct<.*interval>; cast it|parse datatype. interval",
        ),
        ({"it": "sum(nothing)"}, "aggregates: .*nothing"),
        ({"Pane": "count(*)"}, "Pane, pane: expected different names"),
        ({"_headway_x": "count(*)"}, "_headway_x: expected different names"),
    ):
        with pytest.raises(InputError, match=why):
            headway.window_log(
                rows, time="ts", key=["pane"], windows=["10s"], aggregates=aggregates,
                store=str(tmp_path / "store"), delay="1s",
            )  # fmt: skip
