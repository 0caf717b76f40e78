"""Requests that real queries send to an S3-compatible server, beside what is predicted.

Checkpoint and sink are on `s3a://`, at a server on loopback that writes down each request
(`counting_s3`). Each query runs from a new checkpoint; what it keeps is so little that old files
are deleted as in a query that runs for long. Requests are counted from the 12th batch on, when
everything that a query does once is done. The query is then profiled by its own event log; profiles
are kept, and the page predicts from them.

    python benchmarks/run.py checkpoint_requests --server-python .venv/bin/python

appends to the results what is missing there; `checkpoint_writes` makes the page. Of the runs, those
of FITTED say how many LIST requests S3A sends for a file; the others are judged by them. Both were
fixed before the first run. Writes were predicted before all runs, and are judged by all.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from counting_s3 import (
    BUCKET,
    COPY,
    HOST,
    LIST,
    LOOKS_FOR_FOLDER,
    PUT,
    WRITES,
    Request,
    counted,
    running_server,
)
from pages import headed, made_by
from result_lines import keep, lines_of
from written_shapes import CONF_OF_STORE, SHAPES, STATE, Shape, started

import headway
from headway.formats.profile_file import load_profile, save_profile
from headway.models.job.batch_files import checkpoint_files, price_of_job, sink_files
from headway.profiler.spark.session import embedded_session, local_checkpoint_conf
from headway.runtime.measure import begun_epoch_s
from headway.spec.parts import store_price
from headway.units import format_duration

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RESULTS = Path(__file__).parent / "results" / "checkpoint-requests.jsonl"
PROFILES = RESULTS.with_suffix("")
FIRST_BATCH, NUM_BATCHES, RETAINED_BATCHES, MOST_S = 11, 34, 5, 1200.0
"""Snapshots come every eleventh batch or every tenth: over 22 batches both are counted as often."""
ALLOWED_RATIO = 0.05
_BY_CONTEXT, _BY_FILE_SYSTEM = "FileContext", "FileSystem"
_SINK_PARTS = ("sink", "log of the sink")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A shape and how Spark gives files their names: by `FileContext` unless stated otherwise."""

    shape: Shape
    manager: str = _BY_CONTEXT

    @property
    def name(self) -> str:
        """What it is called in results."""
        return f"{self.shape.name}, {self.manager}"

    @property
    def session_conf(self) -> Mapping[str, str]:
        """Spark properties that its JVM needs for it."""
        managed = local_checkpoint_conf() if self.manager == _BY_FILE_SYSTEM else {}
        return {**CONF_OF_STORE[self.shape.store], **managed}

    @property
    def profile(self) -> Path:
        """Where its profile is kept."""
        return PROFILES / f"{re.sub('[^a-z0-9]+', '-', self.name.lower())}.profile.yaml"


def _run(name: str, manager: str = _BY_CONTEXT) -> Run:
    return Run(shape=next(shape for shape in SHAPES if shape.name == name), manager=manager)


FITTED = (
    _run("no state, default, 2, parquet"),
    _run("no state, default, 2, parquet", _BY_FILE_SYSTEM),
    _run("deduplication, RocksDB, 4, noop"),
)
JUDGED = (
    _run("aggregation, default, 8, noop"),
    _run("deduplication, default, 4, parquet"),
    _run("aggregation, RocksDB, changelog, 8, noop"),
    _run("aggregation, default, 8, noop", _BY_FILE_SYSTEM),
)


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("--results", type=Path, default=RESULTS, help="JSON lines, kept")
    parser.add_argument("--runs", type=int, default=len(FITTED) + len(JUDGED), help="at most")
    parser.add_argument(
        "--server-python", default=sys.executable, help="a Python that has moto[server]"
    )


def run(given: argparse.Namespace) -> None:
    """The runs that have no result yet, each kept as soon as it is there."""
    seen = {row.get("run") for row in lines_of(given.results)}
    if not seen:
        keep(given.results, {"made": made_by("make checkpoint-requests", "pyspark")})
    missing = [each for each in (*FITTED, *JUDGED) if each.name not in seen]
    for each in missing[: given.runs]:
        print(each.name, flush=True)
        keep(given.results, _measured(each, given.server_python))
    print(f"{max(len(missing) - given.runs, 0)} runs are left")


def _measured(each: Run, server_python: str) -> Row:
    """One run: what was counted of it; its profile goes into its file."""
    with tempfile.TemporaryDirectory(prefix="headway-requests-") as scratch:
        log, requests = Path(scratch) / "log", Path(scratch) / "requests.txt"
        with running_server(server_python, requests) as port:
            conf = {
                **each.session_conf,
                **_s3a_conf(port, Path(scratch)),
                f"{STATE}.maintenanceInterval": "5s",
                "spark.sql.streaming.minBatchesToRetain": str(RETAINED_BATCHES),
                "spark.sql.streaming.numRecentProgressUpdates": "1000",
            }
            with embedded_session(
                app_name="headway requests", master="local[2]", event_log_dir=log, extra_conf=conf
            ) as spark:
                _make_bucket(spark)
                interval_s = _interval_s(spark, each)
        profile = headway.profile(log, queries=[each.name])
        each.profile.parent.mkdir(parents=True, exist_ok=True)
        save_profile(profile, each.profile)
        steady, num_batches = _steady(requests)
    return {
        "run": each.name,
        "num_batches": num_batches,
        "interval_s": interval_s,
        "requests": counted(steady, _part_of),
    }


def _s3a_conf(port: int, scratch: Path) -> dict[str, str]:
    """S3A of the Hadoop that PySpark has, with any credentials, at the counting server."""
    s3a = {
        "endpoint": f"http://{HOST}:{port}",
        "endpoint.region": "us-east-1",
        "path.style.access": "true",
        "access.key": "counted",
        "secret.key": "counted",
        "connection.expect.continue": "false",
        "buffer.dir": str(scratch / "s3a"),
    }
    return {
        "spark.jars.packages": f"org.apache.hadoop:hadoop-aws:{_hadoop_version()}",
        **{f"spark.hadoop.fs.s3a.{key}": value for key, value in s3a.items()},
    }


@cache
def _hadoop_version() -> str:
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars"
    return next(jars.glob("hadoop-client-api-*.jar")).stem.rpartition("-")[2]


def _make_bucket(spark: SparkSession) -> None:
    """S3A has no call that makes a bucket: the server takes a plain PUT."""
    import urllib.request

    endpoint = spark.sparkContext.getConf().get("spark.hadoop.fs.s3a.endpoint")
    urllib.request.urlopen(
        urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT"), timeout=30
    ).close()


def _interval_s(spark: SparkSession, each: Run) -> float:
    """Run a query for its batches; gives the time between two of those that count."""
    query = started(spark, each.shape, each.name, f"s3a://{BUCKET}/query")
    ends_s = time.monotonic() + MOST_S
    while query.isActive and time.monotonic() < ends_s:
        last = query.lastProgress
        if last is not None and last["batchId"] >= NUM_BATCHES:
            break
        time.sleep(0.1)
    query.stop()
    begun_s = [
        begun_epoch_s(event) for event in query.recentProgress if event["batchId"] >= FIRST_BATCH
    ]
    # A query that is stopped while it writes may end with an exception, after its last batch.
    if len(begun_s) < NUM_BATCHES - FIRST_BATCH:
        raise RuntimeError(f"{each.name}: {len(begun_s)} batches, {query.exception()}")
    return (begun_s[-1] - begun_s[0]) / (len(begun_s) - 1)


def _steady(requests: Path) -> tuple[list[Request], int]:
    """Requests between two commits, and the batches between them."""
    lines = [Request.of_line(line) for line in requests.read_text().splitlines()]
    first, last = (
        max(
            index
            for index, request in enumerate(lines)
            if request.kind in (PUT, COPY) and request.key == f"query/checkpoint/commits/{batch}"
        )
        for batch in (FIRST_BATCH, NUM_BATCHES - 1)
    )
    return lines[first + 1 : last + 1], NUM_BATCHES - 1 - FIRST_BATCH


def _part_of(key: str) -> str:
    """The part of the checkpoint, or the sink, to which a key belongs."""
    _, folder, *rest = (*key.split("/"), "")
    if folder != "sink":
        return rest[0].partition(".")[0] if rest and rest[0] else "checkpoint"
    return _SINK_PARTS[rest[0] == "_spark_metadata"]


class Requests(NamedTuple):
    """Requests per batch: writes to the checkpoint and to the sink, and LIST for a name."""

    checkpoint: float
    sink: float
    lists: float


def requests_of(row: Row) -> Requests:
    """As they were counted."""
    sums = [0, 0, 0]
    for part, requests in row["requests"].items():
        for name, number in requests.items():
            if name == LOOKS_FOR_FOLDER:
                sums[2] += number
            elif name in WRITES:
                sums[part in _SINK_PARTS] += number
    return Requests(*(number / row["num_batches"] for number in sums))


def predicted(each: Run, interval_s: float) -> Requests:
    """As they are predicted from the profile of the run."""
    profile, usual_price = load_profile(each.profile), store_price("s3")
    sink = sink_files(profile, each.shape.num_writers(profile))
    assert usual_price is not None
    assert sink is not None
    price = price_of_job(profile, usual_price)
    checkpoint = checkpoint_files(profile, each.shape.partitions, interval_s)
    requests = [float(files.requests(price)) for files in (checkpoint, sink)]
    lists = [float(files.lists(price)) for files in (checkpoint, sink)]
    return Requests(requests[0] - lists[0], requests[1] - lists[1], sum(lists))


def error_of(prediction: float, count: float) -> float | None:
    """Relative error; None where nothing was counted."""
    return prediction / count - 1.0 if count else None


def section(lines: Sequence[Row]) -> Iterator[str]:
    """The part of the page about requests."""
    rows = {row["run"]: row for row in lines[1:]}
    runs = [each for each in (*FITTED, *JUDGED) if each.name in rows]
    errors = {each: tuple(_errors(each, rows[each.name])) for each in runs}
    of_writes = [error for of_run in errors.values() for error in of_run[:2] if error is not None]
    of_lists = [of_run[2] or 0.0 for each, of_run in errors.items() if each in JUDGED]
    most_off = max(map(abs, of_lists), default=0.0)
    num_within = sum(abs(error) <= ALLOWED_RATIO for error in of_writes)
    nums = [row["num_batches"] for row in rows.values()]
    yield "\n## Requests at an S3-compatible server\n"
    yield (
        "What a file takes depends on the client of the store. Here checkpoint and sink were on "
        "`s3a://`, at a server that writes down each request (moto's), with Spark's usual manager "
        "of checkpoint files (`FileContext`) and with "
        "`FileSystemBasedCheckpointFileManager` (`FileSystem`). Spark kept few batches, so that "
        "files are deleted as in a long run, and requests were counted over "
        f"{min(nums)} to {max(nums)} batches, when all is done that is done once. "
        "Writes are PUT and COPY, which S3 charges alike; LIST costs as much, HEAD and GET a "
        "twelfth, DELETE nothing.\n"
    )
    yield (
        f"Of {len(of_writes)} figures of writes, {num_within} are within {ALLOWED_RATIO:.0%} of "
        f"the count, and the largest error is {max(map(abs, of_writes)):.1%}. How many LIST "
        f"requests ask for the name of a file was taken from the first {len(FITTED)} runs; in the "
        f"{len(of_lists)} others they are off by up to {most_off:.1%}.\n"
    )
    yield from headed(
        "| query, state store, partitions, sink, manager | every | checkpoint: writes predicted "
        "| counted | error | sink: predicted | counted | error | LIST for a name: predicted "
        "| counted | error | LIST of a folder | HEAD and GET |"
    )
    for each in runs:
        yield _line(each, rows[each.name])
    yield (
        "\nMost LIST requests ask whether a name is a folder, before a file is written, renamed or "
        "deleted; these are predicted. Others read a folder: those of state stores twice at each "
        "maintenance, which was every 5 s here and is once a minute by default, and the log of a "
        "file sink twice a batch. Committers of `foreachBatch` were not counted.\n"
    )
    yield f"{lines[0]['made']}\n"


def _errors(each: Run, row: Row) -> Iterator[float | None]:
    for prediction, count in zip(predicted(each, row["interval_s"]), requests_of(row), strict=True):
        yield error_of(prediction, count)


def _reads_folder(name: str) -> bool:
    return name.startswith(LIST) and name != LOOKS_FOR_FOLDER


def _reads_file(name: str) -> bool:
    return name in ("HEAD", "GET")


def _line(each: Run, row: Row) -> str:
    cells = [each.name, format_duration(row["interval_s"])]
    predictions, counts = predicted(each, row["interval_s"]), requests_of(row)
    for prediction, count in zip(predictions, counts, strict=True):
        error = error_of(prediction, count)
        cells += [f"{prediction:.3g}", f"{count:.3g}", "-" if error is None else f"{error:+.1%}"]
    for is_counted in (_reads_folder, _reads_file):
        number = sum(
            number
            for requests in row["requests"].values()
            for name, number in requests.items()
            if is_counted(name)
        )
        cells.append(f"{number / row['num_batches']:.3g}")
    return f"| {' | '.join(cells)} |"
