"""Logs -> files of JSON lines with random access, one sub-folder ``app=N`` per log."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import IO

from headway.profiler.logs.event_logs import (
    PACKED_SUFFIX,
    EventLog,
    HadoopFile,
    HistoryServerZip,
    LogFailure,
    LogFile,
    UnreadableLogError,
    ZipMember,
    failure_of,
)
from headway.profiler.logs.limits import DEFAULT_LIMITS, Allowance, UnpackLimits
from headway.profiler.logs.log_codecs import HEAD_BYTES, NothingWholeError, is_json, plain_chunks
from headway.profiler.logs.zipped import is_zip, logs_in_zip, open_member
from headway.redaction import one_line

# Spark ignores folders with this prefix.
_FETCHED = "_fetched"


def unpack(
    logs: Sequence[EventLog],
    work_folder: Path,
    *,
    limits: UnpackLimits = DEFAULT_LIMITS,
    on_progress: Callable[[int, int], None] | None = None,
    stay_packed: bool = False,
) -> Unpacker:
    """Unpack every log that does not need Spark, under its index in ``logs``.

    If one turns out to contain several logs, the others get further numbers. Plain local files are
    only linked, and with ``stay_packed`` so are compressed ones, under names with that suffix;
    files that are not event logs are still rejected here. ``on_progress`` is called with the
    compressed bytes done and in total, which grow with downloads.
    """
    progress = Progress(logs, on_progress)
    unpacker = Unpacker(
        work_folder, limits, progress, numbers=count(len(logs)), stay_packed=stay_packed
    )
    for number, log in enumerate(logs):
        progress.begin(log)
        unpacker.unpack(number, log)
    progress.end()
    return unpacker


class Progress:
    """Compressed bytes done, of those known so far."""

    def __init__(
        self, logs: Sequence[EventLog], on_progress: Callable[[int, int], None] | None
    ) -> None:
        self._on_progress = on_progress
        self._total_bytes = sum(_packed_bytes(log.files) for log in logs)
        self._done_bytes = self._end_of_log_bytes = self._downloaded_bytes = 0

    def begin(self, log: EventLog) -> None:
        """The previous log is done, whether it was read or not; this one is next."""
        self._done_bytes = self._end_of_log_bytes
        self._end_of_log_bytes += _packed_bytes(log.files)
        self._tell()

    def advance(self, num_bytes: int) -> None:
        """A further part of the log is done."""
        # A log that is still being written grows in the meantime.
        self._done_bytes = min(self._done_bytes + num_bytes, self._end_of_log_bytes)
        self._tell()

    def downloaded(self, num_bytes: int) -> None:
        """A further part of an unknown total was downloaded."""
        self._downloaded_bytes += num_bytes
        self._tell()

    def end(self) -> None:
        """Everything is done; Spark unpacks the rest without reports."""
        self._done_bytes = self._total_bytes
        self._tell()
        self._on_progress = None

    def _tell(self) -> None:
        if self._on_progress is not None:
            done_bytes = min(self._done_bytes, self._total_bytes)
            more_bytes = self._downloaded_bytes
            self._on_progress(done_bytes + more_bytes, self._total_bytes + more_bytes)


class Unpacker:
    """Unpacks logs one by one: log N of ``logs`` into ``work_folder/app=N/part-*``.

    ``pending`` are those that only a running Spark can fetch; ``failures`` left nothing on disk.
    ``numbers`` are for logs that are found inside others.
    """

    def __init__(
        self,
        work_folder: Path,
        limits: UnpackLimits,
        progress: Progress,
        *,
        numbers: Iterator[int],
        stay_packed: bool = False,
    ) -> None:
        self._work_folder = work_folder.resolve()
        self.limits = limits
        self.numbers = numbers
        self._progress = progress
        self._stay_packed = stay_packed
        self.logs: dict[int, EventLog] = {}
        self.pending: dict[int, EventLog] = {}
        self.failures: list[LogFailure] = []
        work_folder.mkdir(parents=True, exist_ok=True)

    def refuse_pending(self, why: str) -> None:
        """Make failures of the logs that only a running Spark can fetch."""
        self.failures += [LogFailure(log.name, why) for log in self.pending.values()]
        self.pending = {}

    def _fetched_folder(self, number: int) -> Path:
        """The folder, created if missing, for files that are fetched to unpack a log."""
        folder = self._work_folder / _FETCHED / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def unpack(
        self, number: int, log: EventLog, fetch: Callable[[Path], EventLog] | None = None
    ) -> None:
        """Unpack a log, or record why not; ``fetch`` copies it into a folder first."""
        try:
            local = fetch(self._fetched_folder(number)) if fetch else log
            for at, part in enumerate(self._expand(number, local)):
                self._unpack_one(number if at == 0 else next(self.numbers), part, of=log)
        except (UnreadableLogError, OSError) as error:
            self._fail(number, log, error)
        finally:
            shutil.rmtree(self._work_folder / _FETCHED, ignore_errors=True)

    def _expand(self, number: int, log: EventLog) -> list[EventLog]:
        """The logs that one contains, which is known once its files have been fetched."""
        file = log.files[0]
        if isinstance(file, HistoryServerZip):
            from headway.profiler.logs import history_server

            archive = self._fetched_folder(number) / "logs.zip"
            allowance = Allowance(self.limits, None, self._work_folder)
            history_server.download(file, archive, allowance, self._progress.downloaded)
        elif isinstance(file, Path) and len(log.files) == 1 and is_zip(_head(file)):
            archive = file
        else:
            return [log]
        return [
            replace(inside, in_progress=inside.in_progress or log.in_progress)
            for inside in logs_in_zip(archive, log.name)
        ]

    def _unpack_one(self, number: int, log: EventLog, *, of: EventLog) -> None:
        try:
            if isinstance(log.files[0], HadoopFile):
                self.pending[number] = log
                return
            self._write_parts(number, log)
        except (UnreadableLogError, OSError) as error:
            self._fail(number, log, error)
        except BaseException:
            shutil.rmtree(self._app_folder(number), ignore_errors=True)
            raise
        else:
            # Fetched files will be removed.
            self.logs[number] = replace(log, files=of.files)

    def _fail(self, number: int, log: EventLog, error: UnreadableLogError | OSError) -> None:
        shutil.rmtree(self._app_folder(number), ignore_errors=True)
        self.failures.append(failure_of(log.name, error))

    def _write_parts(self, number: int, log: EventLog) -> None:
        folder = self._app_folder(number)
        folder.mkdir()
        allowance = Allowance(self.limits, _packed_bytes(log.files), folder)
        for part, file in enumerate(log.files):
            plain = folder / f"part-{part:05d}.json"
            try:
                self._write_part(file, plain, allowance, growing=log.in_progress)
            except NothingWholeError as error:
                # Spark may have just started the last part of a log that is still growing.
                if part == 0 or file != log.files[-1]:
                    raise _in_part(file, log, error) from None
                plain.unlink(missing_ok=True)
            except UnreadableLogError as error:
                raise _in_part(file, log, error) from None

    def _write_part(
        self, file: LogFile, plain: Path, allowance: Allowance, *, growing: bool
    ) -> None:
        head = _head(file)
        may_be_linked = isinstance(file, Path) and (
            is_json(head) or (self._stay_packed and not file.is_relative_to(self._work_folder))
        )
        if may_be_linked and isinstance(file, Path):
            name = plain
            if not is_json(head):
                name = plain.with_suffix(PACKED_SUFFIX)
                # Some of it can be unpacked.
                with file.open("rb") as packed:
                    next(plain_chunks(packed, head), None)
            if self._linked(file, name, growing):
                self._progress.advance(_packed_bytes([file]))
                return
        self._write_plain(file, head, plain, allowance)

    def _linked(self, file: Path, target: Path, growing: bool) -> bool:
        """Whether the part could be linked to the file.

        Only a hard link survives when Spark renames a log at the end of the application, and when
        fetched files are removed. It changes the time of the last change of the user's file, and
        fails across disks and for files of other users.
        """
        stays = not growing and not file.is_relative_to(self._work_folder)
        for link in (target.symlink_to, target.hardlink_to) if stays else (target.hardlink_to,):
            with contextlib.suppress(OSError):
                link(file.resolve())
                return True
        return False

    def _write_plain(self, file: LogFile, head: bytes, plain: Path, allowance: Allowance) -> None:
        with _opened(file) as packed, plain.open("wb") as written:
            before_bytes = 0
            for chunk in plain_chunks(packed, head):
                allowance.take(len(chunk))
                written.write(chunk)
                # Inside a zip a position counts unpacked bytes.
                if isinstance(file, Path):
                    self._progress.advance(packed.tell() - before_bytes)
                    before_bytes = packed.tell()
            self._progress.advance(_packed_bytes([file]) - before_bytes)

    def _app_folder(self, number: int) -> Path:
        return self._work_folder / f"app={number}"


def _opened(file: LogFile) -> AbstractContextManager[IO[bytes]]:
    if isinstance(file, ZipMember):
        return open_member(file)
    assert isinstance(file, Path)
    return file.open("rb")


def _head(file: LogFile) -> bytes:
    with _opened(file) as packed:
        return packed.read(HEAD_BYTES)


def _packed_bytes(files: Sequence[LogFile]) -> int:
    """Compressed bytes of the local files."""
    sizes = 0
    for file in files:
        if isinstance(file, ZipMember):
            sizes += file.packed_bytes
        elif isinstance(file, Path):
            with contextlib.suppress(OSError):  # reported when it is read
                sizes += file.stat().st_size
    return sizes


def _in_part(file: LogFile, log: EventLog, error: UnreadableLogError) -> UnreadableLogError:
    """The error, with the part of the log that it refers to."""
    if len(log.files) == 1:
        return error
    name = file.member if isinstance(file, ZipMember) else getattr(file, "name", "")
    return UnreadableLogError(f"{one_line(name)}: {error}")
