"""A log of a real stream gives what Spark's direct query gives, late rows and restarts too."""

from __future__ import annotations

import os
import random
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headway
from headway.errors import HeadwayError, InputError
from tests.runtime.sharing.log_cases import Case, a_case, direct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NUM_RUNS = int(os.environ.get("HEADWAY_WINDOW_RUNS", "1"))
SCHEMA = "ts timestamp, k string"


def write_batch(folder: Path, number: int, rows: Any) -> None:
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


def texts(case: Case) -> list[str]:
    return [f"{w.size_ms}ms every {w.slide_ms}ms offset {w.offset_ms}ms" for w in case.windows]


def run_log(df: DataFrame, case: Case, emit: Any, folder: Path) -> dict[Any, int]:
    found: dict[Any, int] = {}

    def take(batch: DataFrame, number: int) -> None:
        for row in batch.collect():
            start, end = (
                round(t.astimezone(UTC).timestamp() * 1000)
                for t in (row.window.start, row.window.end)
            )
            found[number, end - start, end, row.k] = row.n

    log = headway.window_log(
        df, time="ts", key=["k"], windows=texts(case), aggregates={"n": "count(*)"},
        store=str(folder / "store"), emit=emit, delay=f"{case.delay_ms}ms",
    )  # fmt: skip
    query = log.start(
        sink=take, checkpoint=str(folder / "checkpoint"), trigger={"availableNow": True}
    )
    assert query.awaitTermination(300)
    return found


def with_rows(seeded: random.Random) -> Case:
    """Batches of a stream have rows, or Spark reads the file all the same."""
    while True:
        case = a_case(seeded)
        if len(case.batches) > 3 and len(direct(case)) > 4:
            return case


@pytest.mark.parametrize("seed", range(NUM_RUNS))
def test_a_real_run_is_the_direct_query(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    case = with_rows(random.Random(seed))
    emit: Any = "early" if seed % 2 else "exact"
    half = len(case.batches) // 2
    for number, rows in enumerate(case.batches[:half]):
        write_batch(tmp_path / "in", number, rows)
    df = stream(spark, tmp_path / "in")
    found = run_log(df, case, emit, tmp_path)
    # Begun again on what the log and the checkpoint kept.
    for number, rows in enumerate(case.batches[half:], half):
        write_batch(tmp_path / "in", number, rows)
    found |= run_log(stream(spark, tmp_path / "in"), case, emit, tmp_path)
    assert found == direct(case, emit)


def test_a_store_of_another_checkpoint_and_other_questions_are_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    asked: dict[str, Any] = {
        "time": "ts",
        "key": ["k"],
        "windows": ["10s"],
        "aggregates": {"n": "count(*)"},
        "store": str(tmp_path / "store"),
    }
    (tmp_path / "in").mkdir()
    df = stream(spark, tmp_path / "in")
    with pytest.raises(InputError, match="delay: none given"):
        headway.window_log(df, **asked)
    with pytest.raises(InputError, match="expected one of exact, early"):
        headway.window_log(df, **asked, emit="soon", delay="1s")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="is of a stream"):
        headway.window_log(spark.createDataFrame([], SCHEMA), **asked, delay="1s")
    log = headway.window_log(df.withWatermark("ts", "3 seconds"), **asked)
    with pytest.raises(InputError, match="panes of 10000 ms"):
        log.add(windows=["15s"], sink=print)
    (tmp_path / "store" / "log").mkdir(parents=True)
    state = log._log.state
    text = state.to_json().replace('"batch": -1', '"batch": 3')
    (tmp_path / "store" / "log" / "000000000003.json").write_text(text)
    filled = headway.window_log(df, **asked, delay="1s")
    with pytest.raises(HeadwayError, match="filled up to batch 3 with another checkpoint"):
        filled.start(sink=print, checkpoint=str(tmp_path / "new"))
    shutil.rmtree(tmp_path / "store")
