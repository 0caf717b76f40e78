"""Predicted and measured side by side."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from headway.domain import Interval, LatencyDistribution
from headway.domain.sheet import Section
from headway.report.wording import interval_text
from headway.units import format_duration

_STATISTICS = ("mean", "p50", "p95", "p99")


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedFigure:
    """One statistic of a comparison; ``interval90_s`` is its predicted interval."""

    statistic: str
    predicted_s: float
    measured_s: float
    interval90_s: Interval | None

    @property
    def is_inside(self) -> bool | None:
        """Whether the measured value is in the predicted interval; None if there is none."""
        if self.interval90_s is None:
            return None
        return self.interval90_s.low <= self.measured_s <= self.interval90_s.high

    @property
    def error_text(self) -> str:
        """Predicted over measured minus one, with one decimal below ten per cent."""
        if not self.measured_s > 0:
            return "-"
        error_ratio = (self.predicted_s - self.measured_s) / self.measured_s
        decimals = 1 if abs(error_ratio) < 0.0995 else 0
        return f"{error_ratio:+.{decimals}%}"

    @property
    def interval_text(self) -> str:
        """The interval, and whether it contains the measured value."""
        if self.interval90_s is None:
            return "-"
        return f"{interval_text(self.interval90_s)}, {'inside' if self.is_inside else 'outside'}"


Comparison: TypeAlias = tuple[str, tuple[ComparedFigure, ...]]
"""The name of a latency, and its statistics."""


def compared(
    label: str, predicted: LatencyDistribution, measured: LatencyDistribution
) -> Comparison:
    """One latency, predicted and measured.

    >>> guess = LatencyDistribution(mean_s=1.1, p50_s=1.0, p95_s=1.8, p99_s=2.2)
    >>> truth = LatencyDistribution(mean_s=1.0, p50_s=1.0, p95_s=2.0, p99_s=2.0)
    >>> _, figures = compared("tuple latency", guess, truth)
    >>> [figure.error_text for figure in figures]
    ['+10%', '+0.0%', '-10%', '+10%']
    """
    return label, tuple(
        ComparedFigure(
            statistic=statistic,
            predicted_s=predicted_s,
            measured_s=measured.statistics_s[statistic],
            interval90_s=predicted.intervals90_s.get(statistic),
        )
        for statistic, predicted_s in predicted.statistics_s.items()
    )


def comparison_sections(
    comparisons: Sequence[Comparison], *, statistics: Collection[str] = _STATISTICS
) -> tuple[Section, ...]:
    """A table for each comparison, with some or all statistics, and what the words mean."""
    tables = [
        Section(
            title=label,
            head=("", "predicted", "measured", "error", "90% interval"),
            rows=tuple(
                (
                    figure.statistic,
                    format_duration(figure.predicted_s),
                    format_duration(figure.measured_s),
                    figure.error_text,
                    figure.interval_text,
                )
                for figure in figures
                if figure.statistic in statistics
            ),
            right=(1, 2, 3),
        )
        for label, figures in comparisons
    ]
    meaning = (
        "error: predicted over measured, minus one; inside: the interval contains the measured "
        "value."
    )
    return (*tables, Section(texts=(meaning,) if tables else ()))
