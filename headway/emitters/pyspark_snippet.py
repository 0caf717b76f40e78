"""A plan as Python to paste into the job."""

from __future__ import annotations

from collections.abc import Mapping

from headway.domain import Answer
from headway.emitters.wording import (
    container_lines,
    header_lines,
    one_line,
    python_literal,
    reader_options_of,
    reasons,
)

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
    """Give `spark.readStream` the planned rate limit; call before `.load()`."""
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
_BATCH_USE = """

# In the job:
#
#     from pyspark.sql import SparkSession
#
#     spark = configure(SparkSession.builder.appName("nightly")).getOrCreate()
"""


def render(plan: Answer, *, version: str) -> str:
    """Python with functions that put the plan on a builder and, of a query, a reader and a writer.

    Settings of the driver's own process are in a comment and not in the code, where they would be
    too late.

    A plan that misses its target is rendered with a warning on top.
    """
    why = reasons(plan)
    too_late = {key: value for key, value in plan.spark_conf.items() if _is_driver_side(key)}
    in_time = {key: value for key, value in plan.spark_conf.items() if key not in too_late}
    header = [*header_lines(plan, version=version), *container_lines(plan)]
    lines = [f"# {line}" for line in header]
    lines += [
        one_line(f"# too late for the builder, give to spark-submit: --conf {key}={value}")
        for key, value in too_late.items()
    ]
    lines += ["", *_dictionary("SPARK_CONF", in_time, why)]
    if plan.ends:
        return "\n".join(lines) + "\n" + _CONFIGURE + _BATCH_USE
    lines += _query_lines(plan, why)
    return "\n".join(lines) + "\n" + _CONFIGURE + _READ_AND_WRITE


def _query_lines(plan: Answer, why: dict[str, str]) -> list[str]:
    """Rate limit and trigger."""
    limits = reader_options_of(plan)
    lines = ["", *_dictionary("READ_OPTIONS", limits, why)]
    if not limits:
        lines.append("# No rate limit is planned: remove one that the reader has.")
    trigger = plan.query_options["trigger"]
    return [*lines, "", *_comment(why.get("trigger")), f"TRIGGER = {python_literal(trigger)}"]


def _is_driver_side(key: str) -> bool:
    return key.startswith(_DRIVER_SIDE)


def _dictionary(name: str, entries: Mapping[str, str], why: dict[str, str]) -> list[str]:
    if not entries:
        return [f"{name} = {{}}"]
    lines = [f"{name} = {{"]
    for key, value in entries.items():
        lines += [f"    {comment}" for comment in _comment(why.get(key))]
        lines.append(f"    {python_literal(key)}: {python_literal(value)},")
    return [*lines, "}"]


def _comment(reason: str | None) -> list[str]:
    return [] if reason is None else [f"# {reason}"]
