"""The log of one application: its files at any place, why not to read them, and room for them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import NamedTuple, TypeAlias

from headway.digits import size_text
from headway.errors import EventLogError, ExitCode
from headway.lazy_classes import dataclass
from headway.redaction import one_line
from headway.units import parse_size_bytes

_MOST_LISTED = 8
_CHECK_EVERY_BYTES = parse_size_bytes("64m")


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


PACKED_SUFFIX = ".packed"  # of a part of a log that is read in compressed form

LogFile: TypeAlias = Path | ZipMember | HadoopFile | HistoryServerZip


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLog:
    """The log of one application: its files in the order in which they were written.

    A HadoopFile may turn out to contain several logs. ``name`` is for messages, without secrets.
    ``compacted``: Spark has removed its earlier parts; missing parts are before existing ones.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpackLimits:
    """Maximum bytes of one log on disk and compression ratio (real logs: 300), bytes to spare."""

    max_bytes: int = parse_size_bytes("1t")
    max_ratio: float = 500.0
    ratio_from_bytes: int = parse_size_bytes("64m")
    min_free_bytes: int = parse_size_bytes("2g")


DEFAULT_LIMITS = UnpackLimits()


class Allowance:
    """Disk space that one log may still use; ``packed_bytes`` is None while it is only copied."""

    def __init__(self, limits: UnpackLimits, packed_bytes: int | None, folder: Path | None) -> None:
        self._limits = limits
        self._packed_bytes = packed_bytes
        self._folder = folder
        self._taken_bytes = 0

    @property
    def next_bytes(self) -> int:
        return min(_CHECK_EVERY_BYTES, self._limits.max_bytes - self._taken_bytes + 1)

    def take(self, num_bytes: int) -> None:
        """Count bytes that will be or have just been written; raise an error at a limit."""
        self._taken_bytes += num_bytes
        limits, taken = self._limits, self._taken_bytes
        if taken > limits.max_bytes:
            raise UnreadableLogError(
                f"more than {size_text(limits.max_bytes)} when unpacked, the maximum for one log; "
                "unpack it yourself if it is sound"
            )
        packed = self._packed_bytes
        if packed is not None and taken > limits.ratio_from_bytes:
            ratio = taken / max(packed, 1)
            if ratio > limits.max_ratio:
                raise UnreadableLogError(
                    f"{size_text(packed)} unpack to {size_text(taken)} and more, over "
                    f"{limits.max_ratio:g} times as much, as no event log does; "
                    "unpack it yourself if it is sound"
                )
        if self._folder is None:
            return
        free = shutil.disk_usage(self._folder).free
        if free < limits.min_free_bytes:
            raise UnreadableLogError(
                f"its first {size_text(taken)} leave {size_text(free)} free on the disk of "
                f"{self._folder}, less than the {size_text(limits.min_free_bytes)} to keep free; "
                "set TMPDIR to a folder with more room"
            )
