"""How busy the cores were in a run: by what each kind of query costs alone, and as measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from result_lines import machine_of

from headway.domain import ScheduledQuery
from headway.formats.profile_file import load_profile
from headway.models.simulation.gate import QueryWork
from headway.turns.query_work import query_work
from real.records import EARLIER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def collector_s(spark: SparkSession) -> float:
    """Time that the driver's garbage collectors have taken so far [s]."""
    jvm: Any = spark._jvm
    beans = jvm.java.lang.management.ManagementFactory.getGarbageCollectorMXBeans()
    return 1e-3 * float(sum(one.getCollectionTime() for one in beans))


def measured_busy_ratio(lines: Sequence[Mapping[str, Any]], num_cores: int) -> float | None:
    """Share of the cores that were busy, as the kernel counts; None where it was not kept [-].

    >>> measured_busy_ratio([{"cores_busy": 1.5}, {"cores_busy": 1.7}], 2)
    0.8
    """
    if not lines or any("cores_busy" not in line for line in lines):
        return None
    return float(sum(line["cores_busy"] for line in lines) / (num_cores * len(lines)))


def busy_ratio(lines: Sequence[Mapping[str, Any]], results: Path, num_cores: int) -> float | None:
    """Work of the batches and rows of some runs over the time of the cores [-].

    A batch costs its driver time, which in local mode takes a core, and the fixed time of its
    tasks; a row what it adds. None where the profiles of the machine are not there.

    Parameters
    ----------
    lines : sequence of lines of results
        Runs of one way.
    results : Path
        Folder of results, with the profiles of each machine.
    num_cores : int
        Cores of the session.
    """
    work_s = cores_s = 0.0
    for line in lines:
        for query in line["queries"]:
            kind = query["name"].rstrip("0123456789")
            rate_per_s = query["offered_rows"] / line["counted_s"]
            work = _work(results, machine_of(line), kind, rate_per_s, num_cores)
            if work is None:
                return None
            driver_s = work.driver_cores * (work.before_s + work.after_s)
            work_s += query["num_batches"] * (driver_s + work.fixed_core_s)
            work_s += query["rows"] * work.per_row_core_s
        cores_s += num_cores * line["counted_s"]
    return work_s / cores_s if cores_s else None


@cache
def _work(
    results: Path, machine: str, kind: str, rate_per_s: float, num_cores: int
) -> QueryWork | None:
    for folder in (results, *(results / earlier for earlier in EARLIER)):
        file = folder / "profiles" / machine / f"{kind}.profile.yaml"
        if file.exists():
            query = ScheduledQuery(name=kind, trigger_s=1.0)
            return query_work(load_profile(file), query, rate_per_s, num_cores)
    return None
