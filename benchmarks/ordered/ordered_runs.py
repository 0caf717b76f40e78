"""Real runs of ordered steps: keys in buckets, groups by key, and placed keys.

    python benchmarks/run.py ordered_speed --measure          # resumes if it was interrupted
    python benchmarks/run.py ordered_speed --output docs/ordered-speed.md

Each finished run is a line of the results and is not run again when the measurement resumes.
"""

from __future__ import annotations

import heapq
import json
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from result_lines import keep, lines_of

import headway
from headway.models.stages.spark_hash import spark_xxhash64
from headway.profiler.spark.session import embedded_session, local_checkpoint_conf
from headway.runtime.measure import progress_events
from headway.runtime.ordered.layout import partition_ids, placed_keys

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CORES = 2
ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
STATE = "last double, n long"
OUTPUT = "k long, n long, since double"


@dataclass(frozen=True)
class Amount:
    """How much is run: everything, or the minimum that shows that it works."""

    keys: Sequence[int] = (100, 1_000, 10_000, 100_000)
    rows: Sequence[int] = (20_000, 100_000)
    warm: int = 10
    batches: int = 60
    repeats: int = 3
    warm_most_s: float = 30.0
    counted_most_s: float = 90.0
    exponents: Sequence[float] = (0.8, 1.2)
    partitions: Sequence[int] = (4, 8, 16, 32)
    table_rows: int = 200_000
    table_keys: int = 1_000


SHORT = Amount(keys=(100,), rows=(2_000,), warm=1, batches=2, repeats=1, exponents=(1.2,),
               partitions=(4,), table_rows=4_000, table_keys=50)  # fmt: skip


def measure(results: Path, amount: Amount) -> None:
    """Run what is missing from the results, short runs first."""
    results.parent.mkdir(parents=True, exist_ok=True)
    done = {line["run"] for line in lines_of(results)}
    with tempfile.TemporaryDirectory() as name:
        for repeat in range(amount.repeats):
            for exponent in (0.0, *amount.exponents):
                _run_tables(results, done, amount, exponent, repeat, Path(name))
        for keys in amount.keys:
            for repeat in range(amount.repeats):
                for rows in amount.rows:
                    _run_ways(results, done, amount, keys, rows, repeat, Path(name))


def _kept(results: Path, line: Mapping[str, Any]) -> None:
    keep(results, line)
    print(line["run"], flush=True)


WAYS = ("buckets", "pandas by key", "rows by key")


def _run_ways(
    results: Path, done: set[str], amount: Amount, keys: int, rows: int, repeat: int, work: Path
) -> None:
    # A different way is first in each repeat.
    for way in (*WAYS[repeat % 3 :], *WAYS[: repeat % 3]):
        run = f"{way}, {keys} keys, {rows} rows, {repeat}"
        if run in done:
            continue
        with session({**(ROCKSDB if way == "rows by key" else {})}) as spark:
            seconds = _batches_s(spark, way, keys, rows, amount, work)
        _kept(results, {"run": run, "way": way, "keys": keys, "rows": rows, "repeat": repeat,
                        "batches_s": seconds})  # fmt: skip


def session(conf: Mapping[str, str], events: Path | None = None) -> Any:
    return embedded_session(
        app_name="ordered",
        master=f"local[{CORES}]",
        event_log_dir=events,
        driver_memory="4g",
        extra_conf={
            "spark.sql.shuffle.partitions": str(CORES),
            "spark.eventLog.compress": "false",
            **local_checkpoint_conf(),
            **conf,
        },
    )


def _batches_s(
    spark: SparkSession, way: str, keys: int, rows: int, amount: Amount, work: Path
) -> list[float]:
    """Durations of the batches after the warm-up, in order.

    Runs the number of batches in ``amount``, or as many as its time allows, but at least three.
    """
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "100000")
    place = Path(tempfile.mkdtemp(dir=work))
    source = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", rows)
        .option("numPartitions", CORES)
        .option("advanceMillisPerBatch", 1000)
        .load()
        .selectExpr(f"pmod(hash(value), {keys}) AS k", "value AS offset", "value % 100 / 7D AS v")
    )
    found = QUERIES[way](source, str(place / "checkpoint"))
    query = (
        found.writeStream.format("noop")
        .outputMode("append")
        .option("checkpointLocation", str(place / "checkpoint"))
        .start()
    )
    try:
        warm = awaited(query, amount.warm, amount.warm_most_s, least=1)
        wanted = warm + awaited(query, amount.batches, amount.counted_most_s, least=3, after=warm)
    finally:
        query.stop()
        shutil.rmtree(place, ignore_errors=True)
    events = [e for e in progress_events(query) if e["numInputRows"]][warm:wanted]
    return [event["durationMs"]["triggerExecution"] / 1000 for event in events]


def awaited(query: Any, most: int, most_s: float, *, least: int, after: int = 0) -> int:
    """Batches finished beyond ``after``: ``most``, or at least ``least`` once time is up."""
    until_s = time.monotonic() + most_s
    while not query.awaitTermination(1):
        finished = len(query.recentProgress) - after
        if finished > most or (finished > least and time.monotonic() > until_s):
            return min(finished - 1, most)
    return max(len(query.recentProgress) - after, 0)


def _buckets(source: DataFrame, checkpoint: str) -> DataFrame:
    def step(row: Any, state: Any) -> Any:
        last, n = state or (0.0, 0)
        return (row.v, n + 1), [(row.k, n + 1, row.v - last)]

    return headway.ordered(source, key="k", by="offset", step=step, state=STATE, output=OUTPUT,
                           checkpoint=checkpoint)  # fmt: skip


def _pandas_by_key(source: DataFrame, checkpoint: str) -> DataFrame:  # noqa: ARG001
    """The same step with Spark's own operator, as in its documentation."""
    import pandas as pd  # type: ignore[import-untyped]

    def of_key(key: Any, frames: Iterable[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
        last, n = state.getOption or (0.0, 0)
        rows = pd.concat(list(frames)).sort_values("offset")
        made = []
        for value in rows["v"].tolist():
            made.append((int(key[0]), n + 1, value - last))
            last, n = value, n + 1
        state.update((last, n))
        yield pd.DataFrame(made, columns=["k", "n", "since"])

    return source.groupBy("k").applyInPandasWithState(of_key, OUTPUT, STATE, "append", "NoTimeout")


def _rows_by_key(source: DataFrame, checkpoint: str) -> DataFrame:  # noqa: ARG001
    """The same step with Spark's newer operator, with rows instead of pandas."""
    from pyspark.sql import Row
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class ByKey(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.state = handle.getValueState("state", STATE)

        def handleInputRows(  # noqa: N802
            self,
            key: Any,
            rows: Iterator[Any],
            timerValues: Any,  # noqa: ARG002
        ) -> Iterator[Row]:
            last, n = self.state.get() or (0.0, 0)
            for row in sorted(rows, key=lambda row: row.offset):
                yield Row(k=key[0], n=n + 1, since=row.v - last)
                last, n = row.v, n + 1
            self.state.update((last, n))

        def close(self) -> None:
            pass

    by_key: Any = source.groupBy("k")
    found: DataFrame = by_key.transformWithState(ByKey(), OUTPUT, "append", "none")
    return found


QUERIES = {"buckets": _buckets, "pandas by key": _pandas_by_key, "rows by key": _rows_by_key}


@dataclass(frozen=True)
class TableRun:
    """A table that ``headway.ordered`` processes once, with keys placed or by hash."""

    exponent: float
    rows: int
    keys: int
    partitions: int
    placed: bool

    def shares(self) -> dict[str, float]:
        weights = np.arange(1, self.keys + 1, dtype=float) ** -self.exponent
        return {str(k): w for k, w in enumerate((weights / weights.sum()).tolist())}

    def numbers(self) -> Any:
        """The key of each row, the same in every run."""
        seeded = np.random.default_rng(17)
        return seeded.choice(self.keys, self.rows, p=[*self.shares().values()])

    def rows_of_tasks(self) -> list[int]:
        """Predicted rows of each task, from the placement and Spark's hashes only."""
        if not self.placed:
            hashed = spark_xxhash64(self.numbers(), "long")
            found = np.bincount(np.mod(hashed, self.partitions), minlength=self.partitions)
            return [int(number) for number in found]
        ids = partition_ids(self.partitions)
        bucket_of = placed_keys(self.shares(), ids)
        counted = Counter(bucket_of[str(key)] for key in self.numbers().tolist())
        return [counted.get(bucket, 0) for bucket in ids]


def _run_tables(
    results: Path, done: set[str], amount: Amount, exponent: float, repeat: int, work: Path
) -> None:
    """Rows and duration of each task; two sizes with even keys, to fit the cost of a row."""
    sizes = (amount.table_rows // 2, amount.table_rows) if exponent == 0.0 else (amount.table_rows,)
    runs = [
        TableRun(exponent, rows, amount.table_keys, partitions, placed)
        for rows in sizes
        for partitions in amount.partitions
        for placed in ((True,) if exponent == 0.0 else (False, True))
    ]
    names = {f"table {' '.join(map(str, asdict(one).values()))}, {repeat}": one for one in runs}
    left = {name: one for name, one in names.items() if name not in done}
    if not left:
        return
    events = Path(tempfile.mkdtemp(dir=work))
    with session({"spark.sql.adaptive.enabled": "false"}, events) as spark:
        counted = {name: _through_table(spark, name, one, work) for name, one in left.items()}
    tasks = _tasks_of(events)
    for name, one in left.items():
        _kept(results, {"run": name, **asdict(one), "repeat": repeat, **counted[name],
                        **tasks[name]})  # fmt: skip


def _through_table(spark: SparkSession, name: str, one: TableRun, work: Path) -> dict[str, Any]:
    """Count the rows of each task, then run it with timing."""
    import pandas as pd

    spark.sparkContext.setJobDescription("prepares")
    place = Path(tempfile.mkdtemp(dir=work))
    (place / "keys.csv").write_text(
        "\n".join(["key,share", *(f"{key},{share!r}" for key, share in one.shares().items())])
    )
    frame = pd.DataFrame({"k": one.numbers(), "offset": np.arange(one.rows)})
    spark.createDataFrame(frame).repartition(CORES).write.parquet(str(place / "rows"))
    rows = spark.read.parquet(str(place / "rows"))
    spark.conf.set("spark.sql.shuffle.partitions", str(one.partitions))

    def where(row: Any, state: Any) -> Any:  # noqa: ARG001
        from pyspark import TaskContext

        context = TaskContext.get()
        return None, [(-1 if context is None else context.partitionId(),)]

    def burn(row: Any, state: Any) -> Any:  # noqa: ARG001
        until = time.perf_counter() + 20e-6
        while time.perf_counter() < until:
            pass
        return None, []

    asked: dict[str, Any] = {"key": "k", "by": "offset", "state": "n long", "output": "task int",
                             "place": place / "keys.csv" if one.placed else None}  # fmt: skip
    counted = headway.ordered(rows, step=where, **asked).groupBy("task").count().collect()
    # The first run is the warm-up.
    for description in ("warm-up", name):
        spark.sparkContext.setJobDescription(description)
        burned = headway.ordered(rows, step=burn, **asked)
        burned.write.format("noop").mode("overwrite").save()
    return {"rows_of_tasks": {str(row["task"]): row["count"] for row in counted},
            "predicted_rows": one.rows_of_tasks()}  # fmt: skip


def _tasks_of(events: Path) -> dict[str, dict[str, Any]]:
    """Durations of the last stage of each described job, and of its tasks."""
    stages: dict[int, str] = {}
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(events.rglob("events_*")):
        for text in path.read_text().splitlines():
            event = json.loads(text)
            kind = event["Event"]
            if kind == "SparkListenerJobStart":
                name = event.get("Properties", {}).get("spark.job.description", "")
                stages[max(event["Stage IDs"])] = name
            elif kind == "SparkListenerTaskEnd" and event["Stage ID"] in stages:
                info, name = event["Task Info"], stages[event["Stage ID"]]
                tasks = found.setdefault(name, {"tasks_s": {}})["tasks_s"]
                tasks[str(info["Index"])] = (info["Finish Time"] - info["Launch Time"]) / 1000
            elif kind == "SparkListenerStageCompleted":
                stage = event["Stage Info"]
                name = stages.get(stage["Stage ID"], "")
                if name in found:
                    spent_ms = stage["Completion Time"] - stage["Submission Time"]
                    found[name]["stage_s"] = spent_ms / 1000
    return found


def makespan_s(tasks_s: Sequence[float], slots: int) -> float:
    """Makespan of tasks in order, each on the slot that is free first.

    >>> makespan_s([3.0, 1.0, 1.0, 1.0], 2)
    3.0
    """
    free = [0.0] * slots
    for task_s in tasks_s:
        heapq.heappush(free, heapq.heappop(free) + task_s)
    return max(free)
