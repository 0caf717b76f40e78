"""Workers that take slices, step by step: what the faster loop is compared with."""

from __future__ import annotations

from heapq import heappop, heappush

from headway.models.simulation.ordered_schedulers import (
    _BEGINS,
    _JITTER,
    _POLLS,
    _POLLS_PER_SLICE,
    _SLICES_PER_WINDOW,
    _Slices,
)


class PlainSlices(_Slices):
    """One decision after the other, each looked up anew."""

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
        if self.scheduler == "LP":
            return can[-1]
        if self.scheduler == "QST":
            return next((at for at in can if waiting[at + 1] < self.limits[at]), None)
        if self.scheduler == "ET":
            return max(can, key=lambda at: waiting[at] * self.cost_s[at] / (workers[at] + 1))
        if self.scheduler == "CT keep" and last in can and most[last] < self.num_workers:
            has_slice = waiting[last] * self.cost_s[last] >= self.slice_s
            return last if has_slice else self._slowest(can)
        return self._slowest(can)

    def _slowest(self, can: list[int]) -> int:
        """The operator with the lowest throughput in the window."""
        # The time of slices that still run is in the window already: theirs is the w_i s.
        return min(can, key=lambda at: self.window_time_s[at] / self.weight[at])
