"""Checks that are made when a query starts, with the checkpoint that its writer has."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from headway.errors import InputError
from headway.runtime.given import folder_text, options_set

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CHECKPOINT = "checkpointLocation"


def checked_at_start(
    df: DataFrame,
    check: Callable[[str], object],
    *,
    options: Mapping[str, str] | None = None,
    needs_checkpoint: bool = False,
) -> DataFrame:
    """The same stream, whose writers call ``check`` with the checkpoint before they start.

    A writer of a stream that is made from this one does not. ``options`` of the session are set
    while the query starts, which keeps them from then on. With ``needs_checkpoint`` a writer
    without a checkpoint is refused; without it, there is nothing to check.
    """
    kind: Any = type(df)

    class CheckedStream(kind):  # type: ignore[misc]
        """A DataFrame of PySpark in all other respects."""

        @property
        def writeStream(self) -> Any:  # noqa: N802  # Spark's name
            return _checked_writer(super().writeStream, self.sparkSession)

    def _checked_writer(writer: Any, spark: SparkSession) -> Any:
        written: dict[str, object] = {}

        def note(name: object, value: object) -> None:
            # Spark ignores the case of options.
            if str(name).lower() == _CHECKPOINT.lower():
                written[_CHECKPOINT] = value

        def note_all(**named: object) -> None:
            for name, value in named.items():
                note(name, value)

        _call_first(writer, "option", note)
        _call_first(writer, "options", note_all)
        for name in ("start", "toTable"):
            setattr(writer, name, _checked_start(getattr(writer, name), written, note_all, spark))
        return writer

    def _checked_start(
        start: Callable[..., Any],
        written: Mapping[str, object],
        note_all: Callable[..., None],
        spark: SparkSession,
    ) -> Callable[..., Any]:
        @functools.wraps(start)
        def start_checked(*args: Any, **kwargs: Any) -> Any:
            note_all(**kwargs)
            with options_set(spark, options or {}):
                checkpoint = written.get(_CHECKPOINT)
                if checkpoint is not None:
                    check(folder_text(checkpoint))
                elif needs_checkpoint:
                    raise InputError(
                        "the writer has no checkpoint, beside which the query's plan is kept; "
                        "expected .option('checkpointLocation', FOLDER)"
                    )
                return start(*args, **kwargs)

        return start_checked

    # PySpark makes its DataFrames itself, so this one becomes one of the class above.
    df.__class__ = CheckedStream
    return df


def _call_first(writer: Any, name: str, first: Callable[..., object]) -> None:
    """Call a function with the arguments of a method of a writer, before the method itself."""
    method = getattr(writer, name)

    @functools.wraps(method)
    def both(*args: Any, **kwargs: Any) -> Any:
        first(*args, **kwargs)
        return method(*args, **kwargs)

    setattr(writer, name, both)
