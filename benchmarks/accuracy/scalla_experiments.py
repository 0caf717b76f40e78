"""One experiment of the VLDB'15 paper's study: a workload, a setting, predicted and simulated."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, get_args

import numpy as np
from scalla_costs import JOBS, declared

from headway.models.arrays import Numeric
from headway.models.pipeline.as_published import (
    ReducerArrivals,
    published_tuple_latency,
    published_window_latency,
)
from headway.models.pipeline.corrected import tuple_latency, window_latency
from headway.models.pipeline.latency import PipelineLatency
from headway.models.pipeline.parameters import Pipeline, PipelineSetting, pipeline_loads
from headway.planner.kinds.pipelines import PipelineRuns, simulate_runs
from headway.spec.kinds.pipelines import MicroBatchPipeline
from headway.spec.pipelines import rounds_of

LEVEL = 0.99
NUM_RUNS = 2

DEFAULT = PipelineSetting(
    num_nodes=10,
    mappers_per_node=2,
    reducers_per_node=2,
    num_distributors=10,
    input_period_s=0.005,
    shuffle_period_s=0.2,
    poll_period_s=0.2,
)

Predict: TypeAlias = Callable[[Pipeline], PipelineLatency]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A job at the rate at which the paper ran it, and the limit on its mean latency."""

    name: str
    spec: MicroBatchPipeline

    @property
    def limit_s(self) -> float:
        """Limit on the mean latency. [s]"""
        assert self.spec.target is not None
        return self.spec.target.limit_s

    def at(self, setting: PipelineSetting, rate_per_s: Numeric | None = None) -> Pipeline:
        """The job at a setting, and at its own rate if no other is given."""
        rate = self.spec.rate_per_s if rate_per_s is None else rate_per_s
        return rounds_of(self.spec)[0].at(setting, rate)

    @property
    def predictions(self) -> dict[str, Predict]:
        """The models: of window latency for a windowed job, of tuple latency otherwise."""
        if not self.spec.is_windowed:
            ours, published = tuple_latency, published_tuple_latency
        else:
            ours, published = window_latency, published_window_latency
        return {
            "corrected": ours,
            "independent": lambda pipeline: ours(pipeline).with_independent_phases(),
            **{
                f"published, {arrivals}": partial(published, arrivals=arrivals)
                for arrivals in get_args(ReducerArrivals)
            },
        }


def workloads() -> list[Workload]:
    """Sessionization, word count and windowed word count, from ``examples/pipelines``."""
    return [Workload(name=job.replace("-", " "), spec=declared(job)) for job in JOBS]


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One setting, predicted and simulated; times are infinite if they grow."""

    workload: str
    varied: str
    overloaded: bool
    mean_s: float
    p99_s: float
    predicted_mean_s: dict[str, float]
    predicted_p99_s: dict[str, float]

    def error(self, model: str, *, of_p99: bool) -> float:
        """Predicted over simulated, minus one; 0 if both grow, -1 if only the simulation does."""
        predicted_s = (self.predicted_p99_s if of_p99 else self.predicted_mean_s)[model]
        true_s = self.p99_s if of_p99 else self.mean_s
        if np.isinf(predicted_s) and np.isinf(true_s):
            return 0.0
        return predicted_s / true_s - 1.0


def simulated(pipeline: Pipeline) -> PipelineRuns:
    """Runs with different phases of all clocks, as in ``headway simulate``."""
    at = pipeline.setting
    longest_s = float(max(at.shuffle_period_s, at.poll_period_s))
    length_s = 62.0 if pipeline.finalizing is not None else 4.0 + 8.0 * longest_s
    return simulate_runs(pipeline, num_runs=NUM_RUNS, seed=100, length_s=length_s)


def run_experiment(workload: Workload, varied: str, setting: PipelineSetting) -> Experiment:
    """Predict and simulate one setting."""
    print(f"{workload.name}: {varied}", file=sys.stderr, flush=True)
    pipeline = workload.at(setting)
    predicted = {name: predict(pipeline) for name, predict in workload.predictions.items()}
    runs = simulated(pipeline)
    return Experiment(
        workload=workload.name,
        varied=varied,
        overloaded=not bool(pipeline_loads(pipeline).stable),
        mean_s=runs.mean_s,
        p99_s=runs.quantile_s(LEVEL),
        predicted_mean_s={name: float(law.mean_s) for name, law in predicted.items()},
        predicted_p99_s={name: float(law.quantile_s(LEVEL)) for name, law in predicted.items()},
    )
