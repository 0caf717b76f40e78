"""What is recorded of the profiled runs: their settings and arrivals, how much, state, memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, TypeVar

from headway.domain.checks import require_not_negative
from headway.domain.configuration import Configuration
from headway.lazy_classes import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Ratio = TypeVar("Ratio", float, "NDArray[np.float64]")
"""One ratio, or several as an array."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedSetting:
    """One query run that the profile was fitted to.

    ``updated_rows`` is the mean number of state rows that a batch of it wrote,
    ``written_files_per_batch`` that of files that the actions of `foreachBatch` wrote, if the log
    shows it. ``concurrent_batches`` are those of all queries of the application that ran on average
    while its own did; None if no other query ran. ``other_batches`` of it had other stages than the
    usual ones and are not part of the fit; they took ``other_batch_mean_s`` on average.
    """

    query_id: str
    query_name: str | None = None
    configuration: Configuration
    rate_per_s: float
    num_batches: int
    num_batches_cut: int
    jvm_age_s: float
    rows_per_batch_low: float
    rows_per_batch_high: float
    batch_duration_mean_s: float
    batch_duration_sd_s: float
    modelled_duration_mean_s: float
    updated_rows: float | None = None
    written_files_per_batch: float | None = None
    concurrent_batches: float | None = None
    other_batches: int | None = None
    other_batch_mean_s: float | None = None

    def __post_init__(self) -> None:
        if not self.rate_per_s > 0 or self.num_batches < 1:
            raise ValueError(f"setting {self.query_id}: expected a positive rate and some batches")
        if not 0 <= self.rows_per_batch_low <= self.rows_per_batch_high:
            raise ValueError(f"setting {self.query_id}: the range of rows per batch is reversed")

    @property
    def rows_per_batch_middle(self) -> float:
        return 0.5 * (self.rows_per_batch_low + self.rows_per_batch_high)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTimeLag:
    """How far the newest rows of some batches were behind their triggers [s]."""

    lag_s: float
    batch_share: float

    def __post_init__(self) -> None:
        if not 0 < self.batch_share <= 1:
            fault = f"event-time lag: batch_share is {self.batch_share}; expected above 0, up to 1"
            raise ValueError(fault)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedArrivals:
    """How the arrival rate varied [records/s], and how far the query lagged behind [records].

    ``counted`` says what was counted: ``offsets``, the rows that the source had, or ``rows``, those
    that the query read, which are fewer than arrived if it is overloaded.
    ``largest_partition_share`` is the share of the busiest source partition, ``event_time_lag_s``
    the time by which the newest event time of a batch is typically before its trigger: negative if
    a batch still reads rows that arrive just after it. ``event_time_lags`` are all these times with
    their shares, since a millisecond may decide on a trigger. ``file_mean_rows`` and
    ``file_mean_bytes`` are means over the files of a file source.
    """

    counted: str
    rate_p05_per_s: float
    rate_p50_per_s: float
    rate_p95_per_s: float
    rate_max_per_s: float
    lag_p95_rows: float | None = None
    lag_max_rows: float | None = None
    largest_partition_share: float | None = None
    event_time_lag_s: float | None = None
    event_time_lags: tuple[EventTimeLag, ...] = ()
    file_mean_rows: float | None = None
    file_mean_bytes: float | None = None

    @property
    def lags(self) -> tuple[EventTimeLag, ...]:
        """The event-time lags; the typical one if no others are known, none if that is not."""
        if self.event_time_lags or self.event_time_lag_s is None:
            return self.event_time_lags
        return (EventTimeLag(lag_s=self.event_time_lag_s, batch_share=1.0),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How many of the things that must have existed were seen.

    >>> Share(seen=9, expected=10).ratio
    0.9
    >>> Share(seen=0, expected=0).ratio
    1.0
    """

    seen: int
    expected: int

    def __post_init__(self) -> None:
        require_not_negative("share", seen=self.seen)
        if self.expected < self.seen:
            raise ValueError(f"expected is {self.expected}, fewer than the {self.seen} seen")

    @property
    def ratio(self) -> float:
        """Seen over expected; 1 if nothing was expected."""
        return self.seen / self.expected if self.expected else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Contents of a log of an application, compared with what its own events imply.

    Tasks are expected from their stages, stages from their jobs, batches from the numbers of those
    before and after, executors from the tasks that ran on them. ``damaged_lines`` could not be
    read, ``unknown_events`` are of kinds that Spark itself does not write, ``lost_events`` are
    those whose loss was recorded, ``missing_parts`` the files that are missing from a rolling log,
    ``passed_over_batches`` those whose tasks a recorder skipped to limit its costs.
    """

    tasks: Share
    stages: Share
    jobs: Share
    batches: Share
    executors: Share
    has_start: bool
    has_end: bool
    compacted: bool = False
    in_progress: bool = False
    damaged_lines: int = 0
    unknown_events: int = 0
    lost_events: int = 0
    missing_parts: int = 0
    passed_over_batches: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StateOperatorProfile:
    """State of one operator at the end of the last run, and what its commits took.

    ``commit_s`` is the mean time per batch that the commits of its stores took together;
    ``store_metrics`` are means per batch of what its state store reports, with the names and units
    of Spark, summed over its stores.
    """

    name: str
    rows: int
    memory_bytes: int
    num_stores: int
    commit_s: float
    store_metrics: Mapping[str, float] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateProfile:
    """The state of the query at the end of the last run, and its cost per batch.

    ``commit_per_partition_s`` is the time of one state store's commit; ``growth_per_s`` is the
    number of rows by which the state grew per second of the last run. ``updated_rows`` is the mean
    number of state rows that a batch writes, ``updated_row_s`` the time that a task takes for one
    of them; None if not recorded. At another rate the rows of the state are multiplied by the ratio
    of the rates to the power ``rate_exponent``; 0 for a state that grows. ``operators`` are the
    parts of it, in the order in which Spark lists them: the one next to the sink first.
    """

    rows: int
    memory_bytes: int
    commit_per_partition_s: float
    growth_per_s: float
    updated_rows: float | None = None
    updated_row_s: float | None = None
    rate_exponent: float = 0.0
    operators: tuple[StateOperatorProfile, ...] = ()

    def rows_at(self, rate_ratio: Ratio) -> Ratio:
        """Its rows at a multiple of the profiled rate, or at several: theory.md (E36)."""
        rows: Ratio = self.rows * rate_ratio**self.rate_exponent
        return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyBatches:
    """Batches without rows, by which Spark closes windows once the watermark moved.

    There were ``num_per_batch`` for each batch with rows. They emitted ``emitted_share`` of the
    rows of state that left it, on average ``ahead_s`` before the next batch with rows would have.
    """

    num_per_batch: float
    duration_s: float
    emitted_share: float
    ahead_s: float

    def __post_init__(self) -> None:
        require_not_negative(
            "empty batches",
            num_per_batch=self.num_per_batch,
            duration_s=self.duration_s,
            ahead_s=self.ahead_s,
        )
        if not 0 <= self.emitted_share <= 1:
            raise ValueError(f"emitted_share is {self.emitted_share}; expected 0 to 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryProfile:
    """Measured peaks: of one task's execution memory, of one executor's heap, of spill."""

    peak_task_bytes: int
    peak_heap_bytes: int | None = None
    spilled_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShedCount:
    """Rows of a query that a rule of shedding has judged, and how many of them it shed."""

    query: str
    rule: str
    num_rows: int
    num_shed: int
