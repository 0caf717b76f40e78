"""Objects in Spark's events: tasks, stages, executors, and the resources that they ask for.

Names and units are Spark's; fields that a version lacks are None.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import field

from headway.profiler.redaction import name_of

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
