"""Queries of Nexmark that Structured Streaming runs, over the events of `events.py`.

The number of a query is that of the benchmark. Where Spark has another way, or none, the docstring
of the query says what was done instead.
"""

from __future__ import annotations

import heapq
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from campaign.workloads import Stream

from ordinary.events import auctions, bids, drawn, numbered_events, persons
from ordinary.worker_code import sent_with_its_code

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NUM_SIDE_ROWS = 10_000
TOP = 10


def _bids(spark: SparkSession, stream: Stream) -> DataFrame:
    return bids(numbered_events(spark, stream))


def _two_reads(spark: SparkSession, stream: Stream) -> tuple[DataFrame, DataFrame]:
    """The same events read twice, as a query has it that joins two kinds of one topic."""
    if stream.start_epoch_s is None:
        stream = replace(stream, start_epoch_s=time.time())
    return numbered_events(spark, stream), numbered_events(spark, stream, observed=False)


def q0(spark: SparkSession, stream: Stream) -> DataFrame:
    """Pass-through."""
    return _bids(spark, stream)


def q1(spark: SparkSession, stream: Stream) -> DataFrame:
    """Currency conversion."""
    return _bids(spark, stream).selectExpr("auction", "bidder", "0.908 * price AS price", "arrival")


def q2(spark: SparkSession, stream: Stream) -> DataFrame:
    """Filter: bids of some auctions."""
    return _bids(spark, stream).where("auction % 123 = 0").select("auction", "price")


def q3(spark: SparkSession, stream: Stream) -> DataFrame:
    """Local items: auctions of a category by persons of three states who came up to 20 s before.

    The benchmark joins without a bound in time, with a state that grows for ever.
    """
    from pyspark.sql import functions

    first, second = _two_reads(spark, stream)
    items = auctions(first).where("category = 10").withWatermark("arrival", "2 seconds")
    local = (
        persons(second).where("state IN ('OR', 'ID', 'CA')").withColumnRenamed("arrival", "came")
    )
    on = "seller = person AND arrival BETWEEN came AND came + INTERVAL 20 SECONDS"
    joined = items.join(local.withWatermark("came", "2 seconds"), functions.expr(on))
    return joined.select("name", "city", "state", "auction")


def q4(spark: SparkSession, stream: Stream) -> DataFrame:
    """Join, then aggregation: mean price per category of the bids on auctions that are open."""
    from pyspark.sql import functions

    first, second = _two_reads(spark, stream)
    opened = auctions(second).selectExpr("auction AS item", "category", "arrival AS opened")
    on = "auction = item AND arrival BETWEEN opened AND opened + INTERVAL 5 SECONDS"
    joined = (
        bids(first)
        .withWatermark("arrival", "1 second")
        .join(opened.withWatermark("opened", "1 second"), functions.expr(on))
    )
    window = functions.window("arrival", "5 seconds")
    return joined.groupBy(window, "category").agg(
        functions.avg("price").alias("mean"), functions.max("price").alias("highest")
    )


def q5(spark: SparkSession, stream: Stream) -> DataFrame:
    """Two aggregations in a row: bids per auction in sliding windows, then the hottest auction."""
    from pyspark.sql import functions

    late = _bids(spark, stream).withWatermark("arrival", "1 second")
    window = functions.window("arrival", "10 seconds", "2 seconds")
    counts = late.groupBy(window, "auction").count()
    hottest = functions.max_by("auction", "count").alias("auction")
    return counts.groupBy("window").agg(hottest, functions.max("count").alias("num_bids"))


def q8(spark: SparkSession, stream: Stream) -> DataFrame:
    """Windowed join: persons who came and sold within the same 10 s."""
    from pyspark.sql import functions

    first, second = _two_reads(spark, stream)
    window = functions.window("arrival", "10 seconds").alias("window")
    came = persons(first).withWatermark("arrival", "1 second").select("person", "name", window)
    sold = auctions(second).withWatermark("arrival", "1 second").select("seller", window)
    sellers = sold.withColumnRenamed("window", "sold")
    joined = came.join(sellers, functions.expr("person = seller AND window = sold"))
    return joined.select("person", "name", "window")


def q11(spark: SparkSession, stream: Stream) -> DataFrame:
    """Sessions: bids of a bidder until a pause of 2 s."""
    from pyspark.sql import functions

    late = _bids(spark, stream).withWatermark("arrival", "1 second")
    return late.groupBy(functions.session_window("arrival", "2 seconds"), "bidder").count()


def q12(spark: SparkSession, stream: Stream) -> DataFrame:
    """Bids per bidder in tumbling windows of 10 s."""
    from pyspark.sql import functions

    late = _bids(spark, stream).withWatermark("arrival", "1 second")
    return late.groupBy(functions.window("arrival", "10 seconds"), "bidder").count()


def q13(spark: SparkSession, stream: Stream) -> DataFrame:
    """A static side input: each bid gets the value of its key."""
    side = spark.range(NUM_SIDE_ROWS).selectExpr(
        "id AS key", f"concat('value', {drawn('side', 1000, 'id')}) AS value"
    )
    keyed = _bids(spark, stream).withColumn("key", _expr(f"auction % {NUM_SIDE_ROWS}"))
    return keyed.join(side, "key").select("auction", "bidder", "price", "value")


def q15(spark: SparkSession, stream: Stream) -> DataFrame:
    """Distinct bidders and auctions, in three bands of price, in windows of 10 s.

    Spark counts distinct values of a stream approximately only.
    """
    from pyspark.sql import functions

    late = _bids(spark, stream).withWatermark("arrival", "1 second")
    bands = {
        "low": "price < 1000",
        "middle": "price BETWEEN 1000 AND 4999",
        "high": "price >= 5000",
    }
    figures = [
        functions.approx_count_distinct(_expr(f"if({band}, {column}, NULL)")).alias(
            f"{name}_{column}s"
        )
        for name, band in bands.items()
        for column in ("bidder", "auction")
    ]
    window = functions.window("arrival", "10 seconds")
    return late.groupBy(window).agg(functions.count("*").alias("num_bids"), *figures)


def q19(spark: SparkSession, stream: Stream) -> DataFrame:
    """The ten highest bids of each auction, kept in the state of a pandas function."""
    from pyspark.sql.streaming.state import GroupStateTimeout

    sent_with_its_code(__name__)
    ranked = "auction long, rank int, price long, bidder long"
    return (
        _bids(spark, stream)
        .select("auction", "price", "bidder")
        .groupBy("auction")
        .applyInPandasWithState(
            top_bids, ranked, "highest string", "update",
            GroupStateTimeout.NoTimeout,
        )
    )  # fmt: skip


def top_bids(key: tuple[Any, ...], frames: Iterator[Any], state: Any) -> Iterator[Any]:
    """The highest bids so far of one auction, which are its state."""
    import pandas as pd  # type: ignore[import-untyped]

    # As text: the Python worker of Spark 4.3 fails on an array in the schema of a state.
    highest = json.loads(state.get[0]) if state.exists else []
    for frame in frames:
        new = zip(frame["price"].tolist(), frame["bidder"].tolist(), strict=True)
        highest = heapq.nlargest(TOP, [*highest, *map(list, new)])
    state.update((json.dumps(highest),))
    yield pd.DataFrame(
        {
            "auction": key[0],
            "rank": range(1, len(highest) + 1),
            "price": [price for price, _ in highest],
            "bidder": [bidder for _, bidder in highest],
        }
    )


def q21(spark: SparkSession, stream: Stream) -> DataFrame:
    """String work: the id of a channel from its name, or from the address."""
    channel = (
        "CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' "
        "WHEN 'baidu' THEN '3' ELSE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) END"
    )
    rows = _bids(spark, stream).selectExpr(
        "auction", "bidder", "price", "channel", f"{channel} AS channel_id"
    )
    return rows.where("channel_id != ''")


def q22(spark: SparkSession, stream: Stream) -> DataFrame:
    """String work: three folders of the address."""
    parts = (f"split(url, '/')[{place}] AS dir{place - 2}" for place in (3, 4, 5))
    return _bids(spark, stream).selectExpr("auction", "bidder", "price", "channel", *parts)


def _expr(text: str) -> Any:
    from pyspark.sql import functions

    return functions.expr(text)
