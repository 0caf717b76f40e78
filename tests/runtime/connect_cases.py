"""Live calls on Spark Connect: what each says there, or what it gives."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import headway
from headway.profiler.recording.listener import with_named_metrics
from headway.runtime.gate.clock import require_classic
from headway.runtime.measure import progress_events
from headway.runtime.sharing.files import SparkFiles
from tests.sources import ROOT

PROFILE = ROOT / "examples" / "word-count.profile.yaml"
TARGET = "p99 <= 3s"
WINDOWS: dict[str, Any] = {
    "time": "at", "key": ["k"], "windows": ["10s every 5s"], "aggregates": {"n": "count(*)"},
}  # fmt: skip


@dataclass(frozen=True)
class Remote:
    """A session, and a query, rows of a stream, a table and a column of it."""

    session: Any
    query: Any
    rows: Any
    table: Any
    column: Any


REFUSED: dict[str, Callable[[Remote, Path], object]] = {
    "watch": lambda at, _: headway.watch(at.session, profile=PROFILE, target=TARGET),
    "watch a query": lambda at, _: headway.watch(at.query, profile=PROFILE, target=TARGET),
    "tune": lambda at, folder: headway.tune(
        at.session, print, profile=PROFILE, target=TARGET, state=folder / "state.json"  # type: ignore[arg-type]
    ),
    "setting": lambda at, _: headway.setting(at.session),
    "stop when asked": lambda at, _: headway.stop_when_asked(at.query),
    "explore": lambda at, folder: headway.explore(
        at.session, print, f"{TARGET} at 10/s", folder=folder / "exploration"  # type: ignore[arg-type]
    ),
    "schedule": lambda at, _: headway.schedule(at.session),
    "add to a gate": lambda at, _: require_classic(at.query),
    "split batches": lambda _, folder: headway.shedding_batches(
        print, print, checkpoint=folder, arrived="at", limit="2s", costs={"a": "1ms"}, cost="k",
        fixed="1s",
    ),
    "bring back": lambda at, folder: headway.bring_back(
        folder, at.table, arrived="at", older_than="2s"
    ),
    "fused windows": lambda at, folder: headway.shared_windows(
        at.rows, **WINDOWS, how="fused", checkpoint=str(folder)
    ),
    "windows as columns": lambda at, _: headway.shared_windows(
        at.table, at.column, keys=["k"]
    ).agg(at.column),
    "a log of columns": lambda at, folder: headway.window_log(
        at.rows, at.column, keys=["k"], store=str(folder)
    ).agg(at.column),
    "metrics": lambda at, _: headway.publish_metrics(spark=at.session),
    "a log of windows": lambda at, folder: headway.window_log(
        at.rows, **WINDOWS, store=str(folder)
    ),
    "order a stream": lambda at, folder: headway.ordered(
        at.rows, key="k", by="at", step=print, state="n long", output="n long", checkpoint=folder  # type: ignore[arg-type]
    ),
    "files": lambda at, _: SparkFiles(at.session),
}  # fmt: skip


def panes_with_a_checkpoint(at: Remote, folder: Path) -> object:
    """Refused where everything else about panes works."""
    rows = at.rows.withWatermark("at", "1 second")
    return headway.shared_windows(rows, **WINDOWS, checkpoint=str(folder))


def averages_of_decimals(at: Remote, _: Path) -> object:
    """Refused where other averages work."""
    of_decimals = {**WINDOWS, "aggregates": {"mean": "avg(cast(k AS decimal(10, 2)))"}}
    return headway.shared_windows(at.table, **of_decimals)


def counted_windows(at: Remote, _: Path) -> object:
    """Windows of a table by panes, and by Spark's own."""
    return [
        sorted(map(str, headway.shared_windows(at.table, **WINDOWS, how=how).collect()))
        for how in ("panes", "direct")
    ]


def _numbered(row: Any, state: Any) -> tuple[tuple[int], list[tuple[int, int]]]:
    number = 1 if state is None else state.n + 1
    return (number,), [(row.k, number)]


def ordered_table(at: Remote, _: Path) -> object:
    """Rows of a table, numbered by key in order."""
    numbered = headway.ordered(
        at.table, key="k", by="at", step=_numbered, state="n long", output="k long, n long"
    )
    return sorted(map(tuple, numbered.collect()))


def mapped_table(at: Remote, _: Path) -> object:
    """Results of calls, in the order of the rows."""
    doubled = headway.ordered_map(
        at.table.coalesce(1).orderBy("at"), lambda row: (2 * row.k,), output="twice long"
    )
    return [row.twice for row in doubled.collect()]


def _progress(at: Remote, rows: Any) -> list[Any]:
    """The progress of a query over some batches."""
    query = rows.writeStream.format("noop").start()
    until_s = time.monotonic() + 60.0
    while len(query.recentProgress) < 3 and query.isActive and time.monotonic() < until_s:
        time.sleep(0.2)
    progress = progress_events(query)
    failure = query.exception()
    query.stop()
    if failure is not None:
        raise failure
    return progress


def shed_rows(at: Remote, _: Path) -> object:
    """Counts of a stream of which no row is old enough to be shed."""
    marked = headway.shed(at.rows, arrived="at", older_than="1 hour", counted_as="marked")
    return with_named_metrics(_progress(at, marked)[-1])["observedMetrics"]["marked"]


def mapped_stream(at: Remote, _: Path) -> object:
    """Whether a stream that was mapped has batches."""
    mapped = headway.ordered_map(at.rows, lambda row: (row.k,), output="k long")
    return len(_progress(at, mapped)) >= 3


def windowed_stream(at: Remote, _: Path) -> object:
    """Whether a stream by panes, without a checkpoint of its own, has batches."""
    panes = headway.shared_windows(at.rows.withWatermark("at", "1 second"), **WINDOWS)
    return len(_progress(at, panes)) >= 2


def recorded(at: Remote, folder: Path) -> object:
    """How many reports of batches a recording has."""
    path = folder / "connect.headway.jsonl"
    with headway.record(at.session, path, executors=1, cores_per_executor=2):
        _progress(at, at.rows)
        time.sleep(1.5)
    return sum("QueryProgressEvent" in line for line in path.read_text().splitlines())


WORKS: dict[str, Callable[[Remote, Path], object]] = {
    "windows": counted_windows,
    "ordered": ordered_table,
    "ordered_map": mapped_table,
    "ordered_map of a stream": mapped_stream,
    "panes of a stream": windowed_stream,
    "shed": shed_rows,
    "record": recorded,
}
