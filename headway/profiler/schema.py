"""Spark's event names and fields, and only those that are read.

Names and units are Spark's own here (milliseconds, nanoseconds, spaces in names); the tables
turn them into ours. Fields that a Spark version lacks come out as null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

LOG_START = "SparkListenerLogStart"
APPLICATION_START = "SparkListenerApplicationStart"
APPLICATION_END = "SparkListenerApplicationEnd"
ENVIRONMENT = "SparkListenerEnvironmentUpdate"
EXECUTOR_ADDED = "SparkListenerExecutorAdded"
EXECUTOR_REMOVED = "SparkListenerExecutorRemoved"
JOB_START = "SparkListenerJobStart"
JOB_END = "SparkListenerJobEnd"
STAGE_COMPLETED = "SparkListenerStageCompleted"
TASK_END = "SparkListenerTaskEnd"
SQL_EXECUTION_START = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart"
QUERY_STARTED = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryStartedEvent"
QUERY_PROGRESS = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"
QUERY_TERMINATED = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryTerminatedEvent"
# Of our own recorder, which sees streaming jobs only.
RECORDER_START = "HeadwayRecorderStart"
RECORDER_LOST = "HeadwayRecorderLost"
RECORDER_PASSED_OVER = "HeadwayRecorderPassedOver"
RECORDER_EVENTS = (RECORDER_START, RECORDER_LOST, RECORDER_PASSED_OVER)

READ_EVENTS = (
    LOG_START,
    APPLICATION_START,
    APPLICATION_END,
    ENVIRONMENT,
    EXECUTOR_ADDED,
    EXECUTOR_REMOVED,
    JOB_START,
    JOB_END,
    STAGE_COMPLETED,
    TASK_END,
    SQL_EXECUTION_START,
    QUERY_STARTED,
    QUERY_PROGRESS,
    QUERY_TERMINATED,
    *RECORDER_EVENTS,
)

# What Spark writes and nobody here reads; any other name is a vendor's or a newer Spark's.
PASSED_OVER = r"(?:SparkListener|org\.apache\.spark\.)"

# Where a line that is no JSON, or whose values are of other types, leaves itself.
DAMAGED = "_damaged"

# One schema for all events: each line is parsed once, and what a line does not have is null. A list
# holds the type of an array's elements, a pair those of a map's keys and values.
_EVENTS: dict[str, Any] = {
    "Event": "string",
    "Spark Version": "string",
    "App ID": "string",
    "App Name": "string",
    "Spark Properties": ("string", "string"),
    "JVM Information": {"Java Version": "string"},
    "Timestamp": "bigint",
    "Executor ID": "string",
    "Executor Info": {"Total Cores": "int"},
    "num_lost": "bigint",
    "num_batches": "bigint",
    "Job ID": "int",
    "Submission Time": "bigint",
    "Completion Time": "bigint",
    "Stage IDs": ["int"],
    "Job Result": {"Result": "string"},
    "Properties": {
        "sql.streaming.queryId": "string",
        "streaming.sql.batchId": "string",
        "spark.jobGroup.id": "string",
        "spark.sql.shuffle.partitions": "string",
        "spark.sql.execution.id": "string",
        "spark.streaming.internal.batchTime": "string",
    },
    "Stage Info": {
        "Stage ID": "int",
        "Stage Attempt ID": "int",
        "Number of Tasks": "int",
        "Parent IDs": ["int"],
        "Submission Time": "bigint",
        "Completion Time": "bigint",
        "Failure Reason": "string",
        "Accumulables": [{"Name": "string", "Value": "string"}],
    },
    "Stage ID": "int",
    "Stage Attempt ID": "int",
    "Task End Reason": {"Reason": "string"},
    "Task Info": {
        "Task ID": "bigint",
        "Index": "int",
        "Launch Time": "bigint",
        "Finish Time": "bigint",
        "Getting Result Time": "bigint",
        "Executor ID": "string",
        "Failed": "boolean",
        "Killed": "boolean",
    },
    "Task Executor Metrics": {"JVMHeapMemory": "bigint"},
    "Task Metrics": {
        "Executor Deserialize Time": "bigint",
        "Executor Run Time": "bigint",
        "Executor CPU Time": "bigint",
        "JVM GC Time": "bigint",
        "Result Serialization Time": "bigint",
        "Peak Execution Memory": "bigint",
        "Memory Bytes Spilled": "bigint",
        "Disk Bytes Spilled": "bigint",
        "Input Metrics": {"Bytes Read": "bigint", "Records Read": "bigint"},
        "Output Metrics": {"Bytes Written": "bigint", "Records Written": "bigint"},
        "Shuffle Read Metrics": {
            "Remote Bytes Read": "bigint",
            "Local Bytes Read": "bigint",
            "Fetch Wait Time": "bigint",
            "Total Records Read": "bigint",
        },
        "Shuffle Write Metrics": {
            "Shuffle Bytes Written": "bigint",
            "Shuffle Write Time": "bigint",
            "Shuffle Records Written": "bigint",
        },
    },
    "executionId": "bigint",
    "rootExecutionId": "bigint",
    "description": "string",
    "time": "bigint",
    "physicalPlanDescription": "string",
    "id": "string",
    "runId": "string",
    "name": "string",
    "exception": "string",
    "progress": {
        "id": "string",
        "runId": "string",
        "name": "string",
        "timestamp": "string",
        "batchId": "bigint",
        "numInputRows": "bigint",
        "durationMs": ("string", "bigint"),
        "eventTime": {"max": "string", "watermark": "string"},
        "stateOperators": [
            {
                "operatorName": "string",
                "numRowsTotal": "bigint",
                "numRowsUpdated": "bigint",
                "memoryUsedBytes": "bigint",
                "commitTimeMs": "bigint",
                "numShufflePartitions": "int",
                "numStateStoreInstances": "int",
            }
        ],
        "sources": [
            {
                "description": "string",
                "startOffset": "string",
                "endOffset": "string",
                "latestOffset": "string",
                "numInputRows": "bigint",
            }
        ],
        "sink": {"description": "string"},
    },
    DAMAGED: "string",
}


def events_schema() -> StructType:
    """The schema that event-log lines are parsed with."""
    from pyspark.sql import types

    simple = {
        "string": types.StringType(),
        "bigint": types.LongType(),
        "int": types.IntegerType(),
        "boolean": types.BooleanType(),
    }

    def struct(fields: dict[str, Any]) -> StructType:
        return types.StructType(
            [types.StructField(name, of_kind(kind)) for name, kind in fields.items()]
        )

    def of_kind(kind: Any) -> DataType:
        match kind:
            case str():
                return simple[kind]
            case [element]:
                return types.ArrayType(of_kind(element))
            case (key, value):
                return types.MapType(of_kind(key), of_kind(value))
            case _:
                return struct(kind)

    return struct(_EVENTS)
