"""Sources -> contents: finds the logs, unpacks them, and reads them with an engine."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from headway.domain.log_questions import DEFAULT_MASTER, LogsQuestion, ProfileQuestion
from headway.errors import InputError, MissingPackagesError, SparkUnavailableError
from headway.lazy_classes import dataclass
from headway.profiler.collect import Finish, collect
from headway.profiler.contents import CollectedLogs
from headway.profiler.engines import on_spark
from headway.profiler.engines.in_process import read_in_process
from headway.profiler.logs.event_logs import nothing_read
from headway.profiler.logs.limits import UnpackLimits
from headway.profiler.logs.sources import EventLog, LogFailure, find_event_logs
from headway.profiler.logs.through_spark import unpack_with_spark
from headway.profiler.logs.unpacking import unpack
from headway.profiler.pieces import Engine, OnProgress, Piece, pieces_of
from headway.profiler.streaming.log_runs import with_runs
from headway.profiler.work_folder import signals_end_the_block, work_folder
from headway.units import parse_size_bytes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IN_PROCESS_BYTES = parse_size_bytes("8g")  # of local logs; compressed ones count tenfold

_TELL_EVERY_S = 0.1
_LOOK_EVERY_S = 0.5


Tell: TypeAlias = Callable[[str, float | None], None]  # the activity, and its completed share


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
    Raises EventLogError if none of the sources can be read; InputError if Spark is described
    although its engine is not used; SparkUnavailableError or MissingPackagesError if only Spark can
    read them, and there is no Java, or no package of ``headway[spark]``.
    """
    engine, master, session = question.engine, question.master, question.session
    limits = UnpackLimits()
    tell: Tell = question.progress or (lambda _text, _done: None)
    asks_for_spark = session is not None or bool(question.conf) or master != DEFAULT_MASTER
    if engine == "in-process" and asks_for_spark:
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
        needs_spark = engine == "spark" or asks_for_spark or bool(unpacked.pending)
        events_bytes = sum(piece.events_bytes for piece in pieces_of(folder))
        if engine == "in-process" or not (needs_spark or events_bytes > IN_PROCESS_BYTES):
            unpacked.refuse_pending(
                "only Spark can fetch it; choose another engine than in-process"
            )
        elif session is None:
            session = _started(stack, question, tell, is_needed=needs_spark)
        if session is not None and unpacked.pending:
            tell("fetching", None)
            unpack_with_spark(session, unpacked)
        pieces = pieces_of(folder)
        tell("reading events", None)
        if session is None:
            reader: Engine = partial(read_in_process, on_progress=_progress_of(pieces, tell))
        else:
            tell = stack.enter_context(_watched(session, tell))
            reader = partial(on_spark.read_on_spark, session)
        collected = collect(
            pieces, reader, limits, lambda app: _finish_of(question, unpacked.logs[app].name)
        )
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


def _finish_of(question: LogsQuestion, log_name: str) -> Finish:
    """Measures the runs of a log's queries as the question has them, where the log is read."""
    if isinstance(question, ProfileQuestion):
        queries, trigger_s = question.queries, question.trigger_s
        return partial(with_runs, name=log_name, queries=queries, trigger_s=trigger_s)
    return partial(with_runs, name=log_name)


def _started(
    stack: contextlib.ExitStack, question: LogsQuestion, tell: Tell, *, is_needed: bool
) -> SparkSession | None:
    """A session; None if Java or packages for one are missing and processes here are sufficient."""
    # Most logs are read without Spark.
    from headway.profiler.spark import session as spark_session

    conf = on_spark.local_session_conf() if question.master.startswith("local") else {}
    try:
        on_spark.require_spark_packages()
        tell("starting Spark", None)
        return stack.enter_context(
            spark_session.embedded_session(
                master=question.master,
                app_name="headway profile",
                extra_conf=conf | dict(question.conf),
            )
        )
    except (MissingPackagesError, SparkUnavailableError):
        if is_needed:
            raise
        return None


def _progress_of(pieces: Sequence[Piece], tell: Tell) -> OnProgress:
    """Tells how much of the pieces has been read, how fast, and the remaining time."""
    total_bytes = max(sum(piece.size_bytes for piece in pieces), 1)
    begun_s = reported_s = time.monotonic()
    num_bytes = num_all_events = 0
    lock = threading.Lock()

    def report(read_bytes: int, num_events: int) -> None:
        """Add bytes that were read, and events in them; from any thread."""
        nonlocal reported_s, num_bytes, num_all_events
        with lock:
            # If ends of tasks occur twice, a log is read again.
            num_bytes = min(num_bytes + read_bytes, total_bytes)
            num_all_events += num_events
            now_s = time.monotonic()
            if now_s - reported_s < _TELL_EVERY_S:
                return
            reported_s = now_s
            passed_s = now_s - begun_s
            done = num_bytes / total_bytes
            left_s = passed_s / done - passed_s if done else 0.0
            tell(
                f"reading {num_bytes / 1e6:,.0f} of {total_bytes / 1e6:,.0f} MB, "
                f"{num_all_events / passed_s:,.0f} events/s, {left_s:.0f} s left",
                done,
            )

    return report


@contextlib.contextmanager
def _watched(spark: SparkSession, tell: Tell) -> Iterator[Tell]:
    """A ``tell`` that keeps reporting how many tasks of the running stages are done."""
    step = ""
    ended = threading.Event()

    def report(text: str, done: float | None) -> None:
        nonlocal step
        step = text
        tell(text, done)

    def look() -> None:
        tracker = spark.sparkContext.statusTracker()
        while not ended.wait(_LOOK_EVERY_S):
            # Spark may be stopping; the display does not matter then.
            with contextlib.suppress(Exception):
                stages = map(tracker.getStageInfo, tracker.getActiveStageIds())
                stage_infos = [info for info in stages if info is not None]
                num_done = sum(info.numCompletedTasks for info in stage_infos)
                num_tasks = sum(info.numTasks for info in stage_infos)
                if stage_infos and step:
                    tell(step, num_done / max(num_tasks, 1))

    watcher = threading.Thread(target=look, name="headway-progress", daemon=True)
    watcher.start()
    try:
        yield report
    finally:
        ended.set()
        watcher.join()
