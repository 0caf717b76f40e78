"""Dataclass -> strict validator, on pydantic's core alone.

``pydantic.TypeAdapter`` builds an equivalent validator, but importing and running what builds it
takes longer than all else that ``headway predict`` does before it computes. The few shapes that
the domain uses are spelt out here; a test holds both validators against each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from pydantic_core import SchemaValidator, core_schema
from pydantic_core.core_schema import CoreSchema

from headway.limits import LARGEST_NUMBER, MOST_LONG


@cache
def validator_of(noun: Any) -> SchemaValidator:
    """What checks JSON against a dataclass: exact types, no unknown keys, numbers in range.

    Raises
    ------
    TypeError
        If a field has a type that files have no form for.

    Examples
    --------
    >>> from headway.domain import RowsLaw
    >>> validator_of(RowsLaw).validate_json('{"scale": 2, "exponent": 1}')
    RowsLaw(scale=2.0, exponent=1.0)
    """
    return SchemaValidator(_schema(noun))


def _schema(hint: Any) -> CoreSchema:
    if hint is int:
        return core_schema.int_schema(strict=True, ge=-MOST_LONG, le=MOST_LONG)
    if hint is float:
        return core_schema.float_schema(
            strict=True, allow_inf_nan=False, ge=-LARGEST_NUMBER, le=LARGEST_NUMBER
        )
    if hint is str:
        return core_schema.str_schema(strict=True)
    if hint is bool:
        return core_schema.bool_schema(strict=True)
    if is_dataclass(hint) and isinstance(hint, type):
        return _dataclass_schema(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return core_schema.enum_schema(hint, list(hint), sub_type="str", strict=True)
    arguments = get_args(hint)
    match get_origin(hint):
        case origin if origin in (Union, UnionType) and len(arguments) == 2:
            (kind,) = (argument for argument in arguments if argument is not NoneType)
            return core_schema.nullable_schema(_schema(kind))
        case origin if origin is tuple and arguments[1:] == (...,):
            return core_schema.tuple_schema([_schema(arguments[0])], variadic_item_index=0)
        case origin if origin is Mapping:
            return core_schema.dict_schema(*map(_schema, arguments), strict=True)
    raise TypeError(f"no form in a file for the type {hint}")


def _dataclass_schema(noun: type[Any]) -> CoreSchema:
    hints = get_type_hints(noun)
    members = [
        core_schema.dataclass_field(
            field.name,
            _with_default(field, _schema(hints[field.name])),
            kw_only=True,
            validation_alias=_names_in_files(field),
        )
        for field in fields(noun)
    ]
    return core_schema.dataclass_schema(
        noun,
        core_schema.dataclass_args_schema(noun.__name__, members, extra_behavior="forbid"),
        [field.name for field in fields(noun)],
        post_init=hasattr(noun, "__post_init__"),
        frozen=True,
        slots=True,
    )


def _names_in_files(field: Field[Any]) -> list[list[str | int]] | None:
    """The key of a field that was renamed: its name, or the one that earlier files have."""
    former = field.metadata.get("formerly")
    return None if former is None else [[field.name], [former]]


def _with_default(field: Field[Any], schema: CoreSchema) -> CoreSchema:
    if field.default is not MISSING:
        return core_schema.with_default_schema(schema, default=field.default)
    if field.default_factory is not MISSING:
        return core_schema.with_default_schema(schema, default_factory=field.default_factory)
    return schema
