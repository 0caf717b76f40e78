"""State of a log of partial windows after each batch: readers, panes and pieces."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from headway.domain.window_set import WindowSpec
from headway.errors import HeadwayError

_FORMAT = "headway.windows/v1"


class Part(NamedTuple):
    """Partial results in the store: the folder, and the last batch with rows in it."""

    folder: str
    batch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """One consumer of the log: its windows, and the earliest window start that it may get."""

    name: str
    windows: tuple[WindowSpec, ...]
    from_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogState:
    """The log after a batch: everything that the next one, or a restart, needs.

    ``watermark_ms`` is Spark's watermark for the next batch; windows that end at or before
    ``closed_ms`` were emitted and get no more rows. ``panes`` are by start, ``pieces`` (windows
    from which larger ones are merged) by size and end.
    """

    batch: int = -1
    watermark_ms: int = 0
    closed_ms: int = 0
    pane_ms: int
    readers: tuple[Reader, ...]
    panes: Mapping[int, tuple[Part, ...]] = field(default_factory=dict)
    pieces: Mapping[tuple[int, int], Part] = field(default_factory=dict)

    @property
    def folders(self) -> set[str]:
        """Folders of the store that are still needed."""
        parts = (part for parts in self.panes.values() for part in parts)
        return {part.folder for part in (*parts, *self.pieces.values())}

    def to_json(self) -> str:
        """The form in the store."""
        return json.dumps(
            {
                "format": _FORMAT,
                "batch": self.batch,
                "watermark_ms": self.watermark_ms,
                "closed_ms": self.closed_ms,
                "pane_ms": self.pane_ms,
                "readers": [
                    {
                        "name": reader.name,
                        "from_ms": reader.from_ms,
                        "windows": [[w.size_ms, w.slide_ms, w.offset_ms] for w in reader.windows],
                    }
                    for reader in self.readers
                ],
                "panes": [[start, parts] for start, parts in self.panes.items()],
                "pieces": [[*window, *part] for window, part in self.pieces.items()],
            }
        )

    @classmethod
    def from_json(cls, text: str) -> LogState:
        """The state written by :meth:`to_json`.

        Raises
        ------
        HeadwayError
            If it is of another version.
        """
        found = json.loads(text)
        if found.get("format") != _FORMAT:
            raise HeadwayError(
                f"the log of windows is of format {found.get('format')!r}; expected {_FORMAT}"
            )
        return cls(
            batch=found["batch"],
            watermark_ms=found["watermark_ms"],
            closed_ms=found["closed_ms"],
            pane_ms=found["pane_ms"],
            readers=tuple(
                Reader(
                    name=reader["name"],
                    from_ms=reader["from_ms"],
                    windows=tuple(
                        WindowSpec(size_ms=size, slide_ms=slide, offset_ms=offset)
                        for size, slide, offset in reader["windows"]
                    ),
                )
                for reader in found["readers"]
            ),
            panes={start: tuple(Part(*part) for part in parts) for start, parts in found["panes"]},
            pieces={(size, end): Part(*part) for size, end, *part in found["pieces"]},
        )
