"""The codecs of event logs: detection by first bytes, and reading."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from io import BufferedIOBase
from typing import IO, cast

from headway.profiler.logs.event_logs import UnreadableLogError
from headway.profiler.logs.spark_codecs import DAMAGE, SPARK_CODECS, DamagedBlockError
from headway.redaction import one_line
from headway.units import parse_size_bytes

HEAD_BYTES = 64
"""Bytes of a file's beginning that the functions here need."""

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Small enough for the processor's cache: a chunk is copied and divided several times.
_CHUNK_BYTES = parse_size_bytes("256k")


class NothingWholeError(UnreadableLogError):
    """A file that ends before it contains anything complete."""


def is_json(head: bytes) -> bool:
    r"""Whether a file with this beginning is an event log in plain JSON.

    >>> is_json(b'{"Event":'), is_json(b"\x1f\x8b"), is_json(b"")
    (True, False, False)
    """
    return head.lstrip()[:1] == b"{"


def is_packed(head: bytes) -> bool:
    r"""Whether a file with this beginning is packed as Spark packs event logs.

    >>> is_packed(b"\x1f\x8b\x08"), is_packed(b'{"Event":')
    (True, False)
    """
    magics = (ZSTD_MAGIC, GZIP_MAGIC, *(magic for magic, _ in SPARK_CODECS.values()))
    return head.startswith(magics)


def plain_chunks(packed: IO[bytes], head: bytes) -> Iterator[bytes]:
    """The plain text of a file with this beginning; if it was cut off, the text before that.

    Damaged parts are left out and replaced by a line that is not an event. NothingWholeError if the
    file is empty or ends inside its first block; UnreadableLogError if it is not an event log, or
    is damaged from the beginning.
    """
    if not head:
        raise NothingWholeError("the file is empty; expected a Spark event log")
    if head.startswith(BYTE_ORDER_MARK):
        packed.read(len(BYTE_ORDER_MARK))
        head = head.removeprefix(BYTE_ORDER_MARK)
    if head.startswith(ZSTD_MAGIC):
        return _as_far_as_whole("zstd", _of_zstd(packed))
    if head.startswith(GZIP_MAGIC):
        return _as_far_as_whole("gzip", _of_gzip(packed))
    for codec, (magic, blocks) in SPARK_CODECS.items():
        if head.startswith(magic):
            return _as_far_as_whole(codec, blocks(packed))
    if is_json(head):
        return iter(lambda: packed.read(_CHUNK_BYTES), b"")
    raise UnreadableLogError(
        "not a Spark event log; expected JSON lines that start with '{', plain or compressed "
        "with zstd, gzip, lz4, snappy or lzf"
    )


def _as_far_as_whole(codec: str, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The readable part. A log that was cut off ends there; damage becomes a damaged line."""
    anything, complaint = False, ""
    try:
        for chunk in chunks:
            anything = anything or chunk != DAMAGE
            yield chunk
    except EOFError as error:
        complaint = f" ({one_line(str(error))})"
    except DamagedBlockError as error:
        if not anything:
            raise UnreadableLogError(f"damaged {codec} data ({one_line(str(error))})") from None
        yield DAMAGE
    if not anything:
        raise NothingWholeError(f"not one whole {codec} block{complaint}")


def _of_gzip(packed: IO[bytes]) -> Iterator[bytes]:
    try:
        with gzip.open(packed, "rb") as reader:
            yield from _chunks(cast(BufferedIOBase, reader))
    except (zlib.error, gzip.BadGzipFile) as error:
        raise DamagedBlockError(str(error)) from None


def _of_zstd(packed: IO[bytes]) -> Iterator[bytes]:
    import zstandard

    try:
        with zstandard.ZstdDecompressor().stream_reader(
            packed, read_across_frames=True, closefd=False
        ) as reader:
            yield from _chunks(cast(BufferedIOBase, reader))
    except zstandard.ZstdError as error:
        raise DamagedBlockError(str(error)) from None


def _chunks(reader: BufferedIOBase) -> Iterator[bytes]:
    # A plain read would collect a whole chunk and lose all of it if the data ends early.
    return iter(lambda: reader.read1(_CHUNK_BYTES), b"")
