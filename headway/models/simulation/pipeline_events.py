"""The events of a run of the mini-batch pipeline: its input, ticks, writes, polls, resources."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headway.models.arrays import Array, poisson_counts
from headway.models.pipeline.parameters import Pipeline
from headway.models.queues.queueing import lindley_waits_s
from headway.models.simulation.fair_share import FairShare

_SAME_ROW_RATIO = 1e-9


_Work: TypeAlias = Literal["map", "pack", "ask", "update", "finalize"]
_Job: TypeAlias = tuple[_Work, int]  # with the number of a batch, a mapper or a window


class InputBatches(NamedTuple):
    """One element per batch, in the order of packing."""

    packed_s: Array  # End of the input period whose rows it contains. [s]
    num_rows: Array  # Its rows. [-]
    sent_s: Array  # Start of its transfer. [s]
    arrived_s: Array  # End of its transfer. [s]
    mapper: NDArray[np.int64]  # Its destination.
    rows_before: Array  # Rows of the same mapper that arrive before it. [-]
    map_work_s: Array  # Core time that it needs. [s]


def input_batches(pipeline: Pipeline, end_s: float, random: np.random.Generator) -> InputBatches:
    """Batches packed before ``end_s`` by distributors, offset by equal parts of a period (S5)."""
    job, setting = pipeline.job, pipeline.setting
    num_distributors = int(setting.num_distributors)
    num_mappers = int(setting.num_nodes) * int(setting.mappers_per_node)
    period_s = float(setting.input_period_s)
    step_s = period_s / num_distributors
    num_batches = max(int(end_s / step_s), num_distributors)
    number = np.arange(num_batches)
    packed = step_s * (number.astype(np.float64) + random.random())
    rows = _poisson_multiples(
        float(pipeline.rate_per_s) * step_s, float(pipeline.dispersion), num_batches, random
    )
    transfer = rows * float(job.input_row_bytes) / float(pipeline.nodes.distributor_bytes_per_s)
    sent = packed.copy()
    for distributor in range(num_distributors):
        of_distributor = slice(distributor, None, num_distributors)
        sent[of_distributor] += lindley_waits_s(
            np.full(len(packed[of_distributor]), period_s), transfer[of_distributor]
        )
    mapper = number % num_mappers
    log_variance = float(np.log1p(float(job.map_cv) * float(job.map_cv)))
    normal = random.standard_normal(num_batches)
    noise = np.exp(np.sqrt(log_variance) * normal - 0.5 * log_variance)
    work = rows * float(job.map_per_row_s) * noise
    before = np.empty(num_batches)
    arrived = sent + transfer
    for index in range(num_mappers):
        mapper_batches = np.flatnonzero(mapper == index)
        mapper_batches = mapper_batches[np.argsort(arrived[mapper_batches], kind="stable")]
        before[mapper_batches] = np.cumsum(rows[mapper_batches]) - rows[mapper_batches]
    return InputBatches(packed, rows, sent, arrived, mapper, before, work)


def rows_of_window(batches: InputBatches, period_s: float, mapper: int, end_s: float) -> float:
    """Position, among the rows of a mapper, of the last one that arrived before ``end_s`` (S5).

    It is 0 if none arrived. The rows of a batch arrive over the input period ``period_s``.

    >>> at_s, rows = np.array([1.0, 2.0]), np.array([10.0, 20.0])
    >>> mapper, before = np.zeros(2, dtype=np.int64), np.array([0.0, 10.0])
    >>> two = InputBatches(at_s, rows, at_s, at_s, mapper, before, rows)
    >>> rows_of_window(two, 1.0, 0, 1.5)
    20.0
    """
    of_mapper = batches.mapper == mapper
    arrived_share = np.clip((end_s - batches.packed_s[of_mapper] + period_s) / period_s, 0.0, 1.0)
    position = batches.rows_before[of_mapper] + arrived_share * batches.num_rows[of_mapper]
    return float(np.max(position, where=arrived_share > 0.0, initial=0.0))


def _poisson_multiples(
    mean: float, dispersion: float, num_values: int, random: np.random.Generator
) -> Array:
    """Counts with variance ``dispersion`` times their mean; constant without dispersion."""
    if dispersion == 0.0:
        return np.full(num_values, mean)
    return dispersion * poisson_counts(random, mean / dispersion, num_values)


@dataclass(slots=True)
class ShuffleBatch:
    """Rows that a mapper packed at one tick."""

    mapper: int
    packed_s: float
    num_rows: float
    rows_until: float  # of the same mapper, this batch included
    write_start_s: float
    write_end_s: float
    windows: range  # windows whose last rows of this mapper it contains
    rank: int = -1  # by the order in which they can be fetched; -1 before that


@dataclass(slots=True)
class FetchedGroup:
    """Batches that go through a reducer together; ``inf`` for what has not happened yet."""

    reducer: int
    first: int  # rank of a batch
    after: int
    fetch_start_s: float = math.inf
    fetch_end_s: float = math.inf
    update_start_s: float = math.inf
    update_end_s: float = math.inf


class PipelineRun:
    """One run of a pipeline (S5), for `headway.models.simulation.pipeline.simulate_pipeline`."""

    def __init__(
        self,
        pipeline: Pipeline,
        end_s: float,
        most_jobs_per_fetch: int,
        random: np.random.Generator,
    ) -> None:
        job, setting, nodes = pipeline.job, pipeline.setting, pipeline.nodes
        self.pipeline = pipeline
        self.end_s = end_s
        self.input: InputBatches = input_batches(pipeline, end_s, random)
        self.batches: list[ShuffleBatch] = []
        self.groups: list[FetchedGroup] = []
        self.ranked_rows = [0.0]  # rows of all batches of lower rank
        self.map_start_s = np.full(len(self.input.packed_s), math.inf)
        self.map_end_s = np.full(len(self.input.packed_s), math.inf)
        self.busy_s = defaultdict[_Work, float](float)
        self.final_times_s: dict[tuple[int, int], tuple[float, float]] = {}

        self.num_mappers = int(setting.num_nodes) * int(setting.mappers_per_node)
        self.num_reducers = int(setting.num_nodes) * int(setting.reducers_per_node)
        self._mappers_per_node = int(setting.mappers_per_node)
        self._reducers_per_node = int(setting.reducers_per_node)
        self._shuffle_period_s = float(setting.shuffle_period_s)
        self._poll_period_s = float(setting.poll_period_s)
        self._most_jobs_per_fetch = most_jobs_per_fetch
        outputs = float(job.outputs_per_row)
        self._write_fixed_s = float(nodes.disk_write_s)
        self._write_per_row_s = outputs * float(
            job.shuffle_row_bytes / np.float64(nodes.disk_bytes_per_s)
        )
        self._fetch_per_row_s = (outputs / self.num_reducers) * float(
            job.shuffle_row_bytes / np.float64(nodes.stream_bytes_per_s)
        )
        self.update_per_row_s = outputs / self.num_reducers * float(job.reduce_per_row_s)
        self.batch_fixed_s = float(job.batch_fixed_s)
        self._pack_s = float(job.shuffle_fixed_s)
        self._ask_s = float(job.fetch_fixed_s)
        self._reduce_log_variance = math.log1p(float(job.reduce_cv) ** 2)
        self._random = random

        self._cores = [
            FairShare[_Job](
                float(nodes.num_cores), self._mappers_per_node + self._reducers_per_node
            )
            for _ in range(int(setting.num_nodes))
        ]
        streams = float(nodes.link_bytes_per_s) / float(nodes.stream_bytes_per_s)
        self._links = [
            FairShare[int](streams, self._reducers_per_node) for _ in range(int(setting.num_nodes))
        ]
        self._disk_free_s = [0.0] * int(setting.num_nodes)
        self._mapped = [0.0] * self.num_mappers
        self._packed = [0.0] * self.num_mappers
        self._taken = [0] * self.num_reducers
        # With what happens then, and to which mapper, shuffle batch, reducer or node.
        self._events: list[tuple[float, int, Callable[..., None], tuple[int, ...]]] = []
        self._num_events = 0
        self._plan_windows()

    @property
    def map_busy(self) -> float:
        """Share of the time that mappers worked. [-]"""
        worked = self.busy_s["map"] + self.busy_s["pack"]
        return worked / (self.end_s * self.num_mappers)

    @property
    def reduce_busy(self) -> float:
        """Share of the time that reducers worked. [-]"""
        worked = self.busy_s["ask"] + self.busy_s["update"] + self.busy_s["finalize"]
        return worked / (self.end_s * self.num_reducers)

    def simulate(self) -> None:
        """Run all events up to the end."""
        for mapper in range(self.num_mappers):
            self._push(self._random.random() * self._shuffle_period_s, self._pack, mapper)
        for reducer in range(self.num_reducers):
            self._push(self._random.random() * self._poll_period_s, self._poll, reducer)
        order = np.argsort(self.input.arrived_s, kind="stable")
        arrivals = self.input.arrived_s[order].tolist()
        arriving: list[int] = order.tolist()
        next_arrival = 0
        while True:
            if next_arrival < len(arrivals) and arrivals[next_arrival] <= self._events[0][0]:
                now_s, number = arrivals[next_arrival], arriving[next_arrival]
                next_arrival += 1
                if now_s > self.end_s:
                    break
                node, thread = divmod(int(self.input.mapper[number]), self._mappers_per_node)
                work_s = float(self.input.map_work_s[number])
                self._work_on(now_s, node, thread, work_s, "map", number)
                continue
            now_s, _, happens, subject = heapq.heappop(self._events)
            if now_s > self.end_s:
                break
            happens(now_s, *subject)

    def _push(self, when_s: float, happens: Callable[..., None], *numbers: int) -> None:
        # The running number keeps simultaneous events in the order of their creation.
        self._num_events += 1
        heapq.heappush(self._events, (when_s, self._num_events, happens, numbers))

    def _pack(self, now_s: float, mapper: int) -> None:
        self._push(now_s + self._shuffle_period_s, self._pack, mapper)
        node, thread = divmod(mapper, self._mappers_per_node)
        mapped = self._mapped[mapper]
        current_job = self._cores[node].current(now_s, thread)
        if current_job is not None:
            (work, number), share = current_job
            if work == "map":
                mapped += share * float(self.input.num_rows[number])
        if self._pack_s > 0.0:
            self._work_on(now_s, node, thread, self._pack_s, "pack", mapper)
        rows = mapped - self._packed[mapper]
        if rows <= 0.0:
            return
        start = max(now_s, self._disk_free_s[node])
        end = start + self._write_fixed_s + rows * self._write_per_row_s
        self._disk_free_s[node] = end
        self._packed[mapper] = mapped
        self._push(end, self._offer, len(self.batches))
        windows = self._windows_ended(mapper, mapped)
        self.batches.append(ShuffleBatch(mapper, now_s, rows, mapped, start, end, windows))

    def _offer(self, _now_s: float, number: int) -> None:
        """A written batch can be fetched from now on."""
        batch, rank = self.batches[number], len(self.ranked_rows) - 1
        batch.rank = rank
        self.ranked_rows.append(self.ranked_rows[-1] + batch.num_rows)
        for window in batch.windows:
            self._mappers_left[window] -= 1
            if self._mappers_left[window] == 0:
                self._complete.setdefault(rank + 1, []).append(window)

    def _poll(self, now_s: float, reducer: int) -> None:
        self._push(now_s + self._poll_period_s, self._poll, reducer)
        node, thread = divmod(reducer, self._reducers_per_node)
        if self._ask_s > 0.0:
            self._work_on(now_s, node, self._mappers_per_node + thread, self._ask_s, "ask", 0)
        first, after = self._taken[reducer], len(self.ranked_rows) - 1
        self._taken[reducer] = after
        if first == after:
            return
        link = self._links[node]
        before = link.version
        for start, stop in self._groups_of(first, after):
            rows = self.ranked_rows[stop] - self.ranked_rows[start]
            link.submit(now_s, thread, rows * self._fetch_per_row_s, len(self.groups))
            self.groups.append(FetchedGroup(reducer, start, stop))
        if link.version != before:
            self._push(link.next_end_s, self._end_on_link, node, link.version)

    def _groups_of(self, first: int, after: int) -> list[tuple[int, int]]:
        number = min(after - first, self._most_jobs_per_fetch)
        cuts = {first + (after - first) * part // number for part in range(number + 1)}
        # A complete window is finalized before later rows are updated.
        cuts.update(rank for rank in self._complete if first < rank <= after)
        return list(pairwise(sorted(cuts)))

    def _end_on_link(self, _now_s: float, node: int, version: int) -> None:
        link = self._links[node]
        if version != link.version:
            return
        group_number, start, end = link.finish_next()
        group = self.groups[group_number]
        group.fetch_start_s, group.fetch_end_s = start, end
        num_batches = group.after - group.first
        thread = self._mappers_per_node + group.reducer % self._reducers_per_node
        rows = self.ranked_rows[group.after] - self.ranked_rows[group.first]
        work = num_batches * self.batch_fixed_s
        work += rows * self.update_per_row_s * self._noise_of(num_batches)
        self._work_on(end, node, thread, work, "update", group_number)
        final = self.pipeline.finalizing
        if final is not None:
            for window in self._complete.get(group.after, ()):
                number = group.reducer * len(self.window_ends_s) + window
                self._work_on(end, node, thread, float(final.window_s), "finalize", number)
        self._push(link.next_end_s, self._end_on_link, node, link.version)

    def _noise_of(self, num_batches: int) -> float:
        """Mean of that many independent lognormal factors, taken as lognormal."""
        if self._reduce_log_variance == 0.0:
            return 1.0
        variance = math.log1p(math.expm1(self._reduce_log_variance) / num_batches)
        normal = float(self._random.standard_normal())
        return math.exp(math.sqrt(variance) * normal - 0.5 * variance)

    def _work_on(
        self, now_s: float, node: int, thread: int, work_s: float, work: _Work, number: int
    ) -> None:
        cores = self._cores[node]
        before = cores.version
        cores.submit(now_s, thread, work_s, (work, number))
        if cores.version != before:
            self._push(cores.next_end_s, self._end_on_cores, node, cores.version)

    def _end_on_cores(self, _now_s: float, node: int, version: int) -> None:
        cores = self._cores[node]
        if version != cores.version:
            return
        (work, number), start, end = cores.finish_next()
        self.busy_s[work] += end - start
        if work == "map":
            self.map_start_s[number], self.map_end_s[number] = start, end
            self._mapped[int(self.input.mapper[number])] += float(self.input.num_rows[number])
        elif work == "update":
            group = self.groups[number]
            group.update_start_s, group.update_end_s = start, end
        elif work == "finalize":
            reducer, window = divmod(number, len(self.window_ends_s))
            self.final_times_s[reducer, window] = start, end
        self._push(cores.next_end_s, self._end_on_cores, node, cores.version)

    def _plan_windows(self) -> None:
        """Where each window ends in the rows of each mapper."""
        final = self.pipeline.finalizing
        slide_s = math.inf if final is None else float(final.slide_s)
        num_windows = int(self.end_s / slide_s)
        self.window_ends_s = [slide_s * (number + 1) for number in range(num_windows)]
        period_s = float(self.pipeline.setting.input_period_s)
        self._last_rows = [
            [rows_of_window(self.input, period_s, mapper, end) for end in self.window_ends_s]
            for mapper in range(self.num_mappers)
        ]
        self._mappers_left = [self.num_mappers] * num_windows
        self._next_window = [0] * self.num_mappers
        self._complete: dict[int, list[int]] = {}

    def _windows_ended(self, mapper: int, mapped: float) -> range:
        """Windows whose last rows of a mapper are among the latest it has packed."""
        first = after = self._next_window[mapper]
        window_ends = self._last_rows[mapper]
        while after < len(window_ends) and mapped >= window_ends[after] * (1.0 - _SAME_ROW_RATIO):
            after += 1
        self._next_window[mapper] = after
        return range(first, after)
