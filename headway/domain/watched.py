"""A running query as it is seen batch by batch, and the result of a look at it."""

from __future__ import annotations

from dataclasses import field
from typing import Literal, TypeAlias

from headway.domain.configuration import Configuration
from headway.domain.prediction import LatencyDistribution, Prediction
from headway.domain.result import Result
from headway.domain.target import Target
from headway.lazy_classes import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveBatch:
    """A micro-batch of a running query, as its progress reports it.

    Instants are since 1970. ``position_rows`` is how far it has read its sources, in rows since
    their beginning, ``available_rows`` how far they had come when it was planned; None for sources
    whose offsets count something else. ``num_cores`` are those of the executors then, of which the
    oldest began at ``jvm_started_s``.
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
        return self.ended_s - self.started_s


#: Verdict of a look at a running query, the most urgent first: that nothing within the bounds meets
#: the target, that a batch takes too long, or batches no longer what the profile says, and so on.
Standing: TypeAlias = Literal["out_of_bounds", "silent", "drifted", "late", "learning", "held"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenDrift:
    """Durations of batches over their predictions.

    ``since_s`` is the instant at which a drift most likely began; None without an alarm.
    ``num_batches_to_find`` is the number of batches after which durations that have become a fifth
    longer raise an alarm; None if they would be taken for the usual difference of runs before.
    """

    duration_ratio: float = field(metadata={"then": {"alarm": "is_alarm"}})
    since_s: float | None = None
    num_batches_to_find: int | None = None

    @property
    def is_alarm(self) -> bool:
        return self.since_s is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedChange:
    """A change that a new plan would make, its gain and its cost.

    The latencies are planned ones, None if none can be quoted. For ``pause_s`` the query does not
    run; ``late_s`` are the seconds of arrivals that are late until the backlog is worked off.
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

    ``seen_s`` is the time span of the batches in the look, ``latency`` that of their rows,
    ``late_ratio`` the share later than the target's limit, and ``budget_left_ratio`` what is left
    of the share that may be late, negative if more were. ``silent_s`` is the time since the query
    last reported.
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
