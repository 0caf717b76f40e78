"""Figures of a job that people declare before there is a log, with their ranges."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

from headway.domain.configuration import Configuration
from headway.lazy_classes import dataclass

#: Half the width of a 90% interval in standard deviations: the normal quantile at 95%.
Z90 = 1.6448536269514722
#: Where the figures of a profile come from.
Provenance: TypeAlias = Literal["measured", "declared"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedRange:
    """A declared duration [s]: as likely above ``mid_s`` as below; ``low_s`` to ``high_s`` contains
    it with a probability of 90%.

    >>> StatedRange(low_s=1.0, mid_s=2.0, high_s=8.0).at(1.6448536269514722)
    8.0
    """

    low_s: float
    mid_s: float
    high_s: float

    def __post_init__(self) -> None:
        if not 0 <= self.low_s <= self.mid_s <= self.high_s < math.inf:
            raise ValueError(
                f"stated range {self.low_s:g}, {self.mid_s:g}, {self.high_s:g}; "
                "expected 0 <= low_s <= mid_s <= high_s"
            )

    def at(self, score: float) -> float:
        """The value at a normal score: 0 is the middle, 1.645 the upper end: theory.md (P19).

        Two halves of a lognormal around the middle, or a straight line to or from zero.

        >>> about = StatedRange(low_s=0.0, mid_s=0.01, high_s=0.02)
        >>> about.at(0.0), about.at(-1.6448536269514722), round(about.at(2 * 1.6448536269514722), 3)
        (0.01, 0.0, 0.04)
        """
        end_s = self.high_s if score >= 0 else self.low_s
        steps = abs(score) / Z90
        if self.mid_s > 0 and end_s > 0:
            return float(self.mid_s * (end_s / self.mid_s) ** steps)
        return max(self.mid_s + (end_s - self.mid_s) * steps, 0.0)

    def scaled(self, ratio: float) -> StatedRange:
        return StatedRange(
            low_s=self.low_s * ratio, mid_s=self.mid_s * ratio, high_s=self.high_s * ratio
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredCosts:
    """The declared costs of a micro-batch, and the setting that is used unless another is given.

    ``task_per_row`` has one range for each stage of the profile. ``partitions_are_stated`` says
    whether the shuffle partitions of the configuration are the current ones; otherwise they were
    not declared.
    """

    driver: StatedRange
    task_fixed: StatedRange
    task_per_row: tuple[StatedRange, ...]
    configuration: Configuration
    partitions_are_stated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredWork:
    """The declared costs of a batch job: core time of all its tasks, and time without tasks."""

    work: StatedRange
    driver: StatedRange
