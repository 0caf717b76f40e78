"""Nouns of a running query: observations, estimates and proposed changes."""

from __future__ import annotations

import math
from dataclasses import field
from enum import StrEnum
from typing import Literal, TypeAlias

from headway.assumptions.live import CATCH_UP_S, CHANGES_PER_HOUR
from headway.domain.configuration import Configuration
from headway.domain.playback import Outage, RateTrace
from headway.domain.prediction import Interval, LatencyDistribution, Prediction
from headway.domain.result import Result
from headway.domain.target import Target
from headway.lazy_classes import dataclass
from headway.units import S_PER_HOUR


class ChangeKind(StrEnum):
    """Kinds of changes, by what they cost."""

    ADD = "add executors"
    REMOVE = "remove executors"
    RESTART = "restart"
    APPLICATION = "new application"
    REPARTITION = "offline repartition"


class Reason(StrEnum):
    """Why a change is proposed, or why none is."""

    HOLD = "the setting holds"
    FORECAST = "the forecast rate needs more"
    JUMP = "the rate has jumped"
    BACKLOG = "the backlog has to be worked off"
    SILENT = "nothing was heard of the query for too long"
    IDLE = "idle nodes have cost what coming back costs"
    TRIGGER = "another trigger interval keeps more rows in time"
    CONFIRMING = "the forecast rate needs more; waiting for a second bin"
    TOO_MANY = "the maximum number of changes an hour is reached"
    BUDGET = "the node-hours of the day are used up"
    AT_MAXIMUM = "no setting within bounds meets the target at the forecast rate"
    LEARNING = "too little has been seen yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenBatch:
    """One batch that has ended.

    ``late_rows`` are those older than the limit when it was committed. ``tells_costs`` is false for
    batches that cannot be used for costs: soon after a change or a start, with young executors, or
    with failed tasks.
    """

    batch_rows: float
    duration_s: float
    late_rows: float
    tells_costs: bool = True

    def __post_init__(self) -> None:
        if not (self.batch_rows >= 0 and self.duration_s > 0 and self.late_rows >= 0):
            raise ValueError("need batch_rows and late_rows of 0 or more, and a positive duration")


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """What is known of a running query at a moment: after each batch, or on a tick of the clock.

    ``at_s`` is the moment, on any clock that only goes forward. ``arrived_rows`` had arrived since
    any fixed moment, by the offsets of the source, which was asked for them at ``arrived_at_s``:
    before the batch that reported them; None: now. ``backlog_rows`` had arrived and were in no
    batch when the last one began. Both numbers of rows are None if unknown. ``executors`` are the
    requested ones, alive or being started, ``num_pending`` those being started. ``batch`` is the
    one that has just ended; None for a tick of the clock. ``silent_s`` is how long the current,
    unreported batch has been running.
    """

    at_s: float
    arrived_rows: float | None
    backlog_rows: float | None
    executors: int
    arrived_at_s: float | None = None
    num_pending: int = 0
    batch: SeenBatch | None = None
    silent_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The bounds of a rule.

    A backlog must be processed within ``catch_up_s``. ``changes_per_hour`` is the maximum number of
    changes in any hour; steps up of a query that is behind are exempt. ``budget_executor_s`` is the
    maximum in any 24 hours; inf is no limit. ``quiet_s`` are starts and ends of times, on the
    signals' clock, at which nothing is changed.

    >>> Bounds(min_executors=2, max_executors=12).clipped(40)
    12
    """

    min_executors: int
    max_executors: int
    catch_up_s: float = CATCH_UP_S.value
    changes_per_hour: int = CHANGES_PER_HOUR.value
    budget_executor_s: float = math.inf
    quiet_s: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.min_executors <= self.max_executors:
            raise ValueError(
                f"min_executors is {self.min_executors}, max_executors {self.max_executors}; "
                "expected at least 1, and no fewer at most"
            )
        if not (self.catch_up_s > 0 and self.changes_per_hour >= 1 and self.budget_executor_s > 0):
            raise ValueError("need catch_up_s, changes_per_hour and budget_executor_s above 0")

    def clipped(self, executors: int) -> int:
        return min(max(executors, self.min_executors), self.max_executors)

    def is_quiet(self, at_s: float) -> bool:
        return any(start_s <= at_s < end_s for start_s, end_s in self.quiet_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The estimate from all signals up to a moment.

    ``rate_per_s`` is the current level, ``forecast_per_s`` that of ``lead_s`` later,
    ``planned_per_s`` the highest rate that is prepared for. ``cost_ratio`` is the ratio of
    durations to predicted ones. ``late_ratio`` is the share of late rows over the time of the
    budget, ``budget_used_ratio`` over what the target allows.
    """

    rate_per_s: float
    forecast_per_s: float
    planned_per_s: float
    lead_s: float
    error_ratio: float
    cost_ratio: float
    late_ratio: float
    budget_used_ratio: float
    is_jump: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """A setting that was weighed: what it gains and what changing to it costs [node-seconds]."""

    executors: int
    trigger_s: float
    sustained_per_s: float
    gain_node_s: float
    cost_node_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A change from one setting to another, its reason, and what it gains and costs [node-seconds].

    For a step up ``gain_node_s`` is inf: the target is missed without it. The setting after it is
    absolute, so that a repeated request has no further effect. ``waiting_rows`` wait beyond the
    usual.
    """

    kind: ChangeKind
    reason: Reason
    at_s: float
    before_executors: int
    after_executors: int
    before_trigger_s: float
    after_trigger_s: float
    gain_node_s: float
    cost_node_s: float
    estimate: Estimate
    waiting_rows: float = 0.0
    alternatives: tuple[Alternative, ...] = ()

    @property
    def is_up(self) -> bool:
        return self.after_executors > self.before_executors


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """Expectation for a changed setting, written down before the change.

    90% intervals: the sustained rate, mean batch duration, and the latency of the target.
    ``pause_s`` is how long no batch ends because of the change, ``late_s`` how many seconds of
    arrivals are late until it has taken effect and the backlog is worked off, both in the middle
    of what is expected. ``back_within_s`` is an upper bound of the time that this takes [s].
    """

    sustained_per_s: Interval
    duration_s: Interval
    latency_s: Interval
    pause_s: float
    late_s: float
    back_within_s: float

    def is_kept(self, mean_duration_s: float) -> bool:
        """Whether batches since the change are within the upper end of the expected duration."""
        return mean_duration_s <= self.duration_s.high


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorStep:
    """Requested executors, and the trigger interval, from a moment on [s]."""

    at_s: float
    executors: int
    trigger_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyOutcome:
    """Outcome of one policy under a trace, the mean of all runs.

    ``constant`` is the constant that its user has to set, as text. ``executor_s`` are the requested
    executors, over time; ``kept_share`` is the share of five-minute windows in which the target was
    met. ``steps`` are the changes of the first run, the first at the beginning;
    ``stretch_late_ratio`` is the share of late rows in even stretches of the trace.
    """

    policy: str
    constant: str
    executor_s: float
    late_ratio: float
    kept_share: float
    changes_per_run: float
    reversals_per_run: float
    steps: tuple[ExecutorStep, ...]
    stretch_late_ratio: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PolicyComparison(Result):
    """Policies under one trace: the same rows, noise and provisioning times for each."""

    result_kind = "policies"
    trace: RateTrace
    outages: tuple[Outage, ...]
    limit_s: float
    most_late_ratio: float
    min_executors: int
    max_executors: int
    triggers_s: tuple[float, ...]
    executors_per_node: int
    num_runs: int
    outcomes: tuple[PolicyOutcome, ...]
    stretch_rates_per_s: tuple[float, ...]

    def meets(self, outcome: PolicyOutcome) -> bool:
        """Whether no more rows are late than the target allows."""
        return outcome.late_ratio <= self.most_late_ratio

    @property
    def feasible(self) -> bool:
        """Whether a policy meets the target."""
        return any(map(self.meets, self.outcomes))

    def node_hours(self, outcome: PolicyOutcome) -> float:
        return outcome.executor_s / self.executors_per_node / S_PER_HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveBatch:
    """A micro-batch of a running query, as its progress reports it.

    ``started_s`` is an instant since 1970, ``committed_s`` when its rows were committed,
    ``ended_s`` when Spark was done with it. ``position_rows`` is how far it has read its sources,
    in rows since their beginning, ``available_rows`` how far they had come when it was planned;
    None for sources whose offsets count something else, or are unknown. ``num_cores`` are those of
    the executors when it was reported, ``jvm_started_s`` when the oldest of them started, an
    instant since 1970; None if unknown. ``free_s`` is when Spark was done with the batch before it,
    also with one without rows; None of the first batch of a run.
    """

    query_id: str
    run_id: str
    query_name: str | None
    batch_id: int
    started_s: float
    committed_s: float
    ended_s: float
    num_rows: int
    position_rows: int | None = None
    available_rows: int | None = None
    shuffle_partitions: int | None = None
    sink: str | None = None
    num_cores: int | None = None
    jvm_started_s: float | None = None
    free_s: float | None = None

    @property
    def duration_s(self) -> float:
        """How long Spark took for it [s]."""
        return self.ended_s - self.started_s


#: Verdict of a look at a running query, the most urgent first: it has failed; nothing within the
#: bounds meets the target at the rate that arrives; a batch runs for longer than nearly all do;
#: batches have come to take longer, or less long, than the profile says; more rows were late than
#: the target allows; there are too few batches to say anything; the target is met, as predicted.
Standing: TypeAlias = Literal[
    "failed", "out_of_bounds", "silent", "drifted", "late", "learning", "held"
]
#: How a query has ended: with an error, without one, or without a word in its log.
Ended: TypeAlias = Literal["failed", "stopped", "unheard"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenDrift:
    """Durations of batches over their predictions.

    ``since_s`` is the instant at which a drift most likely began; None without an alarm.
    ``num_batches_to_find`` is the number of batches after which durations that have become a fifth
    longer raise an alarm; None if before that they would be taken for the usual difference of runs.
    """

    duration_ratio: float = field(metadata={"then": {"alarm": "is_alarm"}})
    since_s: float | None = None
    num_batches_to_find: int | None = None

    @property
    def is_alarm(self) -> bool:
        """Whether it exceeds chance."""
        return self.since_s is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedChange:
    """A change that a new plan would make, its gain and its cost.

    ``saved_node_s_per_hour`` is the number of node-seconds that an hour at the new setting saves,
    negative if it takes more; ``latency_now_s`` and ``latency_then_s`` are the planned latencies,
    None if none can be quoted; ``pause_s`` is how long the query does not run, ``late_s`` the
    seconds of arrivals that are late until it has taken effect and the backlog is worked off.
    """

    now: Configuration
    then: Configuration
    why: str
    saved_node_s_per_hour: float
    latency_now_s: float | None
    latency_then_s: float | None
    pause_s: float
    late_s: float


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Look(Result):
    """Everything that one look at a running query shows.

    ``seen_s`` is the time span of the batches in the look; ``latency`` is measured over their rows,
    ``late_ratio`` the share of the rows that were later than the target's limit, and
    ``budget_left_ratio`` what is left of the share that may be late, negative if more were.
    ``silent_s`` is the time since the query last reported, ``ended`` how it has ended; None while
    it runs.
    """

    result_kind = "watch"
    query: str
    target: Target
    standing: Standing
    at_s: float
    seen_s: float
    num_batches: int
    configuration: Configuration
    rate_per_s: float | None
    prediction: Prediction | None
    latency: LatencyDistribution | None
    batch_duration: LatencyDistribution | None
    utilization_ratio: float | None
    backlog_rows: float | None
    silent_s: float
    late_ratio: float | None
    budget_left_ratio: float | None
    drift: SeenDrift | None
    change: WatchedChange | None
    why_no_change: str | None = None
    is_feasible: bool = True
    ended: Ended | None = None
