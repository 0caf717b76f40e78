"""Queries of one application that take turns: what is known, decisions, results."""

from __future__ import annotations

from dataclasses import field, replace
from enum import StrEnum

from headway.domain.checks import require_not_negative, require_seconds
from headway.domain.result import Result
from headway.domain.target import Target
from headway.lazy_classes import dataclass


class Policy(StrEnum):
    """Which of the waiting queries runs next."""

    FCFS = "fcfs"
    ROUND_ROBIN = "rr"
    SBOX = "sbox"
    HIGHEST_RATE = "hr"
    LEAST_SLACK = "least-slack"
    PROMISE = "promise"
    ECONOMY = "economy"
    STAGGER = "stagger"
    AUTO = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowGrid:
    """The ends of a query's windows in event time, and the delay of its watermark.

    Spark's ``window(ts, length, slide, start)`` ends at ``start + length + k * slide``; the end of
    a window moves with ``start`` modulo the slide only, as all ends are multiples of it.
    """

    slide_s: float
    offset_s: float = 0.0
    watermark_delay_s: float = 0.0

    def __post_init__(self) -> None:
        require_seconds(slide_s=self.slide_s)
        require_not_negative("windows", watermark_delay_s=self.watermark_delay_s)

    def first_end_after_s(self, event_time_s: float) -> float:
        """The first end after an event time [s].

        >>> WindowGrid(slide_s=10.0, offset_s=3.0).first_end_after_s(13.0)
        23.0
        """
        return ((event_time_s - self.offset_s) // self.slide_s + 1.0) * self.slide_s + self.offset_s


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledQuery:
    """The declaration of a query when it joins a scheduler.

    ``most_wait_s`` is how long a query may be passed over; then it goes first under every policy.
    """

    name: str
    trigger_s: float
    windows: WindowGrid | None = None
    row_target: Target | None = None
    window_target: Target | None = None
    most_wait_s: float = 60.0

    def window_limit_s(self, closing_delay_s: float) -> float | None:
        """Time from the row that closes a window to its limit, which counts from its end [s]."""
        if self.windows is None or self.window_target is None:
            return None
        passed_s = self.windows.watermark_delay_s + closing_delay_s
        return max(self.window_target.limit_s - passed_s, 0.0)

    def __post_init__(self) -> None:
        require_seconds(trigger_s=self.trigger_s, most_wait_s=self.most_wait_s)
        if self.window_target is not None and self.windows is None:
            raise ValueError(f"{self.name}: a window target needs to know the windows")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryState:
    """A query that waits, as the policy sees it. Times are seconds since the epoch.

    ``closing_s`` is when the row that closes the next window is expected, or when it arrived;
    ``emits`` says that a window is closed and waits for the batch that emits it. ``duration_s`` is
    the predicted duration of the next batch, ``pair_s`` that of the next two, at an upper quantile.
    ``window_limit_s`` counts from ``closing_s``, ``row_limit_s`` from ``oldest_unread_s``.
    ``output_rows`` are the rows that the next batch is predicted to emit, ``removed_rows`` those
    that it is predicted to remove from the state. ``num_batches`` is more than one if a rate limit
    left rows behind.
    """

    name: str
    ready_s: float
    oldest_unread_s: float
    last_grant: int
    duration_s: float
    pair_s: float
    closing_s: float | None = None
    emits: bool = False
    window_limit_s: float | None = None
    row_limit_s: float | None = None
    output_rows: float = 0.0
    most_wait_s: float = 60.0
    removed_rows: float = 0.0
    num_batches: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ComingBack:
    """A query that runs, or gets a turn next, in its state after its batch has ended.

    ``closes_at_s`` is the event time from which on a row that the batch reads closes the next
    window; the query then comes back with ``emitting``. ``at_its_tick``: not before a tick that is
    known once it is back.
    """

    state: QueryState
    closes_at_s: float
    at_its_tick: bool = False

    @property
    def emitting(self) -> QueryState:
        """With a closed window that waits for the batch which emits it."""
        return replace(self.state, emits=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One decision: which queries waited, their order, and which were started.

    ``memory_is_short``: the query that frees the most state came first. ``ahead``: decided by the
    order that was left in the JVM, in which queries that had just come back are as they were
    expected.
    """

    at_s: float
    policy: Policy
    num_running: int
    at_once: int
    states: tuple[QueryState, ...]
    order: tuple[str, ...]
    granted: tuple[str, ...]
    memory_is_short: bool = False
    ahead: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryReport:
    """Results of a query under the gate."""

    name: str
    num_grants: int
    num_batches: int
    wait_mean_s: float
    wait_max_s: float
    predicted_duration_mean_s: float | None
    observed_duration_mean_s: float | None
    num_windows: int = 0
    num_windows_late: int = 0
    num_lease_ends: int = 0
    num_rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleReport:
    """Results of a gate while it was in force.

    ``num_reliefs`` counts how often memory became short, and the query that frees the most went
    first for a while. ``num_ahead`` is the number of grants that were decided ahead, and given when
    a batch ended, ``num_queries`` that of the queries that are under it now.
    """

    policy: Policy
    at_once: int
    num_decisions: int
    decision_p50_s: float
    decision_p99_s: float
    opened_because: str | None
    queries: tuple[QueryReport, ...]
    num_reliefs: int = 0
    num_ahead: int = 0
    num_queries: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Replay(Result):
    """A replayed decision log: what was decided, and whether the replay decides the same."""

    result_kind = "schedule-replay"
    policy: Policy
    num_decisions: int = field(metadata={"key": "decisions"})
    num_differing: int = field(metadata={"key": "differing"})
    num_batches: int = field(metadata={"key": "batches"})
    predicted_mean_s: float = field(metadata={"key": "predicted_duration_mean_s"})
    observed_mean_s: float = field(metadata={"key": "measured_duration_mean_s"})
