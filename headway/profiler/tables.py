"""Events -> tables, one row per thing that happened; each a function from DataFrame to DataFrame.

Times leave this module in seconds (instants since the epoch), sizes in bytes. Lines that stand
twice in a log are one thing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.profiler import schema
from headway.profiler.redaction import ALLOWED_PROPERTIES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_MS_PER_S = 1e3
_NS_PER_S = 1e9
# The reason of a second end of a task that had ended well, when what it had written was lost.
SAID_AGAIN = "Resubmitted"
_RUN_ID = "^[0-9a-f-]{8,36}$"
# What Spark calls the time in Python workers, by version; of a stage, in milliseconds.
_PYTHON_TIMES = ("time to run Python workers",)


def applications(events: DataFrame) -> DataFrame:
    """One row per log.

    Columns: app, application_id, application_name, spark_version, java_version, started_s,
    ended_s, properties (map, only those that may be shown), executors: an array of what was said
    of executors (executor_id, num_cores: null when removed, at_s).
    """
    from pyspark.sql import functions as F

    event = F.col("Event")

    def instant(name: str, of: str) -> Column:
        return F.min(F.when(event == name, _seconds(F.col("Timestamp")))).alias(of)

    return events.groupBy("app").agg(
        *said_of_application(),
        instant(schema.APPLICATION_START, "started_s"),
        instant(schema.APPLICATION_END, "ended_s"),
    )


def said_of_application() -> list[Column]:
    """Aggregates of events: what they say of their application, its properties, its executors."""
    from pyspark.sql import functions as F

    event = F.col("Event")
    of_executor = event.isin(schema.EXECUTOR_ADDED, schema.EXECUTOR_REMOVED)
    executor_event = F.struct(
        F.col("Executor ID").alias("executor_id"),
        F.when(event == schema.EXECUTOR_ADDED, F.col("Executor Info.Total Cores")).alias(
            "num_cores"
        ),
        _seconds(F.col("Timestamp")).alias("at_s"),
    )
    properties = F.map_filter(
        "Spark Properties", lambda key, _: key.isin(*sorted(ALLOWED_PROPERTIES))
    )
    return [
        F.max("App ID").alias("application_id"),
        F.max("App Name").alias("application_name"),
        F.max("Spark Version").alias("spark_version"),
        F.max("JVM Information.Java Version").alias("java_version"),
        F.first(properties, ignorenulls=True).alias("properties"),
        F.collect_set(F.when(of_executor, executor_event)).alias("executors"),
    ]


def queries(events: DataFrame) -> DataFrame:
    """One row per run of a streaming query.

    Columns: app, query_id, run_id, query_name, started_s (of the first batch), num_batches
    (reported), first_batch_id, last_batch_id, terminated (seen to end), failed (with an exception).
    """
    from pyspark.sql import functions as F

    event, progress = F.col("Event"), F.col("progress")
    of_query = event.isin(schema.QUERY_STARTED, schema.QUERY_PROGRESS, schema.QUERY_TERMINATED)
    ended = event == schema.QUERY_TERMINATED
    return (
        events.where(of_query)
        .select(
            "app",
            F.coalesce(progress["id"], F.col("id")).alias("query_id"),
            F.coalesce(progress["runId"], F.col("runId")).alias("run_id"),
            F.coalesce(progress["name"], F.col("name")).alias("query_name"),
            _instant("progress.timestamp").alias("started_s"),
            progress["batchId"].alias("batch_id"),
            ended.alias("ended"),
            (ended & F.col("exception").isNotNull()).alias("failed"),
        )
        .where(F.col("run_id").isNotNull())
        .groupBy("app", "run_id")
        .agg(
            F.max("query_id").alias("query_id"),
            F.max("query_name").alias("query_name"),
            F.min("started_s").alias("started_s"),
            F.count_distinct("batch_id").alias("num_batches"),
            F.min("batch_id").alias("first_batch_id"),
            F.max("batch_id").alias("last_batch_id"),
            F.max("ended").alias("terminated"),
            F.max("failed").alias("failed"),
        )
    )


def batches(events: DataFrame) -> DataFrame:
    """One row per progress event, in no order; what an event lacks or garbles is null.

    Columns: app, query_id, run_id, query_name, batch_id, started_s, phases_s (map of driver phase
    to seconds), num_rows, sources (array of description, start, end and latest offset, num_rows),
    sink, stateful_operators (array of struct), watermarked, newest_event_s (event time).
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
        _instant("timestamp").alias("started_s"),
        F.transform_values("durationMs", lambda _, ms: _seconds(ms)).alias("phases_s"),
        # Not every version states the sum, and not every source its part.
        F.coalesce(rows_of_sources, F.col("numInputRows").cast("double")).alias("num_rows"),
        F.transform(
            "sources",
            lambda source: F.struct(
                source["description"].alias("description"),
                source["startOffset"].alias("start_offset"),
                source["endOffset"].alias("end_offset"),
                source["latestOffset"].alias("latest_offset"),
                source["numInputRows"].alias("num_rows"),
            ),
        ).alias("sources"),
        F.col("sink.description").alias("sink"),
        F.transform(
            "stateOperators",
            lambda operator: F.struct(
                operator["operatorName"].alias("name"),
                operator["numRowsTotal"].alias("num_rows"),
                operator["memoryUsedBytes"].alias("memory_bytes"),
                _seconds(operator["commitTimeMs"]).alias("commit_s"),
                operator["numShufflePartitions"].alias("num_partitions"),
                operator["numStateStoreInstances"].alias("num_stores"),
            ),
        ).alias("stateful_operators"),
        F.col("eventTime.watermark").isNotNull().alias("watermarked"),
        _instant("eventTime.max").alias("newest_event_s"),
    )


def jobs(events: DataFrame) -> DataFrame:
    """One row per job that was seen to start.

    Columns: those of :func:`job_starts`, ended_s, succeeded (null where the end was not seen).
    """
    from pyspark.sql import functions as F

    ends = events.where(F.col("Event") == schema.JOB_END).select(
        "app",
        F.col("Job ID").alias("job_id"),
        _seconds(F.col("Completion Time")).alias("ended_s"),
        (F.col("Job Result.Result") == "JobSucceeded").alias("succeeded"),
    )
    of_job = ["app", "job_id"]
    return (
        job_starts(events).dropDuplicates(of_job).join(ends.dropDuplicates(of_job), of_job, "left")
    )


def job_starts(events: DataFrame) -> DataFrame:
    """One row per line about the start of a job.

    Columns: app, job_id, submitted_s, stage_ids, query_id, run_id and batch_id (of a
    micro-batch), execution_id (of SQL), dstream_batch_s (time of a DStreams batch),
    shuffle_partitions.
    """
    from pyspark.sql import functions as F

    properties = F.col("Properties")
    return events.where((F.col("Event") == schema.JOB_START) & F.col("Job ID").isNotNull()).select(
        "app",
        F.col("Job ID").alias("job_id"),
        _seconds(F.col("Submission Time")).alias("submitted_s"),
        F.col("Stage IDs").alias("stage_ids"),
        properties["sql.streaming.queryId"].alias("query_id"),
        _try_cast("Properties.`streaming.sql.batchId`", "bigint").alias("batch_id"),
        # Spark makes the run of a query the group of its jobs; others' groups are free text.
        F.when(
            properties["spark.jobGroup.id"].rlike(_RUN_ID), properties["spark.jobGroup.id"]
        ).alias("run_id"),
        _try_cast("Properties.`spark.sql.execution.id`", "bigint").alias("execution_id"),
        _seconds(_try_cast("Properties.`spark.streaming.internal.batchTime`", "double")).alias(
            "dstream_batch_s"
        ),
        # Some vendors know the value "auto".
        _try_cast("Properties.`spark.sql.shuffle.partitions`", "int").alias("shuffle_partitions"),
    )


def stages(events: DataFrame) -> DataFrame:
    """One row per attempt of a stage that was seen to end.

    Columns: app, stage_id, attempt_id, num_tasks, parent_ids, submitted_s, completed_s, failed,
    python_s (time of all tasks in Python workers; null without).
    """
    return stage_ends(events).dropDuplicates(["app", "stage_id", "attempt_id"])


def stage_ends(events: DataFrame) -> DataFrame:
    """One row per line about the end of a stage; columns as of :func:`stages`."""
    from pyspark.sql import functions as F

    info = F.col("Stage Info")
    python_times = F.filter(
        info["Accumulables"], lambda metric: metric["Name"].isin(*_PYTHON_TIMES)
    )
    python_ms = F.aggregate(
        python_times,
        F.lit(0.0),
        lambda total, metric: (
            total
            + F.coalesce(
                F.when(metric["Value"].rlike(r"^\d{1,15}$"), metric["Value"]), F.lit("0")
            ).cast("double")
        ),
    )
    return events.where(
        (F.col("Event") == schema.STAGE_COMPLETED) & info["Stage ID"].isNotNull()
    ).select(
        "app",
        info["Stage ID"].alias("stage_id"),
        F.coalesce(info["Stage Attempt ID"], F.lit(0)).alias("attempt_id"),
        info["Number of Tasks"].alias("num_tasks"),
        info["Parent IDs"].alias("parent_ids"),
        _seconds(info["Submission Time"]).alias("submitted_s"),
        _seconds(info["Completion Time"]).alias("completed_s"),
        info["Failure Reason"].isNotNull().alias("failed"),
        F.when(F.size(python_times) > 0, _seconds(python_ms)).alias("python_s"),
    )


def tasks(events: DataFrame) -> DataFrame:
    """One row per task that was seen to end, failed ones too.

    Columns: app, stage_id, attempt_id, task_id, partition_id, executor_id, launched_s, finished_s,
    succeeded, measured (it reported metrics), and of the metrics: wall_s, run_s, cpu_s, gc_s,
    deserialize_s, scheduler_delay_s, fetch_wait_s, rows_read, rows_written, input_bytes,
    shuffle_read_bytes, shuffle_write_bytes, spilled_bytes, peak_memory_bytes, peak_heap_bytes.
    """
    return task_ends(events).dropDuplicates(["app", "stage_id", "attempt_id", "task_id"])


def task_ends(events: DataFrame) -> DataFrame:
    """One row per line about the end of a task; columns as of :func:`tasks`."""
    from pyspark.sql import functions as F

    info, metrics = F.col("Task Info"), F.col("Task Metrics")
    read, written = metrics["Shuffle Read Metrics"], metrics["Shuffle Write Metrics"]
    wall_ms = info["Finish Time"] - info["Launch Time"]
    getting_ms = F.when(
        info["Getting Result Time"] > 0, info["Finish Time"] - info["Getting Result Time"]
    ).otherwise(0)
    busy_ms = (
        _or_zero(metrics["Executor Run Time"])
        + _or_zero(metrics["Executor Deserialize Time"])
        + _or_zero(metrics["Result Serialization Time"])
        + getting_ms
    )
    return (
        events.where((F.col("Event") == schema.TASK_END) & F.col("Stage ID").isNotNull())
        .where(F.coalesce("Task End Reason.Reason", F.lit("")) != SAID_AGAIN)
        .select(
            "app",
            F.col("Stage ID").alias("stage_id"),
            F.coalesce(F.col("Stage Attempt ID"), F.lit(0)).alias("attempt_id"),
            info["Task ID"].alias("task_id"),
            info["Index"].alias("partition_id"),
            info["Executor ID"].alias("executor_id"),
            _seconds(info["Launch Time"]).alias("launched_s"),
            _seconds(info["Finish Time"]).alias("finished_s"),
            # The flags came with later versions, the reason has always been there.
            (
                (F.coalesce(F.col("Task End Reason.Reason"), F.lit("Success")) == "Success")
                & ~F.coalesce(info["Failed"], F.lit(False))
                & ~F.coalesce(info["Killed"], F.lit(False))
            ).alias("succeeded"),
            # A clock that was set back during the task leaves no usable time.
            (metrics.isNotNull() & (info["Launch Time"] > 0) & (wall_ms >= 0)).alias("measured"),
            _seconds(wall_ms).alias("wall_s"),
            _seconds(_or_zero(metrics["Executor Run Time"])).alias("run_s"),
            (_or_zero(metrics["Executor CPU Time"]) / _NS_PER_S).alias("cpu_s"),
            _seconds(_or_zero(metrics["JVM GC Time"])).alias("gc_s"),
            _seconds(_or_zero(metrics["Executor Deserialize Time"])).alias("deserialize_s"),
            _seconds(F.greatest(wall_ms - busy_ms, F.lit(0))).alias("scheduler_delay_s"),
            _seconds(_or_zero(read["Fetch Wait Time"])).alias("fetch_wait_s"),
            _count(metrics["Input Metrics"]["Records Read"], read["Total Records Read"]).alias(
                "rows_read"
            ),
            _count(
                metrics["Output Metrics"]["Records Written"], written["Shuffle Records Written"]
            ).alias("rows_written"),
            _count(metrics["Input Metrics"]["Bytes Read"]).alias("input_bytes"),
            _count(read["Remote Bytes Read"], read["Local Bytes Read"]).alias("shuffle_read_bytes"),
            _count(written["Shuffle Bytes Written"]).alias("shuffle_write_bytes"),
            _count(metrics["Memory Bytes Spilled"]).alias("spilled_bytes"),
            _count(metrics["Peak Execution Memory"]).alias("peak_memory_bytes"),
            _count(F.col("Task Executor Metrics.JVMHeapMemory")).alias("peak_heap_bytes"),
        )
    )


def plans(events: DataFrame) -> DataFrame:
    """One row per SQL execution whose plan was read: of micro-batches one in sixteen.

    Columns: app, execution_id, root_execution_id, started_s, run_id and batch_id (of a
    micro-batch), operators (names only: what plans say beyond may be secret).
    """
    from pyspark.sql import functions as F

    return (
        events.where(
            F.col("execution_id").isNotNull() & F.col("physicalPlanDescription").isNotNull()
        )
        .select(
            "app",
            "execution_id",
            F.col("rootExecutionId").alias("root_execution_id"),
            _seconds(F.col("time")).alias("started_s"),
            F.nullif("execution_run_id", F.lit("")).alias("run_id"),
            F.col("execution_batch_id").alias("batch_id"),
            F.regexp_extract_all(
                "physicalPlanDescription", F.lit(r"(?m)^\(\d+\) ([A-Za-z]+)"), F.lit(1)
            ).alias("operators"),
        )
        .dropDuplicates(["app", "execution_id"])
    )


def _instant(name: str) -> Column:
    """Seconds since the epoch of a timestamp as Spark writes them, in text."""
    from pyspark.sql import functions as F

    return F.try_to_timestamp(F.col(name)).cast("double")


def _try_cast(path: str, kind: str) -> Column:
    from pyspark.sql import functions as F

    return F.expr(f"try_cast({path} AS {kind})")


def _seconds(milliseconds: Column) -> Column:
    return milliseconds / _MS_PER_S


def _or_zero(column: Column) -> Column:
    from pyspark.sql import functions as F

    return F.coalesce(column, F.lit(0))


def _count(*columns: Column) -> Column:
    """The sum of counts that may be missing; as floats, which garbled numbers do not overflow."""
    from functools import reduce
    from operator import add

    return reduce(add, [_or_zero(column.cast("double")) for column in columns])
