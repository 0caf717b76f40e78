"""Cases as files that Spark reads batch by batch, and the query over them."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import headway
from tests.runtime.ordered import ordered_cases
from tests.runtime.ordered.ordered_cases import Case, Output, Row, serial, step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SCHEMA = "k string, at timestamp, offset long, number long, text string"
ASKED: dict[str, Any] = {
    "key": "k",
    "state": "n long, digest long, mean double, total decimal(30,2), first timestamp, "
    "k array<string>",
    "output": "k string, n long, digest long, mean double, total decimal(30,2), first timestamp, "
    "texts string",
}
FILES_PER_BATCH = 2
ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    )
}
"""With it, state is in pieces, where PySpark can."""


def write_batch(folder: Path, number: int, rows: tuple[Row, ...]) -> None:
    """A batch as files of its own, whatever it holds: the rows of a key come from both."""
    folder.mkdir(exist_ok=True)
    for part in range(FILES_PER_BATCH):
        lines = [
            json.dumps(
                {"k": k, "at": at and at.isoformat(), "offset": offset, "number": n, "text": text}
            )
            for k, at, offset, n, text in rows[part::FILES_PER_BATCH]
        ]
        path = folder / f"{number:03}-{part}.json"
        path.write_text("\n".join(lines))
        at_s = FILES_PER_BATCH * number + part + 1
        os.utime(path, (at_s, at_s))  # the order that Spark reads


def stream(spark: SparkSession, folder: Path, case: Case) -> DataFrame:
    rows = (
        spark.readStream.schema(SCHEMA)
        .option("maxFilesPerTrigger", FILES_PER_BATCH)
        .json(str(folder))
    )
    return rows if case.delay_ms is None else rows.withWatermark(
        "at", f"{case.delay_ms} milliseconds"
    )  # fmt: skip


def started(
    spark: SparkSession, folder: Path, case: Case, place: Path | None = None
) -> StreamingQuery:
    """The query over all files that are there, into Parquet."""
    from pyspark import cloudpickle

    # Python of the executors does not know the tests.
    cloudpickle.register_pickle_by_value(ordered_cases)  # type: ignore[no-untyped-call]
    found = headway.ordered(
        stream(spark, folder / "in", case),
        **ASKED,
        by=case.by,
        step=step,
        wait="batch" if case.delay_ms is None else "watermark",
        place=place,
        checkpoint=str(folder / "checkpoint"),
    )
    return (
        found.writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )


def rows_in(df: DataFrame) -> Counter[Output]:
    """Rows that come out; each holds its number within its key, so that order shows."""
    from pyspark.sql import functions as F  # noqa: N812

    rows = df.withColumn("first", F.expr("unix_micros(first)")).collect()
    return Counter(tuple(row) for row in rows)


def expected(case: Case) -> Counter[Output]:
    made = (row for rows in serial(case).values() for row in rows)
    return Counter((*row[:5], row[5] and ordered_cases.micros(row[5]), row[6]) for row in made)
