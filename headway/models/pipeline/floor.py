"""Lower bound of latency over periods in a range, from loads and waits at the ends of the range."""

from __future__ import annotations

import numpy as np

from headway.models.arrays import Array
from headway.models.pipeline.clocks import last_packing
from headway.models.pipeline.parameters import Pipeline, pipeline_loads
from headway.models.pipeline.stages import cpu_slowdowns


def latency_floor_s(shortest: Pipeline, longest: Pipeline, *, quantile: float | None) -> Array:
    r"""Lower bound of the corrected model's latency for any shuffle and poll period in a range.

    The latency of a window for a windowed job, else of a row; ``inf`` if no period of the range is
    stable. The floor of a quantile below one half is 0.

    Parameters
    ----------
    shortest, longest : Pipeline
        One pipeline at the shortest and at the longest shuffle and poll period of the range,
        otherwise equal.
    quantile : float or None, 0 < quantile < 1
        None is the mean.

    Notes
    -----
    **(L15)** Lower bound over `B_sh` and `B_ch` in ranges: the busy shares of (L1) fall with both
    periods, so they, and the slowdowns (R3) that follow from them, are smallest at the upper ends.
    Every wait of (L2)-(L6) grows at least with its own period, and the queue of a poll is at least
    `½(M_t-1)(B_ch/B_sh) p`, where `p/B_sh` is smallest at the upper end. Terms that are never
    negative are left out: variation of rows, work carried over, waits of distributors, mappers and
    disks. The law of (L8) is symmetric and contains a uniform of width `B_sh - S ≥ B_sh(1-1/M_t)`,
    or `τ` for windows, so a quantile `q ≥ ½` exceeds the mean by at least `q - ½` of that width.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from headway.models.pipeline.corrected import tuple_latency
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
