"""Plain data -> frozen dataclasses, strictly, with every fault at once.

The fields are declared once, in the domain; pydantic's core checks against those same classes.
"""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from headway.errors import InputError
from headway.formats.yaml_document import Document, Fault, Route, faults_text, shown
from headway.limits import LARGEST_NUMBER, MOST_LONG

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

T = TypeVar("T")

_OUT_OF_RANGE = ("greater_than_equal", "less_than_equal")
_IN_WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


def validate(document: Document, noun: type[T]) -> T:
    """The noun that a document describes.

    Parameters
    ----------
    document : Document
        What :func:`headway.formats.yaml_document.parse_document` made of a file.
    noun : type
        A dataclass, whose fields are the keys of the file. Types are taken at their word: no
        ``"2"`` for 2, no ``true`` for 1, no ``2.0`` for a whole number.

    Raises
    ------
    InputError
        One line per fault of the whole file: its place, the value's path, what was expected.

    Examples
    --------
    >>> from headway.domain import RowsLaw
    >>> from headway.formats.yaml_document import parse_document
    >>> validate(parse_document("{scale: 2, exponent: 1e0}", name="a.yaml"), RowsLaw)
    RowsLaw(scale=2.0, exponent=1.0)
    >>> validate(parse_document("scale: yes\\nexpnent: 1", name="a.yaml"), RowsLaw)
    Traceback (most recent call last):
    ...
    headway.errors.InputError: a.yaml:1:8: scale: got 'yes'; expected a number
    a.yaml:2:1: expnent: unknown key; did you mean 'exponent'?
    """
    # Imported here, as all that is slow to import: who only writes files need not wait for it.
    from pydantic_core import ValidationError

    from headway.formats.strict_schema import validator_of

    faults = list(document.faults)
    try:
        # As JSON, a strict check still takes a list for a tuple and a text for an enum's value.
        validator = validator_of(noun)  # type: ignore[arg-type]  # classes can be hashed
        value: T = validator.validate_json(json.dumps(document.root))
    except ValidationError as error:
        faults += _faults(document, noun, error.errors(include_url=False))
    if faults:
        raise InputError(faults_text(document.name, faults)) from None
    return value


def _faults(document: Document, noun: type[Any], errors: list[ErrorDetails]) -> list[Fault]:
    from difflib import get_close_matches

    faults: list[Fault] = []
    meant: set[Route] = set()
    for error in errors:
        if error["type"] == "unexpected_keyword_argument":
            route = error["loc"]
            known = [field.name for field in fields(_without_none(_hint_at(noun, route[:-1])))]
            close = get_close_matches(str(route[-1]), known, n=1)
            meant.update((*route[:-1], name) for name in close)
            advice = f"did you mean {close[0]!r}?" if close else f"expected {_one_of(known)}"
            faults.append(Fault(document.key_mark(route), route, f"unknown key; {advice}"))
    for error in errors:
        route = error["loc"]
        # A misspelt key is one fault, not a strange key and a missing one.
        if error["type"] == "unexpected_keyword_argument" or route in meant:
            continue
        faults.append(
            Fault(document.value_mark(route), route, _message(document, noun, route, error))
        )
    return faults


def _message(document: Document, noun: type[Any], route: Route, error: ErrorDetails) -> str:
    if error["type"] == "missing":
        return f"missing; expected {_in_words(_hint_at(noun, route))}"
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    expected = _in_words(_hint_at(noun, route))
    if error["type"] in _OUT_OF_RANGE:
        most = MOST_LONG if expected == _IN_WORDS[int] else f"{LARGEST_NUMBER:g}"
        expected += f" between -{most} and {most}"
    return f"got {shown(document.value(route))}; expected {expected}"


def _hint_at(noun: Any, route: Route) -> Any:
    """The type that the value at ``route`` must have."""
    hint = noun
    for step in route:
        hint = _without_none(hint)
        if is_dataclass(hint) and isinstance(hint, type):
            hint = get_type_hints(hint)[_field_name(hint, str(step))]
        else:
            arguments = get_args(hint)
            # tuple[item, ...] holds items, Mapping[key, item] holds items.
            hint = arguments[0] if get_origin(hint) is tuple else arguments[-1]
    return hint


def _field_name(noun: type[Any], key: str) -> str:
    """The field that a key of a file stands for, by today's name or by its former one."""
    former = {field.metadata.get("formerly"): field.name for field in fields(noun)}
    return former.get(key, key)


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
