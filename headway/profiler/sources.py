"""Where event logs are: files and rolling folders, plain or compressed, finished or still growing.

Every log is unpacked once into a work folder, one sub-folder ``app=N`` per application, so that
Spark reads plain JSON lines whatever the codec was. The codec is told from the content, not from
the name.
"""

from __future__ import annotations

import gzip
import re
import shutil
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from headway.errors import EventLogError

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_GZIP_MAGIC = b"\x1f\x8b"
_LZ4_BLOCK_MAGIC = b"LZ4Block"
_SNAPPY_MAGIC = b"\x82SNAPPY"
_LZF_MAGIC = b"ZV"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_ROLLING_PART = re.compile(r"events_(\d+)_.*?(\.compact)?$")
_COPY_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLog:
    """The log of one application: its name for messages, and its files in the order of writing."""

    name: str
    files: tuple[Path, ...]


class _NothingWholeError(EventLogError):
    """A file that ends before it says anything."""


def find_event_logs(sources: Sequence[str | Path]) -> tuple[EventLog, ...]:
    """The event logs that the given paths stand for.

    Parameters
    ----------
    sources : sequence of path
        Each a log file, a rolling folder (``eventlog_v2_*``), or a folder that holds such.

    Raises
    ------
    EventLogError
        If a path does not exist, or a folder holds no event log.
    """
    logs: list[EventLog] = []
    for source in sources:
        path = Path(source)
        if not path.exists():
            raise EventLogError(f"{path}: no such file or folder; expected a Spark event log")
        found = list(_logs_below(path))
        if not found:
            raise EventLogError(
                f"{path}: the folder holds no event log; expected files written by Spark "
                "or folders named eventlog_v2_*"
            )
        logs.extend(log for log in found if log not in logs)
    return tuple(logs)


def unpack(logs: Sequence[EventLog], work_folder: Path) -> None:
    """Write every log as plain JSON lines to ``work_folder/app=N/``, N its place in ``logs``.

    Raises
    ------
    EventLogError
        If a file is empty, is no event log, or uses a codec that cannot be read.
    """
    for number, log in enumerate(logs):
        folder = work_folder / f"app={number}"
        folder.mkdir(parents=True)
        for part, file in enumerate(log.files):
            with file.open("rb") as packed, (folder / f"part-{part:05d}.json").open("wb") as plain:
                try:
                    _unpack_file(packed, plain, file)
                except _NothingWholeError:
                    # Spark may just have begun the last part of a log that is still growing.
                    if part == 0 or file != log.files[-1]:
                        raise


def _logs_below(path: Path) -> Iterator[EventLog]:
    if path.is_file():
        yield EventLog(name=str(path), files=(path,))
        return
    if parts := _rolling_parts(path):
        yield EventLog(name=str(path), files=parts)
        return
    for child in sorted(path.iterdir()):
        if child.is_dir():
            if parts := _rolling_parts(child):
                yield EventLog(name=str(child), files=parts)
        elif not child.name.startswith((".", "appstatus_", "_")) and child.suffix != ".jsonl":
            yield EventLog(name=str(child), files=(child,))


def _rolling_parts(folder: Path) -> tuple[Path, ...]:
    """The files of a rolling log by number; those that were compacted into one are in that one."""
    parts = sorted(
        (int(match[1]), match[2] is not None, file)
        for file in folder.iterdir()
        if file.is_file() and (match := _ROLLING_PART.match(file.name))
    )
    compacted = [place for place, (_, is_compact, _) in enumerate(parts) if is_compact]
    return tuple(file for _, _, file in parts[compacted[-1] if compacted else 0 :])


def _unpack_file(packed: IO[bytes], plain: IO[bytes], file: Path) -> None:
    head = packed.read(16)
    if not head:
        raise _NothingWholeError(f"{file}: the file is empty; expected a Spark event log")
    packed.seek(0)
    if head.startswith(_BYTE_ORDER_MARK):
        head = head.removeprefix(_BYTE_ORDER_MARK)
        packed.seek(len(_BYTE_ORDER_MARK))
    if head.startswith(_ZSTD_MAGIC):
        _unpack_zstd(packed, plain, file)
    elif head.startswith(_GZIP_MAGIC):
        _unpack_gzip(packed, plain, file)
    elif head.lstrip()[:1] == b"{":
        shutil.copyfileobj(packed, plain, _COPY_BYTES)
    elif head.startswith((_LZ4_BLOCK_MAGIC, _SNAPPY_MAGIC, _LZF_MAGIC)):
        raise EventLogError(
            f"{file}: written with the lz4, snappy or lzf codec, which this version cannot read; "
            "set spark.eventLog.compression.codec to zstd, or spark.eventLog.compress to false"
        )
    else:
        raise EventLogError(
            f"{file}: not a Spark event log; expected JSON lines that start with '{{', "
            "plain or compressed with zstd or gzip"
        )


def _unpack_gzip(packed: IO[bytes], plain: IO[bytes], file: Path) -> None:
    try:
        with gzip.open(packed, "rb") as reader:
            shutil.copyfileobj(cast(IO[bytes], reader), plain, _COPY_BYTES)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        # A log that was cut off ends inside a block: what came before it stands.
        if plain.tell() == 0:
            raise _NothingWholeError(f"{file}: not one whole gzip block ({error})") from None


def _unpack_zstd(packed: IO[bytes], plain: IO[bytes], file: Path) -> None:
    import zstandard

    try:
        with zstandard.ZstdDecompressor().stream_reader(
            packed, read_across_frames=True, closefd=False
        ) as reader:
            while chunk := reader.read(_COPY_BYTES):
                plain.write(chunk)
    except zstandard.ZstdError as error:
        if plain.tell() == 0:
            raise EventLogError(f"{file}: damaged zstd data ({error})") from None
    if plain.tell() == 0:
        raise _NothingWholeError(f"{file}: not one whole zstd block")
