"""Spark's event names and fields, and only those that are read.

Names and units are Spark's own here (milliseconds, nanoseconds, spaces in names); the tables
turn them into ours. Fields that a Spark version lacks come out as null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

LOG_START = "SparkListenerLogStart"
APPLICATION_START = "SparkListenerApplicationStart"
ENVIRONMENT = "SparkListenerEnvironmentUpdate"
EXECUTOR_ADDED = "SparkListenerExecutorAdded"
EXECUTOR_REMOVED = "SparkListenerExecutorRemoved"
JOB_START = "SparkListenerJobStart"
STAGE_COMPLETED = "SparkListenerStageCompleted"
TASK_END = "SparkListenerTaskEnd"
QUERY_PROGRESS = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"

READ_EVENTS = (
    LOG_START,
    APPLICATION_START,
    ENVIRONMENT,
    EXECUTOR_ADDED,
    EXECUTOR_REMOVED,
    JOB_START,
    STAGE_COMPLETED,
    TASK_END,
    QUERY_PROGRESS,
)

# One schema for all events: each line is parsed once, and what a line does not have is null.
_EVENTS_DDL = """
    `Event` string,
    `Spark Version` string,
    `App ID` string, `App Name` string,
    `Spark Properties` struct<`spark.executor.memory`: string>,
    `Timestamp` bigint, `Executor ID` string,
    `Executor Info` struct<`Total Cores`: int>,
    `Job ID` int, `Stage IDs` array<int>,
    `Properties` struct<`sql.streaming.queryId`: string, `streaming.sql.batchId`: string,
                        `spark.jobGroup.id`: string,
                        `spark.sql.shuffle.partitions`: string>,
    `Stage Info` struct<`Stage ID`: int, `Stage Attempt ID`: int, `Number of Tasks`: int,
                        `Parent IDs`: array<int>, `Submission Time`: bigint,
                        `Completion Time`: bigint>,
    `Stage ID` int, `Stage Attempt ID` int,
    `Task Info` struct<`Task ID`: bigint, `Launch Time`: bigint, `Finish Time`: bigint,
                       `Failed`: boolean, `Killed`: boolean>,
    `Task Metrics` struct<
        `Executor Deserialize Time`: bigint, `Executor Run Time`: bigint,
        `Result Serialization Time`: bigint,
        `Input Metrics`: struct<`Records Read`: bigint>,
        `Shuffle Read Metrics`: struct<`Total Records Read`: bigint>>,
    `progress` struct<
        `id`: string, `runId`: string, `name`: string, `timestamp`: string, `batchId`: bigint,
        `numInputRows`: bigint,
        `durationMs`: map<string, bigint>,
        `eventTime`: struct<`watermark`: string>,
        `stateOperators`: array<struct<`operatorName`: string, `numRowsTotal`: bigint,
                                       `commitTimeMs`: bigint, `numShufflePartitions`: int>>,
        `sources`: array<struct<`description`: string, `numInputRows`: bigint>>,
        `sink`: struct<`description`: string>>
"""


def events_schema() -> StructType:
    """The schema that event-log lines are parsed with."""
    from pyspark.sql.types import StructType

    schema = StructType.fromDDL(_EVENTS_DDL)
    assert isinstance(schema, StructType)
    return schema
