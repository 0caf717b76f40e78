"""Spark columns as Arrow columns, and checks of what a stream can be ordered by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from headway.errors import InputError, first_line
from headway.runtime.given import on_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

_SIMPLE = {
    "boolean": "bool_",
    "byte": "int8",
    "short": "int16",
    "integer": "int32",
    "long": "int64",
    "float": "float32",
    "double": "float64",
    "string": "string",
    "binary": "binary",
    "date": "date32",
}


def spark_schema(df: DataFrame, text: str) -> StructType:
    """Columns such as ``"last double, n long"``, parsed by Spark."""
    from pyspark.errors import PySparkException

    try:
        return df.sparkSession.createDataFrame([], text).schema
    except PySparkException as error:
        first = first_line(error)
        raise InputError(
            f"{text!r}: expected columns as in 'card string, n long': {first}"
        ) from None


def arrow_schema(schema: StructType) -> Any:
    """The same columns in Arrow."""
    import pyarrow as pa

    return pa.schema([pa.field(field.name, arrow_type(field.dataType)) for field in schema.fields])


def arrow_type(kind: DataType) -> Any:
    """A Spark type in Arrow; one without a form that every version of Spark reads is refused."""
    import pyarrow as pa
    from pyspark.sql.types import ArrayType, DecimalType, MapType, StructType

    name = kind.typeName()
    if name in _SIMPLE:
        return getattr(pa, _SIMPLE[name])()
    if name in ("timestamp", "timestamp_ntz"):
        return pa.timestamp("us", tz="UTC" if name == "timestamp" else None)
    if isinstance(kind, DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, ArrayType):
        return pa.list_(arrow_type(kind.elementType))
    if isinstance(kind, MapType):
        return pa.map_(arrow_type(kind.keyType), arrow_type(kind.valueType))
    if isinstance(kind, StructType):
        return pa.struct(list(arrow_schema(kind)))
    raise InputError(
        f"columns of type {kind.simpleString()} cannot be made of Python's values; expected "
        "numbers, string, binary, boolean, date, timestamp, or array, map, struct of them"
    )


def in_foreach_batch(df: DataFrame) -> bool:
    """Whether this is called with the rows of a batch of a stream."""
    if on_connect(df):
        return False
    return df.sparkSession.sparkContext.getLocalProperty("streaming.sql.batchId") is not None


def streaming_operators(df: DataFrame) -> set[str]:
    """Names of the stateful operators over streams that a DataFrame already has."""
    return set(_stateful(cast(Any, df)._jdf.queryExecution().analyzed()))


def _stateful(node: Any) -> list[str]:
    if not node.isStreaming():
        return []
    children = [node.children().apply(at) for at in range(node.children().size())]
    name = str(node.nodeName())
    joins_streams = name == "Join" and sum(bool(child.isStreaming()) for child in children) > 1
    operators = [name] if joins_streams or name.startswith(_STATEFUL) else []
    return operators + [operator for child in children for operator in _stateful(child)]


_STATEFUL = ("Aggregate", "Deduplicate", "Distinct", "FlatMapGroups", "TransformWithState")
