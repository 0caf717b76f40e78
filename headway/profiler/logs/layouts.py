"""Which files of a folder, a zip or a Hadoop address belong to one log, and in which order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from headway.lazy_classes import dataclass
from headway.profiler.logs.event_logs import EventLog, LogFile, UnreadableLogError

MOST_FILES = 100_000
TOO_MANY_FILES = f"more than {MOST_FILES} files; name the folder that holds event logs only"
MOST_DEPTH = 12
TOO_DEEP = f"more than {MOST_DEPTH} folders deep, which are not searched; give this folder itself"
NOTHING_THERE = "no such file or folder; expected a Spark event log"

_CODEC = r"(?:\.(?:gz|gzip|lz4|lzf|snappy|zst|zstd))?"
_COMPACT = ".compact"
_ROLLING_PART = re.compile(rf"events_(\d+)_([^.]*).*?({re.escape(_COMPACT)})?")
_DATABRICKS_PART = re.compile(rf"eventlog(?:-(\d{{4}}-\d\d-\d\d--\d\d-\d\d))?{_CODEC}")
_RECORDER_PART = re.compile(rf"(.+\.headway\.jsonl)(?:\.(\d+))?{_CODEC}")
_STATUS = "appstatus_"
_IN_PROGRESS = ".inprogress"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFile:
    """A file that may be a part of a log; ``folder`` identifies its folder."""

    folder: str
    folder_name: str
    base_name: str
    name: str
    file: LogFile


_Layout: TypeAlias = Literal[
    "rolling",  # Spark: events_N_<application>
    "databricks",  # eventlog-<time>.gz, ..., eventlog
    "recorder",  # Headway: <name>.headway.jsonl.N, ..., <name>.headway.jsonl
    "single",
]
_Family: TypeAlias = tuple[str, _Layout, str]  # folder, layout, and application
# Of a file in its log: a number and, for those with the same number, a text.
_Position: TypeAlias = tuple[int, str]


def is_passed_over(base_name: str) -> bool:
    """Whether a file that was not named explicitly is not part of a log.

    >>> [is_passed_over(name) for name in (".app-1.crc", "_SUCCESS", "truth.jsonl", "app-1")]
    [True, True, True, False]
    >>> is_passed_over("orders.headway.jsonl")
    False
    """
    return (
        base_name.startswith((".", "_"))
        or base_name.endswith(".crc")
        or (base_name.endswith(".jsonl") and not _RECORDER_PART.fullmatch(base_name))
    )


def is_status(base_name: str) -> bool:
    """Whether a file only indicates if its rolling log is still being written."""
    return base_name.startswith(_STATUS)


def has_log_name(base_name: str) -> bool:
    """Whether a name is one of parts of logs; a log that is a single file may have any name.

    >>> has_log_name("events_1_app-1"), has_log_name("app-1.inprogress"), has_log_name("notes.txt")
    (True, True, False)
    """
    patterns = (_ROLLING_PART, _DATABRICKS_PART, _RECORDER_PART)
    return (
        is_status(base_name)
        or base_name.endswith(_IN_PROGRESS)
        or any(pattern.fullmatch(base_name) for pattern in patterns)
    )


def require_event_log(base_names: Iterable[str]) -> None:
    """Reject files if all of them are only status files."""
    if all(map(is_status, base_names)):
        raise UnreadableLogError(
            "no event log there; expected files written by Spark or folders named eventlog_v2_*"
        )


def is_compacted_part(base_name: str) -> bool:
    """Whether a file replaces itself and all earlier parts of a rolling log.

    >>> is_compacted_part("events_7_app-1.zstd.compact"), is_compacted_part("events_8_app-1.zstd")
    (True, False)
    """
    match = _ROLLING_PART.fullmatch(base_name)
    return match is not None and match[3] is not None


def companions_pattern(base_name: str) -> str | None:
    r"""Hadoop pattern for files beside a file that may belong to its log; None without such.

    >>> companions_pattern("events_1_app")
    'appstatus_*'
    >>> print(companions_pattern("a[1].headway.jsonl"))
    a\[1\].headway.jsonl.*
    """
    if _ROLLING_PART.fullmatch(base_name):
        return f"{_STATUS}*"
    match = _RECORDER_PART.fullmatch(base_name)
    is_newest = match is not None and match[2] is None
    return re.sub(r"([][{}*?\\])", r"\\\1", base_name) + ".*" if is_newest else None


def is_companion(base_name: str, named: str) -> bool:
    """Whether a file is the status of a rolling log, or an older part of a recording.

    >>> is_companion("a.headway.jsonl.2", "a.headway.jsonl")
    True
    """
    if _ROLLING_PART.fullmatch(named):
        return is_status(base_name)
    match = _RECORDER_PART.fullmatch(base_name)
    return match is not None and match[2] is not None and match[1] == named


def finished_name(base_name: str) -> str:
    """Name of a file after its application has ended.

    >>> finished_name("app-1.zstd.inprogress")
    'app-1.zstd'
    """
    return base_name.removesuffix(_IN_PROGRESS)


def group_into_logs(files: Sequence[FoundFile]) -> list[EventLog]:
    """The logs that the files form, each at the position of its first file."""
    families: dict[_Family, list[tuple[_Position, FoundFile]]] = {}
    for file in files:
        if not is_status(file.base_name):
            family, position = _family_and_position(file)
            families.setdefault(family, []).append((position, file))
    num_logs = Counter(folder for folder, _, _ in families)
    growing = _growing_folders(files)
    return [
        _log_of(family, members, owns_folder=num_logs[family[0]] == 1, growing=family[0] in growing)
        for family, members in families.items()
    ]


def _family_and_position(file: FoundFile) -> tuple[_Family, _Position]:
    if match := _ROLLING_PART.fullmatch(file.base_name):
        return (file.folder, "rolling", match[2]), (int(match[1]), match[3] or "")
    if match := _DATABRICKS_PART.fullmatch(file.base_name):
        return (file.folder, "databricks", ""), (match[1] is None, match[1] or "")
    if match := _RECORDER_PART.fullmatch(file.base_name):
        return (file.folder, "recorder", match[1]), (-int(match[2] or 0), "")
    # Spark renames the file when the application ends, so if both exist, one is a leftover copy.
    is_leftover = file.base_name.endswith(_IN_PROGRESS)
    return (file.folder, "single", finished_name(file.base_name)), (is_leftover, "")


def _growing_folders(files: Iterable[FoundFile]) -> set[str]:
    status = [file for file in files if is_status(file.base_name)]
    finished = {file.folder for file in status if not file.base_name.endswith(_IN_PROGRESS)}
    return {file.folder for file in status} - finished


def _log_of(
    family: _Family, members: list[tuple[_Position, FoundFile]], *, owns_folder: bool, growing: bool
) -> EventLog:
    _, layout, application = family
    placed = sorted(members, key=lambda member: member[0])
    # A compacted part replaces all up to its own number.
    compacted = [at for at, ((_, suffix), _) in enumerate(placed) if suffix == _COMPACT]
    parts = placed[compacted[-1] :] if compacted else placed
    files = [file for _, file in parts]
    folder, in_progress = members[0][1].folder_name, files[0].base_name.endswith(_IN_PROGRESS)
    num_missing = 0
    match layout:
        case "rolling":
            name = folder if owns_folder else f"{folder}/events_*_{application}"
            in_progress = growing
            numbers = {number for (number, _), _ in parts}
            first = min(numbers) if compacted else 1
            num_missing = max(numbers) - first + 1 - len(numbers)
        case "databricks":
            name = files[0].name if len(files) == 1 else folder
        case "recorder":
            name = files[-1].name
        case "single":
            files = files[:1]
            name = files[0].name
    return EventLog(
        name=name,
        files=tuple(file.file for file in files),
        in_progress=in_progress,
        compacted=bool(compacted),
        num_missing_parts=num_missing,
    )
