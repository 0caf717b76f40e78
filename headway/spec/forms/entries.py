"""Fields of a file's noun: key, kind and description, declared once; what a kind must do."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Protocol

from headway.formats.yaml_document import Plain, Route
from headway.spec.forms.reader import Reader

JsonSchema = dict[str, Any]

_UNIT = re.compile(r"_(?:bytes_per_s|per_s|s|bytes|ratio)$")


class Kind(Protocol):
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
    kind: Kind
    about: str
    required: bool


def entry(kind: Kind, about: str, *, key: str | None = None, default: Any = MISSING) -> Any:
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
