"""State of reading a file: its text and that of its includes, and the faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headway.errors import SpecError
from headway.formats.yaml_document import Document, Fault, Mark, Plain, Route, faults_text, shown

#: What stands for a value whose fault has been reported.
FAULTY: Any = object()


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
