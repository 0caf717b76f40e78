"""The log of one application, its files wherever they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeAlias

from headway.errors import EventLogError, ExitCode, LogNotFetchedError
from headway.profiler.logs.naming import one_line

_MOST_LISTED = 8


@dataclass(frozen=True, slots=True)
class ZipMember:
    archive: Path
    member: str
    packed_bytes: int


@dataclass(frozen=True, slots=True)
class HadoopFile:
    """A file, a folder or a pattern on a file system that only Hadoop can read."""

    uri: str = field(repr=False)  # may hold keys


@dataclass(frozen=True, slots=True)
class HistoryServerZip:
    """What a History Server sends for one attempt of an application: a zip."""

    url: str  # without user and password
    credentials: tuple[str, str] | None = field(default=None, repr=False)


PACKED_SUFFIX = ".packed"
"""Ends the name of a part of a log that is to be read as it is packed."""

LogFile: TypeAlias = Path | ZipMember | HadoopFile | HistoryServerZip


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLog:
    """The log of one application: its files in the order of writing.

    A HadoopFile may turn out to hold several logs. ``name`` is for messages: on one line, without
    secrets. ``compacted``: Spark has left out its earlier parts; missing parts have lower numbers
    than others that are there.
    """

    name: str
    files: tuple[LogFile, ...]
    in_progress: bool = False
    compacted: bool = False
    num_missing_parts: int = 0


class LogFailure(NamedTuple):
    """Why one source or log is not read: what is wrong, what was expected, what to do."""

    name: str
    why: str
    exit_code: ExitCode = ExitCode.INVALID


class UnreadableLogError(EventLogError):
    """Why one source or log cannot be read; the others can."""


class UnfetchedLogError(UnreadableLogError, LogNotFetchedError):
    """The same where the log itself may be as it should: nobody answers, the disk is full."""


def exit_code_of(error: Exception) -> ExitCode:
    """Whether a log is at fault, or what stands between it and us.

    >>> exit_code_of(FileNotFoundError()).name, exit_code_of(OSError(28, "No space left")).name
    ('INVALID', 'FAILURE')
    """
    if isinstance(error, UnreadableLogError):
        return error.exit_code
    of_input = isinstance(error, FileNotFoundError | PermissionError | ValueError)
    return ExitCode.INVALID if of_input else ExitCode.FAILURE


def nothing_read(failures: Sequence[LogFailure]) -> EventLogError:
    """The error of a command that could read none of its logs."""
    lines = [f"{failure.name}: {failure.why}" for failure in failures[:_MOST_LISTED]]
    if len(failures) > _MOST_LISTED:
        lines.append(f"and {len(failures) - _MOST_LISTED} more")
    is_input = all(failure.exit_code == ExitCode.INVALID for failure in failures)
    kind = EventLogError if is_input else LogNotFetchedError
    return kind("\n".join(lines))


def reason_of(error: Exception) -> str:
    """What the operating system said, for a message: ``Permission denied``."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def why_unreadable(error: Exception) -> str:
    """The same of a log that the operating system, or its own content, keeps from being read."""
    if isinstance(error, UnreadableLogError):
        return str(error)
    return f"{one_line(reason_of(error))}; expected a Spark event log that can be read"
