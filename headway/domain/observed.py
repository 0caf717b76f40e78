"""What was observed of the profiled runs: their settings, and how rows arrived."""

from __future__ import annotations

from headway.domain.configuration import Configuration
from headway.lazy_classes import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedSetting:
    """One query run that the profile was fitted to.

    ``updated_rows`` is the mean number of state rows that a batch of it wrote,
    ``written_files_per_batch`` that of files that the actions of `foreachBatch` wrote, if the log
    shows it. ``concurrent_batches`` are those of all queries of the application that ran on average
    while its own did; None if no other query ran.
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

    def __post_init__(self) -> None:
        if not self.rate_per_s > 0 or self.num_batches < 1:
            raise ValueError(f"setting {self.query_id}: expected a positive rate and some batches")
        if not 0 <= self.rows_per_batch_low <= self.rows_per_batch_high:
            raise ValueError(f"setting {self.query_id}: the range of rows per batch is reversed")

    @property
    def rows_per_batch_middle(self) -> float:
        """Rows of a batch halfway between the smallest and the largest."""
        return 0.5 * (self.rows_per_batch_low + self.rows_per_batch_high)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTimeLag:
    """How far the newest rows of some batches were behind their triggers [s]."""

    lag_s: float
    batch_share: float

    def __post_init__(self) -> None:
        if not 0 < self.batch_share <= 1:
            raise ValueError(
                f"event-time lag: batch_share is {self.batch_share}; expected above 0, up to 1"
            )


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
