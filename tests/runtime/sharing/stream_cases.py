"""Cases as real streams: one file a batch, counted through a log, directly, and from panes."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import headway
from headway.runtime.sharing.log_batches import Emit
from headway.runtime.sharing.shared_windows import How
from tests.runtime.sharing.log_cases import Case, Result, Row, a_case, direct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "ts timestamp, k string"
NO_DATA_KEY = "spark.sql.streaming.noDataMicroBatches.enabled"
Keep = Callable[[int, int, int, str, int], None]
"""Takes batch, size, end, key and rows of a result."""


def write_batch(folder: Path, number: int, rows: tuple[Row, ...]) -> None:
    """A file of one batch; an empty one still is a batch of its own."""
    folder.mkdir(exist_ok=True)
    lines = [
        f'{{"ts": "{datetime.fromtimestamp(at / 1000, UTC).isoformat()}", "k": "{key}"}}'
        for at, key in rows
    ]
    path = folder / f"{number:03}.json"
    path.write_text("\n".join(lines))
    os.utime(path, (number + 1, number + 1))  # the order that Spark reads


def stream(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder))


def with_rows(seeded: random.Random) -> Case:
    """A case of more than three batches that gives more than four results."""
    while True:
        case = a_case(seeded)
        if len(case.batches) > 3 and len(direct(case)) > 4:
            return case


def texts(case: Case) -> list[str]:
    return [f"{w.size_ms}ms every {w.slide_ms}ms offset {w.offset_ms}ms" for w in case.windows]


def into(keep: Keep) -> Callable[[DataFrame, int], None]:
    """A sink that hands every result on."""

    def take(batch: DataFrame, number: int) -> None:
        for row in batch.collect():
            start, end = (
                round(t.astimezone(UTC).timestamp() * 1000)
                for t in (row.window.start, row.window.end)
            )
            keep(number, end - start, end, row.k, row.n)

    return take


def run_log(df: DataFrame, case: Case, emit: Emit, folder: Path, keep: Keep) -> None:
    """All files that are there through the log in a folder."""
    log = headway.window_log(
        df, time="ts", key=["k"], windows=texts(case), aggregates={"n": "count(*)"},
        store=str(folder / "store"), emit=emit, delay=f"{case.delay_ms}ms",
    )  # fmt: skip
    query = log.start(
        sink=into(keep), checkpoint=str(folder / "checkpoint"), trigger={"availableNow": True}
    )
    assert query.awaitTermination(300)


def by_spark(
    df: DataFrame, case: Case, how: How, mode: str, checkpoint: Path, *, is_marked: bool = False
) -> Result:
    """What Spark's own state gives, without no-data batches."""
    found, spark = Result(), df.sparkSession
    marked = df if is_marked else df.withWatermark("ts", f"{case.delay_ms} milliseconds")
    # Update mode takes one aggregation a query.
    asked = [[text] for text in texts(case)] if mode == "update" else [texts(case)]
    spark.conf.set(NO_DATA_KEY, "false")
    try:
        for place, windows in enumerate(asked):
            counted = headway.shared_windows(
                marked, time="ts", key=["k"], windows=windows, aggregates={"n": "count(*)"}, how=how
            )
            query = (
                counted.writeStream.foreachBatch(into(kept_in(found)))
                .outputMode(mode)
                .option("checkpointLocation", str(checkpoint / str(place)))
                .trigger(availableNow=True)
                .start()
            )
            assert query.awaitTermination(300)
    finally:
        spark.conf.unset(NO_DATA_KEY)
    return found


def kept_in(found: Result) -> Keep:
    """Results into a dictionary, a repeated batch over its first time."""

    def keep(number: int, size: int, end: int, key: str, rows: int) -> None:
        found[number, size, end, key] = rows

    return keep
