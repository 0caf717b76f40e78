"""Sources -> contents: finds the logs, unpacks them, and reads them with an engine."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from headway.domain.log_questions import DEFAULT_MASTER, LogEngine, LogsQuestion
from headway.errors import InputError, MissingPackagesError, SparkUnavailableError
from headway.profiler.collect import CollectedLogs, collect
from headway.profiler.engines import Engine
from headway.profiler.engines.in_process import InProcess
from headway.profiler.logs.event_logs import nothing_read
from headway.profiler.logs.limits import UnpackLimits
from headway.profiler.logs.sources import EventLog, LogFailure, find_event_logs
from headway.profiler.logs.unpacking import Unpacked, unpack
from headway.profiler.pieces import Piece, pieces_of
from headway.profiler.work_folder import signals_end_the_block, work_folder
from headway.units import parse_size_bytes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IN_PROCESS_BYTES = parse_size_bytes("8g")
"""Local logs up to this size are read in process; compressed files count tenfold."""

_TELL_EVERY_S = 0.1
_LOOK_EVERY_S = 0.5


class Tell(Protocol):
    """Called with the current activity, and its completed share if known."""

    def __call__(self, text: str, done: float | None = None) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LogsRead:
    """Contents of logs, and why others could not be read; ``engine`` can read the pieces again."""

    collected: CollectedLogs
    logs: Mapping[int, EventLog]
    failures: tuple[LogFailure, ...]
    pieces: Sequence[Piece]
    engine: Engine
    tell: Tell


@contextlib.contextmanager
def read_logs(sources: Sequence[str | Path], question: LogsQuestion) -> Iterator[LogsRead]:
    """Contents of all logs of the sources; they can be read again within the block.

    Master and properties are for the session that is started if one is needed and none is given.

    Raises
    ------
    EventLogError
        If none of the sources can be read.
    InputError
        If Spark is described although its engine is not used.
    SparkUnavailableError, MissingPackagesError
        If only Spark can read them, and there is no Java, or no package of ``headway[logs]``.
    """
    engine, master, session = question.engine, question.master, question.session
    conf, limits = dict(question.conf), UnpackLimits()
    tell: Tell = question.progress or (lambda _text, _done=None: None)
    asks_for_spark = session is not None or bool(conf) or master != DEFAULT_MASTER
    if engine is LogEngine.IN_PROCESS and asks_for_spark:
        raise InputError(
            "a Spark session, master or property is for reading with Spark; leave it out, or "
            "the engine in-process"
        )
    found_logs = find_event_logs(sources)
    with contextlib.ExitStack() as stack:
        stack.enter_context(signals_end_the_block())
        folder = stack.enter_context(work_folder("logs"))
        on_this_machine = session is None and master.startswith("local")
        unpacked = unpack(
            found_logs.logs,
            folder,
            limits=limits,
            on_progress=lambda done, total: tell("unpacking", done / max(total, 1)),
            stay_packed=on_this_machine,
        )
        if not unpacked.logs and not unpacked.pending:
            raise nothing_read((*found_logs.failures, *unpacked.failures))
        with_spark = engine is LogEngine.SPARK or (
            engine is LogEngine.AUTO
            and (
                asks_for_spark
                or bool(unpacked.pending)
                or sum(piece.events_bytes for piece in pieces_of(folder)) > IN_PROCESS_BYTES
            )
        )
        if not with_spark:
            unpacked = _without_pending(unpacked)
        elif session is None:
            session = _started(
                stack,
                master,
                conf,
                tell,
                is_needed=engine is LogEngine.SPARK or asks_for_spark or bool(unpacked.pending),
            )
        if session is not None and unpacked.pending:
            from headway.profiler.logs.through_spark import unpack_with_spark

            tell("fetching")
            unpacked = unpack_with_spark(session, unpacked, folder, limits=limits)
        pieces = pieces_of(folder)
        tell("reading events")
        if session is None:
            reader: Engine = InProcess(_Progress(pieces, tell).report)
        else:
            from headway.profiler.engines.on_spark import OnSpark

            tell = stack.enter_context(_watched(session, tell))
            reader = OnSpark(session)
        collected = collect(pieces, reader, limits)
        failures = (
            *found_logs.failures,
            *unpacked.failures,
            *(LogFailure(unpacked.logs[app].name, why) for app, why in collected.failures.items()),
        )
        logs = {app: log for app, log in unpacked.logs.items() if app not in collected.failures}
        if not logs:
            raise nothing_read(failures)
        yield LogsRead(
            collected=collected,
            logs=logs,
            failures=failures,
            pieces=pieces,
            engine=reader,
            tell=tell,
        )


def _without_pending(unpacked: Unpacked) -> Unpacked:
    why = "only Spark can fetch it; choose another engine than in-process"
    refused = [LogFailure(log.name, why) for log in unpacked.pending.values()]
    return Unpacked(unpacked.logs, {}, (*unpacked.failures, *refused))


def _started(
    stack: contextlib.ExitStack,
    master: str,
    conf: Mapping[str, str],
    tell: Tell,
    *,
    is_needed: bool,
) -> SparkSession | None:
    """A session; None if Java or packages for one are missing and processes here are sufficient."""
    from headway.profiler.engines.on_spark import local_session_conf, require_arrow
    from headway.profiler.spark.session import embedded_session

    try:
        require_arrow()
        tell("starting Spark")
        return stack.enter_context(
            embedded_session(
                master=master,
                app_name="headway profile",
                extra_conf={**(local_session_conf() if master.startswith("local") else {}), **conf},
            )
        )
    except (MissingPackagesError, SparkUnavailableError):
        if is_needed:
            raise
        return None


class _Progress:
    """Reports how much of the pieces has been read, how fast, and the remaining time."""

    def __init__(self, pieces: Sequence[Piece], tell: Tell) -> None:
        self._total_bytes = max(sum(piece.size_bytes for piece in pieces), 1)
        self._tell = tell
        self._begun_s = time.monotonic()
        self._reported_s = self._begun_s
        self._read_bytes = 0
        self._num_events = 0
        self._lock = threading.Lock()

    def report(self, read_bytes: int, num_events: int) -> None:
        """Add bytes that were read, and events in them; from any thread."""
        with self._lock:
            # If ends of tasks occur twice, a log is read again.
            self._read_bytes = min(self._read_bytes + read_bytes, self._total_bytes)
            self._num_events += num_events
            now_s = time.monotonic()
            if now_s - self._reported_s < _TELL_EVERY_S:
                return
            self._reported_s = now_s
            passed_s = now_s - self._begun_s
            done = self._read_bytes / self._total_bytes
            left_s = passed_s / done - passed_s if done else 0.0
            self._tell(
                f"reading {self._read_bytes / 1e6:,.0f} of {self._total_bytes / 1e6:,.0f} MB, "
                f"{self._num_events / passed_s:,.0f} events/s, {left_s:.0f} s left",
                done,
            )


@contextlib.contextmanager
def _watched(spark: SparkSession, tell: Tell) -> Iterator[Tell]:
    """A ``tell`` that keeps reporting how many tasks of the running stages are done."""
    step = ""
    ended = threading.Event()

    def report(text: str, done: float | None = None) -> None:
        nonlocal step
        step = text
        tell(text, done)

    def look() -> None:
        tracker = spark.sparkContext.statusTracker()
        while not ended.wait(_LOOK_EVERY_S):
            # Spark may be stopping; the display does not matter then.
            with contextlib.suppress(Exception):
                infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
                stage_infos = [info for info in infos if info is not None]
                if stage_infos and step:
                    tell(
                        step,
                        sum(info.numCompletedTasks for info in stage_infos)
                        / max(sum(info.numTasks for info in stage_infos), 1),
                    )

    watcher = threading.Thread(target=look, name="headway-progress", daemon=True)
    watcher.start()
    try:
        yield report
    finally:
        ended.set()
        watcher.join()
