"""Random streams of every type: through a log that is interrupted, and Spark's own query."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import headway
from headway.models.sharing.consolidation import MergePlan, with_rollups
from headway.runtime.sharing.files import SparkFiles
from headway.runtime.sharing.log_batches import Emit
from headway.runtime.sharing.shared_windows import How
from tests.runtime.sharing.log_cases import on_time
from tests.runtime.sharing.stream_cases import NO_DATA_KEY, texts, with_rows
from tests.runtime.sharing.typed_cases import (
    AGGREGATES,
    KEYS,
    START_MS,
    Results,
    typed_results,
    typed_rows,
    typed_stream,
    write_typed,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

EMITS: tuple[Emit, ...] = ("exact", "update", "early")
SHARED: tuple[How, ...] = ("panes", "fused")
NUMBERED = ("n", "ids", "id_sum")
"""Results that show which rows a window has, each once."""
FEW_ROWS = {"spark.sql.shuffle.partitions": "1"}


@dataclass(frozen=True, kw_only=True)
class TypedCase:
    """Windows over one stream, or over a union of two with watermarks of their own.

    ``cut`` is the batch before which all are started again; the log also ends before a write of
    its own, if ``num_writes`` is a number. All rows are on time in a timely case.
    """

    windows: list[str]
    rollups: list[str]
    key: tuple[str, ...]
    aggregates: dict[str, str]
    emit: Emit
    delays_ms: tuple[int, ...]
    batches: list[list[list[dict[str, Any]]]]
    cut: int
    num_writes: int | None
    is_timely: bool


def a_typed_case(seed: int) -> TypedCase:
    """A random case; the last two batches end all windows."""
    seeded = random.Random(seed)
    plain = with_rows(seeded)
    while len(plain.batches) > 6:
        plain = with_rows(seeded)
    plain = replace(plain, batches=tuple(
        tuple((START_MS + at, key) for at, key in batch) for batch in plain.batches
    ))  # fmt: skip
    emit = EMITS[seed % len(EMITS)]
    num_streams = 2 if emit != "early" and seeded.random() < 0.4 else 1
    is_timely = emit == "exact" and num_streams == 1 and seeded.random() < 0.6
    plain = on_time(plain) if is_timely else plain
    ends = [(START_MS + 10**7,), (START_MS + 10**7 + 1,)]
    times = [[at for at, _ in batch] for batch in plain.batches] + [list(end) for end in ends]
    batches = _dealt(seeded, times, num_streams)
    names = [name for name in AGGREGATES if name not in NUMBERED]
    plan = MergePlan(windows=plain.window_set, pane_ms=plain.window_set.pane_ms)
    rollups = with_rollups(plan).rollups if seeded.random() < 0.5 else ()
    return TypedCase(
        windows=texts(plain),
        rollups=[f"{r.size_ms}ms every {r.slide_ms}ms offset {r.offset_ms}ms" for r in rollups],
        key=seeded.choice(KEYS),
        aggregates={name: AGGREGATES[name] for name in (*NUMBERED, *seeded.sample(names, 6))},
        emit=emit,
        delays_ms=tuple(plain.delay_ms + 2 * place for place in range(num_streams)),
        batches=batches,
        cut=seeded.randint(1, len(batches) - 1),
        num_writes=seeded.randint(0, 30) if num_streams == 1 and seeded.random() < 0.6 else None,
        is_timely=is_timely,
    )


def _dealt(
    seeded: random.Random, times: list[list[int]], num_streams: int
) -> list[list[list[dict[str, Any]]]]:
    """Rows by batch and stream, some without a time; the last batches are in every stream."""
    rows = iter(typed_rows(seeded, [at for batch in times for at in batch]))
    batches = []
    for number, batch in enumerate(times):
        is_last = number >= len(times) - 2
        parts: list[list[dict[str, Any]]] = [[] for _ in range(num_streams)]
        for _ in batch:
            row = next(rows)
            if is_last:
                for part in parts:
                    part.append(row)
                continue
            if seeded.random() < 0.03:
                row["ts"] = None
            seeded.choice(parts).append(row)
        batches.append(parts)
    return batches


def write_batches(case: TypedCase, folder: Path, first: int, until: int) -> None:
    for number in range(first, until):
        for stream, rows in enumerate(case.batches[number]):
            write_typed(folder / f"in-{stream}", number, rows)


def rows_of(spark: SparkSession, case: TypedCase, folder: Path) -> DataFrame:
    """The stream, or the union of both, with its watermarks."""
    streams = [
        typed_stream(spark, folder / f"in-{place}").withWatermark("ts", f"{delay} milliseconds")
        for place, delay in enumerate(case.delays_ms)
    ]
    return reduce(lambda one, other: one.union(other), streams)


def run_log(
    spark: SparkSession, case: TypedCase, folder: Path, take: Callable[[int, Results], None]
) -> None:
    """All files that are there through the log in a folder; a log's own delay, or the stream's."""
    rows, delay = rows_of(spark, case, folder), None
    if len(case.delays_ms) == 1:
        rows, delay = typed_stream(spark, folder / "in-0"), f"{case.delays_ms[0]}ms"
    log = headway.window_log(
        rows, time="ts", key=case.key, windows=case.windows, aggregates=case.aggregates,
        store=str(folder / "store"), emit=case.emit, delay=delay, rollups=case.rollups,
    )  # fmt: skip
    query = log.start(
        sink=lambda made, number: take(
            number, typed_results(made, case.key, case.aggregates, number)
        ),
        checkpoint=str(folder / "checkpoint"),
        trigger={"availableNow": True},
    )
    assert query.awaitTermination(600)


def run_by_spark(
    spark: SparkSession, case: TypedCase, folder: Path, how: How, results: Results
) -> None:
    """All files that are there by Spark's own state, in the batches of the log."""
    # Update mode takes one aggregation a query.
    is_update = case.emit == "update"
    windows = [[text] for text in case.windows] if is_update else [case.windows]
    spark.conf.set(NO_DATA_KEY, "false")
    try:
        for place, some in enumerate(windows):
            checkpoint = str(folder / f"{how}-{place}")
            shared = headway.shared_windows(
                rows_of(spark, case, folder), time="ts", key=case.key, windows=some,
                aggregates=case.aggregates, how=how, checkpoint=checkpoint,
            )  # fmt: skip
            writer = _into(shared, case, results).outputMode("update" if is_update else "append")
            query = (
                writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
            )
            assert query.awaitTermination(600)
    finally:
        spark.conf.unset(NO_DATA_KEY)


def run_by_spark_early(spark: SparkSession, case: TypedCase, folder: Path) -> Results:
    """Each file by Spark's own state, then the no-data batch that ends windows by its rows.

    Spark has that batch only where no file waits, and numbers it.
    """
    results = Results()
    write_batches(case, folder, 0, 1)
    direct = headway.shared_windows(
        rows_of(spark, case, folder), time="ts", key=case.key, windows=case.windows,
        aggregates=case.aggregates, how="direct",
    )  # fmt: skip
    query = _into(direct, case, results).option("checkpointLocation", str(folder / "c")).start()
    try:
        for number in range(1, len(case.batches) + 1):
            query.processAllAvailable()
            if number < len(case.batches):
                write_batches(case, folder, number, number + 1)
    finally:
        query.stop()
    return results


def _into(rows: DataFrame, case: TypedCase, results: Results) -> DataStreamWriter:
    return rows.writeStream.foreachBatch(
        lambda made, number: results.update(typed_results(made, case.key, case.aggregates, number))
    )


def without_batches(results: Results) -> Results:
    windows: Results = {(0, *place[1:]): values for place, values in results.items()}
    assert len(windows) == len(results)
    return windows


class InterruptedWriteError(Exception):
    """In place of a write."""


@contextmanager
def interrupted_after(num_writes: float, end: Callable[[], None]) -> Iterator[list[int]]:
    """Calls ``end`` before a write of a log; yields the number of writes so far.

    Writes are those of the log and of Spark's Parquet files. A write of the log is two: its draft,
    then its name.
    """
    from pyspark.sql import DataFrameWriter

    counted = [0]
    owners: list[tuple[Any, str]] = [
        *((SparkFiles, name) for name in ("_put", "_name", "delete")),
        (DataFrameWriter, "parquet"),
    ]

    def ending(write: Callable[..., Any]) -> Callable[..., Any]:
        def writes(*arguments: Any) -> Any:
            if counted[0] >= num_writes:
                end()
            counted[0] += 1
            return write(*arguments)

        return writes

    before = [getattr(owner, name) for owner, name in owners]
    for (owner, name), write in zip(owners, before, strict=True):
        setattr(owner, name, ending(write))
    try:
        yield counted
    finally:
        for (owner, name), write in zip(owners, before, strict=True):
            setattr(owner, name, write)
