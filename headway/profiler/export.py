"""Tables for export: one row per event, task, batch etc., each once, without sensitive data."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headway.errors import HeadwayError
from headway.profiler.contents import ApplicationFacts
from headway.profiler.logs.limits import DEFAULT_LIMITS
from headway.profiler.pieces import Engine, Order, Piece
from headway.profiler.recorded_queries import QueryLife
from headway.profiler.rows import JOB_ENDS, Record
from headway.profiler.schema import TASK_END
from headway.profiler.stage_totals import seconds

TABLES = ("applications", "queries", "batches", "jobs", "stages", "tasks", "plans")
_KEYS: Mapping[str, tuple[str, ...]] = {
    "jobs": ("app", "job_id"),
    "stages": ("app", "stage_id", "attempt_id"),
    "tasks": ("app", "stage_id", "attempt_id", "task_id"),
    "plans": ("app", "execution_id"),
}


def table_rows_of(
    pieces: Sequence[Piece], engine: Engine, applications: Mapping[int, ApplicationFacts]
) -> Iterator[tuple[str, list[Record]]]:
    """Rows of the tables, in chunks of one table; column ``app`` is the number of the log."""
    yield "applications", [_application_row(facts) for facts in applications.values()]
    seen_keys: dict[str, set[tuple[Any, ...]]] = {name: set() for name in _KEYS}
    # If there are many tasks, no list of the seen ones is kept.
    stands_once = {
        app
        for app, facts in applications.items()
        if facts.num_lines(TASK_END) == facts.ids_of(TASK_END).num_distinct
    }

    def unseen(name: str, rows: Sequence[Record]) -> Iterator[Record]:
        for row in rows:
            identity = tuple(row[column] for column in _KEYS[name])
            if identity not in seen_keys[name]:
                seen_keys[name].add(identity)
                yield row

    jobs: list[Record] = []
    job_ends: dict[tuple[int, int], Record] = {}
    queries = {
        (app, run_id): _query(app, run_id, life)
        for app, facts in applications.items()
        for run_id, life in facts.queries.items()
        if run_id
    }
    wanted = [piece for piece in pieces if piece.app in applications]
    orders = [Order(piece, DEFAULT_LIMITS, wants_rows=True) for piece in wanted]
    for result in engine(orders) if orders else ():
        for name, table_rows in result.rows.items():
            rows: list[Record] = [{"app": result.app, **row} for row in table_rows]
            if name == "batches":
                _add_batches(queries, rows)
            if name == JOB_ENDS:
                for row in rows:
                    job_ends.setdefault((row["app"], row["job_id"]), row)
            elif name == "jobs":
                jobs += unseen(name, rows)
            elif name in _KEYS and not (name == "tasks" and result.app in stands_once):
                yield name, list(unseen(name, rows))
            else:
                yield name, rows
    never = {"ended_s": None, "succeeded": None}
    yield "jobs", [{**job, **job_ends.get((job["app"], job["job_id"]), never)} for job in jobs]
    yield "queries", [_query_row(query) for _, query in sorted(queries.items())]


def write_tables(
    pieces: Sequence[Piece],
    engine: Engine,
    applications: Mapping[int, ApplicationFacts],
    folder: Path,
) -> tuple[Path, ...]:
    """Write every table as Parquet into a sub-folder with its name, replacing existing files.

    Text is as :mod:`headway.profiler.schema` lets it enter: redacted. The offsets of sources,
    which may contain anything, are left out.
    """
    import pyarrow as pa
    from pyarrow import parquet

    from headway.profiler.table_schemas import SCHEMAS

    paths = {name: folder / name for name in TABLES}
    writers: dict[str, parquet.ParquetWriter] = {}
    path = folder
    try:
        for name, path in paths.items():
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir(parents=True)
            writers[name] = parquet.ParquetWriter(path / "part-00000.parquet", SCHEMAS[name])
        for name, rows in table_rows_of(pieces, engine, applications):
            path = paths[name]
            shown_rows = [_SHOWN[name](row) if name in _SHOWN else row for row in rows]
            if shown_rows:
                writers[name].write_table(pa.Table.from_pylist(shown_rows, schema=SCHEMAS[name]))
        for name, path in paths.items():
            writers.pop(name).close()
            # As Spark does; readers that wait for tables look for it.
            (path / "_SUCCESS").touch()
    except (OSError, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise HeadwayError(f"{path}: cannot be written ({reason})") from None
    finally:
        for writer in writers.values():
            writer.close()
    return tuple(paths.values())


def _application_row(facts: ApplicationFacts) -> Record:
    names = ("app", "application_id", "application_name", "spark_version", "java_version")
    return {
        **{name: getattr(facts, name) for name in (*names, "started_s", "ended_s")},
        "properties": dict(facts.properties),
        "executors": [
            {
                "executor_id": event.executor_id,
                "num_cores": event.num_cores,
                "at_s": seconds(event.at_ms),
            }
            for event in facts.executor_events
        ],
    }


def _query(app: int, run_id: str, life: QueryLife) -> dict[str, Any]:
    """A run of a streaming query before its batches are added."""
    return {
        "app": app,
        "run_id": run_id,
        "query_id": life.query_id,
        "query_name": life.query_name,
        "started_s": None,
        "terminated": life.has_ended,
        "failed": life.has_failed,
        "batch_ids": set(),
    }


def _add_batches(queries: dict[tuple[int, str], dict[str, Any]], rows: Sequence[Record]) -> None:
    for row in rows:
        app, run_id = row["app"], row["run_id"]
        if run_id is None:
            continue
        query = queries.setdefault((app, run_id), _query(app, run_id, QueryLife()))
        for name, choose in (("query_id", max), ("query_name", max), ("started_s", min)):
            stated = [value for value in (query[name], row[name]) if value is not None]
            query[name] = choose(stated, default=None)
        query["batch_ids"].add(row["batch_id"])


def _query_row(query: dict[str, Any]) -> Record:
    batch_ids = query.pop("batch_ids")
    return {
        **query,
        "num_batches": len(batch_ids),
        "first_batch_id": min(batch_ids, default=None),
        "last_batch_id": max(batch_ids, default=None),
    }


def _shown_batch(row: Record) -> Record:
    phases_s, sources = row["phases_s"], row["sources"]
    if phases_s is not None:
        phases_s = list(phases_s.items())
    if sources is not None:
        sources = [
            {name: source[name] for name in ("description", "num_rows")} for source in sources
        ]
    return {**row, "phases_s": phases_s, "sources": sources}


_SHOWN: Mapping[str, Callable[[Record], Record]] = {
    "applications": lambda row: {**row, "properties": list(row["properties"].items())},
    "batches": _shown_batch,
}
