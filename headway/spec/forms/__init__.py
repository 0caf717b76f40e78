"""How files are declared: fields with a kind each, read strictly, shown as schema and page.

A noun of a file is a frozen dataclass whose fields are made by :func:`entry`. From that one
declaration come the reader with all its messages, the JSON Schema for editors and the reference.
"""

from headway.spec.forms.entries import Entry, entries_of, entry
from headway.spec.forms.reader import FAULTY, Reader, Sources, Where

__all__ = ["FAULTY", "Entry", "Reader", "Sources", "Where", "entries_of", "entry"]
