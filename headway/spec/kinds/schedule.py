"""Queries of one application that take turns on the same cores."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import headway.spec.forms.quantities as values
from headway.domain import Metric, Promise, Target
from headway.spec.forms import as_in, entry, require_different_names
from headway.spec.forms.kinds import ListOf, Nested
from headway.spec.kinds.jobs import DeclaredStream, StreamingJob, require_one_source
from headway.units import exact_duration

_MOST_QUERIES = 200
_SHORTEST_S = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledJob:
    """A streaming query of the application."""

    name: str = entry(values.NAME, "Name in the answer.")
    profile: Path | None = entry(
        values.PROFILE_FILE, "Its profile. Either this or `declared`.", default=None
    )
    declared: DeclaredStream | None = as_in(StreamingJob, "declared")
    rate: values.Quantity = entry(values.Uncertain(values.RATE), "Input rate.")
    targets: tuple[Promise, ...] = entry(
        ListOf(item=values.TARGET, least=1, most=2, or_one=True),
        "Its targets: `p99 <= 2s` for rows, `window p99 <= 3s` for windows, or both.",
        key="target",
    )
    trigger_s: float | None = entry(
        values.DURATION, "Trigger interval. Default: as profiled, 1s as declared.", default=None
    )
    window_slide_s: float | None = entry(
        values.DURATION, "Time between the ends of its windows. Default: as profiled.", default=None
    )
    window_start_s: float = entry(
        values.DURATION_OR_ZERO,
        "`startTime` of its windows: offset of their ends from the epoch grid. Default 0s.",
        default=0.0,
    )
    watermark_delay_s: float | None = entry(
        values.DURATION_OR_ZERO,
        "Delay of its watermark. Default: as profiled, else 0s.",
        default=None,
    )

    def __post_init__(self) -> None:
        require_one_source(self.profile, self.declared)
        for key, given_s in (("trigger", self.trigger_s), ("window_slide", self.window_slide_s)):
            if given_s is not None and given_s < _SHORTEST_S:
                raise ValueError(f"{key}: got {exact_duration(given_s)}; expected 1ms or more")
        metrics = [promise.metric for promise in self.targets if isinstance(promise, Target)]
        if len(set(metrics)) < len(self.targets) or Metric.BATCH in metrics:
            raise ValueError(
                "target: expected at most one of rows, e.g. 'p99 <= 2s', and one of windows, "
                "e.g. 'window p99 <= 3s'"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySchedule:
    """Queries of one application, and the cores that they share."""

    cores: int = entry(values.CORES, "Cores of all executors together.")
    driver_cores: int | None = entry(
        values.CORES,
        "Cores of the driver (`spark.driver.cores`). Default: as many as the queries need, which "
        "the answer states.",
        default=None,
    )
    cores_per_node: int | None = entry(
        values.CORES,
        "Cores of a node; if given, the answer states the nodes needed with and without turns.",
        default=None,
    )
    queries: tuple[ScheduledJob, ...] = entry(
        ListOf(item=Nested(ScheduledJob), least=1, most=_MOST_QUERIES), "The queries."
    )

    def __post_init__(self) -> None:
        fault = "two queries are called {!r}; expected different names"
        require_different_names(self.queries, fault)
