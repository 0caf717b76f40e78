"""The workloads of the VLDB'15 paper's study, its cluster, and the models that predict them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from headway.models.pipeline import tuple_latency, window_latency
from headway.models.pipeline_as_published import (
    ReducerArrivals,
    published_tuple_latency,
    published_window_latency,
)
from headway.models.pipeline_latency import PipelineLatency
from headway.models.pipeline_parameters import (
    Finalizing,
    Pipeline,
    PipelineJob,
    PipelineNodes,
    PipelineSetting,
)

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
