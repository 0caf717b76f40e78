"""Spark's own codecs of event logs besides zstd: lz4, snappy and lzf, block by block.

Each is a row of blocks with the length before them, as Spark's Java libraries write them
(LZ4BlockOutputStream of lz4-java, SnappyOutputStream of snappy-java, LZFOutputStream of Ning).
Checksums are not looked at: a damaged block makes damaged lines, which are counted.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import IO

from headway.errors import require_packages
from headway.profiler.logs.event_logs import UnreadableLogError
from headway.units import parse_size_bytes

# Spark writes blocks of 32 KiB; the libraries take 32 MiB at most.
_LARGEST_BLOCK_BYTES = parse_size_bytes("64m")
_LZ4_HEADER = struct.Struct("<8sBiiI")
_LZ4_STORED, _LZ4_PACKED = 0x10, 0x20
_SNAPPY_MAGIC = b"\x82SNAPPY\x00"
_SNAPPY_HEADER_BYTES = 16
_LZF_STORED, _LZF_PACKED = 0, 1


class DamagedBlockError(UnreadableLogError):
    """A block that cannot be unpacked, or is not all there."""


def lz4_blocks(packed: IO[bytes]) -> Iterator[bytes]:
    """The blocks of a file of Spark's lz4, unpacked.

    Raises
    ------
    DamagedBlockError
        At the first block that cannot be unpacked.
    MissingPackagesError
        If pyarrow, which unpacks blocks, is not installed.
    """
    require_packages("logs", "unpacking lz4", "pyarrow")
    from pyarrow import Codec

    codec = Codec("lz4_raw")
    while header := packed.read(_LZ4_HEADER.size):
        magic, token, packed_bytes, plain_bytes, _ = _LZ4_HEADER.unpack(
            _whole(header, _LZ4_HEADER.size)
        )
        if magic != b"LZ4Block" or not 0 <= plain_bytes <= _LARGEST_BLOCK_BYTES:
            raise DamagedBlockError("its length makes no sense")
        block = _whole(packed.read(max(packed_bytes, 0)), packed_bytes)
        kind = token & 0xF0
        if plain_bytes == 0:
            continue  # ends what was written at once; more may follow
        if kind == _LZ4_STORED:
            yield block
        elif kind == _LZ4_PACKED:
            yield _unpacked(codec.decompress, block, plain_bytes)
        else:
            raise DamagedBlockError("its kind makes no sense")


def snappy_blocks(packed: IO[bytes]) -> Iterator[bytes]:
    """The blocks of a file of Spark's snappy; errors as of :func:`lz4_blocks`."""
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
    """The blocks of a file of Spark's lzf; errors as of :func:`lz4_blocks`."""
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


SPARK_CODECS: Mapping[str, tuple[bytes, Callable[[IO[bytes]], Iterator[bytes]]]] = MappingProxyType(
    {
        "lz4": (b"LZ4Block", lz4_blocks),
        "snappy": (_SNAPPY_MAGIC, snappy_blocks),
        "lzf": (b"ZV", lzf_blocks),
    }
)
"""By Spark's name of a codec how its files begin, and what reads them."""


def _whole(block: bytes, num_bytes: int) -> bytes:
    if len(block) < num_bytes or num_bytes < 0:
        raise DamagedBlockError("it ends on the way")
    return block


def _unpacked(unpack: Callable[[bytes, int], object], block: bytes, plain_bytes: int) -> bytes:
    try:
        return bytes(memoryview(unpack(block, plain_bytes)))  # type: ignore[arg-type]
    except (OSError, ValueError, IndexError) as error:
        raise DamagedBlockError(f"it cannot be unpacked ({type(error).__name__})") from None


def _snappy_plain_bytes(block: bytes) -> int:
    """The length of a block when unpacked, which it begins with: seven bits to a byte."""
    length = 0
    for place, byte in enumerate(block[:5]):
        length |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            break
    if length > _LARGEST_BLOCK_BYTES:
        raise DamagedBlockError("its length makes no sense")
    return length


def _lzf_unpacked(block: bytes, plain_bytes: int) -> bytes:
    """One block of lzf: runs of new bytes, and of bytes that stood before."""
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
        # It may reach into itself, as runs of one byte do.
        run = plain[start : start + length + 2]
        while len(run) < length + 2:
            run += run[: length + 2 - len(run)]
        plain += run
    if len(plain) != plain_bytes:
        raise ValueError("of another length than it says")
    return bytes(plain)
