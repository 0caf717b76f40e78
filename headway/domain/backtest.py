"""Errors of predictions for runs that they were not fitted to."""

from __future__ import annotations

from dataclasses import field
from statistics import median

from headway.domain.prediction import LatencyDistribution, Prediction
from headway.domain.result import Result
from headway.lazy_classes import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """One run that was left out of the fit; its latency is as if rows arrived evenly."""

    label: str = field(metadata={"key": "run"})
    num_batches: int = field(metadata={"key": "batches"})
    prediction: Prediction = field(metadata={"key": "predicted"})
    observed_latency: LatencyDistribution = field(metadata={"key": "observed_tuple_latency_s"})
    observed_duration: LatencyDistribution = field(metadata={"key": "observed_batch_duration_s"})

    def error_ratio(self, statistic: str) -> float | None:
        """Predicted over observed latency, minus one; None if predicted to be unstable."""
        predicted = self.prediction.tuple_latency
        if predicted is None:
            return None
        return predicted.statistics_s[statistic] / self.observed_latency.statistics_s[statistic] - 1

    @property
    def intervals_held(self) -> tuple[bool, bool] | None:
        """Whether the 90% intervals of mean and p99 contain the observed values."""
        predicted = self.prediction.tuple_latency
        if predicted is None or not (predicted.interval90_mean_s and predicted.interval90_p99_s):
            return None
        mean, p99 = predicted.interval90_mean_s, predicted.interval90_p99_s
        return (
            mean.low <= self.observed_latency.mean_s <= mean.high,
            p99.low <= self.observed_latency.p99_s <= p99.high,
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Backtest(Result):
    """Held-out runs in order of time; ``rule`` says what was fitted and what was left out."""

    result_kind = "backtest"
    rule: str
    runs: tuple[HeldOut, ...]
    notes: tuple[str, ...] = ()

    @property
    def num_called_unstable(self) -> int:
        """Runs that were recorded, although they are predicted to be unstable."""
        return sum(
            not run.prediction.stable and not run.prediction.is_close_to_saturation
            for run in self.runs
        )

    @property
    def num_too_close(self) -> int:
        """Runs without a predicted latency, because their prediction is close to saturation."""
        num_unquotable = sum(not run.prediction.is_quotable for run in self.runs)
        return num_unquotable - self.num_called_unstable

    def median_error_ratio(self, statistic: str) -> float | None:
        """Median absolute error of a statistic; None if no run was predicted to be stable."""
        errors = [run.error_ratio(statistic) for run in self.runs]
        sizes = [abs(error) for error in errors if error is not None]
        return median(sizes) if sizes else None

    @property
    def intervals_held(self) -> tuple[int, int]:
        """How many of the 90% intervals contain the observed value, and how many there are."""
        held = [is_held for run in self.runs for is_held in run.intervals_held or ()]
        return sum(held), len(held)
