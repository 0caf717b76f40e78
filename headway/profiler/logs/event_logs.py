"""The log of one application, with its files at any place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import NamedTuple, TypeAlias

from headway.errors import EventLogError, ExitCode
from headway.lazy_classes import dataclass
from headway.redaction import one_line

_MOST_LISTED = 8


@dataclass(frozen=True, slots=True)
class ZipMember:
    archive: Path
    member: str
    packed_bytes: int


@dataclass(frozen=True, slots=True)
class HadoopFile:
    """A file, a folder or a pattern on a file system that only Hadoop can read."""

    uri: str = field(repr=False)  # may contain keys


@dataclass(frozen=True, slots=True)
class HistoryServerZip:
    """The zip that a History Server sends for one attempt of an application."""

    url: str  # without user and password
    credentials: tuple[str, str] | None = field(default=None, repr=False)


PACKED_SUFFIX = ".packed"
"""Suffix of the name of a part of a log that is read in compressed form."""

LogFile: TypeAlias = Path | ZipMember | HadoopFile | HistoryServerZip


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLog:
    """The log of one application: its files in the order in which they were written.

    A HadoopFile may turn out to contain several logs. ``name`` is for messages: on one line,
    without secrets. ``compacted``: Spark has removed its earlier parts; missing parts have lower
    numbers than existing ones.
    """

    name: str
    files: tuple[LogFile, ...]
    in_progress: bool = False
    compacted: bool = False
    num_missing_parts: int = 0


class LogFailure(NamedTuple):
    """Why one source or log is not read: the fault, what was expected, what to do."""

    name: str
    why: str
    exit_code: ExitCode = ExitCode.INVALID


class UnreadableLogError(EventLogError):
    """Why one source or log cannot be read; the others can."""


class UnfetchedLogError(UnreadableLogError):
    """The same, if the log itself may be correct: no answer from a server, disk full."""

    exit_code = ExitCode.FAILURE


def failure_of(name: str, error: Exception) -> LogFailure:
    """Why a source or log is not read; the exit code is whether it is at fault, or the access.

    >>> failure_of("app-1", OSError(28, "No space left")).exit_code.name
    'FAILURE'
    """
    exit_code = ExitCode.FAILURE
    if isinstance(error, UnreadableLogError):
        exit_code = error.exit_code
    elif isinstance(error, FileNotFoundError | PermissionError | ValueError):
        exit_code = ExitCode.INVALID
    return LogFailure(name, why_unreadable(error), exit_code)


def nothing_read(failures: Sequence[LogFailure]) -> EventLogError:
    """Error of a command that could read none of its logs."""
    lines = [f"{failure.name}: {failure.why}" for failure in failures[:_MOST_LISTED]]
    if len(failures) > _MOST_LISTED:
        lines.append(f"and {len(failures) - _MOST_LISTED} more")
    is_input = all(failure.exit_code == ExitCode.INVALID for failure in failures)
    kind = EventLogError if is_input else UnfetchedLogError
    return kind("\n".join(lines))


def reason_of(error: Exception) -> str:
    """Reason given by the operating system, for a message: ``Permission denied``."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def why_unreadable(error: Exception) -> str:
    """Why a log cannot be read, because of the operating system or its content."""
    if isinstance(error, UnreadableLogError):
        return str(error)
    return f"{one_line(reason_of(error))}; expected a Spark event log that can be read"
