"""Checks of arguments of calls on a running Spark: sessions, rows and folders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def require_session(spark: object) -> None:
    """Require a running classic session.

    Raises
    ------
    InputError
        If it is something else, a session of Spark Connect, or stopped.
    """
    if not hasattr(spark, "readStream"):
        raise InputError(
            f"spark: got {spark!r}; expected a SparkSession, e.g. SparkSession.getActiveSession()"
        )
    if getattr(spark, "_jvm", None) is None:
        raise InputError(
            "this is a Spark Connect session, which gives no access to the triggers of its "
            "queries; expected a classic session in the driver. Fallback: keep the triggers as "
            "they are, and shift them apart as 'headway schedule' says"
        )
    if _is_stopped(getattr(spark, "_sc", None)):
        raise InputError("spark: the session is stopped; expected one that runs")


def require_columns(rows: DataFrame, arrived: object, cost: object) -> None:
    """Require rows of a running session, with the columns of the rule.

    Raises
    ------
    InputError
        If it is not a DataFrame, its session is stopped, or a column is missing.
    """
    if not hasattr(rows, "isStreaming"):
        raise InputError(f"rows: got {rows!r}; expected a DataFrame")
    if _is_stopped(getattr(rows.sparkSession, "_sc", None)):
        raise InputError("rows: their Spark session is stopped; read them in one that runs")
    for what, column in (("arrived", arrived), ("cost", cost)):
        if column is None and what == "cost":
            continue
        if not isinstance(column, str):
            raise InputError(f"{what}: got {column!r}; expected the name of a column")
        if column not in rows.columns:
            known = ", ".join(rows.columns)
            raise InputError(f"{what}: no column {column!r}; expected one of {known}")


def require_timestamp(rows: DataFrame, arrived: str) -> None:
    """Require a column of timestamps, not of numbers with an unknown unit.

    Raises
    ------
    InputError
        If the column is of another type.
    """
    kind = rows.schema[arrived].dataType.simpleString()
    if kind != "timestamp":
        raise InputError(
            f"arrived: column {arrived!r} is of type {kind}; expected timestamp: convert it, e.g. "
            f"by F.timestamp_millis({arrived!r}) or cast('timestamp')"
        )


def require_folder(checkpoint: object) -> None:
    """Require a possible location of a checkpoint.

    Raises
    ------
    InputError
        If it is neither a string nor a path.
    """
    if not isinstance(checkpoint, str | Path) or not str(checkpoint):
        raise InputError(f"checkpoint: got {checkpoint!r}; expected the folder of a checkpoint")


def _is_stopped(context: Any) -> bool:
    """Whether a SparkContext has ended; a session of Spark Connect has none."""
    if context is None:
        return False
    return context._jsc is None or bool(context._jsc.sc().isStopped())
