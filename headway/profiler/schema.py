"""Spark's events by name, and their fields that are read; the decoder skips all others.

Objects in them come first: tasks, stages, executors, and the resources that they ask for.

Names and units are Spark's (milliseconds, nanoseconds, spaces in names); fields that a version
lacks are None. Text that an application chooses is redacted as it is decoded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import field

from headway.profiler.known_values import known_version
from headway.profiler.redaction import allowed_properties, description_of, name_of
from headway.redaction import HIDDEN

LOG_START = "SparkListenerLogStart"
APPLICATION_START = "SparkListenerApplicationStart"
APPLICATION_END = "SparkListenerApplicationEnd"
ENVIRONMENT = "SparkListenerEnvironmentUpdate"
RESOURCE_PROFILE_ADDED = "SparkListenerResourceProfileAdded"
EXECUTOR_ADDED = "SparkListenerExecutorAdded"
EXECUTOR_REMOVED = "SparkListenerExecutorRemoved"
JOB_START = "SparkListenerJobStart"
JOB_END = "SparkListenerJobEnd"
STAGE_COMPLETED = "SparkListenerStageCompleted"
STAGE_SUBMITTED = "SparkListenerStageSubmitted"  # read of attempts without an end only
TASK_END = "SparkListenerTaskEnd"
SQL_EXECUTION_START = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart"
SQL_EXECUTION_END = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd"
ADAPTIVE_UPDATE = "org.apache.spark.sql.execution.ui.SparkListenerSQLAdaptiveExecutionUpdate"
DRIVER_UPDATES = "org.apache.spark.sql.execution.ui.SparkListenerDriverAccumUpdates"
QUERY_STARTED = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryStartedEvent"
QUERY_PROGRESS = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"
#: Of Spark 2.0: without the times and the rows of a batch.
QUERY_PROGRESS_OF_2_0 = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgress"
QUERY_IDLE = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryIdleEvent"
QUERY_TERMINATED = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryTerminatedEvent"
# Of Headway's recorder, which records streaming jobs only.
RECORDER_START = "HeadwayRecorderStart"
RECORDER_END = "HeadwayRecorderEnd"
RECORDER_LOST = "HeadwayRecorderLost"
RECORDER_PASSED_OVER = "HeadwayRecorderPassedOver"
RECORDER_EVENTS = (RECORDER_START, RECORDER_END, RECORDER_LOST, RECORDER_PASSED_OVER)
LOG_STARTS = (LOG_START, "DBCEventLoggingListenerMetadata")  # the second is Databricks'

JAVA_VERSION = "Java Version"

# Spark events that are not read; any other name is a vendor's or a newer Spark's.
PASSED_OVER = (b"SparkListener", b"org.apache.spark.")
BATCHES_PER_PLAN = 16
_BATCH_OF_EXECUTION = re.compile(r"\nrunId = ([0-9a-f-]{36})\nbatch = (\d{1,15})\Z")


Int = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] | None
Long = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | None
Text = str | None
Anything = Any  # of a form that depends on the version


class SparkEvent(msgspec.Struct, gc=False):
    """Fields of an event, or of an object in it."""


class ExecutorInfo(SparkEvent):
    num_cores: Int = field(default=None, name="Total Cores")
    resource_profile_id: Int = field(default=None, name="Resource Profile Id")


class ResourceRequest(SparkEvent):
    amount: float | None = field(default=None, name="Amount")


class JobProperties(SparkEvent):
    query_id: Text = field(default=None, name="sql.streaming.queryId")
    batch_id: Text = field(default=None, name="streaming.sql.batchId")
    group: Text = field(default=None, name="spark.jobGroup.id")
    shuffle_partitions: Text = field(default=None, name="spark.sql.shuffle.partitions")
    execution_id: Text = field(default=None, name="spark.sql.execution.id")
    dstream_batch_ms: Text = field(default=None, name="spark.streaming.internal.batchTime")
    # Set by Headway's gate: the batch was granted a turn, and this is the query's own trigger.
    gated_trigger_ms: Text = field(default=None, name="headway.gate.triggerMillis")

    def __post_init__(self) -> None:
        self.query_id = name_of(self.query_id)


class Accumulable(SparkEvent):
    accumulator_id: Long = field(default=None, name="ID")
    name: Text = field(default=None, name="Name")
    value: Anything = field(default=None, name="Value")


class RddInfo(SparkEvent):
    rdd_id: Int = field(default=None, name="RDD ID")
    scope: Text = field(default=None, name="Scope")
    is_barrier: bool | None = field(default=None, name="Barrier")


class StageInfo(SparkEvent):
    stage_id: Int = field(default=None, name="Stage ID")
    attempt_id: Int = field(default=None, name="Stage Attempt ID")
    name: Text = field(default=None, name="Stage Name")
    num_tasks: Int = field(default=None, name="Number of Tasks")
    parent_ids: list[Int] | None = field(default=None, name="Parent IDs")
    submitted_ms: Long = field(default=None, name="Submission Time")
    completed_ms: Long = field(default=None, name="Completion Time")
    failure: Text = field(default=None, name="Failure Reason")
    resource_profile_id: Int = field(default=None, name="Resource Profile Id")
    rdds: list[RddInfo | None] | None = field(default=None, name="RDD Info")
    accumulables: list[Accumulable | None] | None = field(default=None, name="Accumulables")


class Outcome(SparkEvent):
    """How a task ended, or how a job did."""

    reason: Text = field(default=None, name="Reason")
    result: Text = field(default=None, name="Result")


class TaskInfo(SparkEvent):
    task_id: Long = field(default=None, name="Task ID")
    partition_id: Int = field(default=None, name="Index")
    launched_ms: Long = field(default=None, name="Launch Time")
    finished_ms: Long = field(default=None, name="Finish Time")
    getting_result_ms: Long = field(default=None, name="Getting Result Time")
    executor_id: Text = field(default=None, name="Executor ID")  # readers call `name_of`: many
    failed: bool | None = field(default=None, name="Failed")
    killed: bool | None = field(default=None, name="Killed")


class ExecutorMetrics(SparkEvent):
    heap_bytes: Long = field(default=None, name="JVMHeapMemory")


class InputMetrics(SparkEvent):
    num_bytes: Long = field(default=None, name="Bytes Read")
    num_rows: Long = field(default=None, name="Records Read")


class OutputMetrics(SparkEvent):
    num_rows: Long = field(default=None, name="Records Written")


class ShuffleReadMetrics(SparkEvent):
    remote_bytes: Long = field(default=None, name="Remote Bytes Read")
    local_bytes: Long = field(default=None, name="Local Bytes Read")
    fetch_wait_ms: Long = field(default=None, name="Fetch Wait Time")
    num_rows: Long = field(default=None, name="Total Records Read")


class ShuffleWriteMetrics(SparkEvent):
    num_bytes: Long = field(default=None, name="Shuffle Bytes Written")
    num_rows: Long = field(default=None, name="Shuffle Records Written")


class TaskMetrics(SparkEvent):
    deserialize_ms: Long = field(default=None, name="Executor Deserialize Time")
    run_ms: Long = field(default=None, name="Executor Run Time")
    cpu_ns: Long = field(default=None, name="Executor CPU Time")
    gc_ms: Long = field(default=None, name="JVM GC Time")
    serialize_ms: Long = field(default=None, name="Result Serialization Time")
    peak_memory_bytes: Long = field(default=None, name="Peak Execution Memory")
    spilled_bytes: Long = field(default=None, name="Memory Bytes Spilled")
    input: InputMetrics | None = field(default=None, name="Input Metrics")
    output: OutputMetrics | None = field(default=None, name="Output Metrics")
    shuffle_read: ShuffleReadMetrics | None = field(default=None, name="Shuffle Read Metrics")
    shuffle_write: ShuffleWriteMetrics | None = field(default=None, name="Shuffle Write Metrics")


class ApplicationEvent(SparkEvent):
    """The start of a log, which has Spark's version, or the start or end of its application."""

    spark_version: Text = field(default=None, name="Spark Version")
    application_id: Text = field(default=None, name="App ID")
    application_name: Text = field(default=None, name="App Name")
    timestamp_ms: Long = field(default=None, name="Timestamp")

    def __post_init__(self) -> None:
        self.spark_version = known_version(self.spark_version)
        self.application_id = name_of(self.application_id)
        self.application_name = name_of(self.application_name)


class Environment(SparkEvent):
    jvm: dict[str, Text] | None = field(default=None, name="JVM Information")
    properties: dict[str, Text] | None = field(default=None, name="Spark Properties")

    def __post_init__(self) -> None:
        if self.jvm is not None:
            self.jvm = {JAVA_VERSION: known_version(self.jvm.get(JAVA_VERSION))}
        if self.properties is not None:
            self.properties = {**allowed_properties(self.properties)}


class ResourceProfileAdded(SparkEvent):
    profile_id: Int = field(default=None, name="Resource Profile Id")
    of_executor: dict[str, ResourceRequest | None] | None = field(
        default=None, name="Executor Resource Requests"
    )
    of_task: dict[str, ResourceRequest | None] | None = field(
        default=None, name="Task Resource Requests"
    )


class ExecutorChange(SparkEvent):
    """An executor that was added, or removed, which says nothing of its cores."""

    timestamp_ms: Long = field(default=None, name="Timestamp")
    executor_id: Text = field(default=None, name="Executor ID")
    info: ExecutorInfo | None = field(default=None, name="Executor Info")

    def __post_init__(self) -> None:
        self.executor_id = name_of(self.executor_id)


class JobEvent(SparkEvent):
    """The start of a job, or its end, which has only a time and a result."""

    job_id: Int = field(default=None, name="Job ID")
    submitted_ms: Long = field(default=None, name="Submission Time")
    stage_ids: list[Int] | None = field(default=None, name="Stage IDs")
    properties: JobProperties | None = field(default=None, name="Properties")

    completed_ms: Long = field(default=None, name="Completion Time")
    result: Outcome | None = field(default=None, name="Job Result")


class StageCompleted(SparkEvent):
    info: StageInfo | None = field(default=None, name="Stage Info")


class TaskEnd(SparkEvent):
    stage_id: Int = field(default=None, name="Stage ID")
    attempt_id: Int = field(default=None, name="Stage Attempt ID")
    reason: Outcome | None = field(default=None, name="Task End Reason")
    info: TaskInfo | None = field(default=None, name="Task Info")
    executor_metrics: ExecutorMetrics | None = field(default=None, name="Task Executor Metrics")
    metrics: TaskMetrics | None = field(default=None, name="Task Metrics")


class BatchOf(NamedTuple):
    """The micro-batch that an SQL execution belongs to."""

    run_id: str
    batch_id: int

    @property
    def is_sampled(self) -> bool:
        """Whether its plan is read, since plans of a query's batches are similar, and long."""
        return self.batch_id % BATCHES_PER_PLAN == 0


class SqlExecution(SparkEvent):
    """The start of an SQL execution, or its end, which has only a time."""

    execution_id: Long = field(default=None, name="executionId")
    root_execution_id: Long = field(default=None, name="rootExecutionId")
    description: Text = None
    at_ms: Long = field(default=None, name="time")
    plan: Text = field(default=None, name="physicalPlanDescription")
    operators: msgspec.Raw = field(default=msgspec.Raw(), name="sparkPlanInfo")

    @property
    def batch(self) -> BatchOf | None:
        """The micro-batch that it belongs to, from its description."""
        match = _BATCH_OF_EXECUTION.search(self.description or "")
        return BatchOf(match[1], int(match[2])) if match else None


class SqlUpdate(SparkEvent):
    """A plan that adaptive execution has changed while it ran, or values of the driver."""

    operators: msgspec.Raw = field(default=msgspec.Raw(), name="sparkPlanInfo")
    values: list[list[Long] | None] | None = field(default=None, name="accumUpdates")


class QueryChange(SparkEvent):
    """The start of a run of a query, or its end, which may have an exception but has no name."""

    query_id: Text = field(default=None, name="id")
    run_id: Text = field(default=None, name="runId")
    query_name: Text = field(default=None, name="name")
    exception: Text = None

    def __post_init__(self) -> None:
        self.query_id, self.run_id = name_of(self.query_id), name_of(self.run_id)
        self.query_name = name_of(self.query_name)
        self.exception = self.exception and HIDDEN


class StateOperator(SparkEvent):
    name: Text = field(default=None, name="operatorName")
    num_rows: Long = field(default=None, name="numRowsTotal")
    memory_bytes: Long = field(default=None, name="memoryUsedBytes")
    commit_ms: Long = field(default=None, name="commitTimeMs")
    num_updated: Long = field(default=None, name="numRowsUpdated")
    num_removed: Long = field(default=None, name="numRowsRemoved")
    updates_ms: Long = field(default=None, name="allUpdatesTimeMs")
    shuffle_partitions: Int = field(default=None, name="numShufflePartitions")
    num_stores: Int = field(default=None, name="numStateStoreInstances")
    store_metrics: Anything = field(default=None, name="customMetrics")

    def __post_init__(self) -> None:
        self.name = name_of(self.name)


class SourceProgress(SparkEvent):
    """Progress at a source; of a sink, its description is read."""

    description: Text = None
    start_offset: Anything = field(default=None, name="startOffset")
    end_offset: Anything = field(default=None, name="endOffset")
    latest_offset: Anything = field(default=None, name="latestOffset")
    num_rows: Long = field(default=None, name="numInputRows")

    def __post_init__(self) -> None:
        self.description = description_of(self.description)


class Progress(SparkEvent):
    query_id: Text = field(default=None, name="id")
    run_id: Text = field(default=None, name="runId")
    query_name: Text = field(default=None, name="name")
    timestamp: Text = None
    batch_id: Long = field(default=None, name="batchId")
    num_rows: Long = field(default=None, name="numInputRows")
    phases_ms: dict[str, Long] | None = field(default=None, name="durationMs")
    event_time: dict[str, Text] | None = field(default=None, name="eventTime")
    operators: list[StateOperator | None] | None = field(default=None, name="stateOperators")
    sources: list[SourceProgress | None] | None = None
    sink: SourceProgress | None = None

    def __post_init__(self) -> None:
        self.query_id, self.run_id = name_of(self.query_id), name_of(self.run_id)
        self.query_name = name_of(self.query_name)
        phases = (self.phases_ms or {}).items()
        self.phases_ms = self.phases_ms and {name_of(phase) or "": ms for phase, ms in phases}


class QueryProgress(SparkEvent):
    progress: Progress | None = None


class RecorderEvent(SparkEvent):
    """What a recorder notes of itself: that it began or ended, or how much it left out."""

    recording_id: Text = field(default=None, name="Recording ID")
    num_lost: Long = None
    num_batches: Long = None


KINDS: Mapping[str, type[SparkEvent]] = MappingProxyType(
    {
        **dict.fromkeys((*LOG_STARTS, APPLICATION_START, APPLICATION_END), ApplicationEvent),
        ENVIRONMENT: Environment,
        RESOURCE_PROFILE_ADDED: ResourceProfileAdded,
        **dict.fromkeys((EXECUTOR_ADDED, EXECUTOR_REMOVED), ExecutorChange),
        **dict.fromkeys((JOB_START, JOB_END), JobEvent),
        STAGE_COMPLETED: StageCompleted,
        TASK_END: TaskEnd,
        **dict.fromkeys((SQL_EXECUTION_START, SQL_EXECUTION_END), SqlExecution),
        **dict.fromkeys((ADAPTIVE_UPDATE, DRIVER_UPDATES), SqlUpdate),
        **dict.fromkeys((QUERY_STARTED, QUERY_TERMINATED), QueryChange),
        QUERY_PROGRESS: QueryProgress,
        QUERY_PROGRESS_OF_2_0: SparkEvent,
        **dict.fromkeys(RECORDER_EVENTS, RecorderEvent),
    }
)
"""Every event that is read, by name, and its fields that are read."""

READ_EVENTS = tuple(KINDS)
