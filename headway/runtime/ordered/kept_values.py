"""Values of Python in the form in which a column gives them back, or refused: states, and output.

Arrow by itself would make 1 of 1.5 in a column of whole numbers, and a time in 1970 of a number.
"""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable, Iterable, Sequence
from decimal import Context, Decimal, Inexact, InvalidOperation
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from headway.errors import InputError

Keep: TypeAlias = Callable[[Any], Any]
MISFITS = (TypeError, ValueError, ArithmeticError, AttributeError)
"""What a conversion raises for a value that the column would change."""
_EXACT = Context(prec=38, traps=[Inexact, InvalidOperation])


def keeping(kind: Any, name: str) -> Keep:
    """Conversion of a value into the form in which a column of an Arrow type returns it.

    A type whose values are not preserved is refused.

    >>> keeping(pa.float64(), "last")(3), keeping(pa.decimal128(9, 2), "sum")(Decimal("1.5"))
    (3.0, Decimal('1.50'))
    """
    if pa.types.is_boolean(kind):
        return _truth
    if pa.types.is_integer(kind):
        lower, upper = bounds_of(kind.bit_width)
        return partial(_whole, lower=lower, upper=upper)
    if pa.types.is_float64(kind):
        return _double
    if pa.types.is_string(kind):
        return partial(_only, kind=str)
    if pa.types.is_binary(kind):
        return _bytes
    if pa.types.is_date(kind):
        return partial(_only, kind=dt.date)
    if pa.types.is_timestamp(kind):
        return partial(_time, has_zone=kind.tz is not None)
    if pa.types.is_decimal(kind):
        return partial(_decimal, unit=Decimal(1).scaleb(-kind.scale))
    if pa.types.is_list(kind):
        part = keeping(kind.value_type, name)
        return lambda values: [None if value is None else part(value) for value in listed(values)]
    raise InputError(
        f"the state {name} is of type {kind}, which Python does not give back as it was; expected "
        "long, int, double, decimal, string, boolean, binary, date, timestamp, or an array of one"
    )


def fits(keep: Keep, value: Any) -> bool:
    try:
        return value is None or keep(value) is not None
    except MISFITS:
        return False


def _truth(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError
    return bool(value)


def _only(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError
    return value


def kept_as_is(kind: Any) -> type | None:
    """The type whose values a column preserves, whole numbers within their bounds."""
    if pa.types.is_integer(kind):
        return int
    python_types = {pa.float64(): float, pa.bool_(): bool, pa.string(): str, pa.binary(): bytes}
    return python_types.get(kind)


def bounds_of(num_bits: int) -> tuple[int, int]:
    """The least and the greatest whole number of so many bits."""
    return -(1 << num_bits - 1), (1 << num_bits - 1) - 1


def _whole(value: Any, lower: int, upper: int) -> int:
    whole = int(operator.index(value))
    if not lower <= whole <= upper:
        raise OverflowError
    return whole


def _double(value: Any) -> float:
    # Strings do not have this method, although float() would accept them.
    return float(value.__float__())


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError
    return bytes(value)


def _time(value: Any, has_zone: bool) -> dt.datetime:
    if not isinstance(value, dt.datetime) or (value.tzinfo is not None) is not has_zone:
        raise TypeError
    # Timestamps of pandas have nanoseconds, which Spark does not keep.
    if getattr(value, "nanosecond", 0):
        raise ValueError
    return value.astimezone(dt.UTC) if has_zone else value


def _decimal(value: Any, unit: Decimal) -> Decimal:
    if isinstance(value, int) and not isinstance(value, bool):
        value = Decimal(value)
    if not isinstance(value, Decimal):
        raise TypeError
    return value.quantize(unit, context=_EXACT)


def listed(values: Any) -> list[Any]:
    if isinstance(values, np.ndarray):
        return list(values.tolist())
    if not isinstance(values, list | tuple):
        raise TypeError
    return list(values)


def table_of(rows: Iterable[tuple[Any, ...]], schema: Any, label: str) -> Any:
    """Tuples as an Arrow table; ``label`` begins the message about a value that does not fit."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = []
    for field, values in zip(schema, columns, strict=True):
        try:
            arrays.append(pa.array(values, type=field.type))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise InputError(f"{label} column {field.name}: {error}") from None
    return pa.table(arrays, schema=schema)


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
    of_fields = zip(columns, schema, strict=True)
    converted = [_converted(values, field, function) for values, field in of_fields]
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
