"""Queries of several shapes that write little and often: for counts of files and of requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headway.domain import JobProfile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

NUM_BATCHES, MOST_S = 60, 120.0
TRIGGER = "250 milliseconds"
BATCH_ROWS, SOURCE_PARTITIONS, NUM_KEYS, NUM_DAYS = 400, 2, 100, 3
STATE = "spark.sql.streaming.stateStore"
_ROCKSDB = {
    f"{STATE}.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    )
}
CONF_OF_STORE: Mapping[str, Mapping[str, str]] = {
    "default": {},
    "RocksDB": _ROCKSDB,
    "RocksDB, changelog": {
        **_ROCKSDB,
        f"{STATE}.rocksdb.changelogCheckpointing.enabled": "true",
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A query, the store of its state, its partitions and its sink."""

    query: str
    store: str
    partitions: int
    sink: str = "noop"

    @property
    def name(self) -> str:
        """What it is called in results."""
        return f"{self.query}, {self.store}, {self.partitions}, {self.sink}"

    def num_writers(self, profile: JobProfile) -> int:
        """Files of a batch; the partitions of the sink's table are in no log."""
        num_days = NUM_DAYS if self.sink == "parquet by day" else 1
        return int(profile.stages[-1].num_tasks(self.partitions) * num_days)


SHAPES = (
    Shape(query="no state", store="default", partitions=2),
    Shape(query="no state", store="default", partitions=2, sink="parquet"),
    Shape(query="no state", store="default", partitions=2, sink="parquet by day"),
    Shape(query="aggregation", store="default", partitions=8),
    Shape(query="aggregation", store="default", partitions=2, sink="foreachBatch"),
    Shape(query="deduplication", store="default", partitions=4, sink="parquet"),
    Shape(query="join", store="default", partitions=4),
    Shape(query="aggregation", store="RocksDB", partitions=8),
    Shape(query="deduplication", store="RocksDB", partitions=4),
    Shape(query="join", store="RocksDB", partitions=2),
    Shape(query="aggregation", store="RocksDB, changelog", partitions=8),
    Shape(query="deduplication", store="RocksDB, changelog", partitions=2, sink="foreachBatch"),
    Shape(query="join", store="RocksDB, changelog", partitions=4),
)


def started(spark: SparkSession, shape: Shape, name: str, folder: str) -> StreamingQuery:
    """A query of a shape, whose checkpoint and sink are in a folder at any address."""
    spark.conf.set("spark.sql.shuffle.partitions", shape.partitions)
    writer = (
        _query(spark, shape.query)
        .writeStream.queryName(name)
        .outputMode("update" if shape.query == "aggregation" else "append")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(processingTime=TRIGGER)
    )
    if shape.sink == "foreachBatch":
        return writer.foreachBatch(_appending_to(f"{folder}/sink")).start()
    if shape.sink == "noop":
        return writer.format("noop").start()
    if shape.sink == "parquet by day":
        writer = writer.partitionBy("day")
    return writer.format("parquet").start(f"{folder}/sink")


def _query(spark: SparkSession, name: str) -> DataFrame:
    rows = _rows(spark)
    if name == "aggregation":
        return rows.groupBy("key").count()
    if name == "deduplication":
        return rows.withWatermark("timestamp", "20 seconds").dropDuplicates(["value", "timestamp"])
    if name == "join":
        left = rows.withWatermark("timestamp", "5 seconds")
        right = _rows(spark).withWatermark("timestamp", "5 seconds")
        return left.join(right, ["value", "timestamp"])
    return rows


def _rows(spark: SparkSession) -> DataFrame:
    """Rows with a key and a day, as many in each batch."""
    from pyspark.sql import functions

    return (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", BATCH_ROWS)
        .option("numPartitions", SOURCE_PARTITIONS)
        .option("advanceMillisPerBatch", 1000)
        .load()
        .withColumn("key", functions.col("value") % NUM_KEYS)
        .withColumn("day", functions.col("value") % NUM_DAYS)
    )


def _appending_to(folder: str) -> Callable[[DataFrame, int], None]:
    def append(batch: DataFrame, _batch_id: int) -> None:
        batch.write.mode("append").parquet(folder)

    return append
