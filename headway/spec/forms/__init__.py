"""Declaration of files: fields, each with a kind, read strictly, shown as schema and page.

A noun of a file is a frozen dataclass whose fields are made by :func:`entry`. The reader with all
its messages, the JSON Schema for editors and the reference are derived from that one declaration.
"""

from headway.spec.forms.entries import (
    FAULTY,
    Entry,
    Reader,
    as_in,
    entries_of,
    entry,
    place,
    require_different_names,
)

__all__ = [
    "FAULTY", "Entry", "Reader",
    "as_in", "entries_of", "entry", "place", "require_different_names",
]  # fmt: skip
