"""Partial windows of a log as files, and windows made of them, on the rows of one batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from headway.domain.window_set import WindowSpec
from headway.errors import InputError
from headway.runtime.given import F, options_set
from headway.runtime.sharing import panes
from headway.runtime.sharing.aggregates import PREFIX, columns_of, quoted
from headway.runtime.sharing.files import SparkFiles
from headway.runtime.sharing.log_state import window_path
from headway.runtime.sharing.panes import WindowQuery
from headway.units import US_PER_MS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

Sink = Callable[["DataFrame", int], object]
"""Receives the windows of a batch and its number; a repeated batch must overwrite the first."""
_OLD_DATES_AS_THEY_ARE = {
    f"spark.sql.parquet.{kind}RebaseModeInWrite": "CORRECTED" for kind in ("datetime", "int96")
}
"""Options to write dates before 1582 and times before 1900, which Spark 3.5 refuses by default.

Programs of before 2020 would read them in another calendar; a log is only read by Spark.
"""
_NOT_IN_PARQUET = ("void", "null", "interval", "object")
_PANE, _NEWEST, _CHANGED = f"{PREFIX}pane", f"{PREFIX}newest", f"{PREFIX}changed"


@dataclass(kw_only=True)
class SparkStore:
    """Operations of the log on the rows of one batch."""

    batch: DataFrame
    number: int
    query: WindowQuery
    pane_ms: int
    stored: StructType
    root: str
    files: SparkFiles
    sinks: Mapping[str, Sink]

    def __post_init__(self) -> None:
        self._made: dict[tuple[int, int], DataFrame] = {}
        self._changed: dict[int, DataFrame] = {}

    def read_again(self) -> None:
        """Read the rows of a batch that is committed: Spark moves its watermark by rows read."""
        self.batch.write.format("noop").mode("overwrite").save()

    def write_batch(self, folder: str) -> tuple[list[int], int | None]:
        """Write partial results by pane; returns the panes, and the largest event time [ms]."""
        from pyspark.sql import Observation

        # In the same pass as the rows are written.
        observation = Observation()
        newest = F.max(F.expr(f"unix_micros({quoted(self.query.time)})")).alias(_NEWEST)
        rows = panes.partials(self.batch.observe(observation, newest), self.query, self.pane_ms)
        pane_ms = F.expr(f"unix_micros(window.start) div {US_PER_MS}")
        self._write(rows.withColumn(_PANE, pane_ms).drop("window"), folder, "pane")
        names = self.files.names(f"{self.root}/{folder}")
        starts_ms = [int(name.removeprefix("pane=")) for name in names if name.startswith("pane=")]
        # For a batch without rows, Spark observes nothing.
        return starts_ms, observation.get[_NEWEST] // US_PER_MS if starts_ms else None

    def write_compacted(self, folder: str, closing: Mapping[int, Sequence[str]]) -> None:
        """Write one part for each pane."""
        paths = [path for parts in closing.values() for path in parts]
        self._write(self._merged(self._read(paths, with_pane=True), _PANE), folder, "pane")

    def make_windows(
        self, folder: str, size_ms: int, ends: Mapping[int, Sequence[str]], keep: Sequence[int]
    ) -> None:
        """One job for all due windows of a size; kept ones are read back."""
        windows = {end: self._merged(self._read(paths)) for end, paths in ends.items() if paths}
        names = {end: f"{size_ms}-{end}" for end in keep if end in windows}
        kept_windows = [windows[end].withColumn(_PANE, F.lit(name)) for end, name in names.items()]
        if kept_windows:
            self._write(_union(kept_windows), folder, "window")
        for end, rows in windows.items():
            if end in keep:
                rows = self._read([window_path(folder, size_ms, end)])
            self._made[size_ms, end] = rows

    def make_changed(
        self, spec: WindowSpec, ends: Sequence[int], before: Sequence[str], now: Sequence[str]
    ) -> None:
        """One job for all open windows of a size, without keys that have no rows in the batch."""
        rows = self._read(now, with_pane=True).withColumn(_CHANGED, F.lit(True))
        if before:
            earlier = self._read(before, with_pane=True).withColumn(_CHANGED, F.lit(False))
            rows = rows.unionByName(earlier)
        copies = panes.windows_of_pane(f"{_PANE} * {US_PER_MS}L", [spec], self.pane_ms)
        partial_names = columns_of(a.partials for a in self.query.aggregates)
        column_names = (*self.query.key, *partial_names, _CHANGED)
        self._changed[spec.size_ms] = (
            rows.selectExpr(*map(quoted, column_names), f"inline({copies})")
            .where(_ends_in(ends))
            .groupBy(panes.SIZE, panes.END, *map(quoted, self.query.key))
            .agg(*panes.merge_columns(self.query), F.max(_CHANGED).alias(_CHANGED))
            .where(_CHANGED)
            .drop(_CHANGED)
        )

    def deliver(self, reader: str, made: Sequence[tuple[int, int]]) -> None:
        """Pass the finished columns of the windows, together, to the reader's sink."""
        windows = [
            self._made[size, end]
            .withColumn(panes.SIZE, F.lit(size).cast("bigint"))
            .withColumn(panes.END, F.timestamp_micros(F.lit(end * US_PER_MS)))
            for size, end in made
            if (size, end) in self._made
        ]
        windows += [
            rows.where(_ends_in([end for size, end in made if size == size_ms]))
            for size_ms, rows in self._changed.items()
            if size_ms in {size for size, _ in made}
        ]
        if windows and reader in self.sinks:
            self.sinks[reader](panes.finished(_union(windows), self.query, self.batch), self.number)

    def _read(self, paths: Sequence[str], *, with_pane: bool = False) -> DataFrame:
        """Partial results with their written schema, since looking it up would need a job."""
        from pyspark.sql.types import LongType, StructField, StructType

        pane = [StructField(_PANE, LongType())] if with_pane else []
        names = _stored_names(self.query)
        fields = zip(names, self.stored.fields, strict=True)
        schema = StructType([*(StructField(n, field.dataType) for n, field in fields), *pane])
        spark = self.batch.sparkSession
        rows = spark.read.schema(schema).parquet(*(f"{self.root}/{path}" for path in paths))
        keys = zip(names, self.query.key, strict=False)
        value_names = schema.names[len(self.query.key) :]
        return rows.select(*(F.col(n).alias(key) for n, key in keys), *value_names)

    def _merged(self, parts: DataFrame, *further_keys: str) -> DataFrame:
        keys = [*further_keys, *map(quoted, self.query.key)]
        return parts.groupBy(*keys).agg(*panes.merge_columns(self.query))

    def _write(self, rows: DataFrame, folder: str, name: str) -> None:
        """Write Parquet partitioned by pane, under a name; panes are also kept in the files.

        No column of the files has a name that a user chose, so none has that of the partitions.
        """
        fields = zip(self.stored.names, _stored_names(self.query), strict=True)
        columns = [F.col(quoted(column_name)).alias(stored) for column_name, stored in fields]
        by_folder = rows.select(*columns, _PANE, F.col(_PANE).alias(name))
        with options_set(rows.sparkSession, _OLD_DATES_AS_THEY_ARE):
            by_folder.write.mode("overwrite").partitionBy(name).parquet(f"{self.root}/{folder}")


def _ends_in(ends: Sequence[int]) -> str:
    return f"unix_millis({panes.END}) IN ({', '.join(map(str, ends))})"


def _union(parts: Sequence[DataFrame]) -> DataFrame:
    return reduce(lambda union, part: union.unionByName(part), parts)


def _stored_names(query: WindowQuery) -> list[str]:
    """Names in files: keys by position, since the names of users may be any; partial results."""
    keys = [f"{PREFIX}key_{index}" for index in range(len(query.key))]
    return keys + [column for aggregate in query.aggregates for column in aggregate.partials]


def stored_schema(df: DataFrame, query: WindowQuery) -> StructType:
    """Keys and partial results with their types, which are the same before and after merging."""
    parts = panes.partials(df, query).drop("window")
    merged = parts.groupBy(*map(quoted, query.key)).agg(*panes.merge_columns(query)).schema
    for before, after in zip(parts.schema.fields, merged.fields, strict=True):
        kind, merged_kind = before.dataType.simpleString(), after.dataType.simpleString()
        if kind != merged_kind:
            raise InputError(
                f"{_name_of(query, before.name)}: partial results of type {kind} merge to "
                f"{merged_kind}; use how='direct' of shared_windows"
            )
        if not _is_storable(before.dataType):
            raise InputError(
                f"{_name_of(query, before.name)}: a log keeps partial results in Parquet files, "
                f"which cannot hold the type {kind}; cast it to another type"
            )
    return parts.schema


def _name_of(query: WindowQuery, column: str) -> str:
    """Of the aggregate that a partial result belongs to, or of the key."""
    return next((a.name for a in query.aggregates if column in a.partials), column)


def _is_storable(of_type: DataType) -> bool:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(of_type, StructType):
        return all(_is_storable(field.dataType) for field in of_type.fields)
    if isinstance(of_type, ArrayType):
        return _is_storable(of_type.elementType)
    if isinstance(of_type, MapType):
        return _is_storable(of_type.keyType) and _is_storable(of_type.valueType)
    return of_type.typeName() not in _NOT_IN_PARQUET
