"""A job at many configurations, predicted for a page that computes nothing itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from headway.domain import (
    Configuration,
    JobProfile,
    LatencyDistribution,
    Metric,
    Prediction,
    Target,
)
from headway.models.job.predict import predict
from headway.models.job.setting import duration_model, setting_law
from headway.models.job.window_law import window_law
from headway.report.wording import METRIC_NAMES

_RATES = 25
_MOST_NODES = 6
_TIMES_BELOW = 4.0  # the lowest rate of the sliders is this much below the requested one
_TRIGGERS_S = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0)
_PARTITIONS = (1, 2, 4, 8, 16, 32, 64, 128, 200)
_CORES = (1, 2, 4, 8, 16)
_MOST_ROWS_OF_MAP = 7
#: Shares of rows or windows at which a distribution is drawn.
SHARES = (
    *(0.001, 0.01, 0.05, *(0.1 * tenth for tenth in range(1, 9)), 0.85, 0.9, 0.925, 0.95),
    *(0.96, 0.97, 0.98, 0.985, 0.99, 0.993, 0.996, 0.998, 0.999),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """A configuration at a rate, predicted."""

    rate_per_s: float
    nodes: int
    prediction: Prediction

    @property
    def state(self) -> str:
        """``ok``, ``over`` (the backlog grows) or ``close`` (to saturation, no latency quoted)."""
        if self.prediction.is_quotable:
            return "ok"
        return "close" if self.prediction.is_close_to_saturation else "over"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The question of the page: a configuration, a rate, a target, and the cost of a node."""

    prediction: Prediction
    target: Target
    nodes: int
    highest_rate_per_s: float
    cost_per_node_hour: float | None = None
    profile_file: str = "job.profile.yaml"

    @property
    def configuration(self) -> Configuration:
        """The configuration."""
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

    def latency(self, outlook: Outlook) -> LatencyDistribution | None:
        """The latency of the target; None if none is quoted."""
        if not outlook.prediction.is_quotable:
            return None
        return outlook.prediction.latency(self.target.metric)


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
    outlooks: tuple[Outlook, ...]

    def at(self, nodes: int, trigger_s: float) -> tuple[Outlook, ...]:
        """All rates, lowest first."""
        row = self.nodes.index(nodes) * len(self.triggers_s) + self.triggers_s.index(trigger_s)
        start = row * len(self.rates_per_s)
        return self.outlooks[start : start + len(self.rates_per_s)]


@dataclass(frozen=True, slots=True, kw_only=True)
class MapOf:
    """Predictions by two settings, rows first."""

    row_name: str
    column_name: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    outlooks: tuple[tuple[Outlook, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Quantiles of the latency of rows or windows [s], at `SHARES`."""

    name: str
    latencies_s: tuple[float, ...]


def grid_of(
    profile: JobProfile,
    base: Configuration,
    *,
    nodes: int,
    rate_per_s: float,
    highest_rate_per_s: float,
    tell: Callable[[str, float], None],
) -> Grid:
    """The grid around a configuration that runs on a number of nodes.

    Parameters
    ----------
    profile, base
        The job and the configuration.
    nodes : int, >= 1
        Nodes of the configuration.
    rate_per_s, highest_rate_per_s : float
        The requested rate, and one that the grid should reach [rows/s].
    tell : callable
        Called with the completed share.
    """
    unlimited = replace(base, max_offsets_per_trigger=None)
    executors_per_node = max(base.executors // nodes, 1)
    rates_per_s = rate_stops(rate_per_s, highest_rate_per_s)
    all_nodes = node_stops(nodes)
    triggers_s = tuple(sorted({*_TRIGGERS_S, base.trigger_s}))
    outlooks = []
    for number, count in enumerate(all_nodes):
        tell("predicting other configurations", number / len(all_nodes))
        for trigger_s in triggers_s:
            setting = replace(unlimited, executors=count * executors_per_node, trigger_s=trigger_s)
            outlooks += [_outlook(profile, setting, rate, count) for rate in rates_per_s]
    return Grid(
        base=unlimited,
        executors_per_node=executors_per_node,
        rates_per_s=rates_per_s,
        nodes=all_nodes,
        triggers_s=triggers_s,
        outlooks=tuple(outlooks),
    )


def rate_stops(rate_per_s: float, highest_rate_per_s: float) -> tuple[float, ...]:
    """Round rates around the requested one, which is one of them.

    Examples
    --------
    >>> stops = rate_stops(24_000.0, 60_000.0)
    >>> (stops[0], 24_000.0 in stops, stops[-1] >= 60_000.0)
    (6000.0, True, True)
    """
    lowest, highest = rate_per_s / _TIMES_BELOW, max(1.2 * highest_rate_per_s, 2.0 * rate_per_s)
    steps = np.geomspace(lowest, highest, _RATES - 1)
    return tuple(sorted({rate_per_s, *(float(f"{rate:.2g}") for rate in steps), highest}))


def node_stops(nodes: int) -> tuple[int, ...]:
    """Numbers of nodes around the planned one.

    Examples
    --------
    >>> node_stops(1), node_stops(2), node_stops(40)
    ((1, 2, 3, 4), (1, 2, 3, 4), (20, 30, 38, 39, 40, 41, 42, 60, 80))
    """
    near = {nodes + step for step in range(-2, 3)}
    far = {1, 2, 3, 4} if nodes < _MOST_NODES else set()
    if nodes >= _MOST_NODES:
        far = {nodes // 2, 3 * nodes // 4, 3 * nodes // 2, 2 * nodes}
    return tuple(sorted(count for count in near | far if count >= 1 and (count > 0)))


def trigger_map(grid: Grid, rate_per_s: float, label: Callable[[float], str]) -> MapOf:
    """Trigger interval by nodes at a rate of the grid."""
    rate_index = grid.rates_per_s.index(rate_per_s)
    return MapOf(
        row_name="trigger interval",
        column_name="nodes",
        rows=tuple(label(trigger_s) for trigger_s in grid.triggers_s),
        columns=tuple(f"{count:,}" for count in grid.nodes),
        outlooks=tuple(
            tuple(grid.at(count, trigger_s)[rate_index] for count in grid.nodes)
            for trigger_s in grid.triggers_s
        ),
    )


def partitions_map(
    profile: JobProfile, base: Configuration, *, nodes: int, rate_per_s: float
) -> MapOf:
    """Shuffle partitions by cores per executor at a rate."""
    partitions = _around(_PARTITIONS, base.shuffle_partitions)
    cores = [count for count in _around(_CORES, base.cores_per_executor) if count >= base.task_cpus]
    return MapOf(
        row_name="shuffle partitions",
        column_name="cores per executor",
        rows=tuple(f"{count:,}" for count in partitions),
        columns=tuple(f"{count:,}" for count in cores),
        outlooks=tuple(
            tuple(
                _outlook(
                    profile,
                    replace(
                        base,
                        shuffle_partitions=parts,
                        cores_per_executor=count,
                        max_offsets_per_trigger=None,
                    ),
                    rate_per_s,
                    nodes,
                )
                for count in cores
            )
            for parts in partitions
        ),
    )


def shares_of(profile: JobProfile, prediction: Prediction) -> tuple[Shares, ...]:
    """The latency distributions of a prediction, if it quotes latencies from measured figures."""
    if not prediction.is_quotable or profile.declared is not None:
        return ()
    profile_at_rate, setting = (
        replace(profile, arrivals=prediction.arrivals),
        prediction.configuration,
    )
    law = setting_law(
        profile_at_rate,
        duration_model(profile_at_rate, setting.num_slots, setting.shuffle_partitions),
        rate_per_s=np.array([prediction.arrivals.rate_per_s]),
        trigger_s=setting.trigger_s,
    )
    shares = np.array(SHARES)[:, np.newaxis]
    quantiles = [("rows", law.tuple_latency_quantile_s(shares))]
    windows = window_law(profile_at_rate, law)
    if windows is not None and prediction.window_latency is not None:
        quantiles.append(("windows", windows.quantile_s(shares)))
    return tuple(
        Shares(name=name, latencies_s=tuple(map(float, values[:, 0]))) for name, values in quantiles
    )


def upper_s(distribution: LatencyDistribution, statistic: str) -> float:
    """Value that is compared with a target: the upper end if there is one, else the value [s]."""
    interval = distribution.intervals90_s.get(statistic)
    return distribution.statistics_s[statistic] if interval is None else interval.high


def _around(values: Sequence[int], center: int) -> list[int]:
    """The values nearest to a given one, which is included."""
    nearest_first = sorted({*values, center}, key=lambda value: abs(math.log2(value / center)))
    return sorted(nearest_first[:_MOST_ROWS_OF_MAP])


def _outlook(profile: JobProfile, setting: Configuration, rate_per_s: float, nodes: int) -> Outlook:
    arrivals = replace(profile.arrivals, rate_per_s=rate_per_s)
    return Outlook(
        rate_per_s=rate_per_s, nodes=nodes, prediction=predict(profile, setting, arrivals)
    )
