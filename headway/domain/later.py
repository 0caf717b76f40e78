"""Parts of a result that are computed when they are first read.

A plan is explained by many other settings. Parts that a command does not print cost no time;
whatever it prints, compares, copies or writes to a file is complete.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import Any, TypeVar, cast

Made = TypeVar("Made")
Noun = TypeVar("Noun", bound=Any)


def later(make: Callable[[], Made]) -> Made:
    """A value for a field of `made_when_asked`, which is computed when the field is first read.

    >>> from headway.lazy_classes import dataclass
    >>> @made_when_asked("rows")
    ... @dataclass(frozen=True, slots=True)
    ... class Table:
    ...     title: str
    ...     rows: tuple[int, ...]
    >>> def looked_up():
    ...     print("looking")
    ...     return (1, 2)
    >>> table = with_changes(Table("first", later(looked_up)), title="second")
    >>> table.title
    'second'
    >>> table.rows, table.rows
    looking
    ((1, 2), (1, 2))
    """
    # No part is a partial call itself: one stands for a part until it is read.
    return cast(Made, partial(make))


class _Part:
    """A field over its slot: reading it computes the value first."""

    __slots__ = ("slot",)

    def __init__(self, slot: Any) -> None:
        self.slot = slot

    def __get__(self, noun: Any, owner: type | None = None) -> Any:
        if noun is None:
            return self
        value = self.slot.__get__(noun, owner)
        if isinstance(value, partial):
            value = value()
            self.slot.__set__(noun, value)
        return value

    def __set__(self, noun: Any, value: object) -> None:
        self.slot.__set__(noun, value)


def made_when_asked(*names: str) -> Callable[[type[Noun]], type[Noun]]:
    """For a dataclass with slots: the fields of these names may be set `later`."""

    def over(noun: type[Noun]) -> type[Noun]:
        for name in names:
            setattr(noun, name, _Part(noun.__dict__[name]))
        return noun

    return over


def with_changes(noun: Noun, **changes: object) -> Noun:
    """A copy with some fields changed; what has not been computed yet stays uncomputed."""
    return cast(Noun, type(noun)(**{**stored_values(noun), **changes}))


def stored_values(noun: Any) -> dict[str, Any]:
    """The fields of a noun as they are, without computing those that have not been read."""
    field_values = {}
    for field in fields(noun):
        descriptor = getattr(type(noun), field.name, None)
        slot = descriptor.slot if isinstance(descriptor, _Part) else descriptor
        field_values[field.name] = getattr(noun, field.name) if slot is None else slot.__get__(noun)
    return field_values
