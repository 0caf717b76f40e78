"""Rows to partial results by pane, panes to windows, windows to the requested columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headway.domain.window_set import WindowSet, WindowSpec
from headway.errors import InputError
from headway.runtime.sharing.aggregates import (
    PREFIX,
    Aggregate,
    columns_of,
    quoted,
    read_aggregates,
)
from headway.units import US_PER_MS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

WATERMARK = "spark.watermarkDelayMs"
SIZE, END = f"{PREFIX}size", f"{PREFIX}end"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowQuery:
    """A query over windows: the time column, the keys, the windows, the aggregates."""

    time: str
    key: tuple[str, ...]
    windows: WindowSet
    aggregates: tuple[Aggregate, ...]

    @classmethod
    def of(
        cls,
        df: DataFrame,
        *,
        time: str,
        key: Sequence[str],
        windows: Sequence[str],
        aggregates: Mapping[str, str],
        watermarked: bool = True,
    ) -> WindowQuery:
        """The query, checked against the columns of a DataFrame.

        Raises
        ------
        InputError
            If a column is missing, the time is not a timestamp or has no watermark, two columns of
            the result have the same name, or windows or aggregates cannot be shared.
        """
        if isinstance(key, str) or isinstance(windows, str):
            raise InputError("key and windows are lists of texts, e.g. key=['area']")
        query = cls(
            time=time,
            key=tuple(key),
            windows=WindowSet.parse(windows),
            aggregates=read_aggregates(aggregates),
        )
        query._require_columns(df)
        if watermarked:
            query._require_watermark(df)
        return query

    def _require_columns(self, df: DataFrame) -> None:
        missing = [name for name in (self.time, *self.key) if name not in df.columns]
        if missing:
            raise InputError(
                f"no column {', '.join(missing)}; the DataFrame has {', '.join(df.columns)}"
            )
        names = [*self.key, "window", *(each.name for each in self.aggregates)]
        twice = sorted({name for name in names if names.count(name) > 1})
        reserved = [name for name in df.columns if name.startswith(PREFIX)]
        if twice or reserved:
            raise InputError(
                f"{', '.join(twice or reserved)}: expected different names of keys, aggregates and "
                f"'window', none beginning with {PREFIX}"
            )
        field = df.schema[self.time]
        if field.dataType.typeName() != "timestamp":
            raise InputError(
                f"{self.time} is of type {field.dataType.simpleString()}; expected a timestamp"
            )

    def _require_watermark(self, df: DataFrame) -> None:
        if df.isStreaming and WATERMARK not in df.schema[self.time].metadata:
            raise InputError(
                f"{self.time} has no watermark, so no window would ever end; call "
                f"withWatermark({self.time!r}, '10 seconds') on the stream first"
            )


def partials(df: DataFrame, query: WindowQuery, pane_ms: int | None = None) -> DataFrame:
    """Rows of each pane and key to partial results; columns ``window``, the keys, partials."""
    pane_ms = pane_ms or query.windows.pane_ms
    pane = window_of(query.time, WindowSpec(size_ms=pane_ms, slide_ms=pane_ms))
    return df.groupBy(pane, *map(quoted, query.key)).agg(*_partial_columns(query))


def merged(panes: DataFrame, query: WindowQuery) -> DataFrame:
    """Panes, each copied to all windows that contain it, merged to windows."""
    columns = columns_of(each.partials for each in query.aggregates)
    ends = windows_of_pane(
        "unix_micros(window.start)", query.windows.windows, query.windows.pane_ms
    )
    copied = panes.selectExpr(*map(quoted, (*query.key, *columns)), f"inline({ends})")
    # Spark then compares window ends with the watermark, as for its own windows.
    if panes.isStreaming:
        copied = copied.withMetadata(END, {WATERMARK: 0})
    return copied.groupBy(SIZE, END, *map(quoted, query.key)).agg(*merge_columns(query))


def finished(windows: DataFrame, query: WindowQuery, df: DataFrame) -> DataFrame:
    """Merged partial results as the requested columns, with the types of ``direct``."""
    from pyspark.sql import functions as F  # noqa: N812

    micros = f"unix_micros({END}) - {SIZE} * {US_PER_MS}"
    window = F.expr(f"named_struct('start', timestamp_micros({micros}), 'end', {END})")
    types = _types(df, query)
    return windows.select(
        *map(quoted, query.key),
        window.alias("window"),
        *(F.expr(a.final).cast(types[a.name]).alias(a.name) for a in query.aggregates),
    )


def merge_columns(query: WindowQuery) -> list[Column]:
    """Merges of partial results, with the names of the merged columns."""
    from pyspark.sql import functions as F  # noqa: N812

    merges = columns_of(each.merges for each in query.aggregates)
    return [F.expr(text).alias(name) for name, text in merges.items()]


def windows_of_pane(start_us: str, windows: Iterable[WindowSpec], pane_ms: int) -> str:
    """SQL array of (size [ms], end) of all windows that contain the pane at ``start_us``.

    Examples
    --------
    >>> windows_of_pane("t", WindowSet.parse(["10s"]).windows, 5000).count("transform")
    1
    """
    pane_us = pane_ms * US_PER_MS
    arrays = []
    for spec in windows:
        size_us, slide_us, offset_us = (
            part * US_PER_MS for part in (spec.size_ms, spec.slide_ms, spec.offset_ms)
        )
        after = f"pmod({start_us} - {offset_us}L, {slide_us}L)"
        end_us = f"{start_us} - {after} + {size_us}L - j * {slide_us}L"
        arrays.append(
            f"transform(sequence(0L, ({size_us}L - {pane_us}L - {after}) div {slide_us}L), j -> "
            f"named_struct('{SIZE}', {spec.size_ms}L, '{END}', timestamp_micros({end_us})))"
        )
    return f"concat({', '.join(arrays)})"


def _partial_columns(query: WindowQuery) -> list[Column]:
    from pyspark.sql import functions as F  # noqa: N812

    texts = columns_of(each.partials for each in query.aggregates)
    return [F.expr(text).alias(name) for name, text in texts.items()]


def _types(df: DataFrame, query: WindowQuery) -> dict[str, str]:
    """Spark's types of the aggregates without sharing."""
    from pyspark.sql import functions as F  # noqa: N812

    empty = df.sparkSession.createDataFrame([], df.schema)
    whole = empty.agg(*(F.expr(each.direct).alias(each.name) for each in query.aggregates))
    return {field.name: field.dataType.simpleString() for field in whole.schema}


def window_of(time: str, spec: WindowSpec) -> Column:
    """Spark's own window for a specification, with the name ``window``."""
    from pyspark.sql import functions as F  # noqa: N812

    size, slide, offset = (
        f"{ms} milliseconds" for ms in (spec.size_ms, spec.slide_ms, spec.offset_ms)
    )
    return F.window(F.col(quoted(time)), size, slide, offset).alias("window")
