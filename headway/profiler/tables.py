"""Event-log lines -> tables; each a function from DataFrame to DataFrame, nothing collected.

Times leave this module in seconds.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headway.profiler import schema

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Column, DataFrame, SparkSession

_MS_PER_S = 1000.0


def read_events(spark: SparkSession, work_folder: Path) -> DataFrame:
    """The lines of all unpacked logs that hold an event we read, parsed once.

    ``app`` is the number of the log (:func:`headway.profiler.sources.unpack`).
    """
    from pyspark.sql import functions as F

    wanted = "|".join(re.escape(event) for event in schema.READ_EVENTS)
    lines = (
        spark.read.option("basePath", str(work_folder))
        .text(str(work_folder))
        # Most bytes of a log are plans and accumulators: told by their first characters, they are
        # never parsed.
        .where(F.col("value").rlike(rf'^\s*\{{\s*"Event"\s*:\s*"(?:{wanted})"'))
    )
    return lines.select("app", F.from_json("value", schema.events_schema()).alias("event")).select(
        "app", "event.*"
    )


def applications(events: DataFrame) -> DataFrame:
    """One row per log: app, application_id, application_name, spark_version, executor_memory."""
    from pyspark.sql import functions as F

    return events.groupBy("app").agg(
        F.max("App ID").alias("application_id"),
        F.max("App Name").alias("application_name"),
        F.max("Spark Version").alias("spark_version"),
        F.max(F.col("Spark Properties.`spark.executor.memory`")).alias("executor_memory"),
        F.count(F.when(F.col("Event") == schema.QUERY_PROGRESS, 1)).alias("num_progress_events"),
        F.count(F.when(F.col("Event") == schema.TASK_END, 1)).alias("num_tasks"),
    )


def executors(events: DataFrame) -> DataFrame:
    """One row per executor: app, executor_id, num_cores, added_s, removed_s (null: not removed)."""
    from pyspark.sql import functions as F

    at_s = F.col("Timestamp") / _MS_PER_S
    return (
        events.where(F.col("Event").isin(schema.EXECUTOR_ADDED, schema.EXECUTOR_REMOVED))
        .groupBy("app", F.col("Executor ID").alias("executor_id"))
        .agg(
            F.max(F.col("Executor Info.Total Cores")).alias("num_cores"),
            F.min(F.when(F.col("Event") == schema.EXECUTOR_ADDED, at_s)).alias("added_s"),
            F.max(F.when(F.col("Event") == schema.EXECUTOR_REMOVED, at_s)).alias("removed_s"),
        )
        .where(F.col("num_cores").isNotNull())
    )


def batches(events: DataFrame) -> DataFrame:
    """One row per micro-batch that reported progress, in no order.

    Columns: app, query_id, query_name, batch_id, started_s (epoch), phases_s (map of driver phase
    to seconds), num_rows, sources, sink, stateful_operators (array of struct), watermarked.
    """
    from pyspark.sql import functions as F

    progress = events.where(F.col("Event") == schema.QUERY_PROGRESS).select("app", "progress.*")
    return progress.select(
        "app",
        F.col("id").alias("query_id"),
        F.col("name").alias("query_name"),
        F.col("batchId").alias("batch_id"),
        F.to_timestamp("timestamp").cast("double").alias("started_s"),
        F.transform_values("durationMs", lambda _, ms: ms / _MS_PER_S).alias("phases_s"),
        F.aggregate(
            "sources",
            F.lit(0).cast("bigint"),
            lambda total, source: total + F.coalesce(source["numInputRows"], F.lit(0)),
        ).alias("num_rows"),
        F.transform("sources", lambda source: source["description"]).alias("sources"),
        F.col("sink.description").alias("sink"),
        F.col("stateOperators").alias("stateful_operators"),
        F.col("eventTime.watermark").isNotNull().alias("watermarked"),
    )


def stage_runs(events: DataFrame) -> DataFrame:
    """One row per completed stage of a micro-batch, its tasks summed up.

    Columns: app, query_id, batch_id, job_id, stage_id, parent_ids, num_tasks, shuffle_partitions,
    submitted_s, completed_s, and over the successful tasks: num_finished, task_mean_s,
    task_sd_s, task_max_s, launch_to_finish_s (first launch to last finish), outside_run_s (mean
    time of a task outside the executor's run time), rows_read, rows_variance and
    rows_time_covariance_s (of rows and time between the tasks).
    """
    from pyspark.sql import functions as F

    jobs = (
        events.where(F.col("Event") == schema.JOB_START)
        .where(F.col("Properties.`sql.streaming.queryId`").isNotNull())
        .select(
            "app",
            F.col("Job ID").alias("job_id"),
            F.explode("Stage IDs").alias("stage_id"),
            F.col("Properties.`sql.streaming.queryId`").alias("query_id"),
            F.col("Properties.`streaming.sql.batchId`").cast("bigint").alias("batch_id"),
            F.col("Properties.`spark.sql.shuffle.partitions`")
            .cast("int")
            .alias("shuffle_partitions"),
        )
    )
    stages = events.where(F.col("Event") == schema.STAGE_COMPLETED).select(
        "app",
        F.col("Stage Info.Stage ID").alias("stage_id"),
        F.col("Stage Info.Stage Attempt ID").alias("attempt_id"),
        F.col("Stage Info.Number of Tasks").alias("num_tasks"),
        F.col("Stage Info.Parent IDs").alias("parent_ids"),
        (F.col("Stage Info.Submission Time") / _MS_PER_S).alias("submitted_s"),
        (F.col("Stage Info.Completion Time") / _MS_PER_S).alias("completed_s"),
    )
    # A stage id appears in every job that may need it; it ran in the first of them.
    first_job = jobs.groupBy("app", "stage_id").agg(
        F.min_by(F.struct("job_id", "query_id", "batch_id", "shuffle_partitions"), "job_id").alias(
            "job"
        )
    )
    return (
        stages.join(F.broadcast(first_job), ["app", "stage_id"])
        .join(_task_sums(events), ["app", "stage_id", "attempt_id"])
        .select("*", "job.*")
        .drop("job")
    )


def _task_sums(events: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    info, metrics = F.col("Task Info"), F.col("Task Metrics")
    wall_s = (info["Finish Time"] - info["Launch Time"]) / _MS_PER_S
    run_s = _or_zero(metrics["Executor Run Time"]) / _MS_PER_S
    rows = _or_zero(metrics["Input Metrics"]["Records Read"]) + _or_zero(
        metrics["Shuffle Read Metrics"]["Total Records Read"]
    )
    finished = events.where(F.col("Event") == schema.TASK_END).where(
        ~info["Failed"] & ~info["Killed"] & (info["Finish Time"] > 0)
    )
    return finished.groupBy(
        "app", F.col("Stage ID").alias("stage_id"), F.col("Stage Attempt ID").alias("attempt_id")
    ).agg(
        F.count(F.lit(1)).alias("num_finished"),
        F.avg(wall_s).alias("task_mean_s"),
        F.stddev_samp(wall_s).alias("task_sd_s"),
        F.max(wall_s).alias("task_max_s"),
        ((F.max(info["Finish Time"]) - F.min(info["Launch Time"])) / _MS_PER_S).alias(
            "launch_to_finish_s"
        ),
        F.avg(wall_s - run_s).alias("outside_run_s"),
        F.sum(rows).alias("rows_read"),
        F.var_pop(rows).alias("rows_variance"),
        F.covar_pop(rows, wall_s).alias("rows_time_covariance_s"),
    )


def _or_zero(column: Column) -> Column:
    from pyspark.sql import functions as F

    return F.coalesce(column, F.lit(0))
