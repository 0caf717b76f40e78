"""State of reading a file: its text and that of its includes, and the faults."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from headway.errors import SpecError
from headway.formats.yaml_document import Document, Fault, Mark, Plain, Route

_MOST_FAULTS_SHOWN = 30


class _Faulty(Enum):
    FAULTY = "faulty"


#: What stands for a value whose fault has been reported.
FAULTY = _Faulty.FAULTY


@dataclass(frozen=True, slots=True, order=True)
class Where:
    """A position in one of the files that were read."""

    name: str
    mark: Mark

    def __str__(self) -> str:
        return f"{self.name}:{self.mark.line}:{self.mark.column}"


@dataclass(frozen=True, slots=True)
class Sources:
    """A file and the files that it includes, nearest first: the first one with a key counts.

    Examples
    --------
    >>> from headway.formats.yaml_document import parse_document
    >>> including = parse_document("spec:\\n  rate: 5", name="a.yaml")
    >>> included = parse_document("spec:\\n  zones: [a]", name="b.yaml")
    >>> sources = Sources((including, included))
    >>> str(sources.value_place(("spec", "rate"))), str(sources.value_place(("spec", "zones")))
    ('a.yaml:2:9', 'b.yaml:2:10')
    """

    documents: tuple[Document, ...]

    def value_place(self, route: Route) -> Where:
        """Position of a value; for a missing one, that of the nearest thing around it."""
        return self._place(route, of_key=False)

    def key_place(self, route: Route) -> Where:
        """Position of a key."""
        return self._place(route, of_key=True)

    def _place(self, route: Route, *, of_key: bool) -> Where:
        while True:
            for document in self.documents:
                if route in document.values:
                    mark = document.key_mark(route) if of_key else document.value_mark(route)
                    return Where(document.name, mark)
            if not route:
                return Where(self.documents[0].name, Mark(1, 1))
            route = route[:-1]


@dataclass(slots=True)
class Reader:
    """Collects faults while a file is read.

    ``folder`` is where paths in the file start; ``needs_files`` says whether the named files must
    exist.
    """

    sources: Sources
    folder: Path
    faults: list[tuple[Where, Fault]] = field(default_factory=list)
    needs_files: bool = True

    def fault(self, route: Route, message: str, *, at_key: bool = False) -> None:
        """Note a fault of the value at ``route``, or of its key."""
        where = self.sources.key_place(route) if at_key else self.sources.value_place(route)
        self.faults.append((where, Fault(where.mark, route, message)))

    def raise_faults(self) -> None:
        """End the reading if anything was wrong.

        Raises
        ------
        SpecError
            One line per fault, in the order of the files.
        """
        if not self.faults:
            return
        raise SpecError(faults_text(self.faults))


def faults_text(faults: Iterable[tuple[Where, Fault]]) -> str:
    """Faults of several files, one per line and each once, in order; of very many, the first."""
    ordered = sorted(faults, key=lambda located_fault: located_fault[0])
    lines = list(dict.fromkeys(fault.text(where.name) for where, fault in ordered))
    hidden = len(lines) - _MOST_FAULTS_SHOWN
    if hidden > 1:
        lines[_MOST_FAULTS_SHOWN:] = [f"{ordered[0][0].name}: and {hidden} more faults"]
    return "\n".join(lines)


def merged(including: Plain, included: Plain) -> Plain:
    """A file merged over the one it includes: mappings are merged, otherwise its own value counts.

    Examples
    --------
    >>> merged({"a": {"b": 1}}, {"a": {"b": 2, "c": 3}, "d": [4]})
    {'a': {'b': 1, 'c': 3}, 'd': [4]}
    """
    if not (isinstance(including, dict) and isinstance(included, dict)):
        return including
    combined = dict(including)
    for key, value in included.items():
        combined[key] = merged(including[key], value) if key in including else value
    return combined
