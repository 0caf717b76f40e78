"""Rows to partial results by pane, panes to windows, windows to the requested columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headway.domain.window_set import WindowSet, WindowSpec
from headway.errors import InputError
from headway.runtime.given import F, is_collated, require_no_connect
from headway.runtime.sharing.aggregates import (
    PREFIX,
    Aggregate,
    columns_of,
    quoted,
    read_aggregates,
)
from headway.runtime.sharing.expressions import Expressions
from headway.units import US_PER_MS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

WATERMARK = "spark.watermarkDelayMs"
SIZE, END = f"{PREFIX}size", f"{PREFIX}end"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowQuery:
    """A query over windows: the time column, the keys, the windows, the aggregates.

    ``outputs`` are the results that are made of merged aggregates, by name, and None for those that
    are one; empty if each aggregate is a result. ``described`` has texts of what was given as
    columns: what a restart must have the same, besides the columns themselves.
    """

    time: str
    key: tuple[str, ...]
    windows: WindowSet
    aggregates: tuple[Aggregate, ...]
    outputs: tuple[tuple[str, Column | None], ...] = ()
    described: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(
        cls,
        df: DataFrame,
        *,
        time: str,
        key: Sequence[str],
        windows: WindowSet,
        aggregates: Mapping[str, str],
        watermarked: bool = True,
        results: Sequence[str] | None = None,
    ) -> WindowQuery:
        """The query, checked against the columns of a DataFrame.

        ``results`` are the names of its results, if they are not those of its aggregates.
        """
        query = cls(
            time=time, key=tuple(key), windows=windows, aggregates=read_aggregates(aggregates)
        )
        query._require_columns(df, aggregates if results is None else results)
        if watermarked and df.isStreaming:
            query._require_watermark_and_plain_keys(df)
        return replace(query, aggregates=read_aggregates(aggregates, _types(df, query.aggregates)))

    @property
    def descriptions(self) -> tuple[tuple[str, str], ...]:
        """Names and texts of the aggregates, as they were given."""
        return self.described or tuple((a.name, a.direct) for a in self.aggregates)

    def _require_columns(self, df: DataFrame, results: Iterable[str]) -> None:
        missing = [name for name in (self.time, *self.key) if name not in df.columns]
        if missing:
            raise InputError(
                f"no column {', '.join(missing)}; the DataFrame has {', '.join(df.columns)}"
            )
        names = [*self.key, "window", *results]
        # Spark ignores the case of names, unless spark.sql.caseSensitive is set.
        is_exact = str(df.sparkSession.conf.get("spark.sql.caseSensitive")).lower() == "true"
        compared = names if is_exact else [name.lower() for name in names]
        twice = sorted({n for n, c in zip(names, compared, strict=True) if compared.count(c) > 1})
        all_names = sorted({*df.columns, *names})
        reserved = [name for name in all_names if name.lower().startswith(PREFIX)]
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

    def _require_watermark_and_plain_keys(self, df: DataFrame) -> None:
        """Spark ends a stream whose state has keys that are equal with different bytes."""
        if WATERMARK not in df.schema[self.time].metadata:
            raise InputError(
                f"{self.time} has no watermark, so no window would ever end; call "
                f"withWatermark({self.time!r}, '10 seconds') on the stream first"
            )
        collated = [name for name in self.key if is_collated(df.schema[name].dataType)]
        if collated:
            raise InputError(
                f"the key {collated[0]} is compared by a collation, which Spark's state does not "
                f"take; expected keys of plain texts: add e.g. lower({collated[0]}) or "
                f"collation_key({collated[0]}) to the stream, and group by it"
            )


def partials(df: DataFrame, query: WindowQuery, pane_ms: int | None = None) -> DataFrame:
    """Rows of each pane and key to partial results; columns ``window``, the keys, partials."""
    pane_ms = pane_ms or query.windows.pane_ms
    pane = window_of(query.time, WindowSpec(size_ms=pane_ms, slide_ms=pane_ms))
    columns = _columns(aggregate.partials for aggregate in query.aggregates)
    return df.groupBy(pane, *map(quoted, query.key)).agg(*columns)


def merged(panes: DataFrame, query: WindowQuery) -> DataFrame:
    """Panes, each copied to all windows that contain it, merged to windows."""
    columns = columns_of(aggregate.partials for aggregate in query.aggregates)
    windows = query.windows
    ends = windows_of_pane("unix_micros(window.start)", windows.windows, windows.pane_ms)
    copied = panes.selectExpr(*map(quoted, (*query.key, *columns)), f"inline({ends})")
    # Spark then compares window ends with the watermark, as for its own windows.
    if panes.isStreaming:
        copied = copied.withMetadata(END, {WATERMARK: 0})
    return copied.groupBy(SIZE, END, *map(quoted, query.key)).agg(*merge_columns(query))


def finished(windows: DataFrame, query: WindowQuery, df: DataFrame) -> DataFrame:
    """Merged partial results as the requested columns, those of ``direct``."""
    micros = f"unix_micros({END}) - {SIZE} * {US_PER_MS}"
    window = F.expr(f"named_struct('start', timestamp_micros({micros}), 'end', {END})")
    columns = [_final(df, aggregate).alias(aggregate.name) for aggregate in query.aggregates]
    merged_aggregates = windows.select(*map(quoted, query.key), window.alias("window"), *columns)
    return with_outputs(merged_aggregates, query)


def _final(df: DataFrame, aggregate: Aggregate) -> Column:
    if aggregate.quotient_of is None:
        return F.expr(aggregate.final)
    require_no_connect(
        df,
        "gives no access to Spark's own division of averages of decimals",
        "share windows in a driver, average doubles, or use how='direct'",
    )
    total, count = map(F.expr, aggregate.quotient_of)
    precision, scale = map(int, re.findall(r"\d+", aggregate.type))
    quotient = Expressions(df.sparkSession).decimal_quotient(total, count, precision, scale)
    return F.when(count > 0, quotient)


def with_outputs(windows: DataFrame, query: WindowQuery) -> DataFrame:
    """Merged aggregates as the results that are made of them, in the order they were given in."""
    if not query.outputs:
        return windows
    columns = [
        F.col(quoted(name)) if column is None else column.alias(name)
        for name, column in query.outputs
    ]
    return windows.select(*map(quoted, query.key), "window", *columns)


def merge_columns(query: WindowQuery) -> list[Column]:
    """Merges of partial results, with the names of the merged columns."""
    return _columns(aggregate.merges for aggregate in query.aggregates)


def _columns(parts: Iterable[Mapping[str, str]]) -> list[Column]:
    return [F.expr(text).alias(name) for name, text in columns_of(parts).items()]


def windows_of_pane(start_us: str, windows: Iterable[WindowSpec], pane_ms: int) -> str:
    """SQL array of (size [ms], end) of all windows that contain the pane at ``start_us``.

    >>> windows_of_pane("t", WindowSet.parse(["10s"]).windows, 5000).count("transform")
    1
    """
    pane_us = pane_ms * US_PER_MS
    arrays = []
    for spec in windows:
        size_us, slide_us = spec.size_ms * US_PER_MS, spec.slide_ms * US_PER_MS
        offset_us = spec.offset_ms * US_PER_MS
        after = f"pmod({start_us} - {offset_us}L, {slide_us}L)"
        end_us = f"{start_us} - {after} + {size_us}L - j * {slide_us}L"
        arrays.append(
            f"transform(sequence(0L, ({size_us}L - {pane_us}L - {after}) div {slide_us}L), j -> "
            f"named_struct('{SIZE}', {spec.size_ms}L, '{END}', timestamp_micros({end_us})))"
        )
    return f"concat({', '.join(arrays)})"


def _types(df: DataFrame, aggregates: Iterable[Aggregate]) -> dict[str, str]:
    """Spark's types of totals and results without sharing, by their text."""
    from pyspark.errors import PySparkException

    texts = [text for a in aggregates for text in (a.direct, a.total) if text]
    try:
        fields = df.agg(*map(F.expr, texts)).schema.fields
    except PySparkException as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"aggregates: {reason}") from None
    return {text: field.dataType.simpleString() for text, field in zip(texts, fields, strict=True)}


def window_of(time: str, spec: WindowSpec) -> Column:
    """Spark's own window for a specification, with the name ``window``."""
    size, slide, offset = (
        f"{ms} milliseconds" for ms in (spec.size_ms, spec.slide_ms, spec.offset_ms)
    )
    return F.window(F.col(quoted(time)), size, slide, offset).alias("window")
