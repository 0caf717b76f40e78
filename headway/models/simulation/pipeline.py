"""The mini-batch pipeline, batch by batch: oracle of `headway.models.pipeline.corrected`."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from headway.models.arrays import Array, Numeric
from headway.models.pipeline.latency import PHASES
from headway.models.pipeline.parameters import Pipeline
from headway.models.simulation.pipeline_events import PipelineRun
from headway.models.simulation.pipeline_rows import followed_rows, followed_windows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PipelineTrace:
    """Times of rows and windows after the warm-up.

    ``phase_s`` and ``window_latency_s`` are ``inf`` for what had not ended with the simulation.
    """

    phase_s: Array
    """Time in each of the 12 phases, (12, rows), of rows sampled evenly from all input. [s]"""
    window_latency_s: Array
    """End of each window to end of finalizing, for keys sampled evenly; empty if none. [s]"""
    map_busy: float
    """Share of the time that mappers were working, including slowdown. [-]"""
    reduce_busy: float
    """The same for reducers, including finalizing. [-]"""

    @property
    def latency_s(self) -> Array:
        """Latency of each row. [s]"""
        total: Array = self.phase_s.sum(axis=0)
        return total

    @property
    def mean_s(self) -> float:
        """Mean latency of rows. [s]"""
        return float(self.latency_s.mean())

    @property
    def sd_s(self) -> float:
        """Standard deviation of the latency of rows. [s]"""
        return float(self.latency_s.std())

    def quantile_s(self, q: Numeric) -> Array:
        """Quantile of the latency of rows, 0..1. [s]"""
        return np.asarray(np.quantile(self.latency_s, q, method="inverted_cdf"))

    def phase_means_s(self) -> dict[str, float]:
        """Mean time in each phase. [s]"""
        return {
            name: float(mean) for name, mean in zip(PHASES, self.phase_s.mean(axis=1), strict=True)
        }


def simulate_pipeline(
    pipeline: Pipeline,
    *,
    length_s: float,
    seed: int,
    warmup_s: float,
    num_rows: int = 100_000,
    most_jobs_per_fetch: int = 64,
) -> PipelineTrace:
    r"""Simulate distributors, mappers, disks, links and reducers, and follow rows through them.

    Arguments outside their ranges, and fields that are arrays, raise ``ValueError``.

    Parameters
    ----------
    length_s : float, > 0
        Time over which the followed rows arrive, and the followed windows end.
    seed : int
        Of the phases of all clocks, numbers of rows, and noise.
    warmup_s : float, >= 0
        Time before that.
    num_rows : int, >= 1
        Rows to follow.
    most_jobs_per_fetch : int, >= 1
        Maximum number of groups in which batches of one poll are processed; a group enters the
        queue of the reducer when all of it has arrived.

    Notes
    -----
    **(S5)** Pipeline: distributors, offset by equal parts of `B_in`, hand batches to the mappers in
    turn, node by node, each through its own link. Counts are `φ · Poisson`. Mappers and reducers
    are threads on the cores of their node (S4), fetches are threads on the link into it, and each
    node has one FIFO disk. Clocks of mappers and reducers have random phases; all queues are FIFO
    by batch. A reducer finalizes a window after the batch that completes it. Rows are followed by
    interpolation within their batch.

    After ``length_s`` the simulation continues for as long as rows need in a pipeline that keeps
    up.
    """
    if not (length_s > 0.0 and warmup_s >= 0.0 and num_rows >= 1 and most_jobs_per_fetch >= 1):
        raise ValueError("need length_s > 0, warmup_s >= 0, and at least one row and job")
    _refuse_arrays(pipeline)
    setting = pipeline.setting
    final_s = 0.0 if pipeline.finalizing is None else float(pipeline.finalizing.window_s)
    drain_s = 5.0 * float(setting.shuffle_period_s + setting.poll_period_s + setting.input_period_s)
    drain_s += 5.0 * final_s + 1.0
    random = np.random.default_rng(seed)
    run = PipelineRun(pipeline, warmup_s + length_s + drain_s, most_jobs_per_fetch, random)
    run.simulate()
    end_s = warmup_s + length_s
    return PipelineTrace(
        phase_s=followed_rows(run, warmup_s, end_s, num_rows, random),
        window_latency_s=followed_windows(run, warmup_s, end_s),
        map_busy=run.map_busy,
        reduce_busy=run.reduce_busy,
    )


def _refuse_arrays(pipeline: Pipeline) -> None:
    for part in (pipeline, pipeline.job, pipeline.nodes, pipeline.setting, pipeline.finalizing):
        if part is None:
            continue
        for field in fields(part):
            value = getattr(part, field.name)
            if isinstance(value, np.ndarray) and value.ndim:
                raise ValueError(f"{field.name} must be a scalar to be simulated")
