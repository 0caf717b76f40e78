"""The 12 phases of the mini-batch pipeline and their dependence: clocks, order, counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headway.models.arrays import Array, Numeric
from headway.models.pipeline.clocks import last_packing
from headway.models.pipeline.latency import PHASES, WINDOW_PHASES, PipelineLatency
from headway.models.pipeline.parameters import Pipeline
from headway.models.pipeline.stages import PipelineStages, in_batch, wait_to_pack
from headway.models.stages.shared_resources import ThreadGroup, slowdown_beside

_MOST_ITERATIONS = 40


def tuple_latency(pipeline: Pipeline) -> PipelineLatency:
    r"""Latency of a row of map output, from the distributor to the end of its update function.

    Over the rows of all runs; ``inf`` if a part of the pipeline cannot keep up.

    Parameters
    ----------
    pipeline : Pipeline
        Clocks of mappers and reducers have random phases; batches wait in the order in which they
        were packed.

    Notes
    -----
    theory.md (L2)-(L8). Against (S5), 8 mappers, periods of 0.02 to 1 s in all pairs, reducers 0.3
    to 0.85 busy; that page gives the errors.
    """
    stages = PipelineStages(pipeline)
    moments = (
        wait_to_pack(stages.input_period_s),
        stages.distributor_wait,
        # A row is more often in a large batch than in a small one.
        (stages.transfer_s * (1.0 + stages.input_scv), stages.transfer_s**2 * stages.input_scv),
        stages.mapper_wait,
        in_batch(stages.map_s, stages.input_scv, stages.map_scv),
        wait_to_pack(stages.shuffle_period_s),
        stages.disk_wait,
        (stages.write_s * (1.0 + stages.shuffle_scv), stages.write_s**2 * stages.shuffle_scv),
        wait_to_pack(stages.poll_period_s),
        (stages.fetch_s * (1.0 + stages.shuffle_scv), stages.fetch_s**2 * stages.shuffle_scv),
        stages.reducer_wait,
        stages.update,
    )
    packed_width = np.abs(stages.shuffle_period_s - stages.reduce_rows_s)
    variance = (
        # Early rows of a batch wait longer until it is packed, and are processed first.
        ((stages.input_period_s - stages.map_s) ** 2 + packed_width**2 + stages.polled_width_s**2)
        / 12.0
        + stages.map_s**2 * stages.map_scv / 3.0
        + stages.reduce_rows_s**2 * stages.reduce_scv / 3.0
        # A large batch takes longer in all phases.
        + stages.input_scv * stages.transfer_s * (stages.transfer_s + stages.map_s)
        + stages.shuffle_scv
        * (stages.write_s + stages.fetch_s)
        * (stages.write_s + stages.fetch_s + stages.reduce_rows_s)
        + stages.distributor_wait[1]
        + stages.mapper_wait[1]
        + stages.disk_wait[1]
        + stages.count_variance_s2
    )
    return stages.latency(PHASES, moments, variance, (packed_width, stages.polled_width_s))


def window_latency(pipeline: Pipeline) -> PipelineLatency:
    r"""Latency of a windowed result, from the end of its window to the end of its finalizing.

    Over all keys of all windows; ``inf`` if a part of the pipeline cannot keep up.

    Parameters
    ----------
    pipeline : Pipeline
        With ``finalizing``.

    Notes
    -----
    **(L13)** Windows: the last rows of each mapper are mapped at a random time in `A` and packed at
    a random time in `B_sh` after that; the law of the largest of `M_t` such sums follows by
    quadrature of `F^M_t`. The poll and the queue behind it are common to all and are added once.
    All reducers of a node finalize at about the same time, so each is slowed down by the others
    (R2). The two uniforms of a window's law are finalizing and the poll.

    ``run_to_run_sd_s`` is for a slide that is a multiple of both periods, so that all windows of a
    run end at the same phase of the clocks.
    """
    final = pipeline.finalizing
    if final is None:
        raise ValueError("a window latency needs the pipeline's finalizing")
    stages = PipelineStages(pipeline)
    last_mean, last_variance = last_packing(
        stages.loads.map_period_s,
        stages.input_period_s,
        stages.shuffle_period_s,
        stages.loads.num_mappers,
        stages.map_s,
    )
    keys = np.asarray(final.num_keys, dtype=np.float64)
    slowdown = _final_slowdown(pipeline, stages, final.window_s)
    final_s = np.where(stages.stable, final.window_s * slowdown, 0.0)
    before = sum(
        (mean for mean, _ in (stages.distributor_wait, stages.mapper_wait, stages.disk_wait)),
        np.zeros(()),
    )
    mean_of_last = (
        last_mean
        + before
        + stages.transfer_s
        + stages.write_s
        + 0.5 * stages.poll_period_s
        + stages.fetch_s
        + stages.reducer_wait[0]
        + stages.reduce_s
    )
    variance_of_last = (
        last_variance
        + stages.polled_width_s**2 / 12.0
        + stages.count_variance_s2
        + stages.shuffle_scv * (stages.write_s + stages.fetch_s + stages.reduce_rows_s) ** 2
        + stages.reduce_rows_s**2 * np.asarray(pipeline.job.reduce_cv) ** 2
    )
    moments = ((mean_of_last, variance_of_last), final.time_to_key(final_s))
    final_width = final_s * np.sqrt(1.0 - 1.0 / keys**2)
    variance = variance_of_last + final_width**2 / 12.0
    widths_s = (final_width, stages.polled_width_s)
    latency = stages.latency(WINDOW_PHASES, moments, variance, widths_s)
    between_runs = last_variance + stages.polled_width_s**2 / (12.0 * stages.loads.num_reducers)
    return replace(latency, run_to_run_sd_s=np.where(stages.stable, np.sqrt(between_runs), np.inf))


def _final_slowdown(pipeline: Pipeline, stages: PipelineStages, window_s: Numeric) -> Array:
    """Slowdown of finalizing: all reducers of a node do it within about one poll period."""
    apart_s = stages.polled_width_s / 3.0
    together_ratio = np.maximum(1.0 - apart_s / window_s, np.minimum(stages.loads.update_busy, 1.0))
    cores, setting = pipeline.nodes.num_cores, pipeline.setting
    map_busy = busy_alone = np.minimum(stages.loads.map_busy, 1.0)
    reducers = ThreadGroup(
        num_threads=np.asarray(setting.reducers_per_node) - 1, busy_ratio=together_ratio
    )
    finalizing_reducer = ThreadGroup(num_threads=1, busy_ratio=1.0)
    num_other_mappers = np.asarray(setting.mappers_per_node) - 1
    # Mappers are slowed down, too, and are thus busy for longer.
    for _ in range(_MOST_ITERATIONS):
        mappers = ThreadGroup(num_threads=num_other_mappers, busy_ratio=map_busy)
        map_busy = np.minimum(
            busy_alone * slowdown_beside(cores, [mappers, reducers, finalizing_reducer]), 1.0
        )
    all_mappers = ThreadGroup(num_threads=setting.mappers_per_node, busy_ratio=map_busy)
    return slowdown_beside(cores, [all_mappers, reducers])
