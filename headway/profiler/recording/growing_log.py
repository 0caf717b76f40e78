"""A log that is still being written: lines since it was last read."""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from headway.assumptions.tuning import LOG_ENDED_S
from headway.errors import EventLogError
from headway.profiler.logs.event_logs import nothing_read
from headway.profiler.logs.layouts import is_compacted_part
from headway.profiler.logs.log_codecs import BYTE_ORDER_MARK, GZIP_MAGIC, ZSTD_MAGIC, is_json
from headway.profiler.logs.sources import find_event_logs
from headway.redaction import one_line

_CHUNK_BYTES = 4_000_000
# A block of zstd may hold 30,000 times its size.
_PACKED_BYTES = 4_096
_HEAD_BYTES = 8


class GrowingLog:
    """The lines of a recorder's file or of an event log, rolling or not, as they are written.

    Parts that are rotated, compacted or renamed while they are read are read once. EventLogError if
    the path has no log, or several.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self._parts: dict[tuple[int, int], _Part] = {}
        self._written_s, self._is_missing = 0.0, False
        self._files()

    def new_lines(self) -> Iterator[bytes]:
        """Complete lines that were written since the last call, oldest first.

        EventLogError if the log is gone, or cannot be read while it grows.
        """
        try:
            files, self._is_missing = self._files(), False
        except EventLogError:
            # While its writer begins a new file, there is none for a moment.
            if self._is_missing or not self._parts:
                raise
            self._is_missing = True
            return
        is_first = not self._parts
        present_parts: dict[tuple[int, int], _Part] = {}
        for index, file in enumerate(files):
            try:
                with file.open("rb", buffering=0) as opened:
                    status = os.fstat(opened.fileno())
                    key = (status.st_dev, status.st_ino)
                    self._written_s = max(self._written_s, status.st_mtime)
                    newer = len(files) - index
                    part = self._parts.get(key)
                    # The inode number may be reused for another file after the first is gone.
                    if part is None or newer < part.num_newer or status.st_size < part.position:
                        part = _Part(num_newer=newer)
                        # Parts that were compacted since then have been read before.
                        part.is_known = not is_first and is_compacted_part(file.name)
                    part.num_newer = newer
                    present_parts[key] = part
                    opened.seek(part.position)
                    while data := opened.read(_CHUNK_BYTES):
                        part.position += len(data)
                        yield from part.lines_of(data, file)
            except FileNotFoundError:
                continue  # renamed since it was listed; it is read the next time
        self._parts = present_parts

    @property
    def is_written(self) -> bool:
        """Whether it was written to recently."""
        return time.time() - self._written_s < LOG_ENDED_S.value

    def _files(self) -> list[Path]:
        found_logs = find_event_logs([self.path])
        if found_logs.failures and not found_logs.logs:
            raise nothing_read(found_logs.failures)
        if len(found_logs.logs) != 1:
            names = ", ".join(log.name for log in found_logs.logs[:3])
            raise EventLogError(
                f"{one_line(str(self.path))}: holds {len(found_logs.logs)} logs ({names}); name one"
            )
        files = [file for file in found_logs.logs[0].files if isinstance(file, Path)]
        if len(files) < len(found_logs.logs[0].files):
            raise EventLogError(
                f"{one_line(str(self.path))}: only local files can be followed while they grow; "
                "name a recorder's file or a local event log"
            )
        return files


@dataclass(kw_only=True)
class _Part:
    """Read position of one file."""

    num_newer: int
    position: int = 0
    is_known: bool = False
    rest: bytes = b""
    unpack: Callable[[bytes], Iterable[bytes]] | None = field(default=None, repr=False)

    def lines_of(self, data: bytes, file: Path) -> Iterator[bytes]:
        """The lines that are completed by further bytes, without empty ones."""
        if self.is_known:
            return
        if self.unpack is None:
            if len(self.rest + data) < _HEAD_BYTES:
                self.rest += data
                return
            data, self.rest = self.rest + data, b""
            self.unpack = _unpacker(data, file)
        try:
            for text in self.unpack(data):
                *lines, self.rest = (self.rest + text).split(b"\n")
                # Millions of them fit into a few packed bytes.
                yield from filter(None, lines)
        except (zlib.error, ValueError) as error:
            raise EventLogError(
                f"{one_line(str(file))}: damaged ({one_line(str(error))}); "
                "expected an event log as Spark writes it"
            ) from None


def _unpacker(head: bytes, file: Path) -> Callable[[bytes], Iterable[bytes]]:
    """From packed bytes to text, in pieces of limited size."""
    if is_json(head.removeprefix(BYTE_ORDER_MARK)):
        return lambda data: (data,)
    if head.startswith(ZSTD_MAGIC):
        import zstandard

        frames = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True)

        def unpack_zstd(data: bytes) -> Iterator[bytes]:
            try:
                for packed in _pieces(data, _PACKED_BYTES):
                    yield from _pieces(frames.decompress(packed), _CHUNK_BYTES)
            except zstandard.ZstdError as error:
                raise ValueError(str(error)) from None

        return unpack_zstd
    if head.startswith(GZIP_MAGIC):
        stream = zlib.decompressobj(wbits=31)

        def unpack_gzip(data: bytes) -> Iterator[bytes]:
            # It may also hold back text when it has taken all of its input.
            while text := stream.decompress(data, _CHUNK_BYTES):
                yield text
                data = stream.unconsumed_tail

        return unpack_gzip
    raise EventLogError(
        f"{one_line(str(file))}: cannot be followed while it grows; expected JSON lines, plain or "
        "compressed with zstd or gzip (spark.eventLog.compression.codec), or a recorder's file"
    )


def _pieces(data: bytes, size_bytes: int) -> Iterator[bytes]:
    return (data[start : start + size_bytes] for start in range(0, len(data), size_bytes))
