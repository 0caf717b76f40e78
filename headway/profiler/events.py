"""Lines of event logs -> events: each line looked at once, and parsed only if it will be used."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from headway.profiler import schema

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Column, DataFrame, SparkSession

# Characters at the start of a line that hold its event's name, and the description of an SQL
# execution: a micro-batch is told by it without parsing the plan behind.
_HEAD_CHARS = 160
_EXECUTION_HEAD_CHARS = 1500
_EVENT_NAME = r'^\s*\{\s*"Event"\s*:\s*"([^"\\]+)"'
_EXECUTION_ID = r'"executionId"\s*:\s*(\d{1,15})\s*[,}]'
_BATCH_IN_LINE = r'"description"\s*:\s*"[^"]*?\\nrunId = ([0-9a-f-]{36})\\nbatch = (\d{1,15})"'
# The same where the line was parsed, because its head did not tell.
_BATCH_IN_TEXT = r"\nrunId = ([0-9a-f-]{36})\nbatch = (\d{1,15})$"
_TRIMMED_LINE = r"trim(TRAILING ' \t\r' FROM value)"
# The plans of a query's batches are alike, and long: one batch in so many is enough.
_BATCHES_PER_PLAN = 16
# Fields that other columns stand for.
_NOT_KEPT = ("Event", "executionId", "description", schema.DAMAGED)


def local_session_conf() -> dict[str, str]:
    """Settings for a local session that lives for one pass over logs; for ``extra_conf``.

    Such a session spends most of its time on compiling, Java's and Spark's own, that never pays
    back: without most of it, logs of 85 MB take a third of the time, and ten times as much still
    gains.
    """
    return {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseParallelGC",
        # Python would tell Java the place of each expression in the source, at twice the calls.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.codegen.wholeStage": "false",
        # Aggregates of many small groups stay in memory instead of being sorted.
        "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "1000000",
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
    }


def read_events(spark: SparkSession, work_folder: Path) -> DataFrame:
    """The events of all unpacked logs: those that we read, those we do not know, damaged lines.

    Columns are those of :func:`headway.profiler.schema.events_schema`, less those that these
    tell: app, the number of the log (:func:`headway.profiler.logs.unpacking.unpack`); damaged,
    whether the line could not be read, or not all of it; execution_id of an SQL execution,
    execution_run_id and execution_batch_id if it belongs to a micro-batch. The plan of an SQL
    execution is there for one batch in sixteen. What the head of a line does not tell, because its
    keys stand in another order than Spark writes them, the parsed line does.
    """
    from pyspark.sql import functions as F

    line = F.col("value")
    name = F.regexp_extract(F.substring(line, 1, _HEAD_CHARS), _EVENT_NAME, 1)
    lines = (
        spark.read.option("basePath", str(work_folder))
        .text(str(work_folder))
        .select("app", "value", name.alias("name"))
        # Most bytes of a log are events that say nothing new: told by their first characters,
        # they are never parsed.
        .where(_is_wanted("name") & line.rlike(r"\S"))
    )
    is_execution = F.col("name") == schema.SQL_EXECUTION_START
    head = F.when(is_execution, F.substring(line, 1, _EXECUTION_HEAD_CHARS))
    lines = lines.select(
        "*",
        _found(head, _EXECUTION_ID, 1).cast("bigint").alias("execution_id"),
        _found(head, _BATCH_IN_LINE, 1).alias("execution_run_id"),
        _found(head, _BATCH_IN_LINE, 2).cast("bigint").alias("execution_batch_id"),
    )
    # Where the name does not stand first, the whole line tells.
    is_parsed = F.col("name").isin("", *schema.READ_EVENTS) & _has_plan("execution_batch_id")
    event_schema = schema.events_schema()
    options = {"columnNameOfCorruptRecord": schema.DAMAGED}
    parsed = lines.select(
        "app",
        "name",
        "execution_id",
        "execution_run_id",
        "execution_batch_id",
        is_parsed.alias("is_parsed"),
        (~is_parsed & F.endswith(F.expr(_TRIMMED_LINE), F.lit("}"))).alias("ends_well"),
        F.from_json(F.when(is_parsed, line), event_schema, options).alias("event"),
    )
    # The whole line, where it or a value in it could not be read.
    misread_line = F.col(f"event.`{schema.DAMAGED}`")
    misread = misread_line.isNotNull()
    # Values of another type cost themselves only; a line that is no JSON tells nothing. What was
    # not parsed must at least end as an object does.
    event = F.when(
        F.col("is_parsed"),
        F.when(~misread | F.json_object_keys(misread_line).isNotNull(), F.col("event.Event")),
    ).when(F.col("ends_well"), F.col("name"))
    told = F.col("event.description")
    is_event = event.isNotNull()
    events = parsed.select(
        "app",
        event.alias("Event"),
        (~is_event | misread).alias("damaged"),
        F.when(is_event, F.coalesce("execution_id", "event.executionId")).alias("execution_id"),
        F.coalesce("execution_run_id", _found(told, _BATCH_IN_TEXT, 1)).alias("execution_run_id"),
        F.coalesce("execution_batch_id", _found(told, _BATCH_IN_TEXT, 2).cast("bigint")).alias(
            "execution_batch_id"
        ),
        *(F.col(f"event.`{field.name}`") for field in event_schema if field.name not in _NOT_KEPT),
    )
    plan = F.when(_has_plan("execution_batch_id"), F.col("physicalPlanDescription"))
    return events.where(_is_wanted("Event")).withColumn("physicalPlanDescription", plan)


def _is_wanted(event: str) -> Column:
    """Whether it is an event that is read, or one that is not known, or cannot be told."""
    from pyspark.sql import functions as F

    name = F.coalesce(F.col(event), F.lit(""))
    return name.isin(*schema.READ_EVENTS) | ~name.rlike(f"^{schema.PASSED_OVER}")


def _found(text: Column, pattern: str, group: int) -> Column:
    """What a group of the pattern matches; null where nothing does."""
    from pyspark.sql import functions as F

    return F.nullif(F.regexp_extract(text, pattern, group), F.lit(""))


def _has_plan(batch_id: str) -> Column:
    """Whether the plan of an execution is wanted: of micro-batches one in so many."""
    from pyspark.sql import functions as F

    return F.coalesce(F.col(batch_id) % _BATCHES_PER_PLAN == 0, F.lit(True))
