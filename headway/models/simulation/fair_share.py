"""Threads that share servers evenly, event by event: a node's cores, or the link into it."""

from __future__ import annotations

import heapq
import math
from collections import deque
from typing import Generic, TypeVar

Payload = TypeVar("Payload")


class FairShare(Generic[Payload]):
    """Servers shared evenly by threads; each thread processes its jobs first come first served.

    It raises ``ValueError`` without a thread, or if ``num_servers`` is not above 0; a fraction of a
    server is a link slower than one stream. Times must not decrease.

    **(S4)** Processor sharing: every active thread progresses at the rate `min(1, n/active)`. So
    one running sum of progress is enough for all threads, and the next job to end is the one whose
    end has the lowest sum. Exact.

    >>> cores = FairShare[str](1.0, 2)
    >>> cores.submit(0.0, 0, 1.0, "a")
    >>> cores.submit(0.5, 1, 0.25, "b")
    >>> cores.next_end_s
    1.0
    >>> cores.finish_next()
    ('b', 0.5, 1.0)
    """

    __slots__ = ("_ends", "_now_s", "_num_servers", "_progress_s", "_queues", "_running", "version")

    def __init__(self, num_servers: float, num_threads: int) -> None:
        if not (num_servers > 0.0 and num_threads >= 1):
            raise ValueError("need num_servers > 0 and num_threads >= 1")
        self._num_servers = num_servers
        self._now_s = 0.0
        self._progress_s = 0.0
        self._ends: list[tuple[float, int]] = []
        # First come first served; another order would be implemented here.
        self._queues: list[deque[tuple[float, Payload]]] = [deque() for _ in range(num_threads)]
        self._running: list[tuple[Payload, float, float] | None] = [None] * num_threads
        self.version = 0
        """Changes whenever the end of the next job may have changed."""

    @property
    def next_end_s(self) -> float:
        """When the next job ends if no other job arrives; ``inf`` if none runs. [s]"""
        if not self._ends:
            return math.inf
        remaining_s = max(self._ends[0][0] - self._progress_s, 0.0)
        return self._now_s + remaining_s * max(1.0, len(self._ends) / self._num_servers)

    def submit(self, now_s: float, thread: int, work_s: float, payload: Payload) -> None:
        """Queue a job of ``work_s`` seconds of one server for a thread."""
        if self._running[thread] is None:
            self._advance(now_s)
            self._start(thread, work_s, payload)
            self.version += 1
        else:
            self._queues[thread].append((work_s, payload))

    def finish_next(self) -> tuple[Payload, float, float]:
        """End the job that is due at `next_end_s` and start the next one of its thread.

        The result is the ended job with its start and its end.
        """
        end_s = self.next_end_s
        progress, thread = heapq.heappop(self._ends)
        self._now_s, self._progress_s = end_s, progress
        running = self._running[thread]
        assert running is not None
        payload, start_s, _ = running
        self._running[thread] = None
        if self._queues[thread]:
            self._start(thread, *self._queues[thread].popleft())
        self.version += 1
        return payload, start_s, end_s

    def current(self, now_s: float, thread: int) -> tuple[Payload, float] | None:
        """The current job of a thread, and the completed share of it; None if idle."""
        running = self._running[thread]
        if running is None:
            return None
        self._advance(now_s)
        payload, _, work_s = running
        end = next(progress for progress, other in self._ends if other == thread)
        remaining_s = max(end - self._progress_s, 0.0)
        return payload, 1.0 - remaining_s / work_s if work_s > 0.0 else 1.0

    def _advance(self, now_s: float) -> None:
        if self._ends:
            elapsed = max(now_s - self._now_s, 0.0)
            self._progress_s += elapsed * min(1.0, self._num_servers / len(self._ends))
            # Rounding must not move it past a job that has not ended.
            self._progress_s = min(self._progress_s, self._ends[0][0])
        self._now_s = max(now_s, self._now_s)

    def _start(self, thread: int, work_s: float, payload: Payload) -> None:
        self._running[thread] = (payload, self._now_s, work_s)
        heapq.heappush(self._ends, (self._progress_s + work_s, thread))
