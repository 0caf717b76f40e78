"""The phases of the pipeline, one by one, on shared resources."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headway.models.arrays import Array, Numeric
from headway.models.pipeline.clocks import common_tick_s, poll_carry_over, poll_sharing
from headway.models.pipeline.latency import PipelineLatency, latency_of_parts
from headway.models.pipeline.parameters import Pipeline, PipelineLoads, pipeline_loads
from headway.models.queues.queueing import pollaczek_khinchine_wait
from headway.models.queues.random_walk import (
    lognormal_third_central_s3,
    queue_increment,
    shifted_gamma_wait,
)
from headway.models.stages.shared_resources import ThreadGroup, clocked_slowdowns

_SHORTEST_RATIO = 1e-9


class PipelineStages:
    """Times of the phases of a pipeline on shared resources, (L2)-(L6); zeros if unstable.

    Each wait is a mean [s] and a variance [s^2].
    """

    def __init__(self, pipeline: Pipeline) -> None:
        loads, setting, job = pipeline_loads(pipeline), pipeline.setting, pipeline.job
        map_slowdown, reduce_slowdown = cpu_slowdowns(pipeline, loads)
        # Fetches of one reducer are slowed down on the link into its node, (R3).
        fetchers = ThreadGroup(
            num_threads=setting.reducers_per_node, busy_ratio=np.minimum(loads.fetch_busy, 1.0)
        )
        (link_slowdown,) = clocked_slowdowns(loads.streams_per_link, [fetchers])
        stable = loads.stable & np.isfinite(map_slowdown + reduce_slowdown + link_slowdown)
        map_slowdown, reduce_slowdown, link_slowdown = (
            np.where(stable, slowdown, 1.0)
            for slowdown in (map_slowdown, reduce_slowdown, link_slowdown)
        )
        poll = np.asarray(setting.poll_period_s, dtype=np.float64)
        update_s = loads.reduce_s * reduce_slowdown
        fetch_s = loads.fetch_s * link_slowdown
        # The slower of the two determines the pace at which the batches of a poll are processed.
        pace_s = np.maximum(update_s, fetch_s)
        poll_fixed_s = loads.poll_fixed_s * reduce_slowdown
        stable &= loads.batches_per_poll * pace_s + poll_fixed_s < poll
        stable &= loads.map_s * map_slowdown < loads.map_period_s
        pace, poll_fixed = np.where(stable, pace_s, 0.0), np.where(stable, poll_fixed_s, 0.0)

        self.stable, self.loads = stable, loads
        self.input_period_s = setting.input_period_s
        self.shuffle_period_s = setting.shuffle_period_s
        self.poll_period_s = poll
        self.transfer_s = np.where(stable, loads.input_transfer_s, 0.0)
        self.map_s = np.where(stable, loads.map_s * map_slowdown, 0.0)
        self.write_s = np.where(stable, loads.write_s, 0.0)
        self.fetch_s = np.where(stable, fetch_s, 0.0)
        self.reduce_rows_s = np.where(stable, loads.reduce_rows_s * reduce_slowdown, 0.0)
        self.reduce_s = np.where(stable, update_s, 0.0)
        self.input_scv, self.shuffle_scv = loads.input_rows_scv, loads.shuffle_rows_scv
        self.map_scv = product_scv(self.input_scv, job.map_cv)
        self.reduce_scv = product_scv(self.shuffle_scv, job.reduce_cv)
        self.distributor_wait = _clocked_wait(
            setting.input_period_s, self.transfer_s, self.input_scv
        )
        self.mapper_wait = _clocked_wait(loads.map_period_s, self.map_s, self.map_scv)
        self.disk_wait = _disk_wait(pipeline, self.write_s, self.shuffle_scv)

        polls_ratio = poll / setting.shuffle_period_s
        others, variance_ahead = poll_sharing(loads.num_mappers, polls_ratio)
        # Work left over from earlier polls, (L5). If polls are more frequent than packing, a batch
        # never queues behind batches of its own mapper.
        num_batches = np.where(polls_ratio < 1.0, others, loads.batches_per_poll)
        carry_mean, carry_variance = poll_carry_over(
            poll,
            num_batches * pace + poll_fixed,
            num_batches * pace**2 * self.reduce_scv,
            pace,
            loads.num_mappers - 1.0,
            polls_ratio,
        )
        self.polled_width_s = np.abs(poll - others * pace)
        self.count_variance_s2 = (
            variance_ahead * pace**2 + 0.5 * others * pace**2 * self.reduce_scv + carry_variance
        )
        self.reducer_wait = (
            # The work of the poll itself continues while the first batch is transferred.
            0.5 * others * pace + carry_mean + np.maximum(poll_fixed - self.fetch_s, 0.0),
            (others * pace) ** 2 / 12.0 + self.count_variance_s2,
        )
        pairs = loads.num_mappers * loads.num_reducers
        common_s = common_tick_s(setting.shuffle_period_s, poll)
        self.run_to_run_sd_s = common_s / np.sqrt(12.0 * pairs)

    @property
    def update(self) -> tuple[Array, Array]:
        """Mean and variance of the time from the start of a batch to the end of its row."""
        mean, variance = in_batch(self.reduce_rows_s, self.shuffle_scv, self.reduce_scv)
        return self.reduce_s - self.reduce_rows_s + mean, variance

    def latency(
        self,
        names: tuple[str, ...],
        moments: tuple[tuple[Numeric, Numeric], ...],
        variance_s2: Array,
        widths_s: tuple[Array, Array],
    ) -> PipelineLatency:
        """The sum of the parts, with their dependence.

        **(L7)** The wait for the poll and the queue behind it are FIFO as in (L2), and together
        uniform of width `B_ch - Op`. A large batch takes longer in all phases:
        `Var = v(w+N)(w+N+S) + 1/3 S^2 c^2` for writing `w`, transfer `N` and update `S`, with
        `1 + c^2 = (1+v)(1+c_S^2)`. A row is more often in a large batch, so the means of `w`, `N`
        and `S/2` are `1 + v` times longer.
        """
        return replace(
            latency_of_parts(names, moments, self.stable),
            variance_s2=np.where(self.stable, variance_s2, np.inf),
            uniform_widths_s=widths_s,
            run_to_run_sd_s=np.where(self.stable, self.run_to_run_sd_s, np.inf),
        )


def cpu_slowdowns(pipeline: Pipeline, loads: PipelineLoads) -> tuple[Array, Array]:
    """Slowdowns of mappers and reducers on the cores of their node, (R3)."""
    setting = pipeline.setting
    threads = (
        (setting.mappers_per_node, loads.map_busy),
        (setting.reducers_per_node, loads.update_busy),
    )
    groups = [
        ThreadGroup(num_threads=num_threads, busy_ratio=np.minimum(busy, 1))
        for num_threads, busy in threads
    ]
    mappers, reducers = clocked_slowdowns(pipeline.nodes.num_cores, groups)
    return mappers, reducers


def _clocked_wait(period_s: Numeric, service_s: Array, service_scv: Array) -> tuple[Array, Array]:
    """Mean and variance of the wait of batches that arrive by a clock, (Q10)."""
    service = np.maximum(service_s, _SHORTEST_RATIO * np.asarray(period_s))
    third = lognormal_third_central_s3(service, np.sqrt(service_scv))
    variance = service_scv * service**2
    wait = shifted_gamma_wait(queue_increment(period_s, 0.0, 0.0, service, variance, third))
    return wait.mean_s, wait.variance_s2


def _disk_wait(pipeline: Pipeline, write_s: Array, rows_scv: Array) -> tuple[Array, Array]:
    """Mean and variance of the wait behind the writes of the other mappers of a node, (L6).

    **(L6)** The pace of a poll is that of the slower of transfer and update, `p = max(N, S)`; its
    wait is `O/2 p` plus (L5). Writes of other mappers are taken as Poisson (Q6). Input batches wait
    as in (Q10).
    """
    num_others = np.asarray(pipeline.setting.mappers_per_node, dtype=np.float64) - 1.0
    period = np.asarray(pipeline.setting.shuffle_period_s, dtype=np.float64)
    write = np.maximum(write_s, _SHORTEST_RATIO * period)
    interarrival = np.where(num_others > 0.0, period / np.maximum(num_others, 1.0), np.inf)
    second = write**2 * (1.0 + rows_scv)
    wait = pollaczek_khinchine_wait(interarrival, write, second, write**3 * (1.0 + rows_scv) ** 3)
    return wait.mean_s, wait.variance_s2


def wait_to_pack(period_s: Numeric) -> tuple[Numeric, Numeric]:
    """Mean and variance of a row's wait for the end of the period (L2)."""
    return 0.5 * period_s, period_s * period_s / 12.0


def in_batch(batch_s: Array, rows_scv: Numeric, scv: Array) -> tuple[Array, Array]:
    """Mean [s] and variance [s^2] of the time to a row at a random place in its batch.

    They are over rows; large batches contain more rows. ``batch_s`` is the time of a batch of
    average size, ``rows_scv`` the squared coefficient of variation of the rows of a batch, and
    ``scv`` that of the time of batches of equal size.

    **(L2)** Rows are processed in the order of arrival. A row that arrives at `x` waits `B - x`
    until its batch is packed, and is done after a share `x/B` of the time `S` of the batch. So
    `L = B - x(1-S/B)`, with mean `(B+S)/2` and variance `(B-S)^2/12`. Exact. Independent phases
    would give the variance `(B^2+S^2)/12`, which is 5 times as much at `S/B = 0.5`.

    >>> mean_s, variance_s2 = in_batch(np.array(0.6), np.array(0.0), np.array(0.0))
    >>> float(mean_s), float(variance_s2)
    (0.3, 0.03)
    """
    return 0.5 * batch_s * (1.0 + rows_scv), batch_s**2 * (1.0 / 12.0 + scv / 3.0)


def product_scv(rows_scv: Numeric, noise_cv: Numeric) -> Array:
    """Squared variation of the work in a batch (L7): both its rows and the time per row vary."""
    return (1.0 + np.asarray(rows_scv)) * (1.0 + np.asarray(noise_cv) ** 2) - 1.0
