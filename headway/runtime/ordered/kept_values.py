"""Conversions of Python's values into the form in which a column gives them back, or not at all."""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from headway.errors import InputError

Keep: TypeAlias = Callable[[Any], Any]
MISFITS = (TypeError, ValueError, ArithmeticError, AttributeError)
"""What a conversion raises for a value that the column would change."""


def keeping(kind: Any, name: str) -> Keep:
    """Conversion of a value into the form in which a column of an Arrow type returns it.

    A type whose values are not preserved is refused.

    >>> keeping(pa.float64(), "last")(3), keeping(pa.decimal128(9, 2), "sum")(Decimal("1.5"))
    (3.0, Decimal('1.50'))
    """
    if pa.types.is_boolean(kind):
        return _truth
    if pa.types.is_integer(kind):
        return _whole(kind.bit_width)
    if pa.types.is_float64(kind):
        return _double
    if pa.types.is_string(kind):
        return _only(str)
    if pa.types.is_binary(kind):
        return _bytes
    if pa.types.is_date(kind):
        return _only(dt.date)
    if pa.types.is_timestamp(kind):
        return _time(kind.tz is not None)
    if pa.types.is_decimal(kind):
        return _decimal(kind.scale)
    if pa.types.is_list(kind):
        part = keeping(kind.value_type, name)
        return lambda values: [None if value is None else part(value) for value in listed(values)]
    raise InputError(
        f"the state {name} is of type {kind}, which Python does not give back as it was; expected "
        "long, int, double, decimal, string, boolean, binary, date, timestamp, or an array of one"
    )


def fits(keep: Keep, value: Any) -> bool:
    """Whether a conversion takes a value."""
    try:
        return value is None or keep(value) is not None
    except MISFITS:
        return False


def _truth(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError
    return bool(value)


def _only(kind: type) -> Keep:
    def keep(value: Any) -> Any:
        if type(value) is not kind:
            raise TypeError
        return value

    return keep


def kept_as_is(kind: Any) -> type | None:
    """The type whose values a column preserves, whole numbers within their bounds."""
    if pa.types.is_integer(kind):
        return int
    python_types = {pa.float64(): float, pa.bool_(): bool, pa.string(): str, pa.binary(): bytes}
    return python_types.get(kind)


def bounds_of(num_bits: int) -> tuple[int, int]:
    """The least and the greatest whole number of so many bits."""
    return -(1 << num_bits - 1), (1 << num_bits - 1) - 1


def _whole(num_bits: int) -> Keep:
    lower, upper = bounds_of(num_bits)

    def keep(value: Any) -> int:
        whole = int(operator.index(value))
        if not lower <= whole <= upper:
            raise OverflowError
        return whole

    return keep


def _double(value: Any) -> float:
    # Strings do not have this method, although float() would accept them.
    return float(value.__float__())


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError
    return bytes(value)


def _time(has_zone: bool) -> Keep:
    def keep(value: Any) -> dt.datetime:
        if not isinstance(value, dt.datetime) or (value.tzinfo is not None) is not has_zone:
            raise TypeError
        # Timestamps of pandas have nanoseconds, which Spark does not keep.
        if getattr(value, "nanosecond", 0):
            raise ValueError
        return value.astimezone(dt.UTC) if has_zone else value

    return keep


def _decimal(scale: int) -> Keep:
    unit = Decimal(1).scaleb(-scale)
    exact = Context(prec=38, traps=[Inexact, InvalidOperation])

    def keep(value: Any) -> Decimal:
        if isinstance(value, int) and not isinstance(value, bool):
            value = Decimal(value)
        if not isinstance(value, Decimal):
            raise TypeError
        return value.quantize(unit, context=exact)

    return keep


def listed(values: Any) -> list[Any]:
    """Elements of an array."""
    if isinstance(values, np.ndarray):
        return list(values.tolist())
    if not isinstance(values, list | tuple):
        raise TypeError
    return list(values)
