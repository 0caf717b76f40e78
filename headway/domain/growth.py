"""Batches that take longer in a fresh JVM, or become slower and slower for the same rows."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Literal, TypeAlias

from headway.domain.checks import require_not_negative, values_of
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

    Times are of tasks, over all stores; ``replay_s`` is for the ``replayed_rows``, if known.
    """

    rows: int
    num_stores: int
    replayed_rows: float
    load_s: float
    replay_s: float | None = None

    def __post_init__(self) -> None:
        times_and_rows = values_of(self, "rows replayed_rows load_s replay_s")
        require_not_negative("state that was loaded", **times_and_rows)
        if self.num_stores < 1:
            raise ValueError(f"state that was loaded: {self.num_stores} stores; expected 1 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUp:
    """The first batches of the query in fresh JVMs, before the part that the profile is fitted on.

    At ``start_age_s`` of the JVM the query's first batch began; ``first_batch_extra_s`` is what it
    took beyond its rows and its state: planning, and loading of classes. ``points`` are for the
    batches after it, youngest first; from ``steady_age_s`` on the drift applies. ``loaded`` is the
    state that was loaded, if known; ``executor_wait_s`` passed until the first executor was there.
    """

    start_age_s: float
    first_batch_extra_s: float
    steady_age_s: float
    points: tuple[WarmUpPoint, ...] = ()
    loaded: StateLoad | None = None
    executor_wait_s: float = 0.0

    def __post_init__(self) -> None:
        require_not_negative("warm-up", **values_of(self, "first_batch_extra_s executor_wait_s"))
        ages_s = [self.start_age_s, *(point.jvm_age_s for point in self.points), self.steady_age_s]
        if not self.start_age_s > 0 or ages_s != sorted(ages_s):
            raise ValueError("warm-up: expected positive ages, from start_age_s to steady_age_s")

    def ratio(self, jvm_age_s: float) -> float:
        """Duration at an age over that at the reference age, between points by logarithms.

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
                share = math.log(jvm_age_s / young.jvm_age_s, old.jvm_age_s / young.jvm_age_s)
                rise = old.duration_ratio / young.duration_ratio
                return float(young.duration_ratio * rise**share)
        return self.points[-1].duration_ratio


#: What grew together with the batches. A sink log is that of a file sink, which keeps all its files
#: and is read in addBatch.
GrowthCause: TypeAlias = Literal[
    "state_rows", "largest_task", "gc", "listing", "sink_log", "checkpoint"
]


def _numbers(growth: DurationGrowth | SlowGrowth, names: str) -> dict[str, float]:
    numbers = values_of(growth, names).items()
    return {name: float(number) for name, number in numbers if number is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class DurationGrowth:
    """Growth of the batches of the last profiled run, for the same rows: theory.md (E45).

    ``part`` is the driver phase or the stage that grew most; ``causes`` are what grew with it, the
    likeliest first. ``is_same_load`` says that all batches had about the same rows.

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
        times_s = values_of(self, "first_s part_first_s part_last_s part_rise_ratio")
        require_not_negative("growth", **times_s)
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
        extent = _numbers(self, "first_s last_s span_s is_same_load is_foreseeable")
        part = _numbers(
            self,
            "first_s last_s part_first_s part_last_s state_first_rows state_last_rows "
            "largest_first_share largest_last_share gc_first_s gc_last_s",
        )
        names = {"part": self.part, "causes": " ".join(self.causes)}
        return (
            Finding(code=FindingCode.BATCHES_GROW, numbers=extent),
            Finding(code=FindingCode.GROWTH_CAUSE, numbers=part, names=names),
        )


#: What grows slowly: a phase of the driver, its longer turn every few batches, or the state.
SlowMeasure: TypeAlias = Literal["phase", "compaction", "state_rows", "state_bytes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowGrowth:
    """Growth that a long run shows and a short one hides: theory.md (E52).

    ``rise_per_day``, with the ends of its 90% interval, are seconds by which a phase of the driver
    gets longer for the same rows, or longer in the batches that compact a log, one of
    ``every_batches``; or rows or bytes of the state. ``cause`` is what makes a phase longer, if
    known.

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
        return self.rise_low_per_day > 0.0

    @property
    def finding(self) -> Finding:
        return Finding(
            code=FindingCode.SLOW_GROWTH,
            numbers=_numbers(
                self, "span_s rise_per_day rise_low_per_day rise_high_per_day every_batches"
            ),
            names={"part": self.part, "measure": self.measure},
        )
