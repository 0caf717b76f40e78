"""Finding event logs: files, folders, patterns, zips, History Servers, Hadoop addresses."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from headway.formats.profile_file import EVENT_LOG
from headway.profiler.logs import layouts
from headway.profiler.logs.event_logs import (
    EventLog,
    HadoopFile,
    LogFailure,
    UnreadableLogError,
    failure_of,
)
from headway.profiler.logs.layouts import FoundFile, is_companion, is_passed_over
from headway.profiler.logs.log_codecs import is_packed
from headway.profiler.logs.zipped import is_zip, logs_in_zip
from headway.redaction import one_line, without_secrets

__all__ = ["EventLog", "FoundLogs", "LogFailure", "find_event_logs"]

# Files that are looked at before all others are read, and those besides logs that a folder of logs
# may have: without any log among them, and with some.
_FIRST_FILES, _FEW_OTHERS, _MOST_OTHERS = 1_000, 8, 100
_EVENT_WITHIN_BYTES = 4096
_LISTED_ENDINGS = 3

# A single letter would be a Windows drive.
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def is_address(source: str) -> bool:
    """Whether a source is on a History Server or on a file system that Hadoop reads.

    >>> is_address("s3a://logs/app-1"), is_address("C:/logs/app-1")
    (True, False)
    """
    return _ADDRESS.match(source) is not None


class FoundLogs(NamedTuple):
    """The logs of sources, and why some sources have none."""

    logs: tuple[EventLog, ...]
    failures: tuple[LogFailure, ...]


def find_event_logs(sources: Sequence[str | Path]) -> FoundLogs:
    """The event logs of the sources, each once; a source without one is a failure.

    A source is a log file, one part of a rolling log, a zip of logs, a folder that contains these
    and little else, a pattern for these (``*``, ``?``, ``[...]``, ``**``); or, as a str, the
    address of an application on a History Server, or one for Hadoop (``hdfs://``, ``s3a://``,
    ``file:/``...). Local logs come first. Nothing is unpacked; the logs of a Hadoop address are
    known only once Spark runs.
    """
    files: dict[str, FoundFile] = {}
    zips: dict[str, list[EventLog]] = {}
    remote: list[EventLog] = []
    failures: list[LogFailure] = []
    for source in sources:
        try:
            if isinstance(source, str) and (match := _ADDRESS.match(source)):
                remote += _logs_at(source, scheme=match[1].lower())
            else:
                failures += _add_files(source, files, zips)
        except (UnreadableLogError, OSError, ValueError) as error:
            failures.append(failure_of(_name_of(source), error))
    # In the order given, sorted within folders; zips after other files.
    logs = layouts.group_into_logs(list(files.values()))
    logs += [log for of_zip in zips.values() for log in of_zip]
    logs += [log for at, log in enumerate(remote) if log not in remote[:at]]
    return FoundLogs(tuple(logs), tuple(dict.fromkeys(failures)))


def _name_of(source: str | Path) -> str:
    if isinstance(source, str) and is_address(source):
        return without_secrets(source)
    return one_line(str(source)) or "''"


def _logs_at(address: str, *, scheme: str) -> list[EventLog]:
    if scheme in ("http", "https"):
        # Loads the HTTP client.
        from headway.profiler.logs.history_server import history_server_logs

        return history_server_logs(address)
    address.encode()  # otherwise it cannot be passed to Spark
    return [EventLog(name=without_secrets(address), files=(HadoopFile(address),))]


def _add_files(
    source: str | Path, found_files: dict[str, FoundFile], zips: dict[str, list[EventLog]]
) -> list[LogFailure]:
    """Add the files of a source, each once; returns faults of parts of it."""
    failures: list[LogFailure] = []
    all_files = _files_of(source, failures)
    files = list(islice(all_files, _FIRST_FILES))
    _require_logs(files)
    files += islice(all_files, layouts.MOST_FILES + 1 - len(files))
    if len(files) > layouts.MOST_FILES:
        raise UnreadableLogError(layouts.TOO_MANY_FILES)
    for file in files:
        identity, name = os.path.realpath(file), one_line(str(file))
        if identity in found_files or identity in zips:
            continue
        try:
            if is_zip(_first_bytes(file)):
                zips[identity] = logs_in_zip(file, name)
                continue
            found_files[identity] = FoundFile(
                # Links that are in one folder belong together.
                folder=os.path.realpath(file.parent),
                folder_name=one_line(str(file.parent)),
                base_name=file.name,
                name=name,
                file=file,
            )
        except (UnreadableLogError, OSError) as error:
            failures.append(failure_of(name, error))
    if not failures:
        layouts.require_event_log(file.name for file in files)
    return failures


def _files_of(source: str | Path, failures: list[LogFailure]) -> Iterator[Path]:
    """The files of a source, including those in folders; failures of folders are added."""
    if not str(source):
        raise UnreadableLogError("the name is empty; expected a file, a folder or a pattern")
    path = _finished(Path(source))
    try:
        path.stat()
        matches = [path]
    except FileNotFoundError:
        matches = _matches(source)
    yield from _files_below(matches, failures)
    yield from (companion for match in matches for companion in _companions(match))


def _finished(path: Path) -> Path:
    """A log that was renamed when its application ended, under its new name."""
    renamed = path.with_name(layouts.finished_name(path.name)) if path.name else path
    return renamed if renamed.is_file() else path


def _matches(pattern: str | Path) -> list[Path]:
    matches: list[str] = []
    if glob.has_magic(str(pattern)):
        # Path.glob requires relative patterns.
        matches = sorted(glob.glob(str(pattern), recursive=True))  # noqa: PTH207
    if not matches:
        raise UnreadableLogError(layouts.NOTHING_THERE)
    return [path for path in map(Path, matches) if not is_passed_over(path.name)]


def _files_below(roots: Sequence[Path], failures: list[LogFailure]) -> Iterator[Path]:
    """Depth first and sorted; links may be circular."""
    visited_folders: set[str] = set()
    waiting = [(root, 0) for root in reversed(roots)]
    while waiting:
        path, depth = waiting.pop()
        try:
            if not path.is_dir():
                yield path
            elif (identity := os.path.realpath(path)) not in visited_folders:
                if depth > layouts.MOST_DEPTH:
                    raise UnreadableLogError(layouts.TOO_DEEP)
                visited_folders.add(identity)
                children = sorted(path.iterdir(), reverse=True)
                waiting += [(file, depth + 1) for file in children if not is_passed_over(file.name)]
        except (UnreadableLogError, OSError) as error:
            failures.append(failure_of(one_line(str(path)), error))


def _companions(file: Path) -> Iterator[Path]:
    """Files next to a named one that belong to the same log."""
    if layouts.companions_pattern(file.name) is None:
        return
    # A folder may permit reading its files but not listing them.
    with contextlib.suppress(OSError):
        companions = [path for path in file.parent.iterdir() if is_companion(path.name, file.name)]
        yield from sorted(companions)


def _require_logs(files: Sequence[Path]) -> None:
    """Refuse a folder of other things at once: reading all of them would take minutes."""
    other_files = [file for file in files if not _is_like_log(file)]
    num_logs = len(files) - len(other_files)
    if len(other_files) <= (max(num_logs, _MOST_OTHERS) if num_logs else _FEW_OTHERS):
        return
    endings = Counter(one_line(file.suffix, longest=20) for file in other_files)
    listed = ", ".join(
        f"{number:,} {ending or 'without an ending'}"
        for ending, number in endings.most_common(_LISTED_ENDINGS)
    )
    first = "first " if len(files) == _FIRST_FILES else ""
    raise UnreadableLogError(
        f"{num_logs or 'none'} of the {first}{len(files):,} files there "
        f"{'look' if num_logs > 1 else 'looks'} like an event log: there are {listed}; expected "
        "a log that Spark wrote, a folder named eventlog_v2_*, or a folder of these, such as that "
        "of spark.eventLog.dir: give one of them"
    )


def _is_like_log(file: Path) -> bool:
    """Whether a file has the name of a part of a log, or begins as logs do, plain or packed."""
    if layouts.has_log_name(file.name):
        return True
    try:
        head = _first_bytes(file, _EVENT_WITHIN_BYTES)
    except (UnreadableLogError, OSError):
        return False
    is_event = EVENT_LOG.match(head.decode("utf-8", "replace")) is not None
    return is_event or is_packed(head) or is_zip(head)


def _first_bytes(file: Path, num_bytes: int = 4) -> bytes:
    kind = file.stat().st_mode
    if not stat.S_ISREG(kind):
        kind_name = next((name for is_it, name in _KINDS if is_it(kind)), "no file")
        raise UnreadableLogError(f"it is {kind_name}; expected a file with a Spark event log")
    with file.open("rb") as opened:
        return opened.read(num_bytes)
