"""Data of a running driver's status store, as events of Spark's event log."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from headway.profiler import schema
from headway.profiler.recording.recorder_file import LEFT_OUT_TEXT, Json
from headway.profiler.schema import BatchOf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_API = "org.apache.spark.status.api.v1"
# Fields left out when the driver writes JSON: free text, addresses, and unused fields.
_LEFT_OUT = {
    f"{_API}.JobData": "name jobTags numTasks numActiveTasks numCompletedTasks "
    "numSkippedTasks numFailedTasks numKilledTasks numCompletedIndices numActiveStages "
    "numCompletedStages numSkippedStages numFailedStages killedTasksSummary",
    f"{_API}.StageData": "name description details failureReason accumulatorUpdates "
    "executorSummary speculationSummary killedTasksSummary peakExecutorMetrics "
    "taskMetricsDistributions executorMetricsDistributions",
    f"{_API}.TaskData": "host errorMessage accumulatorUpdates executorLogs",
    f"{_API}.ExecutorSummary": "hostPort removeReason executorLogs memoryMetrics attributes "
    "resources peakMemoryMetrics blacklistedInStages excludedInStages",
    "org.apache.spark.ui.scope.RDDOperationGraph": "edges outgoingEdges rootCluster",
}
# Names in the event log; a group is its name in the store and the names within it.
_TASK_METRICS: Mapping[str, Any] = {
    "Executor Deserialize Time": "executorDeserializeTime",
    "Executor Deserialize CPU Time": "executorDeserializeCpuTime",
    "Executor Run Time": "executorRunTime",
    "Executor CPU Time": "executorCpuTime",
    "Peak Execution Memory": "peakExecutionMemory",
    "Result Size": "resultSize",
    "JVM GC Time": "jvmGcTime",
    "Result Serialization Time": "resultSerializationTime",
    "Memory Bytes Spilled": "memoryBytesSpilled",
    "Disk Bytes Spilled": "diskBytesSpilled",
    "Shuffle Read Metrics": (
        "shuffleReadMetrics",
        {
            "Remote Blocks Fetched": "remoteBlocksFetched",
            "Local Blocks Fetched": "localBlocksFetched",
            "Fetch Wait Time": "fetchWaitTime",
            "Remote Bytes Read": "remoteBytesRead",
            "Remote Bytes Read To Disk": "remoteBytesReadToDisk",
            "Local Bytes Read": "localBytesRead",
            "Total Records Read": "recordsRead",
        },
    ),
    "Shuffle Write Metrics": (
        "shuffleWriteMetrics",
        {
            "Shuffle Bytes Written": "bytesWritten",
            "Shuffle Write Time": "writeTime",
            "Shuffle Records Written": "recordsWritten",
        },
    ),
    "Input Metrics": ("inputMetrics", {"Bytes Read": "bytesRead", "Records Read": "recordsRead"}),
    "Output Metrics": (
        "outputMetrics",
        {"Bytes Written": "bytesWritten", "Records Written": "recordsWritten"},
    ),
}
# The store does not contain the reason for a task's failure.
_END_REASONS = {"SUCCESS": "Success", "FAILED": "UnknownReason", "KILLED": "TaskKilled"}
_BATCH_JOB = re.compile(r"^id = (\S+)\nrunId = (\S+)\nbatch = (\d+)$", re.MULTILINE)
_MOST_LOOKS = 3
_MOST_BATCHES_OPEN = 64
_JOBS_AT_ONCE = 8
_DELIVERED_WITHIN_MS = 3000


class DriverStore:
    """Executors, jobs, stages and tasks in the driver's status store.

    The JVM writes it as JSON, in one call per stage; one call per field would take longer than many
    batches.
    """

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext
        self._streams: Any = spark.streams
        self._context = context._jsc.sc()
        self._store = self._context.statusStore()
        self._json = _json_writer(context._jvm)
        self._any_status = context._jvm.java.util.ArrayList()
        self._no_quantiles = context._gateway.new_array(context._jvm.double, 0)
        self._newest_job = -1
        self._jobs: dict[BatchOf, dict[int, Json]] = {}
        self._looks: dict[BatchOf, int] = {}
        self._shuffle_partitions: dict[str, str | None] = {}
        self._num_given_up = 0
        self.num_cores: int = context.defaultParallelism

    def wait_for_delivery(self) -> None:
        """Wait until the listeners have received all events, or for some seconds."""
        self._context.listenerBus().waitUntilEmpty(_DELIVERED_WITHIN_MS)

    def executor_events(self) -> list[Json]:
        events = []
        for executor in self._read(self._store.executorList(False)):
            # The driver of a cluster is among them, without cores.
            if executor["totalCores"] > 0:
                events.append(
                    executor_added(executor["id"], executor["totalCores"], executor["addTime"])
                )
            if (at_ms := executor["removeTime"]) is not None:
                removed = {"Event": schema.EXECUTOR_REMOVED, "Timestamp": at_ms}
                events.append({**removed, "Executor ID": executor["id"]})
        return events

    def take_num_given_up(self) -> int:
        """Number of batches, since the last call, whose work never became complete."""
        num_given_up, self._num_given_up = self._num_given_up, 0
        return num_given_up

    def expect_work(self, event: Json, *, is_affordable: bool) -> int:
        """Note the reported batch for later reading; returns 1 if it is skipped."""
        progress = event["progress"] if event["Event"] == schema.QUERY_PROGRESS else None
        # An idle query announces its next batch, which has no work yet.
        if progress is None or "addBatch" not in progress["durationMs"]:
            return 0
        if is_affordable:
            self._looks[BatchOf(progress["runId"], progress["batchId"])] = 0
            self._ask_for_partitions(progress["runId"], progress["id"])
        return int(not is_affordable)

    def work_before(self, event: Json) -> Iterator[list[Json]]:
        """Jobs, stages and tasks of finished batches, one list per batch.

        A batch whose last stage has not reached the store yet is returned with a later event.
        """
        if event["Event"] == schema.QUERY_PROGRESS:
            batch = BatchOf(event["progress"]["runId"], event["progress"]["batchId"])
            yield from self.work_due(at_the_end=False)
            self._forget(lambda other: other.run_id == batch.run_id and other < batch)
        elif event["Event"] == schema.QUERY_TERMINATED:
            yield from self.work_due(at_the_end=False)
            self._forget(lambda other: other.run_id == event["runId"])
            self._shuffle_partitions.pop(event["runId"], None)

    def work_due(self, *, at_the_end: bool) -> Iterator[list[Json]]:
        """The work of earlier batches, as far as it is complete; at the end, all of it."""
        if not self._looks:
            return
        self._find_jobs()
        for batch in list(self._looks):
            looks = self._looks.pop(batch) + 1
            jobs = [job for _, job in sorted(self._jobs.get(batch, {}).items())]
            stage_ids = chain.from_iterable(job["stageIds"] for job in jobs)
            stages = {stage_id: self._attempts(stage_id) for stage_id in stage_ids}
            is_whole = (
                bool(jobs)
                and all(job["completionTime"] for job in jobs)
                and all(map(_is_over, chain.from_iterable(stages.values())))
            )
            if not is_whole and looks < _MOST_LOOKS and not at_the_end:
                self._looks[batch] = looks
                continue
            self._num_given_up += not is_whole
            self._jobs.pop(batch, None)
            yield [event for job in jobs for event in self._job_events(batch, job, stages)]

    def _find_jobs(self) -> None:
        """Jobs of streaming queries that started since the last call."""
        num_jobs = _JOBS_AT_ONCE
        # Newest first; the store keeps a thousand jobs.
        while len(jobs := self._read(self._store.jobsList(None).take(num_jobs))) == num_jobs:
            if jobs[-1]["jobId"] <= self._newest_job:
                break
            num_jobs *= 4
        for job in jobs:
            batch_match = _BATCH_JOB.search(job["description"] or "")
            if batch_match is None:
                continue
            batch = BatchOf(batch_match[2], int(batch_match[3]))
            if job["jobId"] > self._newest_job or batch in self._jobs:
                of_query = {**job, "queryId": batch_match[1]}
                self._jobs.setdefault(batch, {})[job["jobId"]] = of_query
        self._newest_job = max([self._newest_job, *(job["jobId"] for job in jobs)])
        # Queries of other sessions, whose end is not reported here.
        while len(self._jobs) > _MOST_BATCHES_OPEN:
            del self._jobs[min(self._jobs, key=lambda batch: min(self._jobs[batch]))]

    def _forget(self, is_over: Callable[[BatchOf], bool]) -> None:
        for batch in [batch for batch in self._jobs if is_over(batch)]:
            if batch not in self._looks:
                del self._jobs[batch]

    def _attempts(self, stage_id: int) -> list[Json]:
        stage = self._store.stageData(stage_id, True, self._any_status, False, self._no_quantiles)
        return list(self._read(stage))

    def _job_events(
        self, batch: BatchOf, job: Json, stages: Mapping[int, list[Json]]
    ) -> Iterator[Json]:
        properties = {
            "sql.streaming.queryId": job["queryId"],
            "streaming.sql.batchId": str(batch.batch_id),
            "spark.jobGroup.id": job["jobGroup"],
            "spark.sql.shuffle.partitions": self._shuffle_partitions.get(batch.run_id),
        }
        yield {
            "Event": schema.JOB_START,
            "Job ID": job["jobId"],
            "Submission Time": job["submissionTime"],
            "Stage IDs": job["stageIds"],
            "Properties": {key: text for key, text in properties.items() if text is not None},
        }
        parents = self._parents(job, stages)
        for stage_id in job["stageIds"]:
            for attempt in stages[stage_id]:
                if attempt["submissionTime"] and attempt["completionTime"]:
                    for task in attempt["tasks"].values():
                        if task["status"] in _END_REASONS:
                            yield _task_end(attempt, task)
                    yield _stage_completed(attempt, parents[stage_id])
        if job["completionTime"]:
            yield {
                "Event": schema.JOB_END,
                "Job ID": job["jobId"],
                "Completion Time": job["completionTime"],
                "Job Result": {
                    "Result": "JobSucceeded" if job["status"] == "SUCCEEDED" else "JobFailed"
                },
            }

    def _parents(self, job: Json, stages: Mapping[int, list[Json]]) -> dict[int, list[int]]:
        """Stages whose shuffle output each stage reads; the store has only edges between RDDs."""
        rdds = {
            stage_id: {rdd for attempt in stages[stage_id] for rdd in attempt["rddIds"]}
            for stage_id in job["stageIds"]
        }
        graphs = self._read(self._store.operationGraphForJob(job["jobId"])) if rdds else []
        edges = [edge for graph in graphs for edge in graph["incomingEdges"]]
        return {
            stage_id: sorted(
                parent
                for parent in rdds
                if parent != stage_id
                and any(e["toId"] in rdds[stage_id] and e["fromId"] in rdds[parent] for e in edges)
            )
            for stage_id in rdds
        }

    def _ask_for_partitions(self, run_id: str, query_id: str) -> None:
        """Shuffle partitions of the query; the session's may have changed since its start."""
        if run_id in self._shuffle_partitions:
            return
        self._shuffle_partitions[run_id] = None
        # A query that has ended cannot be asked; if it has state, its progress contains them.
        with contextlib.suppress(Exception):
            execution = self._streams.get(query_id)._jsq.streamingQuery().lastExecution()
            conf = execution.sparkSession().conf()
            self._shuffle_partitions[run_id] = conf.get("spark.sql.shuffle.partitions")

    def _read(self, java_object: Any) -> Any:
        return json.loads(self._json(java_object))


def _json_writer(jvm: Any) -> Callable[[Any], str]:
    """Jackson in the driver, which is part of Spark and used by its REST interface."""
    jackson = jvm.com.fasterxml.jackson
    mapper = jackson.databind.ObjectMapper()
    mapper.registerModule(getattr(getattr(jackson.module.scala, "DefaultScalaModule$"), "MODULE$"))
    ignorals = getattr(jackson.annotation, "JsonIgnoreProperties$Value")
    for name, fields in _LEFT_OUT.items():
        left_out = jvm.java.util.HashSet()
        for field in fields.split():
            left_out.add(field)
        override = mapper.configOverride(jvm.java.lang.Class.forName(name))
        override.setIgnorals(ignorals.forIgnoredProperties(left_out))
    write: Callable[[Any], str] = mapper.writeValueAsString
    return write


def _is_over(attempt: Json) -> bool:
    status: str = attempt["status"]
    if status == "COMPLETE":
        # Tasks sometimes reach the store after the end of their stage.
        done: int = sum(task["status"] == "SUCCESS" for task in attempt["tasks"].values())
        return done >= int(attempt["numTasks"])
    return status in ("FAILED", "SKIPPED")


def _stage_completed(attempt: Json, parents: Sequence[int]) -> Json:
    return {
        "Event": schema.STAGE_COMPLETED,
        "Stage Info": {
            "Stage ID": attempt["stageId"],
            "Stage Attempt ID": attempt["attemptId"],
            "Number of Tasks": attempt["numTasks"],
            "Parent IDs": parents,
            "Submission Time": attempt["submissionTime"],
            "Completion Time": attempt["completionTime"],
            **({"Failure Reason": LEFT_OUT_TEXT} if attempt["status"] == "FAILED" else {}),
        },
    }


def _task_end(attempt: Json, task: Json) -> Json:
    metrics = task["taskMetrics"]
    return {
        "Event": schema.TASK_END,
        "Stage ID": attempt["stageId"],
        "Stage Attempt ID": attempt["attemptId"],
        "Task End Reason": {"Reason": _END_REASONS[task["status"]]},
        "Task Info": {
            "Task ID": task["taskId"],
            "Index": task["index"],
            "Attempt": task["attempt"],
            "Launch Time": task["launchTime"],
            "Executor ID": task["executorId"],
            "Locality": task["taskLocality"],
            "Speculative": task["speculative"],
            "Getting Result Time": task["resultFetchStart"] or 0,
            "Finish Time": task["launchTime"] + (task["duration"] or 0),
            "Failed": task["status"] == "FAILED",
            "Killed": task["status"] == "KILLED",
        },
        **({} if metrics is None else {"Task Metrics": _renamed(_TASK_METRICS, metrics)}),
    }


def _renamed(names: Mapping[str, Any], values: Json) -> Json:
    """The values with the names of the event log, with nested groups."""
    return {
        name: values[key] if isinstance(key, str) else _renamed(key[1], values[key[0]])
        for name, key in names.items()
    }


def executor_added(executor_id: str, num_cores: int, at_ms: int) -> Json:
    return {
        "Event": schema.EXECUTOR_ADDED,
        "Timestamp": at_ms,
        "Executor ID": executor_id,
        "Executor Info": {"Total Cores": num_cores},
    }
