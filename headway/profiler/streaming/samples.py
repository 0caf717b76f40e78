"""Measurements of one batch, and of one run of a query: the input of every fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import NamedTuple

import numpy as np

from headway.assumptions.fits import FRESH_JVM_S
from headway.domain import (
    Coalescing,
    Configuration,
    DefaultParallelism,
    Drain,
    EmptyBatches,
    QueryShape,
    Share,
    StageResources,
    StateOperatorProfile,
)
from headway.lazy_classes import changed, dataclass
from headway.models.arrays import Array
from headway.profiler.operators import Operator
from headway.profiler.recorded_queries import query_label
from headway.profiler.streaming.stage_kinds import StageKind

UNKNOWN_NAME = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSample:
    """One stage of one batch: means over its tasks, and sums over them.

    If tasks are missing (``num_seen`` of ``num_tasks``), the sums are extrapolated to all tasks by
    the mean of the recorded ones. Without ``has_tasks``, it represents the batch as a whole.
    ``kind`` is None if the stages of a batch are known by level and order only. ``write`` is what
    its action writes, if that is known of the batch.
    """

    level: int
    has_parents: bool
    has_tasks: bool
    num_tasks: int
    num_seen: int
    rows_read: float
    task_mean_s: float
    task_sd_s: float | None
    outside_run_s: float
    scheduler_delay_s: float
    rows_variance: float
    rows_time_covariance_s: float
    span_s: float
    run_s: float
    cpu_s: float
    gc_s: float
    python_s: float | None
    rows_largest: float
    rows_written: float
    input_bytes: float
    shuffle_read_bytes: float
    shuffle_write_bytes: float
    spilled_bytes: float
    peak_memory_bytes: float
    peak_heap_bytes: float
    kind: StageKind | None = None
    operators: tuple[Operator, ...] = ()
    write: str | None = None
    resource_profile_id: int = 0
    is_barrier: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSample:
    """Offsets of one source of one batch, by partition; None if they do not count rows."""

    start: Mapping[str, int] | None
    end: Mapping[str, int] | None
    latest: Mapping[str, int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSample:
    """All state of the query after one batch; ``operators`` are measured in this batch alone."""

    num_rows: int
    memory_bytes: int
    num_stores: int
    num_updated: int = 0
    updates_s: float = 0.0
    operators: tuple[StateOperatorProfile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSample:
    """One micro-batch: its start, duration, rows, and its stages in order.

    ``interval_s`` is the time since the start of the previous batch, ``idle_s`` how much of it
    passed before the first of its rows arrived: a pause without rows (A13).
    ``event_time_lag_s`` is how far the newest event time of its rows is before its start; None if
    not recorded. ``stages_s`` is the time in which tasks of any stage ran.
    """

    batch_id: int
    started_s: float
    interval_s: float | None
    idle_s: float = 0.0
    jvm_age_s: float
    duration_s: float
    phases_s: dict[str, float]
    num_rows: int
    state_commit_s: float
    state: StateSample
    event_time_lag_s: float | None
    stages_s: float
    stages: tuple[StageSample, ...]

    @property
    def signature(self) -> tuple[StageKind, ...]:
        """What the stages of the batch compute; equal for batches with one plan."""
        return tuple(sorted(self.kinds))

    @property
    def kinds(self) -> tuple[StageKind, ...]:
        """What each stage computes, in order of the stages."""
        return tuple(
            stage.kind or StageKind(0, stage.has_parents, (f"level {stage.level}",), number)
            for number, stage in enumerate(self.stages)
        )

    def with_levels(self, levels: Mapping[StageKind, int]) -> BatchSample:
        """The batch with its stages at given levels, in order of these."""
        placed = [
            (levels[kind], kind, changed(stage, level=levels[kind]))
            for kind, stage in zip(self.kinds, self.stages, strict=True)
        ]
        placed.sort(key=lambda level_kind_stage: level_kind_stage[:2])
        return changed(self, stages=tuple(stage for _, _, stage in placed))


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalSeries:
    """Rows that arrived in each interval between two batches, after ``idle_s`` of it.

    ``counted`` is ``offsets`` (what the source had by each batch, taken by the query or not) or, if
    offsets do not count rows, ``rows`` (what the query took). Each batch left ``lag_rows`` behind
    at the source. ``partition_rows`` are for the whole series; empty without partitions.
    """

    counted: str
    arrived_rows: Array
    interval_s: Array
    lag_rows: Array | None
    partition_rows: Mapping[str, int]
    idle_s: Array | float = 0.0

    @property
    def rate_per_s(self) -> float | None:
        total_s = float(self.interval_s.sum())
        rows = float(self.arrived_rows.sum())
        return rows / total_s if rows > 0 and total_s > 0 else None

    @property
    def dispersion_ratio(self) -> float | None:
        """Variance over mean of the count in an interval; None if unknown.

        A pause is as many intervals without rows as it is longer than the one that ended it.
        """
        rate_per_s = self.rate_per_s
        if rate_per_s is None:
            return None
        arrival_s = self.interval_s - self.idle_s
        expected, num_idle = rate_per_s * arrival_s, self.idle_s / arrival_s
        squares = np.square(self.arrived_rows - expected) + num_idle * np.square(expected)
        total = float(np.sum(squares / np.maximum(expected, 1.0)))
        return total / float(np.sum(1.0 + num_idle))


class SourceFacts(NamedTuple):
    """Settings that decide how many tasks read the source, and rows by topic partition.

    ``partition_rows`` are, by batch, those of each topic partition that has any.
    """

    parallelism: DefaultParallelism
    file_parallelism: DefaultParallelism
    max_split_bytes: int
    open_cost_bytes: int
    partition_rows: Mapping[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyBatch:
    """A batch before the steady part of a run: age of the JVM, and duration."""

    jvm_age_s: float
    duration_s: float
    num_rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRun:
    """One run of the query at one setting, steady batches only.

    ``early`` are the batches before these, beginning with the first of the run; empty if another
    query of the application ran earlier. ``without_rows`` are batches that read nothing, or next to
    nothing, in a JVM that has run for a while, mostly the first of a query. ``first`` is the first
    batch of the log with its stages; None if these are not usable. ``executor_wait_s`` passed from
    the start of the application until its first executor was there; ``has_changelog`` is whether
    RocksDB saves changes between snapshots. ``resources`` are those of stages with a resource
    profile other than the usual one, by its id. ``is_gated``: most batches were started by a gate,
    not by the trigger; ``has_changing_load``: its batches differ in rows, with those of its
    warm-up. ``drain`` is the backlog that it read, if it did nothing else. ``mean_file`` are the
    mean rows and bytes of a file of its source, ``written_files`` the mean number of files that the
    actions of a batch wrote. ``empty`` is what is known of its batches without rows.
    ``concurrent_batches`` are those of all queries of its application that ran while its own did;
    None if no other ran. ``left_out`` are the number and the mean duration of the batches that had
    other stages and were taken out; None without any. ``number_text`` says which run of its query
    it is, if the log has several.
    """

    query_id: str
    query_name: str | None
    shape: QueryShape
    configuration: Configuration
    arrivals: ArrivalSeries
    rate_per_s: float
    num_cut: int
    pinned_state_partitions: int | None
    source_partitions: int | None
    state_store: str | None = None
    mean_file: tuple[float, float] | None = None
    written_files: float | None = None
    is_gated: bool = False
    drain: Drain | None = None
    adaptive: Coalescing | None = None
    source: SourceFacts | None = None
    resources: Mapping[int, StageResources] = field(default_factory=dict)
    batches: tuple[BatchSample, ...]
    early: tuple[EarlyBatch, ...] = ()
    without_rows: tuple[BatchSample, ...] = ()
    concurrent_batches: float | None = None
    left_out: tuple[int, float] | None = None
    first: BatchSample | None = None
    executor_wait_s: float = 0.0
    has_changing_load: bool = False
    has_changelog: bool = False
    empty: EmptyBatches | None = None
    number_text: str = ""

    @property
    def label(self) -> str:
        """Name of the query in messages."""
        return query_label(self.query_id, self.query_name)

    @property
    def numbered_label(self) -> str:
        """The same with the number of the run, if the log has several of the query."""
        return f"{self.label}{self.number_text}"

    @property
    def mean_age_s(self) -> float:
        """Mean age of the JVM at the starts of its batches."""
        return float(np.mean([batch.jvm_age_s for batch in self.batches]))

    @property
    def began_in_fresh_jvm(self) -> bool:
        """Whether the JVM had done little else before its first batch."""
        first = self.early[0] if self.early else self.batches[0]
        return first.jvm_age_s <= FRESH_JVM_S.value

    @property
    def held_rows(self) -> Array:
        """Rows of the state in each batch; of a join without those that it writes (E29)."""
        rows = np.array([batch.state.num_rows for batch in self.batches], dtype=np.float64)
        if self.shape.keeps_rows:
            rows -= np.array([batch.state.num_updated for batch in self.batches])
        return np.maximum(rows, 0.0)

    @property
    def tasks(self) -> Share:
        """Number of recorded tasks of these batches, and of all."""
        stages = [stage for batch in self.batches for stage in batch.stages if stage.has_tasks]
        return Share(
            seen=sum(stage.num_seen for stage in stages),
            expected=sum(stage.num_tasks for stage in stages),
        )


def batches_of(runs: Iterable[QueryRun]) -> list[BatchSample]:
    """The batches of all runs, one run after another."""
    return [batch for run in runs for batch in run.batches]
