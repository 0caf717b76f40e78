"""Output rows of a step or of a call, each value as it is or refused.

Arrow by itself would make 1 of 1.5 in a column of whole numbers, and a time in 1970 of a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from headway.errors import InputError
from headway.runtime.ordered.kept_state import table_of
from headway.runtime.ordered.kept_values import MISFITS, Keep, fits, keeping, kept_as_is, listed


def output_table(rows: Sequence[Any], schema: Any, function: str) -> Any:
    """Rows that a user's function returned, as an Arrow table of its output columns.

    Messages about rows that are no tuples of them, or that a column would change, begin with
    ``function``, what returned them.

    >>> output_table([(1,)], pa.schema([("n", pa.int64())]), "step").to_pylist()
    [{'n': 1}]
    >>> output_table([(1.5,)], pa.schema([("n", pa.int64())]), "step")
    Traceback (most recent call last):
    ...
    headway.errors.InputError: step returned 1.5 for the output n; expected a value of type int64
    """
    if not ({*map(type, rows)} <= {tuple, list} and {*map(len, rows)} <= {len(schema)}):
        for row in rows:
            if not isinstance(row, tuple | list) or len(row) != len(schema):
                raise InputError(
                    f"{function} returned the row {row!r}; expected a tuple of "
                    f"{', '.join(schema.names)}"
                )
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    converted = [
        _converted(values, field, function) for values, field in zip(columns, schema, strict=True)
    ]
    return table_of(zip(*converted, strict=True), schema, "output")


def _converted(values: Sequence[Any], field: Any, function: str) -> Sequence[Any]:
    """The values of a column; most are plain and stay as they are."""
    if {*map(type, values)} <= {kept_as_is(field.type), type(None)}:
        return values
    convert = _conversion(field.type, field.name)
    try:
        return [None if value is None else convert(value) for value in values]
    except MISFITS:
        strange = next(value for value in values if not fits(convert, value))
        raise InputError(
            f"{function} returned {strange!r} for the output {field.name}; expected a value of "
            f"type {field.type}"
        ) from None


def _conversion(kind: Any, name: str) -> Keep:
    """As of a state, and of types that a state does not have."""
    if pa.types.is_floating(kind):
        return partial(_floating, kind=kind.to_pandas_dtype())
    if pa.types.is_list(kind):
        part = _optional(_conversion(kind.value_type, name))
        return lambda values: [part(value) for value in listed(values)]
    if pa.types.is_map(kind):
        key = _conversion(kind.key_type, name)
        item = _optional(_conversion(kind.item_type, name))
        return lambda pairs: [(key(k), item(v)) for k, v in _pairs(pairs)]
    if pa.types.is_struct(kind):
        parts = {field.name: _optional(_conversion(field.type, name)) for field in kind}
        return lambda values: _struct(values, parts)
    return keeping(kind, name)


def _optional(convert: Keep) -> Keep:
    return lambda value: None if value is None else convert(value)


def _floating(value: Any, kind: type[np.floating[Any]]) -> float:
    """The nearest number of so many bits, as in Spark; a whole number must be exact."""
    number = float(value.__float__())
    with np.errstate(over="ignore"):
        nearest = float(kind(number))
    is_whole = isinstance(value, int | np.integer)
    if (is_whole and nearest != int(value)) or np.isinf(nearest) != np.isinf(number):
        raise OverflowError
    return number


def _pairs(pairs: Any) -> list[Any]:
    return list(pairs.items()) if isinstance(pairs, dict) else listed(pairs)


def _struct(values: Any, parts: dict[str, Keep]) -> dict[str, Any]:
    """By name, or as a tuple by position."""
    if not isinstance(values, dict):
        values = dict(zip(parts, listed(values), strict=True))
    if not parts.keys() >= values.keys():
        raise ValueError
    return {name: convert(values.get(name)) for name, convert in parts.items()}
