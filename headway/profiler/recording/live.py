"""Batches of a running query as they end, from a growing log or from the query itself."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from headway.domain.live import Ended, LiveBatch
from headway.errors import EventLogError, InputError, argument
from headway.profiler import schema
from headway.profiler.events import read_line
from headway.profiler.executors import Executor
from headway.profiler.offsets import counts_rows, read_offset
from headway.profiler.recorded_queries import query_label
from headway.profiler.recording.growing_log import GrowingLog
from headway.profiler.rows import Record, batch_row, instant_s
from headway.profiler.schema import Progress, SparkEvent
from headway.profiler.stage_totals import seconds
from headway.profiler.streaming.adaptive import count_of
from headway.redaction import redact
from headway.units import counted, ms_to_s

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_AFTER_COMMIT = "commitOffsets"
_WHOLE = "triggerExecution"
_MOST_JUDGED = 50
_DECODE = msgspec.json.Decoder(Progress).decode
_IDLE = f'{{"Event":"{schema.QUERY_IDLE}"'.encode()
_PARTITIONS_KEY = "spark.sql.shuffle.partitions"
_ONE_QUERY = (
    "a supervised application has one query, and starts it from the same checkpointLocation each "
    "time"
)


class Feed(Protocol):
    """Source of the batches of one query."""

    def new_batches(self) -> Sequence[LiveBatch]:
        """Batches with rows that ended since the last call, in order."""

    def running_batch(self) -> tuple[float, int] | None:
        """When the batch that runs now began [s since 1970], and how far its sources had come.

        These rows are counted as ``available_rows`` of a `LiveBatch`. None as far as unknown.
        """

    @property
    def ended(self) -> Ended | None:
        """How the query has ended; None while it runs, as far as known."""

    @property
    def idle_s(self) -> float:
        """When it last had nothing to do, as far as known: an instant since 1970, or 0."""

    @property
    def executor_cores(self) -> Sequence[int]:
        """Cores of each current executor; empty if unknown."""

    @property
    def shuffle_partitions(self) -> int | None:
        """Shuffle partitions of the session; None if unknown."""


class LogFeed:
    """Batches of a query in a log that is still being written: a recorder's file, or an event log.

    ``query`` is its name or the beginning of its id, required if several run at the same time. If
    ``is_supervised``, the application is started by a tuner: its log may not exist yet, and has one
    query. In other logs, a query that starts after the followed one has ended takes its place, as a
    run of the same query from a new checkpoint does. EventLogError if there is no such log.
    """

    def __init__(
        self, path: str | Path, query: str | None = None, *, is_supervised: bool = False
    ) -> None:
        self._path, self._query, self._is_supervised = path, query, is_supervised
        self._log = None if is_supervised else GrowingLog(path)
        self._positions = _Positions()
        self._executors: dict[str, Executor] = {}
        self._partitions: int | None = None
        self._partitions_of: dict[str, int] = {}
        self._query_id: str | None = None
        self._label = ""
        self._ended: Ended | None = None

    def new_batches(self) -> list[LiveBatch]:
        """EventLogError if several queries run at the same time and none was named."""
        if self._log is None:
            path = Path(self._path)
            if not (path.exists() and path.stat().st_size):
                return []
            self._log = GrowingLog(path)
        batches: list[LiveBatch] = []
        for line in self._log.new_lines():
            if line.startswith(_IDLE):
                self._note_idle(line)
                continue
            name, event, _ = read_line(line) or (None, None, False)
            progress = event.progress if isinstance(event, schema.QueryProgress) else None
            if progress is None:
                self._note(name, event)
            elif self._is_ours(progress):
                if progress.query_id != self._query_id:
                    # The query before has ended, its offsets with it.
                    self._query_id, self._positions = progress.query_id, _Positions()
                    batches.clear()
                self._label = query_label(progress.query_id or "", progress.query_name)
                self._ended = None
                executors = list(self._executors.values())
                batch = live_batch(batch_row(progress), self._positions, executors)
                if batch is not None:
                    batches.append(batch)
        return batches

    def running_batch(self) -> None:
        """None: logs have batches that have ended."""

    @property
    def ended(self) -> Ended | None:
        """As it is recorded, or "unheard" if the log is no longer written to.

        Whether an application runs that a tuner starts, the tuner knows.
        """
        if self._is_supervised or self._log is None:
            return None
        return self._ended or (None if self._log.is_written else "unheard")

    @property
    def idle_s(self) -> float:
        return self._positions.idle_s

    @property
    def executor_cores(self) -> list[int]:
        return [executor.num_cores for executor in self._executors.values()]

    @property
    def shuffle_partitions(self) -> int | None:
        return self._partitions_of.get(self._query_id or "", self._partitions)

    def _note(self, name: str | None, event: SparkEvent | None) -> None:
        match event:
            case schema.ExecutorChange(executor_id=str(executor_id), info=info):
                if name == schema.EXECUTOR_REMOVED:
                    self._executors.pop(executor_id, None)
                elif info is not None:
                    added_s = seconds(event.timestamp_ms)
                    added = Executor(executor_id, info.num_cores or 1, added_s)
                    self._executors[executor_id] = added
            case schema.Environment(properties=dict(properties)):
                self._partitions = count_of(properties.get(_PARTITIONS_KEY)) or self._partitions
            case schema.JobEvent(properties=of_job) if of_job is not None and of_job.query_id:
                if (number := count_of(of_job.shuffle_partitions)) is not None:
                    self._partitions_of[of_job.query_id] = number
            case schema.QueryChange(query_id=str(query_id)) if name == schema.QUERY_TERMINATED:
                if query_id == self._query_id:
                    self._ended = "stopped" if event.exception is None else "failed"
            case schema.ApplicationEvent() if name == schema.APPLICATION_END:
                self._ended = self._ended or "stopped"

    def _note_idle(self, line: bytes) -> None:
        """An idle query says so every ten seconds, from Spark 3.5 on in an event of its own."""
        with contextlib.suppress(msgspec.DecodeError, AttributeError):
            event = msgspec.json.decode(line)
            if event.get("id") == self._query_id:
                self._positions.idle_s = instant_s(event.get("timestamp")) or 0.0

    def _is_ours(self, progress: Progress) -> bool:
        query_id, name = progress.query_id, progress.query_name
        if query_id is None:
            return False
        query = self._query
        if query is not None and name != redact(query) and not query_id.startswith(query):
            return False
        has_other = self._query_id not in (None, query_id)
        if has_other and (self._ended is None or self._is_supervised):
            labels = f"{self._label}, {query_label(query_id, name)}"
            cure = _ONE_QUERY if self._is_supervised else f"name one with {argument('query')}"
            raise EventLogError(f"{self._path}: has several queries ({labels}); {cure}")
        return True


class QueryFeed:
    """Batches of a query of this process, in a classic session; None until there is one."""

    def __init__(self, query: StreamingQuery | None = None) -> None:
        self._query = query
        self._positions = _Positions()
        self._last: tuple[str, int] | None = None

    def follow(self, query: StreamingQuery) -> None:
        """Continue with the same query after a change; its offsets continue.

        A restart makes it another object, which counts its batches anew.
        """
        if query is not self._query:
            self._query, self._last = query, None

    def new_batches(self) -> list[LiveBatch]:
        """At most the last hundred batches, which the query itself keeps."""
        query: Any = self._query
        last_progress = None if query is None else query._jsq.lastProgress()
        if last_progress is None or _place(last_progress) == self._last:
            return []
        recent = list(query._jsq.recentProgress())
        batch_keys = [_place(progress) for progress in recent]
        first = batch_keys.index(self._last) + 1 if self._last in batch_keys else 0
        self._last = batch_keys[-1]
        rows = (batch_row(_DECODE(progress.json())) for progress in recent[first:])
        executors = self._executors()
        batches = [live_batch(row, self._positions, executors) for row in rows]
        return [batch for batch in batches if batch is not None]

    def running_batch(self) -> tuple[float, int] | None:
        """From the query itself; unknown before Spark 4.1."""
        query: Any = self._query
        if query is None or not self._positions.count_rows:
            return None
        from py4j.protocol import Py4JError

        with contextlib.suppress(Py4JError):
            context = query._jsq.streamingQuery().getLatestExecutionContext()
            if not context.isCurrentBatchConstructed():
                return None
            # The instant that the progress of the batch will have.
            started_s = ms_to_s(int(context.currentTriggerStartTimestamp()))
            offsets = context.latestOffsets().values().iterator()
            sources = []
            while offsets.hasNext():
                sources.append(read_offset(str(offsets.next().json())))
            available_rows = _sum(sources)
            if available_rows is not None and len(sources) == self._positions.num_sources:
                return started_s, available_rows
        return None

    @property
    def ended(self) -> Ended | None:
        if self._query is None or self._query.isActive:
            return None
        return "stopped" if self._query.exception() is None else "failed"

    @property
    def idle_s(self) -> float:
        """Now, if no batch runs: only the query itself knows that at any time."""
        if self._query is None or self._query.status["isTriggerActive"]:
            return self._positions.idle_s
        return time.time()

    @property
    def executor_cores(self) -> list[int]:
        """From the driver's own store."""
        return [executor.num_cores for executor in self._executors()]

    def _executors(self) -> list[Executor]:
        query: Any = self._query
        if query is None:
            return []
        context = query._jsq.sparkSession().sparkContext()
        listed = context.statusStore().executorList(True)
        executors = []
        for summary in map(listed.apply, range(listed.size())):
            added_s = ms_to_s(int(summary.addTime().getTime()))
            executors.append(Executor(str(summary.id()), int(summary.totalCores()), added_s))
        return [executor for executor in executors if executor.num_cores > 0]

    @property
    def shuffle_partitions(self) -> int | None:
        query: Any = self._query
        execution = None if query is None else query._jsq.streamingQuery().lastExecution()
        if execution is None:
            return None
        return count_of(execution.sparkSession().conf().get(_PARTITIONS_KEY))


def query_of_session(spark: SparkSession, name: str | None = None) -> StreamingQuery:
    """The running query of a session, by its name or the beginning of its id.

    Raises InputError if there is none, or several and none was named; the message names them.
    """
    active = list(spark.streams.active)
    matches = [
        query
        for query in active
        if name is None or query.name == name or str(query.id).startswith(name)
    ]
    if len(matches) == 1:
        return matches[0]
    labels = ", ".join(query_label(str(query.id), query.name) for query in active) or "none runs"
    expected_query = "one running query" if name is None else f"a running query {name!r}"
    raise InputError(
        f"the session has {counted(len(active), 'running query', 'running queries')} ({labels}); "
        f"expected {expected_query}: give the query itself, or its name"
    )


class _Positions:
    """Position of a query in rows, once its offsets are known to count rows, and in time."""

    def __init__(self) -> None:
        self._pairs: list[Any] = []
        self._rows: list[float] = []
        self.count_rows, self.num_sources = False, 0
        self.idle_s = 0.0
        self._ran: tuple[str | None, float] | None = None

    def free_s(self, run_id: str | None, ended_s: float) -> float | None:
        """When the batch before the one that ended now had ended, if it was of the same run."""
        before, self._ran = self._ran, (run_id, ended_s)
        return before[1] if before is not None and before[0] == run_id else None

    def of(self, row: Record) -> tuple[int | None, int | None]:
        """Position after a batch, and what was available when the batch was planned."""
        start_offsets, end_offsets, latest_offsets = (
            [read_offset(source[name]) for source in row["sources"] or ()]
            for name in ("start_offset", "end_offset", "latest_offset")
        )
        if len(self._pairs) < _MOST_JUDGED:
            self._pairs.append(list(zip(start_offsets, end_offsets, strict=True)))
            self._rows.append(row["num_rows"] or 0.0)
        self.count_rows, self.num_sources = counts_rows(self._pairs, self._rows), len(end_offsets)
        if not self.count_rows:
            return None, None
        return _sum(end_offsets), _sum(latest_offsets)


def live_batch(
    row: Record, positions: _Positions, executors: Sequence[Executor] = ()
) -> LiveBatch | None:
    """A batch with rows from the table row of its progress; None for any other progress."""
    phases_s: Mapping[str, float | None] = row["phases_s"] or {}
    whole_s, started_s = phases_s.get(_WHOLE), row["started_s"]
    position, available = positions.of(row)
    if whole_s is None or started_s is None:
        return None
    ended_s = started_s + max(whole_s, 0.0)
    free_s = positions.free_s(row["run_id"], ended_s) if "addBatch" in phases_s else None
    if "addBatch" not in phases_s or not row["num_rows"]:
        positions.idle_s = ended_s
        return None
    partitions = [operator["shuffle_partitions"] for operator in row["stateful_operators"] or ()]
    starts_s = [executor.added_s for executor in executors if executor.added_s is not None]
    after_s = min(max(phases_s.get(_AFTER_COMMIT) or 0.0, 0.0), max(whole_s, 0.0))
    return LiveBatch(
        query_id=row["query_id"],
        run_id=row["run_id"] or "",
        query_name=row["query_name"],
        batch_id=row["batch_id"],
        started_s=started_s,
        committed_s=ended_s - after_s,
        ended_s=ended_s,
        num_rows=math.floor(row["num_rows"]),
        position_rows=position,
        available_rows=available,
        shuffle_partitions=max(filter(None, partitions), default=None),
        sink=row["sink"],
        num_cores=sum(executor.num_cores for executor in executors) or None,
        jvm_started_s=min(starts_s, default=None),
        free_s=free_s,
    )


def _sum(offsets: Sequence[Mapping[str, int] | None]) -> int | None:
    """Rows up to the offsets of all sources; None if those of one are unknown."""
    counts = [sum(of_source.values()) for of_source in offsets if of_source is not None]
    return sum(counts) if counts and len(counts) == len(offsets) else None


def _place(progress: Any) -> tuple[str, int]:
    """Batch of a Java progress object, and the time of the report."""
    return str(progress.timestamp()), int(progress.batchId())
