"""A query that `headway explore` and `headway.explore` can start at any setting.

headway explore examples/exploring/counts.yaml
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from headway import QuerySetting


def build(spark: SparkSession, setting: QuerySetting) -> StreamingQuery:
    """Count rows by key, from a source that has as many rows for a batch as it may take.

    With a backlog in Kafka the source would be

        spark.readStream.format("kafka").options(
            **broker, startingOffsets="earliest", **setting.reader_options
        ).load()
    """
    rows = (
        spark.readStream.format("rate-micro-batch")
        .options(rowsPerBatch=setting.reader_options["maxOffsetsPerTrigger"], numPartitions="2")
        .load()
    )
    counts = rows.groupBy((rows.value % 1000).alias("key")).count()
    return (
        counts.writeStream.format("noop")
        .outputMode("update")
        .option("checkpointLocation", setting.checkpoint)
        .trigger(**setting.trigger)
        .start()
    )
