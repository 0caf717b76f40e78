"""The driver of one query, or of several of an application, in words."""

from __future__ import annotations

import math

from headway.domain.plan_parts import PlannedDriver
from headway.domain.sheet import Section
from headway.report.wording import percent
from headway.units import counted, span_text, spark_memory_text


def driver_section(driver: PlannedDriver | None) -> Section:
    """How busy the driver of a plan is, its heap, and how many such queries it would carry.

    >>> driver = PlannedDriver(
    ...     num_queries=1, busy_cores=0.11, cores=1, needed_cores=1, knee_queries=9.1,
    ...     knee_low_queries=7.1, knee_high_queries=11.6, heap_bytes=2**30,
    ... )
    >>> for row in driver_section(driver).rows:
    ...     print(*row, sep=" | ")
    utilisation | 11% of 1 core
    heap | 1g
    such queries that saturate it | 7 to 11
    """
    if driver is None:
        return Section()
    busy = f"{percent(driver.utilization_ratio)} of {counted(driver.cores, 'core')}"
    rows = (
        ("utilisation", busy),
        ("heap", spark_memory_text(driver.heap_bytes)),
        ("such queries that saturate it", _knee_text(driver)),
    )
    return Section(title="driver", rows=rows)


def driver_text(driver: PlannedDriver) -> str:
    """The driver of the queries of an application, and what to set for it."""
    queries = counted(driver.num_queries, "query", "queries")
    heap = f"spark.driver.memory={spark_memory_text(driver.heap_bytes)}"
    settings = f"spark.driver.cores={driver.needed_cores} and {heap}"
    shared = ", with the tasks, which run in the same JVM" if driver.is_shared_with_tasks else ""
    cores = "core" if driver.cores == 1 else f"{driver.cores} cores"
    share = percent(driver.utilization_ratio)
    verb = "takes" if driver.num_queries == 1 else "take"
    busy = f"{queries} {verb} {share} of the driver's {cores}{shared}"
    if driver.is_saturated:
        slower = f"{driver.utilization_ratio:.2g} times"
        return (
            f"The driver is saturated: {busy}, so their batches take {slower} as long as their "
            f"triggers, on any number of executors. Set {settings}, use longer triggers, or divide "
            "the queries among several applications."
        )
    short = "; that leaves too little room" if driver.cores < driver.needed_cores else ""
    knee = f"{_knee_text(driver)} such queries saturate it"
    return f"{busy[:1].upper()}{busy[1:]}{short}: set {settings}. {knee}."


def _knee_text(driver: PlannedDriver) -> str:
    """The 90% interval of the number of queries that saturate the driver, in whole queries."""
    low, high = math.floor(driver.knee_low_queries), math.floor(driver.knee_high_queries)
    return span_text(f"{low:,}", f"{high:,}")
