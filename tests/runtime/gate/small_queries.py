"""Small queries for the tests of the gate, and how long to wait for them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

from headway.runtime.word_count import clock_lines

RATE_PER_S = 200
PATIENCE_S = 180.0


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    """Looks now and then: each look asks the JVM, which has two cores for batches and looks."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline_s, f"not within {PATIENCE_S} s: {what}"
        time.sleep(0.15)


def num_batches(query: StreamingQuery) -> int:
    progress = query.lastProgress
    return 0 if progress is None else progress["batchId"] + 1


class Queries:
    """Starts small queries and stops what is left of them."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._folder = spark, folder
        self.started: list[StreamingQuery] = []

    def start(
        self,
        name: str,
        *,
        each: Callable[[DataFrame, int], None] | None = None,
        trigger: dict[str, Any] | None = None,
        rows: bool = True,
        windowed: bool = False,
        start_epoch_s: float | None = None,
    ) -> StreamingQuery:
        if rows:
            frame = clock_lines(
                self._spark,
                rate_per_s=RATE_PER_S,
                num_source_partitions=1,
                start_epoch_s=start_epoch_s,
            )
        else:
            empty = self._folder / "empty"
            empty.mkdir(exist_ok=True)
            frame = self._spark.readStream.schema("value string").text(str(empty))
        if windowed:
            windows = sf.window("arrival", "3 seconds", startTime="1 second")
            frame = frame.withWatermark("arrival", "500 milliseconds").groupBy(windows).count()
        writer = frame.writeStream.queryName(name).option(
            "checkpointLocation", str(self._folder / name)
        )
        writer = writer.foreachBatch(each) if each is not None else writer.format("noop")
        if trigger != {}:
            writer = writer.trigger(**(trigger or {"processingTime": "500 milliseconds"}))
        query = writer.start()
        self.started.append(query)
        return query
