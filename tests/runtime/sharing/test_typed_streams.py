"""Random streams of every type, started again and interrupted, are Spark's own query."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException

from headway.runtime.sharing.shared_windows import STRICT_KEY
from tests.interpreted import with_settings
from tests.runtime.sharing.typed_cases import Results, differences
from tests.runtime.sharing.typed_streams import (
    FEW_ROWS,
    SHARED,
    InterruptedWriteError,
    TypedCase,
    a_typed_case,
    interrupted_after,
    run_by_spark,
    run_by_spark_early,
    run_log,
    without_batches,
    write_batches,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST_RUN = int(os.environ.get("HEADWAY_WINDOW_FIRST_RUN", "0"))
NUM_RUNS = int(os.environ.get("HEADWAY_WINDOW_TYPED_RUNS", "1"))


@pytest.fixture(autouse=True)
def in_one_task(spark: SparkSession) -> Iterator[None]:
    with with_settings(spark, FEW_ROWS):
        yield


def through_log(spark: SparkSession, case: TypedCase, folder: Path) -> Results:
    """What the sink of the log has, which overwrites the windows of a repeated batch."""
    batches: dict[int, Results] = {}

    def end() -> None:
        raise InterruptedWriteError

    for first, until in ((0, case.cut), (case.cut, len(case.batches))):
        write_batches(case, folder, first, until)
        if case.num_writes is not None:
            try:
                with interrupted_after(case.num_writes, end):
                    run_log(spark, case, folder, batches.__setitem__)
            except StreamingQueryException as error:
                assert "InterruptedWriteError" in str(error)
        run_log(spark, case, folder, batches.__setitem__)
    return {place: values for made in batches.values() for place, values in made.items()}


def by_spark(spark: SparkSession, case: TypedCase, folder: Path) -> list[Results]:
    """Of the direct query, and of panes and fused where all rows are on time."""
    if case.emit == "early":
        return [run_by_spark_early(spark, case, folder)]
    found = []
    for how in ("direct", *(SHARED if case.is_timely else ())):
        results = Results()
        # Which rows of a union are late after a restart depends on where it was.
        lives = ((0, case.cut), (case.cut, len(case.batches)))
        for first, until in lives if len(case.delays_ms) > 1 else ((0, len(case.batches)),):
            write_batches(case, folder, first, until)
            run_by_spark(spark, case, folder, how, results)
        spark.conf.unset(STRICT_KEY)
        found.append(results)
        for path in folder.glob("in-*/*"):
            path.unlink()
    return found


# Half a minute for one; those of longs and of every key and aggregate run each time.
@pytest.mark.statistical
@pytest.mark.parametrize("seed", range(FIRST_RUN, FIRST_RUN + NUM_RUNS))
def test_a_random_stream_is_spark_s_own_query(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    case = a_typed_case(seed)
    results = through_log(spark, case, tmp_path / "log")
    for expected in by_spark(spark, case, tmp_path / "spark"):
        if case.emit == "early":
            results, expected = without_batches(results), without_batches(expected)
        assert len(expected) > 4
        assert differences(results, expected) == []


def test_random_cases_have_what_they_are_about() -> None:
    cases = [a_typed_case(seed) for seed in range(60)]
    assert {case.emit for case in cases} == {"exact", "update", "early"}
    assert sum(len(case.delays_ms) > 1 for case in cases) > 5
    assert sum(case.num_writes is not None for case in cases) > 15
    assert sum(case.is_timely for case in cases) > 3
    assert sum(bool(case.rollups) for case in cases) > 3
    assert len({name for case in cases for name in case.aggregates}) > 55
