"""Latencies worked out by hand, then a real run held against what must be true of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

from headway.errors import HeadwayError
from headway.runtime.measure import (
    committed_epoch_s,
    measure_tuple_latency,
    progress_events,
    run_query,
)
from headway.runtime.word_count import (
    clock_lines,
    count_words,
    observe_arrivals,
    word_count,
)
from tests.runtime.gate.small_queries import wait_until


@pytest.fixture(autouse=True)
def _same_session_for_others(spark: SparkSession) -> Iterator[None]:
    """A run sets the partitions of the session that all tests share."""
    before = spark.conf.get("spark.sql.shuffle.partitions")
    assert before is not None
    yield
    spark.conf.set("spark.sql.shuffle.partitions", before)


_EPOCH_S = 1893456000  # 2030-01-01


def batch(
    trigger_s: float,
    *,
    first_s: float,
    last_s: float,
    num_rows: int,
    duration_ms: int,
    commit_ms: int = 0,
) -> dict[str, Any]:
    """A progress event; instants are seconds since the beginning of 2030."""
    trigger = datetime.fromtimestamp(_EPOCH_S + trigger_s, tz=UTC)
    return {
        "id": "1a7f",
        "name": "hand",
        "timestamp": trigger.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z",
        "batchId": 0,
        "numInputRows": num_rows,
        "durationMs": {"triggerExecution": duration_ms, "commitOffsets": commit_ms},
        "observedMetrics": {
            "arrivals": {
                "num_rows": num_rows,
                "first_us": round((_EPOCH_S + first_s) * 1e6),
                "last_us": round((_EPOCH_S + last_s) * 1e6),
            }
        },
    }


def test_two_batches_by_hand() -> None:
    # Committed at 10.4 and 11.5: latencies uniform over 0.4..1.4 (100 rows) and 0.5..1.5 (300).
    events = [
        batch(10, first_s=9, last_s=10, num_rows=100, duration_ms=450, commit_ms=50),
        batch(11, first_s=10, last_s=11, num_rows=300, duration_ms=550, commit_ms=50),
    ]
    run = measure_tuple_latency(events, after_epoch_s=_EPOCH_S)
    assert run.query_id == "1a7f"
    assert run.name == "hand"
    assert (run.num_batches, run.num_rows, run.rows_per_batch) == (2, 400, 200)
    assert run.tuple_latency.mean_s == pytest.approx(0.25 * 0.9 + 0.75 * 1.0, abs=1e-6)
    # F(x) = 0.25 (x - 0.4) + 0.75 (x - 0.5) from 0.5 to 1.4, then 0.25 + 0.75 (x - 0.5).
    assert run.tuple_latency.p50_s == pytest.approx(0.975, abs=1e-6)
    assert run.tuple_latency.p95_s == pytest.approx(0.5 + 0.70 / 0.75, abs=1e-6)
    assert run.tuple_latency.p99_s == pytest.approx(0.5 + 0.74 / 0.75, abs=1e-6)
    assert run.batch_duration.mean_s == pytest.approx(0.5)
    assert run.batch_duration.p50_s == pytest.approx(0.5)
    assert run.rate_per_s == pytest.approx(399 / 2.0)


def test_warm_up_and_empty_batches_are_left_out() -> None:
    empty = batch(11, first_s=0, last_s=0, num_rows=0, duration_ms=30)
    empty["observedMetrics"] = {}
    events = [
        batch(5, first_s=0, last_s=5, num_rows=500, duration_ms=4000),
        batch(10, first_s=9, last_s=10, num_rows=100, duration_ms=400),
        empty,
    ]
    run = measure_tuple_latency(events, after_epoch_s=_EPOCH_S + 10)
    assert (run.num_batches, run.num_rows) == (1, 100)
    assert run.tuple_latency.mean_s == pytest.approx(0.9, abs=1e-6)


def test_a_single_row_has_one_latency() -> None:
    run = measure_tuple_latency(
        [batch(10, first_s=9.5, last_s=9.5, num_rows=1, duration_ms=500)], after_epoch_s=0
    )
    latency = run.tuple_latency
    assert [latency.mean_s, latency.p50_s, latency.p99_s] == pytest.approx([1.0] * 3, abs=1e-6)
    assert run.rate_per_s == 0.0


@pytest.mark.parametrize(("growth", "kept_up"), [(1.0, True), (1.3, False)])
def test_a_query_whose_batches_grow_does_not_keep_up(growth: float, kept_up: bool) -> None:
    # As fast as possible: each batch takes what arrived during the one before it.
    events, trigger_s, last_s, duration_s = [], 10.0, 9.0, 1.0
    for _ in range(8):
        num_rows = round(100 * (trigger_s - last_s))
        events.append(
            batch(
                trigger_s,
                first_s=last_s,
                last_s=trigger_s,
                num_rows=num_rows,
                duration_ms=round(1000 * duration_s),
            )
        )
        last_s, trigger_s, duration_s = trigger_s, trigger_s + duration_s, duration_s * growth
    assert measure_tuple_latency(events, after_epoch_s=0).kept_up is kept_up


def test_nothing_to_measure_is_an_error() -> None:
    with pytest.raises(HeadwayError, match="no batch with rows"):
        measure_tuple_latency([], after_epoch_s=0)
    unobserved = batch(10, first_s=9, last_s=10, num_rows=10, duration_ms=100)
    unobserved["observedMetrics"] = {}
    with pytest.raises(HeadwayError, match="observed no 'arrivals'"):
        measure_tuple_latency([unobserved], after_epoch_s=0)


def test_a_real_run_measures_rows_durations_and_latencies(
    spark: SparkSession, tmp_path: Path
) -> None:
    shares: list[float] = []
    run = run_query(
        word_count(spark, rate_per_s=500, num_source_partitions=2, hash_rounds=2),
        query_name="real",
        trigger_s=0.5,
        checkpoint=tmp_path / "checkpoint",
        warm_s=1,
        run_s=2,
        shuffle_partitions=2,
        least_batches=3,
        progress=shares.append,
    )
    assert run.name == "real"
    assert run.num_batches >= 3
    assert run.rate_per_s == pytest.approx(500, rel=0.01)
    assert run.num_rows == pytest.approx(run.num_batches * run.rows_per_batch)
    latency, duration = run.tuple_latency, run.batch_duration
    assert 0 < duration.mean_s < 5
    assert 0 < latency.mean_s < latency.p95_s < latency.p99_s
    # A row waits for half the distance of two triggers on average, and then for its batch.
    assert latency.mean_s > 0.8 * duration.mean_s
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert not spark.streams.active


def test_the_measured_latency_is_that_of_every_single_row(
    spark: SparkSession, tmp_path: Path
) -> None:
    arrivals_s: dict[int, list[float]] = {}
    returned_s: dict[int, float] = {}

    def collect(rows: DataFrame, batch_id: int) -> None:
        arrivals_us = [row.us for row in rows.selectExpr("unix_micros(arrival) AS us").collect()]
        arrivals_s[batch_id] = [us / 1e6 for us in arrivals_us]
        returned_s[batch_id] = time.time()

    lines = clock_lines(spark, rate_per_s=400, num_source_partitions=2)
    query = (
        observe_arrivals(lines)
        .writeStream.foreachBatch(collect)
        .option("checkpointLocation", str(tmp_path))
        .trigger(processingTime="500 milliseconds")
        .start()
    )
    try:
        wait_until(lambda: len(with_rows(query)) >= 5, "five batches")
    finally:
        query.stop()
    batches = {event["batchId"]: event for event in with_rows(query)}
    measured = measure_tuple_latency([*batches.values()], after_epoch_s=0)
    latencies_s = np.concatenate(
        [
            committed_epoch_s(event) - np.array(arrivals_s[batch_id])
            for batch_id, event in batches.items()
        ]
    )
    assert measured.num_rows == len(latencies_s)
    # A row every 2.5 ms, taken as spread evenly.
    assert measured.tuple_latency.mean_s == pytest.approx(float(latencies_s.mean()), abs=0.001)
    assert measured.tuple_latency.p99_s == pytest.approx(
        float(np.quantile(latencies_s, 0.99)), abs=0.01
    )
    # A batch is committed once the function has returned, and soon where nothing else runs.
    # Progress has whole milliseconds.
    after_s = [committed_epoch_s(event) - returned_s[at] for at, event in batches.items()]
    assert -0.01 < min(after_s) < 0.1


def with_rows(query: StreamingQuery) -> list[Any]:
    return [event for event in progress_events(query) if event["numInputRows"] > 0]


def test_a_failing_query_is_reported_and_stopped(spark: SparkSession, tmp_path: Path) -> None:
    lines = clock_lines(spark, rate_per_s=100, num_source_partitions=1)
    broken = count_words(
        lines.withColumn("text", sf.raise_error(sf.lit("the disk is on fire"))), hash_rounds=1
    )
    with pytest.raises(HeadwayError, match="query broken ended after"):
        run_query(
            broken,
            query_name="broken",
            trigger_s=0,
            checkpoint=tmp_path / "checkpoint",
            warm_s=0,
            run_s=60,
            shuffle_partitions=1,
        )
    assert not spark.streams.active


def test_an_interrupted_measurement_stops_its_query(spark: SparkSession, tmp_path: Path) -> None:
    def interrupt(share: float) -> None:
        if share > 0.01:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_query(
            word_count(spark, rate_per_s=100, num_source_partitions=1, hash_rounds=1),
            query_name="interrupted",
            trigger_s=0,
            checkpoint=tmp_path / "checkpoint",
            warm_s=10,
            run_s=50,
            shuffle_partitions=1,
            progress=interrupt,
        )
    assert not spark.streams.active


def test_a_run_lasts_until_there_are_batches_enough(spark: SparkSession, tmp_path: Path) -> None:
    run = run_query(
        word_count(spark, rate_per_s=500, num_source_partitions=2, hash_rounds=2),
        query_name="patient",
        trigger_s=0.5,
        checkpoint=tmp_path / "checkpoint",
        warm_s=0.1,
        run_s=0.1,
        shuffle_partitions=2,
        least_batches=3,
    )
    assert run.num_batches >= 3


def test_a_run_without_rows_ends_with_what_to_do(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(HeadwayError, match=r"0 batches with rows .* expected 1: .* too busy"):
        run_query(
            word_count(spark, rate_per_s=0.001, num_source_partitions=1, hash_rounds=1),
            query_name="empty",
            trigger_s=0,
            checkpoint=tmp_path / "checkpoint",
            warm_s=0.1,
            run_s=0.2,
            shuffle_partitions=1,
            least_patience_s=0.0,
        )
    assert not spark.streams.active
