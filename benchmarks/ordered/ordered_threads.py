"""The paper's two structures as real threads: the reordering buffer and hybrid queues.

Python has no atomic counters and no test-and-set. A lock that is only tried replaces the flag, and
one that is held for an addition replaces a counter. Both are tested by use: the output of a run
must equal that of a single worker.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, TypeVar

Item = TypeVar("Item")
_EMPTY = object()
_SWITCH_S = 1e-5  # between threads, so that they meet inside the structures


class ReorderBuffer(Generic[Item]):
    """Outputs stored by any thread and sent in the order of their serial numbers: figure 4."""

    def __init__(self, size: int, send: Callable[[Item], None]) -> None:
        self._slots: list[object] = [_EMPTY] * size
        self._send = send
        self._flag = threading.Lock()
        self.upcoming = 0

    def offer(self, serial: int, output: Item) -> bool:
        """Store an output if it has a place, and send what is ready; False if it has none yet."""
        is_stored = self.upcoming <= serial < self.upcoming + len(self._slots)
        if is_stored:
            self._slots[serial % len(self._slots)] = output
        self._send_ready()
        return is_stored

    def _send_ready(self) -> None:
        # After the flag is cleared, the next place is checked again: a thread that has stored there
        # meanwhile found the flag set and went away.
        while self._flag.acquire(blocking=False):
            at = self.upcoming % len(self._slots)
            while (output := self._slots[at]) is not _EMPTY:
                self._send(output)  # type: ignore[arg-type]
                self._slots[at] = _EMPTY
                self.upcoming += 1
                at = self.upcoming % len(self._slots)
            self._flag.release()
            if self._slots[at] is _EMPTY:
                return


class HybridQueue(Generic[Item]):
    """A queue for each partition, and one for the order of the partitions: figure 7."""

    def __init__(self, num_buckets: int) -> None:
        self._queues: list[deque[Item]] = [deque() for _ in range(num_buckets)]
        self._next: deque[int] = deque()
        self._inside = [_Counter() for _ in range(num_buckets)]

    def add(self, partition: int, item: Item) -> None:
        """Add an item, then the number of its partition; called by one thread only."""
        self._queues[partition].append(item)
        self._next.append(partition)

    def work(self, operate: Callable[[Item], None]) -> None:
        """Work until nothing is left; tuples of a busy partition are left to the thread in it."""
        while True:
            try:
                partition = self._next.popleft()
            except IndexError:
                return
            inside = self._inside[partition]
            if inside.add(1) > 0:
                continue
            while True:
                operate(self._queues[partition].popleft())
                if inside.add(-1) <= 1:
                    break


class _Counter:
    """A number to which threads add."""

    def __init__(self) -> None:
        self._value = 0
        self._lock = threading.Lock()

    def add(self, change: int) -> int:
        """Add, and return the value before."""
        with self._lock:
            before = self._value
            self._value = before + change
        return before


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadRun:
    """The output of threads, compared with that of a single worker."""

    num_tuples: int
    num_lost: int
    num_doubled: int
    num_out_of_order: int
    num_wrong: int

    @property
    def is_serial(self) -> bool:
        """Whether the output is that of a single worker."""
        return not (self.num_lost or self.num_doubled or self.num_out_of_order or self.num_wrong)


def run_threads(keys: Sequence[int], *, num_threads: int, size: int) -> ThreadRun:
    """A partitioned operator with state by key, run in threads, with its output reordered.

    The operator folds the serial numbers of a key into a number that depends on their order, so
    that one tuple taken too early changes all later outputs of its key.
    """
    num_buckets = max(keys) + 1
    expected, state = [], [0] * num_buckets
    for serial, key in enumerate(keys):
        state[key] = _folded(state[key], serial)
        expected.append((serial, state[key]))
    found: list[tuple[int, int]] = []
    buffer = ReorderBuffer[tuple[int, int]](size, found.append)
    queue = HybridQueue[tuple[int, int]](num_buckets)
    states = [0] * num_buckets

    def operate(item: tuple[int, int]) -> None:
        serial, key = item
        states[key] = _folded(states[key], serial)
        output = (serial, states[key])
        while not buffer.offer(serial, output):
            time.sleep(0.0)  # other threads have the outputs before it

    added = threading.Event()

    def worker() -> None:
        while not added.is_set():
            queue.work(operate)
        queue.work(operate)

    before_s = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_S)
    try:
        threads = [threading.Thread(target=worker) for _ in range(num_threads)]
        for thread in threads:
            thread.start()
        for serial, key in enumerate(keys):
            queue.add(key, (serial, key))
        added.set()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before_s)
    serials = [serial for serial, _ in found]
    return ThreadRun(
        num_tuples=len(keys),
        num_lost=len(keys) - len(set(serials)),
        num_doubled=len(serials) - len(set(serials)),
        num_out_of_order=sum(after < before for before, after in pairwise(serials)),
        num_wrong=sum(a != b for a, b in zip(found, expected, strict=False)),
    )


def _folded(state: int, serial: int) -> int:
    return (state * 31 + serial) % 1_000_003
