"""Event-log lines -> tables; each a function from DataFrame to DataFrame, nothing collected.

Times leave this module in seconds.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from headway.profiler import schema

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Column, DataFrame, SparkSession

_MS_PER_S = 1000.0


def local_session_conf() -> dict[str, str]:
    """Settings for a local session that lives for one pass over logs; for ``extra_conf``.

    Such a session spends most of its time on compiling, Java's and Spark's own, that never pays
    back: without most of it, logs of 85 MB take a third of the time, and ten times as much still
    gains.
    """
    return {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseParallelGC",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.inMemoryColumnarStorage.compressed": "false",
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
    }


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
    """One row per log, with its executors: small tables that one pass brings together.

    Columns: app, application_id, application_name, spark_version, executor_memory,
    num_progress_events, num_tasks, and executor_events: an array of what was said of executors
    (executor_id, num_cores: null when removed, at_s).
    """
    from pyspark.sql import functions as F

    of_executor = F.col("Event").isin(schema.EXECUTOR_ADDED, schema.EXECUTOR_REMOVED)
    executor_event = F.struct(
        F.col("Executor ID").alias("executor_id"),
        F.when(F.col("Event") == schema.EXECUTOR_ADDED, F.col("Executor Info.Total Cores")).alias(
            "num_cores"
        ),
        _seconds(F.col("Timestamp")).alias("at_s"),
    )
    return events.groupBy("app").agg(
        F.max("App ID").alias("application_id"),
        F.max("App Name").alias("application_name"),
        F.max("Spark Version").alias("spark_version"),
        F.max(F.col("Spark Properties.`spark.executor.memory`")).alias("executor_memory"),
        F.count(F.when(F.col("Event") == schema.QUERY_PROGRESS, 1)).alias("num_progress_events"),
        F.count(F.when(F.col("Event") == schema.TASK_END, 1)).alias("num_tasks"),
        F.collect_list(F.when(of_executor, executor_event)).alias("executor_events"),
    )


def batches(events: DataFrame) -> DataFrame:
    """One row per progress event, in no order; what an event lacks or garbles is null.

    Columns: app, query_id, run_id, query_name, batch_id, started_s (epoch), phases_s (map of
    driver phase to seconds), num_rows, sources, sink, stateful_operators (array of struct),
    watermarked.
    """
    from pyspark.sql import functions as F

    progress = (
        events.where(F.col("Event") == schema.QUERY_PROGRESS)
        .select("app", "progress.*")
        .where(F.col("id").isNotNull() & F.col("batchId").isNotNull())
    )
    rows_of_sources = F.aggregate(
        "sources",
        F.lit(0.0),
        lambda total, source: total + source["numInputRows"].cast("double"),
    )
    return progress.select(
        "app",
        F.col("id").alias("query_id"),
        F.col("runId").alias("run_id"),
        F.col("name").alias("query_name"),
        F.col("batchId").alias("batch_id"),
        F.try_to_timestamp(F.col("timestamp")).cast("double").alias("started_s"),
        F.transform_values("durationMs", lambda _, ms: _seconds(ms)).alias("phases_s"),
        # Not every version states the sum, and not every source its part.
        F.coalesce(rows_of_sources, F.col("numInputRows").cast("double")).alias("num_rows"),
        F.transform("sources", lambda source: source["description"]).alias("sources"),
        F.col("sink.description").alias("sink"),
        F.col("stateOperators").alias("stateful_operators"),
        F.col("eventTime.watermark").isNotNull().alias("watermarked"),
    )


def stage_runs(events: DataFrame) -> DataFrame:
    """One row per completed stage attempt of a micro-batch, its tasks summed up.

    Columns: app, query_id, batch_id, job_group, job_id, stage_id, attempt_id, parent_ids,
    num_tasks, shuffle_partitions, submitted_s, completed_s, and over the tasks that succeeded and
    reported metrics: num_finished, and, null where that is 0, task_mean_s, task_sd_s, task_max_s,
    launch_to_finish_s (first launch to last finish), outside_run_s (mean time of a task outside
    the executor's run time), rows_read, rows_variance and rows_time_covariance_s (of rows and
    time between the tasks).
    """
    from pyspark.sql import functions as F

    properties = F.col("Properties")
    jobs = events.where(
        (F.col("Event") == schema.JOB_START) & properties["sql.streaming.queryId"].isNotNull()
    ).select(
        "app",
        F.explode("Stage IDs").alias("stage_id"),
        F.col("Job ID").alias("job_id"),
        properties["sql.streaming.queryId"].alias("query_id"),
        F.expr("try_cast(Properties.`streaming.sql.batchId` AS bigint)").alias("batch_id"),
        properties["spark.jobGroup.id"].alias("job_group"),
        # Some vendors know the value "auto".
        F.expr("try_cast(Properties.`spark.sql.shuffle.partitions` AS int)").alias(
            "shuffle_partitions"
        ),
    )
    info = F.col("Stage Info")
    stages = (
        events.where(F.col("Event") == schema.STAGE_COMPLETED)
        .select(
            "app",
            info["Stage ID"].alias("stage_id"),
            info["Stage Attempt ID"].alias("attempt_id"),
            info["Number of Tasks"].alias("num_tasks"),
            info["Parent IDs"].alias("parent_ids"),
            _seconds(info["Submission Time"]).alias("submitted_s"),
            _seconds(info["Completion Time"]).alias("completed_s"),
        )
        .dropDuplicates(["app", "stage_id", "attempt_id"])
    )
    # A stage id appears in every job that may need it; it ran in the first of them.
    columns = ("job_id", "query_id", "batch_id", "job_group", "shuffle_partitions")
    first_job = jobs.groupBy("app", "stage_id").agg(
        F.min_by(F.struct(*columns), "job_id").alias("job")
    )
    return (
        stages.join(F.broadcast(first_job), ["app", "stage_id"])
        # Tasks that are missing must show: a stage without any is kept.
        .join(_task_sums(events), ["app", "stage_id", "attempt_id"], "left")
        .withColumn("num_finished", _or_zero(F.col("num_finished")))
        .select("*", "job.*")
        .drop("job")
    )


def _task_sums(events: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    info, metrics = F.col("Task Info"), F.col("Task Metrics")
    key = ("app", "stage_id", "attempt_id")
    tasks = (
        events.where((F.col("Event") == schema.TASK_END) & metrics.isNotNull())
        # The flags came with later versions.
        .where(
            ~F.coalesce(info["Failed"], F.lit(False)) & ~F.coalesce(info["Killed"], F.lit(False))
        )
        # A clock that was set back during the task leaves no usable time.
        .where((info["Launch Time"] > 0) & (info["Finish Time"] >= info["Launch Time"]))
        .select(
            "app",
            F.col("Stage ID").alias("stage_id"),
            F.col("Stage Attempt ID").alias("attempt_id"),
            info["Task ID"].alias("task_id"),
            info["Launch Time"].alias("launched_ms"),
            info["Finish Time"].alias("finished_ms"),
            _seconds(info["Finish Time"] - info["Launch Time"]).alias("wall_s"),
            _seconds(_or_zero(metrics["Executor Run Time"])).alias("run_s"),
            (
                _or_zero(metrics["Input Metrics"]["Records Read"].cast("double"))
                + _or_zero(metrics["Shuffle Read Metrics"]["Total Records Read"].cast("double"))
            ).alias("rows"),
        )
        # Lines that stand twice in a log are one task.
        .dropDuplicates([*key, "task_id"])
    )
    return tasks.groupBy(*key).agg(
        F.count(F.lit(1)).alias("num_finished"),
        F.avg("wall_s").alias("task_mean_s"),
        F.stddev_samp("wall_s").alias("task_sd_s"),
        F.max("wall_s").alias("task_max_s"),
        _seconds(F.max("finished_ms") - F.min("launched_ms")).alias("launch_to_finish_s"),
        F.avg(F.greatest(F.col("wall_s") - F.col("run_s"), F.lit(0.0))).alias("outside_run_s"),
        F.sum("rows").alias("rows_read"),
        F.var_pop("rows").alias("rows_variance"),
        F.covar_pop("rows", "wall_s").alias("rows_time_covariance_s"),
    )


def _seconds(milliseconds: Column) -> Column:
    return milliseconds / _MS_PER_S


def _or_zero(column: Column) -> Column:
    from pyspark.sql import functions as F

    return F.coalesce(column, F.lit(0))
