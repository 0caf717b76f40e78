"""What queries can take: each kind alone, by its profile, and those of a cell together."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway.api.profile import profile
from headway.domain import JobProfile, ScheduledQuery
from headway.formats.profile_file import save_profile
from headway.profiler.spark.session import embedded_session, local_checkpoint_conf
from headway.runtime.clock_source import clock_source_jar
from headway.turns.query_work import query_work
from real.cells import Cell
from real.queries import SESSION_CONF, Planned, planned_queries, start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FIRST_PROBE_PER_S, _LAST_PROBE_PER_S = 10_000.0, 5_120_000.0
_PROBE_FACTOR = 8.0
_LONGER_RATIO = 1.5
"""Rows count for something in a batch once it takes this much longer than one of few rows."""
_PROFILED_LOADS = (0.1, 0.3, 0.5)
_COMPILED_WITHIN_S = 8.0
_TOGETHER_BATCH_S = 2.0
"""Rows of a batch of a backlog: what arrives in so long at a load of 1 of the kinds alone."""


def calibrated(
    kinds: Sequence[str], folder: Path, profiles: Path, *, seconds: float, num_cores: int
) -> dict[str, float]:
    """Rows per second that each kind can take by its profile, which is written into a folder.

    Parameters
    ----------
    kinds : sequence of str
        Kinds of queries.
    folder : Path
        For logs and checkpoints, of which nothing is kept.
    profiles : Path
        Where ``KIND.profile.yaml`` is written.
    seconds : float
        Length of each of six runs a kind. [s]
    num_cores : int
        Cores of the session.
    """
    loads = range(len(_PROFILED_LOADS))
    with session(folder, num_cores, event_log=folder / "log") as spark:
        for kind in kinds:
            roughly_per_s = _rough_capacity_per_s(spark, kind, folder, seconds)
            for at in loads:
                rate_per_s = _PROFILED_LOADS[at] * roughly_per_s
                planned = Planned(
                    name=f"{kind}-{at}", kind=kind, rate_per_s=rate_per_s, trigger_s=1.0
                )
                _run(spark, planned, folder, seconds)
    profiles.mkdir(parents=True, exist_ok=True)
    capacities = {}
    for kind in kinds:
        names = [f"{kind}-{at}" for at in loads]
        found = profile(folder / "log", queries=names, trigger=1.0)
        save_profile(found, profiles / f"{kind}.profile.yaml")
        capacities[kind] = _capacity_per_s(found, num_cores)
    return capacities


def _capacity_per_s(found: JobProfile, num_cores: int) -> float:
    """Rows whose work alone would take all that the cores have."""
    query = ScheduledQuery(name="alone", trigger_s=1.0)
    work = query_work(found, query, found.arrivals.rate_per_s, num_cores)
    return num_cores / work.per_row_core_s


def together_ratio(
    spark: SparkSession,
    cell: Cell,
    capacities_per_s: Mapping[str, float],
    folder: Path,
    *,
    seconds: float,
) -> float:
    """Rows that the queries of a cell take together, over those of their kinds alone [-].

    Measured of a backlog, as Spark runs them: the driver's work for each of them, caches and
    memory that they share are in it, which profiles of one query at a time know nothing of.
    """
    queries, nominal_per_s = [], []
    try:
        for one in planned_queries(replace(cell, load=1.0), capacities_per_s, trigger_s=0.0):
            rows = max(round(one.rate_per_s * _TOGETHER_BATCH_S), 1)
            queries.append(start(spark, replace(one, batch_rows=rows), folder))
            nominal_per_s.append(one.rate_per_s)
        # A round of batches, and what the compiler takes.
        time.sleep(_COMPILED_WITHIN_S + 2.0 * _TOGETHER_BATCH_S)
        before = [_rows_so_far(query) for query in queries]
        time.sleep(seconds)
        taken = [
            (_rows_so_far(query) - then) / seconds
            for query, then in zip(queries, before, strict=True)
        ]
        for query in queries:
            if (error := query.exception()) is not None:
                raise error
    finally:
        for query in queries:
            query.stop()
    # Each query has the same share of the work.
    return statistics.fmean(
        rate / nominal for rate, nominal in zip(taken, nominal_per_s, strict=True)
    )


def _rows_so_far(query: Any) -> int:
    return sum(one["numInputRows"] for one in query.recentProgress)


def session(folder: Path, num_cores: int, *, event_log: Path | None = None) -> Any:
    """The session of calibrations and measurements."""
    folder.mkdir(parents=True, exist_ok=True)
    return embedded_session(
        app_name="real gate",
        master=f"local[{num_cores}]",
        event_log_dir=event_log,
        jars=[clock_source_jar()],
        driver_memory="3g",
        extra_conf={**SESSION_CONF, **local_checkpoint_conf()},
    )


def _rough_capacity_per_s(spark: SparkSession, kind: str, folder: Path, seconds: float) -> float:
    """By the time that more rows add to a batch of a query that runs as fast as it can."""

    def probed(rate_per_s: float) -> tuple[float, float]:
        name = f"probe-{kind}-{rate_per_s:.0f}-{time.monotonic_ns()}"
        planned = Planned(name=name, kind=kind, rate_per_s=rate_per_s, trigger_s=0.0)
        return usual_batch(_run(spark, planned, folder, seconds), "addBatch")

    _, per_row_s = fixed_and_row_s(kind, probed, factor=_PROBE_FACTOR)
    return 1.0 / per_row_s


def fixed_and_row_s(
    name: str, batch_at: Callable[[float], tuple[float, float]], *, factor: float
) -> tuple[float, float]:
    """Time of a batch without rows, and what a row adds, by batches of few rows and of many [s].

    ``batch_at`` gives rows and time of a batch at a rate. The first run is for the compiler and
    counts nothing. A batch of few rows takes what is fixed, so rates go up by the factor until rows
    take a good part of the time.

    >>> found = fixed_and_row_s("a", lambda rate: (rate, 0.1 + 1e-6 * rate), factor=4.0)
    >>> [round(one, 9) for one in found]
    [0.1, 1e-06]
    """
    batch_at(_FIRST_PROBE_PER_S)
    few_rows, short_s = batch_at(_FIRST_PROBE_PER_S)
    rate_per_s = _FIRST_PROBE_PER_S
    while (rate_per_s := rate_per_s * factor) <= _LAST_PROBE_PER_S:
        many_rows, long_s = batch_at(rate_per_s)
        if long_s >= _LONGER_RATIO * short_s:
            per_row_s = (long_s - short_s) / (many_rows - few_rows)
            return short_s - per_row_s * few_rows, per_row_s
    raise SystemExit(
        f"{name}: batches at {rate_per_s / factor:.0f} rows/s take {long_s:.3f} s, hardly "
        f"more than the {short_s:.3f} s at {_FIRST_PROBE_PER_S:.0f} rows/s; expected rows to take "
        "a good part of a batch"
    )


def _run(
    spark: SparkSession, planned: Planned, folder: Path, seconds: float
) -> list[Mapping[str, Any]]:
    query = start(spark, planned, folder)
    try:
        time.sleep(_COMPILED_WITHIN_S + seconds)
        if (error := query.exception()) is not None:
            raise error
        return list(query.recentProgress)
    finally:
        query.stop()


def usual_batch(progress: Sequence[Mapping[str, Any]], phase: str) -> tuple[float, float]:
    """Medians of rows and of the time of a phase [s], over the second half of the batches."""
    late = [one for one in progress[len(progress) // 2 :] if one["numInputRows"]]
    return (
        statistics.median(one["numInputRows"] for one in late),
        statistics.median(one["durationMs"][phase] / 1000.0 for one in late),
    )
