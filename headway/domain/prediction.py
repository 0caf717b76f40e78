"""Predictions for a setting."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import field

from headway.domain.configuration import Arrivals, Configuration
from headway.domain.declared import Provenance
from headway.domain.finding import NOT_QUOTED, Finding, FindingCode
from headway.domain.later import made_when_asked
from headway.domain.plan_parts import Restart
from headway.domain.result import Result
from headway.domain.stage import phase_called
from headway.domain.target import Metric
from headway.lazy_classes import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A 90% interval; the upper end is ``inf`` if the setting may be saturated."""

    low: float
    high: float

    @property
    def is_open(self) -> bool:
        return math.isinf(self.high)


QUOTED_PROBABILITIES = (0.50, 0.95, 0.99)
"""Of the percentiles that are stated of every distribution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyDistribution:
    """Mean and percentiles of a latency or a duration [s]."""

    mean_s: float = field(metadata={"key": "mean"})
    p50_s: float = field(metadata={"key": "p50"})
    p95_s: float = field(metadata={"key": "p95"})
    p99_s: float = field(metadata={"key": "p99"})
    interval90_mean_s: Interval | None = field(
        default=None, metadata={"key": "interval90.mean", "pair": True}
    )
    interval90_p99_s: Interval | None = field(
        default=None, metadata={"key": "interval90.p99", "pair": True}
    )

    @property
    def statistics_s(self) -> dict[str, float]:
        """Mean and percentiles by their displayed names [s]."""
        return {"mean": self.mean_s, "p50": self.p50_s, "p95": self.p95_s, "p99": self.p99_s}

    @property
    def intervals90_s(self) -> dict[str, Interval]:
        """The known 90% intervals, by statistic [s]."""
        intervals_s = {"mean": self.interval90_mean_s, "p99": self.interval90_p99_s}
        return {name: interval for name, interval in intervals_s.items() if interval is not None}

    @classmethod
    def of(cls, mean_s: float, quantiles_s: Iterable[float]) -> LatencyDistribution:
        """From a mean and the quantiles at :data:`QUOTED_PROBABILITIES`, in that order."""
        p50_s, p95_s, p99_s = (float(value) for value in quantiles_s)
        return cls(mean_s=mean_s, p50_s=p50_s, p95_s=p95_s, p99_s=p99_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowing:
    """How one or several runs would narrow the answer to one question.

    ``statistic`` names the latency in question. Its 90% intervals [s] are None if no latency can be
    quoted; ``error_now_ratio`` and ``error_after_ratio`` are standard deviations of the fitted over
    the true mean duration of a batch at the setting in question.
    """

    statistic: str
    interval_now_s: Interval | None
    interval_after_s: Interval | None
    error_now_ratio: float
    error_after_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvisedRun:
    """One run, and what it would show.

    ``rate_per_s`` is the rate at which to run it [records/s], ``num_rows`` the rows per batch at
    that rate, ``num_batches`` the number of batches that suffices, ``duration_s`` how long it
    takes. It should be run ``num_repeats`` times.
    """

    learns: str
    why: str
    configuration: Configuration
    rate_per_s: float
    num_rows: float
    num_batches: int
    duration_s: float
    num_repeats: int = 1
    new_checkpoint: bool = False
    narrowing: Narrowing | None = None


@made_when_asked("next_run", "stability_is_sure")
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Prediction(Result):
    """Prediction for a configuration under given arrivals.

    The latencies are None if the setting is not stable; ``sustainable_rate_per_s`` is the highest
    rate at which it is. They are also None if it is too close to saturation to predict them,
    whether its rate is within what is stable or slightly above; ``findings`` then say so.
    ``overrun_probability`` is the share of batches that take longer than their trigger interval.

    ``utilization_ratio`` is the share of time that the query is busy, however it is triggered;
    ``offered_load_ratio`` is the processing time that one second of input adds; it must be below 1.

    ``phases_s`` splits the mean tuple latency; its values add up to it. ``provenance`` says whether
    it is based on measured figures or on declared ones. ``next_run`` is the run that would narrow
    it most. ``stage_work`` says what the stages among the phases compute, if the log names it.
    ``restart`` is the expected time to start again, if a start is on record; a plan has its own.
    ``source_partitions`` is a stated number of tasks that read the source; None is as profiled.
    ``stability_is_sure``: one that is stable is so at the high end of durations, too.
    """

    result_kind = "prediction"
    stable: bool
    utilization_ratio: float = field(metadata={"key": "utilization"})
    offered_load_ratio: float | None = field(default=None, metadata={"key": "offered_load"})
    overrun_probability: float = field(default=0.0, metadata={"then": {"gain_ratio": "gain_ratio"}})
    calibrated: bool
    provenance: Provenance = "measured"
    findings: tuple[Finding, ...] = field(default=(), metadata={"words": "warnings"})
    arrivals: Arrivals = field(metadata={"exact": True})
    sustainable_rate_per_s: float
    batch_duration: LatencyDistribution | None = field(metadata={"key": "batch_duration_s"})
    tuple_latency: LatencyDistribution | None = field(metadata={"key": "tuple_latency_s"})
    window_latency: LatencyDistribution | None = field(metadata={"key": "window_latency_s"})
    phases_s: Mapping[str, float]
    stage_work: Mapping[str, str] = field(default_factory=dict)
    configuration: Configuration
    source_partitions: int | None = None
    restart: Restart | None = None
    next_run: AdvisedRun | None = None
    stability_is_sure: bool = field(default=True, metadata={"key": None})

    def latency(self, metric: Metric) -> LatencyDistribution | None:
        """The distribution for a target of the metric; None if there is none."""
        if metric is Metric.BATCH:
            return self.batch_duration
        return self.window_latency if metric is Metric.WINDOW else self.tuple_latency

    def phase_called(self, phase: str) -> str:
        """A phase by its name; stages, of which several may run at a time, with what they do."""
        return phase_called(phase, self.stage_work)

    @property
    def is_quotable(self) -> bool:
        return self.stable and self.tuple_latency is not None

    @property
    def is_close_to_saturation(self) -> bool:
        """Whether there is no latency to quote although the backlog need not grow."""
        return any(finding.code in NOT_QUOTED for finding in self.findings)

    @property
    def is_stability_open(self) -> bool:
        """Whether the profile cannot tell if the backlog grows."""
        return any(finding.code is FindingCode.STABILITY_NOT_KNOWN for finding in self.findings)

    @property
    def is_surely_unstable(self) -> bool:
        """Whether its backlog grows even if batches are as short as they may well be.

        Too close to saturation is no verdict: between nine tenths of the offered load and all of
        it, the backlog is expected to stay bounded, however long it becomes.
        """
        return (
            not self.stable
            and not self.is_close_to_saturation
            and not any(
                finding.code is FindingCode.OVER_CAPACITY and finding.numbers.get("is_sure") == 0.0
                for finding in self.findings
            )
        )

    @property
    def is_surely_stable(self) -> bool:
        """Whether its backlog stays bounded even if batches are as long as they may well be."""
        # All profiled batches had one size, too far from the one asked about.
        is_far = any("row_cost_half_range_ratio" in finding.numbers for finding in self.findings)
        return self.is_quotable and not is_far and self.stability_is_sure

    @property
    def gain_ratio(self) -> float | None:
        """How many times an error in batch durations counts in the latency as fast as possible.

        `1/(1-r)` at the offered load `r`; None with a trigger interval, which absorbs most of it.
        """
        load = self.offered_load_ratio
        if self.configuration.trigger_s > 0 or not self.is_quotable or load is None:
            return None
        return 1.0 / (1.0 - load)
