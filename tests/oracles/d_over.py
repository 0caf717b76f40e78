"""D-over: preemptive scheduling under overload as published, the rival of VLDB'15's Figure 7(d)."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np

from headway.models.arrays import Array


@dataclass(slots=True)
class _Task:
    deadline_s: float
    left_s: float
    value: float
    is_waiting: bool = False

    def laxity_s(self, now_s: float) -> float:
        return self.deadline_s - now_s - self.left_s


class _DOver:
    """The state of D-over: the current task, the preempted ones, those that wait."""

    def __init__(self, tasks: list[_Task], value_ratio: float) -> None:
        self._tasks = tasks
        self._gain = 1.0 + math.sqrt(value_ratio)
        self._current: int | None = None
        self._avail_s = 0.0
        # Preempted: task, when, time it could give away then.
        self._recent: list[tuple[int, float, float]] = []
        self._by_deadline: list[tuple[float, int]] = []
        self._by_latest_start: list[tuple[float, int]] = []
        self._now_s = 0.0
        self.num_takeovers = 0
        self.done = np.zeros(len(tasks), dtype=bool)

    def advance(self, until_s: float) -> None:
        """Process ends and zero laxities up to a time."""
        while True:
            end_s = math.inf
            if self._current is not None:
                end_s = self._now_s + self._tasks[self._current].left_s
            latest_s = self._next_latest_start_s()
            event_s = min(end_s, latest_s)
            if event_s > until_s or event_s == math.inf:
                break
            self._run_to(event_s)
            if end_s <= latest_s:
                self._end()
            else:
                self._zero_laxity()
        if until_s < math.inf:
            self._run_to(until_s)

    def release(self, at: int) -> None:
        task = self._tasks[at]
        laxity_s = task.laxity_s(self._now_s)
        if self._current is None:
            if laxity_s >= 0.0:
                self._start(at, laxity_s)
            return
        if task.deadline_s < self._tasks[self._current].deadline_s and self._avail_s >= task.left_s:
            self._recent.append((self._current, self._now_s, self._avail_s))
            self._start(at, min(self._avail_s - task.left_s, laxity_s))
        else:
            self._wait(at)

    def _start(self, at: int, avail_s: float) -> None:
        self._tasks[at].is_waiting = False
        self._current, self._avail_s = at, avail_s

    def _wait(self, at: int) -> None:
        task = self._tasks[at]
        task.is_waiting = True
        heapq.heappush(self._by_deadline, (task.deadline_s, at))
        heapq.heappush(self._by_latest_start, (task.deadline_s - task.left_s, at))

    def _run_to(self, when_s: float) -> None:
        if self._current is not None:
            task = self._tasks[self._current]
            task.left_s = max(task.left_s - (when_s - self._now_s), 0.0)
        self._now_s = max(when_s, self._now_s)

    def _next_latest_start_s(self) -> float:
        heap = self._by_latest_start
        while heap and not self._tasks[heap[0][1]].is_waiting:
            heapq.heappop(heap)
        return heap[0][0] if heap else math.inf

    def _head(self) -> int | None:
        heap = self._by_deadline
        while heap and not self._tasks[heap[0][1]].is_waiting:
            heapq.heappop(heap)
        return heap[0][1] if heap else None

    def _end(self) -> None:
        assert self._current is not None
        self.done[self._current] = True
        self._current = None
        head = self._head()
        if self._recent:
            preempted, since_s, avail_s = self._recent[-1]
            avail_s -= self._now_s - since_s
            if (
                head is not None
                and self._tasks[head].deadline_s < self._tasks[preempted].deadline_s
                and avail_s >= self._tasks[head].left_s
            ):
                task = self._tasks[head]
                self._start(head, min(avail_s - task.left_s, task.laxity_s(self._now_s)))
            else:
                self._recent.pop()
                self._start(preempted, avail_s)
        elif head is not None:
            self._start(head, self._tasks[head].laxity_s(self._now_s))

    def _zero_laxity(self) -> None:
        _, at = heapq.heappop(self._by_latest_start)
        task = self._tasks[at]
        task.is_waiting = False
        assert self._current is not None
        held = [self._current, *(one for one, _, _ in self._recent)]
        if task.value > self._gain * sum(self._tasks[one].value for one in held):
            self._recent.clear()
            self._start(at, 0.0)
            self.num_takeovers += 1
            for one in held:
                self._wait(one)


def d_over(
    release_s: Array, deadlines_s: Array, costs_s: Array, values: Array | None = None
) -> tuple[np.ndarray[tuple[int], np.dtype[np.bool_]], int]:
    r"""Which tasks D-over completes in time, on one server that may preempt.

    Parameters
    ----------
    release_s : (n,) array, increasing
        When each task becomes known. [s]
    deadlines_s : (n,) array
        When it has to be done. [s]
    costs_s : (n,) array, > 0
        Its time. [s]
    values : (n,) array, > 0, or None
        What it is worth in time; 1 each by default.

    Returns
    -------
    (n,) array of bool, int
        Tasks done in time; how often a task without laxity took the server.

    Notes
    -----
    **(G2)** D-over (Koren and Shasha 1992). With one value for all tasks its test at zero laxity,
    `1 > (1+sqrt(k))(v_cur+...)`, is never true: earliest deadline first that drops at zero laxity.

    Koren and Shasha (1992). k is the ratio of the largest to the smallest value per second of cost.
    With one value for all tasks the test at zero laxity, ``1 > (1 + sqrt k)(1 + ...)``, is never
    true: D-over is then earliest deadline first that drops at zero laxity.

    Examples
    --------
    >>> d_over(np.zeros(4), np.array([10, 11, 11, 11]), np.array([9, 3, 3, 3]))[0].tolist()
    [True, False, False, False]
    """
    worth = np.ones(len(costs_s)) if values is None else np.asarray(values, dtype=np.float64)
    density = worth / costs_s
    tasks = [
        _Task(float(d), float(c), float(v))
        for d, c, v in zip(deadlines_s, costs_s, worth, strict=True)
    ]
    simulated = _DOver(tasks, float(density.max() / density.min()) if len(tasks) else 1.0)
    for at, when_s in enumerate(np.asarray(release_s, dtype=np.float64).tolist()):
        simulated.advance(when_s)
        simulated.release(at)
    simulated.advance(math.inf)
    return simulated.done, simulated.num_takeovers
