"""The file to which a recorder appends, and its older parts."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

from headway.errors import HeadwayError

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
    since another one numbers its stages from 0 again.
    """

    def __init__(self, path: Path, max_bytes: int, max_files: int) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._max_files = max_files
        self._mode = 0o666

    def begin(self, application: Sequence[Json], cluster: Sequence[Json]) -> None:
        """Open the file; it begins with these events, like every further file."""
        self._application, self._cluster = application, list(cluster)
        header = _lines([*application, *cluster])
        if self.path.exists():
            with self.path.open("rb") as before:
                found = _APP_ID.search(before.read(_HEAD_BYTES))
            if found and found[0] not in header:
                self._set_aside(found[1].decode(errors="replace"))
            elif self.path.stat().st_size + len(header) > self._max_bytes:
                self._make_way()
        self._open(header)

    def news_of_cluster(self, cluster: Sequence[Json]) -> list[Json]:
        """The events that are new; future files will begin with all of them."""
        news = [event for event in cluster if event not in self._cluster]
        self._cluster += news
        return news

    def append(self, events: Sequence[Json]) -> None:
        lines = _lines(events)
        try:
            self._require_in_place()
            if self._num_groups and self._file.tell() + len(lines) > self._max_bytes:
                self._file.close()
                self._make_way()
                self._open(_lines([*self._application, *self._cluster]))
            self._put(lines)
        except OSError as error:
            raise FileLostError(
                f"{self.path}: cannot be written any more ({error.strerror}); recording ended"
            ) from error
        self._num_groups += 1

    def close(self) -> None:
        self._file.close()

    def _open(self, header: bytes) -> None:
        # Unbuffered, so that written data survives the end of this process.
        self._file = open(self.path, "a+b", buffering=0, opener=self._opened)  # noqa: SIM115
        self._num_groups = 0
        try:
            if self._ends_within_a_line():
                # A partial line of a killed process must not corrupt the next line.
                header = b"\n" + header
            self._put(header)
        except OSError:
            self._file.close()
            raise

    def _opened(self, path: str, flags: int) -> int:
        return os.open(path, flags, self._mode)

    def _ends_within_a_line(self) -> bool:
        if self._file.seek(0, os.SEEK_END) == 0:
            return False
        self._file.seek(-1, os.SEEK_END)
        return self._file.read(1) != b"\n"

    def _put(self, lines: bytes) -> None:
        while lines:
            lines = lines[self._file.write(lines) or 0 :]

    def _require_in_place(self) -> None:
        opened, there = os.fstat(self._file.fileno()), self.path.stat()
        if (opened.st_dev, opened.st_ino) != (there.st_dev, there.st_ino):
            raise FileNotFoundError(errno.ENOENT, "it was moved or replaced")

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
        # The next file gets the same permissions.
        self._mode = stat.S_IMODE(self.path.stat().st_mode)
        oldest_first = self._parts()[::-1]
        for older, newer in pairwise(oldest_first):
            if newer.exists():
                newer.replace(older)
        self.path.unlink(missing_ok=True)


def _lines(events: Iterable[Json]) -> bytes:
    texts = (json.dumps(event, separators=(",", ":")) for event in events)
    return b"".join(_USER_INFO.sub("://", text).encode() + b"\n" for text in texts)
