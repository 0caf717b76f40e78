"""Fields of a file's noun: key, kind and description, declared once."""

from __future__ import annotations

from dataclasses import MISSING, Field, dataclass, field, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headway.spec.forms.kinds import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One key of a file: its name, its reader, its description."""

    field_name: str
    key: str
    kind: Kind
    about: str
    required: bool
    default: object


def entry(kind: Kind, about: str, *, key: str | None = None, default: Any = MISSING) -> Any:
    """A field of a file's noun.

    Parameters
    ----------
    kind : Kind
        How its value is read.
    about : str
        Its description, for the reference and for editors; with its default, if that is not
        obvious.
    key : str, optional
        Its name in the file, if it is not that of the field: ``rate`` for ``rate_per_s``.
    default : optional
        Its value when it is not given; without one the key is required.
    """
    metadata = {"kind": kind, "about": about, "key": key}
    if default is MISSING:
        return field(metadata=metadata)
    if isinstance(default, dict | list):
        return field(default_factory=lambda: type(default)(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def entries_of(noun: type[Any]) -> tuple[Entry, ...]:
    """The entries of a noun in the order of its fields; other fields are no entries."""
    return tuple(_entry(noun_field) for noun_field in fields(noun) if "kind" in noun_field.metadata)


def _entry(declared: Field[Any]) -> Entry:
    required = declared.default is MISSING and declared.default_factory is MISSING
    return Entry(
        field_name=declared.name,
        key=declared.metadata["key"] or declared.name,
        kind=declared.metadata["kind"],
        about=declared.metadata["about"],
        required=required,
        default=None if required or declared.default is MISSING else declared.default,
    )
