"""Event logs inside zips, as sent by a History Server; read in place, never unpacked to disk."""

from __future__ import annotations

import contextlib
import stat
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING

from headway.profiler.logs.event_logs import EventLog, UnreadableLogError, ZipMember
from headway.profiler.logs.layouts import FoundFile, group_into_logs, is_passed_over
from headway.redaction import one_line

# Few logs are in zips, and what reads these brings much of the standard library along.
if TYPE_CHECKING:
    import zipfile

_ZIP_MAGICS = (b"PK\x03\x04", b"PK\x05\x06")
_MOST_MEMBERS = 10_000


def is_zip(head: bytes) -> bool:
    """Whether a file with this beginning is a zip."""
    return head.startswith(_ZIP_MAGICS)


def logs_in_zip(archive: Path, name: str) -> list[EventLog]:
    """The event logs in a zip; if there is only one, it has the name of the zip.

    A zip that is incomplete, names files outside itself or contains no event log is rejected.
    """
    import zipfile

    try:
        with zipfile.ZipFile(archive) as opened:
            members = [member for member in opened.infolist() if not member.is_dir()]
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise UnreadableLogError(
            f"not a whole zip ({one_line(str(error))}); download it again"
        ) from None
    if len(members) > _MOST_MEMBERS:
        raise UnreadableLogError(
            f"the zip holds {len(members)} files, more than {_MOST_MEMBERS}; expected event logs"
        )
    logs = group_into_logs([file for member in members for file in _found(archive, member, name)])
    if not logs:
        raise UnreadableLogError("the zip holds no event log")
    return [replace(logs[0], name=name)] if len(logs) == 1 else logs


@contextlib.contextmanager
def open_member(file: ZipMember) -> Iterator[IO[bytes]]:
    """A file inside a zip, to be read from its beginning."""
    import zipfile

    with contextlib.ExitStack() as stack:
        try:
            archive = stack.enter_context(zipfile.ZipFile(file.archive))
            packed = stack.enter_context(archive.open(file.member))
        except (zipfile.BadZipFile, KeyError, RuntimeError) as error:
            # RuntimeError: encrypted; its subclass NotImplementedError: an unusual compression
            # method.
            raise _damaged(error) from None
        try:
            yield packed
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise _damaged(error) from None


def _found(archive: Path, member: zipfile.ZipInfo, name: str) -> Iterator[FoundFile]:
    path = PurePosixPath(member.filename)
    if path.is_absolute() or ".." in path.parts or stat.S_ISLNK(member.external_attr >> 16):
        raise UnreadableLogError(
            f"{one_line(member.filename)} in the zip leads out of it; expected a zip of event logs"
        )
    if any(is_passed_over(part) for part in path.parts):
        return
    folder = str(path.parent)
    yield FoundFile(
        folder=folder,
        folder_name=name if folder == "." else one_line(f"{name}/{folder}"),
        base_name=path.name,
        name=one_line(f"{name}/{path}"),
        file=ZipMember(archive, member.filename, member.compress_size),
    )


def _damaged(error: Exception) -> UnreadableLogError:
    return UnreadableLogError(
        f"the zip cannot be unpacked ({one_line(str(error))}); make it again, without a password"
    )
