"""Rows given up beyond capacity, on real Spark; results a line a run.

    make scheduling-shedding                    # 1.2 and 1.6 times capacity, four runs each, 40 m
    python benchmarks/run.py real_shedding --loads 1.2 --runs 1 --length 20 --calibrate 6

A windowed count of rows of which one in five is dear. Nothing is shed, or rows by their age alone
(batches in order of their deadlines), or dear ones first. What rows cost is measured before, alone;
from it come capacity, the ages, and the share of rows in time that is predicted, anew on each
machine. Results that are there are not measured again.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import tempfile
import time
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from real.calibration import fixed_and_row_s, session, usual_batch
from real.records import commit
from real.shedding import (
    CHEAP_SHARE,
    FOREVER_S,
    TRIGGER_S,
    WAYS,
    Limits,
    RowCosts,
    in_time,
    limits_of,
)
from real_gate import NUM_CORES, RESULTS
from result_lines import keep, lines_of, machine_of, this_machine

from headway.units import parse_duration_s

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROUNDS = {"cheap": 50, "dear": 1000}
_RATE_FACTOR = 4.0


def options(parser: argparse.ArgumentParser) -> None:
    """What may be asked."""
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of results")
    parser.add_argument("--loads", default="1.2,1.6", help="times the capacity")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--length", type=float, default=60.0, help="that counts, seconds a run")
    parser.add_argument("--settle", type=float, default=20.0, help="before each run, seconds")
    parser.add_argument(
        "--calibrate", type=float, default=20.0, help="some fifteen runs, seconds each"
    )
    parser.add_argument("--budget", help="start nothing that would end later, e.g. '40m'")
    parser.add_argument("--commit", action="store_true", help="commit results after each load")
    parser.add_argument("--seed", type=int, default=1)


def run(given: argparse.Namespace) -> None:
    """Measure costs, then run what is missing, and append a line for each run."""
    stop_at_s = time.monotonic() + (parse_duration_s(given.budget) if given.budget else 1e9)
    work = Path(tempfile.mkdtemp(prefix="headway-real-shedding-"))
    try:
        with session(work / "spark", NUM_CORES) as spark:
            costs = _costs(spark, given, work)
            file = given.results / "shedding.jsonl"
            for number in range(given.runs):
                for load in map(float, given.loads.split(",")):
                    ways = given.ways.split(",")
                    random.Random(f"{given.seed}/{load}/{number}").shuffle(ways)
                    for way in ways:
                        done = {(one["load"], one["run"], one["way"]) for one in lines_of(file)}
                        if (load, number, way) in done:
                            continue
                        if time.monotonic() + given.settle + given.length > stop_at_s:
                            print(f"{load:g} {number} {way}: beyond the budget", flush=True)
                            continue
                        line = _measured(spark, work, load, way, costs, given)
                        keep(file, {"load": load, "run": number, **line})
                        print(
                            f"{load:g} {number} {way}: {line['in_time_ratio']:.1%} in time, "
                            f"predicted {line['predicted_ratio']:.1%}",
                            flush=True,
                        )
                    if given.commit:
                        commit(given.results, f"Measured shedding at {load:g}, run {number + 1}")
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _costs(spark: SparkSession, given: argparse.Namespace, work: Path) -> RowCosts:
    """Time of a batch and of a row of each class, as measured before on this machine, or now."""
    file, machine = given.results / "shedding-costs.jsonl", this_machine()
    if known := [one for one in lines_of(file) if machine_of(one) == machine]:
        found = known[-1]
        return RowCosts(**{name: found[name] for name in RowCosts.__dataclass_fields__})
    lines = {}
    everything = Limits(cheap_s=FOREVER_S, dear_s=FOREVER_S)
    cases = {
        "cheap": (1.0, everything),
        "dear": (0.0, everything),
        "shed": (1.0, Limits(cheap_s=-1.0, dear_s=-1.0)),
    }
    for name, (cheap_share, limits) in cases.items():
        batch_at = partial(
            _batch_at, spark, work, limits=limits, share=cheap_share, seconds=given.calibrate
        )
        lines[name] = fixed_and_row_s(name, batch_at, factor=_RATE_FACTOR)
    costs = RowCosts(
        fixed_s=max(statistics.median(fixed_s for fixed_s, _ in lines.values()), 0.0),
        cheap_s=lines["cheap"][1],
        dear_s=lines["dear"][1],
        shed_s=min(lines["shed"][1], lines["cheap"][1]),
    )
    at = datetime.now(UTC).isoformat(timespec="seconds")
    keep(file, {**asdict(costs), "at": at, "machine": machine})
    print(f"capacity {costs.capacity_per_s:.0f} rows/s: {costs}", flush=True)
    return costs


def _batch_at(
    spark: SparkSession,
    work: Path,
    rate_per_s: float,
    *,
    limits: Limits,
    share: float,
    seconds: float,
) -> tuple[float, float]:
    """Rows of a usual batch at a rate, and its time [s]."""
    return usual_batch(
        _progress(spark, work, rate_per_s, limits, share, seconds), "triggerExecution"
    )


def _measured(
    spark: SparkSession,
    work: Path,
    load: float,
    way: str,
    costs: RowCosts,
    given: argparse.Namespace,
) -> dict[str, Any]:
    rate_per_s = load * costs.capacity_per_s
    limits = limits_of(way, rate_per_s, costs)
    at = datetime.now(UTC).isoformat(timespec="seconds")
    began_s = time.time()
    progress = _progress(spark, work, rate_per_s, limits, CHEAP_SHARE, given.settle + given.length)
    found = in_time(progress, limits, began_s + given.settle)
    # Rows that wait at the end came too late to be in time.
    offered = rate_per_s * given.length
    return {
        "way": way,
        "at": at,
        "machine": this_machine(),
        "rate_per_s": rate_per_s,
        "limits_s": asdict(limits),
        "predicted_ratio": 0.0 if way == "none" else limits.kept_ratio(),
        "in_time_ratio": found.in_time / max(found.rows, offered),
        **asdict(found),
        "batch_s": usual_batch(progress, "triggerExecution")[1],
    }


def _progress(
    spark: SparkSession,
    work: Path,
    rate_per_s: float,
    limits: Limits,
    cheap_share: float,
    seconds: float,
) -> list[dict[str, Any]]:
    """Progress of a query that runs for a while."""
    from pyspark.sql import functions as sf

    import headway
    from headway.runtime.word_count import clock_lines

    lines = clock_lines(
        spark,
        rate_per_s=rate_per_s,
        num_source_partitions=2,
        num_words=1000,
        zipf_exponent=0.0,
        words_per_row=1,
    )
    is_cheap = sf.pmod(sf.hash("arrival", "text"), sf.lit(1000)) < round(1000 * cheap_share)
    rows = lines.withColumn("kind", sf.when(is_cheap, "cheap").otherwise("dear"))
    if limits.cheap_s > 0.0:
        older_than = {"cheap": limits.cheap_s, "dear": max(limits.dear_s, 1e-3)}
        marked = headway.shed(rows, arrived="arrival", older_than=older_than, cost="kind")
    else:
        # Everything: a limit below any age.
        late = rows.withColumn("due", sf.expr("arrival - INTERVAL 1 HOUR"))
        marked = headway.shed(late, arrived="due", older_than=1.0)
    num_rounds = sf.when(sf.col("kind") == "cheap", _ROUNDS["cheap"]).otherwise(_ROUNDS["dear"])
    work_done = sf.aggregate(
        sf.sequence(sf.lit(1), num_rounds),
        sf.xxhash64("text"),
        lambda so_far, number: sf.xxhash64(so_far, number),
    )
    key = sf.when(~sf.col("shed"), sf.pmod(work_done, sf.lit(100)))
    counts = (
        marked.withWatermark("arrival", "0 seconds")
        .groupBy(sf.window("arrival", "5 seconds"), key.alias("key"), "shed")
        .count()
    )
    folder = Path(tempfile.mkdtemp(dir=work))
    query = (
        counts.writeStream.format("noop")
        .outputMode("append")
        .option("checkpointLocation", str(folder))
        .trigger(processingTime=f"{TRIGGER_S:g} seconds")
        .start()
    )
    try:
        time.sleep(seconds)
        if (error := query.exception()) is not None:
            raise error
        return [dict(one) for one in query.recentProgress]
    finally:
        query.stop()
        shutil.rmtree(folder, ignore_errors=True)
