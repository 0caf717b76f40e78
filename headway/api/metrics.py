"""Metrics and events of gate, tuner, recorder and shedding, for the monitoring that is there."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from headway.api.schedule import ScheduleGate
from headway.api.shed import SheddingBatches
from headway.api.watch import Watcher
from headway.domain.argument_values import Count, Duration, of_class, path_of
from headway.errors import InputError, first_line
from headway.formats.event_lines import EventFile
from headway.formats.open_metrics import Metric, open_metrics_text, prometheus_text, spark_lines
from headway.formats.text_file import write_text
from headway.profiler.recording.recorder import Recorder
from headway.profiler.recording.shed_rows import ShedRows
from headway.report.live_metrics import (
    gate_metrics,
    recorder_metrics,
    shedding_metrics,
    tuner_metrics,
)
from headway.report.watched import look_metrics
from headway.runtime.metrics.publishing import close_page, page_server, registered_source
from headway.tuner.tuner import Tuner

if TYPE_CHECKING:
    from http.server import ThreadingHTTPServer

    from pyspark.sql import SparkSession

Publisher: TypeAlias = "ScheduleGate | Tuner | Recorder | Watcher | SheddingBatches"
_KINDS = (ScheduleGate, Tuner, Recorder, Watcher, SheddingBatches)
_MOST_UPDATES_PER_S = 1.0
_HOST = of_class(str, "an address of this machine, e.g. '127.0.0.1'")
_FILE = path_of("a file, e.g. 'headway.prom'")
_EVENTS = path_of("a file, e.g. 'decisions.jsonl'")


def publish_metrics(
    *publishers: Publisher,
    spark: SparkSession | None = None,
    port: int | None = None,
    host: str = "127.0.0.1",
    file: str | Path | None = None,
    events: str | Path | None = None,
    interval: float | str = 10.0,
) -> PublishedMetrics:
    """Publish what runs beside the queries: to Spark's metrics, at an address, in a file.

    Examples
    --------
    ::

        with headway.schedule(spark) as gate, headway.publish_metrics(
            gate, spark=spark, port=9464, events="decisions.jsonl"
        ) as metrics:
            gate.add(orders, target="p99 <= 2s")
            spark.streams.awaitAnyTermination()

    Parameters
    ----------
    publishers : objects
        What ``headway.schedule``, ``headway.tune``, ``headway.record``, ``headway.watch`` and
        ``headway.shedding_batches`` return; others are added by ``add``.
    spark : SparkSession, optional
        A classic session. Its sinks get the metrics as a source named ``headway``, and rows that
        its queries shed (:func:`headway.shed`) are counted.
    port : int, optional
        Answer ``GET /metrics`` with OpenMetrics text; 0 takes a free port.
    host : str
        Address for that, by default of this machine only; ``"0.0.0.0"`` for all.
    file : path, optional
        A file that is replaced every time, for a collector of text files; it ends in ``.prom``.
    events : path, optional
        A file to which each decision is appended as a line of JSON, with its reason. The same
        events are those of the Python log ``headway.events``.
    interval : float or str
        Time between two updates of Spark's metrics and of the file.

    Raises
    ------
    InputError
        If something else is given, or ``spark`` is a session of Spark Connect.
    HeadwayError
        If a port or a file cannot be used.
    """
    interval_s = Duration().read(interval, "interval")
    if interval_s * _MOST_UPDATES_PER_S < 1.0:
        raise InputError(f"interval is {interval!r}; expected a second or more")
    port = None if port is None else Count(minimum=0, maximum=65_535).read(port, "port")
    return PublishedMetrics(
        publishers,
        spark,
        port=port,
        host=_HOST.read(host, "host"),
        file=None if file is None else _FILE.read(file, "file"),
        events=None if events is None else _EVENTS.read(events, "events"),
        interval_s=interval_s,
    )


class PublishedMetrics:
    """Metrics that are published until :meth:`close`; made by :func:`publish_metrics`."""

    def __init__(
        self,
        publishers: Iterable[Publisher],
        spark: SparkSession | None,
        *,
        port: int | None,
        host: str,
        file: Path | None,
        events: Path | None,
        interval_s: float,
    ) -> None:
        self._publishers: list[Publisher] = []
        self._collecting = threading.Lock()
        self._shed_rows: ShedRows | None = None
        self._source: Any = None
        self._page: ThreadingHTTPServer | None = None
        self._events: EventFile | None = None
        self._file = file
        self.last_error: str | None = None
        """Why the last update that failed did; queries and later updates go on."""
        self._interval_s = interval_s
        self._closing = threading.Event()
        self._updates = threading.Thread(target=self._run, name="headway-metrics", daemon=True)
        try:
            for publisher in publishers:
                self.add(publisher)
            if spark is not None:
                self._source = registered_source(spark)
                self._shed_rows = ShedRows(spark)
            if events is not None:
                self._events = EventFile(events)
            if port is not None:
                self._page = page_server(self.text, port=port, host=host)
            if self._source is not None or self._file is not None:
                self._update()  # what cannot be published is said now
                self._updates.start()
        except BaseException:
            self.close()
            raise

    def add(self, publisher: Publisher) -> None:
        """Publish another gate, tuner, recorder, watcher or function that sheds batches.

        Raises InputError if it is something else.
        """
        if not isinstance(publisher, _KINDS):
            raise InputError(
                f"got {publisher!r}; expected what headway.schedule, tune, record, watch or "
                "shedding_batches returns"
            )
        self._publishers.append(publisher)

    def text(self) -> str:
        """All metrics as they are now, as OpenMetrics text."""
        return open_metrics_text(self.metrics())

    def metrics(self) -> list[Metric]:
        """All metrics as they are now, each name once."""
        merged: dict[str, Metric] = {}
        with self._collecting:
            published = list(chain.from_iterable(map(self._metrics_of, self._publishers)))
            counts = [] if self._shed_rows is None else self._shed_rows.counts()
            counts += [p.count for p in self._publishers if isinstance(p, SheddingBatches)]
        for metric in (*published, *shedding_metrics(counts)):
            _merge(merged, metric)
        return list(merged.values())

    @property
    def port(self) -> int | None:
        """The port that answers, if one does."""
        return None if self._page is None else int(self._page.server_address[1])

    def close(self) -> None:
        """Publish no more; may be repeated. What is published goes on."""
        self._closing.set()
        if self._updates.is_alive() and self._updates is not threading.current_thread():
            self._updates.join(timeout=10.0)
        if self._page is not None:
            close_page(self._page)
            self._page = None
        if self._shed_rows is not None:
            self._shed_rows.stop()
        if self._source is not None:
            try:
                self._source.remove()
            except Exception as error:  # the JVM may be gone, and its metrics with it
                self.last_error = first_line(error)
            self._source = None
        if self._events is not None:
            self._events.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _metrics_of(self, publisher: Publisher) -> Iterator[Metric]:
        """Those of a log or a JVM that is gone are left out; those of others are published."""
        try:
            match publisher:
                case ScheduleGate():
                    yield from gate_metrics(publisher.report())
                case Tuner():
                    yield from tuner_metrics(publisher)
                case Recorder():
                    yield from recorder_metrics(publisher)
                case Watcher():
                    yield from look_metrics(publisher.look())
        except Exception as error:  # whatever it is, the queries go on
            self.last_error = f"{type(error).__name__}: {first_line(error)}"

    def _run(self) -> None:
        while not self._closing.wait(self._interval_s):
            try:
                self._update()
            except Exception as error:  # whatever it is, the queries go on
                self.last_error = f"{type(error).__name__}: {first_line(error)}"

    def _update(self) -> None:
        metrics = self.metrics()
        if self._source is not None:
            self._source.put(spark_lines(metrics))
        if self._file is not None:
            write_text(self._file, prometheus_text(metrics), label="the metrics")


def _merge(merged: dict[str, Metric], metric: Metric) -> None:
    """Add the samples of a metric to those of the same name; of equal labels the first counts."""
    before = merged.get(metric.name)
    samples = dict(before.samples) if before else {}
    for labels, value in metric.samples:
        samples.setdefault(labels, value)
    merged[metric.name] = Metric(
        name=metric.name, kind=metric.kind, about=metric.about, samples=tuple(samples.items())
    )
