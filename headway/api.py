"""The library calls, for CI and notebooks: profile, predict, plan.

Light to import: Spark, and the numeric libraries, are loaded by the call that needs them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from headway.domain import (
    ApplicationProfile,
    Arrivals,
    Backtest,
    Configuration,
    JobProfile,
    Plan,
    Prediction,
    Target,
)
from headway.errors import EventLogError, InputError
from headway.units import parse_duration_s, parse_rate_per_s
from headway.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headway.profiler.logs.sources import LogFailure
    from headway.profiler.reading import LogsRead, Tell
    from headway.profiler.survey import LogSurvey


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What several logs hold, the sources that could not be read, and the tables written."""

    logs: tuple[LogSurvey, ...]
    failures: tuple[LogFailure, ...]
    tables: tuple[Path, ...] = ()


def load_profile(path: str | Path) -> JobProfile:
    """Read a profile that was saved before.

    Raises
    ------
    ProfileError
        If the file is missing or is no valid profile; every fault with its place.
    """
    from headway.spec.profile_file import load_profile as load

    return load(Path(path))


def save_profile(profile: JobProfile | ApplicationProfile, path: str | Path) -> None:
    """Write a profile as YAML, whole or not at all."""
    from headway.spec.profile_file import save_profile as save

    save(profile, Path(path))


def profile(
    sources: str | Path | Sequence[str | Path],
    *,
    queries: Sequence[str] = (),
    master: str = "local[*]",
    session: SparkSession | None = None,
    progress: Tell | None = None,
) -> JobProfile:
    """Profile a streaming job from its Spark event logs.

    Parameters
    ----------
    sources : path or sequence of paths
        Event logs: files, rolling folders, folders that hold such, zips, patterns, addresses of
        a History Server or of a file system that Hadoop reads, files of a recorder.
    queries : sequence of str
        Names or ids of the queries to use; all of them by default. Several runs of one job at
        different settings make one profile, and a better one.
    master : str
        Spark master to read the logs with, when no session is given.
    session : SparkSession, optional
        A running session to use instead of starting one.
    progress : callable, optional
        Told what is being done.

    Raises
    ------
    EventLogError
        If no log can be read, or none holds a streaming query that can be profiled.
    InputError
        If ``queries`` names none, or what was found are different jobs.
    SparkUnavailableError
        If there is no Java to run Spark with.
    """
    found = profile_any(sources, queries=queries, master=master, session=session, progress=progress)
    if isinstance(found, JobProfile):
        return found
    raise EventLogError(
        f"{found.application.id}: a {found.kind.value} application with {found.num_jobs} jobs, no "
        "streaming query; expected progress events of a Structured Streaming query"
    )


def profile_any(
    sources: str | Path | Sequence[str | Path],
    *,
    queries: Sequence[str] = (),
    master: str = "local[*]",
    session: SparkSession | None = None,
    progress: Tell | None = None,
) -> JobProfile | ApplicationProfile:
    """Profile whatever the event logs hold: a streaming job, or one batch or DStreams application.

    Parameters and errors are those of :func:`profile`; several applications without a streaming
    query are an ``InputError``.
    """
    from headway.profiler.collect import collect
    from headway.profiler.survey import profile_together

    with _read(sources, master, session, progress) as read:
        collected = collect(read.events, read.tell)
        read.tell("fitting")
        found = profile_together(collected, read.logs, queries, __version__)
        not_read = tuple(f"not read: {failure.name}: {failure.why}" for failure in read.failures)
        return replace(found, notes=(*found.notes, *not_read))


def survey(
    sources: str | Path | Sequence[str | Path],
    *,
    master: str = "local[*]",
    session: SparkSession | None = None,
    progress: Tell | None = None,
    tables: Path | None = None,
) -> Survey:
    """Look at each log on its own: what it holds and lacks, and the profile it gives.

    Parameters
    ----------
    sources, master, session, progress
        As of :func:`profile`.
    tables : Path, optional
        A folder to write the tables of all logs to, as Parquet.

    Raises
    ------
    EventLogError
        If no log can be read.
    SparkUnavailableError
        If there is no Java to run Spark with.
    """
    from headway.profiler.collect import collect
    from headway.profiler.survey import surveys

    with _read(sources, master, session, progress) as read:
        collected = collect(read.events, read.tell)
        found = tuple(surveys(collected, read.logs, __version__))
        written: tuple[Path, ...] = ()
        if tables is not None:
            from headway.profiler.export import write_tables

            read.tell("writing tables")
            written = write_tables(read.events, tables)
        return Survey(logs=found, failures=read.failures, tables=written)


def backtest(
    sources: str | Path | Sequence[str | Path],
    *,
    queries: Sequence[str] = (),
    master: str = "local[*]",
    session: SparkSession | None = None,
    progress: Tell | None = None,
) -> Backtest:
    """How right the models are about a job: fitted on part of its logs, judged on the rest.

    Parameters are those of :func:`profile`. Where the logs hold runs at several settings, each
    setting is predicted from the runs at the others, else the later half of each run from the
    earlier half.

    Raises
    ------
    EventLogError
        If no log can be read, or holds too little to leave a part of it out.
    InputError
        If the logs hold several different jobs.
    SparkUnavailableError
        If there is no Java to run Spark with.
    """
    from headway.profiler.collect import collect
    from headway.profiler.streaming.backtest import backtest as judged

    with _read(sources, master, session, progress) as read:
        collected = collect(read.events, read.tell)
        read.tell("fitting and predicting")
        found = judged(collected, read.logs, queries, __version__)
        not_read = tuple(f"not read: {failure.name}: {failure.why}" for failure in read.failures)
        return replace(found, notes=(*found.notes, *not_read))


def _read(
    sources: str | Path | Sequence[str | Path],
    master: str,
    session: SparkSession | None,
    progress: Tell | None,
) -> AbstractContextManager[LogsRead]:
    from headway.profiler.logs.limits import UnpackLimits
    from headway.profiler.reading import read_logs

    return read_logs(
        [sources] if isinstance(sources, str | Path) else list(sources),
        master=master,
        session=session,
        limits=UnpackLimits(),
        tell=progress or (lambda _text, _done=None: None),
    )


def predict(
    profile: JobProfile | str | Path,
    *,
    rate: float | str | None = None,
    trigger: float | str | None = None,
    executors: int | None = None,
    cores: int | None = None,
    partitions: int | None = None,
    max_offsets: int | None = None,
    jvm_age: float | str | None = None,
) -> Prediction:
    """Latency of a job at a setting; what is not given is as profiled.

    Parameters
    ----------
    profile : JobProfile or path
        The job.
    rate : float or str
        Arrivals, records per second or e.g. ``"50k/s"``.
    trigger : float or str
        Trigger interval, seconds or e.g. ``"2s"``; 0 is as fast as possible.
    executors, cores, partitions, max_offsets : int
        Executors, cores per executor, shuffle partitions, rate limit per batch.
    jvm_age : float or str
        Time since the executors started, seconds or e.g. ``"5min"``; a young JVM is slower.

    Raises
    ------
    InputError
        If a value is not what it should be.
    """
    from headway.models.job.predict import predict as predict_setting

    job = _job(profile)
    return predict_setting(
        job,
        configuration_from(
            job.baseline,
            trigger=trigger,
            executors=executors,
            cores=cores,
            partitions=partitions,
            max_offsets=max_offsets,
        ),
        _arrivals(job, rate),
        jvm_age_s=None if jvm_age is None else _positive_seconds(jvm_age, "jvm_age"),
    )


def plan(
    profile: JobProfile | str | Path,
    *,
    rate: float | str,
    target: Target | str,
    max_nodes: int = 50,
    node_cores: int | None = None,
    cores: int | None = None,
    partitions: int | None = None,
    trigger: float | str | None = None,
    confidence: float = 0.95,
) -> Plan:
    """The fewest nodes that keep a target at a rate, and the Spark configuration that does.

    Parameters
    ----------
    profile : JobProfile or path
        The job.
    rate : float or str
        Arrivals to plan for, records per second or e.g. ``"50k/s"``.
    target : Target or str
        The promise, e.g. ``"p99 <= 3s"``.
    max_nodes : int
        Most nodes that may be bought.
    node_cores, cores : int
        Cores of a node and of an executor; as profiled by default, one executor per node.
    partitions : int
        Shuffle partitions, if they are fixed (by an existing checkpoint).
    trigger : float or str
        Trigger interval, if it is fixed.
    confidence : float
        Plan for durations that are exceeded with at most the remaining probability.

    Raises
    ------
    InputError
        If a value is not what it should be. A target that cannot be met is no error: the plan
        then says ``feasible=False``, and why.
    """
    from headway.planner.search import plan as search
    from headway.planner.space import SearchSpace

    if rate is None:
        raise InputError("rate is missing; expected the arrivals to plan for, e.g. '50k/s'")
    job = _job(profile)
    per_executor = _at_least_one(
        job.baseline.cores_per_executor if cores is None else cores, "cores"
    )
    per_node = _at_least_one(per_executor if node_cores is None else node_cores, "node_cores")
    if per_node < per_executor:
        raise InputError(
            f"a node of {per_node} cores has no room for an executor of {per_executor}; "
            "give a larger --node-cores or fewer --cores"
        )
    if not isinstance(confidence, float) or not 0.5 <= confidence < 1:
        raise InputError(f"confidence is {confidence}; expected 0.5 or more, and below 1")
    return search(
        job,
        _arrivals(job, rate),
        _target(target),
        SearchSpace(
            max_nodes=_at_least_one(max_nodes, "max_nodes"),
            executors_per_node=per_node // per_executor,
            cores_per_executor=per_executor,
            shuffle_partitions=None
            if partitions is None
            else _at_least_one(partitions, "partitions"),
            trigger_s=None if trigger is None else _seconds(trigger, "trigger"),
        ),
        confidence=confidence,
    )


def configuration_from(
    baseline: Configuration,
    *,
    trigger: float | str | None = None,
    executors: int | None = None,
    cores: int | None = None,
    partitions: int | None = None,
    max_offsets: int | None = None,
) -> Configuration:
    """The baseline with what is given replaced."""
    changes: dict[str, float] = {}
    for field, value, name in (
        ("executors", executors, "executors"),
        ("cores_per_executor", cores, "cores"),
        ("shuffle_partitions", partitions, "partitions"),
        ("max_offsets_per_trigger", max_offsets, "max_offsets"),
    ):
        if value is not None:
            changes[field] = _at_least_one(value, name)
    if trigger is not None:
        changes["trigger_s"] = _seconds(trigger, "trigger")
    return replace(baseline, **changes)  # type: ignore[arg-type]  # values checked field by field


def _job(profile: JobProfile | str | Path) -> JobProfile:
    return profile if isinstance(profile, JobProfile) else load_profile(profile)


def _arrivals(job: JobProfile, rate: float | str | None) -> Arrivals:
    if rate is None:
        return job.arrivals
    rate_per_s = parse_rate_per_s(rate) if isinstance(rate, str) else rate
    if not _is_number(rate_per_s) or not 0 < rate_per_s < math.inf:
        raise InputError(f"rate is {rate!r}; expected a positive number of records per second")
    return replace(job.arrivals, rate_per_s=float(rate_per_s))


def _target(target: Target | str) -> Target:
    if isinstance(target, Target):
        return target
    if not isinstance(target, str):
        raise InputError(f"target is {target!r}; expected a text such as 'p99 <= 3s'")
    return Target.parse(target)


def _seconds(value: float | str, name: str) -> float:
    if isinstance(value, str):
        try:
            # Zero needs no unit.
            seconds = 0.0 if value.strip() == "0" else parse_duration_s(value)
        except InputError as error:
            raise InputError(f"{name}: {error}") from None
    else:
        seconds = value
    if not _is_number(seconds) or not 0 <= seconds < math.inf:
        raise InputError(f"{name} is {value!r}; expected 0 or more seconds")
    return float(seconds)


def _positive_seconds(value: float | str, name: str) -> float:
    seconds = _seconds(value, name)
    if seconds == 0:
        raise InputError(f"{name} is {value!r}; expected more than 0 seconds")
    return seconds


def _at_least_one(value: int, name: str) -> int:
    if not _is_number(value) or value != value // 1 or value < 1:
        raise InputError(f"{name} is {value!r}; expected a whole number, at least 1")
    return int(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
