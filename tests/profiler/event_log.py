"""Event logs as Spark writes them, of jobs whose every cost is known."""

from __future__ import annotations

import gzip
import json
import math
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import zstandard

Event = dict[str, Any]

PROGRESS = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"
EPOCH_S = 1_790_000_000.0
_ADAPTIVE_PLAN = """== Physical Plan ==
WriteToDataSourceV2 (3)
+- AdaptiveSparkPlan (2)
   +- Exchange (1)
"""
PHASES_S = {
    "latestOffset": 0.003,
    "walCommit": 0.030,
    "getBatch": 0.001,
    "queryPlanning": 0.020,
    "addBatch": 0.050,
    "commitOffsets": 0.028,
}


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One stage: a task takes ``fixed_s + per_row_s * rows``, times noise."""

    fixed_s: float = 0.040
    per_row_s: float = 20e-6
    num_tasks: int | None = 4  # None: the query's partitions, behind an exchange
    rows_scale: float = 1.0
    shares: Sequence[float] | None = None  # of the tasks; equal by default
    static_rows: int = 0  # of a static table, in every batch
    scopes: Sequence[str] = ()  # of its RDDs
    reads_earlier_jobs: bool = False  # whose exchanges adaptive execution runs as jobs
    bytes_per_row: int = 0  # read from the exchange
    tasks_of_bytes: Callable[[int], int] | None = None  # in place of num_tasks
    slots: int | None = None  # those that it can use, if not all
    resource_profile_id: int | None = None
    is_barrier: bool = False


MAP = Stage()
REDUCE = Stage(fixed_s=0.060, per_row_s=12e-6, num_tasks=None, rows_scale=0.5)


@dataclass(frozen=True, kw_only=True)
class Query:
    """One run of a query. ``addBatch`` of ``phases_s`` is what it takes without its stages."""

    name: str | None = "orders"
    query_id: str = "3f1c7e0a-0d51-4a0e-9d1d-1f2e3d4c5b6a"
    run_id: str = ""
    started_s: float = EPOCH_S + 20.0
    num_batches: int = 40
    first_batch_id: int = 0
    rate_per_s: float = 20_000.0
    trigger_s: float = 1.0
    partitions: int = 4
    phases_s: Mapping[str, float] = field(default_factory=lambda: PHASES_S)
    jobs: Sequence[Sequence[Stage]] = ((MAP, REDUCE),)
    num_swapped: int = 0  # of the first jobs, whose order is random
    noise: float = 0.02
    slowness: float = 1.0
    warm_up: Sequence[float] = ()  # slowness of the first batches
    start_delay_s: float = 0.002
    source: str = "KafkaV2[Subscribe[orders]]"
    sink: str = "ForeachBatchSink"
    operators: Sequence[str] = ("stateStoreSave",)
    file_rows: int = 0  # of each file, where the source reads such; 8 bytes a row
    load: Sequence[tuple[float, float]] = ()  # other rates, each from an instant of the run on
    is_adaptive: bool = False  # whether its plans say so
    quiet_triggers: tuple[int, int] = (0, 0)  # before each batch: its rows come after them
    seed: int = 1

    def arrived_rows(self, age_s: float) -> float:
        """Rows from the start of the run to an age of it."""
        steps = [(0.0, self.rate_per_s), *self.load]
        ends_s = [*(start_s for start_s, _ in self.load), math.inf]
        return sum(
            rate_per_s * max(min(age_s, end_s) - start_s, 0.0)
            for (start_s, rate_per_s), end_s in zip(steps, ends_s, strict=True)
        )

    @property
    def run(self) -> str:
        """The run's id, the same each time."""
        return self.run_id or str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self.query_id}{self.seed}"))


@dataclass(frozen=True, kw_only=True)
class Work:
    """One stage of a job whose tasks take given times; volumes are of each task."""

    task_s: Sequence[float] = (1.0, 1.0)
    parents: Sequence[int] = ()  # places in the job
    outside_s: float = 0.05
    rows: Sequence[int] = ()  # read, by task
    rows_written: int = 0
    input_bytes: int = 0
    shuffle_bytes: int = 0  # read, where there are parents, and written, where there are none
    spilled_bytes: int = 0
    peak_memory_bytes: int = 0
    python_s: float | None = None  # of all tasks


@dataclass(frozen=True, kw_only=True)
class DStreams:
    """A run of DStreams: each batch does the jobs, ``slowness`` times as long, one by one."""

    interval_s: float = 2.0
    num_batches: int = 60
    jobs: Sequence[Sequence[Work]] = (
        (Work(task_s=(0.2, 0.3), rows=(50, 100)), Work(task_s=(0.1,), parents=(0,))),
    )
    slowness: Sequence[float] = ()  # of the first batches
    noise: float = 0.05
    receiver: bool = False
    started_s: float = EPOCH_S + 20.0
    seed: int = 1


class AppLog:
    """The log of one application: queries are added one after the other."""

    def __init__(
        self, *, app_id: str = "app-20260925-0001", executors: Sequence[int] = (4,)
    ) -> None:
        self.num_slots = sum(executors)
        self.events: list[Event] = [
            {"Event": "SparkListenerLogStart", "Spark Version": "4.0.1"},
            {"Event": "SparkListenerResourceProfileAdded", "Resource Profile Id": 0},
            *(
                {
                    "Event": "SparkListenerExecutorAdded",
                    "Timestamp": _ms(EPOCH_S + number),
                    "Executor ID": str(number),
                    "Executor Info": {"Host": "[::1]", "Total Cores": cores},
                }
                for number, cores in enumerate(executors)
            ),
            {
                "Event": "SparkListenerEnvironmentUpdate",
                "Spark Properties": {
                    "spark.executor.memory": "3g",
                    "spark.hadoop.fs.s3a.secret.key": "hunter2",
                },
            },
            {
                "Event": "SparkListenerApplicationStart",
                "App Name": "orders job",
                "App ID": app_id,
                "Timestamp": _ms(EPOCH_S),
            },
        ]
        self._ids = {"job": count(), "stage": count(), "task": count(), "execution": count()}

    def add(self, query: Query) -> AppLog:
        """The events of a run; its batches follow Spark's trigger rule."""
        random = np.random.default_rng(query.seed)
        self.events.append(_lifecycle("QueryStartedEvent", query, name=query.name))
        taken, free_s = 0, query.started_s
        for number in range(query.num_batches):
            started_s = free_s
            if query.trigger_s:
                started_s = math.ceil(free_s / query.trigger_s - 1e-9) * query.trigger_s
            if any(query.quiet_triggers):
                started_s += query.trigger_s * int(random.integers(*query.quiet_triggers))
            started_s += query.start_delay_s
            arrived = int(query.arrived_rows(started_s - query.started_s))
            if number == 0:
                arrived += 1000
            slow = query.slowness
            slow *= query.warm_up[number] if number < len(query.warm_up) else 1.0
            free_s = self._batch(
                query,
                query.first_batch_id + number,
                started_s=started_s,
                rows=arrived - taken,
                slow=slow,
                random=random,
            )
            taken = arrived
        self.events.append(_lifecycle("QueryTerminatedEvent", query, exception=None))
        return self

    def add_job(
        self,
        stages: Sequence[Work],
        started_s: float,
        *,
        slowness: float = 1.0,
        batch_time_s: float | None = None,
        succeeded: bool = True,
    ) -> float:
        """The events of a job whose stages share the slots, first come first served; its end."""
        job_id = next(self._ids["job"])
        stage_ids = [next(self._ids["stage"]) for _ in stages]
        properties = {"spark.job.description": "words of secret-customer"}
        if batch_time_s is not None:
            properties["spark.streaming.internal.batchTime"] = str(_ms(batch_time_s))
            properties["spark.streaming.internal.outputOpId"] = "0"
        self.events.append(
            {
                "Event": "SparkListenerJobStart",
                "Job ID": job_id,
                "Submission Time": _ms(started_s),
                "Stage IDs": stage_ids,
                "Properties": properties,
            }
        )
        free_s = [started_s] * self.num_slots
        ends_s: list[float] = []
        for work, stage_id in zip(stages, stage_ids, strict=True):
            submitted_s = max([started_s, *(ends_s[parent] for parent in work.parents)])
            parents = [stage_ids[parent] for parent in work.parents]
            ends_s.append(self._work(work, stage_id, parents, submitted_s, free_s, slowness))
        ended_s = max(ends_s, default=started_s)
        result = "JobSucceeded" if succeeded else "JobFailed"
        self.events.append(
            {
                "Event": "SparkListenerJobEnd",
                "Job ID": job_id,
                "Completion Time": _ms(ended_s),
                "Job Result": {"Result": result},
            }
        )
        return ended_s

    def add_dstreams(self, run: DStreams) -> AppLog:
        """The events of a run of DStreams: batches queue for their turn."""
        random = np.random.default_rng(run.seed)
        if run.receiver:
            self.num_slots -= 1
        free_s = run.started_s
        for number in range(run.num_batches):
            time_s = run.started_s + number * run.interval_s
            slowness = run.slowness[number] if number < len(run.slowness) else 1.0
            slowness *= max(random.normal(1.0, run.noise), 0.5)
            free_s = max(free_s, time_s + 0.005)
            for stages in run.jobs:
                free_s = self.add_job(stages, free_s, slowness=slowness, batch_time_s=time_s)
        if run.receiver:
            self.num_slots += 1
            self.add_job([Work(task_s=(free_s - run.started_s,))], run.started_s)
        return self

    def end(self, at_s: float) -> AppLog:
        """The end of the application."""
        self.events.append({"Event": "SparkListenerApplicationEnd", "Timestamp": _ms(at_s)})
        return self

    @property
    def lines(self) -> list[str]:
        """The log's lines, without line ends."""
        return [json.dumps(event, separators=(",", ":")) for event in self.events]

    def of(self, kind: str) -> list[Event]:
        """The events of a kind; changing them changes the log."""
        return [event for event in self.events if event["Event"].endswith(kind)]

    def drop(self, *kinds: str) -> AppLog:
        """Without the events of some kinds."""
        self.events = [event for event in self.events if not event["Event"].endswith(kinds)]
        return self

    def _batch(
        self,
        query: Query,
        batch_id: int,
        *,
        started_s: float,
        rows: int,
        slow: float,
        random: np.random.Generator,
    ) -> float:
        phases_s = {name: seconds * slow for name, seconds in query.phases_s.items()}
        before_stages_s = sum(phases_s.values()) - phases_s.get("commitOffsets", 0.0)
        at_s = started_s + before_stages_s
        execution_id = next(self._ids["execution"])
        self.events.append(
            {
                "Event": "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart",
                "executionId": execution_id,
                "physicalPlanDescription": "== Physical Plan ==\n" + "Project [word#1]\n" * 100,
            }
        )
        if query.is_adaptive:
            self.events[-1] |= {
                "description": _batch_of(query, batch_id),
                "physicalPlanDescription": _ADAPTIVE_PLAN,
            }
        if query.file_rows:
            self.events[-1] |= _reads_files(query, batch_id)
            self.events.append(_files_read(execution_id, batch_id, rows, query.file_rows))
        swapped = random.permutation(query.num_swapped)
        in_order = [query.jobs[place] for place in swapped]
        for stages in [*in_order, *query.jobs[query.num_swapped :]]:
            at_s = self._job(query, batch_id, stages, at_s, rows=rows, slow=slow, random=random)
        stages_s = at_s - started_s - before_stages_s
        phases_s["addBatch"] = phases_s.get("addBatch", 0.0) + stages_s
        duration_ms = {name: round(1000 * seconds) for name, seconds in phases_s.items()}
        total_ms = sum(duration_ms.values())
        self.events.append(
            {
                "Event": PROGRESS,
                "progress": {
                    "id": query.query_id,
                    "runId": query.run,
                    "name": query.name,
                    "timestamp": _iso(started_s),
                    "batchId": batch_id,
                    "batchDuration": total_ms,
                    "durationMs": {"triggerExecution": total_ms, **duration_ms},
                    "eventTime": {},
                    "stateOperators": [
                        {
                            "operatorName": operator,
                            "numRowsTotal": 1000,
                            "commitTimeMs": 20 * query.partitions,
                            "numShufflePartitions": query.partitions,
                        }
                        for operator in query.operators
                    ],
                    "sources": [
                        {
                            "description": query.source,
                            "startOffset": None,
                            "endOffset": {"orders": {"0": batch_id}},
                            "numInputRows": rows,
                            "inputRowsPerSecond": "NaN",
                        }
                    ],
                    "sink": {"description": query.sink, "numOutputRows": -1},
                },
            }
        )
        return started_s + total_ms / 1000

    def _job(
        self,
        query: Query,
        batch_id: int,
        stages: Sequence[Stage],
        at_s: float,
        *,
        rows: int,
        slow: float,
        random: np.random.Generator,
    ) -> float:
        job_id = next(self._ids["job"])
        stage_ids = [next(self._ids["stage"]) for _ in stages]
        self.events.append(
            {
                "Event": "SparkListenerJobStart",
                "Job ID": job_id,
                "Submission Time": _ms(at_s),
                "Stage IDs": stage_ids,
                "Properties": {
                    "sql.streaming.queryId": query.query_id,
                    "streaming.sql.batchId": str(batch_id),
                    "spark.jobGroup.id": query.run,
                    "spark.sql.shuffle.partitions": str(query.partitions),
                },
            }
        )
        parents: list[int] = []
        for stage, stage_id in zip(stages, stage_ids, strict=True):
            if stage.reads_earlier_jobs:
                parents = [stage_id]
            at_s = self._stage(
                stage, stage_id, parents, query, at_s, rows=rows, slow=slow, random=random
            )
            parents = [stage_id]
        self.events.append({"Event": "SparkListenerJobEnd", "Job ID": job_id})
        return at_s

    def _stage(
        self,
        stage: Stage,
        stage_id: int,
        parents: list[int],
        query: Query,
        at_s: float,
        *,
        rows: int,
        slow: float,
        random: np.random.Generator,
    ) -> float:
        num_tasks = stage.num_tasks or query.partitions
        if stage.tasks_of_bytes is not None:
            read_bytes = round(rows * stage.rows_scale) * stage.bytes_per_row
            num_tasks = stage.tasks_of_bytes(read_bytes)
        shares = stage.shares or [1 / num_tasks] * num_tasks
        info: dict[str, Any] = {
            "Stage ID": stage_id,
            "Stage Attempt ID": 0,
            "Number of Tasks": num_tasks,
            "Parent IDs": parents,
            "Submission Time": _ms(at_s),
            "RDD Info": [
                {"RDD ID": 10 * stage_id + number, "Scope": json.dumps({"id": "1", "name": scope})}
                for number, scope in enumerate(stage.scopes)
            ],
        }
        if stage.is_barrier:
            info["RDD Info"].append({"RDD ID": 10 * stage_id + 9, "Barrier": True})
        if stage.resource_profile_id is not None:
            info["Resource Profile Id"] = stage.resource_profile_id
        self.events.append({"Event": "SparkListenerStageSubmitted", "Stage Info": dict(info)})
        free_s = [at_s] * (stage.slots or self.num_slots)
        for index, share in enumerate(shares):
            slot = free_s.index(min(free_s))
            task_rows = round((rows * stage.rows_scale + stage.static_rows) * share)
            took_s = (stage.fixed_s + stage.per_row_s * task_rows) * slow
            took_s *= max(random.normal(1.0, query.noise), 0.5)
            # Both times are whole milliseconds: to start on one leaves the rounding unbiased.
            launched_ms = round(1000 * free_s[slot])
            took_ms = int(1000 * took_s + random.random())
            free_s[slot] = (launched_ms + took_ms) / 1000
            self.events += _task(
                next(self._ids["task"]),
                stage_id,
                index,
                launched_ms=launched_ms,
                took_ms=took_ms,
                outside_ms=round(1000 * stage.fixed_s * slow * 0.5),
                read={
                    "rows": task_rows,
                    "shuffled": bool(parents),
                    "bytes": task_rows * stage.bytes_per_row,
                },
            )
        finished_s = max(free_s)
        self.events.append(
            {
                "Event": "SparkListenerStageCompleted",
                "Stage Info": {**info, "Completion Time": _ms(finished_s)},
            }
        )
        return finished_s

    def _work(
        self,
        work: Work,
        stage_id: int,
        parents: list[int],
        submitted_s: float,
        free_s: list[float],
        slowness: float,
    ) -> float:
        ended_s = submitted_s
        for index, task_s in enumerate(work.task_s):
            slot = free_s.index(min(free_s))
            launched_ms = _ms(max(free_s[slot], submitted_s))
            took_ms = round(1000 * task_s * slowness)
            free_s[slot] = (launched_ms + took_ms) / 1000
            ended_s = max(ended_s, free_s[slot])
            started, ended = _task(
                next(self._ids["task"]),
                stage_id,
                index,
                launched_ms=launched_ms,
                took_ms=took_ms,
                outside_ms=round(1000 * work.outside_s),
                read={"rows": work.rows[index] if work.rows else 0, "shuffled": bool(parents)},
            )
            _add_volumes(ended["Task Metrics"], work, shuffled=bool(parents))
            self.events += [started, ended]
        self.events.append(
            {
                "Event": "SparkListenerStageCompleted",
                "Stage Info": {
                    "Stage ID": stage_id,
                    "Stage Attempt ID": 0,
                    "Stage Name": "collect at /home/secret-customer/words.py:7",
                    "Number of Tasks": len(work.task_s),
                    "Parent IDs": parents,
                    "Submission Time": _ms(submitted_s),
                    "Completion Time": _ms(ended_s),
                    "Accumulables": []
                    if work.python_s is None
                    else [
                        {
                            "Name": "time to run Python workers",
                            "Value": str(round(1000 * work.python_s)),
                        }
                    ],
                },
            }
        )
        return ended_s


def _add_volumes(metrics: Event, work: Work, *, shuffled: bool) -> None:
    metrics["Executor CPU Time"] = round(0.5e6 * metrics["Executor Run Time"])
    metrics["JVM GC Time"] = round(0.25 * metrics["Executor Run Time"])
    metrics["Memory Bytes Spilled"] = work.spilled_bytes
    metrics["Disk Bytes Spilled"] = work.spilled_bytes // 2
    metrics["Peak Execution Memory"] = work.peak_memory_bytes
    metrics["Input Metrics"]["Bytes Read"] = work.input_bytes
    metrics["Shuffle Read Metrics"]["Remote Bytes Read"] = work.shuffle_bytes if shuffled else 0
    metrics["Shuffle Read Metrics"]["Local Bytes Read"] = 0
    metrics["Shuffle Write Metrics"] = {
        "Shuffle Bytes Written": 0 if shuffled else work.shuffle_bytes,
        "Shuffle Records Written": work.rows_written,
    }


def write_plain(lines: Iterable[str], path: Path) -> Path:
    """One file of JSON lines."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def write_gzip(lines: Iterable[str], path: Path) -> Path:
    """One gzip file."""
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
    return path


def write_zstd(lines: Sequence[str], path: Path, *, frames: int = 1) -> Path:
    """One zstd file of several frames, each a share of the lines."""
    size = math.ceil(len(lines) / frames)
    path.write_bytes(
        b"".join(
            zstandard.compress("".join(f"{line}\n" for line in lines[at : at + size]).encode())
            for at in range(0, len(lines), size)
        )
    )
    return path


def write_rolling(
    lines: Sequence[str], folder: Path, *, numbers: Sequence[int] = (1, 2, 10)
) -> Path:
    """A rolling folder; its parts sort in another order by name than by number."""
    folder.mkdir()
    size = math.ceil(len(lines) / len(numbers))
    for place, number in enumerate(numbers):
        part = lines[place * size : (place + 1) * size]
        write_zstd(part, folder / f"events_{number}_{folder.name}.zstd")
    (folder / f"appstatus_{folder.name}").touch()
    return folder


def _task(
    task_id: int,
    stage_id: int,
    index: int,
    *,
    launched_ms: int,
    took_ms: int,
    outside_ms: int,
    read: Mapping[str, int],
) -> list[Event]:
    info = {
        "Task ID": task_id,
        "Index": index,
        "Attempt": 0,
        "Launch Time": launched_ms,
        "Executor ID": "0",
        "Finish Time": 0,
        "Failed": False,
        "Killed": False,
        "Accumulables": [],
    }
    key = {"Stage ID": stage_id, "Stage Attempt ID": 0}
    of_source, of_shuffle = (0, read["rows"]) if read["shuffled"] else (read["rows"], 0)
    return [
        {"Event": "SparkListenerTaskStart", **key, "Task Info": info},
        {
            "Event": "SparkListenerTaskEnd",
            **key,
            "Task End Reason": {"Reason": "Success"},
            "Task Info": {**info, "Finish Time": launched_ms + took_ms},
            "Task Metrics": {
                "Executor Run Time": max(took_ms - outside_ms, 0),
                "Input Metrics": {"Bytes Read": 0, "Records Read": of_source},
                "Shuffle Read Metrics": {
                    "Total Records Read": of_shuffle,
                    "Local Bytes Read": read.get("bytes", 0),
                },
            },
        },
    ]


def _reads_files(query: Query, batch_id: int) -> Event:
    """What the start of an execution says of a batch that reads files, in a plan of its own."""
    names = ("number of files read", "scan time", "size of files read")
    metrics = [
        {"name": name, "accumulatorId": 10 * batch_id + place, "metricType": "sum"}
        for place, name in enumerate(names)
    ]
    scan = {"nodeName": "Scan parquet ", "children": [], "metrics": metrics}
    return {
        "description": _batch_of(query, batch_id),
        "sparkPlanInfo": {"nodeName": "Project", "children": [scan], "metrics": []},
    }


def _batch_of(query: Query, batch_id: int) -> str:
    return f"orders\nid = {query.query_id}\nrunId = {query.run}\nbatch = {batch_id}"


def _files_read(execution_id: int, batch_id: int, rows: int, file_rows: int) -> Event:
    return {
        "Event": "org.apache.spark.sql.execution.ui.SparkListenerDriverAccumUpdates",
        "executionId": execution_id,
        "accumUpdates": [[10 * batch_id, -(-rows // file_rows)], [10 * batch_id + 2, 8 * rows]],
    }


def _lifecycle(kind: str, query: Query, **more: object) -> Event:
    return {
        "Event": f"org.apache.spark.sql.streaming.StreamingQueryListener${kind}",
        "id": query.query_id,
        "runId": query.run,
        **more,
    }


def _ms(seconds: float) -> int:
    return round(1000 * seconds)


def _iso(seconds: float) -> str:
    return np.datetime_as_string(np.datetime64(_ms(seconds), "ms")) + "Z"
