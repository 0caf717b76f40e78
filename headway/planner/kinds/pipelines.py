"""Pipelines of mini-batches: questions about one, predictions for a setting, simulated runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.assumptions.planning import GROWING_RATIO
from headway.domain import Target
from headway.domain.result import Result
from headway.errors import InputError
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
from headway.models.simulation.pipeline import simulate_pipeline

_LONGEST_PERIODS = 20.0
_WINDOWS = 2.0
_SHORTEST_S = 4.0
_MOST_EVENTS = 20e6
_NUM_ROWS = 50_000
_JOBS_PER_FETCH = 12


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PipelineRuns(Result):
    """Runs of a pipeline, which differ in the phases of all clocks.

    ``latency_s`` are latencies in all runs: of windows for a windowed job, else of rows.
    ``phase_means_s`` are the mean times of a row in each phase, over all ``num_runs``, each of
    ``length_s``. ``is_saturated`` says whether latencies grow. They also do if a part cannot keep
    up, which is not simulated.
    """

    result_kind = "pipeline-simulation"
    pipeline: Pipeline
    predicted: PipelineLatency
    latency_s: Array
    phase_means_s: dict[str, float]
    num_runs: int
    length_s: float
    is_saturated: bool

    @property
    def mean_s(self) -> float:
        """Mean latency; infinite if latencies grow. [s]"""
        return float("inf") if self.is_saturated else float(self.latency_s.mean())

    @property
    def sd_s(self) -> float:
        """Standard deviation; infinite if latencies grow. [s]"""
        return float("inf") if self.is_saturated else float(self.latency_s.std())

    def quantile_s(self, q: float) -> float:
        """Quantile of the latency; infinite if latencies grow. [s]"""
        if self.is_saturated:
            return float("inf")
        return float(np.quantile(self.latency_s, q, method="inverted_cdf"))


def simulate_runs(
    pipeline: Pipeline, *, num_runs: int, seed: int, length_s: float | None = None
) -> PipelineRuns:
    """Simulate a pipeline at its setting.

    Raises InputError if there would be more events than can be simulated in minutes.
    """
    setting, final = pipeline.setting, pipeline.finalizing
    longest_s = float(max(setting.shuffle_period_s, setting.poll_period_s, setting.input_period_s))
    if length_s is None:
        length_s = _SHORTEST_S + _LONGEST_PERIODS * longest_s
        if final is not None:
            length_s = max(length_s, (_WINDOWS + 0.1) * float(final.slide_s))
    warmup_s = 1.0 + 2.0 * longest_s
    predicted = latency_of(pipeline)
    if not bool(pipeline_loads(pipeline).stable):
        return PipelineRuns(
            pipeline=pipeline,
            predicted=predicted,
            latency_s=np.empty(0),
            phase_means_s={},
            num_runs=0,
            length_s=0.0,
            is_saturated=True,
        )
    _require_few_events(pipeline, num_runs, warmup_s + length_s)
    traces = [
        simulate_pipeline(
            pipeline,
            length_s=length_s,
            seed=seed + run,
            warmup_s=warmup_s,
            num_rows=_NUM_ROWS,
            most_jobs_per_fetch=_JOBS_PER_FETCH,
        )
        for run in range(num_runs)
    ]
    # Both are in order of time.
    runs = [trace.latency_s if final is None else trace.window_latency_s for trace in traces]
    means = [trace.phase_means_s() for trace in traces]
    return PipelineRuns(
        pipeline=pipeline,
        predicted=predicted,
        latency_s=np.concatenate(runs),
        phase_means_s={
            name: float(np.mean([run_means_s[name] for run_means_s in means])) for name in means[0]
        },
        num_runs=num_runs,
        length_s=length_s,
        is_saturated=any(is_growing(latencies_s) for latencies_s in runs),
    )


def is_growing(latencies_s: Array) -> bool:
    """Whether later ones take longer, or have not ended.

    >>> is_growing(np.array([1.0, 1.1, 0.9, 1.0])), is_growing(np.array([1.0, 1.0, 2.0, 2.0]))
    (False, True)
    """
    if not len(latencies_s):
        return False
    early, late = np.array_split(latencies_s, 2)
    return bool(np.isinf(latencies_s).any() or late.mean() > GROWING_RATIO.value * early.mean())


def _require_few_events(pipeline: Pipeline, num_runs: int, length_s: float) -> None:
    setting, loads = pipeline.setting, pipeline_loads(pipeline)
    per_s = float(
        setting.num_distributors / setting.input_period_s
        + loads.num_mappers / setting.shuffle_period_s
    )
    groups = min(float(loads.batches_per_poll), float(_JOBS_PER_FETCH)) + 1.0
    per_s += float(loads.num_reducers) * groups / float(setting.poll_period_s)
    events = num_runs * per_s * length_s
    if events > _MOST_EVENTS:
        shorter_s = length_s * _MOST_EVENTS / events
        raise InputError(
            f"{events / 1e6:,.0f} million events would take too long to simulate; expected at most "
            f"{_MOST_EVENTS / 1e6:.0f} million: fewer runs, or about {shorter_s:.3g} s of each"
        )
