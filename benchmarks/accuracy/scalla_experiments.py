"""One experiment of the VLDB'15 paper's study: a workload, a setting, predicted and simulated."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np

from headway.models.arrays import Array
from headway.models.pipeline.as_published import (
    ReducerArrivals,
    published_tuple_latency,
    published_window_latency,
)
from headway.models.pipeline.corrected import tuple_latency, window_latency
from headway.models.pipeline.latency import PipelineLatency
from headway.models.pipeline.parameters import (
    Finalizing,
    Pipeline,
    PipelineJob,
    PipelineNodes,
    PipelineSetting,
    pipeline_loads,
)
from headway.models.simulation.pipeline import simulate_pipeline

LEVEL = 0.99
NUM_RUNS = 2
GROWTH = 1.2

DEFAULT = PipelineSetting(
    num_nodes=10,
    mappers_per_node=2,
    reducers_per_node=2,
    num_distributors=10,
    input_period_s=0.005,
    shuffle_period_s=0.2,
    poll_period_s=0.2,
)
NODES = PipelineNodes(
    num_cores=4,
    link_bytes_per_s=118e6,
    stream_bytes_per_s=118e6,
    disk_bytes_per_s=100e6,
    disk_write_s=0.0005,
    distributor_bytes_per_s=118e6,
)

Predict: TypeAlias = Callable[[Pipeline], PipelineLatency]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A job at the rate at which the paper ran it, and its limit of the mean latency."""

    name: str
    pipeline: Pipeline
    limit_s: float

    def at(self, setting: PipelineSetting) -> Pipeline:
        """The same job at another setting."""
        return replace(self.pipeline, setting=setting)

    @property
    def predictions(self) -> dict[str, Predict]:
        """The models, of windows for a windowed job, else of rows."""
        if self.pipeline.finalizing is None:
            ours, published = tuple_latency, published_tuple_latency
        else:
            ours, published = window_latency, published_window_latency
        return {
            "corrected": ours,
            "independent": lambda pipeline: ours(pipeline).with_independent_phases(),
            **{
                f"published, {arrivals.value}": partial(published, arrivals=arrivals)
                for arrivals in ReducerArrivals
            },
        }


def workloads() -> list[Workload]:
    """Sessionization, word count, and word count in windows, as the paper sizes them."""
    clicks = PipelineJob(
        map_per_row_s=1e-6,
        reduce_per_row_s=2e-6,
        outputs_per_row=1.0,
        input_row_bytes=30.0,
        shuffle_row_bytes=30.0,
        shuffle_fixed_s=0.0008,
        fetch_fixed_s=0.003,
        batch_fixed_s=20e-6,
        map_cv=0.2,
        reduce_cv=0.2,
    )
    tweets = replace(
        clicks,
        map_per_row_s=14e-6,
        reduce_per_row_s=1.5e-6,
        outputs_per_row=10.0,
        input_row_bytes=140.0,
        shuffle_row_bytes=15.0,
    )
    windows = Finalizing(num_keys=140_000, per_key_s=1e-5, slide_s=30.0)

    def pipeline(job: PipelineJob, rate_per_s: float, final: Finalizing | None) -> Pipeline:
        return Pipeline(
            job=job,
            nodes=NODES,
            setting=DEFAULT,
            rate_per_s=rate_per_s,
            dispersion=1.0,
            finalizing=final,
        )

    return [
        Workload(name="sessionization", pipeline=pipeline(clicks, 8e6, None), limit_s=0.5),
        Workload(name="word count", pipeline=pipeline(tweets, 1e6, None), limit_s=1.0),
        Workload(name="windowed word count", pipeline=pipeline(tweets, 1e6, windows), limit_s=3.0),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One setting, predicted and simulated; times are infinite where they grow."""

    workload: str
    varied: str
    overloaded: bool
    mean_s: float
    p99_s: float
    predicted_mean_s: dict[str, float]
    predicted_p99_s: dict[str, float]

    def error(self, model: str, *, of_p99: bool) -> float:
        """Predicted over simulated, less one; 0 if both grow, -1 if only the simulated does."""
        predicted_s = (self.predicted_p99_s if of_p99 else self.predicted_mean_s)[model]
        true_s = self.p99_s if of_p99 else self.mean_s
        if np.isinf(predicted_s) and np.isinf(true_s):
            return 0.0
        return predicted_s / true_s - 1.0


def simulated_latencies_s(pipeline: Pipeline) -> Array | None:
    """Latencies over some runs with different phases of all clocks; None if they grow."""
    at = pipeline.setting
    windowed = pipeline.finalizing is not None
    longest_s = float(max(at.shuffle_period_s, at.poll_period_s))
    traces = [
        simulate_pipeline(
            pipeline,
            length_s=62.0 if windowed else 4.0 + 8.0 * longest_s,
            seed=100 + run,
            warmup_s=2.0 + 2.0 * longest_s,
            num_rows=50_000,
            most_jobs_per_fetch=12,
        )
        for run in range(NUM_RUNS)
    ]
    # Both are in the order of time.
    runs = [trace.window_latency_s if windowed else trace.latency_s for trace in traces]
    return None if any(is_growing(latencies_s) for latencies_s in runs) else np.concatenate(runs)


def is_growing(latencies_s: Array) -> bool:
    """Whether what comes later takes longer, or has not come to an end."""
    early, late = np.array_split(latencies_s, 2)
    return bool(late.mean() > GROWTH * early.mean() or np.isinf(latencies_s).any())


def run_experiment(workload: Workload, varied: str, setting: PipelineSetting) -> Experiment:
    """Predict and simulate one setting."""
    print(f"{workload.name}: {varied}", file=sys.stderr, flush=True)
    pipeline = workload.at(setting)
    predicted = {name: predict(pipeline) for name, predict in workload.predictions.items()}
    mean_s = p99_s = float("inf")
    overloaded = not bool(pipeline_loads(pipeline).stable)
    latencies_s = None if overloaded else simulated_latencies_s(pipeline)
    if latencies_s is not None:
        mean_s = float(latencies_s.mean())
        p99_s = float(np.quantile(latencies_s, LEVEL, method="inverted_cdf"))
    return Experiment(
        workload=workload.name,
        varied=varied,
        overloaded=overloaded,
        mean_s=mean_s,
        p99_s=p99_s,
        predicted_mean_s={name: float(law.mean_s) for name, law in predicted.items()},
        predicted_p99_s={name: float(law.quantile_s(LEVEL)) for name, law in predicted.items()},
    )
