"""The clock of a query's trigger, replaced by one that waits for grants."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway.errors import InputError
from headway.runtime.compiled import build_jar
from headway.units import ms_to_s, s_to_ms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_JAVA_FILES = ("GateHub.java", "GateClock.java")
_STARTS_WITHIN_S = 30.0


class GateClasses:
    """The gate's Java, loaded into the JVM of a session that is already running.

    Parameters
    ----------
    spark : SparkSession
        A classic session; Spark Connect gives no access to its JVM.
    folder : Path, optional
        Where the jar is kept; by default in the user's folder for temporary files.

    Raises
    ------
    InputError
        If the session is one of Spark Connect.
    SparkUnavailableError
        If there is no Java compiler.
    """

    def __init__(self, spark: SparkSession, folder: Path | None = None) -> None:
        jvm = getattr(spark, "_jvm", None)
        if jvm is None:
            raise InputError(
                "this is a Spark Connect session, which gives no access to the triggers of its "
                "queries; expected a classic session in the driver. Fallback: keep the triggers as "
                "they are, and shift them apart as 'headway schedule' says"
            )
        context: Any = spark.sparkContext
        gateway: Any = context._gateway
        self._context, self._gateway = context, gateway
        self._jvm: Any = jvm
        folder = folder or Path(tempfile.gettempdir()) / "headway-jars"
        jar = build_jar(folder, package="headway.runtime.gate", java_files=_JAVA_FILES, what="gate")
        urls = self._gateway.new_array(jvm.java.net.URL, 1)
        urls[0] = jvm.java.io.File(str(jar)).toURI().toURL()
        parent = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        self._loader: Any = jvm.java.net.URLClassLoader(urls, parent)

    def hub(self, heartbeat_within_s: float) -> Any:
        """Where queries say that they are idle."""
        return self._new(
            "headway.gate.GateHub", round(s_to_ms(heartbeat_within_s)), self._context._jsc.sc()
        )

    def clock(self, hub: Any, name: str, trigger_s: float) -> Any:
        """The clock of one query, and the trigger that it would go by."""
        return self._new("headway.gate.GateClock", hub, name, round(s_to_ms(trigger_s)))

    def _new(self, name: str, *arguments: Any) -> Any:
        values: Any = self._gateway.new_array(self._jvm.java.lang.Object, len(arguments))
        for at, value in enumerate(arguments):
            values[at] = value
        return self._loader.loadClass(name).getConstructors()[0].newInstance(values)


def trigger_of(query: StreamingQuery) -> tuple[Any, float]:
    """What runs the batches of a query, and its trigger interval [s].

    Raises
    ------
    InputError
        If its trigger never waits, or is not there.
    """
    java_query = getattr(query, "_jsq", None)
    label = _label(query)
    if java_query is None:
        raise InputError(f"{label} is a query of Spark Connect, which cannot be gated")
    if not query.isActive:
        raise InputError(f"{label} has ended; add a query while it runs")
    deadline_s = time.monotonic() + _STARTS_WITHIN_S
    while (executor := java_query.streamingQuery().triggerExecutor()) is None:
        if not query.isActive:
            raise InputError(f"{label} has ended; add a query while it runs")
        if time.monotonic() > deadline_s:
            raise InputError(f"{label} has not started within {_STARTS_WITHIN_S:.0f} s")
        time.sleep(0.01)
    kind = executor.getClass().getSimpleName()
    if kind != "ProcessingTimeExecutor":
        raise InputError(
            f"{label} has a trigger of another kind ({kind}); expected "
            "trigger(processingTime='1 second') or the like. It goes on ungated"
        )
    interval_s = ms_to_s(executor.processingTimeTrigger().intervalMs())
    if not interval_s > 0:
        raise InputError(
            f"{label} runs as fast as possible and never waits; start it with "
            "trigger(processingTime='1 second'), which is in force whenever the gate is open"
        )
    return executor, interval_s


def replace_clock(executor: Any, clock: Any, query: StreamingQuery) -> Any:
    """Put a clock in place of that of a trigger, from its next wait on; the one that was there.

    Raises
    ------
    InputError
        If this Spark keeps its clock elsewhere.
    """
    from py4j.protocol import Py4JJavaError

    try:
        field = executor.getClass().getDeclaredField("clock")
        field.setAccessible(True)
        before = field.get(executor)
        field.set(executor, clock)
    except Py4JJavaError as error:
        kind = error.java_exception.getClass().getSimpleName()
        raise InputError(
            f"{_label(query)}: this version of Spark does not let its trigger clock be replaced "
            f"({kind}); tried on 3.5 and 4.3. It goes on ungated, by its own trigger"
        ) from None
    return before


def _label(query: StreamingQuery) -> str:
    return f"query {query.name or query.id}"
