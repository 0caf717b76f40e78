"""Workers that take slices of the operators of a chain, by each scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random

import numpy as np

from headway.domain.ordered import OrderedPipeline, Scheduler
from headway.models.arrays import Array
from headway.models.ordered.allocation import pipelined_allocation, source_work_s

_POLLS_PER_SLICE = 20.0  # idle workers look again so often
_SLICES_PER_WINDOW = 100.0
_BEGINS, _POLLS = -2, -1  # in place of an operator: a worker begins, idle ones look again
_JITTER = 0.1  # slices are so much longer or shorter: equal ones would keep workers in step
_FIRST_DRAW = 1
_MARKED = (0.2, 0.8)  # of the tuples, whose latency is taken, as in the paper


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerRun:
    """What a scheduler made of a pipeline.

    Parameters
    ----------
    throughput_per_s : float
        Tuples of the source per second that left the pipeline. [1/s]
    mean_s, p50_s, p99_s : float
        From the start of a tuple at the first operator to its exit; ``inf`` where none leaves. [s]
    busy_workers : (k,) array
        Mean number of workers at each operator. [-]
    num_slices : int
        Decisions of the scheduler that were followed. [-]
    """

    throughput_per_s: float
    mean_s: float
    p50_s: float
    p99_s: float
    busy_workers: Array
    num_slices: int


def simulate_scheduler(
    pipeline: OrderedPipeline,
    scheduler: Scheduler,
    most_workers: Sequence[float] | Array,
    *,
    num_tuples: int = 200_000,
    queue_limit: float = 10_000.0,
) -> SchedulerRun:
    r"""Simulate a pipeline under a scheduler, slice by slice.

    Parameters
    ----------
    pipeline : OrderedPipeline
        Operators, workers, slice and rate; a source without a rate never runs dry.
    scheduler : Scheduler
        Which operator a free worker takes.
    most_workers : (k,) sequence, > 0
        Workers that each operator can use. [-]
    num_tuples : int, >= 1000
        Tuples of the source that the pipeline could carry in the time that is simulated. [-]
    queue_limit : float, > 0
        The constant of QST: tuples in all queues together. [-]

    Returns
    -------
    SchedulerRun
        Throughput, latency, and where the workers were.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    **(S10)** A worker that is free asks for an operator with input and fewer workers than it can
    use, takes a slice of its input, and hands on its outputs at the end of it, in order; slices
    vary by a tenth, as equal ones keep workers in step. CT takes the least
    `(T_i+w_i s)/(c_i s_1...s_(i-1))`, `T_i` the worker time in a window of 100 slices (as printed:
    `s_1...s_i`); QST the first whose output queue is below `C s_1...s_i` over the sum of these; ET
    the largest `I_i c_i/(w_i+1)`, LP the last. Idle workers look again 20 times a slice. More
    workers than a skewed operator can use share what it can. Latencies are read off the curves of
    starts and exits, to about a slice. Prasaad, Ramalingam and Rajan (2018), section 6.

    Examples
    --------
    >>> from headway.domain.ordered import Operator, OperatorType
    >>> chain = tuple(Operator(name=str(c), type=OperatorType.STATELESS, cost_s=c * 1e-6)
    ...               for c in (10, 30))
    >>> run = simulate_scheduler(OrderedPipeline(num_workers=4, operators=chain), Scheduler.CT,
    ...                          [np.inf, np.inf], num_tuples=20_000)
    >>> abs(run.throughput_per_s / 1e5 - 1.0) < 0.01
    True
    """
    if num_tuples < 1000 or not queue_limit > 0.0:
        raise ValueError("need num_tuples >= 1000 and queue_limit > 0")
    work = source_work_s(
        [one.cost_s for one in pipeline.operators],
        [one.selectivity_ratio for one in pipeline.operators],
    )
    best = pipelined_allocation(work, most_workers, pipeline.num_workers).throughput_per_s
    length_s = num_tuples / min(best, pipeline.rate_per_s or np.inf)
    slices = _Slices(pipeline, scheduler, np.asarray(most_workers, dtype=np.float64), queue_limit)
    slices.run(length_s)
    return slices.outcome(length_s)


class _Slices:
    """The state of workers and worklists, and what has happened so far."""

    def __init__(
        self, pipeline: OrderedPipeline, scheduler: Scheduler, most: Array, queue_limit: float
    ) -> None:
        self.scheduler, self.slice_s = scheduler, pipeline.slice_s
        self.num_workers, self.rate_per_s = pipeline.num_workers, pipeline.rate_per_s
        self.cost_s = [one.cost_s for one in pipeline.operators]
        self.outputs = [one.selectivity_ratio for one in pipeline.operators]
        self.most = most.tolist()
        reaching = np.concatenate(([1.0], np.cumprod(self.outputs)))
        self.per_source = float(reaching[-2])
        divisor = reaching[1:] if scheduler is Scheduler.CT_PRINTED else reaching[:-1]
        self.weight = (np.asarray(self.cost_s) * divisor).tolist()
        self.limits = (queue_limit * reaching[1:] / reaching[1:].sum()).tolist()
        self.limits[-1] = np.inf
        self.places = range(len(self.cost_s))
        self.waiting = [0.0] * len(self.cost_s) + [0.0]
        if pipeline.rate_per_s is None:
            self.waiting[0] = np.inf
        self.taken = 0
        self.workers = [0] * len(self.cost_s)
        self.window_time_s = [0.0] * len(self.cost_s)
        self.busy_s = [0.0] * len(self.cost_s)
        self.started: list[tuple[float, float, int]] = []
        self.exited: list[tuple[float, float, int]] = []
        self.num_slices = 0
        self.random = Random(_FIRST_DRAW)

    def run(self, length_s: float) -> None:
        """Until the time is over."""
        # Workers begin one after another within the first slice, not in step for ever.
        ends: list[tuple[float, int, int, int]] = [
            (self.slice_s * at / self.num_workers, at, _BEGINS, 0) for at in range(self.num_workers)
        ]
        free, asleep, number = 0, 0, self.num_workers
        window_s = _SLICES_PER_WINDOW * self.slice_s
        window_end_s, polls = window_s, 0
        carried = [0.0] * len(self.cost_s)
        while ends:
            now_s, _, place, num = heappop(ends)
            if now_s > length_s:
                return
            if now_s >= window_end_s:
                self.window_time_s = [0.0] * len(self.cost_s)
                window_end_s += window_s * (1 + (now_s - window_end_s) // window_s)
            if self.rate_per_s is not None:
                self.waiting[0] = float(int(self.rate_per_s * now_s) - self.taken)
            last = -1
            if place == _BEGINS:
                free += 1
            elif place == _POLLS:
                polls -= 1
                free, asleep = free + asleep, 0
            else:
                self.workers[place] -= 1
                out = num * self.outputs[place] + carried[place]
                whole = int(out)
                carried[place] = out - whole
                self.waiting[place + 1] += whole
                free, last = free + 1, place
            while free:
                at = self._next(last)
                if at is None:
                    break
                last = -1
                num, took_s = self._take(at, now_s)
                free, number = free - 1, number + 1
                heappush(ends, (now_s + took_s, number, at, num))
            if self.rate_per_s is not None:
                # Who finds nothing looks again at the next poll, not at every tuple that comes.
                free, asleep = 0, asleep + free
            if asleep and not polls:
                polls, number = 1, number + 1
                heappush(ends, (now_s + self.slice_s / _POLLS_PER_SLICE, number, _POLLS, 0))

    def _take(self, at: int, now_s: float) -> tuple[int, float]:
        """A slice of an operator's input, and how long it takes."""
        cost_s = self.cost_s[at]
        slice_s = self.slice_s * self.random.uniform(1.0 - _JITTER, 1.0 + _JITTER)
        num = int(min(self.waiting[at], max(1.0, slice_s // cost_s)))
        self.waiting[at] -= num
        self.workers[at] += 1
        took_s = num * cost_s * max(1.0, self.workers[at] / self.most[at])
        self.window_time_s[at] += took_s
        self.busy_s[at] += took_s
        self.num_slices += 1
        if at == 0:
            self.taken += num
            self.started.append((now_s, took_s, num))
        if at == len(self.cost_s) - 1:
            self.exited.append((now_s, took_s, num))
        return num, took_s

    def _next(self, last: int) -> int | None:
        """The operator that a free worker takes; ``last`` is the one it comes from."""
        waiting, workers, most = self.waiting, self.workers, self.most
        can = [at for at in self.places if workers[at] < most[at] and waiting[at] >= 1.0]
        if not can:
            return None
        if self.scheduler is Scheduler.LP:
            return can[-1]
        if self.scheduler is Scheduler.QST:
            return next((at for at in can if waiting[at + 1] < self.limits[at]), None)
        if self.scheduler is Scheduler.ET:
            return max(can, key=lambda at: waiting[at] * self.cost_s[at] / (workers[at] + 1))
        if self.scheduler is Scheduler.CT_KEEP and last in can and most[last] < self.num_workers:
            has_slice = waiting[last] * self.cost_s[last] >= self.slice_s
            return last if has_slice else self._slowest(can)
        return self._slowest(can)

    def _slowest(self, can: list[int]) -> int:
        """The operator with the lowest throughput in the window."""
        # The time of slices that still run is in the window already: theirs is the w_i s.
        return min(can, key=lambda at: self.window_time_s[at] / self.weight[at])

    def outcome(self, length_s: float) -> SchedulerRun:
        """Throughput and latency, of the curves of what began and what left."""
        start_s, begun = _curve(self.started, length_s)
        exit_s, gone = _curve(self.exited, length_s)
        gone = gone / self.per_source
        total = float(np.interp(length_s, exit_s, gone))
        warm = float(np.interp(_MARKED[0] * length_s, exit_s, gone))
        marked = np.linspace(_MARKED[0] * total, _MARKED[1] * total, 4001)
        if total >= 1.0:
            took_s = np.interp(marked, gone, exit_s) - np.interp(marked, begun, start_s)
            took_s = np.maximum(took_s, 0.0)
        else:
            took_s = np.array([np.inf])
        return SchedulerRun(
            throughput_per_s=(total - warm) / ((1.0 - _MARKED[0]) * length_s),
            mean_s=float(took_s.mean()),
            p50_s=float(np.quantile(took_s, 0.5, method="lower")),
            p99_s=float(np.quantile(took_s, 0.99, method="lower")),
            busy_workers=np.asarray(self.busy_s) / length_s,
            num_slices=self.num_slices,
        )


def _curve(slices: list[tuple[float, float, int]], length_s: float) -> tuple[Array, Array]:
    """How many tuples slices have worked off by each of some times, increasing."""
    if not slices:
        return np.array([0.0, length_s]), np.array([0.0, 0.0])
    begin_s, took_s, num = np.array(slices, dtype=np.float64).T
    time_s = np.concatenate([begin_s, begin_s + took_s])
    rate = np.concatenate([num / took_s, -num / took_s])
    order = np.argsort(time_s, kind="stable")
    time_s, rate = time_s[order], np.cumsum(rate[order])
    count = np.concatenate(([0.0], np.cumsum(np.maximum(rate[:-1], 0.0) * np.diff(time_s))))
    return time_s, np.maximum.accumulate(count)
