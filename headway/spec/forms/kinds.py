"""Kinds of values in a file: each reads, describes itself in words, and has a JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from headway.errors import InputError
from headway.formats.yaml_document import Plain, Route, shown
from headway.limits import MOST_INT
from headway.spec.forms.entries import FAULTY, JsonSchema, Reader, ValueKind, entries_of

_GROUPED = re.compile(r"[-+]?[0-9]+(?:_[0-9]+)+")
_WHOLE = re.compile(r"[-+]?[0-9]+(?:_[0-9]+)*")
_CLOCK = re.compile(r"[0-9]+(?::[0-9]{1,2})+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Text; ``pattern`` must match all of it, and ``is_valid`` says which of such text is."""

    words: str = "text"
    pattern: str | None = None
    is_valid: Callable[[str], bool] | None = None

    def read(self, reader: Reader, route: Route, value: Plain) -> Any:
        if not isinstance(value, str) or not value.strip():
            number = not isinstance(value, bool) and isinstance(value, int | float)
            hint = f"; did you mean '{value}', in quotes?" if number else ""
            return reader.refuse(route, value, self.words, hint)
        if self.pattern is not None and not re.fullmatch(self.pattern, value):
            return reader.refuse(route, value, self.words)
        if self.is_valid is not None and not self.is_valid(value):
            return reader.refuse(route, value, self.words)
        return value

    def json_schema(self) -> JsonSchema:
        pattern = {} if self.pattern is None else {"pattern": f"^(?:{self.pattern})$"}
        return {"type": "string", "minLength": 1, **pattern}


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A number between bounds, both included unless ``above`` excludes the lower one."""

    words: str
    low: float = 0.0
    high: float = 1e15
    above: bool = False
    is_whole: bool = False

    def read(self, reader: Reader, route: Route, value: Plain) -> Any:
        if isinstance(value, bool) or not isinstance(value, int if self.is_whole else int | float):
            return reader.refuse(route, value, self.words, _whole_hint(value))
        if not self.low <= value <= self.high or (self.above and value == self.low):
            return reader.refuse(route, value, self.words)
        return value if self.is_whole else float(value)

    def json_schema(self) -> JsonSchema:
        kind = "integer" if self.is_whole else "number"
        lower = "exclusiveMinimum" if self.above else "minimum"
        return {"type": kind, lower: self.low, "maximum": self.high}


def whole(*, low: int, high: int = MOST_INT) -> Number:
    upper = "" if high == MOST_INT else f", at most {high}"
    words = f"a whole number, at least {low}{upper}"
    return Number(words=words, low=low, high=high, is_whole=True)


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false, and none of the other words for it."""

    words: str = "true or false"

    def read(self, reader: Reader, route: Route, value: Plain) -> Any:
        if isinstance(value, bool):
            return value
        flag_words = {"on": "true", "yes": "true", "y": "true", "off": "false", "no": "false"}
        word = flag_words.get(value.lower()) if isinstance(value, str) else None
        hint = "" if word is None else f"; did you mean {word}? (older YAML takes the word for it)"
        return reader.refuse(route, value, self.words, hint)

    def json_schema(self) -> JsonSchema:
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some words."""

    choices: tuple[str, ...]

    @property
    def words(self) -> str:
        return f"one of {', '.join(self.choices)}"

    def read(self, reader: Reader, route: Route, value: Plain) -> Any:
        if isinstance(value, str) and value in self.choices:
            return value
        word = value.lower() if isinstance(value, str) else ""
        return reader.refuse(route, value, self.words, did_you_mean(word, self.choices))

    def json_schema(self) -> JsonSchema:
        return {"enum": list(self.choices)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """Text in a notation of its own, e.g. a duration; some notations take plain numbers too.

    ``is_valid`` says which of the values that were read are; by default all are. ``usual_unit`` is
    the one that a bare number is most likely in. ``slips`` are patterns of common mistakes, each
    with the intended text.
    """

    words: str
    parse: Callable[[str], Any]
    examples: tuple[str, ...]
    pattern: str
    is_valid: Callable[[Any], bool] | None = None
    takes_numbers: bool = False
    usual_unit: str = ""
    slips: tuple[tuple[str, str], ...] = ()

    def read(self, reader: Reader, route: Route, value: Plain) -> Any:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and not self.takes_numbers:
            hint = "; a bare number has no unit"
            if self.usual_unit:
                hint += f", did you mean '{value}{self.usual_unit}'?"
            return reader.refuse(route, value, self.words, hint)
        if not is_number and not isinstance(value, str):
            return reader.refuse(route, value, self.words)
        text = str(value)
        try:
            parsed = float(text) if is_number else self.parse(text)
        except (InputError, OverflowError):
            return reader.refuse(route, value, self.words, self._slip(text))
        if self.is_valid is not None and not self.is_valid(parsed):
            return reader.refuse(route, value, self.words, self._slip(text))
        return parsed

    def json_schema(self) -> JsonSchema:
        text: JsonSchema = {
            "type": "string",
            "pattern": self.pattern,
            "examples": list(self.examples),
            "description": self.words,
        }
        if not self.takes_numbers:
            return text
        return {"anyOf": [text, {"type": "number", "minimum": 0}]}

    def _slip(self, text: str) -> str:
        if _CLOCK.fullmatch(text):
            return "; a clock's notation is 90 to one YAML reader and text to another, write units"
        if _GROUPED.fullmatch(text):
            return f"; did you mean {text.replace('_', '')}?"
        for pattern, template in self.slips:
            match = re.fullmatch(pattern, text.strip())
            if match is not None:
                return f"; {match.expand(template)}"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOf:
    """A list of one kind of thing; with ``or_one``, a single one need not be in a list.

    ``tell_faults`` reports members that do not fit together.
    """

    item: ValueKind
    least: int = 0
    most: int = 100_000
    or_one: bool = False
    tell_faults: Callable[[Reader, Route, tuple[Any, ...]], None] | None = None

    @property
    def words(self) -> str:
        if self.or_one:
            return f"{self.item.words}, or a list of such"
        at_least_text = f" of at least {self.least}" if self.least else ""
        length_text = f" of {self.least}" if self.least == self.most else at_least_text
        return f"a list{length_text}, each item {self.item.words}"

    def read(self, reader: Reader, route: Route, value: Plain) -> Any:
        if self.or_one and not isinstance(value, list) and value is not None:
            single_member = self.item.read(reader, route, value)
            return FAULTY if single_member is FAULTY else (single_member,)
        if not isinstance(value, list):
            return reader.refuse(route, value, self.words)
        if not self.least <= len(value) <= self.most:
            list_text = f"a list of {len(value)}" if value else "an empty list"
            return reader.fault(route, f"{list_text}; expected {self.words}")
        items = tuple(
            self.item.read(reader, (*route, index), member) for index, member in enumerate(value)
        )
        if FAULTY in items:
            return FAULTY
        num_faults = len(reader.faults)
        if self.tell_faults is not None:
            self.tell_faults(reader, route, items)
        return items if len(reader.faults) == num_faults else FAULTY

    def json_schema(self) -> JsonSchema:
        array_schema = {"type": "array", "items": self.item.json_schema(), "minItems": self.least}
        if self.least == self.most:
            array_schema["maxItems"] = self.most
        return {"anyOf": [array_schema, self.item.json_schema()]} if self.or_one else array_schema


@dataclass(frozen=True, slots=True, kw_only=True)
class MapOf:
    """A mapping of free keys to one kind of value."""

    value: ValueKind

    @property
    def words(self) -> str:
        return f"a mapping, each value {self.value.words}"

    def read(self, reader: Reader, route: Route, value: Plain) -> Any:
        if not isinstance(value, dict):
            return reader.refuse(route, value, self.words)
        mapping = {
            key: self.value.read(reader, (*route, key), entry_value)
            for key, entry_value in value.items()
        }
        return FAULTY if FAULTY in mapping.values() else mapping

    def json_schema(self) -> JsonSchema:
        return {"type": "object", "additionalProperties": self.value.json_schema()}


@dataclass(frozen=True, slots=True)
class Nested:
    """A mapping with the keys of a noun."""

    noun: type[Any]

    @property
    def words(self) -> str:
        keys = [entry.key for entry in entries_of(self.noun)]
        return f"a mapping with the keys {', '.join(keys)}"

    def read(self, reader: Reader, route: Route, value: Plain) -> Any:
        """The noun: every key read, every unknown and every missing one reported."""
        if not isinstance(value, dict):
            return reader.refuse(route, value, self.words)
        entries = entries_of(self.noun)
        intended_keys = _tell_unknown(reader, route, value, [entry.key for entry in entries])
        field_values: dict[str, Any] = {}
        for entry in entries:
            key_route = (*route, entry.key)
            if entry.key in value:
                entry_value = value[entry.key]
                if entry_value is None and not entry.required:
                    continue  # a key without a value is a key not given
                field_values[entry.field_name] = entry.kind.read(reader, key_route, entry_value)
            elif entry.required and entry.key not in intended_keys:
                fault = f"missing; expected {entry.kind.words}"
                field_values[entry.field_name] = reader.fault(key_route, fault)
        if FAULTY in field_values.values() or intended_keys:
            return FAULTY
        try:
            return self.noun(**field_values)
        except (ValueError, TypeError) as error:
            return reader.fault(route, str(error))

    def json_schema(self) -> JsonSchema:
        return {"$ref": f"#/$defs/{self.noun.__name__}"}


@dataclass(frozen=True, slots=True)
class NameOr:
    """A name or a file of something that is defined elsewhere, or the thing written out."""

    name: ValueKind
    noun: type[Any]

    @property
    def words(self) -> str:
        return f"{self.name.words}; or {Nested(self.noun).words}"

    def read(self, reader: Reader, route: Route, value: Plain) -> Any:
        if isinstance(value, dict):
            return Nested(self.noun).read(reader, route, value)
        return self.name.read(reader, route, value)

    def json_schema(self) -> JsonSchema:
        return {"anyOf": [self.name.json_schema(), Nested(self.noun).json_schema()]}


@dataclass(frozen=True, slots=True)
class FilePath:
    """The path of an existing file; a relative one starts at the folder of the spec."""

    words: str

    def read(self, reader: Reader, route: Route, value: Plain) -> Any:
        text = Text(words=self.words).read(reader, route, value)
        if text is FAULTY:
            return FAULTY
        path = reader.folder / text
        try:
            is_there = path.is_file()
        except (OSError, ValueError):
            is_there = False
        if not is_there and reader.needs_files:
            hint = did_you_mean(path.name, _files_beside(path))
            return reader.fault(route, f"{shown(text)}: no such file; expected {self.words}{hint}")
        return path

    def json_schema(self) -> JsonSchema:
        return {"type": "string", "minLength": 1, "description": self.words}


def _files_beside(path: Path) -> list[str]:
    try:
        names = [neighbour.name for neighbour in path.parent.iterdir() if neighbour.is_file()]
    except (OSError, ValueError):
        return []
    return names[:10_000]


def _tell_unknown(
    reader: Reader, route: Route, value: Mapping[str, Plain], keys: list[str]
) -> set[str]:
    """Report unknown keys, with known keys that may have been intended."""
    intended_keys: set[str] = set()
    for key in value:
        if key in keys:
            continue
        spelt = re.sub(r"(?<=[a-z])(?=[A-Z])|-", "_", key).lower()
        close = [spelt] if spelt in keys else get_close_matches(spelt, keys, n=1)
        intended_keys.update(close or ["\0"])
        advice = f"did you mean {close[0]!r}?" if close else f"expected one of {', '.join(keys)}"
        reader.fault((*route, key), f"unknown key; {advice}", at_key=True)
    return intended_keys


def did_you_mean(word: str, choices: Sequence[str]) -> str:
    """The choice that was probably intended by another word, as a question; empty without one."""
    same = [choice for choice in choices if choice.lower() == word.lower()]
    close = same or get_close_matches(word, choices, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _whole_hint(value: Plain) -> str:
    """The whole number that was probably intended by an invalid value, as a question."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return f"; did you mean {int(value)}?"
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        digits = value.strip().replace("_", "")
        return f"; did you mean {int(digits)}?" if len(digits) < 19 else ""
    return ""
