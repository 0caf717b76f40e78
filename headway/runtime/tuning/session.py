"""Parts of a session that the tuner may change, and its executors."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from headway.assumptions.tuning import LEAVES_WITHIN_S, STOPS_WITHIN_S
from headway.domain.argument_values import require_running
from headway.errors import ActuatorError, InputError
from headway.limits import MOST_EXECUTORS
from headway.runtime.given import require_no_connect
from headway.units import counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LEAVES_LOOK_S = 0.1
_ALLOCATION = "spark.dynamicAllocation"
_STOP_KEY = "spark.sql.streaming.stopTimeout"
# By the descriptions of sinks in the progress of a query.
_APPENDING = {
    "foreachbatch": "foreachBatch runs again for an interrupted batch; if it appends, its rows are "
    "there twice. Write each batch under its batch id, or use half_done='wait' to avoid this",
    "kafka": "Kafka's sink is at least once: the rows of an interrupted batch are there twice",
    "foreach": "foreach is at least once: the rows of an interrupted batch are written twice",
}


def require_classic(spark: SparkSession) -> None:
    """Refuse what is no session, and one of Spark Connect: it gives no access to what is tuned."""
    require_no_connect(
        spark,
        "neither shows executors nor lets them be changed",
        "tune in the driver, or watch a recorder's file: headway watch FILE",
    )
    require_running(spark)


def why_no_live_executors(spark: SparkSession) -> str | None:
    """Why executors of the session cannot be changed while it runs; None if they can."""
    master = str(spark.sparkContext.master)
    if master.startswith("local") and not master.startswith("local-cluster"):
        return f"{master} has no executors of its own"
    bounds = dynamic_bounds(spark)
    if bounds is None:
        return None
    if bounds[0] == bounds[1]:
        return f"dynamic allocation holds them at {bounds[0]}"
    return "dynamic allocation is on and would undo it: set spark.dynamicAllocation.enabled=false"


def dynamic_bounds(spark: SparkSession) -> tuple[int, int] | None:
    """Executors between which Spark itself decides; None without dynamic allocation.

    Spark reads them once, when the application starts, and kills no executor for anybody else.
    """
    if str(spark.conf.get(f"{_ALLOCATION}.enabled", "false")).lower() != "true":
        return None
    min_executors = spark.conf.get(f"{_ALLOCATION}.minExecutors", None) or 0
    max_executors = spark.conf.get(f"{_ALLOCATION}.maxExecutors", None) or MOST_EXECUTORS
    return int(min_executors), int(max_executors)


def require_no_dynamic_allocation(spark: SparkSession, executors: int) -> None:
    """Refuse a session whose number of executors Spark itself changes, with what to set instead.

    With equal bounds, Spark changes nothing, and neither does the tuner. ``executors`` are those to
    hold it at.
    """
    bounds = dynamic_bounds(spark)
    if bounds is not None and bounds[0] != bounds[1]:
        raise InputError(
            f"{_ALLOCATION}.enabled is true: Spark changes the executors between bounds that it "
            "read when the application started, and undoes what others do. Start the application "
            f"with {_ALLOCATION}.enabled=false, and the tuner changes executors; or with "
            f"minExecutors, initialExecutors and maxExecutors of {_ALLOCATION} all {executors}, "
            "and it changes only the trigger interval and the rate limit; or leave out mode='act'"
        )


def warning_of_allocation(
    spark: SparkSession, min_executors: int, max_executors: int
) -> str | None:
    """What to set at the next start of an application whose executors Spark itself changes."""
    bounds = dynamic_bounds(spark)
    if bounds is None or bounds == (min_executors, max_executors):
        return None
    return (
        "dynamic allocation is on, with bounds that Spark read when the application started; for "
        f"those of the tuner, start it anew with {_ALLOCATION}.minExecutors={min_executors} "
        f"and maxExecutors={max_executors}"
    )


def let_stops_end(spark: SparkSession) -> None:
    """Set a timeout for stops of queries if there is none, since some hang forever."""
    if str(spark.conf.get(_STOP_KEY, "0")) in ("0", "0ms", "0s"):
        spark.conf.set(_STOP_KEY, f"{STOPS_WITHIN_S.value:g}s")


def warning_of_sink(sink: str | None) -> str | None:
    """Effect of an interrupted batch on a sink that is not exactly-once; None if it is.

    >>> warning_of_sink("FileSink[file:/data/out]") is None
    True
    >>> warning_of_sink("ForeachBatchSink")[:44]
    'foreachBatch runs again for an interrupted b'
    """
    name = (sink or "").lower()
    return next((why for part, why in _APPENDING.items() if part in name), None)


def takes_each_batch_once(sink: str | None) -> bool:
    """Whether a sink has the rows of an interrupted batch exactly once after it ran again.

    Spark's file sink records which files belong to which batch.

    >>> takes_each_batch_once("FileSink[file:/data/out]"), takes_each_batch_once("ForeachBatchSink")
    (True, False)
    """
    return (sink or "").lower().startswith("filesink[")


def alive_executors(spark: SparkSession) -> dict[str, int]:
    """Cores of the current executors by name, oldest first, without the driver of a cluster."""
    listed: Any = spark.sparkContext._jsc.sc().statusStore().executorList(True)
    summaries = [listed.apply(at) for at in range(listed.size())]
    summaries.sort(key=lambda summary: (summary.addTime().getTime(), str(summary.id())))
    cores = {str(summary.id()): int(summary.totalCores()) for summary in summaries}
    return {name: num_cores for name, num_cores in cores.items() if num_cores > 0}


def ask_for_executors(spark: SparkSession, total: int) -> None:
    """Request a total number of executors from the cluster; does not wait for them."""
    context: Any = spark.sparkContext._jsc.sc()
    immutable: Any = spark.sparkContext._jvm.scala.collection.immutable  # type: ignore[union-attr]
    nothing = getattr(getattr(immutable, "Map$"), "MODULE$").empty()
    if not context.requestTotalExecutors(total, 0, nothing):
        raise ActuatorError(
            f"the cluster manager refused {counted(total, 'executor')}; they are as they were"
        )


def remove_executors(spark: SparkSession, total: int) -> None:
    """Remove the newest executors until a given number is left; to be called between batches."""
    ask_for_executors(spark, total)
    context: Any = spark.sparkContext._jsc.sc()
    newest = list(alive_executors(spark))[total:]
    refused = [name for name in newest if not context.killExecutor(name)]
    # Spark also says no of an executor that is leaving already.
    ends_s = time.monotonic() + LEAVES_WITHIN_S.value
    while refused and (staying := set(refused).intersection(alive_executors(spark))):
        if time.monotonic() > ends_s:
            names = ", ".join(sorted(staying))
            raise ActuatorError(f"the cluster manager refused to remove executor {names}")
        time.sleep(_LEAVES_LOOK_S)


def running_slots(spark: SparkSession) -> tuple[int, int]:
    """Executors of a session and the cores of each: current ones, or those to come."""
    executors = alive_executors(spark)
    if executors:
        return len(executors), min(executors.values())
    number = int(spark.conf.get("spark.executor.instances", None) or 1)
    return number, int(spark.conf.get("spark.executor.cores", None) or 1)
