"""Rows that go to a bucket, and its output, as columns that pandas does not change.

Spark passes rows to a step through pandas, which turns whole numbers in a column with nulls into
doubles, NaN into nulls, and times into nanoseconds. So values that it would change are passed as
whole numbers without nulls, and the nulls as the bits of an additional column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headway.runtime.given import F
from headway.runtime.sharing.aggregates import PREFIX, quoted

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField, StructType

NULLS = f"{PREFIX}nulls"
_NO_ROW = -1
_MOST_COLUMNS = 63
_NUMBERS = ("byte", "short", "integer", "long", "float", "double", "boolean")
_AS_THEY_ARE = ("string", "binary")
_ARRIVING = (*_NUMBERS, *_AS_THEY_ARE, "date", "timestamp", "decimal")


def arrive_plain(schema: StructType) -> bool:
    """Whether rows of these columns can go to a bucket as they are."""
    return _all_are(schema, _ARRIVING)


def leave_plain(schema: StructType) -> bool:
    """Whether output of these columns can leave a bucket as it is."""
    return _all_are(schema, (*_NUMBERS, *_AS_THEY_ARE))


def _all_are(schema: StructType, kinds: Sequence[str]) -> bool:
    names = [field.dataType.typeName() for field in schema.fields]
    return len(names) <= _MOST_COLUMNS and all(name in kinds for name in names)


def arriving(df: DataFrame, *further_columns: str) -> DataFrame:
    """A stream's columns in forms that pandas preserves, their nulls, and some further columns."""
    fields = [field for field in df.schema.fields if field.name not in further_columns]
    bits = [
        F.when(F.col(quoted(field.name)).isNull(), F.lit(1 << at)).otherwise(F.lit(0))
        for at, field in enumerate(fields)
    ]
    nulls = bits[0].cast("long")
    for bit in bits[1:]:
        nulls = nulls.bitwiseOR(bit.cast("long"))
    values = [_arriving_value(field).alias(f"{PREFIX}{at}") for at, field in enumerate(fields)]
    return df.select(*values, nulls.alias(NULLS), *further_columns)


def _arriving_value(field: StructField) -> Column:
    column, kind = F.col(quoted(field.name)), field.dataType.typeName()
    if kind == "date":
        column = F.unix_date(column)
    elif kind == "timestamp":
        column = F.unix_micros(column)
    elif kind not in _NUMBERS:
        return column
    nothing = F.lit(False) if kind == "boolean" else F.lit(0).cast(field.dataType)
    return F.coalesce(column, nothing if kind in _NUMBERS else F.lit(0))


def arrived_table(frame: pd.DataFrame, schema: Any) -> Any:
    """The rows of a frame of :func:`arriving` as an Arrow table."""
    nulls = frame[NULLS].to_numpy()
    arrays = [
        _arrived(frame[f"{PREFIX}{at}"], field.type, nulls >> at & 1 == 1)
        for at, field in enumerate(schema)
    ]
    return pa.table(arrays, schema=schema)


def _arrived(values: pd.Series, kind: Any, are_null: Any) -> Any:
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        whole = pa.int32() if pa.types.is_date(kind) else pa.int64()
        return pa.array(values.to_numpy(), whole, mask=are_null).cast(kind)
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return pa.array(values.to_numpy(None if is_number else object), kind, mask=are_null)


def leaving_columns(output: StructType) -> list[str]:
    """Columns that a bucket returns to Spark for output of these columns, as a Spark schema."""
    values = [
        f"{PREFIX}{at} {field.dataType.simpleString()}" for at, field in enumerate(output.fields)
    ]
    return [*values, f"{NULLS} long"]


def leaving_frame(output: Any, num_columns: int) -> pd.DataFrame:
    """Output as a frame of :func:`leaving_columns`; if empty, one row that is dropped later."""
    import pandas as pd

    if output is None:
        nothing = {f"{PREFIX}{at}": [None] for at in range(num_columns)}
        return pd.DataFrame({**nothing, NULLS: [_NO_ROW]})
    nulls = np.zeros(len(output), dtype=np.int64)
    columns = {}
    for at, column in enumerate(output.combine_chunks().columns):
        nulls |= column.is_null().to_numpy().astype(np.int64) << at
        columns[f"{PREFIX}{at}"] = _leaving(column)
    return pd.DataFrame({**columns, NULLS: nulls})


def _leaving(column: Any) -> Any:
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        return np.array([*column.to_pylist(), None], dtype=object)[:-1]
    nothing = False if pa.types.is_boolean(column.type) else 0
    return pc.fill_null(column, pa.scalar(nothing, column.type)).to_numpy()


def left(results: DataFrame, output: StructType) -> DataFrame:
    """The output rows, with their nulls and their own names."""
    columns = []
    for at, field in enumerate(output.fields):
        value, kind = F.col(f"{PREFIX}{at}"), field.dataType.typeName()
        if kind in ("float", "double"):
            # Spark takes pandas' NaN for a null.
            value = F.coalesce(value, F.lit(float("nan")).cast(field.dataType))
        is_null = F.shiftright(NULLS, at).bitwiseAND(F.lit(1)) == F.lit(1)
        columns.append(F.when(~is_null, value).alias(field.name))
    return results.where(F.col(NULLS) >= F.lit(0)).select(*columns)
