"""Decisions as events with their reasons: through Python's logging, and as lines of JSON.

Whoever decides says so once. Without a handler that takes them, events cost nothing.
"""

from __future__ import annotations

import logging
import traceback
from pathlib import Path
from typing import Self

import msgspec

from headway.errors import HeadwayError, InputError, first_line
from headway.formats.text_file import AppendedFile
from headway.redaction import redact

EVENTS = logging.getLogger("headway.events")
_FACTS = "headway_facts"


def tell_event(source: str, event: str, why: str, /, **facts: object) -> None:
    """Report a decision: who decided, what, why, and the numbers that it rests on.

    It never fails: whatever a handler does, the query goes on. What a handler raises is printed
    as Python's logging prints it, unless ``logging.raiseExceptions`` is off.
    """
    if not EVENTS.isEnabledFor(logging.INFO):
        return
    fields = {"source": source, "event": event, "why": redact(why), **facts}
    try:
        EVENTS.info("%s: %s: %s", source, event, fields["why"], extra={_FACTS: fields})
    except Exception:
        if logging.raiseExceptions:
            traceback.print_exc()


class EventFile(logging.Handler):
    """Appends every event to a file, a line of JSON each, until it is closed.

    If the file can no longer be written, it ends, and ``ended_because`` says why. Raises InputError
    if another process or call writes to the file; HeadwayError if it cannot be written.
    """

    def __init__(self, path: str | Path) -> None:
        super().__init__(logging.INFO)
        self.ended_because: str | None = None
        try:
            self._file: AppendedFile | None = AppendedFile(Path(path))
        except InputError as error:
            raise InputError(f"events: {error}") from None
        except (OSError, ValueError) as error:
            raise HeadwayError(
                f"events: {path}: cannot be written ({first_line(error)}); expected a file in a "
                "folder that exists and can be written to"
            ) from None
        others = _open_files()
        self._level_before: int = others[0]._level_before if others else EVENTS.level
        if not EVENTS.isEnabledFor(logging.INFO):
            EVENTS.setLevel(logging.INFO)
        EVENTS.addHandler(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def emit(self, record: logging.LogRecord) -> None:
        """Write one event; what is no event of Headway's is passed over."""
        facts = getattr(record, _FACTS, None)
        if facts is None or self._file is None:
            return
        entry = {"schema": "headway.event/v1", "at_s": round(record.created, 3), **facts}
        try:
            self._file.append(msgspec.json.encode(entry, enc_hook=str) + b"\n")
        except (OSError, TypeError, ValueError) as error:
            self.ended_because = f"{self._file.path}: cannot be written ({first_line(error)})"
            self.close()

    def close(self) -> None:
        """Write no more events; may be repeated. The last file gives the log its level back."""
        if _open_files() == [self]:
            EVENTS.setLevel(self._level_before)
        EVENTS.removeHandler(self)
        if self._file is not None:
            self._file.close()
            self._file = None
        super().close()


def _open_files() -> list[EventFile]:
    return [handler for handler in EVENTS.handlers if isinstance(handler, EventFile)]
