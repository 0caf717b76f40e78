"""The queries that are measured, on lines that arrive on the wall clock."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway.runtime.word_count import clock_lines
from headway.units import spark_trigger_text
from real.cells import WINDOW_S, Cell

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
_BACKLOG_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A query to start; with ``batch_rows`` an hour's backlog waits for it, in such batches."""

    name: str
    kind: str
    rate_per_s: float
    trigger_s: float
    window_start_s: float = 0.0
    pool: str | None = None
    batch_rows: int | None = None


def planned_queries(
    cell: Cell, capacities_per_s: Mapping[str, float], *, trigger_s: float
) -> Iterator[Planned]:
    """The queries of a cell, each at its rate."""
    rates = cell.rates_per_s(capacities_per_s)
    for number, (kind, rate_per_s) in enumerate(zip(cell.kinds, rates, strict=True)):
        yield Planned(
            name=f"{kind}{number}",
            kind=kind,
            rate_per_s=rate_per_s,
            trigger_s=trigger_s,
            window_start_s=cell.window_start_s(number) if kind == "windowed" else 0.0,
        )


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
        start_epoch_s=None if planned.batch_rows is None else time.time() - _BACKLOG_S,
        max_rows_per_trigger=planned.batch_rows,
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

    half = replace(
        planned,
        rate_per_s=planned.rate_per_s / 2.0,
        batch_rows=None if planned.batch_rows is None else planned.batch_rows // 2,
    )
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
