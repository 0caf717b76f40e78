"""The part of unpacking that needs Spark: logs on Hadoop's file systems."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway.profiler.logs import layouts
from headway.profiler.logs.event_logs import (
    EventLog,
    HadoopFile,
    LogFile,
    UnreadableLogError,
    failure_of,
)
from headway.profiler.logs.layouts import FoundFile, is_passed_over
from headway.profiler.logs.limits import Allowance, UnpackLimits
from headway.profiler.logs.unpacking import Unpacker
from headway.redaction import one_line, without_secrets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def unpack_with_spark(spark: SparkSession, unpacker: Unpacker) -> None:
    """Unpack the pending logs, with a session whose JVM is accessible; then nothing is pending.

    If a Hadoop address turns out to contain several logs, the first keeps its number, and the
    others get further numbers.
    """
    if not unpacker.pending:
        return
    try:
        hadoop = Hadoop(spark)
    except (AttributeError, NotImplementedError):
        unpacker.refuse_pending(
            "a session of Spark Connect cannot read it; give a session with a JVM of its own"
        )
        return
    for number, log in _listed(hadoop, unpacker).items():
        unpacker.unpack(number, log, partial(_fetched, hadoop, log, unpacker.limits))


def _listed(hadoop: Hadoop, unpacker: Unpacker) -> dict[int, EventLog]:
    """The logs of the pending addresses, by number; addresses without logs are failures."""
    number_of: dict[LogFile, int] = {}
    found_files: list[FoundFile] = []
    pending, unpacker.pending = unpacker.pending, {}
    for number, log in pending.items():
        address = log.files[0]
        assert isinstance(address, HadoopFile), "nothing else is pending"
        try:
            files = hadoop.files_of(address)
        except UnreadableLogError as error:
            unpacker.failures.append(failure_of(log.name, error))
            continue
        found_files += [file for file in files if file.file not in number_of]
        number_of |= {file.file: number for file in files if file.file not in number_of}
    logs_by_number: dict[int, EventLog] = {}
    for log in layouts.group_into_logs(found_files):
        number = min(number_of[file] for file in log.files)
        logs_by_number[next(unpacker.numbers) if number in logs_by_number else number] = log
    return logs_by_number


def _fetched(hadoop: Hadoop, log: EventLog, limits: UnpackLimits, folder: Path) -> EventLog:
    allowance = Allowance(limits, None, folder)
    targets: list[Path] = []
    for index, file in enumerate(log.files):
        assert isinstance(file, HadoopFile)
        # Its own name, in a form that any JVM can write.
        name = re.sub(r"[^\w.-]", "_", file.uri.rpartition("/")[2], flags=re.ASCII)[-100:]
        target = folder / str(index) / name
        target.parent.mkdir()
        hadoop.fetch(file, target, allowance)
        targets.append(target)
    return replace(log, files=tuple(targets))


class Hadoop:
    """Hadoop's file systems with a session's configuration; not for Spark Connect."""

    def __init__(self, spark: SparkSession) -> None:
        context = spark.sparkContext
        self._jvm: Any = context._jvm
        self._hadoop_conf: Any = context._jsc.hadoopConfiguration()

    def files_of(self, source: HadoopFile) -> list[FoundFile]:
        """The files of an address: a file, a folder or a pattern."""
        with _java_complaints(source.uri):
            files = list(self._files_of(self._path(source.uri)))
        layouts.require_event_log(file.base_name for file in files)
        return files

    def fetch(self, source: HadoopFile, target: Path, allowance: Allowance) -> None:
        with _java_complaints(source.uri):
            path = self._path(source.uri)
            with (
                closing(path.getFileSystem(self._hadoop_conf).open(path)) as reader,
                closing(self._jvm.java.io.FileOutputStream(str(target))) as writer,
            ):
                copied_bytes = wanted_bytes = 0
                while copied_bytes == wanted_bytes:
                    wanted_bytes = allowance.next_bytes
                    copied_bytes = self._jvm.org.apache.commons.io.IOUtils.copyLarge(
                        reader, writer, 0, wanted_bytes
                    )
                    allowance.take(copied_bytes)

    def _files_of(self, path: Any) -> Iterator[FoundFile]:
        files = path.getFileSystem(self._hadoop_conf)
        folder = path.toString().removesuffix(path.getName())
        finished = self._path(folder + layouts.finished_name(path.getName()))
        if path.getName() != finished.getName() and files.exists(finished):
            path = finished
        if files.exists(path):
            statuses = [files.getFileStatus(path)]
        else:
            matches = files.globStatus(path) or ()
            statuses = [at for at in matches if not is_passed_over(at.getPath().getName())]
            if not statuses:
                raise UnreadableLogError(layouts.NOTHING_THERE)
        named = []
        for status in statuses:
            if status.isDirectory():
                yield from _sorted(self._below(files, status))
            else:
                named.append(status)
        yield from map(_found_file, named)
        yield from _sorted(self._companions(files, named))

    def _below(self, files: Any, folder: Any) -> Iterator[FoundFile]:
        root = folder.getPath().toString()
        remaining = files.listFiles(folder.getPath(), True)
        num_files = 0
        while remaining.hasNext():
            status = remaining.next()
            relative_path = status.getPath().toString().removeprefix(root).strip("/")
            if not any(is_passed_over(name) for name in relative_path.split("/")):
                yield _found_file(status)
            num_files += 1
            if num_files > layouts.MOST_FILES:
                raise UnreadableLogError(layouts.TOO_MANY_FILES)

    def _companions(self, files: Any, named: Sequence[Any]) -> Iterator[FoundFile]:
        """Files next to the named ones that belong to the same logs."""
        companion_patterns = dict.fromkeys(
            (status.getPath().getParent().toString(), pattern)
            for status in named
            if (pattern := layouts.companions_pattern(status.getPath().getName())) is not None
        )
        for folder, pattern in companion_patterns:
            matching = self._jvm.org.apache.hadoop.fs.GlobFilter(pattern)
            yield from map(_found_file, files.listStatus(self._path(folder), matching))

    def _path(self, uri: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(uri)


def _found_file(status: Any) -> FoundFile:
    path = status.getPath()
    folder, uri = path.getParent().toString(), path.toString()
    return FoundFile(
        folder=folder,
        folder_name=without_secrets(folder),
        base_name=path.getName(),
        name=without_secrets(uri),
        file=HadoopFile(uri),
    )


def _sorted(files: Iterator[FoundFile]) -> list[FoundFile]:
    return sorted(files, key=lambda file: (file.folder, file.base_name))


@contextmanager
def _java_complaints(uri: str) -> Iterator[None]:
    """Reason given by Java why the address cannot be read."""
    from py4j.protocol import Py4JJavaError

    try:
        yield
    except Py4JJavaError as error:
        message = _message(error).replace(uri, without_secrets(uri))
        raise UnreadableLogError(
            f"Hadoop cannot read it ({one_line(_without_users(message))}); expected an address "
            "that the Spark session is set up for: name its jars and settings in its configuration "
            "(spark.jars.packages, spark.hadoop.*)"
        ) from None


def _message(error: Any) -> str:
    """The first line of a Java exception: its message, else its class."""
    exception = error.java_exception
    lines = (exception.getMessage() or "").strip().splitlines()
    return one_line(lines[0] if lines else exception.getClass().getSimpleName())


def _without_users(message: str) -> str:
    """The text without user and password of any address in it.

    >>> _without_users("cannot reach s3a://KEY:secret@bucket/x, really")
    'cannot reach s3a://bucket/x, really'
    """
    return re.sub(r"://[^\s@]*:[^\s@]*@", "://", message)
