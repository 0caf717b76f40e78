"""Sources -> events: finds the logs, unpacks them while Spark starts, and parses them once."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from headway.errors import EventLogError
from headway.profiler.logs.limits import UnpackLimits
from headway.profiler.logs.sources import EventLog, LogFailure, find_event_logs
from headway.profiler.logs.through_spark import unpack_with_spark
from headway.profiler.logs.unpacking import Unpacked, unpack

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOOK_EVERY_S = 0.5
_AT_ONCE_S = 0.05
_SAVING = "saving Spark's classes, once: later starts take half the time"
_MOST_LISTED = 8


class Tell(Protocol):
    """Is told what is being done, and to which share it is done, where that is known."""

    def __call__(self, text: str, done: float | None = None) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LogsRead:
    """Logs whose events can be worked with, and those that could not be read."""

    events: DataFrame
    logs: Mapping[int, EventLog]
    failures: tuple[LogFailure, ...]
    tell: Tell


@contextlib.contextmanager
def read_logs(
    sources: Sequence[str | Path],
    *,
    master: str,
    conf: Mapping[str, str],
    session: SparkSession | None,
    limits: UnpackLimits,
    tell: Tell,
) -> Iterator[LogsRead]:
    """The events of all logs that the sources stand for, as long as the block lasts.

    Parameters
    ----------
    sources : sequence of str or Path
        What :func:`headway.profiler.logs.sources.find_event_logs` understands.
    master : str
        Spark master to read with, when no session is given.
    conf : mapping of str to str
        Spark properties of the session that is started then.
    session : SparkSession or None
        A running session to use instead of starting one.
    limits : UnpackLimits
        What one log may grow to.
    tell : Tell
        Is told of each step.

    Raises
    ------
    EventLogError
        If none of the sources can be read.
    SparkUnavailableError
        If there is no Java to run Spark with.
    """
    found = find_event_logs(sources)
    if not found.logs:
        raise EventLogError(_listed(found.failures))
    with tempfile.TemporaryDirectory(prefix="headway-logs-") as folder:
        work_folder = Path(folder)
        with (
            _unpacking(found.logs, work_folder, limits) as unpacked,
            _session(session, master, conf, tell, unless=lambda: _is_in_vain(unpacked)) as spark,
        ):
            tell("unpacking")
            done = unpacked.result()
            if done.pending and spark is not None:
                done = unpack_with_spark(spark, done, work_folder, limits=limits)
            failures = (*found.failures, *done.failures)
            if not done.logs or spark is None:
                raise EventLogError(_listed(failures))
            from headway.profiler.events import read_events

            # Kept as rows: to keep them as columns, code for this wide schema would be compiled.
            events = read_events(spark, work_folder).localCheckpoint(eager=False)
            with _watched(spark, tell) as told:
                yield LogsRead(events=events, logs=done.logs, failures=failures, tell=told)


@contextlib.contextmanager
def _unpacking(
    logs: Sequence[EventLog], work_folder: Path, limits: UnpackLimits
) -> Iterator[Future[Unpacked]]:
    """Unpacks in the background: it needs no Spark, and Spark takes as long to start."""
    leaving = threading.Event()

    def go_on(_done_bytes: int, _total_bytes: int) -> None:
        if leaving.is_set():
            raise CancelledError

    with ThreadPoolExecutor(max_workers=1) as unpacker:
        try:
            yield unpacker.submit(unpack, logs, work_folder, limits=limits, told=go_on)
        finally:
            leaving.set()


def _is_in_vain(unpacked: Future[Unpacked]) -> bool:
    """Whether it shows at once that no log can be read: Spark need not start for that."""
    try:
        done = unpacked.result(timeout=_AT_ONCE_S)
    except TimeoutError:
        return False
    return not done.logs and not done.pending


@contextlib.contextmanager
def _session(
    session: SparkSession | None,
    master: str,
    conf: Mapping[str, str],
    tell: Tell,
    *,
    unless: Callable[[], bool],
) -> Iterator[SparkSession | None]:
    if session is not None or unless():
        yield session
        return
    from headway.profiler.events import local_session_conf
    from headway.profiler.spark.session import embedded_session

    tell("starting Spark")
    # What makes profiles of events loads as long as a JVM connects.
    threading.Thread(target=import_module, args=("headway.profiler.survey",)).start()
    with embedded_session(
        master=master,
        app_name="headway profile",
        extra_conf={**(local_session_conf() if master.startswith("local") else {}), **conf},
        # A machine that is made anew for each run would save them in vain.
        announce_class_saving=None if os.environ.get("CI") else partial(tell, _SAVING),
    ) as spark:
        yield spark


@contextlib.contextmanager
def _watched(spark: SparkSession, tell: Tell) -> Iterator[Tell]:
    """A ``tell`` that keeps telling how many tasks of the running stages are done."""
    step = ""
    ended = threading.Event()

    def told(text: str, done: float | None = None) -> None:
        nonlocal step
        step = text
        tell(text, done)

    def look() -> None:
        tracker = spark.sparkContext.statusTracker()
        while not ended.wait(_LOOK_EVERY_S):
            # Spark may be stopping; what is shown does not matter then.
            with contextlib.suppress(Exception):
                infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
                known = [info for info in infos if info is not None]
                if known and step:
                    tell(
                        step,
                        sum(info.numCompletedTasks for info in known)
                        / max(sum(info.numTasks for info in known), 1),
                    )

    watcher = threading.Thread(target=look, name="headway-progress", daemon=True)
    watcher.start()
    try:
        yield told
    finally:
        ended.set()
        watcher.join()


def _listed(failures: Sequence[LogFailure]) -> str:
    lines = [f"{failure.name}: {failure.why}" for failure in failures[:_MOST_LISTED]]
    if len(failures) > _MOST_LISTED:
        lines.append(f"and {len(failures) - _MOST_LISTED} more")
    return "\n".join(lines)
