"""What calls on a running Spark are given: checks of sessions, rows and folders, and options."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway.domain.argument_values import is_stopped, require_running
from headway.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import functions as _functions
    from pyspark.sql.types import DataType

    F = _functions
else:

    class _Functions:
        """PySpark's functions; they are imported when the first one is called."""

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):  # what tools look for in any object
                raise AttributeError(name)
            from pyspark.sql import functions

            return getattr(functions, name)

    F = _Functions()


# Windows begins paths with a single letter.
_LOST_SLASH = re.compile(r"(?!file:)[a-zA-Z][\w+.-]+:/(?!/)")
_PLAIN_COLUMN = re.compile(r"Column<'(.+)'>")


def on_connect(spark_object: object) -> bool:
    """Whether a session, DataFrame or query is one of Spark Connect, which hides its driver."""
    return type(spark_object).__module__.startswith("pyspark.sql.connect")


def connect_refusal(why: str, instead: str) -> InputError:
    """The error about a call that needs the driver: why it is not possible, and what to do."""
    return InputError(f"Spark Connect {why}; expected a classic session: {instead}")


def require_no_connect(spark_object: object, why: str, instead: str) -> None:
    """Refuse a session, DataFrame or query of Spark Connect for what needs the driver.

    ``why`` says what it does, e.g. "hides what tasks cost", ``instead`` what to do, as an order.
    """
    if on_connect(spark_object):
        raise connect_refusal(why, instead)


def require_built_query(query: object) -> None:
    """Require that a user's function has returned the query that it started."""
    if not all(hasattr(query, name) for name in ("isActive", "exception", "stop", "id")):
        raise InputError(
            f"build(spark, setting) returned {type(query).__name__}; expected the streaming query "
            "that .start() or .toTable() returns"
        )


def require_session(spark: object) -> None:
    """Require a running session that is not of Spark Connect."""
    require_running(spark)
    if getattr(spark, "_jvm", None) is None:
        raise connect_refusal(
            "gives no access to the triggers of queries",
            "schedule the queries in their driver, or keep their triggers and shift them apart as "
            "'headway schedule' says",
        )


def column_name(parameter: str, column: object) -> str:
    """The name of a column that is given as text, or as PySpark does: ``F.col("area")``.

    >>> column_name("arrived", "at")
    'at'
    """
    if isinstance(column, str):
        return column
    shown = _PLAIN_COLUMN.fullmatch(repr(column))
    if shown is None:
        raise InputError(f"{parameter}: got {column!r}; expected the name of a column")
    return shown[1]


def require_columns(rows: DataFrame, arrived: object, cost: object) -> None:
    """Require rows of a running session, with the columns of the rule of shedding."""
    if not hasattr(rows, "isStreaming"):
        raise InputError(f"rows: got {rows!r}; expected a DataFrame")
    if is_stopped(rows.sparkSession):
        raise InputError("rows: their Spark session is stopped; read them in one that runs")
    named = {"arrived": arrived} if cost is None else {"arrived": arrived, "cost": cost}
    for parameter, column in named.items():
        if not isinstance(column, str):
            raise InputError(f"{parameter}: got {column!r}; expected the name of a column")
        if column not in rows.columns:
            column_list = ", ".join(rows.columns)
            raise InputError(f"{parameter}: no column {column!r}; expected one of {column_list}")
        if len(columns_like(rows, column)) > 1:
            raise InputError(f"{parameter}: {column!r} names several columns; rename all but one")


def column_like(rows: DataFrame, name: str) -> str | None:
    """The column that Spark takes for one of this name; the one that is written so, of several."""
    columns = columns_like(rows, name)
    return name if name in columns else next(iter(columns), None)


def columns_like(rows: DataFrame, name: str) -> list[str]:
    """The columns that Spark takes for those of a name, by default in any case of its letters."""
    if str(rows.sparkSession.conf.get("spark.sql.caseSensitive", "false")).lower() == "true":
        return [column for column in rows.columns if column == name]
    return [column for column in rows.columns if column.lower() == name.lower()]


def is_collated(kind: DataType) -> bool:
    """Whether texts of a type, or within it, are compared by a collation, not by their bytes."""
    return " collate " in kind.simpleString()


def require_timestamp(rows: DataFrame, arrived: str) -> None:
    """Require a column of timestamps, not of numbers with an unknown unit."""
    kind = rows.schema[arrived].dataType.simpleString()
    if kind != "timestamp":
        raise InputError(
            f"arrived: column {arrived!r} is of type {kind}; expected timestamp: convert it, e.g. "
            f"by F.timestamp_millis({arrived!r}) or cast('timestamp')"
        )


def folder_text(checkpoint: object) -> str:
    """The location of a checkpoint, for any file system of Spark.

    Raises InputError if it is neither a string nor a path, or an address that a path has changed.

    >>> folder_text(Path("checkpoints/orders")), folder_text("s3a://bucket/orders/")
    ('checkpoints/orders', 's3a://bucket/orders')
    """
    if not isinstance(checkpoint, str | Path) or not str(checkpoint):
        raise InputError(f"checkpoint: got {checkpoint!r}; expected the folder of a checkpoint")
    if isinstance(checkpoint, Path) and _LOST_SLASH.match(str(checkpoint)):
        raise InputError(
            f"checkpoint: got {checkpoint!r}, of whose address Path has dropped a slash; expected "
            "the address as a text"
        )
    return str(checkpoint).rstrip("/") or "/"


@contextmanager
def options_set(spark: SparkSession, options: Mapping[str, str]) -> Iterator[None]:
    """Set options of a session, and restore them at the end of the block."""
    before = {name: str(spark.conf.get(name)) for name in options}
    for name, value in options.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
