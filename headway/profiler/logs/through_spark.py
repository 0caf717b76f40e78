"""The rest of unpacking, for which Spark must run: logs on Hadoop's file systems."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from headway.profiler.logs.event_logs import (
    EventLog,
    HadoopFile,
    LogFailure,
    LogFile,
    UnreadableLogError,
)
from headway.profiler.logs.hadoop_files import Hadoop
from headway.profiler.logs.layouts import FoundFile, group_into_logs
from headway.profiler.logs.limits import DEFAULT_LIMITS, Allowance, UnpackLimits
from headway.profiler.logs.unpacking import Progress, Unpacked, Unpacker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def unpack_with_spark(
    spark: SparkSession,
    unpacked: Unpacked,
    work_folder: Path,
    *,
    limits: UnpackLimits = DEFAULT_LIMITS,
) -> Unpacked:
    """Lay out the logs that were pending, with a session whose JVM is in reach.

    All logs and failures, the former ones too; nothing is pending. A Hadoop address that turns out
    to hold several logs keeps its number for the first, the others get numbers beyond.
    """
    if not unpacked.pending:
        return unpacked
    try:
        hadoop = Hadoop(spark)
    except (AttributeError, NotImplementedError):
        why = "a session of Spark Connect cannot read it; give a session with a JVM of its own"
        failures = [LogFailure(log.name, why) for log in unpacked.pending.values()]
        return Unpacked(unpacked.logs, {}, (*unpacked.failures, *failures))
    numbers = count(1 + max([*unpacked.logs, *unpacked.pending]))
    pending, unlisted = _pending_logs(hadoop, unpacked.pending, numbers)
    unpacker = Unpacker(work_folder, limits, Progress(), numbers=numbers)
    for number, log in pending.items():
        unpacker.unpack(number, log, partial(_fetched, hadoop, log, limits))
    done = unpacker.unpacked
    return Unpacked(unpacked.logs | done.logs, {}, (*unpacked.failures, *unlisted, *done.failures))


def _pending_logs(
    hadoop: Hadoop, pending: Mapping[int, EventLog], numbers: Iterator[int]
) -> tuple[dict[int, EventLog], list[LogFailure]]:
    """By number the logs that the addresses stand for; and addresses that stand for none."""
    number_of: dict[LogFile, int] = {}
    found: list[FoundFile] = []
    unlisted: list[LogFailure] = []
    for number, log in pending.items():
        address = log.files[0]
        assert isinstance(address, HadoopFile), "nothing else is pending"
        try:
            files = hadoop.files_of(address)
        except UnreadableLogError as error:
            unlisted.append(LogFailure(log.name, str(error), error.exit_code))
            continue
        found += [file for file in files if file.file not in number_of]
        number_of |= {file.file: number for file in files if file.file not in number_of}
    there: dict[int, EventLog] = {}
    for log in group_into_logs(found):
        number = min(number_of[file] for file in log.files)
        there[next(numbers) if number in there else number] = log
    return there, unlisted


def _fetched(hadoop: Hadoop, log: EventLog, limits: UnpackLimits, folder: Path) -> EventLog:
    """The log, its files copied to a local folder."""
    allowance = Allowance(limits, None, folder)
    targets: list[Path] = []
    for place, file in enumerate(log.files):
        assert isinstance(file, HadoopFile)
        target = folder / str(place) / _plain_name(file)
        target.parent.mkdir()
        hadoop.fetch(file, target, allowance)
        targets.append(target)
    return replace(log, files=tuple(targets))


def _plain_name(file: HadoopFile) -> str:
    """Its own name, as any JVM can write it."""
    return re.sub(r"[^\w.-]", "_", file.uri.rpartition("/")[2], flags=re.ASCII)[-100:]
