"""Event logs -> profiles, one for all or one for each, and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from headway.domain import ApplicationProfile, JobProfile
from headway.domain.argument import read_question, takes
from headway.domain.argument_values import paths_of
from headway.domain.log_questions import LogsQuestion, ProfileQuestion
from headway.errors import EventLogError, require_packages
from headway.lazy_classes import dataclass
from headway.units import counted
from headway.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headway.profiler.logs.sources import LogFailure
    from headway.profiler.reading import LogsRead, Tell
    from headway.profiler.survey import LogSurvey


_SOURCES = paths_of("the path of an event log, or a list of them")


class LogsOptions(TypedDict, total=False):
    """With what logs are read, as the library takes it."""

    engine: str
    master: str
    conf: Mapping[str, str]
    session: SparkSession | None
    progress: Tell | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Contents of several logs, the sources that could not be read, and the written tables."""

    logs: tuple[LogSurvey, ...]
    failures: tuple[LogFailure, ...]
    tables: tuple[Path, ...] = ()


@takes(ProfileQuestion)
def profile(
    sources: str | Path | Sequence[str | Path],
    *,
    queries: Sequence[str] = (),
    trigger: str | float | None = None,
    **options: Unpack[LogsOptions],
) -> JobProfile:
    """Profile a streaming job from its Spark event logs.

    Parameters
    ----------
    sources : path or sequence of paths
        Event logs: files, rolling log folders, folders of logs, zips, glob patterns, addresses of a
        History Server or of a file system that Hadoop reads, files of a recorder.
    queries : sequence of str
        Names or ids of the queries to use; all of them by default. Several runs of one job at
        different settings make one better profile.
    trigger : str or float, optional
        The trigger interval of the queries, ``"5 s"`` or 5.0; 0 is as fast as possible. By default
        it is estimated from the start times of batches; if the log contradicts a stated one, the
        notes say so.
    engine : str
        ``in-process`` reads with processes on this machine and needs no Java, ``spark`` reads with
        Spark; ``auto`` uses Spark if a session, a master or a property is given, for addresses that
        only Hadoop reads, and above 8 GB of events.
    master : str
        Spark master to read the logs with, when no session is given.
    conf : mapping of str to str
        Spark properties of the session that is started, e.g. ``spark.jars.packages`` and
        ``spark.hadoop.fs.s3a.*`` for logs in an object store.
    session : SparkSession, optional
        A running session to use instead of starting one.
    progress : callable, optional
        Called with what is being done.

    Raises
    ------
    EventLogError
        If no log can be read, or none contains a streaming query that can be profiled.
    InputError
        If ``queries`` matches none, the queries are different jobs, or ``trigger`` is no duration.
    SparkUnavailableError
        If Spark is to read them and there is no Java to run it with.
    """
    any_profile, _ = profile_and_tables(sources, None, queries=queries, trigger=trigger, **options)
    if isinstance(any_profile, JobProfile):
        return any_profile
    raise EventLogError(
        f"{any_profile.application.id}: a {any_profile.kind} application with "
        f"{counted(any_profile.num_jobs, 'job')}, no streaming query; expected progress events of "
        "a Structured Streaming query"
    )


@takes(ProfileQuestion)
def profile_and_tables(
    sources: str | Path | Sequence[str | Path],
    tables: Path | None,
    *,
    queries: Sequence[str] = (),
    trigger: str | float | None = None,
    **options: Unpack[LogsOptions],
) -> tuple[JobProfile | ApplicationProfile, tuple[Path, ...]]:
    """The profile of any kind of job in the logs, and where the tables were written.

    A profile of a streaming job, or of one batch or DStreams application. The logs are read once
    for profile and tables, of which all are written as Parquet to the folder ``tables``; None
    writes none. Options and errors are those of :func:`profile`; also raises InputError if the logs
    contain several applications without a streaming query.
    """
    from headway.profiler.survey import profile_together

    about_runs = {"queries": queries, "trigger": trigger}
    question = read_question(ProfileQuestion, {**about_runs, **options})
    if tables is not None:
        _require_tables()
    with reading(sources, question) as logs_read:
        logs_read.tell("fitting", None)
        any_profile = profile_together(
            logs_read.collected, logs_read.logs, question.queries, __version__, question.trigger_s
        )
        not_read = tuple(
            f"not read: {failure.name}: {failure.why}" for failure in logs_read.failures
        )
        any_profile = replace(any_profile, notes=(*any_profile.notes, *not_read))
        return any_profile, _written_tables(logs_read, tables)


@takes(LogsQuestion)
def survey(
    sources: str | Path | Sequence[str | Path],
    *,
    tables: Path | None = None,
    **options: Unpack[LogsOptions],
) -> Survey:
    """Look at each log on its own: what it contains, what is missing, and its profile.

    Parameters
    ----------
    sources, engine, master, conf, session, progress
        As for :func:`profile`.
    tables : Path, optional
        A folder to write the tables of all logs to, as Parquet.

    Raises
    ------
    EventLogError
        If no log can be read.
    SparkUnavailableError
        If Spark is to read them and there is no Java to run it with.
    """
    from headway.profiler.survey import surveys

    question = read_question(LogsQuestion, options)
    if tables is not None:
        _require_tables()
    with reading(sources, question) as logs_read:
        log_surveys = tuple(surveys(logs_read.collected, logs_read.logs, __version__))
        return Survey(
            logs=log_surveys, failures=logs_read.failures, tables=_written_tables(logs_read, tables)
        )


def _require_tables() -> None:
    # Before logs are read, which may take long.
    require_packages("logs", "writing tables", "pyarrow")


def _written_tables(logs_read: LogsRead, tables: Path | None) -> tuple[Path, ...]:
    if tables is None:
        return ()
    from headway.profiler.export import write_tables

    logs_read.tell("writing tables", None)
    return write_tables(
        logs_read.pieces, logs_read.engine, logs_read.collected.applications, tables
    )


def reading(
    sources: str | Path | Sequence[str | Path], question: LogsQuestion
) -> AbstractContextManager[LogsRead]:
    """Logs, located and read, until the context ends."""
    from headway.profiler.reading import read_logs

    return read_logs(_SOURCES.read(sources, "sources"), question)
