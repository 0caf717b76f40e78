"""Real queries under each policy, beside Spark by itself; results a line a run.

    python benchmarks/run.py real_gate --results results.jsonl   # all cells, four runs each
    python benchmarks/run.py real_gate --results /tmp/try.jsonl --cells spread-4-0.5 --runs 1 \\
        --windows 6 --warm-up 10 --ways trigger,promise                   # a short try

Windowed counts of events by campaign (5 s windows, as the Yahoo benchmark, whose windows are of
10 s), their ends spread by `startTime` or all on the epoch grid; loads are shares of the rows that
one such query can take alone, found in the session before. One warmed session plays all ways of a
cell in random order. Windows still open at the end count as late. FAIR pools need a session of
their own (`--scheduler FAIR`).
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

WINDOW_S = 5.0
TRIGGERS = ("500 milliseconds", "1 second", "2 seconds")
WAYS = ("trigger", "free", "stagger", "fcfs", "promise", "auto")
TARGET = "window p99 <= 3s"
CAMPAIGNS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Queries that run together."""

    name: str
    num_queries: int
    load: float
    aligned: bool = False
    num_rows_only: int = 0
    num_joins: int = 0


CELLS = (
    Cell(name="spread-8-0.5", num_queries=8, load=0.5),
    Cell(name="spread-8-0.7", num_queries=8, load=0.7),
    Cell(name="spread-8-0.9", num_queries=8, load=0.9),
    Cell(name="aligned-8-0.7", num_queries=8, load=0.7, aligned=True),
    Cell(name="spread-4-0.7", num_queries=4, load=0.7),
    Cell(name="spread-12-0.7", num_queries=12, load=0.7),
    Cell(name="mix-8-0.7", num_queries=4, load=0.7, num_rows_only=3, num_joins=1),
)


def options(parser: argparse.ArgumentParser) -> None:
    """What may be asked."""
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--cells", default=",".join(cell.name for cell in CELLS))
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--windows", type=int, default=120, help="windows a run, of all queries")
    parser.add_argument("--warm-up", type=float, default=40.0)
    parser.add_argument("--scheduler", choices=("FIFO", "FAIR"), default="FIFO")
    parser.add_argument("--capacity", type=float, help="rows/s of a session; measured otherwise")
    parser.add_argument("--seed", type=int, default=1)


def run(given: argparse.Namespace) -> None:
    """Play the cells, and append a line for each run."""
    from headway.profiler.spark.session import embedded_session, local_checkpoint_conf
    from headway.runtime.clock_source import build_clock_source_jar

    folder = Path(tempfile.mkdtemp(prefix="headway-real-gate-"))
    given.results.parent.mkdir(parents=True, exist_ok=True)
    chosen = [cell for cell in CELLS if cell.name in given.cells.split(",")] or [
        Cell(name=name, num_queries=int(name.split("-")[1]), load=float(name.split("-")[2]),
             aligned=name.startswith("aligned"))
        for name in given.cells.split(",")
    ]  # fmt: skip
    try:
        with embedded_session(
            app_name="real gate",
            master="local[2]",
            event_log_dir=folder,
            jars=[build_clock_source_jar(folder)],
            driver_memory="2g",
            extra_conf={
                "spark.sql.shuffle.partitions": "2",
                "spark.scheduler.mode": given.scheduler,
                "spark.sql.streaming.numRecentProgressUpdates": "5000",
                **local_checkpoint_conf(),
            },
        ) as spark:
            capacity = given.capacity or measured_capacity(spark, folder)
            print(f"capacity {capacity:.0f} rows/s", flush=True)
            shuffler = random.Random(given.seed)
            for cell in chosen:
                for number in range(given.runs):
                    ways = given.ways.split(",")
                    shuffler.shuffle(ways)
                    for way in ways:
                        line = measured_run(spark, folder, cell, way, capacity, given)
                        line |= {"run": number, "scheduler": given.scheduler}
                        with given.results.open("a", encoding="utf-8") as out:
                            out.write(json.dumps(line) + "\n")
                        print(json.dumps(line)[:200], flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measured_capacity(spark: SparkSession, folder: Path) -> float:
    """Rows per second that a windowed query takes when it has all it wants, by its slope.

    Two rates, as fast as possible: the time that more rows add to a batch.
    """
    points = []
    for number, rate in enumerate((20_000.0, 80_000.0)):
        query = windowed(spark, folder / f"capacity{number}", "capacity", rate, 0.0, "0 seconds")
        time.sleep(30.0)
        progress = [one for one in query.recentProgress if one["numInputRows"]][-10:]
        query.stop()
        points.append(
            (
                np.mean([one["numInputRows"] for one in progress]),
                np.mean([one["durationMs"]["addBatch"] / 1000.0 for one in progress]),
            )
        )
    (few, short_s), (many, long_s) = points
    return float((many - few) / max(long_s - short_s, 1e-3))


def source(spark: SparkSession, rate_per_s: float) -> DataFrame:
    from headway.runtime.word_count import clock_lines

    return clock_lines(
        spark, rate_per_s=rate_per_s, num_source_partitions=2, num_words=CAMPAIGNS, words_per_row=1
    )


def windowed(
    spark: SparkSession, checkpoint: Path, name: str, rate: float, start_s: float, trigger: str
) -> StreamingQuery:
    from pyspark.sql import functions as sf

    windows = sf.window(
        "arrival", f"{WINDOW_S:g} seconds", startTime=f"{round(start_s * 1000)} milliseconds"
    )
    counts = (
        source(spark, rate).withWatermark("arrival", "0 seconds").groupBy(windows, "text").count()
    )
    return started(counts, checkpoint, name, trigger)


def started(frame: DataFrame, checkpoint: Path, name: str, trigger: str) -> StreamingQuery:
    writer = frame.writeStream.format("noop").queryName(name).outputMode("append")
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(processingTime=trigger)
    return writer.start()


def of_cell(
    spark: SparkSession, folder: Path, cell: Cell, capacity: float, trigger: str, in_pools: bool
) -> Iterator[tuple[StreamingQuery, str]]:
    """The queries of a cell, each with its target."""
    from pyspark.sql import functions as sf

    num = cell.num_queries + cell.num_rows_only + 2 * cell.num_joins
    rate = cell.load * capacity / num
    for at in range(cell.num_queries):
        if in_pools:
            spark.sparkContext.setLocalProperty("spark.scheduler.pool", f"pool{at}")
        start_s = 0.0 if cell.aligned else WINDOW_S * at / cell.num_queries
        yield windowed(spark, folder / f"w{at}", f"w{at}", rate, start_s, trigger), TARGET
    for at in range(cell.num_rows_only):
        plain = source(spark, rate).select(sf.hash("text").alias("h"))
        yield started(plain, folder / f"r{at}", f"r{at}", trigger), "p99 <= 3s"
    for at in range(cell.num_joins):
        left, right = (
            source(spark, rate).withWatermark("arrival", "0 seconds").alias(side)
            for side in ("a", "b")
        )
        joined = left.join(
            right,
            sf.expr("a.text = b.text AND a.arrival = b.arrival"),
        )
        yield started(joined, folder / f"j{at}", f"j{at}", trigger), "p99 <= 5s"


def measured_run(
    spark: SparkSession,
    root: Path,
    cell: Cell,
    way: str,
    capacity: float,
    given: argparse.Namespace,
) -> dict[str, Any]:
    """One run of a cell under one way of scheduling it."""
    from headway.api.schedule import schedule

    folder = Path(tempfile.mkdtemp(dir=root))
    gated = way not in ("free", "trigger") and not way.endswith("seconds")
    trigger = {"free": "0 seconds", "trigger": "1 second"}.get(way, "1 second" if gated else way)
    in_pools = given.scheduler == "FAIR"
    queries = list(of_cell(spark, folder, cell, capacity, trigger, in_pools))
    length_s = given.warm_up + WINDOW_S * given.windows / max(cell.num_queries, 1)
    report: dict[str, Any] | None = None
    try:
        if gated:
            with schedule(spark, way) as gate:
                for query, target in queries:
                    gate.add(query, target=target)
                time.sleep(length_s)
                report = asdict(gate.report())
                until_s = time.time()
                measured = [figures(one, until_s, length_s - given.warm_up) for one, _ in queries]
        else:
            time.sleep(length_s)
            until_s = time.time()
            measured = [figures(one, until_s, length_s - given.warm_up) for one, _ in queries]
    finally:
        for query, _ in queries:
            query.stop()
        shutil.rmtree(folder, ignore_errors=True)
    latencies = [one for each in measured for one in each["window_latency_s"]]
    return {
        "cell": cell.name,
        "way": way,
        "capacity_per_s": capacity,
        "mean_s": float(np.mean(latencies)) if latencies else None,
        "p90_s": float(np.quantile(latencies, 0.9)) if latencies else None,
        "p99_s": float(np.quantile(latencies, 0.99)) if latencies else None,
        "num_windows": len(latencies),
        "num_open": sum(one["num_open"] for one in measured),
        "rows_per_s": sum(one["rows_per_s"] for one in measured),
        "queries": [{k: v for k, v in one.items() if k != "window_latency_s"} for one in measured],
        "report": report,
    }


def figures(query: StreamingQuery, until_s: float, counted_s: float) -> dict[str, Any]:
    """Window latencies above the watermark delay, rows, from the progress of the counted time."""
    from headway.runtime.gate.windows import windows_of_query

    grid = windows_of_query(query)
    from_s = until_s - counted_s
    latencies, rows, emitted_s = [], 0, None
    for one in query.recentProgress:
        start_s = epoch_s(one["timestamp"])
        spent = one["durationMs"]
        commit_s = start_s + (spent["triggerExecution"] - spent.get("commitOffsets", 0)) / 1000.0
        if start_s >= from_s:
            rows += one["numInputRows"]
        watermark_s = epoch_s(one["eventTime"]["watermark"]) if "eventTime" in one else 0.0
        if grid is None or watermark_s <= 0.0:
            continue
        if emitted_s is not None:
            end_s = grid.first_end_after_s(emitted_s)
            while end_s <= watermark_s:
                if end_s + grid.watermark_delay_s >= from_s:
                    latencies.append(commit_s - end_s - grid.watermark_delay_s)
                end_s += grid.slide_s
        emitted_s = max(watermark_s, emitted_s or watermark_s)
    num_open = 0
    if grid is not None:
        # A query without a watermark by now has emitted nothing of what was due.
        counted_from_s = from_s - grid.watermark_delay_s
        end_s = grid.first_end_after_s(counted_from_s if emitted_s is None else emitted_s)
        # Due for longer than the target: late, with what it is by now.
        while end_s + grid.watermark_delay_s + 3.0 < until_s:
            latencies.append(until_s - end_s - grid.watermark_delay_s)
            num_open += 1
            end_s += grid.slide_s
    return {
        "name": query.name,
        "window_latency_s": latencies,
        "num_open": num_open,
        "rows_per_s": rows / counted_s,
    }


def epoch_s(text: str) -> float:
    """A timestamp of a progress event."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
