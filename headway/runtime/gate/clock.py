"""The clock of a query's trigger, replaced by one that waits for grants."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from headway.errors import InputError, first_line
from headway.redaction import redact
from headway.runtime.given import connect_refusal
from headway.runtime.jars import new_object
from headway.units import ms_to_s, s_to_ms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_PACKAGE = "headway.runtime.gate"
_HUB, _GATE_CLOCK = "headway.gate.GateHub", "headway.gate.GateClock"
_STARTS_WITHIN_S = 30.0


def new_hub(spark: SparkSession, heartbeat_within_s: float) -> Any:
    """The hub to which queries of a session report that they are idle."""
    context: Any = spark.sparkContext
    silence_ms = round(s_to_ms(heartbeat_within_s))
    return new_object(context._gateway, _PACKAGE, _HUB, silence_ms, context._jsc.sc())


def new_clock(
    spark: SparkSession,
    hub: Any,
    number: int,
    query: StreamingQuery,
    trigger_s: float,
    pool: str | None = None,
) -> Any:
    """The clock of a participating query, with the trigger that it would use, and its pool."""
    trigger_ms = round(s_to_ms(trigger_s))
    gateway = spark.sparkContext._gateway
    return new_object(gateway, _PACKAGE, _GATE_CLOCK, hub, number, query._jsq, trigger_ms, pool)


def require_pool(spark: SparkSession, pool: object) -> None:
    """Require the name of a pool, and Spark's fair scheduler, which alone has pools."""
    if not isinstance(pool, str) or not pool:
        raise InputError(f"pool: got {pool!r}; expected the name of a pool, e.g. 'orders'")
    mode = str(spark.conf.get("spark.scheduler.mode", "FIFO"))
    if mode.upper() != "FAIR":
        raise InputError(
            f"pool: the application runs with spark.scheduler.mode={mode}, which has no pools; "
            "start it with spark.scheduler.mode=FAIR, or leave out pool"
        )


def trigger_of(query: StreamingQuery) -> tuple[Any, float]:
    """The trigger executor of a query, and its trigger interval [s].

    Raises InputError if its trigger never waits, or does not exist.
    """
    require_classic(query)
    label = _label(query)
    deadline_s = time.monotonic() + _STARTS_WITHIN_S
    with _as_spark_keeps_it(query):
        while (executor := query._jsq.streamingQuery().triggerExecutor()) is None:
            require_classic(query)
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


def require_classic(query: StreamingQuery) -> None:
    """Require a query that runs, in the JVM of this driver."""
    # Checked on its class, since a Java object claims to have every attribute.
    if not hasattr(type(query), "id"):
        raise InputError(
            f"query: got {query!r}; expected a running StreamingQuery, as start() gives it"
        )
    if getattr(query, "_jsq", None) is None:
        raise connect_refusal(
            f"gives no access to the trigger of {_label(query)}",
            "start the query in the driver of the gate",
        )
    if not query.isActive:
        failure = query.exception()
        why = "" if failure is None else f" with an error ({first_line(failure)})"
        raise InputError(f"{_label(query)} has ended{why}; add a query while it runs")


def replace_clock(executor: Any, clock: Any, query: StreamingQuery) -> Any:
    """Replace the clock of a trigger from its next wait on; returns the previous one.

    It is refused if another gate has replaced it, or this version of Spark keeps it elsewhere.
    """
    with _as_spark_keeps_it(query):
        field = executor.getClass().getDeclaredField("clock")
        field.setAccessible(True)
        previous_clock = field.get(executor)
        if previous_clock.getClass().getName() == _GATE_CLOCK and not previous_clock.isReleased():
            raise InputError(
                f"{_label(query)} is under another gate, and stays there; close that gate first, "
                "remove the query from it, or start the query anew"
            )
        field.set(executor, clock)
    return previous_clock


@contextlib.contextmanager
def _as_spark_keeps_it(query: StreamingQuery) -> Iterator[None]:
    """An error, with an alternative, if Spark's internals are not as expected."""
    from py4j.protocol import Py4JError, Py4JJavaError

    try:
        yield
    except Py4JError as error:
        if isinstance(error, Py4JJavaError):
            missing = error.java_exception.getClass().getSimpleName()
        else:
            missing = first_line(error).rstrip(". ")
        raise InputError(
            f"{_label(query)}: this version of Spark keeps its trigger clock elsewhere "
            f"({missing}); tried on 3.5, 4.0 and 4.3. It goes on ungated, by its own trigger. To "
            "let it take turns all the same, start it with foreachBatch(turn), where "
            "turn = gate.in_turn(FUNCTION), and add it with in_turn=turn: its batches then wait "
            "with their rows already chosen"
        ) from None


def _label(query: StreamingQuery) -> str:
    return f"query {redact(query.name or str(query.id))}"
