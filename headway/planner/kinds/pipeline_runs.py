"""Simulation of a pipeline of mini-batches, and its prediction by the models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headway.assumptions.planning import GROWING_RATIO
from headway.domain.result import Result
from headway.errors import InputError
from headway.models.arrays import Array
from headway.models.pipeline.latency import PipelineLatency
from headway.models.pipeline.parameters import Pipeline, pipeline_loads
from headway.models.simulation.pipeline import simulate_pipeline
from headway.planner.kinds.pipelines import latency_of

_LONGEST_PERIODS = 20.0
_WINDOWS = 2.0
_SHORTEST_S = 4.0
_MOST_EVENTS = 20e6
_NUM_ROWS = 50_000
_JOBS_PER_FETCH = 12


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
