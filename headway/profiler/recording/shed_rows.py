"""Rows that the queries of a session shed, added up from what their batches report."""

from __future__ import annotations

import contextlib
import queue
import threading
from typing import TYPE_CHECKING

from headway.domain.recorded import ShedCount
from headway.profiler import schema
from headway.profiler.recording.listener import (
    DeferredEvent,
    recording_listener,
    with_named_metrics,
)
from headway.profiler.recording.recorder import MOST_QUEUED
from headway.profiler.recording.recorder_file import Json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ShedRows:
    """Counts of rows that were judged and shed, of each query, since this was made.

    What :func:`headway.shed` has marked, each batch reports under the name ``counted_as``. If
    counts are asked for so seldom that too many batches wait, the newest are left out.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._queue: queue.SimpleQueue[DeferredEvent] = queue.SimpleQueue()
        self._counts: dict[tuple[str, str], ShedCount] = {}
        self._counting = threading.Lock()
        self._listener = recording_listener(self._hand_over)
        spark.streams.addListener(self._listener)

    def counts(self) -> list[ShedCount]:
        """The counts so far, by query and rule."""
        with self._counting:
            while not self._queue.empty():
                with contextlib.suppress(Exception):  # an event of a JVM that is gone
                    self._add(self._queue.get()())
            return list(self._counts.values())

    def stop(self) -> None:
        """Count no more; may be repeated."""
        with contextlib.suppress(Exception):  # a stopped session has no listeners
            self._spark.streams.removeListener(self._listener)

    def _hand_over(self, deferred: DeferredEvent) -> None:
        """The only work done in a callback."""
        if self._queue.qsize() < MOST_QUEUED:
            self._queue.put(deferred)

    def _add(self, event: Json) -> None:
        if event["Event"] != schema.QUERY_PROGRESS:
            return
        progress = with_named_metrics(event["progress"])
        label = progress.get("name") or str(progress.get("id"))
        for rule, observed in (progress.get("observedMetrics") or {}).items():
            if not {"rows", "shed"} <= set(observed or ()):
                continue
            before = self._counts.get((label, rule))
            self._counts[label, rule] = ShedCount(
                query=label,
                rule=rule,
                num_rows=observed["rows"] + (before.num_rows if before else 0),
                num_shed=observed["shed"] + (before.num_shed if before else 0),
            )
