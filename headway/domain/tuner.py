"""A tuner as stored in its file: what it tunes, what it is doing, what it has learned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from headway.domain.configuration import Configuration
from headway.domain.live import ChangeKind, Expectation, Proposal, Reason
from headway.domain.result import Result
from headway.lazy_classes import dataclass

TUNER_SCHEMA = "headway.tuner/v1"


class Phase(StrEnum):
    """What a tuner is doing."""

    OFF = "off"
    LEARN = "learn"
    HOLD = "hold"
    APPLYING = "applying"
    SETTLING = "settling"
    VERIFYING = "verifying"
    RESTORING = "restoring"
    BLIND = "blind"
    LOST = "lost"
    FROZEN = "frozen"

    @property
    def is_changing(self) -> bool:
        return self in (Phase.APPLYING, Phase.RESTORING)


@dataclass(frozen=True, slots=True, kw_only=True)
class TunerChange:
    """A change as written to the file before it is made; both settings are absolute.

    ``began_s`` and ``deadline_s`` are instants since 1970. ``num_tries`` counts starts of the
    query at ``then`` that failed.
    """

    number: int
    kind: ChangeKind
    reason: Reason
    now: Configuration
    then: Configuration
    began_s: float
    deadline_s: float
    expected: Expectation | None = None
    num_tries: int = 0
    pause_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeOutcome:
    """Outcome of a change: one line of the log.

    ``event`` is ``applied``, ``verified``, ``missed``, ``failed`` or ``restored``; ``at_s`` an
    instant since 1970. ``duration_s`` and ``late_ratio`` are of the batches that judged it.
    """

    event: str
    at_s: float
    why: str | None = None
    duration_s: float | None = None
    late_ratio: float | None = None
    pause_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ExplainedChange(Result):
    """A logged change with its alternatives and its outcome.

    ``proposal`` is None for changes without a forecast: going back, other partitions.
    """

    result_kind = "explained-change"
    change: TunerChange
    proposal: Proposal | None
    outcomes: tuple[ChangeOutcome, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockedChange:
    """A change that was undone, and until when it is not made again: an instant since 1970."""

    now: Configuration
    then: Configuration
    until_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LateBin:
    """Rows of five minutes, those of them that were late, and the highest rate in that time."""

    began_s: float
    batch_rows: float
    late_rows: float
    peak_per_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TunerState:
    """Everything that a tuner needs to continue after it was killed.

    ``profile_hash`` and ``target`` identify its profile and target, ``original`` is the setting
    before its first change, ``last_good`` the last one that met its expectation; ``root`` is the
    checkpoint. ``change`` is the change that is being made, or verified after it was made.
    ``changes_late_s`` are the seconds of arrivals that the last changes of each kind made late,
    ``pauses_s`` how long they paused the query, oldest first. ``spent_executor_s`` are the
    executor-seconds that were requested, by the beginnings of hours.
    ``daily_per_s`` are the input rates of the last days by slots of five minutes since 1970,
    ``calms_s`` how long numbers of executors were enough, the last times, oldest first, and
    ``returns_late_s`` the late seconds until they were left for more since the rate required it.
    """

    schema: str = TUNER_SCHEMA
    profile_hash: str
    target: str
    phase: Phase
    original: Configuration
    last_good: Configuration
    query_id: str | None = None
    root: str | None = None
    change: TunerChange | None = None
    num_changes: int = 0
    changed_at_s: tuple[float, ...] = ()
    changes_late_s: Mapping[ChangeKind, tuple[float, ...]] = field(
        default_factory=dict, metadata={"key": "costs", "items": ("kind", "late_s")}
    )
    pauses_s: Mapping[ChangeKind, tuple[float, ...]] = field(
        default_factory=dict, metadata={"key": "pauses", "items": ("kind", "pauses_s")}
    )
    up_late_s: float | None = None
    provisioning_s: tuple[float, ...] = ()
    blocked: tuple[BlockedChange, ...] = ()
    late: tuple[LateBin, ...] = ()
    spent_executor_s: Mapping[float, float] = field(
        default_factory=dict, metadata={"key": "spent", "items": ("began_s", "executor_s")}
    )
    daily_per_s: Mapping[int, float] = field(default_factory=dict)
    calms_s: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    returns_late_s: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    why: str = ""

    def is_blocked(self, now: Configuration, then: Configuration, at_s: float) -> bool:
        """Whether a change was undone not long ago."""
        return any(
            (blocked_change.now, blocked_change.then) == (now, then)
            and at_s < blocked_change.until_s
            for blocked_change in self.blocked
        )
