"""Measured durations of the first batches of a fresh JVM."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from headway.domain.checks import require_not_negative


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
class WarmUp:
    """The first batches of the query in fresh JVMs, before the part that the profile is fitted on.

    ``start_age_s`` is the age of the JVM at which the query's first batch began, and
    ``first_batch_extra_s`` what that batch took beyond its rows: planning and the loading of
    classes. ``points`` are for the batches after it, youngest first; from ``steady_age_s`` on the
    drift applies.
    """

    start_age_s: float
    first_batch_extra_s: float
    steady_age_s: float
    points: tuple[WarmUpPoint, ...] = ()

    def __post_init__(self) -> None:
        require_not_negative("warm-up", first_batch_extra_s=self.first_batch_extra_s)
        ages_s = [self.start_age_s, *(point.jvm_age_s for point in self.points), self.steady_age_s]
        if not self.start_age_s > 0 or ages_s != sorted(ages_s):
            raise ValueError("warm-up: expected positive ages, from start_age_s to steady_age_s")

    def ratio(self, jvm_age_s: float) -> float:
        """Duration at an age over that at the reference age; needs at least one point.

        Straight lines between the points, in logarithms; level before the first and after the last.

        Examples
        --------
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
