"""Tables for others: as the pipeline has them, with what must not be shown taken out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from headway.errors import HeadwayError
from headway.profiler import tables
from headway.profiler.redaction import allowed_properties, describe_source, redact

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


_FREE_TEXTS = ("application_id", "application_name", "spark_version", "java_version")


class EventTables(NamedTuple):
    """All tables of some logs; column ``app`` is the number of the log in each."""

    applications: DataFrame
    queries: DataFrame
    batches: DataFrame
    jobs: DataFrame
    stages: DataFrame
    tasks: DataFrame
    plans: DataFrame


def event_tables(events: DataFrame) -> EventTables:
    """The tables of the events that :func:`headway.profiler.events.read_events` read."""
    return EventTables(
        applications=tables.applications(events),
        queries=tables.queries(events),
        batches=tables.batches(events),
        jobs=tables.jobs(events),
        stages=tables.stages(events),
        tasks=tables.tasks(events),
        plans=tables.plans(events),
    )


def shown_tables(events: DataFrame) -> EventTables:
    """The tables of some logs, fit to be shown.

    Free text (names, descriptions of sources and sinks) is replaced by what
    :mod:`headway.profiler.redaction` leaves of it, properties that do not look like what they
    should be are left out, and so are the offsets of sources, which may hold anything.
    """
    every = event_tables(events)
    applications, queries, batches = every.applications, every.queries, every.batches
    sources = batches.selectExpr("explode(sources.description) AS text")
    return every._replace(
        applications=_replaced(
            applications.withColumn("properties", _safe_properties(applications)),
            dict.fromkeys(_FREE_TEXTS, redact),
        ),
        queries=_replaced(queries, {"query_name": redact}),
        batches=_without_offsets(
            _replaced(batches, {"query_name": redact, "sink": describe_source}), sources
        ),
    )


def write_tables(events: DataFrame, folder: Path) -> tuple[Path, ...]:
    """Write every table as Parquet into a sub-folder of its name, in place of what is there.

    Raises
    ------
    HeadwayError
        If the folder cannot be written to.
    """
    written = []
    for name, table in shown_tables(events)._asdict().items():
        path = folder / name
        try:
            table.write.mode("overwrite").parquet(str(path.absolute()))
        except Exception as error:
            reason = str(error).splitlines()[0]
            raise HeadwayError(f"{path}: cannot be written ({reason})") from None
        written.append(path)
    return tuple(written)


def _replaced(table: DataFrame, by_column: dict[str, Callable[[str], str]]) -> DataFrame:
    return table.withColumns(
        {
            name: _looked_up(table[name], _texts(table.select(table[name].alias("text"))), safe)
            for name, safe in by_column.items()
        }
    )


def _texts(column: DataFrame) -> list[str]:
    """The different texts of a column: few, since they name applications, queries and sources."""
    return [row["text"] for row in column.distinct().collect() if row["text"] is not None]


def _looked_up(column: Column, texts: list[str], safe: Callable[[str], str]) -> Column:
    from pyspark.sql import functions as F

    pairs = [F.lit(item) for text in texts for item in (text, safe(text))]
    return F.create_map(*pairs)[column] if pairs else F.lit(None).cast("string")


def _without_offsets(batches: DataFrame, sources: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    texts = _texts(sources)
    return batches.withColumn(
        "sources",
        F.transform(
            "sources",
            lambda source: F.struct(
                _looked_up(source["description"], texts, describe_source).alias("description"),
                source["num_rows"].alias("num_rows"),
            ),
        ),
    )


def _safe_properties(applications: DataFrame) -> Column:
    from pyspark.sql import functions as F

    safe = {
        (key, value)
        for row in applications.select("properties").collect()
        for key, value in allowed_properties(row["properties"] or {}).items()
    }
    allowed = F.array(*(F.lit(f"{key}={value}") for key, value in sorted(safe))).cast(
        "array<string>"
    )
    return F.map_filter(
        "properties", lambda key, value: F.array_contains(allowed, F.concat_ws("=", key, value))
    )
