"""The file to which a recorder appends, and its older parts."""

from __future__ import annotations

import contextlib
import json
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

from headway.errors import HeadwayError, InputError
from headway.formats.text_file import AppendedFile

Json: TypeAlias = Mapping[str, Any]
LEFT_OUT_TEXT = "left out"

_USER_INFO = re.compile(r'://[^/\s"\\]*@')
_APP_ID = re.compile(rb'"App ID":"([^"]*)"')
_HEAD_BYTES = 65536
_ENDING = ".headway.jsonl"


class FileLostError(HeadwayError):
    """The file is gone or its disk is full, which is permanent, so the recording ends."""


class RotatingFile:
    """Groups of lines in a file that is rotated when it is full.

    Each file begins with the application and its executors, and contains one application only,
    since another one numbers its stages from 0 again. One writer has it at a time.
    """

    def __init__(self, path: Path, max_bytes: int, max_files: int) -> None:
        self.path, self._max_bytes, self._max_files = path, max_bytes, max_files

    def begin(
        self, application: Sequence[Json], cluster: Sequence[Json], end: Sequence[Json]
    ) -> None:
        """Open the file; it begins with these events, like every further file.

        ``end`` are the events with which a recording ends that is stopped in order. InputError
        if another recorder writes to it, OSError if it cannot be written.
        """
        self._application, self._cluster, self._end = application, list(cluster), _lines(end)
        header = self._header()
        self._file = AppendedFile(self.path)
        self._num_groups = 0
        try:
            app_id_match = _APP_ID.search(self._file.head(_HEAD_BYTES))
            if app_id_match and app_id_match[0] not in header:
                application_id = app_id_match[1].decode(errors="replace")
                self._go_on_in_a_new_file(partial(self._set_aside, application_id))
            elif self._file.size_bytes and self._file.size_bytes + len(header) > self._max_bytes:
                self._go_on_in_a_new_file(self._make_way)
            self._file.append(header)
        except OSError:
            self._file.close()
            raise

    def news_of_cluster(self, cluster: Sequence[Json]) -> list[Json]:
        """The events that are new; future files will begin with all of them."""
        news = [event for event in cluster if event not in self._cluster]
        self._cluster += news
        return news

    def append(self, events: Sequence[Json]) -> None:
        """Add a group of lines; FileLostError if the file is gone or its disk is full."""
        lines = _lines(events)
        with self._lost_if_it_fails():
            self._file.require_in_place()
            needed_bytes = self._file.size_bytes + len(lines) + len(self._end)
            if self._num_groups and needed_bytes > self._max_bytes:
                self._go_on_in_a_new_file(self._make_way)
                self._file.append(self._header())
            self._file.append(lines)
        self._num_groups += 1

    def finish(self) -> None:
        """Write that the recording ends here in order; raises like `append`."""
        with self._lost_if_it_fails():
            self._file.require_in_place()
            self._file.append(self._end)

    def close(self) -> None:
        self._file.close()

    @contextlib.contextmanager
    def _lost_if_it_fails(self) -> Iterator[None]:
        try:
            yield
        except (OSError, InputError) as error:
            reason = error.strerror if isinstance(error, OSError) else "another recorder took it"
            raise FileLostError(
                f"{self.path}: cannot be written any more ({reason}); recording ended"
            ) from error

    def _header(self) -> bytes:
        return _lines([*self._application, *self._cluster])

    def _go_on_in_a_new_file(self, make_room: Callable[[], None]) -> None:
        """Give the full file another name and begin one with the same permissions."""
        full, mode = self._file, stat.S_IMODE(self.path.stat().st_mode)
        try:
            make_room()
            self._file = AppendedFile(self.path, mode)
        finally:
            # Until then nobody else begins with the file that is renamed.
            full.close()
        self._num_groups = 0

    def _set_aside(self, application: str) -> None:
        """Name all files after their application, since files with the same name are one log."""
        stem = self.path.name.removesuffix(_ENDING)
        named = f"{stem}-{re.sub('[^0-9A-Za-z_-]', '_', application)}{_ENDING}"
        for file in self._parts():
            if file.exists():
                file.replace(file.with_name(named + file.name.removeprefix(self.path.name)))

    def _parts(self) -> list[Path]:
        """Newest first."""
        older = [self.path.with_name(f"{self.path.name}.{n}") for n in range(1, self._max_files)]
        return [self.path, *older]

    def _make_way(self) -> None:
        for older, newer in pairwise(reversed(self._parts())):
            if newer.exists():
                newer.replace(older)
        self.path.unlink(missing_ok=True)


def _lines(events: Iterable[Json]) -> bytes:
    texts = (json.dumps(event, separators=(",", ":")) for event in events)
    return b"".join(_USER_INFO.sub("://", text).encode() + b"\n" for text in texts)
