"""Runs a query for a while and measures the latency of its rows.

Needs rows that arrive at a constant rate, and `headway.runtime.word_count.observe_arrivals` after
their source. Then the rows of a batch are spread evenly between its first and last arrival, and the
latency of every row is known without reading it.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from headway.assumptions.advice import MOST_AGE_GROWTH_RATIO
from headway.domain.prediction import QUOTED_PROBABILITIES, LatencyDistribution
from headway.errors import HeadwayError, first_line
from headway.models.arrays import Array
from headway.models.laws.distributions import uniform_mixture_quantile
from headway.runtime.word_count import ARRIVALS_METRIC
from headway.units import counted, format_duration, ms_to_s, spark_trigger_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

Json: TypeAlias = Mapping[str, Any]
"""One progress event, as in Spark's own JSON."""

_LOOK_EVERY_S = 0.2
_LOOK_AGAIN_S = 1.0
_PATIENCE_FACTOR = 8.0  # a machine with this much other work is too busy for measurements


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """Measurements of a query over the batches after its warm-up.

    ``rate_per_s`` is the rate of arrivals, whether or not the query kept up with it. ``kept_up`` is
    False if rows became ever older, i.e. if the age of the oldest row of a batch at its commit grew
    by more than 5% of the elapsed time. Latencies then depend on the length of the measurement.
    """

    query_id: str
    name: str | None
    num_batches: int
    num_rows: int
    rows_per_batch: float
    rate_per_s: float
    kept_up: bool
    tuple_latency: LatencyDistribution
    batch_duration: LatencyDistribution


def run_query(
    query: DataFrame,
    *,
    query_name: str,
    trigger_s: float,
    checkpoint: Path,
    warm_s: float,
    run_s: float,
    shuffle_partitions: int,
    least_batches: int = 1,
    least_patience_s: float = 60.0,
    progress: Callable[[float], None] | None = None,
) -> MeasuredRun:
    """Run a streaming query without a sink, in update mode, and measure it.

    It has the observed metric ``arrivals``, a name that is unique among active queries, and a new
    folder as its checkpoint, since an old one would keep its number of shuffle partitions. The
    time ``warm_s`` is excluded, and ``run_s`` measured after it. On a busy machine, the first batch
    may take longer than the warm-up. The warm-up lasts until that batch has ended, and the run
    until there are enough batches, for at least ``least_patience_s``, or eight times the run.
    ``progress`` is called with the share of the time that has passed, several times a second.

    Sets ``spark.sql.shuffle.partitions`` and the number of kept progress events on the query's
    session. The query has stopped when this returns or raises. Raises HeadwayError if it fails, or
    finishes too few batches in many times the expected time.
    """
    spark = query.sparkSession
    spark.conf.set("spark.sql.shuffle.partitions", str(shuffle_partitions))
    # Read once at the end instead of by a listener, so that nothing is added to the measurement. A
    # batch takes at least some 10 ms.
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "100000")
    writer = (
        query.writeStream.format("noop")
        .queryName(query_name)
        .outputMode("update")
        .option("checkpointLocation", str(checkpoint))
        .trigger(processingTime=spark_trigger_text(trigger_s))
    )
    started_epoch_s = time.time()
    running = writer.start()
    try:
        wait_while_running(running, warm_s + run_s, progress)
        patience_s = max(_PATIENCE_FACTOR * (warm_s + run_s), least_patience_s)
        patient_until_s = time.monotonic() + patience_s
        while True:
            events = progress_events(running)
            warm_epoch_s = max(started_epoch_s + warm_s, _first_end_epoch_s(events))
            measured = _counted(events, warm_epoch_s)
            if len(measured) >= least_batches or time.monotonic() > patient_until_s:
                break
            wait_while_running(running, _LOOK_AGAIN_S)
    finally:
        running.stop()
    if len(measured) < least_batches:
        raise HeadwayError(
            f"query {query_name}: {counted(len(measured), 'batch', 'batches')} with rows in "
            f"{format_duration(time.time() - started_epoch_s)}, expected {least_batches}: this "
            "machine is too busy, or the rate is too high for it"
        )
    return measure_tuple_latency(events, after_epoch_s=warm_epoch_s)


def _first_end_epoch_s(events: Sequence[Json]) -> float:
    """When the first batch with rows was committed; infinite if there is none yet."""
    ends_s = (committed_epoch_s(event) for event in events if event["numInputRows"] > 0)
    return next(ends_s, math.inf)


def _counted(events: Sequence[Json], after_epoch_s: float) -> list[Json]:
    """The batches with rows that started at an instant or later."""
    with_rows = (event for event in events if event["numInputRows"] > 0)
    return [event for event in with_rows if begun_epoch_s(event) >= after_epoch_s]


def progress_events(query: StreamingQuery) -> list[Json]:
    """The recent progress of a query, oldest first, in the plain JSON of every Spark version.

    Running or stopped, it keeps ``spark.sql.streaming.numRecentProgressUpdates`` batches.
    """
    # Spark 3.5 returns dicts, Spark 4 objects that keep their original JSON.
    events: list[Any] = list(query.recentProgress)
    return [json.loads(getattr(event, "json", None) or json.dumps(event)) for event in events]


def measure_tuple_latency(progress: Sequence[Json], *, after_epoch_s: float) -> MeasuredRun:
    """Latency of rows and duration of batches, from a query's progress.

    A row's latency ends when its batch is committed: at the batch's timestamp plus
    ``triggerExecution`` minus ``commitOffsets``. Events are oldest first; only batches count that
    were triggered at or after an instant, and there must be one with rows. [s since 1970]

    Ten rows, the first and the last 1.3 s and 0.4 s old when their batch is committed.

    >>> event = {
    ...     "id": "6f1c", "name": "demo", "timestamp": "2030-01-01T00:00:10.000Z",
    ...     "numInputRows": 10, "durationMs": {"triggerExecution": 420, "commitOffsets": 20},
    ...     "observedMetrics": {"arrivals": {
    ...         "num_rows": 10, "first_us": 1893456009100000, "last_us": 1893456010000000}},
    ... }
    >>> run = measure_tuple_latency([event], after_epoch_s=0)
    >>> run.tuple_latency.mean_s, run.tuple_latency.p99_s, run.batch_duration.mean_s
    (0.850, 1.291, 0.420)
    """
    measured = _counted(progress, after_epoch_s)
    if not measured:
        raise HeadwayError(
            "no batch with rows was finished after the warm-up; "
            "measure for longer, or at a lower rate"
        )
    arrivals = [_arrivals(event) for event in measured]
    rows = np.array([metrics["num_rows"] for metrics in arrivals], dtype=np.float64)
    first_arrival_s = np.array([_us_to_s(metrics["first_us"]) for metrics in arrivals])
    last_arrival_s = np.array([_us_to_s(metrics["last_us"]) for metrics in arrivals])
    commit_s = np.array([committed_epoch_s(event) for event in measured])
    duration_s = np.array([_duration_s(event) for event in measured])
    num_rows = int(rows.sum())
    span_s = float(last_arrival_s.max() - first_arrival_s.min())
    youngest_s, oldest_s = commit_s - last_arrival_s, commit_s - first_arrival_s
    return MeasuredRun(
        query_id=str(measured[-1]["id"]),
        name=measured[-1].get("name"),
        num_batches=len(measured),
        num_rows=num_rows,
        rows_per_batch=num_rows / len(measured),
        # A single row has no rate.
        rate_per_s=float(rows.sum() - 1.0) / span_s if span_s > 0.0 else 0.0,
        kept_up=age_growth_ratio(commit_s, first_arrival_s) <= MOST_AGE_GROWTH_RATIO.value,
        tuple_latency=LatencyDistribution.of(
            float(np.average(0.5 * (youngest_s + oldest_s), weights=rows)),
            uniform_mixture_quantile(np.array(QUOTED_PROBABILITIES), youngest_s, oldest_s, rows),
        ),
        batch_duration=LatencyDistribution.of(
            float(duration_s.mean()), np.quantile(duration_s, QUOTED_PROBABILITIES)
        ),
    )


def wait_while_running(
    running: StreamingQuery, seconds: float, progress: Callable[[float], None] | None = None
) -> None:
    """Let a query run for a while; it is an error if it ends before that."""
    start_s = time.monotonic()
    while (passed_s := time.monotonic() - start_s) < seconds:
        if not running.isActive:
            why = first_line(running.exception() or "it was stopped")
            raise HeadwayError(f"query {running.name} ended after {passed_s:.0f} s: {why}")
        if progress is not None:
            progress(passed_s / seconds)
        time.sleep(min(_LOOK_EVERY_S, seconds - passed_s))
    if progress is not None:
        progress(1.0)


def _arrivals(event: Json) -> Json:
    arrivals: Json | None = (event.get("observedMetrics") or {}).get(ARRIVALS_METRIC)
    if arrivals is None:
        raise HeadwayError(
            f"batch {event.get('batchId')} observed no {ARRIVALS_METRIC!r}; "
            "put headway.runtime.word_count.observe_arrivals behind the query's source"
        )
    return arrivals


def begun_epoch_s(event: Json) -> float:
    """When the batch of a progress event was triggered [s since 1970]."""
    return datetime.fromisoformat(event["timestamp"]).timestamp()


def committed_epoch_s(event: Json) -> float:
    """When the rows of the batch of a progress event were committed [s since 1970]."""
    after_commit_s = ms_to_s(event["durationMs"].get("commitOffsets", 0))
    return begun_epoch_s(event) + _duration_s(event) - after_commit_s


def _duration_s(event: Json) -> float:
    return ms_to_s(event["durationMs"]["triggerExecution"])


def _us_to_s(microseconds: int) -> float:
    return timedelta(microseconds=microseconds).total_seconds()


def age_growth_ratio(commit_s: Array, first_arrival_s: Array) -> float:
    """Slope of the oldest row's age over commit instants; 0 for a single batch."""
    elapsed_s = commit_s - commit_s.mean()
    spread = float(elapsed_s @ elapsed_s)
    age_s = commit_s - first_arrival_s
    return float(elapsed_s @ (age_s - age_s.mean())) / spread if spread > 0.0 else 0.0
