"""The 12 phases of the mini-batch pipeline and their dependence, and a bound over all periods."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headway.models.arrays import Array, Numeric
from headway.models.pipeline.clocks import last_packing
from headway.models.pipeline.latency import PHASES, WINDOW_PHASES, PipelineLatency
from headway.models.pipeline.parameters import Pipeline, pipeline_loads
from headway.models.pipeline.stages import PipelineStages, cpu_slowdowns, in_batch, wait_to_pack
from headway.models.stages.shared_resources import ThreadGroup, slowdown_beside

_MOST_ITERATIONS = 40


def tuple_latency(pipeline: Pipeline) -> PipelineLatency:
    r"""Latency of a row of map output, from the distributor to the end of its update function.

    Over the rows of all runs; ``inf`` if a part of the pipeline cannot keep up. Clocks of mappers
    and reducers have random phases; batches wait in the order in which they were packed.

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

    Over all keys of all windows; ``inf`` if a part of the pipeline cannot keep up. It must have
    ``finalizing``.

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
        pipeline.setting.input_period_s,
        pipeline.setting.shuffle_period_s,
        stages.loads.num_mappers,
        stages.map_s,
    )
    keys = np.asarray(final.num_keys, dtype=np.float64)
    slowdown = _final_slowdown(pipeline, stages, final.window_s)
    final_s = np.where(stages.stable, final.window_s * slowdown, 0.0)
    before = stages.distributor_wait[0] + stages.mapper_wait[0] + stages.disk_wait[0]
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


def latency_floor_s(shortest: Pipeline, longest: Pipeline, *, quantile: float | None) -> Array:
    r"""Lower bound of the corrected model's latency for any shuffle and poll period in a range.

    The latency of a window for a windowed job, else of a row; ``inf`` if no period of the range is
    stable. The floor of a quantile below one half is 0.

    Parameters
    ----------
    shortest, longest : Pipeline
        One pipeline at the shortest and at the longest shuffle and poll period of the range,
        otherwise equal.
    quantile : float or None, 0 < quantile < 1; None is the mean

    **(L15)** Lower bound over `B_sh` and `B_ch` in ranges: the busy shares of (L1) fall with both
    periods, so they, and the slowdowns (R3) that follow from them, are smallest at the upper ends.
    Every wait of (L2)-(L6) grows at least with its own period, and the queue of a poll is at least
    `½(M_t-1)(B_ch/B_sh) p`, where `p/B_sh` is smallest at the upper end. Terms that are never
    negative are left out: variation of rows, work carried over, waits of distributors, mappers and
    disks. The law of (L8) is symmetric and contains a uniform of width `B_sh - S ≥ B_sh(1-1/M_t)`,
    or `τ` for windows, so a quantile `q ≥ ½` exceeds the mean by at least `q - ½` of that width.

    >>> from dataclasses import replace
    >>> from headway.models.pipeline.parameters import PipelineJob, PipelineNodes, PipelineSetting
    >>> job = PipelineJob(
    ...     map_per_row_s=3e-4, reduce_per_row_s=3e-4, outputs_per_row=1.0, input_row_bytes=0,
    ...     shuffle_row_bytes=0, shuffle_fixed_s=0, fetch_fixed_s=0, batch_fixed_s=0, map_cv=0,
    ...     reduce_cv=0,
    ... )
    >>> nodes = PipelineNodes(
    ...     num_cores=8, link_bytes_per_s=1e9, stream_bytes_per_s=1e9, disk_bytes_per_s=1e9,
    ...     disk_write_s=0.0, distributor_bytes_per_s=1e9,
    ... )
    >>> setting = PipelineSetting(
    ...     num_nodes=8, mappers_per_node=1, reducers_per_node=1, num_distributors=8,
    ...     input_period_s=0.005, shuffle_period_s=0.2, poll_period_s=0.2,
    ... )
    >>> short = Pipeline(job=job, nodes=nodes, setting=setting, rate_per_s=8000.0,
    ...                  dispersion=0.0)
    >>> long = replace(short, setting=replace(setting, shuffle_period_s=0.25, poll_period_s=0.25))
    >>> float(latency_floor_s(short, long, quantile=None)), float(tuple_latency(short).mean_s)
    (0.24, 0.24)
    """
    low, calm = pipeline_loads(shortest), pipeline_loads(longest)
    job, setting = shortest.job, shortest.setting
    map_slowdown, reduce_slowdown = cpu_slowdowns(longest, calm)
    stable = calm.stable & np.isfinite(map_slowdown + reduce_slowdown)
    map_slowdown, reduce_slowdown = (
        np.where(stable, slowdown, 1.0) for slowdown in (map_slowdown, reduce_slowdown)
    )
    pace_per_period = (
        np.maximum(calm.reduce_s * reduce_slowdown, calm.fetch_s) / longest.setting.shuffle_period_s
    )
    busy = calm.num_mappers * pace_per_period
    busy = busy + calm.poll_fixed_s * reduce_slowdown / longest.setting.poll_period_s
    stable &= (busy < 1.0) & (calm.map_s * map_slowdown < calm.map_period_s)
    queue_s = 0.5 * (low.num_mappers - 1.0) * setting.poll_period_s * pace_per_period
    map_s = low.map_s * map_slowdown
    rows_s = low.reduce_rows_s * reduce_slowdown
    fixed_s = np.asarray(job.batch_fixed_s) * reduce_slowdown
    common_s = (
        low.input_transfer_s + low.write_s + 0.5 * setting.poll_period_s + low.fetch_s + queue_s
    )
    final = shortest.finalizing
    if final is None:
        own_s = 0.5 * (setting.input_period_s + map_s + setting.shuffle_period_s + rows_s) + fixed_s
        width_s = np.asarray(setting.shuffle_period_s) * (1.0 - 1.0 / low.num_mappers)
    else:
        keys = np.asarray(final.num_keys, dtype=np.float64)
        final_s = np.asarray(final.window_s, dtype=np.float64)
        packed_s, _ = last_packing(
            low.map_period_s,
            setting.input_period_s,
            setting.shuffle_period_s,
            low.num_mappers,
            map_s,
        )
        own_s = packed_s + rows_s + fixed_s + final.time_to_key(final_s)[0]
        width_s = final_s * np.sqrt(1.0 - 1.0 / keys**2)
    mean_s = common_s + own_s
    if quantile is None:
        least_s = mean_s
    elif quantile < 0.5:
        least_s = np.zeros_like(mean_s)
    else:
        least_s = mean_s + (quantile - 0.5) * width_s
    return np.where(stable, least_s, np.inf)
