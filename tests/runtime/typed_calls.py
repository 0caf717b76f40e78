"""Types of the calls on a session, for mypy: what a form of a call returns, and what it takes."""

from __future__ import annotations

from typing import assert_type

from pyspark.sql import Column, DataFrame, SparkSession

import headway
from headway.api.metrics import PublishedMetrics
from headway.api.schedule import ScheduleGate
from headway.api.shed import SheddingBatches
from headway.runtime.sharing.by_columns import WindowedRows
from headway.runtime.sharing.window_log import SharedLog


def windows_are_counted_in_two_forms(rows: DataFrame, column: Column) -> None:
    """Never called: mypy reads it."""
    grouped = headway.shared_windows(rows, column, column, keys=["area", column], how="fused")
    assert_type(grouped, WindowedRows[DataFrame])
    assert_type(grouped.agg(column, column), DataFrame)
    by_text = headway.shared_windows(
        rows, time="ts", key=["area"], windows=["1 hour", column], aggregates={"n": column}
    )
    assert_type(by_text, DataFrame)
    log = headway.window_log(rows, column, keys=[column], store="/panes")
    assert_type(log, WindowedRows[SharedLog])
    assert_type(log.agg(column), SharedLog)


def what_runs_beside_queries_is_published(spark: SparkSession, column: Column) -> None:
    """Never called: mypy reads it."""
    gate = headway.schedule(spark, off="gate.off")
    assert_type(gate, ScheduleGate)
    each = headway.shedding_batches(
        print, print, arrived=column, limit="2s", costs={"a": "1ms"}, cost=column, fixed="1s"
    )
    assert_type(each, SheddingBatches)
    metrics = headway.publish_metrics(gate, each, spark=spark, port=0)
    assert_type(metrics, PublishedMetrics)
    assert_type(metrics.port, int | None)
