"""Workers that take slices of the operators of a chain, for each scheduler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace
from random import Random

import numpy as np

from headway.domain.ordered import OrderedPipeline, Scheduler
from headway.models.arrays import Array
from headway.models.ordered.chain import pipelined_allocation, source_work_s

_POLLS_PER_SLICE = 20.0  # how often idle workers look again
_SLICES_PER_WINDOW = 100.0
_POLLS_ONE_BY_ONE = 1000.0  # beyond this, their times are multiplied instead of added up
_BEGINS, _POLLS = -2, -1  # instead of an operator: a worker starts, idle ones look again
_JITTER = 0.1  # relative variation of slices, since equal ones would keep workers in step
_FIRST_DRAW = 1
_MARKED = (0.2, 0.8)  # share of the tuples whose latency is recorded, as in the paper
_QUEUE_LIMIT = 10_000.0  # the constant C of QST: tuples in all queues together


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerRun:
    """Result of a scheduler for a pipeline.

    ``throughput_per_s`` counts tuples of the source that left the pipeline; latencies are from the
    start of a tuple at the first operator to its exit, ``inf`` if none leaves. ``busy_workers`` has
    the mean number of workers at each operator.
    """

    throughput_per_s: float
    mean_s: float
    p50_s: float
    p99_s: float
    busy_workers: Array


def simulate_scheduler(
    pipeline: OrderedPipeline,
    scheduler: Scheduler,
    most_workers: Sequence[float] | Array,
    *,
    num_tuples: int = 200_000,
) -> SchedulerRun:
    r"""Simulate a pipeline under a scheduler, slice by slice.

    Parameters
    ----------
    pipeline : OrderedPipeline, a source without a rate never runs dry
    most_workers : (k,) sequence, > 0, workers that each operator can use
    num_tuples : int, >= 1000, of the source, that could be processed in the simulated time

    **(S10)** A free worker requests an operator that has input and fewer workers than it can use,
    takes a slice of its input, and passes on the outputs at the end of the slice, in order. Slices
    vary by a tenth, since equal ones would keep workers in step. CT takes the operator with the
    least `(T_i+w_i s)/(c_i s_1...s_(i-1))`, where `T_i` is the worker time in a window of 100
    slices (as printed: `s_1...s_i`). QST takes the first one whose output queue is below
    `C s_1...s_i` over the sum of these, ET the one with the largest `I_i c_i/(w_i+1)`, LP the last
    one. Idle workers look again 20 times per slice. If a skewed operator has more workers than it
    can use, they share its usable ones. Latencies are read from the curves of starts and exits,
    with a precision of about a slice. Prasaad, Ramalingam and Rajan (2018), section 6.

    >>> from headway.domain.ordered import Operator
    >>> chain = tuple(Operator(name=str(c), type="stateless", cost_s=c * 1e-6)
    ...               for c in (10, 30))
    >>> run = simulate_scheduler(OrderedPipeline(num_workers=4, operators=chain), "CT",
    ...                          [np.inf, np.inf], num_tuples=20_000)
    >>> abs(run.throughput_per_s / 1e5 - 1.0) < 0.01
    True
    """
    if num_tuples < 1000:
        raise ValueError("need num_tuples >= 1000")
    work = source_work_s(pipeline)
    best = pipelined_allocation(work, most_workers, pipeline.num_workers).throughput_per_s
    length_s = num_tuples / min(best, pipeline.rate_per_s or np.inf)
    slices = _Slices(pipeline, scheduler, np.asarray(most_workers, dtype=np.float64))
    slices.run(length_s)
    return slices.outcome(length_s)


class _Slices:
    """The state of workers and worklists, and the events so far."""

    def __init__(
        self,
        pipeline: OrderedPipeline,
        scheduler: Scheduler,
        most_workers: Array,
        queue_limit: float = _QUEUE_LIMIT,
    ) -> None:
        self.scheduler, self.slice_s = scheduler, pipeline.slice_s
        self.num_workers, self.rate_per_s = pipeline.num_workers, pipeline.rate_per_s
        self.cost_s = [operator.cost_s for operator in pipeline.operators]
        self.outputs = [operator.selectivity_ratio for operator in pipeline.operators]
        self.most = most_workers.tolist()
        input_ratios = np.concatenate(([1.0], np.cumprod(self.outputs)))
        self.per_source = float(input_ratios[-2])
        divisor = input_ratios[1:] if scheduler == "CT as printed" else input_ratios[:-1]
        self.weight = (np.asarray(self.cost_s) * divisor).tolist()
        self.limits = (queue_limit * input_ratios[1:] / input_ratios[1:].sum()).tolist()
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
        self.random = Random(_FIRST_DRAW)

    def run(self, length_s: float) -> None:
        """Until the time is over."""
        # A step of this loop may be a slice of a single tuple, so attributes are looked up
        # beforehand.
        waiting, workers, window_time_s = self.waiting, self.workers, self.window_time_s
        outputs, rate_per_s, take = self.outputs, self.rate_per_s, self._taker()
        choose = self._chooser()
        # Workers start one after another within the first slice, so that they are not in step.
        events: list[tuple[float, int, int, int]] = [
            (self.slice_s * worker / self.num_workers, worker, _BEGINS, 0)
            for worker in range(self.num_workers)
        ]
        free, asleep, number = 0, 0, self.num_workers
        step_s = self.slice_s / _POLLS_PER_SLICE
        window_s = _SLICES_PER_WINDOW * self.slice_s
        window_end_s, polls = window_s, 0
        carried = [0.0] * len(self.cost_s)
        while events:
            now_s, _, operator, num_tuples = events[0]
            if now_s > length_s:
                return
            if now_s >= window_end_s:
                window_time_s[:] = [0.0] * len(window_time_s)
                window_end_s += window_s * (1 + (now_s - window_end_s) // window_s)
            if rate_per_s is not None:
                waiting[0] = float(int(rate_per_s * now_s) - self.taken)
            last = -1
            if operator >= 0:
                workers[operator] -= 1
                num_outputs = num_tuples * outputs[operator] + carried[operator]
                num_whole = int(num_outputs)
                carried[operator] = num_outputs - num_whole
                waiting[operator + 1] += num_whole
                free, last = free + 1, operator
            elif operator == _BEGINS:
                free += 1
            else:
                polls -= 1
                free, asleep = free + asleep, 0
            is_there = True  # The event stands first in the heap until another one replaces it.
            while free:
                next_operator = choose(last)
                if next_operator < 0:
                    break
                last = -1
                num_tuples, took_s = take(next_operator, now_s)
                free, number = free - 1, number + 1
                event = (now_s + took_s, number, next_operator, num_tuples)
                if is_there:
                    heapreplace(events, event)
                    is_there = False
                else:
                    heappush(events, event)
            if is_there:
                heappop(events)
            is_idle = free > 0
            if rate_per_s is not None:
                # Workers that find nothing look again at the next poll, not at every arriving
                # tuple.
                free, asleep = 0, asleep + free
            if asleep and not polls:
                polls, number = 1, number + 1
                poll_s = now_s + step_s
                if is_idle:
                    poll_s = self._useful_poll_s(poll_s, events[0][0] if events else np.inf)
                heappush(events, (poll_s, number, _POLLS, 0))

    def _useful_poll_s(self, poll_s: float, event_s: float) -> float:
        """The first poll that may find something (none does now): after an event or a tuple."""
        step_s, rate_per_s = self.slice_s / _POLLS_PER_SLICE, self.rate_per_s or np.inf
        # If it has input, the first operator is closed until a slice ends.
        upcoming = self.taken + 1 if self.waiting[0] < 1.0 else np.inf
        until_s = min(event_s, upcoming / rate_per_s)
        if until_s == np.inf:
            return poll_s
        num_polls = (until_s - poll_s) / step_s
        if num_polls > _POLLS_ONE_BY_ONE:
            poll_s += (int(num_polls) - 1) * step_s
        while poll_s < event_s and rate_per_s * poll_s < upcoming:
            poll_s += step_s
        return poll_s

    def _taker(self) -> Callable[[int, float], tuple[int, float]]:
        """Takes a slice of an operator's input: number of tuples, and their time."""
        waiting, workers, most_workers, costs = self.waiting, self.workers, self.most, self.cost_s
        window_time_s, busy_s, slice_s = self.window_time_s, self.busy_s, self.slice_s
        draw, lowest, wide = self.random.random, 1.0 - _JITTER, (1.0 + _JITTER) - (1.0 - _JITTER)
        # Fewer tuples than any slice contains.
        num_floor = [max(1.0, slice_s * lowest // cost_s - 1.0) for cost_s in costs]
        final = len(costs) - 1

        def take(operator: int, now_s: float) -> tuple[int, float]:
            cost_s, num_waiting, drawn = costs[operator], waiting[operator], draw()
            if num_waiting <= num_floor[operator]:
                num_tuples = int(num_waiting)
            else:
                long_s = slice_s * (lowest + wide * drawn)
                num_tuples = int(min(num_waiting, max(1.0, long_s // cost_s)))
            waiting[operator] = num_waiting - num_tuples
            workers[operator] = working = workers[operator] + 1
            took_s = num_tuples * cost_s
            if working > most_workers[operator]:
                took_s *= working / most_workers[operator]
            window_time_s[operator] += took_s
            busy_s[operator] += took_s
            if operator == 0:
                self.taken += num_tuples
                self.started.append((now_s, took_s, num_tuples))
            if operator == final:
                self.exited.append((now_s, took_s, num_tuples))
            return num_tuples, took_s

        return take

    def _chooser(self) -> Callable[[int], int]:
        """The operator that a free worker takes, given its previous one; -1 means none."""
        waiting, workers, most_workers = self.waiting, self.workers, self.most
        window_time_s, weight, limits = self.window_time_s, self.weight, self.limits
        operators, cost_s = self.places, self.cost_s

        def last_one(_last: int) -> int:
            for operator in reversed(operators):
                if waiting[operator] >= 1.0 and workers[operator] < most_workers[operator]:
                    return operator
            return -1

        def throttled(_last: int) -> int:
            for operator in operators:
                is_open = waiting[operator] >= 1.0 and workers[operator] < most_workers[operator]
                if is_open and waiting[operator + 1] < limits[operator]:
                    return operator
            return -1

        def longest(_last: int) -> int:
            best, most_s = -1, -1.0
            for operator in operators:
                if waiting[operator] >= 1.0 and workers[operator] < most_workers[operator]:
                    queue_s = waiting[operator] * cost_s[operator] / (workers[operator] + 1)
                    if queue_s > most_s:
                        best, most_s = operator, queue_s
            return best

        def slowest(_last: int) -> int:
            # The window already includes the time of running slices, which is the term w_i s.
            best, least = -1, np.inf
            for operator in operators:
                if waiting[operator] >= 1.0 and workers[operator] < most_workers[operator]:
                    progress_s = window_time_s[operator] / weight[operator]
                    if progress_s < least:
                        best, least = operator, progress_s
            return best

        def kept(last: int) -> int:
            if (
                last >= 0
                and workers[last] < most_workers[last] < self.num_workers
                and waiting[last] >= 1.0
                and waiting[last] * cost_s[last] >= self.slice_s
            ):
                return last
            return slowest(last)

        return {"LP": last_one, "QST": throttled, "ET": longest, "CT keep": kept}.get(
            self.scheduler, slowest
        )

    def outcome(self, length_s: float) -> SchedulerRun:
        """Throughput and latency, from the curves of starts and exits."""
        start_s, begun = _curve(self.started, length_s)
        exit_s, exited = _curve(self.exited, length_s)
        exited = exited / self.per_source
        total = float(np.interp(length_s, exit_s, exited))
        warm = float(np.interp(_MARKED[0] * length_s, exit_s, exited))
        marked = np.linspace(_MARKED[0] * total, _MARKED[1] * total, 4001)
        if total >= 1.0:
            took_s = np.interp(marked, exited, exit_s) - np.interp(marked, begun, start_s)
            # The curves count tuples whose work begins: the last one is still to be done then.
            took_s = np.maximum(took_s, 0.0) + self.cost_s[-1]
        else:
            took_s = np.array([np.inf])
        return SchedulerRun(
            throughput_per_s=(total - warm) / ((1.0 - _MARKED[0]) * length_s),
            mean_s=float(took_s.mean()),
            p50_s=float(np.quantile(took_s, 0.5, method="lower")),
            p99_s=float(np.quantile(took_s, 0.99, method="lower")),
            busy_workers=np.asarray(self.busy_s) / length_s,
        )


def _curve(slices: list[tuple[float, float, int]], length_s: float) -> tuple[Array, Array]:
    """Number of tuples that slices have processed by each of several increasing times."""
    if not slices:
        return np.array([0.0, length_s]), np.array([0.0, 0.0])
    begin_s, took_s, num_tuples = np.array(slices, dtype=np.float64).T
    time_s = np.concatenate([begin_s, begin_s + took_s])
    # Duration computed from times that may be days after the start.
    seen_s = time_s[len(begin_s) :] - begin_s
    rate = num_tuples / np.where(seen_s > 0.0, seen_s, took_s)
    order = np.argsort(time_s, kind="stable")
    time_s, rate = time_s[order], np.cumsum(np.concatenate([rate, -rate])[order])
    # Adding and subtracting rates leaves a rounding error.
    working = np.cumsum(np.repeat([1, -1], len(begin_s))[order]) > 0
    rate = np.where(working, np.maximum(rate, 0.0), 0.0)
    count = np.concatenate(([0.0], np.cumsum(rate[:-1] * np.diff(time_s))))
    return time_s, np.maximum.accumulate(count)
