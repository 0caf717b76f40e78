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
    def error_text(self) -> str:
        """Predicted over measured minus one, with one decimal below ten per cent."""
        if not self.measured_s > 0:
            return "-"
        error_ratio = (self.predicted_s - self.measured_s) / self.measured_s
        decimals = 1 if abs(error_ratio) < 0.0995 else 0
        return f"{error_ratio:+.{decimals}%}"

    @property
    def cells(self) -> tuple[str, ...]:
        """Its row in a table; the interval says whether it contains the measured value."""
        predicted, measured = map(format_duration, (self.predicted_s, self.measured_s))
        ends, interval = self.interval90_s, interval_text(self.interval90_s)
        if ends is not None:
            is_inside = ends.low <= self.measured_s <= ends.high
            interval += ", inside" if is_inside else ", outside"
        return (self.statistic, predicted, measured, self.error_text, interval)


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
    head = ("", "predicted", "measured", "error", "90% interval")
    tables = []
    for label, figures in comparisons:
        rows = tuple(figure.cells for figure in figures if figure.statistic in statistics)
        tables.append(Section(title=label, head=head, rows=rows, right=(1, 2, 3)))
    meaning = (
        "error: predicted over measured, minus one; inside: the interval contains the measured "
        "value."
    )
    return (*tables, Section(texts=(meaning,) if tables else ()))
