"""Progress of a run -> what its rows and windows really waited for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from campaign.workloads import ARRIVALS, WINDOWS, WindowShape
from headway.assumptions.advice import MOST_AGE_GROWTH_RATIO
from headway.models.arrays import Array
from headway.models.laws.distributions import uniform_mixture_quantile
from headway.runtime.measure import (
    age_growth_ratio,
    begun_epoch_s,
    committed_epoch_s,
)
from headway.units import ms_to_s

QUANTILES = (0.5, 0.95, 0.99)
_LEAST_BATCHES = 2
_LEAST_WINDOWS = 3

Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A distribution as it was measured [s]."""

    mean: float
    p50: float
    p95: float
    p99: float
    count: int

    @classmethod
    def of(cls, values_s: Array) -> Measured:
        """Of values that count the same."""
        p50, p95, p99 = (float(value) for value in np.quantile(values_s, QUANTILES))
        return cls(mean=float(values_s.mean()), p50=p50, p95=p95, p99=p99, count=len(values_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What a run did, over the batches after its warm-up; instants in seconds since 1970."""

    from_s: float
    to_s: float
    num_batches: int
    rows_per_s: float
    age_growth_ratio: float
    latency: Measured
    duration: Measured
    windows: Measured | None

    @property
    def kept_up(self) -> bool:
        """Whether rows did not become ever older."""
        return self.age_growth_ratio <= MOST_AGE_GROWTH_RATIO.value

    def as_json(self) -> dict[str, Any]:
        """For a line of results."""
        return {**asdict(self), "kept_up": self.kept_up}


@dataclass(frozen=True, slots=True)
class _Batch:
    num_rows: int
    arrivals_s: Array
    begun_s: float
    duration_s: float
    commit_s: float


def truth_of(events: Sequence[Event], after_s: float, windows: WindowShape | None) -> Truth | None:
    """What was measured of the batches triggered after an instant; None if they are too few."""
    batches = [
        _batch(event)
        for event in events
        if event["numInputRows"] > 0 and begun_epoch_s(event) >= after_s
    ]
    if len(batches) < _LEAST_BATCHES:
        return None
    elapsed_s = batches[-1].commit_s - batches[0].commit_s
    return Truth(
        from_s=batches[0].begun_s,
        to_s=batches[-1].commit_s,
        num_batches=len(batches),
        rows_per_s=sum(batch.num_rows for batch in batches[1:]) / elapsed_s,
        age_growth_ratio=age_growth_ratio(
            np.array([batch.commit_s for batch in batches]),
            np.array([batch.arrivals_s[0] for batch in batches]),
        ),
        latency=_latency(batches),
        duration=Measured.of(np.array([batch.duration_s for batch in batches])),
        windows=None if windows is None else _windows(events, after_s, windows),
    )


def _batch(event: Event) -> _Batch:
    seen = event["observedMetrics"][ARRIVALS]
    ends_us = seen.get("quantiles_us") or (seen["first_us"], seen["last_us"])
    return _Batch(
        num_rows=event["numInputRows"],
        arrivals_s=np.array(ends_us) / 1e6,
        begun_s=begun_epoch_s(event),
        duration_s=ms_to_s(event["durationMs"]["triggerExecution"]),
        commit_s=committed_epoch_s(event),
    )


def _latency(batches: Sequence[_Batch]) -> Measured:
    """Rows lie evenly in each part of their batch's arrivals, and the parts hold equally many."""
    youngest, oldest, weights = [], [], []
    for batch in batches:
        ages_s = batch.commit_s - batch.arrivals_s
        oldest += list(ages_s[:-1])
        youngest += list(ages_s[1:])
        weights += [batch.num_rows / (len(ages_s) - 1)] * (len(ages_s) - 1)
    low, high, weight = np.array(youngest), np.array(oldest), np.array(weights)
    p50, p95, p99 = uniform_mixture_quantile(np.array(QUANTILES), low, high, weight)
    return Measured(
        mean=float(np.average((low + high) / 2, weights=weight)),
        p50=float(p50),
        p95=float(p95),
        p99=float(p99),
        count=sum(batch.num_rows for batch in batches),
    )


def window_commits_s(events: Sequence[Event]) -> dict[float, float]:
    """End of each window that was emitted, and the commit of the last batch that did [epoch s]."""
    final_s: dict[float, float] = {}
    for event in events:
        seen = (event.get("observedMetrics") or {}).get(WINDOWS) or {}
        for end_us in seen.get("ends_us") or ():
            final_s[end_us / 1e6] = committed_epoch_s(event)
    return final_s


def _windows(events: Sequence[Event], after_s: float, shape: WindowShape) -> Measured | None:
    """From each window's end to the commit of the last batch that emitted it."""
    # A window that ends with the run may still be emitted again.
    until_s = committed_epoch_s(events[-1]) - shape.size_s - shape.watermark_delay_s
    waited_s = [
        at_s - end_s
        for end_s, at_s in window_commits_s(events).items()
        if after_s < end_s < until_s
    ]
    return Measured.of(np.array(waited_s)) if len(waited_s) >= _LEAST_WINDOWS else None
