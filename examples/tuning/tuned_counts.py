"""A query that `headway tune` and `headway.tune` can start at any setting.

headway tune examples/tuning/counts.yaml --for 1min
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from headway import QuerySetting

CHECKPOINT = Path(__file__).with_name("counts.checkpoint")


def build(spark: SparkSession, setting: QuerySetting) -> StreamingQuery:
    """Count rows by key, on the same checkpoint each time.

    With Kafka the source would be

        spark.readStream.format("kafka").options(**broker, **setting.reader_options).load()
    """
    rows = spark.readStream.format("rate").options(rowsPerSecond="2000", numPartitions="2").load()
    counts = rows.groupBy((rows.value % 1000).alias("key")).count()
    return (
        counts.writeStream.format("noop")
        .queryName("counts")
        .outputMode("update")
        .option("checkpointLocation", str(CHECKPOINT))
        .trigger(**setting.trigger)
        .start()
    )
