"""Runs cases one after the other: fills topics, runs queries, records what happened."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from kafka_broker.broker import Lane

from headway.assumptions.planning import USUAL_BATCH_RATIO
from headway.domain.prediction import LatencyDistribution
from headway.errors import HeadwayError
from headway.runtime.measure import (
    begun_epoch_s,
    measure_tuple_latency,
    progress_events,
    wait_while_running,
)
from headway.units import ms_to_s
from kafka.cases import Case, Job, Mode
from kafka.jobs import read_back, shuffle_partitions, start_query, topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Record: TypeAlias = dict[str, Any]
"""One run as in the results: plain JSON."""

OUTAGE_S = 10.0
_QUANTILES = (0.5, 0.95, 0.99)
_PERCENTILES = np.arange(5, 100, 5)
_LOOK_EVERY_S = 0.2
FIRST_BATCH_WITHIN_S = 120.0


def run_case(
    spark: SparkSession, lane: Lane, case: Case, folder: Path, *, warm_s: float, run_s: float
) -> Record:
    """Run one case and return its measurements.

    Parameters
    ----------
    spark : SparkSession
        A session with the connector.
    lane : Lane
        The broker.
    case : Case
        What to run; its topics must be new.
    folder : Path
        For checkpoints.
    warm_s, run_s : float
        Time that is left out, and time that is measured after it. [s]

    Raises
    ------
    HeadwayError
        If the query fails or finishes no batch in time.
    """
    source, sink = topics(case)
    lane.make_topic(source, case.partitions)
    lane.make_topic(sink, case.partitions, stamped_by_broker=True)
    cpu_before, began_s, idle_before = lane.cpu_s(), time.time(), _idle_s()
    lane.start_flow(source, case.partitions, case.rate_per_s, case.first_share)
    query = start_query(spark, lane.servers, case, folder / case.name)
    try:
        started_s = time.time()
        wait_while_running(query, warm_s + (0.5 * run_s if case.mode is Mode.OUTAGE else run_s))
        if case.mode is Mode.OUTAGE:
            query.stop()
            events = [progress_events(query)]
            time.sleep(OUTAGE_S)
            query = start_query(spark, lane.servers, case, folder / case.name)
            wait_while_running(query, run_s)
            events.append(progress_events(query))
        else:
            events = [progress_events(query)]
    finally:
        query.stop()
        sent = lane.stop_flow(source)
    passed_s = time.time() - began_s
    cpu = lane.cpu_s()
    record: Record = {
        "name": case.name,
        "case": asdict(case),
        "started": datetime.fromtimestamp(began_s, UTC).isoformat(timespec="seconds"),
        "query_id": str(query.id),
        "shuffle_partitions": shuffle_partitions(case),
        "sent_rows": sent.num_rows,
        "sent_late_at_most_s": sent.latest_s,
        "cores_used": {name: round((cpu[name] - cpu_before[name]) / passed_s, 3) for name in cpu},
        "cores_idle": round((_idle_s() - idle_before) / passed_s, 3),
    }
    after_s = started_s + warm_s
    if case.mode is Mode.REAL_TIME:
        record |= _real_time(events[0], after_s)
    else:
        record |= _micro_batches(events, after_s)
    if case.job is not Job.COUNT or case.mode is Mode.REAL_TIME:
        record["to_append_s"] = _to_append(spark, lane, sink, after_s)
    return record


def warm_up(spark: SparkSession, lane: Lane, case: Case, folder: Path, seconds: float) -> None:
    """Run a case for a while after its first batch, so that its code is compiled; keep nothing.

    The first batch of a session may take long: classes are loaded, code is generated.
    """
    source, sink = topics(case)
    lane.make_topic(source, case.partitions)
    lane.make_topic(sink, case.partitions)
    lane.start_flow(source, case.partitions, case.rate_per_s)
    query = start_query(spark, lane.servers, case, folder / case.name)
    try:
        wait_from_first_batch(query, seconds)
    finally:
        query.stop()
        lane.stop_flow(source)


def wait_from_first_batch(query: StreamingQuery, seconds: float) -> None:
    """Wait for a time after the first batch of a query, or after it should have come."""
    deadline_s = time.monotonic() + FIRST_BATCH_WITHIN_S
    while query.lastProgress is None and time.monotonic() < deadline_s:
        wait_while_running(query, _LOOK_EVERY_S)
    wait_while_running(query, seconds)


def _micro_batches(runs: Sequence[Sequence[Mapping[str, Any]]], after_s: float) -> Record:
    """The run up to an outage, if there was one, and the recovery from it."""
    before = runs[0]
    measured = measure_tuple_latency(before, after_epoch_s=after_s)
    steady = [
        event["durationMs"]
        for event in before
        if event["numInputRows"] > 0 and begun_epoch_s(event) >= after_s
    ]
    names = sorted({name for phases in steady for name in phases})
    record: Record = {
        "num_batches": measured.num_batches,
        "rows_per_batch": measured.rows_per_batch,
        "rate_per_s": measured.rate_per_s,
        "kept_up": measured.kept_up,
        "tuple_latency_s": _distribution(measured.tuple_latency),
        "batch_duration_s": _distribution(measured.batch_duration),
        "phases_s": {
            name: float(np.mean([ms_to_s(phases.get(name, 0)) for phases in steady]))
            for name in names
        },
    }
    if len(runs) > 1:
        record["recovery"] = recovery_of(runs[1], usual_rows=measured.rows_per_batch)
    return record


def recovery_of(events: Sequence[Mapping[str, Any]], *, usual_rows: float) -> Record:
    """From the first trigger after an outage until batches are back to their usual size."""
    counted = [event for event in events if event["numInputRows"] > 0]
    rows = [event["numInputRows"] for event in counted]
    # A batch that the outage interrupted is repeated first, with the same rows.
    largest = rows.index(max(rows))
    back = next(
        (
            place
            for place in range(largest, len(rows))
            if rows[place] <= USUAL_BATCH_RATIO.value * usual_rows
        ),
        None,
    )
    end = counted[-1 if back is None else back]
    return {
        "piled_up_s": begun_epoch_s(counted[0]) - _first_arrival_s(counted[0]),
        "num_batches": len(rows) if back is None else back,
        "time_s": begun_epoch_s(end) - begun_epoch_s(counted[0]),
        "is_over": back is not None,
    }


def _real_time(events: Sequence[Mapping[str, Any]], after_s: float) -> Record:
    """What the batches of Real-Time Mode report; the trigger is their duration."""
    counted = [event for event in events if begun_epoch_s(event) >= after_s]
    if not counted:
        raise HeadwayError("no real-time batch ended after the warm-up; measure for longer")
    first, last = counted[0], counted[-1]
    ended_s = [
        begun_epoch_s(event) + ms_to_s(event["durationMs"]["triggerExecution"]) for event in counted
    ]
    gaps_s = [
        begun_epoch_s(later) - end for later, end in zip(counted[1:], ended_s[:-1], strict=True)
    ]
    return {
        "num_batches": len(counted),
        "batches": [
            {
                "batch_id": event["batchId"],
                "begun_epoch_s": begun_epoch_s(event),
                "started_s": begun_epoch_s(event) - begun_epoch_s(first),
                "rows": event["numInputRows"],
                "duration_ms": event["durationMs"],
                "reported": {
                    name: value for name, value in event.items() if "latenc" in name.lower()
                },
                "state": event["stateOperators"],
            }
            for event in counted
        ],
        "between_batches_s": gaps_s,
        "progress_fields": sorted(last),
    }


def _to_append(spark: SparkSession, lane: Lane, sink: str, after_s: float) -> Record:
    """From the producer's stamp to the append to the topic that the query writes."""
    from pyspark.sql import functions

    latency_s = (functions.col("appended_ms") - functions.col("stamped_ms")) / 1e3
    levels = [*_QUANTILES, *(_PERCENTILES / 100.0).tolist()]
    found = (
        read_back(spark, lane.servers, sink)
        .where(functions.col("stamped_ms") >= after_s * 1e3)
        .agg(
            functions.count(functions.lit(1)).alias("num_rows"),
            functions.avg(latency_s).alias("mean"),
            functions.max(latency_s).alias("max"),
            functions.percentile(latency_s, levels).alias("quantiles"),
        )
        .first()
    )
    if found is None or found["num_rows"] == 0:
        raise HeadwayError(f"nothing was written to {sink} after the warm-up")
    p50_s, p95_s, p99_s, *percentiles_s = found["quantiles"]
    return {
        **{name: found[name] for name in ("num_rows", "mean", "max")},
        "p50": p50_s,
        "p95": p95_s,
        "p99": p99_s,
        "percentiles": [round(value_s, 4) for value_s in percentiles_s],
    }


def _distribution(law: LatencyDistribution) -> Record:
    return {"mean": law.mean_s, "p50": law.p50_s, "p95": law.p95_s, "p99": law.p99_s}


def _first_arrival_s(event: Mapping[str, Any]) -> float:
    return float(event["observedMetrics"]["arrivals"]["first_us"]) / 1e6


def _idle_s() -> float:
    """Idle time of all cores since the machine started; 0 if the system does not report it."""
    try:
        fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    except OSError:
        return 0.0
    return (int(fields[3]) + int(fields[4])) / os.sysconf("SC_CLK_TCK")
