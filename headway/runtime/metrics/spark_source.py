"""Headway's metrics in Spark's own metrics system, for each sink that is configured there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headway.errors import first_line
from headway.runtime.given import require_no_connect
from headway.runtime.jars import new_object

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def registered_source(spark: SparkSession) -> Any:
    """A source of the driver's metrics named ``headway``; its values are those put into it last.

    A metric that is not among these is removed.
    """
    require_no_connect(
        spark,
        "gives no access to Spark's metrics",
        "publish in the driver, or leave out spark and give port or file",
    )
    gateway = spark.sparkContext._gateway
    source = new_object(gateway, "headway.runtime.metrics", "headway.metrics.LiveSource")
    source.register()
    return source


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
