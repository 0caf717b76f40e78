"""A job at many configurations, predicted for a page that computes nothing itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from headway.domain import (
    Configuration,
    JobProfile,
    LatencyDistribution,
    Metric,
    Prediction,
    Promise,
    StreamAnswer,
    Target,
)
from headway.domain.node_type import currency_of
from headway.models.batches.windows import window_law
from headway.models.job.predict import predictions_at
from headway.models.job.setting import duration_model, setting_law
from headway.report.wording import METRIC_NAMES

_RATES = 25
_MOST_NODES = 6
_TIMES_BELOW = 4.0  # the lowest rate of the sliders is this much below the requested one
_TRIGGERS_S = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0)
#: Shares of rows or windows at which a distribution is drawn.
SHARES = (
    *(0.001, 0.01, 0.05, *(0.1 * tenth for tenth in range(1, 9)), 0.85, 0.9, 0.925, 0.95),
    *(0.96, 0.97, 0.98, 0.985, 0.99, 0.993, 0.996, 0.998, 0.999),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """The question of the page: a configuration, a rate, a target, and the cost of a node.

    ``also`` are further targets, which the page does not look at, ``is_met`` whether the
    configuration meets all of them; without a ``profile_file`` the page has no commands.
    """

    prediction: Prediction
    target: Target
    nodes: int
    highest_rate_per_s: float
    also: tuple[Promise, ...] = ()
    is_met: bool = True
    cost_per_node_hour: float | None = None
    currency: str = ""
    profile_file: str = "job.profile.yaml"

    @classmethod
    def of(cls, plan: StreamAnswer, profile_file: str = "job.profile.yaml") -> WhatIf:
        """The question that a plan answers."""
        cost = plan.cost_per_hour
        rates_per_s = (point.sustainable_rate_per_s for point in plan.frontier)
        return cls(
            prediction=plan.prediction,
            target=plan.target,
            nodes=plan.nodes,
            highest_rate_per_s=max(rates_per_s, default=0.0),
            also=plan.also,
            is_met=plan.feasible,
            cost_per_node_hour=None if cost is None else cost / plan.nodes,
            currency=currency_of(plan.node_type),
            profile_file=profile_file,
        )

    @property
    def configuration(self) -> Configuration:
        """The configuration of the prediction."""
        return self.prediction.configuration

    @property
    def rate_per_s(self) -> float:
        """Input rate [rows/s]."""
        return self.prediction.arrivals.rate_per_s

    @property
    def statistic(self) -> str:
        """The statistic of the charts: that of the target, if it is predicted."""
        return self.target.statistic if self.target.statistic in ("mean", "p50", "p95") else "p99"

    @property
    def name(self) -> str:
        """The quantity of the charts, in words."""
        metric = METRIC_NAMES[self.target.metric]
        return f"{self.statistic} {'' if self.target.metric is Metric.TUPLE else 'of the '}{metric}"

    def latency(self, prediction: Prediction) -> LatencyDistribution | None:
        """The latency of the target; None if none is quoted."""
        return prediction.latency(self.target.metric) if prediction.is_quotable else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Predictions at each number of nodes, trigger interval and rate, in this order of nesting.

    Cores, shuffle partitions and executors per node are those of ``base``; there is no rate limit.
    """

    base: Configuration
    executors_per_node: int
    rates_per_s: tuple[float, ...]
    nodes: tuple[int, ...]
    triggers_s: tuple[float, ...]
    predictions: tuple[Prediction, ...]

    def at(self, nodes: int, trigger_s: float) -> tuple[Prediction, ...]:
        """All rates, lowest first."""
        row = self.nodes.index(nodes) * len(self.triggers_s) + self.triggers_s.index(trigger_s)
        start = row * len(self.rates_per_s)
        return self.predictions[start : start + len(self.rates_per_s)]


def grid_of(profile: JobProfile, question: WhatIf, tell: Callable[[str, float], None]) -> Grid:
    """The grid around the configuration in question; ``tell`` gets the share that is done."""
    base = replace(question.configuration, max_offsets_per_trigger=None)
    executors_per_node = max(base.executors // question.nodes, 1)
    rates_per_s = rate_stops(question.rate_per_s, question.highest_rate_per_s)
    nodes = node_stops(question.nodes)
    triggers_s = tuple(sorted({*_TRIGGERS_S, base.trigger_s}))
    predictions: list[Prediction] = []
    for number, count in enumerate(nodes):
        tell("predicting other configurations", number / len(nodes))
        for trigger_s in triggers_s:
            setting = replace(base, executors=count * executors_per_node, trigger_s=trigger_s)
            predictions += predictions_at(
                profile, setting, profile.arrivals, rates_per_s, metrics=(question.target.metric,)
            )
    return Grid(
        base=base,
        executors_per_node=executors_per_node,
        rates_per_s=rates_per_s,
        nodes=nodes,
        triggers_s=triggers_s,
        predictions=tuple(predictions),
    )


def grid_rows(question: WhatIf, grid: Grid) -> Iterator[dict[str, object]]:
    """The grid as a table, in which the configuration in question is marked at its rate."""
    planned = (question.nodes, question.configuration.trigger_s, question.rate_per_s)
    high = f"{question.statistic}_high_s"
    cells = product(grid.nodes, grid.triggers_s, grid.rates_per_s)
    for cell, prediction in zip(cells, grid.predictions, strict=True):
        nodes, trigger_s, rate_per_s = cell
        latency = question.latency(prediction)
        quoted_s = {} if latency is None else latency.statistics_s
        high_s = None if latency is None else upper_s(latency, question.statistic)
        yield {
            "nodes": nodes,
            "executors": prediction.configuration.executors,
            "trigger_s": trigger_s,
            "rate_per_s": rate_per_s,
            "utilization": prediction.utilization_ratio,
            **{f"{name}_s": quoted_s.get(name) for name in ("mean", "p50", "p95", "p99")},
            high: high_s,
            "met": high_s is not None and high_s <= question.target.limit_s,
            "calibrated": prediction.calibrated,
            "is_plan": cell == planned,
        }


def rate_stops(rate_per_s: float, highest_rate_per_s: float) -> tuple[float, ...]:
    """Round rates around the requested one, which is one of them.

    >>> stops = rate_stops(24_000.0, 60_000.0)
    >>> (stops[0], 24_000.0 in stops, stops[-1] >= 60_000.0)
    (6000.0, True, True)
    """
    lowest, highest = rate_per_s / _TIMES_BELOW, max(1.2 * highest_rate_per_s, 2.0 * rate_per_s)
    steps = np.geomspace(lowest, highest, _RATES - 1)
    return tuple(sorted({rate_per_s, *(float(f"{rate:.2g}") for rate in steps), highest}))


def node_stops(nodes: int) -> tuple[int, ...]:
    """Numbers of nodes around the planned one.

    >>> node_stops(1), node_stops(2), node_stops(40)
    ((1, 2, 3, 4), (1, 2, 3, 4), (20, 30, 38, 39, 40, 41, 42, 60, 80))
    """
    stops = {1, 2, 3, 4}
    if nodes >= _MOST_NODES:
        stops = {nodes // 2, 3 * nodes // 4, 3 * nodes // 2, 2 * nodes}
    return tuple(sorted(stops.union(range(max(nodes - 2, 1), nodes + 3))))


def shares_of(profile: JobProfile, prediction: Prediction) -> dict[str, tuple[float, ...]]:
    """Quantiles of the latency of rows, and of windows if there are any, at `SHARES` [s].

    Nothing if the prediction quotes no latency, or not from measured figures.
    """
    if not prediction.is_quotable or profile.declared is not None:
        return {}
    profile_at_rate = replace(profile, arrivals=prediction.arrivals)
    setting = prediction.configuration
    law = setting_law(
        profile_at_rate,
        duration_model(profile_at_rate, *setting.size),
        rate_per_s=np.array([prediction.arrivals.rate_per_s]),
        trigger_s=setting.trigger_s,
    )
    shares = np.array(SHARES)[:, np.newaxis]
    quantiles = {"rows": law.tuple_latency_quantile_s(shares)}
    windows = window_law(profile_at_rate, law)
    if windows is not None and prediction.window_latency is not None:
        quantiles["windows"] = windows.quantile_s(shares)
    return {name: tuple(map(float, values[:, 0])) for name, values in quantiles.items()}


def upper_s(distribution: LatencyDistribution, statistic: str) -> float:
    """Value that is compared with a target: the upper end if there is one, else the value [s]."""
    interval = distribution.intervals90_s.get(statistic)
    return distribution.statistics_s[statistic] if interval is None else interval.high


def is_over(prediction: Prediction) -> bool:
    """Whether the backlog grows, so that there is no latency; else it is close to saturation."""
    return not (prediction.is_quotable or prediction.is_close_to_saturation)
