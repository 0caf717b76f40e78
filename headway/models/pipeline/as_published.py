"""The 12 phases as in the VLDB'15 paper: independent, each queue G/G/1, the sum normal."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from headway.models.arrays import Array, Numeric
from headway.models.laws.distributions import max_normal
from headway.models.pipeline.latency import PHASES, WINDOW_PHASES, PipelineLatency, latency_of_parts
from headway.models.pipeline.parameters import (
    Pipeline,
    PipelineLoads,
    PipelineSetting,
    pipeline_loads,
)
from headway.models.pipeline.stages import in_batch, product_scv, wait_to_pack
from headway.models.queues.queueing import qna_wait
from headway.models.stages.shared_resources import published_slowdown

_SHORTEST_RATIO = 1e-9


ReducerArrivals: TypeAlias = Literal["in bulk", "Poisson", "clocked"]
"""How batches arrive at the reducer's G/G/1 queue, which the paper does not specify.

In bulk, as they really arrive: all batches of a poll at once, then none for a period; or as if they
arrived one by one, at random or evenly.
"""


def published_tuple_latency(pipeline: Pipeline, arrivals: ReducerArrivals) -> PipelineLatency:
    r"""Latency of a row of map output, as the paper models it.

    It is normal; the paper uses its `cantelli_bound_s` if no latency can be observed. It is ``inf``
    if unstable, or if the other threads leave too little by (R1). It depends strongly on what is
    taken for the ``arrivals`` at the reducer's queue.

    **(L11)** As published: phases are independent. Batching and heartbeat have mean `B/2` and
    variance `B^2/12`; processing takes half the batch, at the share of (R1). Queues are G/G/1, here
    by QNA (Q5). For the moments of the reducer's inter-arrival times the paper refers to a report
    that is not available, and the result depends on them: in bulk `c_A^2 = K(2-p)/p - 1`,
    `p = 1 - (1-min(q, 1))^M_t`; Poisson 1; clocked 0. It is not known which of these the paper
    uses.

    Other gaps are filled as follows: a row is anywhere in its batch, independently of its arrival;
    fixed work belongs to the batches that cause it. It is not known whether the paper does the
    same.
    """
    loads, setting = pipeline_loads(pipeline), pipeline.setting
    others_writing = loads.disk_busy * (
        1.0 - 1.0 / np.asarray(setting.mappers_per_node, np.float64)
    )
    others_fetching = (np.asarray(setting.reducers_per_node, np.float64) - 1.0) * loads.fetch_busy
    slowdowns = (
        *_cpu_slowdowns(pipeline, loads),
        published_slowdown(1.0, others_writing),
        published_slowdown(loads.streams_per_link, others_fetching),
    )
    stable = loads.stable & np.isfinite(sum(slowdowns, np.zeros(())))
    map_slowdown, reduce_slowdown, disk_slowdown, link_slowdown = (
        np.where(stable, slowdown, 1.0) for slowdown in slowdowns
    )
    map_s = loads.map_s * map_slowdown
    # The fixed work of a poll is shared by its batches.
    poll_share_s = loads.poll_fixed_s / loads.batches_per_poll
    reduce_s = (loads.reduce_s + poll_share_s) * reduce_slowdown
    write_s = loads.write_s * disk_slowdown
    fetch_s = loads.fetch_s * link_slowdown
    batch_period_s = setting.poll_period_s / loads.batches_per_poll
    stable &= (map_s < loads.map_period_s) & (write_s < setting.shuffle_period_s)
    stable &= reduce_s < batch_period_s
    transfer_s, map_s, write_s, fetch_s, reduce_s = (
        np.where(stable, value, 0.0)
        for value in (loads.input_transfer_s, map_s, write_s, fetch_s, reduce_s)
    )
    map_scv = product_scv(loads.input_rows_scv, pipeline.job.map_cv)
    reduce_scv = product_scv(loads.shuffle_rows_scv, pipeline.job.reduce_cv)
    arrival_scv = _arrival_scv(arrivals, loads, setting)
    moments = (
        wait_to_pack(setting.input_period_s),
        _queue(setting.input_period_s, 0.0, transfer_s, loads.input_rows_scv),
        (transfer_s, transfer_s**2 * loads.input_rows_scv),
        _queue(loads.map_period_s, 0.0, map_s, map_scv),
        # As if there were no more rows in a large batch than in a small one.
        in_batch(map_s, 0.0, map_scv),
        wait_to_pack(setting.shuffle_period_s),
        _queue(setting.shuffle_period_s, 0.0, write_s, loads.shuffle_rows_scv),
        (write_s, write_s**2 * loads.shuffle_rows_scv),
        wait_to_pack(setting.poll_period_s),
        (fetch_s, fetch_s**2 * loads.shuffle_rows_scv),
        _queue(batch_period_s, arrival_scv, reduce_s, reduce_scv),
        in_batch(reduce_s, 0.0, reduce_scv),
    )
    return latency_of_parts(PHASES, moments, stable)


def published_window_latency(pipeline: Pipeline, arrivals: ReducerArrivals) -> PipelineLatency:
    r"""Latency of a windowed result, as the paper models it.

    It is normal, of two parts: the last rows of all mappers, and the finalize function, which the
    pipeline must have.

    **(L12)** As published, windows: the largest of `M_t` independent normals (X1), plus a share of
    the finalizing time `τ`. Key `i` of `k` is done after `i τ/k`, which has mean `τ/2 (1+1/k)` and
    variance `(τ^2)/12 (1-1/(k^2))`.
    """
    final = pipeline.finalizing
    if final is None:
        raise ValueError("a window latency needs the pipeline's finalizing")
    loads, row = pipeline_loads(pipeline), published_tuple_latency(pipeline, arrivals)
    stable = row.is_stable
    scores = np.array([max_normal(int(number)) for number in loads.num_mappers.flat])
    mean_score, sd_score = scores.T.reshape(2, *loads.num_mappers.shape)
    _, slowdown = _cpu_slowdowns(pipeline, loads)
    final_s = final.window_s * np.where(stable, slowdown, 0.0)
    row_mean_s, row_sd_s = np.where(stable, row.mean_s, 0.0), np.where(stable, row.sd_s, 0.0)
    moments = (
        (row_mean_s + mean_score * row_sd_s, (row_sd_s * sd_score) ** 2),
        final.time_to_key(final_s),
    )
    return latency_of_parts(WINDOW_PHASES, moments, stable)


def _cpu_slowdowns(pipeline: Pipeline, loads: PipelineLoads) -> tuple[Array, Array]:
    """Slowdown of a mapper and of a reducer, each with all other threads of its node, (R1)."""
    setting, cores = pipeline.setting, np.asarray(pipeline.nodes.num_cores, dtype=np.float64)
    total = (
        setting.mappers_per_node * loads.map_busy + setting.reducers_per_node * loads.reduce_busy
    )
    return (
        published_slowdown(cores, np.maximum(total - loads.map_busy, 0.0)),
        published_slowdown(cores, np.maximum(total - loads.reduce_busy, 0.0)),
    )


def _arrival_scv(
    arrivals: ReducerArrivals, loads: PipelineLoads, setting: PipelineSetting
) -> Array:
    """Squared variation of the time between two batches at a reducer."""
    if arrivals == "Poisson":
        return np.ones_like(loads.batches_per_poll)
    if arrivals == "clocked":
        return np.zeros_like(loads.batches_per_poll)
    # Zero within a poll, else whole poll periods.
    in_poll = np.minimum(np.asarray(setting.poll_period_s) / setting.shuffle_period_s, 1.0)
    filled = 1.0 - (1.0 - in_poll) ** loads.num_mappers
    return loads.batches_per_poll * (2.0 - filled) / filled - 1.0


def _queue(
    interarrival_s: Numeric, interarrival_scv: Numeric, service_s: Array, service_scv: Array
) -> tuple[Array, Array]:
    """Mean and variance of a G/G/1 wait; the service is taken as lognormal."""
    # Zero service times cause no wait, and the formula does not accept them.
    service = np.maximum(service_s, _SHORTEST_RATIO * np.asarray(interarrival_s))
    third_ratio = (1.0 + service_scv) ** 3
    wait = qna_wait(interarrival_s, interarrival_scv, service, service_scv, third_ratio)
    return wait.mean_s, wait.variance_s2
