"""Stages that read a cached DataFrame have its rows, not the column batches that tasks count."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import headway
from headway.profiler.operators import OUTPUT_ROWS, scopes
from headway.profiler.schema import Accumulable, RddInfo, StageInfo
from headway.profiler.stage_totals import cached_rows
from tests.profiler.event_log import AppLog, Query, Stage, write_plain

READ = Stage(num_tasks=2, per_row_s=5e-6, scopes=("MicroBatchScan",))
WRITE_CACHED = Stage(num_tasks=2, per_row_s=20e-6, scopes=("InMemoryTableScan", "WriteFiles"))
PERSISTED = Query(jobs=((READ,), (WRITE_CACHED,)), operators=(), trigger_s=2.0, num_batches=30)


def counts_column_batches(log: AppLog) -> AppLog:
    """The log with one column batch as the input of each task that reads the cache."""
    of_stage: dict[int, list[Any]] = {}
    for task in log.of("TaskEnd"):
        of_stage.setdefault(task["Stage ID"], []).append(task["Task Metrics"]["Input Metrics"])
    for stage in log.of("StageCompleted"):
        info = stage["Stage Info"]
        if "InMemoryTableScan" in json.dumps(info["RDD Info"]):
            inputs = of_stage[info["Stage ID"]]
            rows = sum(read["Records Read"] for read in inputs)
            info["Accumulables"] = [
                {"ID": 1, "Name": OUTPUT_ROWS, "Value": rows // 2},  # behind a filter
                {"ID": 2, "Name": OUTPUT_ROWS, "Value": str(rows)},
            ]
            for read in inputs:
                read["Records Read"] = 1
    return log


def profile_of(folder: Path, query: Query) -> headway.JobProfile:
    log = counts_column_batches(AppLog().add(query))
    return headway.profile(write_plain(log.lines, folder / "log"))


def test_a_cache_of_the_stream_has_the_rows_of_the_batch(tmp_path: Path) -> None:
    load = ((20.0, 60_000.0), (40.0, 10_000.0))
    profile = profile_of(tmp_path, replace(PERSISTED, load=load))
    of_cache = profile.stages[1]
    assert of_cache.work == "read the cache, write files"
    assert not of_cache.is_static
    assert of_cache.rows.scale == pytest.approx(1.0, rel=0.01)
    assert of_cache.rows.exponent == pytest.approx(1.0, abs=0.01)
    assert of_cache.task_per_row_s == pytest.approx(20e-6, rel=0.1)


def test_a_cached_static_table_keeps_its_rows(tmp_path: Path) -> None:
    table = replace(WRITE_CACHED, rows_scale=0.0, static_rows=40_000, scopes=("InMemoryTableScan",))
    load = ((20.0, 60_000.0), (40.0, 10_000.0))
    profile = profile_of(tmp_path, replace(PERSISTED, jobs=((READ,), (table,)), load=load))
    assert profile.stages[1].is_static
    assert profile.stages[1].rows.static_rows == pytest.approx(40_000, rel=0.001)


@pytest.mark.parametrize(
    ("scope", "value", "rows"),
    [
        ("InMemoryTableScan", 7, 7),
        ("InMemoryTableScan", "7", 7),
        ("InMemoryTableScan", {"of": 7}, None),
        ("Scan parquet", 7, None),
    ],
)
def test_rows_are_those_of_the_metrics_of_a_stage_with_a_cache(
    scope: str, value: object, rows: int | None
) -> None:
    info = StageInfo(
        rdds=[RddInfo(scope=json.dumps({"id": "1", "name": scope}))],
        accumulables=[Accumulable(accumulator_id=1, name=OUTPUT_ROWS, value=value), None],
    )
    assert cached_rows(info, scopes(info)) == rows
