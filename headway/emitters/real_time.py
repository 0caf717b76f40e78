"""A plan of Real-Time Mode as Python to paste into the job."""

from __future__ import annotations

from collections.abc import Sequence

from headway.domain.real_time import RealTimePlan
from headway.emitters.wording import python_literal
from headway.units import spark_trigger_text

_USE = '''

def configure(builder):
    """Give `SparkSession.builder` the planned size; call before the session exists."""
    for key, value in SPARK_CONF.items():
        builder = builder.config(key, value)
    return builder


def write(writer):
    """Give `df.writeStream` mode and trigger; call before `.start()`."""
    return writer.outputMode("update").trigger(realTime=BATCH_LENGTH)


# In the job:
#
#     from pyspark.sql import SparkSession
#
#     spark = configure(SparkSession.builder.appName("orders")).getOrCreate()
#     source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "broker:9092")
#     orders = source.option("subscribe", "orders").load()
#     result = orders.selectExpr("CAST(value AS STRING) AS value")
#     sink = result.writeStream.format("kafka").option("kafka.bootstrap.servers", "broker:9092")
#     sink = sink.option("topic", "done").option("checkpointLocation", "/path/to/checkpoint")
#     query = write(sink).start()
#     query.awaitTermination()
#
# Leave out maxOffsetsPerTrigger and minPartitions: Real-Time Mode reads what there is, a task for
# each partition.
'''


def real_time_snippet(plan: RealTimePlan, header: Sequence[str]) -> str:
    """Python with functions that put the plan on a builder and a writer.

    A plan that misses its target says so in its header.
    """
    lines = [f"# {line}" for line in header]
    lines += ["", "SPARK_CONF = {"]
    lines += [
        f"    {python_literal(key)}: {python_literal(value)},"
        for key, value in plan.spark_conf.items()
    ]
    length = spark_trigger_text(plan.setting.batch_length_s)
    lines += ["}", "", f"BATCH_LENGTH = {python_literal(length)}"]
    return "\n".join(lines) + "\n" + _USE
