"""Plain data -> frozen dataclasses, strictly, with all faults at once and their positions.

The fields are declared once, in the domain. ADR 5 explains why neither pydantic nor msgspec.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from headway.errors import InputError
from headway.formats.yaml_document import Document, Fault, Plain, Route, faults_text, shown
from headway.limits import LARGEST_NUMBER, MOST_LONG

T = TypeVar("T")

_IN_WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
_MOST = {int: (MOST_LONG, str(MOST_LONG)), float: (LARGEST_NUMBER, f"{LARGEST_NUMBER:g}")}


def validate(document: Document, noun: type[T]) -> T:
    """The noun that a document describes.

    Parameters
    ----------
    document : Document
        The result of :func:`headway.formats.yaml_document.parse_document` for a file.
    noun : type
        A dataclass, whose fields are the keys of the file. Types are strict: no ``"2"`` for 2, no
        ``true`` for 1, no ``2.0`` for a whole number.

    Raises
    ------
    InputError
        One line per fault of the whole file: its position, the value's path, what was expected.

    Examples
    --------
    >>> from headway.domain import RowsLaw
    >>> from headway.formats.yaml_document import parse_document
    >>> validate(parse_document("{scale: 2, exponent: 1e0}", name="a.yaml"), RowsLaw)
    RowsLaw(scale=2.0, exponent=1.0, static_rows=0.0)
    >>> validate(parse_document("scale: yes\\nexpnent: 1", name="a.yaml"), RowsLaw)
    Traceback (most recent call last):
    ...
    headway.errors.InputError: a.yaml:1:8: scale: got 'yes'; expected a number
    a.yaml:2:1: expnent: unknown key; did you mean 'exponent'?
    """
    value, faults = noun_or_faults(document, noun)
    if faults:
        raise InputError(faults_text(document.name, faults))
    return value


def noun_or_faults(document: Document, noun: type[T]) -> tuple[T, list[Fault]]:
    """The noun, which is only usable if there are no faults, and the faults."""
    reading = _Reading(document)
    value: T = reading.value(document.root, noun, ())
    return value, reading.faults


class _Reading:
    """A document that is being converted to a noun, and the faults found so far."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self.faults = list(document.faults)
        self._meant: set[Route] = set()

    def value(self, plain: Plain, hint: Any, route: Route) -> Any:
        """A value of its declared type; None if it is faulty."""
        kind = _without_none(hint)
        if plain is None and kind is not hint:
            return None
        if kind in _IN_WORDS:
            return self._scalar(plain, kind, route)
        arguments, origin = get_args(kind), get_origin(kind)
        if origin is tuple and arguments[1:] == (...,):
            if isinstance(plain, list):
                items = enumerate(plain)
                return tuple(
                    self.value(element, arguments[0], (*route, at)) for at, element in items
                )
        elif origin is Mapping and arguments[0] is str:
            if isinstance(plain, dict):
                named = plain.items()
                return {
                    key: self.value(nested_value, arguments[1], (*route, key))
                    for key, nested_value in named
                }
        elif is_dataclass(kind) and isinstance(kind, type):
            if isinstance(plain, dict):
                return self._noun(plain, kind, route)
        elif isinstance(kind, type) and issubclass(kind, Enum):
            if plain in [member.value for member in kind]:
                return kind(plain)
        else:
            raise TypeError(f"no form in a file for the type {kind}")
        self._unexpected(plain, kind, route)
        return None

    def _scalar(self, plain: Plain, kind: type, route: Route) -> Plain:
        if not (type(plain) is kind or (kind is float and type(plain) is int)):
            self._unexpected(plain, kind, route)
        elif isinstance(plain, int | float) and kind in _MOST:
            largest, largest_text = _MOST[kind]
            if abs(plain) <= largest:
                return float(plain) if kind is float else plain
            self._unexpected(plain, kind, route, f" between -{largest_text} and {largest_text}")
        else:
            return plain
        return None

    def _noun(self, plain: dict[str, Plain], noun: Any, route: Route) -> Any:
        num_faults = len(self.faults)
        hints = _hints(noun)
        keys = {field.name: _key_of(field, plain) for field in fields(noun)}
        known_keys = set(keys.values())
        for key in plain:
            if key not in known_keys:
                self._unknown(key, list(keys), route)
        arguments = {}
        for field in fields(noun):
            if (key := keys[field.name]) in plain:
                arguments[field.name] = self.value(plain[key], hints[field.name], (*route, key))
            elif _is_required(field):
                self._fault((*route, key), f"missing; expected {_in_words(hints[field.name])}")
        if len(self.faults) > num_faults:
            return None
        try:
            return noun(**arguments)
        except ValueError as error:
            self._fault(route, str(error))
            return None

    def _unknown(self, key: str, known_keys: list[str], route: Route) -> None:
        from difflib import get_close_matches

        close = get_close_matches(key, known_keys, n=1)
        self._meant.update((*route, name) for name in close)
        advice = f"did you mean {close[0]!r}?" if close else f"expected {_one_of(known_keys)}"
        key_route = (*route, key)
        mark = self._document.key_mark(key_route)
        self.faults.append(Fault(mark, key_route, f"unknown key; {advice}"))

    def _unexpected(self, plain: Plain, kind: Any, route: Route, within: str = "") -> None:
        self._fault(route, f"got {shown(plain)}; expected {_in_words(kind)}{within}")

    def _fault(self, route: Route, message: str) -> None:
        # A misspelt key is one fault, not a strange key and a missing one.
        if route not in self._meant:
            self.faults.append(Fault(self._document.value_mark(route), route, message))


@cache
def _hints(noun: Any) -> dict[str, Any]:
    return get_type_hints(noun)


def _key_of(field: Field[Any], plain: dict[str, Plain]) -> str:
    """The key of a field: its name, or the one that it has in earlier files."""
    former = field.metadata.get("formerly")
    return former if former in plain and field.name not in plain else field.name


def _is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _in_words(hint: Any) -> str:
    hint = _without_none(hint)
    if hint in _IN_WORDS:
        return _IN_WORDS[hint]
    if is_dataclass(hint):
        return f"a mapping with the keys {', '.join(field.name for field in fields(hint))}"
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _one_of([str(member.value) for member in hint])
    if get_origin(hint) is tuple:
        return f"a list, each item {_in_words(get_args(hint)[0])}"
    return "a mapping"


def _without_none(hint: Any) -> Any:
    if get_origin(hint) in (Union, UnionType):
        return next(kind for kind in get_args(hint) if kind is not NoneType)
    return hint


def _one_of(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"one of {', '.join(names)}"
