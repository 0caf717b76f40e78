"""Runs that read a backlog and end, each in a JVM of its own, as jobs that are started every night.

A file is the most that a batch reads. What is on record is not run again.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ordinary.landing import SCHEMA, fill
from ordinary.places import write_tables
from result_lines import keep, lines_of

import headway
from headway.formats.profile_file import dump_profile
from headway.profiler.spark.session import embedded_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SPLIT = Path(__file__).parent / "backlogs-split.json"
"""Sizes, cores and the profiled run, committed before the first run."""
JOBS = {
    "enrichment": "joins JSON files with two tables, and writes Parquet",
    "totals": "sums JSON files by store and product, and keeps the sums as state",
}
_PARTITIONS = 8

Line = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogRun:
    """One run: a job on a number of cores, and the files that it reads."""

    job: str
    cores: int
    num_files: int
    repeat: int = 1

    @property
    def name(self) -> str:
        """Name of the run in the results."""
        return f"{self.job}/{self.cores}-cores/{self.num_files}-files/{self.repeat}"


class Split:
    """What is run, and which run of a job is profiled."""

    @cached_property
    def _said(self) -> Line:
        return dict(json.loads(SPLIT.read_text(encoding="utf-8")))

    @property
    def rows_per_file(self) -> int:
        """Rows of each file, and so of a batch."""
        return int(self._said["rows_per_file"])

    def profiled(self, job: str) -> BacklogRun:
        """The run of a job that the others are predicted from."""
        said = self._said["profiled"]
        return BacklogRun(job=job, cores=said["cores"], num_files=said["files"])

    def runs(self) -> Iterator[BacklogRun]:
        """All runs, the profiled ones first."""
        for job in JOBS:
            first = self.profiled(job)
            for repeat in range(1, self._said["repeats_of_profiled"] + 1):
                yield BacklogRun(
                    job=job, cores=first.cores, num_files=first.num_files, repeat=repeat
                )
        for job in JOBS:
            for cores in self._said["cores"]:
                for num_files in self._said["files"]:
                    run = BacklogRun(job=job, cores=cores, num_files=num_files)
                    if run != self.profiled(job):
                        yield run


def measure(results: Path) -> None:
    """Run what is missing from the results."""
    split, done = Split(), {line["run"] for line in lines_of(results)}
    left = [run for run in split.runs() if run.name not in done]
    with tempfile.TemporaryDirectory(prefix="headway-backlogs-") as scratch:
        folder = Path(scratch)
        if left:
            # In a JVM of its own: what it compiles, the first run would not have to.
            with embedded_session(app_name="headway tables", master="local[2]") as spark:
                write_tables(spark, folder / "tables")
        for run in left:
            files = folder / f"files-{run.num_files}"
            if not files.exists():
                fill(files, run.num_files, split.rows_per_file)
            print(f"{time.strftime('%H:%M:%S')} {run.name}", file=sys.stderr, flush=True)
            keep(results, _measured(run, files, folder))


def _measured(run: BacklogRun, files: Path, folder: Path) -> Line:
    own = folder / run.name.replace("/", "-")
    own.mkdir()
    _read_all(run, files, own, folder / "tables")
    profile = headway.profile(own / "log")
    assert profile.drain is not None, f"{run.name}: its log shows no backlog"
    return {
        "run": run.name,
        "day": time.strftime("%Y-%m-%d", time.gmtime()),
        "job": run.job,
        "cores": run.cores,
        "num_files": run.num_files,
        "backlog_rows": profile.drain.backlog_rows,
        "num_batches": profile.drain.num_batches,
        "duration_s": profile.drain.duration_s,
        "profile": dump_profile(profile) if run == Split().profiled(run.job) else None,
    }


def _read_all(run: BacklogRun, files: Path, own: Path, tables: Path) -> None:
    """Read the files in a JVM of its own, whose log is all that is used of it."""
    conf = {"spark.sql.shuffle.partitions": str(_PARTITIONS)}
    with embedded_session(
        app_name=f"headway {run.job}",
        master=f"local[{run.cores}]",
        event_log_dir=own / "log",
        extra_conf=conf,
    ) as spark:
        orders = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(files))
        rows = _STEPS[run.job](spark, orders, tables)
        writer = rows.writeStream.queryName(run.job).trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(own / "checkpoint"))
        if run.job == "totals":
            writer = writer.outputMode("update").format("noop")
        else:
            writer = writer.format("parquet").option("path", str(own / "output"))
        writer.start().awaitTermination()


def _enriched(spark: SparkSession, orders: DataFrame, tables: Path) -> DataFrame:
    for name in ("products", "stores"):
        key = name.removesuffix("s")
        orders = orders.join(spark.read.parquet(str(tables / name)), key, "left")
    return orders


def _totals(spark: SparkSession, orders: DataFrame, tables: Path) -> DataFrame:  # noqa: ARG001
    return orders.groupBy("store", "product").sum("quantity")


_STEPS = {"enrichment": _enriched, "totals": _totals}
