"""The queries: from one topic to another, with observed arrivals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from headway.runtime.word_count import count_words, observe_arrivals
from headway.units import spark_trigger_text
from kafka.cases import Case, Job, Mode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SHUFFLE_PARTITIONS = 4
HASH_ROUNDS = 20
_REAL_TIME_SHUFFLE_PARTITIONS = 2


def topics(case: Case) -> tuple[str, str]:
    """The topic that the case reads, and the one it writes."""
    return f"{case.name}-in", f"{case.name}-out"


def shuffle_partitions(case: Case) -> int:
    """Reduce tasks; in Real-Time Mode each takes a slot all the time."""
    if case.shuffle_partitions is not None:
        return case.shuffle_partitions
    return _REAL_TIME_SHUFFLE_PARTITIONS if case.mode is Mode.REAL_TIME else SHUFFLE_PARTITIONS


def start_query(spark: SparkSession, servers: str, case: Case, checkpoint: Path) -> StreamingQuery:
    """Start the query of a case, from the beginning of its topic or from its checkpoint."""
    spark.conf.set("spark.sql.shuffle.partitions", str(shuffle_partitions(case)))
    rows = _rows(spark, servers, case)
    is_real_time = case.mode is Mode.REAL_TIME
    # Real-Time Mode does not run this operator in the middle of a plan.
    observed = rows if is_real_time else observe_arrivals(rows)
    writer = (
        _result(case, observed)
        .writeStream.format("kafka")
        .queryName(case.name)
        .outputMode("update")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", topics(case)[1])
        .option("checkpointLocation", str(checkpoint))
    )
    if case.mode is Mode.ASYNC_PROGRESS:
        writer = writer.option("asyncProgressTrackingEnabled", "true")
    if is_real_time:
        # Real-Time Mode is newer than the oldest stubs.
        real_time: StreamingQuery = writer.trigger(  # type: ignore[call-overload]
            realTime=f"{case.trigger_s:g} seconds"
        ).start()
        return real_time
    return writer.trigger(processingTime=spark_trigger_text(case.trigger_s)).start()


def read_back(spark: SparkSession, servers: str, topic: str) -> DataFrame:
    """What a case has written: when each row was appended, and the input's stamp [ms].

    The stamp is that of the row itself, or of the newest row behind an aggregate.
    """
    from pyspark.sql import functions

    written = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .load()
    )
    stamp = functions.split(functions.col("value").cast("string"), r"\|")[0].cast("long")
    return written.select(
        functions.unix_millis("timestamp").alias("appended_ms"), stamp.alias("stamped_ms")
    )


def _rows(spark: SparkSession, servers: str, case: Case) -> DataFrame:
    reader = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topics(case)[0])
        .option("startingOffsets", "earliest")
    )
    if case.max_offsets is not None:
        reader = reader.option("maxOffsetsPerTrigger", case.max_offsets)
    return reader.load().selectExpr("CAST(value AS STRING) AS text", "timestamp AS arrival")


def _result(case: Case, rows: DataFrame) -> DataFrame:
    """A column ``value`` for the sink; if it represents a row, it starts with the row's stamp."""
    from pyspark.sql import functions

    stamp = functions.unix_millis("arrival").cast("string")
    if case.job is Job.TRANSFORM:
        hashed = functions.col("text")
        for _ in range(HASH_ROUNDS):
            hashed = functions.sha2(hashed, 256)
        return rows.select(functions.concat_ws("|", stamp, hashed).alias("value"))
    if case.job is Job.DEDUPLICATE:
        # The stamp makes every row new, so that each is looked up, kept and sent on.
        once = rows.select(stamp.alias("stamp"), "text").dropDuplicates(["stamp", "text"])
        return once.select(functions.concat_ws("|", "stamp", "text").alias("value"))
    if case.mode is Mode.REAL_TIME:
        # Every row that arrives sends its count on, so the newest stamp is its own.
        counts = rows.groupBy("text").agg(
            functions.count(functions.lit(1)).alias("num_seen"),
            functions.max(functions.unix_millis("arrival")).alias("stamp"),
        )
        return counts.select(
            functions.concat_ws(
                "|", functions.col("stamp").cast("string"), "num_seen", "text"
            ).alias("value")
        )
    counted = count_words(rows, hash_rounds=HASH_ROUNDS)
    return counted.select(
        functions.to_json(functions.struct("word", "num_seen", "fingerprint")).alias("value")
    )
