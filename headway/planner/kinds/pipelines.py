"""Pipelines of mini-batches: questions about one, and predictions for a setting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.domain import Target
from headway.domain.result import Result
from headway.models.arrays import Array, Numeric
from headway.models.pipeline.as_published import published_tuple_latency, published_window_latency
from headway.models.pipeline.corrected import latency_floor_s, tuple_latency, window_latency
from headway.models.pipeline.latency import PipelineLatency, in_series
from headway.models.pipeline.parameters import (
    Finalizing,
    Pipeline,
    PipelineJob,
    PipelineNodes,
    PipelineSetting,
    ReducerState,
    pipeline_loads,
    two_group_update,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PipelineRound:
    """A map and a reduce function on equal nodes, at any setting and input rate.

    ``dispersion`` is the variance over the mean of the rows of an input batch, and ``rate_ratio``
    the input rate of the round over that of the pipeline. ``windows`` are given if results are
    windowed; the keys are those of all reducers together. The update function is that of keys in
    memory; ``state`` is given if it may not fit.
    """

    job: PipelineJob
    nodes: PipelineNodes
    dispersion: float
    rate_ratio: float = 1.0
    windows: Finalizing | None = None
    state: ReducerState | None = None

    def at(self, setting: PipelineSetting, rate_per_s: Numeric) -> Pipeline:
        """The round at settings and rates of the pipeline, which broadcast."""
        rate = np.asarray(rate_per_s, dtype=np.float64) * self.rate_ratio
        mappers = np.asarray(setting.num_nodes, dtype=np.float64) * setting.mappers_per_node
        reducers = np.asarray(setting.num_nodes, dtype=np.float64) * setting.reducers_per_node
        job, windows = self.job, self.windows
        if self.state is not None:
            rows = job.outputs_per_row * rate * setting.shuffle_period_s / (mappers * reducers)
            per_row_s, noise = two_group_update(
                job.reduce_per_row_s,
                self.state.on_disk_s,
                self.state.disk_share(reducers),
                rows,
                job.reduce_cv,
            )
            job = replace(job, reduce_per_row_s=per_row_s, reduce_cv=noise)
        if windows is not None:
            windows = replace(windows, num_keys=np.maximum(windows.num_keys / reducers, 1.0))
        return Pipeline(
            job=job,
            nodes=self.nodes,
            setting=setting,
            rate_per_s=rate,
            dispersion=self.dispersion,
            finalizing=windows,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSpace:
    """Choices for the plan of a round; each list is increasing."""

    max_nodes: int
    num_distributors: int
    mappers: tuple[int, ...]
    reducers: tuple[int, ...]
    input_periods_s: tuple[float, ...]
    shuffle_periods_s: tuple[float, ...]
    poll_periods_s: tuple[float, ...]

    @property
    def num_settings(self) -> int:
        """Number of settings per number of nodes."""
        return math.prod(map(len, self._choices))

    def settings(self, num_nodes: int) -> PipelineSetting:
        """All settings, as one-dimensional arrays."""
        mappers, *further_axes = grid(*self._choices)
        return self.setting(np.full_like(mappers, num_nodes), mappers, *further_axes)

    @property
    def _choices(self) -> tuple[Sequence[float], ...]:
        threads = (self.mappers, self.reducers)
        return (*threads, self.input_periods_s, self.shuffle_periods_s, self.poll_periods_s)

    def setting(
        self,
        num_nodes: Numeric,
        mappers: Numeric,
        reducers: Numeric,
        input_s: Numeric,
        shuffle_s: Numeric,
        poll_s: Numeric,
    ) -> PipelineSetting:
        """One setting with the distributors of the space, or many as arrays."""
        return PipelineSetting(
            num_nodes=num_nodes,
            mappers_per_node=mappers,
            reducers_per_node=reducers,
            num_distributors=self.num_distributors,
            input_period_s=input_s,
            shuffle_period_s=shuffle_s,
            poll_period_s=poll_s,
        )


def grid(*choices: Sequence[float] | NDArray[Any]) -> list[NDArray[Any]]:
    """Every combination of some lists of choices: an array for each list."""
    return [axis.ravel() for axis in np.meshgrid(*choices, indexing="ij")]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PipelineQuestion:
    """A round, the arrivals of the pipeline, the target of the round, and the space."""

    round: PipelineRound
    rate_per_s: float
    target: Target
    space: PipelineSpace

    def with_limit(self, limit_s: float) -> PipelineQuestion:
        """The same question with another limit."""
        return replace(self, target=replace(self.target, limit_s=limit_s))

    def latency(self, setting: PipelineSetting, rate_per_s: Numeric) -> PipelineLatency:
        """Latency of a window for a windowed job, else of a row."""
        return latency_of(self.round.at(setting, rate_per_s))

    def statistic_s(self, setting: PipelineSetting, rate_per_s: Numeric) -> Array:
        """Value of the target's statistic at each setting. [s]"""
        return statistic_s(self.latency(setting, rate_per_s), self.target)

    def meets_target(self, setting: PipelineSetting, rate_per_s: Numeric) -> NDArray[np.bool_]:
        """Whether each setting meets the target, by a single evaluation of the law."""
        latency, target = self.latency(setting, rate_per_s), self.target
        if target.quantile is None:
            return latency.mean_s <= target.limit_s
        return latency.cdf(target.limit_s) >= target.quantile

    def floor_s(
        self, shortest: PipelineSetting, longest: PipelineSetting, rate_per_s: Numeric
    ) -> Array:
        """Lower bound for any periods between two settings. [s]"""
        return latency_floor_s(
            self.round.at(shortest, rate_per_s),
            self.round.at(longest, rate_per_s),
            quantile=self.target.quantile,
        )


def latency_of(pipeline: Pipeline) -> PipelineLatency:
    """Latency of a window for a windowed job, else of a row."""
    return tuple_latency(pipeline) if pipeline.finalizing is None else window_latency(pipeline)


def statistic_s(latency: PipelineLatency, target: Target) -> Array:
    """The mean or the quantile for a target. [s]"""
    return latency.mean_s if target.quantile is None else latency.quantile_s(target.quantile)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PipelinePrediction(Result):
    """Prediction for a pipeline at its setting.

    Each of ``rounds`` is at its setting and its own input rate. ``latency`` is through all rounds:
    of a window for a windowed job, else of a row; ``published`` is the same by the paper's
    formulas, with arrivals at reducers taken as Poisson. ``target`` is that of the pipeline's file.
    """

    result_kind = "pipeline-prediction"
    rounds: tuple[Pipeline, ...]
    latency: PipelineLatency
    published: PipelineLatency
    target: Target | None = None

    @property
    def is_windowed(self) -> bool:
        """Whether the latency is that of windows."""
        return self.rounds[-1].finalizing is not None

    @property
    def overloaded(self) -> tuple[str, ...]:
        """Parts that cannot keep up, by round."""
        is_multi_round = len(self.rounds) > 1
        overloaded_parts = []
        for round_number, pipeline in enumerate(self.rounds, start=1):
            if latency_of(pipeline).is_stable:
                continue
            prefix = f"round {round_number}: " if is_multi_round else ""
            full_parts = [name for name, ratio in busy_ratios(pipeline).items() if ratio >= 1.0]
            full_parts = full_parts or ["the threads of a node beside each other"]
            overloaded_parts += [f"{prefix}{name}" for name in full_parts]
        return tuple(overloaded_parts)


def predict_pipeline(
    rounds: tuple[Pipeline, ...], target: Target | None = None
) -> PipelinePrediction:
    """Prediction for consecutive rounds, compared with a target if there is one."""
    return PipelinePrediction(
        target=target,
        rounds=rounds,
        latency=joined([latency_of(pipeline) for pipeline in rounds]),
        published=joined([_published(pipeline) for pipeline in rounds]),
    )


def busy_ratios(pipeline: Pipeline) -> dict[str, float]:
    """Share of time that each part of a pipeline is busy, by name. [-]"""
    setting, loads = pipeline.setting, pipeline_loads(pipeline)
    cores = (
        setting.mappers_per_node * loads.map_busy + setting.reducers_per_node * loads.reduce_busy
    )
    return {
        "a mapper": float(loads.map_busy),
        "a reducer": float(loads.reduce_busy),
        "the cores of a node": float(cores / pipeline.nodes.num_cores),
        "the disk of a node": float(loads.disk_busy),
        "a reducer's fetching": float(loads.fetch_busy),
        "the link into a node": float(
            setting.reducers_per_node * loads.fetch_busy / loads.streams_per_link
        ),
        "the link out of a distributor": float(loads.input_transfer_busy),
    }


def _published(pipeline: Pipeline) -> PipelineLatency:
    if pipeline.finalizing is None:
        return published_tuple_latency(pipeline, "Poisson")
    return published_window_latency(pipeline, "Poisson")


def joined(latencies: list[PipelineLatency]) -> PipelineLatency:
    """The latency through consecutive rounds."""
    return latencies[0] if len(latencies) == 1 else in_series(tuple(latencies))
