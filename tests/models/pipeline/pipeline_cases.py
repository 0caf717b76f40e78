"""Pipelines to test: one whose phases but four are short, and any of its numbers changed."""

from __future__ import annotations

from dataclasses import replace

from headway.models.arrays import Numeric
from headway.models.pipeline.as_published import (
    published_tuple_latency,
    published_window_latency,
)
from headway.models.pipeline.latency import PipelineLatency
from headway.models.pipeline.parameters import (
    Finalizing,
    Pipeline,
    PipelineJob,
    PipelineNodes,
    PipelineSetting,
)

RATE_PER_S = 8000.0


def pipeline(
    shuffle_period_s: Numeric = 0.2,
    poll_period_s: Numeric = 0.2,
    reduce_busy: Numeric = 0.3,
    *,
    map_busy: Numeric = 0.3,
    num_nodes: int = 8,
    mappers: int = 1,
    reducers: int = 1,
    num_cores: int = 8,
    noise: float = 0.0,
    dispersion: float = 0.0,
    finalizing: Finalizing | None = None,
    **job_changes: Numeric,
) -> Pipeline:
    """By default 8 mappers and 8 reducers with a node each, and cores to spare."""
    job = PipelineJob(
        map_per_row_s=map_busy * num_nodes * mappers / RATE_PER_S,
        reduce_per_row_s=reduce_busy * num_nodes * reducers / RATE_PER_S,
        outputs_per_row=1.0,
        input_row_bytes=0.0,
        shuffle_row_bytes=0.0,
        shuffle_fixed_s=0.0,
        fetch_fixed_s=0.0,
        batch_fixed_s=0.0,
        map_cv=noise,
        reduce_cv=noise,
    )
    return Pipeline(
        job=replace(job, **job_changes),
        nodes=PipelineNodes(
            num_cores=num_cores,
            link_bytes_per_s=1e9,
            stream_bytes_per_s=1e9,
            disk_bytes_per_s=1e9,
            disk_write_s=0.0,
            distributor_bytes_per_s=1e9,
        ),
        setting=PipelineSetting(
            num_nodes=num_nodes,
            mappers_per_node=mappers,
            reducers_per_node=reducers,
            num_distributors=num_nodes * mappers,
            input_period_s=0.005,
            shuffle_period_s=shuffle_period_s,
            poll_period_s=poll_period_s,
        ),
        rate_per_s=RATE_PER_S,
        dispersion=dispersion,
        finalizing=finalizing,
    )


def published(case: Pipeline) -> PipelineLatency:
    """The latency of rows as the paper's own formulas give it."""
    return published_tuple_latency(case, "in bulk")


def published_window(case: Pipeline) -> PipelineLatency:
    """The latency of windows as the paper's own formulas give it."""
    return published_window_latency(case, "in bulk")
