"""Files that real queries write per batch to checkpoint and sink, beside what is predicted.

Each shape runs from a new checkpoint on a local folder, with fewer batches than Spark keeps, so
that every file is still there when it ends. The query is then profiled by its own event log, and
the files are predicted from the profile. Maintenance runs every five seconds instead of every
minute, so that its snapshots are part of what is counted. The page also has the requests of
`checkpoint_requests`.

    python benchmarks/run.py checkpoint_writes --output docs/checkpoint-writes.md
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import checkpoint_requests
from pages import headed, made_by
from result_lines import keep, lines_of
from written_shapes import CONF_OF_STORE, MOST_S, NUM_BATCHES, SHAPES, STATE, Shape, started

import headway
from headway.domain import JobProfile
from headway.models.job.batch_files import checkpoint_files, sink_files
from headway.profiler.spark.session import embedded_session, local_checkpoint_conf
from headway.runtime.measure import begun_epoch_s
from headway.units import format_duration

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RESULTS = Path(__file__).parent / "results" / "checkpoint-writes.jsonl"
MOST_BATCHES = 100
"""Spark keeps the files of so many."""
ALLOWED_RATIO = 0.05

_ONCE = ("metadata", "_SUCCESS")

Row = dict[str, Any]


def files_in(folder: Path) -> int:
    """Files that a query wrote, without those of the local file system and those of its start."""
    return sum(
        path.is_file() and not path.name.startswith(".") and path.name not in _ONCE
        for path in folder.rglob("*")
        if "_metadata" not in path.relative_to(folder).parts
    )


def run_shapes(shapes: Sequence[Shape], results: Path) -> None:
    """Run shapes of one store in one JVM, and keep what was counted and predicted."""
    conf = {
        **local_checkpoint_conf(),
        **CONF_OF_STORE[shapes[0].store],
        f"{STATE}.maintenanceInterval": "5s",
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
    }
    with tempfile.TemporaryDirectory(prefix="headway-writes-") as scratch:
        log, counts = Path(scratch) / "log", list[Row]()
        with embedded_session(
            app_name="headway writes", master="local[2]", event_log_dir=log, extra_conf=conf
        ) as spark:
            for number, shape in enumerate(shapes):
                counts.append(_counted(spark, shape, Path(scratch) / str(number)))
        for shape, counted in zip(shapes, counts, strict=True):
            profile = headway.profile(log, queries=[shape.name])
            keep(results, {**counted, **_predicted(profile, shape, counted["interval_s"])})


def _counted(spark: SparkSession, shape: Shape, folder: Path) -> Row:
    query = started(spark, shape, shape.name, str(folder))
    ends_s = time.monotonic() + MOST_S
    commits = folder / "checkpoint" / "commits"
    while query.isActive and time.monotonic() < ends_s:
        if (commits / str(NUM_BATCHES - 1)).exists():
            break
        time.sleep(0.1)
    query.stop()
    begun_s = [begun_epoch_s(event) for event in query.recentProgress]
    num_batches = sum(path.name.isdigit() for path in commits.iterdir())
    # A query that is stopped while it writes may end with an exception, after its last batch.
    if not NUM_BATCHES <= num_batches < MOST_BATCHES:
        raise RuntimeError(f"{shape.name}: {num_batches} batches, {query.exception()}")
    sink = folder / "sink"
    return {
        "shape": shape.name,
        "num_batches": num_batches,
        "interval_s": (begun_s[-1] - begun_s[0]) / (len(begun_s) - 1),
        "checkpoint_files": files_in(folder / "checkpoint"),
        "sink_files": files_in(sink) if sink.exists() else 0,
    }


def _predicted(profile: JobProfile, shape: Shape, interval_s: float) -> Row:
    """Files per batch by the profile."""
    sink = sink_files(profile, shape.num_writers(profile))
    return {
        "predicted_checkpoint": float(
            checkpoint_files(profile, shape.partitions, interval_s).total
        ),
        "predicted_sink": None if sink is None else float(sink.total),
    }


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("--results", type=Path, default=RESULTS, help="JSON lines, kept")


def text(given: argparse.Namespace) -> str:
    """The page; shapes without a result are run first."""
    seen = {row.get("shape") for row in lines_of(given.results)}
    if not seen:
        keep(given.results, {"made": made_by("make checkpoint-writes", "pyspark")})
    for store in CONF_OF_STORE:
        shapes = [shape for shape in SHAPES if shape.store == store and shape.name not in seen]
        if shapes:
            run_shapes(shapes, given.results)
    requests = checkpoint_requests.section(lines_of(checkpoint_requests.RESULTS))
    return "\n".join((*_page(lines_of(given.results)), *requests, ""))


def _page(lines: Sequence[Row]) -> Iterator[str]:
    made, rows = lines[0]["made"], lines[1:]
    errors = [error for row in rows for error in errors_of(row) if error is not None]
    num_within = sum(abs(error) <= ALLOWED_RATIO for error in errors)
    yield "# Files per batch: predicted and counted\n"
    yield (
        "What a query writes to its checkpoint and its sink costs money at an object store, by the "
        "request. `headway plan` predicts the files per batch by (F1)-(F3) of "
        "[theory](theory.md). Here they were counted: each query ran from a new checkpoint on a "
        f"local folder for {NUM_BATCHES} batches, fewer than Spark keeps, so that no file was "
        "deleted, and was then predicted from its own event log. State stores were maintained "
        "every 5 s instead of every minute, so that snapshots count, too. Files that a query "
        "writes only when it starts are left out, and so are the checksums that the local file "
        "system adds.\n"
    )
    yield (
        f"Of {len(errors)} figures, {num_within} are within {ALLOWED_RATIO:.0%} of the count; the "
        f"largest error is {max(map(abs, errors)):.1%}.\n"
    )
    yield from headed(
        "| query, state store, partitions, sink | batches | every | checkpoint: predicted "
        "| counted | error | sink: predicted | counted | error |"
    )
    for row in rows:
        yield _line(row)
    yield (
        "\nThe number of partitions of the sink's table is not in the log: it was given for the "
        "sink that is partitioned by day. What foreachBatch writes is. How many requests a file "
        "takes depends on the store, and is in the catalogue.\n"
    )
    yield made


def errors_of(row: Row) -> tuple[float | None, float | None]:
    """Relative errors of the predictions for checkpoint and sink; None where there is none."""
    pairs = (
        (row["predicted_checkpoint"], row["checkpoint_files"]),
        (row["predicted_sink"], row["sink_files"]),
    )
    checkpoint, sink = (
        predicted * row["num_batches"] / counted - 1.0 if predicted and counted else None
        for predicted, counted in pairs
    )
    return checkpoint, sink


def _line(row: Row) -> str:
    cells = [row["shape"], str(row["num_batches"]), format_duration(row["interval_s"])]
    predictions = row["predicted_checkpoint"], row["predicted_sink"]
    counts = row["checkpoint_files"], row["sink_files"]
    for predicted, counted, error in zip(predictions, counts, errors_of(row), strict=True):
        cells += [
            "-" if predicted is None else f"{predicted:.3g}",
            f"{counted / row['num_batches']:.3g}",
            "-" if error is None else f"{error:+.1%}",
        ]
    return f"| {' | '.join(cells)} |"
