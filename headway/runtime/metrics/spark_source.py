"""Headway's metrics in Spark's own metrics system, for each sink that is configured there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headway.errors import first_line
from headway.formats.open_metrics import Metric, spark_lines
from headway.runtime.given import require_no_connect
from headway.runtime.jars import class_loader, shipped_jar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkSource:
    """A source named ``headway`` of the driver; values are those that were put into it last."""

    def __init__(self, spark: SparkSession) -> None:
        require_no_connect(
            spark,
            "gives no access to Spark's metrics",
            "publish in the driver, or leave out spark and give port or file",
        )
        gateway: Any = spark.sparkContext._gateway
        loader = class_loader(gateway, shipped_jar("headway.runtime.metrics"))
        constructors = loader.loadClass("headway.metrics.LiveSource").getConstructors()
        self._source = constructors[0].newInstance(gateway.new_array(gateway.jvm.Object, 0))
        self._source.register()

    def put(self, metrics: Sequence[Metric]) -> None:
        """Replace all values; a metric that is not among them is removed."""
        self._source.put(spark_lines(metrics))

    def remove(self) -> None:
        """Remove the source from Spark's metrics; may be repeated."""
        self._source.remove()


class Repeated:
    """A thread that calls a function every few seconds until it is stopped.

    A call that fails is the last one that ``last_error`` names; the next one is made all the same.
    """

    def __init__(self, call: Callable[[], object], every_s: float, name: str) -> None:
        self._call, self._every_s = call, every_s
        self.last_error: str | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Make the first call now, in this thread, then go on in a thread of its own."""
        self._call()
        self._thread.start()

    def stop(self) -> None:
        """Make no further call; waits for one that is being made."""
        self._stopping.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout=10.0)

    def _run(self) -> None:
        while not self._stopping.wait(self._every_s):
            try:
                self._call()
            except Exception as error:  # whatever it is, the query goes on
                self.last_error = f"{type(error).__name__}: {first_line(error)}"
