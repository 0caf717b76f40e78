"""Values that name other files, and their readings, which a file shares with its parts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.formats.yaml_document import Plain, Route, shown
from headway.spec.forms.kinds import JsonSchema, Nested, Text
from headway.spec.forms.reader import FAULTY, Reader


@dataclass(frozen=True, slots=True, kw_only=True)
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
            hint = _close_file(path)
            reader.fault(route, f"{shown(text)}: no such file; expected {self.words}{hint}")
            return FAULTY
        return path

    def json_schema(self) -> JsonSchema:
        return {"type": "string", "minLength": 1, "description": self.words}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOr:
    """The path of a file of some kind, or its content written out."""

    words: str
    noun: type[Any]

    def read(self, reader: Reader, route: Route, value: Plain) -> Any:
        if isinstance(value, dict):
            return Nested(self.noun).read(reader, route, value)
        return FilePath(words=self.words).read(reader, route, value)

    def json_schema(self) -> JsonSchema:
        return {
            "anyOf": [
                {"type": "string", "minLength": 1, "description": self.words},
                Nested(self.noun).json_schema(),
            ]
        }


def _close_file(path: Path) -> str:
    from difflib import get_close_matches

    try:
        names = [neighbour.name for neighbour in path.parent.iterdir() if neighbour.is_file()]
    except (OSError, ValueError):
        return ""
    close = get_close_matches(path.name, names[:10_000], n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
