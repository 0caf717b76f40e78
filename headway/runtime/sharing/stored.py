"""Schema of the partial results that a log keeps in files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.errors import InputError
from headway.runtime.sharing.aggregates import PREFIX, quoted
from headway.runtime.sharing.panes import WindowQuery, merge_columns, partials

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

OLD_DATES_AS_THEY_ARE = {
    f"spark.sql.parquet.{kind}RebaseModeInWrite": "CORRECTED" for kind in ("datetime", "int96")
}
"""Options to write dates before 1582 and times before 1900, which Spark 3.5 refuses by default.

Programs of before 2020 would read them in another calendar; a log is only read by Spark.
"""
_NOT_IN_PARQUET = ("void", "null", "interval", "object")


def stored_names(query: WindowQuery) -> list[str]:
    """Names in files: keys by position, since the names of users may be any; partial results."""
    keys = [f"{PREFIX}key_{index}" for index in range(len(query.key))]
    return keys + [column for aggregate in query.aggregates for column in aggregate.partials]


def stored_schema(df: DataFrame, query: WindowQuery) -> StructType:
    """Keys and partial results with their types, which are the same before and after merging."""
    parts = partials(df, query).drop("window")
    merged = parts.groupBy(*map(quoted, query.key)).agg(*merge_columns(query)).schema
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
    return next(
        (aggregate.name for aggregate in query.aggregates if column in aggregate.partials), column
    )


def _is_storable(of_type: DataType) -> bool:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(of_type, StructType):
        return all(_is_storable(field.dataType) for field in of_type.fields)
    if isinstance(of_type, ArrayType):
        return _is_storable(of_type.elementType)
    if isinstance(of_type, MapType):
        return _is_storable(of_type.keyType) and _is_storable(of_type.valueType)
    return of_type.typeName() not in _NOT_IN_PARQUET
