"""Event logs -> profiles, one for all or one for each, and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from headway.domain import ApplicationProfile, JobProfile
from headway.errors import EventLogError, InputError, require_packages
from headway.units import parse_duration_s
from headway.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headway.profiler.logs.sources import LogFailure
    from headway.profiler.reading import LogsRead, Tell
    from headway.profiler.survey import LogSurvey


NO_CONF: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Contents of several logs, the sources that could not be read, and the written tables."""

    logs: tuple[LogSurvey, ...]
    failures: tuple[LogFailure, ...]
    tables: tuple[Path, ...] = ()


def profile(
    sources: str | Path | Sequence[str | Path],
    *,
    queries: Sequence[str] = (),
    trigger: str | float | None = None,
    engine: str = "auto",
    master: str = "local[*]",
    conf: Mapping[str, str] = NO_CONF,
    session: SparkSession | None = None,
    progress: Tell | None = None,
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
    any_profile, _ = profile_and_tables(
        sources,
        None,
        queries=queries,
        trigger=trigger,
        engine=engine,
        master=master,
        conf=conf,
        session=session,
        progress=progress,
    )
    if isinstance(any_profile, JobProfile):
        return any_profile
    raise EventLogError(
        f"{any_profile.application.id}: a {any_profile.kind.value} application with "
        f"{any_profile.num_jobs} jobs, no streaming query; expected progress events of a "
        "Structured Streaming query"
    )


def profile_and_tables(
    sources: str | Path | Sequence[str | Path],
    tables: Path | None,
    *,
    queries: Sequence[str] = (),
    trigger: str | float | None = None,
    engine: str = "auto",
    master: str = "local[*]",
    conf: Mapping[str, str] = NO_CONF,
    session: SparkSession | None = None,
    progress: Tell | None = None,
) -> tuple[JobProfile | ApplicationProfile, tuple[Path, ...]]:
    """The profile of any kind of job in the logs, and where the tables were written.

    A profile of a streaming job, or of one batch or DStreams application. The logs are read once
    for profile and tables.

    Parameters
    ----------
    tables : Path or None
        A folder to write all tables to, as Parquet; None writes none.
    sources, queries, trigger, engine, master, conf, session, progress
        As for :func:`profile`.

    Raises
    ------
    EventLogError, SparkUnavailableError
        As for :func:`profile`.
    InputError
        As :func:`profile`, or if the logs contain several applications without a streaming query.
    """
    from headway.profiler.survey import profile_together

    trigger_s = trigger_seconds(trigger)
    if tables is not None:
        _require_tables()
    with reading(sources, engine, master, conf, session, progress) as logs_read:
        logs_read.tell("fitting")
        any_profile = profile_together(
            logs_read.collected, logs_read.logs, queries, __version__, trigger_s
        )
        not_read = tuple(
            f"not read: {failure.name}: {failure.why}" for failure in logs_read.failures
        )
        any_profile = replace(any_profile, notes=(*any_profile.notes, *not_read))
        return any_profile, _written_tables(logs_read, tables)


def survey(
    sources: str | Path | Sequence[str | Path],
    *,
    engine: str = "auto",
    master: str = "local[*]",
    conf: Mapping[str, str] = NO_CONF,
    session: SparkSession | None = None,
    progress: Tell | None = None,
    tables: Path | None = None,
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

    if tables is not None:
        _require_tables()
    with reading(sources, engine, master, conf, session, progress) as logs_read:
        log_surveys = tuple(surveys(logs_read.collected, logs_read.logs, __version__))
        return Survey(
            logs=log_surveys, failures=logs_read.failures, tables=_written_tables(logs_read, tables)
        )


def trigger_seconds(trigger: str | float | None) -> float | None:
    """The given trigger interval; 0 needs no unit."""
    if isinstance(trigger, str):
        return 0.0 if trigger.strip() == "0" else parse_duration_s(trigger)
    if trigger is not None and not 0.0 <= trigger < float("inf"):
        raise InputError(f"trigger {trigger}: expected a duration in seconds, 0 or more")
    return trigger


def _require_tables() -> None:
    # Before logs are read, which may take long.
    require_packages("logs", "writing tables", "pyarrow")


def _written_tables(logs_read: LogsRead, tables: Path | None) -> tuple[Path, ...]:
    if tables is None:
        return ()
    from headway.profiler.export import write_tables

    logs_read.tell("writing tables")
    return write_tables(
        logs_read.pieces, logs_read.engine, logs_read.collected.applications, tables
    )


def reading(
    sources: str | Path | Sequence[str | Path],
    engine: str,
    master: str,
    conf: Mapping[str, str],
    session: SparkSession | None,
    progress: Tell | None,
) -> AbstractContextManager[LogsRead]:
    """Logs, located and read, until the context ends."""
    from headway.profiler.logs.limits import UnpackLimits
    from headway.profiler.reading import read_logs

    return read_logs(
        [sources] if isinstance(sources, str | Path) else list(sources),
        engine=engine,
        master=master,
        conf=conf,
        session=session,
        limits=UnpackLimits(),
        tell=progress or (lambda _text, _done=None: None),
    )
