"""Records the streaming queries of a running session, in the lines of Spark's own event log.

For jobs without an event log. A listener hands events to a queue; one thread takes them, asks the
driver's status store for the jobs, stages and tasks of each batch, and appends lines to a file.
Names and units in there are Spark's: milliseconds, nanoseconds, spaces in names.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import json
import os
import queue
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

from headway.errors import HeadwayError, InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryListener

Json: TypeAlias = Mapping[str, Any]
_Told: TypeAlias = Callable[[], Json]
"""An event as it was told; calling it spells it out, which may take calls to the JVM."""

_LOG_START = "SparkListenerLogStart"
_APPLICATION_START = "SparkListenerApplicationStart"
_ENVIRONMENT = "SparkListenerEnvironmentUpdate"
_EXECUTOR_ADDED = "SparkListenerExecutorAdded"
_EXECUTOR_REMOVED = "SparkListenerExecutorRemoved"
_JOB_START = "SparkListenerJobStart"
_JOB_END = "SparkListenerJobEnd"
_STAGE_COMPLETED = "SparkListenerStageCompleted"
_TASK_END = "SparkListenerTaskEnd"
_QUERY_STARTED = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryStartedEvent"
_QUERY_PROGRESS = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"
_QUERY_TERMINATED = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryTerminatedEvent"
_LEFT_OUT_TEXT = "left out"

LOST_EVENT = "HeadwayRecorderLost"
"""Name of the lines that tell how many events were lost since the last such line."""

RECORDED_PROPERTIES = (
    "spark.cores.max",
    "spark.default.parallelism",
    "spark.driver.cores",
    "spark.driver.memory",
    "spark.dynamicAllocation.enabled",
    "spark.dynamicAllocation.maxExecutors",
    "spark.dynamicAllocation.minExecutors",
    "spark.executor.cores",
    "spark.executor.instances",
    "spark.executor.memory",
    "spark.executor.memoryOverhead",
    "spark.memory.fraction",
    "spark.memory.offHeap.size",
    "spark.sql.shuffle.partitions",
    "spark.task.cpus",
)
"""All of the configuration that is ever written: sizes, no addresses, nothing secret."""

_API = "org.apache.spark.status.api.v1"
# What the driver leaves out when it writes JSON: free text, addresses, and what nobody reads.
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
# The event log's names; a group is its name in the store and the names within.
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
    "Input Metrics": (
        "inputMetrics",
        {"Bytes Read": "bytesRead", "Records Read": "recordsRead"},
    ),
    "Output Metrics": (
        "outputMetrics",
        {"Bytes Written": "bytesWritten", "Records Written": "recordsWritten"},
    ),
}
# The store does not tell what made a task fail.
_END_REASONS = {"SUCCESS": "Success", "FAILED": "UnknownReason", "KILLED": "TaskKilled"}
_BATCH_JOB = re.compile(r"^id = (\S+)\nrunId = (\S+)\nbatch = (\d+)$", re.MULTILINE)
_USER_INFO = re.compile(r'://[^/\s"\\]*@')
_APP_ID = re.compile(rb'"App ID":"([^"]*)"')

_HEAD_BYTES = 65536
_MOST_QUEUED = 1000
_MOST_LOOKS = 3
_MOST_BATCHES_OPEN = 64
_JOBS_AT_ONCE = 8
_EXECUTORS_EVERY_S = 10.0
_STOP_WITHIN_S = 10.0
_DELIVERED_WITHIN_MS = 3000


def record(
    spark: SparkSession,
    path: str | Path,
    *,
    executors: int | None = None,
    cores_per_executor: int | None = None,
    max_bytes: int = 100_000_000,
    max_files: int = 5,
) -> Recorder:
    """Record the streaming queries of a session from now on, for ``headway profile`` to read.

    No query is held up or fails for it: what goes wrong later is counted in ``num_lost``.

    Parameters
    ----------
    spark : SparkSession
        Its own queries are recorded, not those of sessions beside it. With Spark Connect (4.0 or
        later) their progress can be recorded, but no stages and tasks.
    path : path
        Appended to. When full, or when it holds another application, it becomes ``path.1``,
        which becomes ``path.2``, and so on.
    executors, cores_per_executor : int, optional
        For Spark Connect, where the driver cannot be asked; elsewhere Spark's word counts.
    max_bytes : int, >= 1
        Size of a file, which only a single large batch exceeds. [bytes]
    max_files : int, >= 1
        Files kept, with the one being written.

    Returns
    -------
    Recorder
        Recording already; stop it when the queries are done, or use it in a ``with`` block.

    Raises
    ------
    InputError
        If a number is out of range.
    HeadwayError
        If the file cannot be written, or this Spark does not let its queries be listened to.
    """
    _require_counts(
        executors=executors,
        cores_per_executor=cores_per_executor,
        max_bytes=max_bytes,
        max_files=max_files,
    )
    if (executors is None) != (cores_per_executor is None):
        raise InputError("executors and cores_per_executor go together; give both or neither")
    properties = {key: spark.conf.get(key, None) for key in RECORDED_PROPERTIES}
    started_ms = int(spark.conf.get("spark.app.startTime", None) or time.time_ns() // 1_000_000)
    application: list[Json] = [
        {"Event": _LOG_START, "Spark Version": spark.version},
        {
            "Event": _APPLICATION_START,
            "App Name": spark.conf.get("spark.app.name", None),
            "App ID": spark.conf.get("spark.app.id", None),
            "Timestamp": started_ms,
        },
        {
            "Event": _ENVIRONMENT,
            "Spark Properties": {key: text for key, text in properties.items() if text is not None},
        },
    ]
    driver: _Driver | None = None
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        _require_listeners_on_this_side()
        cluster = [
            _executor_added(str(number + 1), cores_per_executor or 0, started_ms)
            for number in range(executors or 0)
        ]
    else:
        driver = _Driver(spark)
        cluster = driver.executor_events()
    try:
        file = _RotatingFile(Path(path), max_bytes, max_files)
        file.begin(application, cluster)
    except OSError as error:
        raise HeadwayError(
            f"{path}: cannot be written ({error.strerror}); expected a file in a folder that "
            "exists and has room"
        ) from error
    return Recorder(spark, file, driver)


class Recorder:
    """A recording that goes on until :meth:`stop`; made by :func:`record`."""

    def __init__(self, spark: SparkSession, file: _RotatingFile, driver: _Driver | None) -> None:
        self._spark = spark
        self._file = file
        self._driver = driver
        self._executors_asked_s = time.monotonic()
        # Bounded when something is put in: the mark of the end must always find room.
        self._queue: queue.SimpleQueue[_Told | None] = queue.SimpleQueue()
        self._counting = threading.Lock()
        self._num_events = self._num_lost = self._num_lost_told = 0
        self._last_error: Exception | None = None
        self._listener: StreamingQueryListener | None = _listener(self._hand_over)
        spark.streams.addListener(self._listener)
        self._thread = threading.Thread(target=self._run, name="headway-recorder", daemon=True)
        self._thread.start()
        atexit.register(self.stop)

    @property
    def num_events(self) -> int:
        """Events written, not counting what every file begins with."""
        return self._num_events

    @property
    def num_lost(self) -> int:
        """Events that are not in the file: the queue was full, or something went wrong."""
        return self._num_lost

    @property
    def last_error(self) -> Exception | None:
        """What went wrong last."""
        return self._last_error

    def stop(self) -> None:
        """Write what is known by now and leave the session; at most 10 s; may be repeated."""
        atexit.unregister(self.stop)
        self._queue.put(None)
        self._thread.join(_STOP_WITHIN_S)
        if self._thread.is_alive():
            self._lose(
                self._queue.qsize(),
                HeadwayError(f"{self._file.path}: not flushed within {_STOP_WITHIN_S:.0f} s"),
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _hand_over(self, told: _Told) -> None:
        """All that is done in a callback."""
        if self._queue.qsize() < _MOST_QUEUED:
            self._queue.put(told)
        else:
            self._lose(1)

    def _lose(self, number: int, error: Exception | None = None) -> None:
        with self._counting:
            self._num_lost += number
            self._last_error = error or self._last_error

    @contextlib.contextmanager
    def _survived(self, *, num_lost: int) -> Iterator[None]:
        try:
            yield
        except _FileLostError:
            raise
        except Exception as error:
            self._lose(num_lost, error)

    def _run(self) -> None:
        try:
            while (told := self._queue.get()) is not None:
                self._record(told)
            self._leave()
            while not self._queue.empty():
                if (told := self._queue.get()) is not None:
                    self._record(told)
            if self._driver is not None:
                with self._survived(num_lost=1):
                    for work in self._driver.work_due(at_the_end=True):
                        self._write(work)
            self._write([])
        except _FileLostError as error:
            self._lose(1 + self._queue.qsize(), error)
            self._leave()
        finally:
            self._file.close()

    def _leave(self) -> None:
        listener, self._listener = self._listener, None
        # A session that was stopped before has neither a bus nor listeners any more.
        with contextlib.suppress(Exception):
            if self._driver is not None:
                self._driver.wait_for_delivery()
        with contextlib.suppress(Exception):
            if listener is not None:
                self._spark.streams.removeListener(listener)

    def _record(self, told: _Told) -> None:
        with self._survived(num_lost=1):
            event = told()
            work: list[Json] = []
            if self._driver is not None:
                with self._survived(num_lost=1):
                    self._update_executors(self._driver)
                    for events in self._driver.work_before(event):
                        work += events
            self._write([*work, event])

    def _update_executors(self, driver: _Driver) -> None:
        if time.monotonic() - self._executors_asked_s >= _EXECUTORS_EVERY_S:
            self._executors_asked_s = time.monotonic()
            self._write(self._file.news_of_cluster(driver.executor_events()))

    def _write(self, events: Sequence[Json]) -> None:
        if self._driver is not None:
            self._lose(self._driver.take_num_given_up())
        num_lost = self._num_lost
        if num_lost > self._num_lost_told:
            lost = {"Event": LOST_EVENT, "num_lost": num_lost - self._num_lost_told}
            events = [*events, lost]
        if events:
            self._file.append(events)
            self._num_lost_told = num_lost
            self._num_events += len(events)


class _FileLostError(HeadwayError):
    """The file is gone or its disk is full: that lasts, so the recording ends."""


class _RotatingFile:
    """Groups of lines in a file that makes way for the next when it is full.

    Each file begins with the application and its executors, and holds one application only:
    another one counts its stages from 0 again.
    """

    def __init__(self, path: Path, max_bytes: int, max_files: int) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._max_files = max_files

    def begin(self, application: Sequence[Json], cluster: Sequence[Json]) -> None:
        """Open the file, with the events that every file begins with."""
        self._application, self._cluster = application, list(cluster)
        header = _lines([*application, *cluster])
        if self.path.exists():
            with self.path.open("rb") as before:
                found = _APP_ID.search(before.read(_HEAD_BYTES))
            of_another = found and found[0] not in header
            if of_another or self.path.stat().st_size + len(header) > self._max_bytes:
                self._make_way()
        self._open(header)

    def news_of_cluster(self, cluster: Sequence[Json]) -> list[Json]:
        """The events that are new; files to come will begin with all of them."""
        news = [event for event in cluster if event not in self._cluster]
        self._cluster += news
        return news

    def append(self, events: Sequence[Json]) -> None:
        """Add lines, all of them to one file."""
        lines = _lines(events)
        try:
            self._require_in_place()
            if self._num_groups and self._file.tell() + len(lines) > self._max_bytes:
                self._file.close()
                self._make_way()
                self._open(_lines([*self._application, *self._cluster]))
            self._put(lines)
        except OSError as error:
            raise _FileLostError(
                f"{self.path}: cannot be written any more ({error.strerror}); recording ended"
            ) from error
        self._num_groups += 1

    def close(self) -> None:
        self._file.close()

    def _open(self, header: bytes) -> None:
        # Unbuffered: what was written is the system's, whatever becomes of this process.
        self._file = self.path.open("a+b", buffering=0)
        self._num_groups = 0
        try:
            if self._ends_within_a_line():
                # Left by a process that was killed: it must not spoil the line that follows.
                header = b"\n" + header
            self._put(header)
        except OSError:
            self._file.close()
            raise

    def _ends_within_a_line(self) -> bool:
        if self._file.seek(0, os.SEEK_END) == 0:
            return False
        self._file.seek(-1, os.SEEK_END)
        return self._file.read(1) != b"\n"

    def _put(self, lines: bytes) -> None:
        while lines:
            lines = lines[self._file.write(lines) or 0 :]

    def _require_in_place(self) -> None:
        opened, there = os.fstat(self._file.fileno()), self.path.stat()
        if (opened.st_dev, opened.st_ino) != (there.st_dev, there.st_ino):
            raise FileNotFoundError(errno.ENOENT, "it was moved or replaced")

    def _make_way(self) -> None:
        kept = [self.path.with_name(f"{self.path.name}.{n}") for n in range(1, self._max_files)]
        for older, newer in zip(reversed(kept), [*reversed(kept[:-1]), self.path], strict=True):
            if newer.exists():
                newer.replace(older)
        self.path.unlink(missing_ok=True)


class _Batch(NamedTuple):
    run_id: str
    batch_id: int


class _Driver:
    """What the status store of the driver knows of executors, jobs, stages and tasks.

    The JVM writes it as JSON, in one call for each stage: a call for each field would take longer
    than many a batch.
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
        self._jobs: dict[_Batch, dict[int, Json]] = {}
        self._looks: dict[_Batch, int] = {}
        self._shuffle_partitions: dict[str, str | None] = {}
        self._num_given_up = 0

    def wait_for_delivery(self) -> None:
        """Until the listeners know of everything that has happened, or some seconds."""
        self._context.listenerBus().waitUntilEmpty(_DELIVERED_WITHIN_MS)

    def executor_events(self) -> list[Json]:
        """Executors that came, and those that went again."""
        events = []
        for executor in self._read(self._store.executorList(False)):
            # The driver of a cluster stands among them, without cores.
            if executor["totalCores"] > 0:
                events.append(
                    _executor_added(executor["id"], executor["totalCores"], executor["addTime"])
                )
            if executor["removeTime"] is not None:
                events.append(
                    {
                        "Event": _EXECUTOR_REMOVED,
                        "Timestamp": executor["removeTime"],
                        "Executor ID": executor["id"],
                    }
                )
        return events

    def take_num_given_up(self) -> int:
        """Batches whose work never became complete, since the last call."""
        number, self._num_given_up = self._num_given_up, 0
        return number

    def work_before(self, event: Json) -> Iterator[list[Json]]:
        """Jobs, stages and tasks of the batches that ended, one list per batch.

        A batch whose last stage has not reached the store yet comes with a later event.
        """
        if event["Event"] == _QUERY_PROGRESS:
            progress = event["progress"]
            batch = _Batch(progress["runId"], progress["batchId"])
            # A query without news announces its next batch, which has no work yet.
            if "addBatch" in progress["durationMs"]:
                self._looks[batch] = 0
                self._ask_for_partitions(batch.run_id, progress["id"])
            yield from self.work_due(at_the_end=False)
            self._forget(lambda other: other.run_id == batch.run_id and other < batch)
        elif event["Event"] == _QUERY_TERMINATED:
            yield from self.work_due(at_the_end=False)
            self._forget(lambda other: other.run_id == event["runId"])
            self._shuffle_partitions.pop(event["runId"], None)

    def work_due(self, *, at_the_end: bool) -> Iterator[list[Json]]:
        """The work of batches that ended before, as far as it is complete; at the end, all."""
        if not self._looks:
            return
        self._find_jobs()
        for batch in list(self._looks):
            looks = self._looks.pop(batch) + 1
            jobs = [job for _, job in sorted(self._jobs.get(batch, {}).items())]
            stages = {
                stage_id: self._attempts(stage_id) for job in jobs for stage_id in job["stageIds"]
            }
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
        """Jobs of streaming queries that started since the last look."""
        number = _JOBS_AT_ONCE
        # Newest first; the store keeps a thousand.
        while len(jobs := self._read(self._store.jobsList(None).take(number))) == number:
            if jobs[-1]["jobId"] <= self._newest_job:
                break
            number *= 4
        for job in jobs:
            found = _BATCH_JOB.search(job["description"] or "")
            if found is None:
                continue
            batch = _Batch(found[2], int(found[3]))
            if job["jobId"] > self._newest_job or batch in self._jobs:
                known = self._jobs.setdefault(batch, {})
                known[job["jobId"]] = {**job, "queryId": found[1]}
        self._newest_job = max([self._newest_job, *(job["jobId"] for job in jobs)])
        # Queries of other sessions, which nobody tells us the end of.
        while len(self._jobs) > _MOST_BATCHES_OPEN:
            del self._jobs[min(self._jobs, key=lambda batch: min(self._jobs[batch]))]

    def _forget(self, is_over: Callable[[_Batch], bool]) -> None:
        for batch in [batch for batch in self._jobs if is_over(batch)]:
            if batch not in self._looks:
                del self._jobs[batch]

    def _attempts(self, stage_id: int) -> list[Json]:
        data = self._store.stageData(stage_id, True, self._any_status, False, self._no_quantiles)
        attempts: list[Json] = self._read(data)
        return attempts

    def _job_events(
        self, batch: _Batch, job: Json, stages: Mapping[int, list[Json]]
    ) -> Iterator[Json]:
        properties = {
            "sql.streaming.queryId": job["queryId"],
            "streaming.sql.batchId": str(batch.batch_id),
            "spark.jobGroup.id": job["jobGroup"],
            "spark.sql.shuffle.partitions": self._shuffle_partitions.get(batch.run_id),
        }
        yield {
            "Event": _JOB_START,
            "Job ID": job["jobId"],
            "Submission Time": job["submissionTime"],
            "Stage IDs": job["stageIds"],
            "Properties": {key: text for key, text in properties.items() if text is not None},
        }
        parents = self._parents(job, stages)
        for stage_id in job["stageIds"]:
            for attempt in stages[stage_id]:
                if attempt["submissionTime"] and attempt["completionTime"]:
                    yield from (_task_end(attempt, task) for task in _ended_tasks(attempt))
                    yield _stage_completed(attempt, parents[stage_id])
        if job["completionTime"]:
            yield {
                "Event": _JOB_END,
                "Job ID": job["jobId"],
                "Completion Time": job["completionTime"],
                "Job Result": {
                    "Result": "JobSucceeded" if job["status"] == "SUCCEEDED" else "JobFailed"
                },
            }

    def _parents(self, job: Json, stages: Mapping[int, list[Json]]) -> dict[int, list[int]]:
        """Stages whose shuffle output each stage reads: the store knows edges between RDDs only."""
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
        """Shuffle partitions as the query has them: the session's may have changed since."""
        if run_id in self._shuffle_partitions:
            return
        self._shuffle_partitions[run_id] = None
        # A query that has ended cannot be asked; if it has state, its progress tells.
        with contextlib.suppress(Exception):
            execution = self._streams.get(query_id)._jsq.streamingQuery().lastExecution()
            conf = execution.sparkSession().conf()
            self._shuffle_partitions[run_id] = conf.get("spark.sql.shuffle.partitions")

    def _read(self, found: Any) -> Any:
        return json.loads(self._json(found))


def _json_writer(jvm: Any) -> Callable[[Any], str]:
    """Jackson in the driver, which Spark brings along and its REST interface is made with."""
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
        # Tasks reach the store behind their stage's end now and then.
        done: int = sum(task["status"] == "SUCCESS" for task in attempt["tasks"].values())
        return done >= int(attempt["numTasks"])
    return status in ("FAILED", "SKIPPED")


def _ended_tasks(attempt: Json) -> list[Json]:
    tasks = attempt["tasks"].values()
    return [task for task in tasks if task["status"] in _END_REASONS]


def _stage_completed(attempt: Json, parents: Sequence[int]) -> Json:
    return {
        "Event": _STAGE_COMPLETED,
        "Stage Info": {
            "Stage ID": attempt["stageId"],
            "Stage Attempt ID": attempt["attemptId"],
            "Number of Tasks": attempt["numTasks"],
            "Parent IDs": parents,
            "Submission Time": attempt["submissionTime"],
            "Completion Time": attempt["completionTime"],
            **({"Failure Reason": _LEFT_OUT_TEXT} if attempt["status"] == "FAILED" else {}),
        },
    }


def _task_end(attempt: Json, task: Json) -> Json:
    metrics = task["taskMetrics"]
    return {
        "Event": _TASK_END,
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
    """The values under the event log's names, groups of them within groups."""
    return {
        name: values[key] if isinstance(key, str) else _renamed(key[1], values[key[0]])
        for name, key in names.items()
    }


def _executor_added(executor_id: str, num_cores: int, at_ms: int) -> Json:
    return {
        "Event": _EXECUTOR_ADDED,
        "Timestamp": at_ms,
        "Executor ID": executor_id,
        "Executor Info": {"Total Cores": num_cores},
    }


def _listener(hand_over: Callable[[_Told], None]) -> StreamingQueryListener:
    from pyspark import SparkContext
    from pyspark.sql.streaming import listener as events

    class FromJava:
        """Called by the JVM with its own events, which are spelled out in our thread."""

        def onQueryStarted(self, event: Any) -> None:  # noqa: N802
            hand_over(lambda: _started(events.QueryStartedEvent.fromJObject(event)))

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802
            hand_over(lambda: _progress(event.progress().json()))

        def onQueryIdle(self, event: Any) -> None:  # noqa: N802
            pass

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
            hand_over(lambda: _terminated(events.QueryTerminatedEvent.fromJObject(event)))

        class Java:
            implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)

    class Listener(events.StreamingQueryListener):
        """Called by PySpark, where there is no JVM to call us directly."""

        def onQueryStarted(self, event: events.QueryStartedEvent) -> None:  # noqa: N802
            hand_over(lambda: _started(event))

        def onQueryProgress(self, event: events.QueryProgressEvent) -> None:  # noqa: N802
            hand_over(lambda: _progress(event.progress.json))

        def onQueryTerminated(self, event: events.QueryTerminatedEvent) -> None:  # noqa: N802
            hand_over(lambda: _terminated(event))

        # PySpark's own would take every progress apart before it calls: some hundred calls to
        # the JVM, for every listener and batch.
        @cached_property
        def _jlistener(self) -> Any:
            jvm: Any = SparkContext._jvm
            streaming = jvm.org.apache.spark.sql.streaming
            return streaming.PythonStreamingQueryListenerWrapper(FromJava())

    return Listener()


def _started(event: Any) -> Json:
    return {
        "Event": _QUERY_STARTED,
        "id": str(event.id),
        "runId": str(event.runId),
        "name": event.name,
        "timestamp": event.timestamp,
    }


def _progress(text: str) -> Json:
    return {"Event": _QUERY_PROGRESS, "progress": json.loads(text)}


def _terminated(event: Any) -> Json:
    return {
        "Event": _QUERY_TERMINATED,
        "id": str(event.id),
        "runId": str(event.runId),
        # Its text may hold anything, data and passwords too.
        "exception": None if event.exception is None else _LEFT_OUT_TEXT,
        "errorClassOnException": event.errorClassOnException,
    }


def _lines(events: Iterable[Json]) -> bytes:
    texts = (json.dumps(event, separators=(",", ":")) for event in events)
    return b"".join(_USER_INFO.sub("://", text).encode() + b"\n" for text in texts)


def _require_counts(**counts: int | None) -> None:
    for name, count in counts.items():
        if count is not None and (not isinstance(count, int) or count is True or count < 1):
            raise InputError(f"{name} is {count!r}; expected a whole number, at least 1")


def _require_listeners_on_this_side() -> None:
    import pyspark

    if int(pyspark.__version__.split(".")[0]) < 4:
        raise HeadwayError(
            f"PySpark {pyspark.__version__} runs listeners of Spark Connect on the server, where "
            "no file can be written; record with PySpark 4 or later, or keep an event log "
            "(spark.eventLog.enabled)"
        )
