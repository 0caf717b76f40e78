"""A query that keeps totals by key: its split, its input, its settings, and the files of its state.

``restart_runs`` stops it and starts it again; ``rocksdb_memory`` runs it within a bound.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from result_lines import lines_of
from written_shapes import CONF_OF_STORE

from headway.profiler.spark.session import local_checkpoint_conf
from headway.runtime.measure import Json, begun_epoch_s, progress_events

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SPLIT = Path(__file__).parent / "restart-split.json"
"""Sizes, stores, and which runs are profiled, committed before the first run."""
STATE = "spark.sql.streaming.stateStore"
_FIRST_FILE_EPOCH_S = 1_600_000_000
_MOST_FILL_S = 300.0

Line = dict[str, Any]


class Split:
    """What is run, and which restart of each store is profiled."""

    @cached_property
    def said(self) -> Line:
        """As it is written."""
        return dict(json.loads(SPLIT.read_text(encoding="utf-8")))

    @property
    def keys(self) -> Mapping[str, int]:
        """Keys of the state, by the name of the size."""
        return {size: int(keys) for size, keys in self.said["keys"].items()}

    @property
    def num_built(self) -> int:
        """Batches until the query is stopped."""
        return int(self.said["filling_batches"] + self.said["batches_since_the_snapshot"])

    def batches(self, size: str) -> Iterator[int | None]:
        """Rows of each batch; None for the equal parts that bring every key once."""
        for _ in range(self.said["filling_batches"]):
            yield None
        usual = round(self.said["share_of_keys_in_a_batch"] * self.keys[size])
        for _ in range(self.said["batches_since_the_snapshot"]):
            yield usual
        for _ in range(self.said["batches_after_the_restart"]):
            yield usual


def write_input(folder: Path, num_keys: int, batches: Sequence[int | None]) -> list[Path]:
    """A file for each batch, in the order in which they are read; what is there is kept."""
    import pyarrow as pa
    from pyarrow import parquet

    files = [folder / f"{number:04d}.parquet" for number in range(len(batches))]
    if all(file.exists() for file in files):
        return files
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(num_keys)
    every_key = np.array_split(random.permutation(num_keys), max(batches.count(None), 1))
    for number, (file, num_rows) in enumerate(zip(files, batches, strict=True)):
        if num_rows is None:
            keys = every_key[number]
        else:
            keys = random.choice(num_keys, num_rows, replace=False)
        amounts = random.uniform(1.0, 100.0, len(keys))
        parquet.write_table(pa.table({"key": keys.astype(np.int64), "amount": amounts}), file)
        # Spark reads older files first.
        os.utime(file, (_FIRST_FILE_EPOCH_S + number, _FIRST_FILE_EPOCH_S + number))
    return files


def deliver(files: Sequence[Path], folder: Path) -> None:
    """Let files appear in the folder that a query reads."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        appeared = folder / file.name
        if not appeared.exists():
            # A link, so that it keeps the time of the file.
            os.link(file, appeared)


def conf_of(store: str, partitions: int, **more: str) -> dict[str, str]:
    """Settings of a session whose queries keep their state in a store."""
    return {
        **local_checkpoint_conf(),
        **CONF_OF_STORE[store],
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
        **more,
    }


def started(spark: SparkSession, name: str, folder: Path, checkpoint: Path) -> StreamingQuery:
    """The query, reading a file a batch as fast as it can."""
    from pyspark.sql import functions

    rows = (
        spark.readStream.schema("key BIGINT, amount DOUBLE")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(folder))
    )
    totals = rows.groupBy("key").agg(
        functions.count("*"), functions.sum("amount"), functions.max("amount")
    )
    return (
        totals.writeStream.queryName(name)
        .outputMode("update")
        .format("noop")
        .option("checkpointLocation", str(checkpoint))
        .trigger(processingTime="0 seconds")
        .start()
    )


def wait_for_batches(query: StreamingQuery, num_batches: int) -> list[Json]:
    """Progress of the batches that had rows, once there are as many."""
    ends_s = time.monotonic() + _MOST_FILL_S
    while time.monotonic() < ends_s:
        events = [event for event in progress_events(query) if event["numInputRows"]]
        if len(events) >= num_batches:
            return events
        if not query.isActive:
            break
        time.sleep(0.2)
    raise RuntimeError(f"{query.name}: {len(events)} of {num_batches} batches; {query.exception()}")


def batch_facts(event: Json, since_epoch_s: float) -> Line:
    """A batch: when it began [s], its phases, and what its state store says."""
    return {
        "batch": event["batchId"],
        "begun_s": begun_epoch_s(event) - since_epoch_s,
        "rows": event["numInputRows"],
        "phases_ms": event["durationMs"],
        "state": event["stateOperators"],
    }


def state_files(checkpoint: Path) -> list[Line]:
    """Each partition of the state: number and bytes of its files, and their versions, by kind."""
    return [
        _files_of(partition)
        for partition in sorted((checkpoint / "state" / "0").iterdir())
        if partition.name.isdigit()
    ]


def _files_of(partition: Path) -> Line:
    kinds: dict[str, list[tuple[int, int]]] = {}
    for path in sorted(partition.rglob("*")):
        if path.is_file() and not path.name.startswith("."):
            version = path.name.partition(".")[0].partition("_")[0]
            number = int(version) if version.isdigit() else -1
            kinds.setdefault(path.suffix.lstrip("."), []).append((number, path.stat().st_size))
    return {
        kind: {"versions": [v for v, _ in files], "bytes": [size for _, size in files]}
        for kind, files in kinds.items()
    }


def versions(checkpoint: Path, kind: str) -> list[list[int]]:
    """Versions of which there is a file of a kind, by partition."""
    return [files.get(kind, {}).get("versions", []) for files in state_files(checkpoint)]


def remove(folder: Path) -> None:
    """Remove a folder, if it is there."""
    shutil.rmtree(folder, ignore_errors=True)


def runner_options(parser: argparse.ArgumentParser, *, minutes: float, results: Path) -> None:
    """What a runner of such queries may be given."""
    parser.add_argument("folder", type=Path, help="event logs are kept here")
    parser.add_argument("--minutes", type=float, default=minutes, help="begin no run after these")
    parser.add_argument("--count", type=int, help="run at most so many")
    parser.add_argument("--results", type=Path, default=results, help="JSON lines, kept")


def missing_runs(
    given: argparse.Namespace, names: Sequence[str]
) -> Iterator[tuple[str, Sequence[str]]]:
    """Names of the runs to make now, each with those that are left after it; says what is left."""
    ends_s = time.monotonic() + 60.0 * given.minutes
    names_on_record = {line["run"] for line in lines_of(given.results)}
    names_left = [name for name in names if name not in names_on_record]
    num_run = 0
    while names_left and time.monotonic() < ends_s and num_run != given.count:
        name = names_left.pop(0)
        print(f"{time.strftime('%H:%M:%S')} {name}", file=sys.stderr, flush=True)
        yield name, names_left
        num_run += 1
    print(f"{num_run} runs, {len(names_left)} left: {', '.join(names_left) or 'none'}")
