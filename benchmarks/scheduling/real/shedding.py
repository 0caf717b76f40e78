"""A query beyond capacity: what its rows cost, which of them to shed, and how many are in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from real.measured import committed_s, epoch_s

LIMIT_S = 2.0
TRIGGER_S = 1.0
CHEAP_SHARE = 0.8
USED_RATIO = 0.9
"""Share of the trigger interval that batches are to fill: they vary."""
WAYS = ("none", "blind", "by-cost")
FOREVER_S = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCosts:
    """Time of a batch without rows, and that a row adds, by its class [s]; shed rows cost too."""

    fixed_s: float
    cheap_s: float
    dear_s: float
    shed_s: float

    @property
    def capacity_per_s(self) -> float:
        """Rows per second of the mix that fill the trigger interval.

        >>> round(RowCosts(fixed_s=0.2, cheap_s=2e-6, dear_s=1e-5, shed_s=1e-6).capacity_per_s)
        222222
        """
        usual_s = CHEAP_SHARE * self.cheap_s + (1.0 - CHEAP_SHARE) * self.dear_s
        return (1.0 - self.fixed_s / TRIGGER_S) / usual_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Age from which a row of each class is shed [s]."""

    cheap_s: float
    dear_s: float

    def kept_ratio(self) -> float:
        """Share of rows that are kept, of which all are in time where batches keep the trigger."""
        cheap, dear = (min(one / TRIGGER_S, 1.0) for one in (self.cheap_s, self.dear_s))
        return CHEAP_SHARE * cheap + (1.0 - CHEAP_SHARE) * dear


def limits_of(way: str, rate_per_s: float, costs: RowCosts) -> Limits:
    """The ages that fill the trigger interval: of all rows alike, or of dear rows first.

    In a batch lie the rows of a trigger interval; with a limit `x` those of `x / T` of it are kept.

    >>> costs = RowCosts(fixed_s=0.2, cheap_s=2e-6, dear_s=1e-5, shed_s=0.0)
    >>> rate = 1.6 * costs.capacity_per_s
    >>> [round(limits_of(way, rate, costs).kept_ratio(), 3) for way in ("blind", "by-cost")]
    [0.547, 0.84]
    """
    if way == "none":
        return Limits(cheap_s=FOREVER_S, dear_s=FOREVER_S)
    longest_s = LIMIT_S - TRIGGER_S
    rows = rate_per_s * TRIGGER_S
    left_s = USED_RATIO * TRIGGER_S - costs.fixed_s - rows * costs.shed_s
    cheap_s = CHEAP_SHARE * rows * (costs.cheap_s - costs.shed_s)
    dear_s = (1.0 - CHEAP_SHARE) * rows * (costs.dear_s - costs.shed_s)
    if way == "blind":
        same_s = min(max(left_s / (cheap_s + dear_s), 0.0) * TRIGGER_S, longest_s)
        return Limits(cheap_s=same_s, dear_s=same_s)
    kept_cheap = min(max(left_s / cheap_s, 0.0), 1.0)
    kept_dear = min(max((left_s - cheap_s) / dear_s, 0.0), 1.0)
    # All of a class: also those that a late batch has left waiting.
    return Limits(
        cheap_s=longest_s if kept_cheap == 1.0 else kept_cheap * TRIGGER_S,
        dear_s=longest_s if kept_dear == 1.0 else kept_dear * TRIGGER_S,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class InTime:
    """Rows of a run [rows]: all, shed, and those that the sink had within the limit."""

    rows: int
    shed: int
    in_time: float
    differing: int


def in_time(progress: Sequence[Mapping[str, Any]], limits: Limits, from_s: float) -> InTime:
    """Rows in time, by the starts and ends of batches: rows arrive at even distances.

    ``differing`` counts the rows that Spark read and the query did not count, kept or shed.
    """
    rows = shed = differing = 0
    punctual, before_s = 0.0, None
    for one in progress:
        start_s = epoch_s(one["timestamp"])
        if before_s is not None and start_s >= from_s and one["numInputRows"]:
            seen = one["observedMetrics"]["shedding"]
            rows += seen["rows"]
            shed += seen["shed"]
            differing += abs(seen["rows"] - one["numInputRows"])
            interval_s = start_s - before_s
            latest_s = LIMIT_S - (committed_s(one) - start_s)
            kept = (
                np.clip(min(limit_s, latest_s) / interval_s, 0.0, 1.0)
                for limit_s in (limits.cheap_s, limits.dear_s)
            )
            punctual += seen["rows"] * float(np.dot([CHEAP_SHARE, 1.0 - CHEAP_SHARE], list(kept)))
        before_s = start_s
    return InTime(rows=rows, shed=shed, in_time=punctual, differing=differing)
