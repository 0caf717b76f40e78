"""Bytes of state that a batch writes, and its duration, at 100,000 keys: buckets and Spark's own.

    python benchmarks/run.py ordered_state --minutes 15     # resumes; the page is ordered_speed

The ways of a kind follow each other in one JVM, each in a different position of each repeat, after
a query with each store that is not counted: the first batches of a JVM take twice as long. Two
kinds of runs:

* `all`: 20,000 rows in each batch, some 18,000 keys of 100,000, as fast as possible and with the
  maintenance of Spark's default, as in `ordered_runs`. What counts is the mean batch duration.
* `few`: a batch with a row of each of 100,000 keys, then batches with a row of 1,000 keys, 1% of
  all, drawn at random. What counts is the size of all files that were written below the
  checkpoint's `state` folder, snapshots of the store's maintenance included. It runs every five
  seconds, and nothing is deleted meanwhile.

Judged is the median of the repeats: buckets in pieces are to be 7.0 times as fast as the fastest of
Spark's own ways (`all`), and to write a tenth of the bytes of buckets in one value (`few`).
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

import numpy as np
from ordered_runs import CORES, QUERIES, ROCKSDB, awaited, session
from pages import headed
from result_lines import keep, lines_of

from headway.runtime.measure import progress_events
from headway.units import format_duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RESULTS = Path(__file__).parent / "results" / "state.jsonl"
NUM_KEYS, ALL_ROWS, FEW_ROWS = 100_000, 20_000, 1_000
GOAL_RATIO, GOAL_BYTES_RATIO = 7.0, 0.1
_STORE = "spark.sql.streaming.stateStore"
_CONF = {"spark.sql.streaming.numRecentProgressUpdates": "100000"}
_COUNTED = {
    "spark.sql.streaming.minBatchesToRetain": "10000",
    f"{_STORE}.maintenanceInterval": "5s",
}
_DEFAULT = {
    f"{_STORE}.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    )
}
IN_PIECES, IN_ONE_VALUE = "buckets, in pieces", "buckets, in one value"
SPARKS_OWN = ("rows by key", "pandas by key")


@dataclass(frozen=True)
class Way:
    """A query of `ordered_runs`, with the store of its state."""

    query: str
    store: Mapping[str, str]
    store_name: str


WAYS: Mapping[str, Way] = {
    IN_PIECES: Way("buckets", ROCKSDB, "RocksDB"),
    IN_ONE_VALUE: Way("buckets", _DEFAULT, "default"),
    "rows by key": Way("rows by key", ROCKSDB, "RocksDB"),
    "pandas by key": Way("pandas by key", _DEFAULT, "default"),
}


@dataclass(frozen=True)
class Amount:
    """Batches, and seconds at most, of each run; ``few`` has one with all keys before them."""

    repeats: int
    num_keys: int
    rows: Mapping[str, int]
    warm: int
    batches: Mapping[str, int]
    warm_s: float = 30.0
    counted_s: float = 60.0


FULL = Amount(repeats=2, num_keys=NUM_KEYS, rows={"all": ALL_ROWS, "few": FEW_ROWS}, warm=10,
              batches={"all": 60, "few": 100})  # fmt: skip
SHORT = Amount(repeats=1, num_keys=2_000, rows={"all": 500, "few": 20}, warm=2,
               batches={"all": 3, "few": 8})  # fmt: skip


def options(parser: argparse.ArgumentParser) -> None:
    """The results, the time, and the size."""
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--minutes", type=float, default=15.0, help="begin no run after so long")
    parser.add_argument("--short", action="store_true", help="the smallest setting, as a trial")


def run(given: argparse.Namespace) -> None:
    """Run what is missing from the results, as long as there is time."""
    amount = SHORT if given.short else FULL
    until_s = time.monotonic() + 60.0 * given.minutes
    kinds = [("few", 0), *(("all", repeat) for repeat in range(amount.repeats))]
    for kind, repeat in kinds:
        missing = _missing(given.results, amount, kind, repeat)
        if missing and time.monotonic() < until_s:
            _run_ways(given.results, amount, kind, repeat, missing, until_s)
    left = [
        _name(amount, kind, way, repeat)
        for kind, repeat in kinds
        for way in _missing(given.results, amount, kind, repeat)
    ]
    print(f"not measured yet: {'; '.join(left) or 'nothing'}")


def _missing(results: Path, amount: Amount, kind: str, repeat: int) -> list[str]:
    """Ways of a kind in the order of a repeat; Spark's slowest in the first repeat only."""
    done = {line["run"] for line in lines_of(results)}
    ways = list(WAYS)
    shift = repeat % len(ways)
    return [
        way
        for way in (*ways[shift:], *ways[:shift])
        if (repeat == 0 or way != "pandas by key") and _name(amount, kind, way, repeat) not in done
    ]


def _name(amount: Amount, kind: str, way: str, repeat: int) -> str:
    return f"{kind}, {way}, {amount.num_keys} keys, {repeat}"


def _run_ways(
    results: Path, amount: Amount, kind: str, repeat: int, ways: Sequence[str], until_s: float
) -> None:
    conf = _CONF | _COUNTED if kind == "few" else _CONF
    with tempfile.TemporaryDirectory() as folder, session(conf) as spark:
        files = Path(folder) / "few"
        _write_few(files, amount, repeat)
        for way in (IN_ONE_VALUE, IN_PIECES):
            _run_way(spark, way, kind, files, replace(amount, warm_s=5.0, counted_s=15.0))
        for way in ways:
            if time.monotonic() > until_s:
                return
            name = _name(amount, kind, way, repeat)
            measured = _run_way(spark, way, kind, files, amount)
            keep(results, {"run": name, "kind": kind, "way": way, "repeat": repeat,
                           "keys": amount.num_keys, "rows": amount.rows[kind],
                           **measured})  # fmt: skip
            print(name, flush=True)


def _run_way(
    spark: SparkSession, way: str, kind: str, files: Path, amount: Amount
) -> dict[str, Any]:
    for option, value in WAYS[way].store.items():
        spark.conf.set(option, value)
    rows = _few(spark, files) if kind == "few" else _all(spark, amount)
    with tempfile.TemporaryDirectory(dir=files.parent, ignore_cleanup_errors=True) as work:
        return _measured(rows, WAYS[way].query, Path(work) / "checkpoint", amount, kind)


def _all(spark: SparkSession, amount: Amount) -> DataFrame:
    return (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", amount.rows["all"])
        .option("numPartitions", CORES)
        .option("advanceMillisPerBatch", 1000)
        .load()
        .selectExpr(
            f"pmod(hash(value), {amount.num_keys}) AS k", "value AS offset", "value % 100 / 7D AS v"
        )
    )


def _write_few(folder: Path, amount: Amount, repeat: int) -> None:
    """A file for each batch: all keys in the first, a few of them in the others."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    seeded, offset = np.random.default_rng(44 + repeat), 0
    for number in range(amount.warm + amount.batches["few"] + 5):
        keys = (
            seeded.permutation(amount.num_keys)
            if number == 0
            else seeded.choice(amount.num_keys, amount.rows["few"], replace=False)
        )
        offsets = offset + np.arange(len(keys))
        offset += len(keys)
        path = folder / f"{number:04}.parquet"
        table = {"k": keys.astype(np.int32), "offset": offsets, "v": offsets % 100 / 7.0}
        pq.write_table(pa.table(table), path)
        os.utime(path, (number + 1, number + 1))  # the order in which Spark reads them


def _few(spark: SparkSession, folder: Path) -> DataFrame:
    return (
        spark.readStream.schema("k int, offset long, v double")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(folder))
    )


def _measured(
    rows: DataFrame, query_name: str, checkpoint: Path, amount: Amount, kind: str
) -> dict[str, Any]:
    """Durations of the counted batches, and bytes of state files that they wrote."""
    query = (
        QUERIES[query_name](rows, str(checkpoint))
        .writeStream.format("noop")
        .outputMode("append")
        .option("checkpointLocation", str(checkpoint))
        .start()
    )
    first = 1 if kind == "few" else 0
    try:
        warm = awaited(query, first + amount.warm, amount.warm_s, least=first + 1)
        before = (len(query.recentProgress), _state_bytes(checkpoint))
        most = amount.batches[kind]
        wanted = warm + awaited(query, most, amount.counted_s, least=3, after=warm)
        after = (len(query.recentProgress), _state_bytes(checkpoint))
    finally:
        query.stop()
    events = [event for event in progress_events(query) if event["numInputRows"]][warm:wanted]
    num_batches = after[0] - before[0]
    return {
        "batches_s": [event["durationMs"]["triggerExecution"] / 1000 for event in events],
        "parts_s": _parts_s(events),
        "num_batches": num_batches,
        "state_bytes": {
            suffix: size - before[1].get(suffix, 0) for suffix, size in after[1].items()
        },
    }


def _parts_s(events: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Medians over batches of their phases, and of the times of the operator with state."""
    columns: dict[str, list[float]] = defaultdict(list)
    for event in events:
        (operator,) = event["stateOperators"]
        times_ms = event["durationMs"] | {
            name: value for name, value in operator.items() if name.endswith("Ms")
        }
        for name, value in times_ms.items():
            columns[name].append(value / 1000)
    return {name: round(median(values), 4) for name, values in sorted(columns.items())}


def _state_bytes(checkpoint: Path) -> dict[str, int]:
    """Bytes of the files below the state folder, by the end of their names."""
    sizes: dict[str, int] = defaultdict(int)
    for path in (checkpoint / "state").rglob("*"):
        # Maintenance may rename a file meanwhile.
        if path.is_file() and not path.name.endswith(".crc"):
            sizes[path.suffix] += path.stat().st_size
    return dict(sizes)


_Lines = Sequence[Mapping[str, Any]]


def _bytes_per_batch(lines: _Lines, way: str) -> float | None:
    ratios = [
        sum(line["state_bytes"].values()) / line["num_batches"]
        for line in lines if line["way"] == way and line["kind"] == "few" and line["num_batches"]
    ]  # fmt: skip
    return median(ratios) if ratios else None


def _duration_s(lines: _Lines, way: str, kind: str) -> float | None:
    means_s = [
        fmean(line["batches_s"]) for line in lines if line["way"] == way and line["kind"] == kind
    ]
    return median(means_s) if means_s else None


def _gain(lines: _Lines) -> float | None:
    """Duration of Spark's fastest way over that of buckets in pieces."""
    own = [_duration_s(lines, way, "all") for way in SPARKS_OWN]
    durations_s = [duration_s for duration_s in own if duration_s is not None]
    in_pieces_s = _duration_s(lines, IN_PIECES, "all")
    return min(durations_s) / in_pieces_s if durations_s and in_pieces_s is not None else None


def verdicts(lines: _Lines) -> Iterator[str]:
    """Rows of the table of what was expected."""
    gain = _gain(lines)
    if gain is not None:
        yield (
            f"| buckets in pieces at least {GOAL_RATIO:.1f} times as fast as by key, "
            f"{NUM_KEYS:,} keys | {gain:.1f} at {ALL_ROWS:,} rows | | "
            f"{'met' if gain >= GOAL_RATIO else 'missed'} |"
        )
    in_pieces, in_one = (_bytes_per_batch(lines, way) for way in (IN_PIECES, IN_ONE_VALUE))
    if in_pieces is not None and in_one is not None:
        ratio = in_pieces / in_one
        yield (
            f"| buckets in pieces write at most {GOAL_BYTES_RATIO:.0%} of the bytes per batch, 1% "
            f"of {NUM_KEYS:,} keys | {ratio:.1%} | | "
            f"{'met' if ratio <= GOAL_BYTES_RATIO else 'missed'} |"
        )


def section(lines: _Lines) -> Iterator[str]:
    """The section of the page."""
    if not lines:
        return
    yield "## State in pieces"
    yield ""
    yield (
        f"{NUM_KEYS:,} keys, {CORES} shuffle partitions. Bytes are those of all files below the "
        f"checkpoint's `state` folder per batch of {FEW_ROWS:,} rows, each of another key, after a "
        "batch with all keys; snapshots by the store's maintenance, every five seconds, are "
        "included. Durations are means over the batches of a run, as fast as possible; runs with "
        "as many rows share a JVM in each repeat. `buckets, in pieces` are `headway.ordered` with "
        "Spark's RocksDB store, `buckets, in one value` with its default store."
    )
    yield ""
    yield from headed(
        f"| way | store | bytes per batch, {FEW_ROWS:,} keys of {NUM_KEYS:,} | by snapshots"
        f" | batch of {FEW_ROWS:,} rows | batch of {ALL_ROWS:,} rows | repeats |"
    )
    for name, way in WAYS.items():
        of_way = [line for line in lines if line["way"] == name]
        if not of_way:
            continue
        written = _bytes_per_batch(lines, name)
        shown = [
            "" if duration_s is None else format_duration(duration_s)
            for duration_s in (_duration_s(lines, name, kind) for kind in ("few", "all"))
        ]
        repeats = len({line["repeat"] for line in of_way})
        yield (
            f"| {name} | {way.store_name} | {'' if written is None else f'{written:,.0f}'} | "
            f"{_by_snapshots(of_way)} | {' | '.join(shown)} | {repeats} |"
        )
    yield ""


def _by_snapshots(lines: _Lines) -> str:
    """Share of bytes that are not in the file of a batch itself."""
    few = [line["state_bytes"] for line in lines if line["kind"] == "few"]
    if not few:
        return ""
    of_batches = sum(size for sizes in few for suffix, size in sizes.items()
                     if suffix in (".delta", ".changelog"))  # fmt: skip
    written = sum(size for sizes in few for size in sizes.values())
    return f"{1 - of_batches / written:.0%}" if written else ""
