"""The codecs of event logs: detection by first bytes, and reading.

Besides gzip and zstd these are lz4, snappy and lzf in Spark's own form: a sequence of blocks that
are preceded by their length, as written by Spark's Java libraries (LZ4BlockOutputStream of
lz4-java, SnappyOutputStream of snappy-java, LZFOutputStream of Ning). Only lz4 has checksums; in
the others, damage that can still be unpacked appears as damaged lines.
"""

from __future__ import annotations

import contextlib
import gzip
import struct
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from io import BufferedIOBase
from itertools import islice
from typing import IO, Any, TypeAlias, cast

import numpy as np

from headway.errors import require_packages
from headway.profiler.logs.event_logs import UnreadableLogError
from headway.redaction import one_line
from headway.units import parse_size_bytes

HEAD_BYTES = 64  # of a file's beginning, that the functions here need

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
    return any(head.startswith(magic) for magic, _ in _CODECS.values())


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
    for codec, (magic, chunks) in _CODECS.items():
        if head.startswith(magic):
            return _as_far_as_whole(codec, chunks(packed))
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


# Spark writes blocks of 32 KiB; the libraries accept at most 32 MiB.
_LARGEST_BLOCK_BYTES = parse_size_bytes("64m")
_LZ4_HEADER = struct.Struct("<8sBiiI")
_LZ4_STORED, _LZ4_PACKED = 0x10, 0x20
_LZ4_CHECKED_BITS = 0x0FFFFFFF  # lz4-java keeps no more
_CHECKED_TOGETHER = 256
# Constants of XXH32, and the seed used by lz4-java.
_P1, _P2, _P3, _P4, _P5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
_SEED = 0x9747B28C
_SNAPPY_MAGIC = b"\x82SNAPPY\x00"
_SNAPPY_HEADER_BYTES = 16
_LZF_STORED, _LZF_PACKED = 0, 1


DAMAGE = b"\n\0\n"  # in place of a damaged block: no line that can have been written


class DamagedBlockError(UnreadableLogError):
    """A block that cannot be unpacked."""


_Lz4Block: TypeAlias = tuple[bytes | None, int]  # None if damaged, and its checksum


def lz4_blocks(packed: IO[bytes]) -> Iterator[bytes]:
    """The blocks of a file of Spark's lz4, unpacked; :data:`DAMAGE` in place of damaged ones.

    DamagedBlockError at the first block with an invalid header, so that none after it can be found;
    EOFError if the file ends inside a block.
    """
    blocks = _unchecked_lz4_blocks(packed)
    ended: Exception | None = None
    together: list[_Lz4Block] = [(b"", 0)]
    while together and ended is None:
        together = []
        try:
            for block in islice(blocks, _CHECKED_TOGETHER):
                together.append(block)
        except (DamagedBlockError, EOFError) as error:
            ended = error
        yield from _checked(together)
    if ended is not None:
        raise ended


def _unchecked_lz4_blocks(packed: IO[bytes]) -> Iterator[_Lz4Block]:
    require_packages("logs", "unpacking lz4", "pyarrow")
    from pyarrow import Codec

    codec = Codec("lz4_raw")
    while header := packed.read(_LZ4_HEADER.size):
        magic, token, packed_bytes, plain_bytes, checksum = _LZ4_HEADER.unpack(
            _whole(header, _LZ4_HEADER.size)
        )
        kind = token & 0xF0
        if magic != b"LZ4Block" or not 0 <= plain_bytes <= _LARGEST_BLOCK_BYTES:
            raise DamagedBlockError("its length makes no sense")
        if kind not in (_LZ4_STORED, _LZ4_PACKED) or not 0 <= packed_bytes <= _LARGEST_BLOCK_BYTES:
            raise DamagedBlockError("its kind makes no sense")
        block = _whole(packed.read(packed_bytes), packed_bytes)
        if plain_bytes == 0:
            continue  # ends one written sequence; more may follow
        plain = block if kind == _LZ4_STORED else None
        if kind == _LZ4_PACKED:
            with contextlib.suppress(DamagedBlockError):
                plain = _unpacked(codec.decompress, block, plain_bytes)
        yield plain, checksum


def _checked(blocks: Sequence[_Lz4Block]) -> Iterator[bytes]:
    """The blocks, with :data:`DAMAGE` in place of those with a wrong checksum."""
    by_length: dict[int, list[bytes]] = defaultdict(list)
    for plain, _ in blocks:
        if plain is not None:
            by_length[len(plain)].append(plain)
    checksums = {length: iter(_xxh32(alike)) for length, alike in by_length.items()}
    for plain, stated in blocks:
        is_sound = plain is not None and next(checksums[len(plain)]) & _LZ4_CHECKED_BITS == stated
        yield plain if plain is not None and is_sound else DAMAGE


def _xxh32(blocks: Sequence[bytes]) -> list[int]:
    """XXH32 of blocks of equal length in parallel, with the seed of lz4-java.

    Y. Collet, "xxHash fast digest algorithm", specification 0.1.1 (2018).

    >>> [hex(digest) for digest in _xxh32([b"", b""])]
    ['0x8d3b42d8', '0x8d3b42d8']
    """
    size = len(blocks[0])
    plain = np.frombuffer(b"".join(blocks), np.uint8).reshape(len(blocks), size)
    cut = size - size % 16
    digests = np.full(len(blocks), (_SEED + _P5) % 2**32, np.uint32)
    if cut:
        begins = np.array([_P1 + _P2 + _SEED, _P2 + _SEED, _SEED, _SEED - _P1]) % 2**32
        lanes = np.repeat(begins.astype(np.uint32)[None, :], len(blocks), axis=0)
        words = np.ascontiguousarray(plain[:, :cut]).view("<u4").reshape(len(blocks), -1, 4)
        for stripe in np.ascontiguousarray(words.swapaxes(0, 1)) * np.uint32(_P2):
            lanes = _turned(lanes + stripe, 13) * np.uint32(_P1)
        digests[:] = 0
        for lane, bits in enumerate((1, 7, 12, 18)):
            digests += _turned(lanes[:, lane], bits)
    digests += np.uint32(size)
    for at in range(cut, size - 3, 4):
        word = np.ascontiguousarray(plain[:, at : at + 4]).view("<u4")[:, 0]
        digests = _turned(digests + word * np.uint32(_P3), 17) * np.uint32(_P4)
    for at in range(size - size % 4, size):
        digests = _turned(digests + plain[:, at] * np.uint32(_P5), 11) * np.uint32(_P1)
    for shift, prime in ((15, _P2), (13, _P3), (16, 1)):
        digests = (digests ^ (digests >> np.uint32(shift))) * np.uint32(prime)
    return [int(digest) for digest in digests]


def _turned(words: Any, bits: int) -> Any:
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))


def snappy_blocks(packed: IO[bytes]) -> Iterator[bytes]:
    """The blocks of a file of Spark's snappy; errors as in :func:`lz4_blocks`."""
    require_packages("logs", "unpacking snappy", "pyarrow")
    from pyarrow import Codec

    codec = Codec("snappy")
    while length := packed.read(4):
        if _SNAPPY_MAGIC.startswith(_whole(length, 4)):
            _whole(packed.read(_SNAPPY_HEADER_BYTES - 4), _SNAPPY_HEADER_BYTES - 4)
            continue
        packed_bytes = int.from_bytes(length, "big")
        if packed_bytes > _LARGEST_BLOCK_BYTES:
            raise DamagedBlockError("its length makes no sense")
        block = _whole(packed.read(packed_bytes), packed_bytes)
        plain_bytes = _snappy_plain_bytes(block)
        if plain_bytes:
            yield _unpacked(codec.decompress, block, plain_bytes)


def lzf_blocks(packed: IO[bytes]) -> Iterator[bytes]:
    """The blocks of a file of Spark's lzf; errors as in :func:`lz4_blocks`."""
    while header := packed.read(5):
        kind = _whole(header, 5)[2]
        length = int.from_bytes(header[3:5], "big")
        if not header.startswith(b"ZV"):
            raise DamagedBlockError("its beginning makes no sense")
        if kind == _LZF_STORED:
            yield _whole(packed.read(length), length)
        elif kind == _LZF_PACKED:
            plain_bytes = int.from_bytes(_whole(packed.read(2), 2), "big")
            yield _unpacked(_lzf_unpacked, _whole(packed.read(length), length), plain_bytes)
        else:
            raise DamagedBlockError("its kind makes no sense")


_CODECS: dict[str, tuple[bytes, Callable[[IO[bytes]], Iterator[bytes]]]] = {
    "zstd": (ZSTD_MAGIC, _of_zstd),
    "gzip": (GZIP_MAGIC, _of_gzip),
    "lz4": (b"LZ4Block", lz4_blocks),
    "snappy": (_SNAPPY_MAGIC, snappy_blocks),
    "lzf": (b"ZV", lzf_blocks),
}
"""By the name of a codec: how its files begin, and the function that reads them."""


def _whole(block: bytes, num_bytes: int) -> bytes:
    if len(block) < num_bytes:
        raise EOFError("it ends on the way")
    return block


def _unpacked(unpack: Callable[[bytes, int], object], block: bytes, plain_bytes: int) -> bytes:
    try:
        return bytes(memoryview(unpack(block, plain_bytes)))  # type: ignore[arg-type]
    except (OSError, ValueError, IndexError) as error:
        raise DamagedBlockError(f"it cannot be unpacked ({type(error).__name__})") from None


def _snappy_plain_bytes(block: bytes) -> int:
    """The uncompressed length of a block, with which it begins: seven bits per byte."""
    length = 0
    for index, byte in enumerate(block[:5]):
        length |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            break
    if length > _LARGEST_BLOCK_BYTES:
        raise DamagedBlockError("its length makes no sense")
    return length


def _lzf_unpacked(block: bytes, plain_bytes: int) -> bytes:
    """One block of lzf: runs of new bytes, and of earlier bytes."""
    plain = bytearray()
    at = 0
    while at < len(block):
        control = block[at]
        at += 1
        if control < 32:
            plain += block[at : at + control + 1]
            at += control + 1
            continue
        length = control >> 5
        if length == 7:
            length += block[at]
            at += 1
        back = ((control & 0x1F) << 8) + block[at] + 1
        at += 1
        start = len(plain) - back
        if start < 0:
            raise ValueError("a run from before the block")
        # It may overlap itself, as for runs of one byte.
        run = plain[start : start + length + 2]
        while len(run) < length + 2:
            run += run[: length + 2 - len(run)]
        plain += run
    if len(plain) != plain_bytes:
        raise ValueError("of another length than it says")
    return bytes(plain)
