"""Records the streaming queries of a running session, in the format of Spark's event log.

For jobs without an event log. A listener puts events into a queue. One thread takes them, reads
jobs, stages and tasks of each batch from the driver's status store, and appends lines to a file.
Names and units in that file are Spark's: milliseconds, nanoseconds, spaces in names.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import queue
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from headway.domain.argument_values import Count, Positive, path_of, require_running
from headway.errors import HeadwayError, InputError
from headway.formats.event_lines import tell_event
from headway.limits import MOST_LONG
from headway.profiler import schema
from headway.profiler.recording.driver_store import DriverStore, executor_added
from headway.profiler.recording.listener import DeferredEvent, recording_listener
from headway.profiler.recording.recorder_file import FileLostError, Json, RotatingFile
from headway.redaction import redact

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryListener

RECORDED_PROPERTIES = (
    *("spark.cores.max", "spark.default.parallelism", "spark.driver.cores", "spark.driver.memory"),
    *(f"spark.dynamicAllocation.{name}" for name in ("enabled", "maxExecutors", "minExecutors")),
    *("spark.executor.cores", "spark.executor.instances", "spark.executor.memory"),
    *("spark.executor.memoryOverhead", "spark.memory.fraction", "spark.memory.offHeap.size"),
    *("spark.sql.shuffle.partitions", "spark.task.cpus"),
)
"""The only configuration that is ever written: sizes, no addresses, nothing secret."""

_LOG = logging.getLogger("headway.recorder")
MOST_QUEUED = 1000
_EXECUTORS_EVERY_S = 10.0
_STOP_WITHIN_S = 10.0
_COUNT = Count(maximum=MOST_LONG)
_FILE = path_of("a file, e.g. 'orders.headway.jsonl'")
_COST_RATIO = Positive(words="a share above 0, at most 1", maximum=1.0)


def record(
    spark: SparkSession,
    path: str | Path,
    *,
    executors: int | None = None,
    cores_per_executor: int | None = None,
    max_bytes: int = 100_000_000,
    max_files: int = 5,
    max_cost_ratio: float = 0.01,
) -> Recorder:
    """Record the streaming queries of a session from now on, for ``headway profile`` to read.

    It neither delays queries nor makes them fail: later faults are counted in ``num_lost``. If the
    file is lost or its disk is full, it ends, logs an error, and says why in ``ended_because``.
    Progress is always recorded; jobs, stages and tasks only of as many batches as
    ``max_cost_ratio`` allows. It continues until it is stopped, or until its ``with`` block ends.
    Numbers out of range and a file to which another recorder writes raise an InputError, a file
    that cannot be written a HeadwayError.

    Parameters
    ----------
    spark : SparkSession
        Its own queries are recorded, not those of other sessions. With Spark Connect (4.0 or later)
        their progress can be recorded, but no stages and tasks.
    path : path
        The file to append to. If it is full, or contains another application, it becomes
        ``path.1``, which becomes ``path.2``, and so on.
    executors, cores_per_executor : int, optional
        For Spark Connect, where the driver cannot be asked; otherwise Spark's values are used.
    max_bytes : int, >= 1
        Size of a file, exceeded only by a single large batch. [bytes]
    max_files : int, >= 1
        Number of kept files, including the one being written.
    max_cost_ratio : float, > 0, <= 1
        Share of the session's cores that recording may take. If batches follow each other so fast
        that reading the tasks of each would take more, those of some are skipped and counted in
        ``num_passed_over``. With 1.0, all are recorded.
    """
    require_running(spark)
    file_path = _FILE.read(path, "path")
    max_bytes, max_files = _COUNT.read(max_bytes, "max_bytes"), _COUNT.read(max_files, "max_files")
    max_cost_ratio = _COST_RATIO.read(max_cost_ratio, "max_cost_ratio")
    of_cluster = {"executors": executors, "cores_per_executor": cores_per_executor}
    executors, cores_per_executor = (
        None if count is None else _COUNT.read(count, name) for name, count in of_cluster.items()
    )
    if (executors is None) != (cores_per_executor is None):
        raise InputError("executors and cores_per_executor go together; give both or neither")
    properties = {key: spark.conf.get(key, None) for key in RECORDED_PROPERTIES}
    started_ms = int(spark.conf.get("spark.app.startTime", None) or time.time_ns() // 1_000_000)
    recording_id = {"Recording ID": uuid.uuid4().hex}
    application: list[Json] = [
        {"Event": schema.RECORDER_START, **recording_id},
        {"Event": schema.LOG_START, "Spark Version": spark.version},
        {
            "Event": schema.APPLICATION_START,
            "App Name": redact(spark.conf.get("spark.app.name", None) or ""),
            "App ID": spark.conf.get("spark.app.id", None),
            "Timestamp": started_ms,
        },
        {
            "Event": schema.ENVIRONMENT,
            "Spark Properties": {key: text for key, text in properties.items() if text is not None},
        },
    ]
    driver: DriverStore | None = None
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        _require_listeners_on_this_side()
        cluster = [
            executor_added(str(number + 1), cores_per_executor or 0, started_ms)
            for number in range(executors or 0)
        ]
    else:
        driver = DriverStore(spark)
        cluster = driver.executor_events()
    try:
        file = RotatingFile(file_path, max_bytes, max_files)
        file.begin(application, cluster, [{"Event": schema.RECORDER_END, **recording_id}])
    except OSError as error:
        raise HeadwayError(
            f"{path}: cannot be written ({error.strerror}); expected a file in a folder that "
            "exists and has room"
        ) from error
    num_cores = 1 if driver is None else driver.num_cores
    return Recorder(spark, file, driver, max_cost_ratio * num_cores)


class Recorder:
    """A recording that continues until :meth:`stop`; created by :func:`record`.

    ``num_events`` were written, without those at the beginning of every file and at the end of the
    recording. ``num_lost`` are not in the file, since the queue was full or because of an error
    (``last_error`` is the last one). ``ended_because`` is the reason why it ended by itself, else
    None.
    For ``num_passed_over`` batches, jobs, stages and tasks were left out because of their cost.
    """

    def __init__(
        self, spark: SparkSession, file: RotatingFile, driver: DriverStore | None, work_cores: float
    ) -> None:
        self._spark, self._file, self._driver = spark, file, driver
        self._allowance = Allowance(work_cores)
        self._executors_asked_s = time.monotonic()
        # Bounded on insertion, since the end marker must always fit.
        self._queue: queue.SimpleQueue[DeferredEvent | None] = queue.SimpleQueue()
        self._counting = threading.Lock()
        self.num_events = self.num_lost = self._num_lost_reported = 0
        self.num_passed_over = self._num_passed_over_reported = 0
        self.last_error: Exception | None = None
        self.ended_because: str | None = None
        self._listener: StreamingQueryListener | None = recording_listener(self._hand_over)
        spark.streams.addListener(self._listener)
        self._thread = threading.Thread(target=self._run, name="headway-recorder", daemon=True)
        self._thread.start()
        atexit.register(self.stop)

    @property
    def path(self) -> Path:
        """The file that is written."""
        return self._file.path

    def stop(self) -> None:
        """Write what is known so far and detach from the session; at most 10 s; may be repeated."""
        atexit.unregister(self.stop)
        self._queue.put(None)
        self._thread.join(_STOP_WITHIN_S)
        if self._thread.is_alive():
            why = f"{self._file.path}: not flushed within {_STOP_WITHIN_S:.0f} s"
            self._lose(self._queue.qsize(), HeadwayError(why))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _hand_over(self, deferred: DeferredEvent) -> None:
        """The only work done in a callback."""
        if self._queue.qsize() < MOST_QUEUED:
            self._queue.put(deferred)
        else:
            self._lose(1)

    def _lose(self, number: int, error: Exception | None = None) -> None:
        with self._counting:
            self.num_lost += number
            self.last_error = error or self.last_error

    @contextlib.contextmanager
    def _survived(self) -> Iterator[None]:
        try:
            yield
        except FileLostError:
            raise
        except Exception as error:
            self._lose(1, error)

    def _run(self) -> None:
        try:
            while (deferred := self._queue.get()) is not None:
                self._record(deferred)
            self._leave()
            while not self._queue.empty():
                if (deferred := self._queue.get()) is not None:
                    self._record(deferred)
            if self._driver is not None:
                with self._survived():
                    for work in self._driver.work_due(at_the_end=True):
                        self._write(work)
            self._write([])
            self._file.finish()
        except FileLostError as error:
            self.ended_because = str(error)
            self._lose(1 + self._queue.qsize(), error)
            _LOG.error("%s; the queries go on", error)
            tell_event("recorder", "ended", self.ended_because)
            self._leave()
        finally:
            self._file.close()

    def _leave(self) -> None:
        listener, self._listener = self._listener, None
        # A stopped session no longer has a bus or listeners.
        with contextlib.suppress(Exception):
            if self._driver is not None:
                self._driver.wait_for_delivery()
        with contextlib.suppress(Exception):
            if listener is not None:
                self._spark.streams.removeListener(listener)

    def _record(self, deferred: DeferredEvent) -> None:
        with self._survived(), self._allowance.used():
            event = deferred()
            work: list[Json] = []
            if self._driver is not None:
                with self._survived():
                    self._update_executors(self._driver)
                    self.num_passed_over += self._driver.expect_work(
                        event, is_affordable=self._allowance.is_left()
                    )
                    for events in self._driver.work_before(event):
                        work += events
            self._write([*work, event])

    def _update_executors(self, driver: DriverStore) -> None:
        if time.monotonic() - self._executors_asked_s >= _EXECUTORS_EVERY_S:
            self._executors_asked_s = time.monotonic()
            self._write(self._file.news_of_cluster(driver.executor_events()))

    def _write(self, events: Sequence[Json]) -> None:
        if self._driver is not None:
            self._lose(self._driver.take_num_given_up())
        num_lost, num_passed_over = self.num_lost, self.num_passed_over
        if number := num_lost - self._num_lost_reported:
            events = [*events, {"Event": schema.RECORDER_LOST, "num_lost": number}]
        if number := num_passed_over - self._num_passed_over_reported:
            events = [*events, {"Event": schema.RECORDER_PASSED_OVER, "num_batches": number}]
        if events:
            self._file.append(events)
            self._num_lost_reported, self._num_passed_over_reported = num_lost, num_passed_over
            self.num_events += len(events)


def _require_listeners_on_this_side() -> None:
    import pyspark

    if int(pyspark.__version__.split(".")[0]) < 4:
        raise HeadwayError(
            f"PySpark {pyspark.__version__} runs listeners of Spark Connect on the server, where "
            "no file can be written; record with PySpark 4 or later, or keep an event log "
            "(spark.eventLog.enabled)"
        )


# Saved-up time for reading batches, so that a short burst of batches is recorded completely.
_MOST_SAVED_S = 0.1


class Allowance:
    """Allowed work time: a share of elapsed time, some of which can be saved up.

    0.01 ``cores`` is one percent of one core's time. Work time is wall time, i.e. at least the
    processor time of one thread here or in the JVM; on a busy machine it is longer, and less is
    done.

    >>> now_s = 0.0
    >>> allowance = Allowance(0.01, clock=lambda: now_s)
    >>> with allowance.used():
    ...     now_s += 0.15
    >>> allowance.is_left()
    False
    >>> now_s += 6.0
    >>> allowance.is_left()
    True
    """

    def __init__(self, cores: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._cores = cores
        self._clock = clock
        self._known_at_s = clock()
        self._left_s = _MOST_SAVED_S

    def is_left(self) -> bool:
        """Whether more work may be started now; it may then be finished."""
        now_s = self._clock()
        gained_s = self._cores * (now_s - self._known_at_s)
        self._known_at_s = now_s
        self._left_s = min(self._left_s + gained_s, _MOST_SAVED_S)
        return self._left_s > 0.0

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """Time inside the block counts as work."""
        begun_s = self._clock()
        try:
            yield
        finally:
            self._left_s -= self._clock() - begun_s
