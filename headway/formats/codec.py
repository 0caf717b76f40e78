"""Dataclasses as plain data and back: their fields say once what our files contain.

A field stands in a file under its name; a missing one gets its default. Metadata say what differs:

- ``key``: its key; ``a.b`` is ``b`` in a mapping ``a``. With "" the fields of its value stand there
  instead of it, with None nothing does.
- ``formerly``: its key in files of earlier versions.
- ``exact``: numbers are written unrounded, since they were asked for and not computed.
- ``pair``: a dataclass is written as the list of its values.
- ``items``: a mapping is written as the list of its items, each a mapping with these two keys.
- ``words``: the key of a list right before it: findings as sentences.
- ``then``: attributes to be written right after it, by key; they are not read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass, make_dataclass, replace
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from headway.errors import InputError
from headway.formats.yaml_document import (
    Document,
    Fault,
    Mark,
    Plain,
    Route,
    faults_text,
    route_text,
    shown,
)
from headway.lazy_classes import dataclass
from headway.limits import LARGEST_NUMBER, MOST_LONG
from headway.words import all_words

T = TypeVar("T")

_IN_WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
_LARGEST = {int: MOST_LONG, float: LARGEST_NUMBER}
_hints = cache(get_type_hints)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How one kind of file is written and read.

    Numbers have ``digits`` significant digits, or all of theirs; an unbounded one is null, kept as
    Python writes it, or refused. Files ``for_people`` lack what is empty by default, and may
    contain no unknown key and no number beyond the limits.
    """

    digits: int | None = 6
    infinity: Literal["null", "kept", "refused"] = "null"
    for_people: bool = False


RESULT = Form()
EXACT = Form(digits=None)
STATE = Form(digits=None, infinity="kept")
FOR_PEOPLE = Form(infinity="refused", for_people=True)


def data_of(value: object, form: Form = RESULT, route: Route = ()) -> Any:
    """Dataclasses as mappings, tuples as lists, enums as their values, at ``route`` of a file.

    A number that is not finite is a ValueError if the form refuses it.

    >>> from headway.domain import Interval
    >>> data_of((Interval(low=1 / 3, high=float("inf")),))
    [{'low': 0.333333, 'high': None}]
    """
    match value:
        case Enum():
            return value.value
        case float():
            return _number(value, form, route)
        case Mapping():
            return {
                str(key): data_of(item, form, (*route, str(key))) for key, item in value.items()
            }
        case tuple() | list():
            return [data_of(item, form, (*route, index)) for index, item in enumerate(value)]
    if is_dataclass(value) and not isinstance(value, type):
        return _data_of_fields(value, form, route)
    return value


def _data_of_fields(noun: Any, form: Form, route: Route) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for field in fields(noun):
        path, declared = _path(field), field.metadata
        value: Any = None if path is None else getattr(noun, field.name)
        if path is not None and not (form.for_people and _is_left_out(field, value)):
            if "words" in declared:
                data[declared["words"]] = list(all_words(value))
            if "pair" in declared and value is not None:
                value = [getattr(value, end.name) for end in fields(value)]
            if "items" in declared:
                value = [dict(zip(declared["items"], item, strict=True)) for item in value.items()]
            field_form = replace(form, digits=None) if "exact" in declared else form
            _put(data, path, data_of(value, field_form, (*route, *path)))
        for key, name in declared.get("then", {}).items():
            _put(data, tuple(key.split(".")), data_of(getattr(noun, name), form, (*route, key)))
    return data


def _put(data: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    if not path:
        data.update(value)
        return
    for key in path[:-1]:
        data = data.setdefault(key, {})
    data[path[-1]] = value


def _number(value: float, form: Form, route: Route) -> float | None:
    if math.isfinite(value):
        return value if form.digits is None else float(f"{value:.{form.digits}g}")
    if form.infinity == "refused":
        raise ValueError(f"{route_text(route)} is {value}; a file holds finite numbers only")
    # Not a number is a fault of ours: it passes here and is refused where the text is made.
    return None if form.infinity == "null" and math.isinf(value) else value


def _path(field: Field[Any]) -> tuple[str, ...] | None:
    """The keys that lead to a field; none if its own fields stand there, None if nothing does."""
    key = field.metadata.get("key", field.name)
    return None if key is None else tuple(key.split(".")) if key else ()


def _is_left_out(field: Field[Any], value: object) -> bool:
    """Whether it is a default that need not be written."""
    if isinstance(value, bool | int | float | str):
        return False
    if field.default_factory is not MISSING:
        return bool(value == field.default_factory())
    return field.default is not MISSING and value == field.default


def noun_of(data: Any, noun: type[T], form: Form = RESULT, /, **added: object) -> T:
    """What JSON data describe, except for the fields ``added``; unknown keys are ignored.

    Raises InputError, which says where the first fault is, and what was expected.

    >>> from headway.domain import Interval
    >>> noun_of({"low": 1, "high": None}, Interval)
    Interval(low=1.0, high=inf)
    >>> noun_of({"low": "1"}, Interval)
    Traceback (most recent call last):
    ...
    headway.errors.InputError: low: got '1'; expected a number
    """
    if not isinstance(data, dict):
        raise InputError(f"got {shown(data)}; expected {_in_words(noun)}")
    reading = _reading_of(data, form)
    return cast(T, reading.checked(reading.noun(data, noun, (), added)))


def value_of(data: Mapping[str, Any], key: str, hint: Any) -> Any:
    """The value at a key of JSON data, of a declared type; errors are those of `noun_of`.

    >>> value_of({"targets": ["p99 <= 3s"]}, "targets", tuple[str, ...])
    ('p99 <= 3s',)
    """
    if key not in data:
        raise InputError(f"{key}: missing; expected {_in_words(hint)}")
    reading = _reading_of(data, RESULT)
    return reading.checked(reading.value(data[key], hint, (key,)))


def _reading_of(data: Any, form: Form) -> _Reading:
    document = Document(name="", root=data, faults=(), values={(): Mark("", 1, 1)}, keys={})
    return _Reading(document, form)


def plain_data(noun: object) -> Any:
    return data_of(noun, FOR_PEOPLE)


def validate(document: Document, noun: type[T]) -> T:
    """What a document for people describes; types are strict: no ``"2"`` for 2, no ``2.0`` for 2.

    Raises InputError with a line per fault of the file: position, path, what was expected.

    >>> from headway.domain import RowsLaw
    >>> from headway.formats.yaml_document import parse_document
    >>> validate(parse_document("scale: yes\\nexpnent: 1", name="a.yaml"), RowsLaw)
    Traceback (most recent call last):
    ...
    headway.errors.InputError: a.yaml:1:8: scale: got 'yes'; expected a number
    a.yaml:2:1: expnent: unknown key; did you mean 'exponent'?
    """
    value, faults = noun_or_faults(document, noun)
    if faults:
        raise InputError(faults_text(sorted(faults, key=lambda fault: fault.message)))
    return value


def noun_or_faults(document: Document, noun: type[T]) -> tuple[T, list[Fault]]:
    """The noun, which is only usable if there are no faults, and the faults."""
    reading = _Reading(document, FOR_PEOPLE)
    value: T = reading.value(document.root, noun, ())
    return value, reading.faults


class _Reading:
    """A document that is being converted to a noun, and the faults found so far."""

    def __init__(self, document: Document, form: Form) -> None:
        self._document, self._form = document, form
        self.faults = list(document.faults)
        self._noted: set[Route] = set()

    def checked(self, value: Any) -> Any:
        """A value, unless there is a fault: an InputError with the first one."""
        for fault in self.faults:
            raise InputError(": ".join(filter(None, (route_text(fault.route), fault.message))))
        return value

    def value(self, plain: Plain, hint: Any, route: Route) -> Any:
        """A value of its declared type; None if it is faulty."""
        kind = _without_none(hint)
        if plain is None and kind is not hint:
            return None
        if kind in _IN_WORDS:
            return self._scalar(plain, kind, route)
        parts, origin = get_args(kind), get_origin(kind)
        if origin is Literal and plain in parts:
            return plain
        if origin is tuple and isinstance(plain, list):
            return tuple(self.value(item, parts[0], (*route, at)) for at, item in enumerate(plain))
        if origin is Mapping and isinstance(plain, dict):
            return self._mapping(plain, parts, route)
        if is_dataclass(kind) and isinstance(plain, dict):
            return self.noun(plain, kind, route, {})
        if _is_enum(kind) and plain in [member.value for member in kind]:
            return kind(plain)
        self._unexpected(plain, kind, route)
        return None

    def _scalar(self, plain: Any, kind: type, route: Route) -> Any:
        if plain is None and kind is float and self._form.infinity == "null":
            return math.inf
        is_kind = type(plain) is kind or (kind is float and type(plain) is int)
        largest = _LARGEST.get(kind) if self._form.for_people else None
        if is_kind and (largest is None or abs(plain) <= largest):
            return float(plain) if kind is float else plain
        within = f" between -{largest} and {largest}" if is_kind else ""
        self._unexpected(plain, kind, route, within)
        return None

    def _mapping(self, plain: dict[str, Plain], kinds: tuple[Any, ...], route: Route) -> Any:
        mapping, (kind_of_key, kind) = {}, kinds
        for key, plain_value in plain.items():
            # Counts among the numbers of a finding stay whole.
            is_count = kind is float and type(plain_value) is int and not self._form.for_people
            value = plain_value if is_count else self.value(plain_value, kind, (*route, key))
            if kind_of_key is str or re.fullmatch("[0-9]{1,18}", key):
                mapping[kind_of_key(key)] = value
            else:
                self._unexpected(key, kind_of_key, route)
        return mapping

    def noun(
        self, plain: dict[str, Plain], noun: Any, route: Route, added: Mapping[str, object]
    ) -> Any:
        """A dataclass of its keys; None if it is faulty."""
        num_faults, hints = len(self.faults), _hints(noun)
        paths = {
            field: path
            for field in fields(noun)
            if field.name not in added and (path := _path_in(field, plain)) is not None
        }
        if self._form.for_people:
            self._require_known(plain, list(paths.values()), route)
        arguments = dict(added)
        for field, path in paths.items():
            hint, field_route = hints[field.name], (*route, *path)
            value = self._inside(plain, path, route)
            if value is not MISSING:
                value = _unpaired(value, hint) if "pair" in field.metadata else value
                if "items" in field.metadata:
                    arguments[field.name] = self._items(value, hint, field, field_route)
                else:
                    arguments[field.name] = self.value(value, hint, field_route)
            elif field.default is field.default_factory is MISSING:
                self._fault(field_route, f"missing; expected {_in_words(hint)}")
        if len(self.faults) > num_faults:
            return None
        try:
            return noun(**arguments)
        except ValueError as error:
            self._fault(route, str(error))
            return None

    def _items(self, plain: Plain, hint: Any, field: Field[Any], route: Route) -> Any:
        """A mapping that is written as the list of its items; None if it is faulty."""
        key, value = field.metadata["items"]
        items = self.value(plain, _list_of_items(hint, key, value), route)
        if items is None or None in items:
            return None
        return {getattr(item, key): getattr(item, value) for item in items}

    def _inside(self, plain: Any, path: tuple[str, ...], route: Route) -> Any:
        """The value that keys lead to; MISSING if there is none."""
        for key in path:
            if not isinstance(plain, dict):
                self._fault(route, f"got {shown(plain)}; expected a mapping")
                self._noted.add(route)
            if not isinstance(plain, dict) or key not in plain:
                return MISSING
            plain, route = plain[key], (*route, key)
        return plain

    def _require_known(self, plain: Any, paths: list[tuple[str, ...]], route: Route) -> None:
        """Note keys that lead to no field, in a mapping and in those that have its fields."""
        known_keys = list(dict.fromkeys(path[0] for path in paths))
        for key, value in plain.items():
            inner_paths = [path[1:] for path in paths if path[0] == key and len(path) > 1]
            if key not in known_keys:
                self._unknown(key, known_keys, route)
            elif inner_paths and isinstance(value, dict):
                self._require_known(value, inner_paths, (*route, key))

    def _unknown(self, key: str, known_keys: list[str], route: Route) -> None:
        from difflib import get_close_matches

        close = get_close_matches(key, known_keys, n=1)
        self._noted.update((*route, name) for name in close)
        advice = f"did you mean {close[0]!r}?" if close else f"expected {_one_of(known_keys)}"
        mark = self._document.key_mark((*route, key))
        self.faults.append(Fault(mark, (*route, key), f"unknown key; {advice}"))

    def _unexpected(self, plain: Plain, kind: Any, route: Route, within: str = "") -> None:
        self._fault(route, f"got {shown(plain)}; expected {_in_words(kind)}{within}")

    def _fault(self, route: Route, message: str) -> None:
        # A misspelt key, or a part that is no mapping, is one fault, and no missing key is another.
        if not any(route[:length] in self._noted for length in range(1, len(route) + 1)):
            self.faults.append(Fault(self._document.value_mark(route), route, message))


def _path_in(field: Field[Any], plain: Mapping[str, Plain]) -> tuple[str, ...] | None:
    """The keys that lead to a field in a file, which may be of an earlier version."""
    former = field.metadata.get("formerly", field.name)
    return (former,) if former in plain and field.name not in plain else _path(field)


@cache
def _list_of_items(hint: Any, key: str, value: str) -> Any:
    """The type of a mapping that is written as the list of its items: nouns of two fields."""
    item = make_dataclass("Item", zip((key, value), get_args(hint), strict=True))
    return tuple[item, ...]  # type: ignore[valid-type]


def _unpaired(plain: Plain, hint: Any) -> Plain:
    """The values of a dataclass by their names; what else it may be is a fault of that."""
    names = [field.name for field in fields(_without_none(hint))]
    if isinstance(plain, list) and len(plain) == len(names):
        return dict(zip(names, plain, strict=True))
    return plain


def _in_words(hint: Any) -> str:
    hint = _without_none(hint)
    if hint in _IN_WORDS:
        return _IN_WORDS[hint]
    if is_dataclass(hint):
        keys = [path[0] for field in fields(hint) if (path := _path(field))]
        return f"a mapping with the keys {', '.join(dict.fromkeys(keys))}"
    if get_origin(hint) is Literal:
        return _one_of(list(get_args(hint)))
    if _is_enum(hint):
        return _one_of([str(member.value) for member in hint])
    if get_origin(hint) is tuple:
        return f"a list, each item {_in_words(get_args(hint)[0])}"
    return "a mapping"


def _is_enum(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Enum)


def _without_none(hint: Any) -> Any:
    if get_origin(hint) in (Union, UnionType):
        return next(kind for kind in get_args(hint) if kind is not NoneType)
    return hint


def _one_of(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"one of {', '.join(names)}"
