"""Fields of a file's noun, declared once, and the state of reading a file: its text, its faults."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol

from headway.errors import SpecError
from headway.formats.yaml_document import Document, Fault, Mark, Plain, Route, faults_text, shown

#: What stands for a value whose fault has been reported.
FAULTY: Any = object()
JsonSchema = dict[str, Any]
_UNIT = re.compile(r"_(?:bytes_per_s|per_s|s|bytes|ratio)$")


def place(documents: Sequence[Document], route: Route, *, of_key: bool = False) -> Mark:
    """Position of a value or its key; for a missing one, that of the nearest thing around.

    A file stands before the files that it includes: the first one with a key counts.

    >>> from headway.formats.yaml_document import parse_document
    >>> including = parse_document("spec:\\n  rate: 5", name="a.yaml")
    >>> included = parse_document("spec:\\n  zones: [a]", name="b.yaml")
    >>> for key in ("rate", "zones"):
    ...     print(place((including, included), ("spec", key)))
    a.yaml:2:9
    b.yaml:2:10
    """
    while True:
        for document in documents:
            if route in document.values:
                return document.key_mark(route) if of_key else document.value_mark(route)
        route = route[:-1]


@dataclass(slots=True)
class Reader:
    """Collects faults while a file is read.

    ``documents`` are the file and those that it includes; ``folder`` is where paths in the file
    start; ``needs_files`` says whether the named files must exist.
    """

    documents: Sequence[Document]
    folder: Path
    faults: list[Fault] = field(default_factory=list)
    needs_files: bool = True

    def fault(self, route: Route, message: str, *, at_key: bool = False) -> Any:
        """Note a fault of the value at ``route``, or of its key, and return ``FAULTY`` for it."""
        self.faults.append(Fault(place(self.documents, route, of_key=at_key), route, message))
        return FAULTY

    def refuse(self, route: Route, value: Plain, words: str, hint: str = "") -> Any:
        """Note that a value is not what ``words`` say, and return ``FAULTY`` for it."""
        return self.fault(route, f"got {shown(value)}; expected {words}{hint}")

    def raise_faults(self) -> None:
        """End the reading if anything was wrong.

        Raises SpecError with a line per fault in the order of the files; of very many, the first.
        """
        if self.faults:
            raise SpecError(faults_text(self.faults))


def merged(including: Plain, included: Plain) -> Plain:
    """A file merged over the one it includes: mappings are merged, otherwise its own value counts.

    >>> merged({"a": {"b": 1}}, {"a": {"b": 2, "c": 3}, "d": [4]})
    {'a': {'b': 1, 'c': 3}, 'd': [4]}
    """
    if not (isinstance(including, dict) and isinstance(included, dict)):
        return including
    combined = dict(including)
    for key, value in included.items():
        combined[key] = merged(including[key], value) if key in including else value
    return combined


class ValueKind(Protocol):
    """How one value is read."""

    @property
    def words(self) -> str:
        """What is expected, in messages: ``a duration, e.g. 500ms``."""

    @abstractmethod
    def read(self, reader: Reader, route: Route, value: Plain) -> Any:
        """The value, or ``FAULTY`` after its faults have been reported."""

    @abstractmethod
    def json_schema(self) -> JsonSchema:
        """The JSON Schema for editors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One key of a file: its name, its reader, its description."""

    field_name: str
    key: str
    kind: ValueKind
    about: str
    required: bool


def entry(kind: ValueKind, about: str, *, key: str | None = None, default: Any = MISSING) -> Any:
    """A field of a file's noun, required unless it has a ``default``.

    ``about`` describes it in the reference and in editors, with its default if that is not obvious.
    ``key`` is its name in the file, if that is not the field without its unit: ``rate_per_s``.
    """
    metadata = {"kind": kind, "about": about, "key": key}
    if default is MISSING:
        return field(metadata=metadata)
    if isinstance(default, dict | list):
        return field(default_factory=lambda: type(default)(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def as_in(noun: type[Any], field_name: str) -> Any:
    """A field of a file's noun that is the same entry as that of another one."""
    declared = noun.__dataclass_fields__[field_name]
    return field(
        default=declared.default,
        default_factory=declared.default_factory,
        metadata=declared.metadata,
    )


def entries_of(noun: type[Any]) -> tuple[Entry, ...]:
    """The entries of a noun in the order of its fields; other fields are no entries."""
    return tuple(
        Entry(
            field_name=declared.name,
            key=declared.metadata["key"] or _UNIT.sub("", declared.name),
            kind=declared.metadata["kind"],
            about=declared.metadata["about"],
            required=declared.default is declared.default_factory is MISSING,
        )
        for declared in fields(noun)
        if "kind" in declared.metadata
    )


def require_different_names(members: Sequence[Any], fault: str) -> None:
    """Refuse members of a list that have one name, as a ValueError with that fault."""
    counts = Counter(member.name for member in members)
    repeated = next((name for name, count in counts.items() if count > 1), None)
    if repeated is not None:
        raise ValueError(fault.format(repeated))
