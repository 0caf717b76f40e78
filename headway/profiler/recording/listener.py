"""The listener of a recorder, and the events of queries as lines of an event log."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from headway.profiler import schema
from headway.profiler.recording.recorder_file import LEFT_OUT_TEXT, Json
from headway.redaction import redact

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryListener

_LONGEST_NAME = 10_000
DeferredEvent: TypeAlias = Callable[[], Json]
"""An event that is not yet serialized; calling it does so, which may need calls to the JVM."""


def recording_listener(hand_over: Callable[[DeferredEvent], None]) -> StreamingQueryListener:
    """A listener that hands over each event of a query, and does nothing else in the callback."""
    from pyspark import SparkContext
    from pyspark.sql.streaming import listener as events

    class FromJava:
        """Called by the JVM with its own events, which are serialized in the recorder's thread."""

        def onQueryStarted(self, event: Any) -> None:  # noqa: N802
            hand_over(lambda: _started(events.QueryStartedEvent.fromJObject(event)))

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802
            hand_over(lambda: _progress(event.progress().json()))

        def onQueryIdle(self, event: Any) -> None:  # noqa: N802
            hand_over(lambda: _idle(events.QueryIdleEvent.fromJObject(event)))

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
            hand_over(lambda: _terminated(events.QueryTerminatedEvent.fromJObject(event)))

        class Java:
            implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)

    class Listener(events.StreamingQueryListener):
        """Called by PySpark if there is no JVM that can call the recorder directly."""

        def onQueryStarted(self, event: events.QueryStartedEvent) -> None:  # noqa: N802
            hand_over(lambda: _started(event))

        def onQueryProgress(self, event: events.QueryProgressEvent) -> None:  # noqa: N802
            hand_over(lambda: _progress(event.progress.json))

        def onQueryIdle(self, event: events.QueryIdleEvent) -> None:  # noqa: N802
            hand_over(lambda: _idle(event))

        def onQueryTerminated(self, event: events.QueryTerminatedEvent) -> None:  # noqa: N802
            hand_over(lambda: _terminated(event))

        # PySpark's own listener would parse every progress before the call: some hundred calls to
        # the JVM for every listener and batch.
        @cached_property
        def _jlistener(self) -> Any:
            jvm: Any = SparkContext._jvm
            streaming = jvm.org.apache.spark.sql.streaming
            return streaming.PythonStreamingQueryListenerWrapper(FromJava())

    return Listener()


def _started(event: Any) -> Json:
    return {
        "Event": schema.QUERY_STARTED,
        "id": str(event.id),
        "runId": str(event.runId),
        "name": None if event.name is None else redact(event.name),
        "timestamp": event.timestamp,
    }


def _idle(event: Any) -> Json:
    ids = {"id": str(event.id), "runId": str(event.runId)}
    return {"Event": schema.QUERY_IDLE, **ids, "timestamp": event.timestamp}


def _progress(text: str) -> Json:
    """A query's progress as it is recorded: what the application named is redacted."""
    progress = json.loads(text)
    for part, key in (
        (progress, "name"),
        *((source, "description") for source in progress.get("sources") or ()),
        (progress.get("sink") or {}, "description"),
        *((operator, "operatorName") for operator in progress.get("stateOperators") or ()),
    ):
        if isinstance(part.get(key), str):
            part[key] = redact(part[key], longest=_LONGEST_NAME)
    return {"Event": schema.QUERY_PROGRESS, "progress": with_named_metrics(progress)}


def with_named_metrics(progress: Json) -> Json:
    """A query's progress with the values of its observed metrics by their names.

    A client of Spark Connect 4.3 that asks for progress gets the values, and their schema.

    >>> schema = {"type": "struct", "fields": [{"name": "rows"}, {"name": "shed"}]}
    >>> metrics = {"marked": {"values": [20, 3], "schema": schema}, "ordered": {"tied": 1}}
    >>> with_named_metrics({"batchId": 7, "observedMetrics": metrics})["observedMetrics"]
    {'marked': {'rows': 20, 'shed': 3}, 'ordered': {'tied': 1}}
    """
    observed = progress.get("observedMetrics")
    if not observed:
        return progress
    named = {name: _by_name(row) for name, row in observed.items()}
    return {**progress, "observedMetrics": named}


def _by_name(row: Any) -> Any:
    match row:
        case {"values": [*values], "schema": {"fields": [*fields]}}:
            return {field["name"]: value for field, value in zip(fields, values, strict=True)}
    return row


def _terminated(event: Any) -> Json:
    return {
        "Event": schema.QUERY_TERMINATED,
        "id": str(event.id),
        "runId": str(event.runId),
        # Its text may contain anything, including data and passwords.
        "exception": None if event.exception is None else LEFT_OUT_TEXT,
        "errorClassOnException": event.errorClassOnException,
    }
