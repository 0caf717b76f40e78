"""The ordinary jobs by name: their query, sink, source and settings, and how each is started."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from campaign.running import in_settings
from campaign.workloads import Stream, WindowShape

from headway.units import spark_trigger_text
from ordinary import nexmark, shop
from ordinary.places import Place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

CLOCK, FILES, KAFKA = "clock", "files", "kafka"
"""Sources: numbered rows on the wall clock, files that land in a folder, a topic of a broker."""
PLAIN, DELTA = "plain", "delta"
"""Sessions beside that with Kafka: Spark alone, and a Spark that Delta Lake supports."""
_ROCKS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
COMPANION_RATE_PER_S, COMPANION_TRIGGER_S = 1_000.0, 1.0


def to_noop(rows: DataFrame, _place: Place) -> DataStreamWriter:
    """A sink that takes all rows and keeps none."""
    return rows.writeStream.format("noop")


@dataclass(frozen=True, slots=True, kw_only=True)
class OrdinaryJob:
    """A job as production has it; ``companions`` run beside it in the same session.

    The first batches that its capacity is measured with have ``probe_rows``.
    """

    name: str
    does: str
    build: Callable[[SparkSession, Stream, Place], DataFrame]
    sink: Callable[[DataFrame, Place], DataStreamWriter] = to_noop
    output_mode: str = "append"
    source: str = CLOCK
    session: str = PLAIN
    conf: Mapping[str, str] = field(default_factory=dict)
    probe_rows: int = 50_000
    companions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OrdinaryQuery:
    """One run of a job: what arrives, at which setting, and where its data is."""

    name: str
    job: OrdinaryJob
    stream: Stream
    trigger_s: float
    partitions: int
    place: Place
    windows: WindowShape | None = None

    def start(self, spark: SparkSession, folder: Path) -> StreamingQuery:
        """It runs from a checkpoint of its own in ``folder``, one for each JVM."""
        checkpoint = folder / "checkpoints" / f"{os.getpid()}-{self.name.replace('/', '-')}"
        conf = {**self.job.conf, "spark.sql.shuffle.partitions": str(self.partitions)}
        with in_settings(spark, conf):
            rows = self.job.build(spark, self.stream, self.place)
            return (
                self.job.sink(rows, self.place)
                .queryName(self.name)
                .outputMode(self.job.output_mode)
                .option("checkpointLocation", str(checkpoint))
                .trigger(processingTime=spark_trigger_text(self.trigger_s))
                .start()
            )


def _nexmark(
    number: int,
    does: str,
    build: Callable[[SparkSession, Stream], DataFrame],
    *,
    output_mode: str = "append",
    probe_rows: int = 50_000,
) -> OrdinaryJob:
    return OrdinaryJob(
        name=f"nexmark-q{number}",
        does=does,
        build=lambda spark, stream, _place: build(spark, stream),
        output_mode=output_mode,
        probe_rows=probe_rows,
    )


_JOBS = (
    _nexmark(0, "bids passed through", nexmark.q0),
    _nexmark(1, "currency of bids converted", nexmark.q1),
    _nexmark(2, "bids filtered", nexmark.q2),
    _nexmark(3, "auctions joined with local persons of the last 20 s", nexmark.q3),
    _nexmark(4, "auctions joined with bids, then means in windows", nexmark.q4),
    _nexmark(5, "bids counted in sliding windows, then the hottest auction", nexmark.q5),
    _nexmark(8, "new persons joined with sellers in windows", nexmark.q8),
    _nexmark(11, "bids per bidder in sessions", nexmark.q11),
    _nexmark(12, "bids per bidder in windows", nexmark.q12),
    _nexmark(13, "bids joined with a static side input", nexmark.q13),
    _nexmark(15, "distinct bidders and auctions by price", nexmark.q15),
    _nexmark(
        19,
        "ten highest bids per auction, in pandas",
        nexmark.q19,
        output_mode="update",
        probe_rows=5_000,
    ),
    _nexmark(21, "channel of a bid from name or address", nexmark.q21),
    _nexmark(22, "folders of an address", nexmark.q22),
    OrdinaryJob(
        name="shop-enrich",
        does="JSON, two static joins, to Parquet by region",
        build=shop.enriched,
        sink=shop.to_partitioned_parquet,
    ),
    OrdinaryJob(
        name="shop-two-sinks",
        does="`foreachBatch` with two writes",
        build=shop.plain_orders,
        sink=shop.to_two_sinks,
    ),
    OrdinaryJob(
        name="shop-upsert",
        does="`foreachBatch` with an append and a merge, Delta Lake",
        build=shop.plain_orders,
        sink=shop.to_delta,
        session=DELTA,
    ),
    OrdinaryJob(
        name="shop-kafka",
        does="Kafka, a static join, Kafka",
        build=shop.from_kafka,
        sink=shop.to_kafka,
        source=KAFKA,
        session=KAFKA,
        probe_rows=20_000,
    ),
    OrdinaryJob(
        name="shop-files",
        does="JSON files that land in a folder, counted in windows, to Parquet",
        build=shop.from_files,
        sink=shop.to_parquet,
        source=FILES,
    ),
    OrdinaryJob(
        name="shop-deduplicate",
        does="repeats dropped, then windows",
        build=shop.first_orders,
        sink=shop.to_parquet,
    ),
    OrdinaryJob(
        name="shop-points",
        does="`transformWithState` by row, RocksDB",
        build=shop.balances,
        output_mode="update",
        conf=_ROCKS,
        probe_rows=5_000,
    ),
    OrdinaryJob(
        name="shop-baskets",
        does="`transformWithStateInPandas`, RocksDB",
        build=shop.baskets,
        output_mode="update",
        conf=_ROCKS,
        probe_rows=5_000,
    ),
    OrdinaryJob(
        name="shop-together",
        does="revenue by region and category beside two other queries",
        build=shop.revenue,
        output_mode="update",
        companions=("nexmark-q12", "shop-enrich"),
    ),
)
JOBS = {job.name: job for job in _JOBS}
