"""A running query as it is seen batch by batch, and what a look at it tells."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from headway.domain.configuration import Configuration
from headway.domain.prediction import LatencyDistribution, Prediction
from headway.domain.result import Result
from headway.domain.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveBatch:
    """A micro-batch of a running query, as its progress reports it.

    ``started_s`` is an instant since 1970, ``committed_s`` when its rows were committed,
    ``ended_s`` when Spark was done with it. ``position_rows`` is how far it has read its sources,
    in rows since they began, ``available_rows`` how far they had come when it was planned; None of
    sources whose offsets count something else, or that do not tell. ``num_cores`` are those of the
    executors when it was reported, ``jvm_started_s`` when the oldest of them started, an instant
    since 1970; None where nothing tells.
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

    @property
    def duration_s(self) -> float:
        """How long Spark took for it [s]."""
        return self.ended_s - self.started_s


class Standing(StrEnum):
    """What a look at a running query says, the most pressing first."""

    OUT_OF_BOUNDS = "out_of_bounds"
    """Nothing within the bounds meets the target at the rate that arrives."""
    SILENT = "silent"
    """A batch runs for longer than nearly all do."""
    DRIFTED = "drifted"
    """Batches have come to take longer, or less long, than the profile says."""
    LATE = "late"
    """More rows were late than the target allows."""
    LEARNING = "learning"
    """There are too few batches to say anything."""
    HELD = "held"
    """The target is met, as predicted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenDrift:
    """Durations of batches over what the profile predicts of them.

    ``since_s`` is the instant at which a drift most likely began; None without an alarm.
    ``num_batches_to_find`` is the number of batches after which durations that have become a fifth
    longer raise it; None where they are taken for what runs differ by before.
    """

    duration_ratio: float
    since_s: float | None = None
    num_batches_to_find: int | None = None

    @property
    def is_alarm(self) -> bool:
        """Whether it is more than chance."""
        return self.since_s is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedChange:
    """A change that planning anew would make, what it gains and what it costs.

    ``saved_node_s_per_hour`` are node-seconds that an hour at the new setting saves, negative where
    it takes more; ``latency_now_s`` and ``latency_then_s`` the planned latencies, None where none
    can be quoted; ``pause_s`` how long the query stands still, ``late_s`` the seconds of arrivals
    that come too late for it.
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
    """Everything that one look at a running query tells.

    ``seen_s`` is the time that the batches span which were looked at; ``latency`` is measured over
    their rows, ``late_ratio`` the share of the rows that were later than the target's limit, and
    ``budget_left_ratio`` what is left of the share that may be late, negative where more were.
    ``silent_s`` is how long nothing was heard. ``outside`` says that the setting, as it runs, lies
    outside what the profile has seen.
    """

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
