"""What each kind of query costs alone: rows per second that it can take, and its profile."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway.api.profile import profile
from headway.domain import JobProfile, ScheduledQuery
from headway.formats.profile_file import save_profile
from headway.planner.query_work import query_work
from headway.profiler.spark.session import embedded_session, local_checkpoint_conf
from headway.runtime.clock_source import build_clock_source_jar
from real.queries import SESSION_CONF, Planned, start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FIRST_PROBE_PER_S, _LAST_PROBE_PER_S = 10_000.0, 5_120_000.0
_PROBE_FACTOR = 8.0
_LONGER_RATIO = 1.5
"""Rows count for something in a batch once it takes this much longer than one of few rows."""
_PROFILED_LOADS = (0.1, 0.3, 0.5)
_COMPILED_WITHIN_S = 8.0


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


def session(folder: Path, num_cores: int, *, event_log: Path | None = None) -> Any:
    """The session of calibrations and measurements."""
    folder.mkdir(parents=True, exist_ok=True)
    return embedded_session(
        app_name="real gate",
        master=f"local[{num_cores}]",
        event_log_dir=event_log,
        jars=[build_clock_source_jar(folder)],
        driver_memory="3g",
        extra_conf={**SESSION_CONF, **local_checkpoint_conf()},
    )


def _rough_capacity_per_s(spark: SparkSession, kind: str, folder: Path, seconds: float) -> float:
    """By the time that more rows add to a batch of a query that runs as fast as it can.

    The first run is for the compiler and counts nothing. A batch of few rows takes what is fixed,
    so rates go up until rows take a good part of the time.
    """

    def probed(rate_per_s: float) -> tuple[float, float]:
        name = f"probe-{kind}-{rate_per_s:.0f}-{time.monotonic_ns()}"
        planned = Planned(name=name, kind=kind, rate_per_s=rate_per_s, trigger_s=0.0)
        return _usual_batch(_run(spark, planned, folder, seconds))

    probed(_FIRST_PROBE_PER_S)
    few_rows, short_s = probed(_FIRST_PROBE_PER_S)
    rate_per_s = _FIRST_PROBE_PER_S
    while (rate_per_s := rate_per_s * _PROBE_FACTOR) <= _LAST_PROBE_PER_S:
        many_rows, long_s = probed(rate_per_s)
        if long_s >= _LONGER_RATIO * short_s:
            return (many_rows - few_rows) / (long_s - short_s)
    raise SystemExit(
        f"{kind}: batches at {rate_per_s / _PROBE_FACTOR:.0f} rows/s take {long_s:.3f} s, hardly "
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


def _usual_batch(progress: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """Medians of rows and of the time of executors, over the second half of the batches."""
    late = [one for one in progress[len(progress) // 2 :] if one["numInputRows"]]
    return (
        statistics.median(one["numInputRows"] for one in late),
        statistics.median(one["durationMs"]["addBatch"] / 1000.0 for one in late),
    )
