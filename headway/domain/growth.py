"""Batches that take longer in a fresh JVM, or become slower and slower for the same rows."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Literal, TypeAlias

from headway.domain.checks import require_not_negative
from headway.domain.finding import Finding, FindingCode
from headway.lazy_classes import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUpPoint:
    """How much longer batches take at an age of the JVM than at the reference age of the drift."""

    jvm_age_s: float
    duration_ratio: float
    num_batches: int

    def __post_init__(self) -> None:
        if not (self.jvm_age_s > 0 and self.duration_ratio > 0):
            raise ValueError(
                f"warm-up at {self.jvm_age_s:g} s is {self.duration_ratio:g}; "
                "expected a positive age and a positive ratio"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class StateLoad:
    """What loading the state took when the query went on from its checkpoint in a fresh JVM.

    Times are of tasks, over all stores together: ``load_s`` for all of it; ``replay_s`` is the part
    for the changes since the snapshot, ``replayed_rows``, or None if the store does not tell.
    """

    rows: int
    num_stores: int
    replayed_rows: float
    load_s: float
    replay_s: float | None = None

    def __post_init__(self) -> None:
        require_not_negative(
            "state that was loaded",
            rows=self.rows,
            replayed_rows=self.replayed_rows,
            load_s=self.load_s,
            replay_s=self.replay_s or 0.0,
        )
        if self.num_stores < 1:
            raise ValueError(f"state that was loaded: {self.num_stores} stores; expected 1 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUp:
    """The first batches of the query in fresh JVMs, before the part that the profile is fitted on.

    ``start_age_s`` is the age of the JVM at which the query's first batch began, and
    ``first_batch_extra_s`` what it took beyond its rows and its state: planning, and the loading of
    classes. ``points`` are for the batches after it, youngest first; from ``steady_age_s`` on the
    drift applies. ``loaded`` is the state that was loaded; None if that is not known.
    ``executor_wait_s`` passed from the start of the application until its first executor was there.
    """

    start_age_s: float
    first_batch_extra_s: float
    steady_age_s: float
    points: tuple[WarmUpPoint, ...] = ()
    loaded: StateLoad | None = None
    executor_wait_s: float = 0.0

    def __post_init__(self) -> None:
        require_not_negative(
            "warm-up",
            first_batch_extra_s=self.first_batch_extra_s,
            executor_wait_s=self.executor_wait_s,
        )
        ages_s = [self.start_age_s, *(point.jvm_age_s for point in self.points), self.steady_age_s]
        if not self.start_age_s > 0 or ages_s != sorted(ages_s):
            raise ValueError("warm-up: expected positive ages, from start_age_s to steady_age_s")

    def ratio(self, jvm_age_s: float) -> float:
        """Duration at an age over that at the reference age; needs at least one point.

        Straight lines between the points, in logarithms; level before the first and after the last.

        >>> points = tuple(
        ...     WarmUpPoint(jvm_age_s=age_s, duration_ratio=ratio, num_batches=1)
        ...     for age_s, ratio in ((4.0, 4.0), (16.0, 1.0))
        ... )
        >>> warm_up = WarmUp(start_age_s=2, first_batch_extra_s=1, steady_age_s=20, points=points)
        >>> warm_up.ratio(1.0), warm_up.ratio(8.0), warm_up.ratio(18.0)
        (4.0, 2.0, 1.0)
        """
        if jvm_age_s <= self.points[0].jvm_age_s:
            return self.points[0].duration_ratio
        for young, old in pairwise(self.points):
            if jvm_age_s <= old.jvm_age_s:
                share = math.log(jvm_age_s / young.jvm_age_s) / math.log(
                    old.jvm_age_s / young.jvm_age_s
                )
                rise = old.duration_ratio / young.duration_ratio
                return float(young.duration_ratio * rise**share)
        return self.points[-1].duration_ratio


#: What grew together with the batches: rows of the state; the share of rows in the largest
#: task, as with few keys that get most rows; time of a stage's tasks in garbage collection; time to
#: list the files of the source; time of the driver in addBatch with a file sink, which keeps a log
#: of all its files; time to write the files of the checkpoint.
GrowthCause: TypeAlias = Literal[
    "state_rows", "largest_task", "gc", "listing", "sink_log", "checkpoint"
]
_RECORDED = (
    *("state_first_rows", "state_last_rows", "largest_first_share", "largest_last_share"),
    *("gc_first_s", "gc_last_s"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DurationGrowth:
    """Growth of the batches of the last profiled run, for the same rows: theory.md (E45).

    Batches took ``first_s`` at the beginning of the growth and ``last_s`` at the end, ``span_s``
    later. ``is_same_load`` says that all had about the same rows. ``part`` is the driver phase or
    the stage that grew most, from ``part_first_s`` to ``part_last_s``; ``causes`` are what grew
    with it, the likeliest first, of which the state, the largest task and the garbage collection
    have numbers of their own.

    If it is measured well enough to be extrapolated, ``part_rise_ratio`` is by how much the part
    gets longer in a second, at the upper end of its 90% interval, and ``ended`` when the run ended:
    theory.md (P31). ``batch_ratio`` and ``autocorrelation`` are as of `DurationNoise`.

    >>> growth = DurationGrowth(first_s=0.7, last_s=3.2, span_s=780.0, part="stage 1",
    ...     part_first_s=0.3, part_last_s=2.6)
    >>> [finding.code.value for finding in growth.findings]
    ['batches_grow', 'growth_cause']
    """

    first_s: float
    last_s: float
    span_s: float
    is_same_load: bool = True
    part: str
    part_first_s: float
    part_last_s: float
    causes: tuple[GrowthCause, ...] = ()
    state_first_rows: float | None = None
    state_last_rows: float | None = None
    largest_first_share: float | None = None
    largest_last_share: float | None = None
    gc_first_s: float | None = None
    gc_last_s: float | None = None
    part_rise_ratio: float | None = None
    ended: str | None = None
    batch_ratio: float | None = None
    autocorrelation: float | None = None

    def __post_init__(self) -> None:
        require_not_negative(
            "growth",
            first_s=self.first_s,
            part_first_s=self.part_first_s,
            part_last_s=self.part_last_s,
            part_rise_ratio=self.part_rise_ratio or 0.0,
        )
        if not (self.last_s > self.first_s and self.span_s > 0):
            raise ValueError(
                f"growth from {self.first_s:g} s to {self.last_s:g} s in {self.span_s:g} s; "
                "expected longer batches at the end of a positive time"
            )

    @property
    def is_foreseeable(self) -> bool:
        """Whether it is measured well enough to say how long batches will be."""
        numbers = (self.part_rise_ratio, self.batch_ratio, self.autocorrelation)
        return self.ended is not None and None not in numbers

    def part_after_s(self, elapsed_s: float) -> float:
        """Time of the part that grew, some time after the run: the upper end."""
        return self.part_last_s + (self.part_rise_ratio or 0.0) * elapsed_s

    @property
    def findings(self) -> tuple[Finding, Finding]:
        """The growth, which is a headline, and its likely cause."""
        growth_s = {"first_s": self.first_s, "last_s": self.last_s}
        part_s = {"part_first_s": self.part_first_s, "part_last_s": self.part_last_s}
        recorded = {name: n for name in _RECORDED if (n := getattr(self, name)) is not None}
        extent = {
            "span_s": self.span_s,
            "is_same_load": float(self.is_same_load),
            "is_foreseeable": float(self.is_foreseeable),
        }
        return (
            Finding(code=FindingCode.BATCHES_GROW, numbers=growth_s | extent),
            Finding(
                code=FindingCode.GROWTH_CAUSE,
                numbers=growth_s | part_s | recorded,
                names={"part": self.part, "causes": " ".join(self.causes)},
            ),
        )


#: What grows slowly: a phase of the driver, its longer turn every few batches, or the state.
SlowMeasure: TypeAlias = Literal["phase", "compaction", "state_rows", "state_bytes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowGrowth:
    """Growth that a long run shows and a short one hides: theory.md (E52).

    It was seen in ``span_s`` until ``ended``. ``rise_per_day``, with the ends of its 90% interval,
    are seconds by which a phase of the driver gets longer for the same rows, or longer in the
    batches that compact a log, one of ``every_batches``; or rows or bytes of the state. ``cause``
    is what makes a phase longer, if that is known.

    >>> growth = SlowGrowth(
    ...     measure="phase", part="latest_offset", span_s=259200.0,
    ...     rise_per_day=0.01, rise_low_per_day=0.009, rise_high_per_day=0.011,
    ...     ended="2026-11-29T00:00:00Z",
    ... )
    >>> growth.is_certain, growth.finding.numbers["rise_per_day"]
    (True, 0.01)
    """

    measure: SlowMeasure
    part: str
    span_s: float
    rise_per_day: float
    rise_low_per_day: float
    rise_high_per_day: float
    ended: str
    every_batches: int = 1
    cause: GrowthCause | None = None

    def __post_init__(self) -> None:
        if not self.span_s > 0 or self.every_batches < 1:
            raise ValueError(
                f"slow growth of {self.part}: in {self.span_s:g} s, every {self.every_batches} "
                "batches; expected a positive time and at least 1"
            )
        if not self.rise_low_per_day <= self.rise_per_day <= self.rise_high_per_day:
            raise ValueError(
                f"slow growth of {self.part}: {self.rise_per_day:g} a day, between "
                f"{self.rise_low_per_day:g} and {self.rise_high_per_day:g}; expected an interval "
                "around it"
            )

    @property
    def is_certain(self) -> bool:
        """Whether the whole interval is growth."""
        return self.rise_low_per_day > 0.0

    @property
    def finding(self) -> Finding:
        """How much it grows in a day."""
        return Finding(
            code=FindingCode.SLOW_GROWTH,
            numbers={
                "span_s": self.span_s,
                "rise_per_day": self.rise_per_day,
                "rise_low_per_day": self.rise_low_per_day,
                "rise_high_per_day": self.rise_high_per_day,
                "every_batches": float(self.every_batches),
            },
            names={"part": self.part, "measure": self.measure},
        )
