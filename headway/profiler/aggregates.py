"""Tables -> what the driver needs of them: facts per application, sums of tasks per stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.profiler import schema, tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def facts(events: DataFrame) -> DataFrame:
    """One row per application and kind of event, SQL executions by the query run they belong to.

    Columns: app, Event, execution_run_id, num_lines, num_damaged, num_failed (tasks and jobs),
    num_lost (events) and num_passed_over (batches) by the recorder, executor_ids (of tasks), plan
    (the longest of the latest batch), the columns of
    :func:`headway.profiler.tables.said_of_application`, first_s and last_s (Timestamp).
    """
    from pyspark.sql import functions as F

    event = F.col("Event")
    at_s = F.col("Timestamp") / 1e3
    plan = F.col("physicalPlanDescription")
    failed = (
        (event == schema.TASK_END)
        & ~F.col("Task End Reason.Reason").isin("Success", tables.SAID_AGAIN)
    ) | ((event == schema.JOB_END) & (F.col("Job Result.Result") != "JobSucceeded"))
    return events.groupBy("app", "Event", "execution_run_id").agg(
        F.count(F.lit(1)).alias("num_lines"),
        F.count(F.when(F.col("damaged"), 1)).alias("num_damaged"),
        F.count(F.when(failed, 1)).alias("num_failed"),
        F.sum("num_lost").alias("num_lost"),
        F.sum("num_batches").alias("num_passed_over"),
        F.collect_set("Task Info.Executor ID").alias("executor_ids"),
        F.max_by(
            plan, F.when(plan.isNotNull(), F.struct("execution_batch_id", F.length(plan), plan))
        ).alias("plan"),
        *tables.said_of_application(),
        F.min(at_s).alias("first_s"),
        F.max(at_s).alias("last_s"),
    )


def identities(events: DataFrame) -> DataFrame:
    """One row per application and kind of event that has ids: tasks, jobs, SQL executions.

    Columns: app, Event, num_distinct, first_id, last_id. Ids of one kind count up: what is missing
    between them shows.
    """
    from pyspark.sql import functions as F

    identity = F.coalesce(
        F.col("Task Info.Task ID"), F.col("Job ID").cast("bigint"), F.col("execution_id")
    )
    # Not a distinct count beside the facts: it would make every line a group with all of these.
    return (
        events.select("app", "Event", identity.alias("identity"))
        .where(F.col("identity").isNotNull())
        .distinct()
        .groupBy("app", "Event")
        .agg(
            F.count(F.lit(1)).alias("num_distinct"),
            F.min("identity").alias("first_id"),
            F.max("identity").alias("last_id"),
        )
    )


def stage_runs(events: DataFrame, *, tasks_stand_once: bool = False) -> DataFrame:
    """One row per attempt of a stage that was seen to end, or whose tasks were, with their sums.

    Columns: those of :func:`headway.profiler.tables.stages`, null where the end was not seen; of
    the first job that needed the stage: job_id, query_id, batch_id, run_id, dstream_batch_s,
    shuffle_partitions; num_ended tasks, num_failed, and over the tasks that succeeded and reported
    metrics: num_finished, and, null where that is 0, task_mean_s, task_sd_s, task_max_s,
    launch_to_finish_s (first launch to last finish), first_launch_s, outside_run_s (mean time of a
    task outside the executor's run time), run_s, cpu_s, gc_s (sums), scheduler_delay_s (mean),
    rows_read, rows_largest (of the largest task), rows_variance and rows_time_covariance_s (of rows
    and time between the tasks), rows_written, input_bytes, shuffle_read_bytes,
    shuffle_write_bytes, spilled_bytes, peak_memory_bytes (of a task), peak_heap_bytes. With
    ``tasks_stand_once`` no line of a task is looked for twice, which spares half of the work.
    """
    from pyspark.sql import functions as F

    # A stage id appears in every job that may need it; it ran in the first of them.
    columns = (
        "job_id",
        "query_id",
        "batch_id",
        "run_id",
        "dstream_batch_s",
        "shuffle_partitions",
    )
    first_job = (
        tables.job_starts(events)
        .select("app", F.explode("stage_ids").alias("stage_id"), F.struct(*columns).alias("job"))
        .groupBy("app", "stage_id")
        .agg(F.min_by("job", "job.job_id").alias("job"))
    )
    tasks = tables.task_ends(events) if tasks_stand_once else tables.tasks(events)
    counted = F.col("succeeded") & F.col("measured")
    measures = {
        name: F.when(counted, F.col(name))
        for name in tasks.columns
        if name.endswith(("_s", "_bytes")) or name.startswith("rows_")
    }
    wall_s, rows = measures["wall_s"], measures["rows_read"]
    # Tasks whose stage was not seen to end must show, and stages whose tasks are missing.
    attempts = tables.stage_ends(events).unionByName(tasks, allowMissingColumns=True)
    sums = attempts.groupBy("app", "stage_id", "attempt_id").agg(
        *(
            F.max(name).alias(name)
            for name in ("num_tasks", "submitted_s", "completed_s", "failed", "python_s")
        ),
        F.get(F.collect_set("parent_ids"), F.lit(0)).alias("parent_ids"),
        F.count("succeeded").alias("num_ended"),
        F.count(F.when(~F.col("succeeded"), 1)).alias("num_failed"),
        F.count(F.when(counted, 1)).alias("num_finished"),
        F.avg(wall_s).alias("task_mean_s"),
        F.stddev_samp(wall_s).alias("task_sd_s"),
        F.max(wall_s).alias("task_max_s"),
        F.min(measures["launched_s"]).alias("first_launch_s"),
        # Of instants in milliseconds, whose difference is exact to them.
        F.round(F.max(measures["finished_s"]) - F.min(measures["launched_s"]), 3).alias(
            "launch_to_finish_s"
        ),
        F.avg(F.when(counted, F.greatest(wall_s - measures["run_s"], F.lit(0.0)))).alias(
            "outside_run_s"
        ),
        F.avg(measures["scheduler_delay_s"]).alias("scheduler_delay_s"),
        F.max(rows).alias("rows_largest"),
        F.var_pop(rows).alias("rows_variance"),
        F.covar_pop(rows, wall_s).alias("rows_time_covariance_s"),
        F.max(measures["peak_memory_bytes"]).alias("peak_memory_bytes"),
        F.max(measures["peak_heap_bytes"]).alias("peak_heap_bytes"),
        *(
            F.sum(measures[name]).alias(name)
            for name in (
                "run_s",
                "cpu_s",
                "gc_s",
                "rows_read",
                "rows_written",
                "input_bytes",
                "shuffle_read_bytes",
                "shuffle_write_bytes",
                "spilled_bytes",
            )
        ),
    )
    return sums.join(first_job, ["app", "stage_id"], "left").select("*", "job.*").drop("job")
