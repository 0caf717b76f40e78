"""A plan as Python to paste into the job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headway.domain import Answer
from headway.emitters.submission import Submission
from headway.emitters.wording import (
    container_lines,
    entry_lines,
    header_lines,
    python_literal,
    rate_limit_of,
    reader_options_of,
    reasons,
    writer_options_of,
)
from headway.redaction import printable
from headway.units import spark_trigger_text

if TYPE_CHECKING:
    from headway.domain.real_time import RealTimePlan

# In client mode the driver's JVM is up before the application's first line: these come too late.
_DRIVER_SIDE = ("spark.driver.", "spark.master", "spark.submit.")

_CONFIGURE = '''

def configure(builder):
    """Give `SparkSession.builder` the planned size; call before the session exists."""
    for key, value in SPARK_CONF.items():
        builder = builder.config(key, value)
    return builder
'''
_READ_AND_WRITE = '''

def read(reader):
    """Give `spark.readStream` the planned options; call before `.load()`."""
    for key, value in READ_OPTIONS.items():
        reader = reader.option(key, value)
    return reader


def write(writer):
    """Give `df.writeStream` the planned trigger; call before `.start()`."""
    return writer.trigger(processingTime=TRIGGER)


# In the job, here with Kafka:
#
#     from pyspark.sql import SparkSession
#
#     spark = configure(SparkSession.builder.appName("orders")).getOrCreate()
#     source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "broker:9092")
#     orders = read(source.option("subscribe", "orders")).load()
#     result = orders.groupBy("key").count()
#     sink = result.writeStream.outputMode("update").format("console")
#     query = write(sink.option("checkpointLocation", "/path/to/checkpoint")).start()
#     query.awaitTermination()
'''
# What takes the place of the first, where the writer has options beside its trigger.
_WRITE_OPTIONS = (
    "return writer.trigger(processingTime=TRIGGER)",
    "return writer.trigger(processingTime=TRIGGER).options(**WRITE_OPTIONS)",
)
_BATCH_USE = """

# In the job:
#
#     from pyspark.sql import SparkSession
#
#     spark = configure(SparkSession.builder.appName("nightly")).getOrCreate()
"""
_REAL_TIME_USE = '''

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


def render(plan: Answer, *, version: str, submission: Submission | None = None) -> str:  # noqa: ARG001
    """Python with functions that put the plan on a builder and, of a query, a reader and a writer.

    Settings of the driver's own process are in a comment and not in the code, where they would be
    too late.
    """
    why = reasons(plan)
    conf = plan.spark_conf
    too_late = {key: value for key, value in conf.items() if key.startswith(_DRIVER_SIDE)}
    in_time = {key: value for key, value in conf.items() if key not in too_late}
    header = [*header_lines(plan, version=version), *container_lines(plan)]
    lines = [f"# {line}" for line in header]
    lines += [
        printable(f"# too late for the builder, give to spark-submit: --conf {key}={value}")
        for key, value in too_late.items()
    ]
    lines += ["", *_dictionary("SPARK_CONF", in_time, why)]
    if plan.ends:
        return "\n".join(lines) + "\n" + _CONFIGURE + _BATCH_USE
    lines += ["", *_dictionary("READ_OPTIONS", reader_options_of(plan), why)]
    if not rate_limit_of(plan):
        lines.append("# No rate limit is planned: remove one that the reader has.")
    lines.append("")
    if "trigger" in why:
        lines.append(f"# {why['trigger']}")
    lines.append(f"TRIGGER = {python_literal(plan.query_options['trigger'])}")
    writer = writer_options_of(plan)
    read_and_write = _READ_AND_WRITE
    if writer:
        lines += ["", *_dictionary("WRITE_OPTIONS", writer, why)]
        read_and_write = read_and_write.replace(*_WRITE_OPTIONS)
    return "\n".join(lines) + "\n" + _CONFIGURE + read_and_write


def real_time_snippet(plan: RealTimePlan, header: Sequence[str]) -> str:
    """Python with functions that put a plan of Real-Time Mode on a builder and a writer.

    A plan that misses its target says so in its header.
    """
    length = spark_trigger_text(plan.setting.batch_length_s)
    lines = [f"# {line}" for line in header]
    lines += ["", *_dictionary("SPARK_CONF", plan.spark_conf, {})]
    lines += ["", f"BATCH_LENGTH = {python_literal(length)}"]
    return "\n".join(lines) + "\n" + _CONFIGURE + _REAL_TIME_USE


def _dictionary(name: str, entries: Mapping[str, str], why: Mapping[str, str]) -> list[str]:
    if not entries:
        return [f"{name} = {{}}"]
    return [f"{name} = {{", *entry_lines(entries, why, " " * 4), "}"]
