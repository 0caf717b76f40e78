"""The queries of the pairs: totals by key, windows, rows without state, and an exchange."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from campaign.running import in_settings
from campaign.workloads import WINDOWS, WindowShape, observed_arrivals

from headway.runtime.word_count import clock_lines
from headway.units import spark_trigger_text
from switches.pairs import Pair, PairRun

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_SOURCE_PARTITIONS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchQuery:
    """A run of a pair as a query that can be started and measured; ``servers`` are Kafka's."""

    run: PairRun
    name: str
    servers: str = ""

    @property
    def topic(self) -> str:
        """The topic that it reads, if it reads one."""
        return "".join(letter if letter.isalnum() else "-" for letter in self.name)

    @property
    def partitions(self) -> int:
        """Its shuffle partitions."""
        return self.run.pair.side(self.run.side).partitions or self.run.pair.partitions

    @property
    def windows(self) -> WindowShape | None:
        """Windows whose ends it observes."""
        pair = self.run.pair
        if pair.window_s is None:
            return None
        return WindowShape(size_s=pair.window_s, watermark_delay_s=pair.watermark_s)

    def start(self, spark: SparkSession, folder: Path) -> StreamingQuery:
        """Start it from a new checkpoint, to a sink that keeps nothing."""
        pair, side = self.run.pair, self.run.pair.side(self.run.side)
        conf = {**side.conf, "spark.sql.shuffle.partitions": str(self.partitions)}
        with in_settings(spark, conf):
            return (
                _result(pair, self._rows(spark))
                .writeStream.format("noop")
                .queryName(self.name)
                .outputMode("update" if pair.job == "totals" else "append")
                .option("checkpointLocation", str(folder / "checkpoints" / self.topic))
                .options(**side.writer)
                .trigger(processingTime=spark_trigger_text(pair.trigger_s))
                .start()
            )

    def _rows(self, spark: SparkSession) -> DataFrame:
        """Rows with ``text`` and ``arrival``, from Kafka or on the wall clock."""
        pair = self.run.pair
        if self.servers:
            reader = (
                spark.readStream.format("kafka")
                .option("kafka.bootstrap.servers", self.servers)
                .option("subscribe", self.topic)
                .option("startingOffsets", "earliest")
                .options(**pair.side(self.run.side).reader)
            )
            rows = reader.load().selectExpr("CAST(value AS STRING) AS text", "timestamp AS arrival")
            return observed_arrivals(rows, is_even=True)
        lines = clock_lines(
            spark,
            rate_per_s=pair.rate_per_s,
            num_source_partitions=_SOURCE_PARTITIONS,
            # Bursts of all runs begin at the same instants of the grid of triggers.
            start_epoch_s=time.time() // pair.burst_period_s * pair.burst_period_s - pair.backlog_s,
            burst_period_s=pair.burst_period_s,
            burst_share_ratio=pair.burst_share,
        )
        return observed_arrivals(lines, is_even=pair.burst_share == 1)


def _result(pair: Pair, rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions

    if pair.job == "plain":
        return _hashed(rows, pair.hash_rounds)
    keyed = rows.withColumn("key", _key(pair.num_keys))
    if pair.job == "exchange":
        return _hashed(keyed.repartition("key"), pair.hash_rounds)
    if pair.job == "windows":
        delay = f"{round(1e3 * pair.watermark_s)} milliseconds"
        window = functions.window("arrival", f"{round(1e3 * (pair.window_s or 0.0))} milliseconds")
        counts = keyed.withWatermark("arrival", delay).groupBy(window).count()
        ends_us = functions.collect_set(functions.unix_micros("window.end"))
        return counts.observe(WINDOWS, ends_us.alias("ends_us"))
    assert pair.job == "totals", pair.job
    return keyed.groupBy("key").agg(
        functions.count(functions.lit(1)).alias("num_seen"), functions.max("arrival")
    )


def _key(num_keys: int) -> Column:
    """One of so many keys, evenly drawn."""
    from pyspark.sql import functions

    return functions.pmod(functions.xxhash64("text"), functions.lit(num_keys))


def _hashed(rows: DataFrame, num_rounds: int) -> DataFrame:
    """The rows after some microseconds of work each."""
    from pyspark.sql import functions

    text = functions.col("text")
    for _ in range(num_rounds):
        text = functions.sha2(text, 256)
    return rows.withColumn("text", text)
