"""Lock files: plans written to a file, so that a later build can be compared with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from headway.domain.argument_values import of_class
from headway.domain.checks import require_count, require_not_negative, require_seconds
from headway.domain.configuration import Arrivals, Configuration
from headway.domain.kept_promise import KeptPromise
from headway.domain.later import made_when_asked
from headway.errors import InputError
from headway.formats.codec import validate
from headway.formats.own_files import path_of, read_text
from headway.formats.yaml_document import shown, written_document
from headway.limits import LARGEST_NUMBER, MOST_CORES, MOST_EXECUTORS, MOST_INT
from headway.sparkconf import task_cpus_of

LOCK_SCHEMA = "headway.lock/v1"
#: The file that 'headway lock' writes and 'headway check' finds beside the specs.
LOCK_NAME = "headway.lock"
_EXPECTED = "a lock as 'headway lock' writes it"
_HEADING = (
    "# What was planned, to compare later plans with:  headway check SPEC\n"
    "# Written by 'headway lock'; commit it beside the specs.\n"
)


@made_when_asked("kept_probability", "verdict")
@dataclass(frozen=True, slots=True, kw_only=True)
class Locked:
    """What was planned for one streaming job when the lock was written.

    ``targets`` are for people; ``promises`` are compared, and missing in locks of earlier versions.
    ``batch_duration_s`` is the mean that its profile predicted for these settings at
    ``rate_per_s``, ``phases_s`` how the mean latency was split. ``kept_probability`` is that of its
    targets, ``verdict`` the verdict at the confidence of the plan. ``core_speed_ratio`` is present
    if cores are not as fast as the profiled ones, ``from_start`` if the plan is for batches of a
    fresh JVM, ``requests_cost_per_hour`` if the store of the checkpoint has a price: for
    requests and space. ``currency`` is that of the prices, if known. Jobs of any kind are compared
    by ``cost`` and ``planned_s``; ``cost_of`` and ``planned_of`` say of what these are.
    """

    ends: ClassVar[Literal[False]] = False
    cost_of: ClassVar[str] = "per hour"
    planned_of: ClassVar[str] = "latency"
    name: str
    file: str
    targets: tuple[str, ...]
    rate_per_s: float
    nodes: int
    cost_per_hour: float | None = None
    requests_cost_per_hour: float | None = None
    currency: str | None = None
    planned_latency_s: float | None = None
    batch_duration_s: float | None = None
    kept_probability: float | None = None
    verdict: str | None = None
    executors: int
    cores_per_executor: int
    shuffle_partitions: int
    trigger_s: float
    max_offsets_per_trigger: int | None = None
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    promises: tuple[KeptPromise, ...] = ()
    query_options: Mapping[str, str] = field(default_factory=dict)
    phases_s: Mapping[str, float] = field(default_factory=dict)
    core_speed_ratio: float | None = None
    from_start: bool | None = None

    def __post_init__(self) -> None:
        Arrivals(rate_per_s=self.rate_per_s)
        _require_figures(
            self.nodes,
            self.core_speed_ratio,
            cost_per_hour=self.cost_per_hour,
            requests_cost_per_hour=self.requests_cost_per_hour,
            planned_latency_s=self.planned_latency_s,
            batch_duration_s=self.batch_duration_s,
        )
        Configuration(
            executors=self.executors,
            cores_per_executor=self.cores_per_executor,
            shuffle_partitions=self.shuffle_partitions,
            trigger_s=self.trigger_s,
            max_offsets_per_trigger=self.max_offsets_per_trigger,
            task_cpus=task_cpus_of(self.spark_conf),
        )

    @property
    def cost(self) -> float | None:
        if self.cost_per_hour is None:
            return None
        return self.cost_per_hour + (self.requests_cost_per_hour or 0.0)

    @property
    def planned_s(self) -> float | None:
        return self.planned_latency_s


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedBatch:
    """What was planned for one batch job when the lock was written, as of `Locked`.

    ``run_time_s`` is the mean that its profile predicted for the locked executors, on cores that
    are ``core_speed_ratio`` times as fast as the profiled ones. ``backlog_rows`` are what a
    streaming query reads in a run.
    """

    ends: ClassVar[Literal[True]] = True
    cost_of: ClassVar[str] = "per run"
    planned_of: ClassVar[str] = "run time"
    name: str
    file: str
    targets: tuple[str, ...]
    nodes: int
    cost_per_run: float | None = None
    currency: str | None = None
    planned_run_time_s: float | None = None
    run_time_s: float
    kept_probability: float | None = None
    verdict: str | None = None
    core_speed_ratio: float = 1.0
    backlog_rows: float | None = None
    executors: int
    cores_per_executor: int
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    promises: tuple[KeptPromise, ...] = ()

    def __post_init__(self) -> None:
        _require_figures(
            self.nodes,
            self.core_speed_ratio,
            cost_per_run=self.cost_per_run,
            planned_run_time_s=self.planned_run_time_s,
        )
        require_seconds(run_time_s=self.run_time_s)
        require_count(MOST_EXECUTORS, executors=self.executors)
        require_count(MOST_CORES, cores_per_executor=self.cores_per_executor)
        if self.backlog_rows is not None and not 0 < self.backlog_rows <= LARGEST_NUMBER:
            raise ValueError(f"backlog_rows is {self.backlog_rows}; expected a positive number")

    @property
    def cost(self) -> float | None:
        return self.cost_per_run

    @property
    def planned_s(self) -> float | None:
        return self.planned_run_time_s


def _require_figures(nodes: int, core_speed_ratio: float | None, **figures: float | None) -> None:
    """Refuse what no plan has, as a ValueError: figures are divided by."""
    require_count(MOST_INT, nodes=nodes)
    if core_speed_ratio is not None and not 0 < core_speed_ratio <= LARGEST_NUMBER:
        raise ValueError(f"core_speed_ratio is {core_speed_ratio}; expected a positive number")
    require_not_negative("the plan", **figures)


AnyLocked = Locked | LockedBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """The plans of some jobs, to compare later ones with."""

    schema: str = LOCK_SCHEMA
    headway_version: str
    jobs: tuple[Locked, ...] = ()
    batch_jobs: tuple[LockedBatch, ...] = ()

    @property
    def all_jobs(self) -> tuple[AnyLocked, ...]:
        """The jobs of both kinds."""
        return (*self.jobs, *self.batch_jobs)

    def of(self, name: str) -> AnyLocked | None:
        """The locked plan of a job."""
        return next((job for job in self.all_jobs if job.name == name), None)


def lock_beside(spec: str | Path) -> Path | None:
    """The lock beside a spec file, or else that of the working folder, where it is written."""
    lock_paths = (Path(spec).parent / LOCK_NAME, Path(LOCK_NAME))
    return next((lock_path for lock_path in lock_paths if lock_path.is_file()), None)


def save_lock(lock: Lock, path: str | Path) -> None:
    """Write a lock in one step: readers see the old one or the complete new one.

    Raises InputError if it is no lock; HeadwayError if the file cannot be written.
    """
    lock = of_class(Lock, "a lock as headway.lock makes it").read(lock, "lock")
    from headway.formats.text_file import write_text
    from headway.formats.yaml_text import yaml_text

    write_text(path, _HEADING + yaml_text(lock), label="the lock")


def load_lock(path: str | Path) -> Lock:
    """Read a lock.

    Raises InputError if it cannot be read, is no lock, or not one of this version; every fault with
    its position.

    >>> load_lock("no/such.lock")
    Traceback (most recent call last):
    ...
    headway.errors.InputError: no/such.lock: no such file; expected a lock as 'headway lock'...
    """
    text = read_text(path_of(path, expected=_EXPECTED), expected=_EXPECTED)
    document = written_document(text, name=str(path))
    schema = document.root.get("schema") if isinstance(document.root, dict) else None
    if schema != LOCK_SCHEMA:
        raise InputError(
            f"{path}:1:1: schema: got {shown(schema)}; expected {LOCK_SCHEMA}: "
            "write it anew with 'headway lock'"
        )
    return validate(document, Lock)
