"""The queries that are measured, on lines that arrive on the wall clock."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway.runtime.word_count import clock_lines
from headway.units import spark_trigger_text
from real.cells import WINDOW_S

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SESSION_CONF = {
    "spark.sql.shuffle.partitions": "2",
    # Jobs of one pool are served first in, first out; pools of their own are served evenly. So
    # that one session runs both.
    "spark.scheduler.mode": "FAIR",
    "spark.sql.streaming.numRecentProgressUpdates": "5000",
    # Queries alike share what is compiled for them, and each run finds it there.
    "spark.sql.codegen.cache.maxEntries": "10000",
}
_NUM_ADS, _ADS_PER_CAMPAIGN, _NUM_EVENT_TYPES = 1000, 10, 3
_FEWEST_JOIN_KEYS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A query to start."""

    name: str
    kind: str
    rate_per_s: float
    trigger_s: float
    window_start_s: float = 0.0
    pool: str | None = None


def start(spark: SparkSession, planned: Planned, folder: Path) -> StreamingQuery:
    """Start a query from a checkpoint of its own."""
    frame = _FRAMES[planned.kind](spark, planned)
    writer = frame.writeStream.format("noop").queryName(planned.name).outputMode("append")
    writer = writer.option("checkpointLocation", str(folder / planned.name))
    # A query keeps the pool of the thread that starts it.
    context: Any = spark.sparkContext
    context.setLocalProperty("spark.scheduler.pool", planned.pool)
    try:
        return writer.trigger(processingTime=spark_trigger_text(planned.trigger_s)).start()
    finally:
        context.setLocalProperty("spark.scheduler.pool", None)


def _events(spark: SparkSession, planned: Planned) -> DataFrame:
    """Events of ads, read from JSON as in the Yahoo benchmark."""
    from pyspark.sql import functions as sf

    lines = clock_lines(
        spark,
        rate_per_s=planned.rate_per_s,
        num_source_partitions=2,
        num_words=_NUM_ADS,
        zipf_exponent=0.0,
        words_per_row=1,
    )
    ad = sf.pmod(sf.hash("text"), sf.lit(_NUM_ADS))
    event_type = sf.pmod(sf.hash("arrival", "text"), sf.lit(_NUM_EVENT_TYPES))
    written = sf.format_string('{"ad": %d, "event_type": %d, "page": "%s"}', ad, event_type, "text")
    event = sf.from_json(written, "ad INT, event_type INT, page STRING")
    return lines.select("arrival", event.alias("event")).select("arrival", "event.*")


def _windowed(spark: SparkSession, planned: Planned) -> DataFrame:
    """Views of each campaign in windows of 5 s."""
    from pyspark.sql import functions as sf

    views = _events(spark, planned).where("event_type = 0")
    campaign = sf.floor(sf.col("ad") / _ADS_PER_CAMPAIGN).alias("campaign")
    start_ms = round(planned.window_start_s * 1000.0)
    window = sf.window("arrival", f"{WINDOW_S:g} seconds", startTime=f"{start_ms} milliseconds")
    return views.withWatermark("arrival", "0 seconds").groupBy(window, campaign).count()


def _stateless(spark: SparkSession, planned: Planned) -> DataFrame:
    from pyspark.sql import functions as sf

    events = _events(spark, planned)
    return events.select(sf.xxhash64("ad", "page", "arrival").alias("id"), "event_type")


def _join(spark: SparkSession, planned: Planned) -> DataFrame:
    """Two streams of half the rows each; of each row some one partner within a second."""
    from dataclasses import replace

    from pyspark.sql import functions as sf

    half = replace(planned, rate_per_s=planned.rate_per_s / 2.0)
    num_keys = max(round(planned.rate_per_s), _FEWEST_JOIN_KEYS)
    key = sf.pmod(sf.hash("ad", "arrival"), sf.lit(num_keys))
    left, right = (
        _events(spark, half)
        .withColumn("key", key)
        .withWatermark("arrival", "0 seconds")
        .alias(side)
        for side in ("a", "b")
    )
    near = sf.expr(
        "a.key = b.key AND b.arrival BETWEEN a.arrival - INTERVAL 1 SECOND "
        "AND a.arrival + INTERVAL 1 SECOND"
    )
    return left.join(right, near).select("a.key", "a.ad")


_FRAMES = {"windowed": _windowed, "stateless": _stateless, "join": _join}
