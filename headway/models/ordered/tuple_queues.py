"""Tuples of a partitioned operator with a shared queue, partitioned queues or hybrid queues."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapreplace

import numpy as np
from numpy.typing import NDArray

from headway.domain.ordered import QueueScheme
from headway.models.arrays import Array
from headway.models.queues.queueing import lindley_waits_s


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRun:
    """When tuples started and ended at their worker, in order of arrival, and left in order. [s]

    A tuple leaves when it and all tuples before it have ended.
    """

    start_s: Array
    end_s: Array
    exit_s: Array

    @property
    def busy_workers(self) -> float:
        """Mean number of busy workers until the last tuple has left. [-]"""
        return float((self.end_s - self.start_s).sum() / self.exit_s[-1])


def simulate_queues(
    scheme: QueueScheme,
    service_s: Array,
    partition: NDArray[np.int64],
    num_workers: int,
    *,
    arrival_s: Array | None = None,
) -> QueueRun:
    r"""Start, end and ordered exit of each tuple of a partitioned operator, by simulation. [s]

    ``service_s`` are the times of the tuples at a worker, and ``partition`` their partitions from 0
    on. ``arrival_s`` never decreases; by default all tuples have arrived at the start.

    **(S11)** Simulation, tuple by tuple. *Shared*: the next free worker takes the first tuple in
    line once its partition is free; until then all other workers wait. *Partitioned*: worker
    `j mod n` serves partition `j`, first come first served. *Hybrid*: the next free worker takes
    the first tuple in line. If another worker is busy with the tuple's partition, the tuple is left
    to that worker, who continues until no tuple is left to it. A tuple leaves when all tuples
    before it have ended. Taking and handing over a tuple cost nothing. Prasaad, Ramalingam and
    Rajan (2018), section 4.

    >>> from typing import get_args
    >>> service, partition = np.array([3.0, 1.0, 1.0]), np.array([0, 0, 1])
    >>> for scheme in get_args(QueueScheme):
    ...     print(scheme, simulate_queues(scheme, service, partition, 2).end_s)
    shared [3. 4. 4.]
    partitioned [3. 4. 1.]
    hybrid [3. 4. 1.]
    """
    service = np.asarray(service_s, dtype=np.float64)
    arrival = np.zeros(len(service)) if arrival_s is None else np.asarray(arrival_s, float)
    if service.ndim != 1 or not service.size or service.shape != np.shape(partition):
        raise ValueError("service_s and partition must be of one length, at least 1")
    if arrival.shape != service.shape or np.any(np.diff(arrival) < 0.0):
        raise ValueError("arrival_s must be as long as service_s and never decrease")
    if not np.all(service >= 0.0) or np.min(partition) < 0 or num_workers < 1:
        raise ValueError("need service_s >= 0, partition >= 0 and num_workers >= 1")
    starts_of = {"partitioned": _partitioned, "shared": _shared, "hybrid": _hybrid}
    start = starts_of[scheme](service, partition, num_workers, arrival)
    end = start + service
    return QueueRun(start_s=start, end_s=end, exit_s=np.maximum.accumulate(end))


def _partitioned(
    service: Array, partition: NDArray[np.int64], num_workers: int, arrival: Array
) -> Array:
    start = np.empty(len(service))
    worker = np.asarray(partition) % num_workers
    for number in range(num_workers):
        tuples = np.flatnonzero(worker == number)
        if tuples.size:
            gaps = np.diff(arrival[tuples], append=arrival[tuples[-1]])
            start[tuples] = arrival[tuples] + lindley_waits_s(gaps, service[tuples])
    return start


def _shared(
    service: Array, partition: NDArray[np.int64], num_workers: int, arrival: Array
) -> Array:
    start = [0.0] * len(service)
    free = [0.0] * num_workers
    ends_s = [0.0] * (int(np.max(partition)) + 1)
    taken_s = 0.0
    rows = zip(service.tolist(), np.asarray(partition).tolist(), arrival.tolist(), strict=True)
    for index, (time, number, arrived_s) in enumerate(rows):
        taken_s = max(taken_s, arrived_s, free[0], ends_s[number])
        start[index] = taken_s
        ends_s[number] = taken_s + time
        heapreplace(free, taken_s + time)
    return np.array(start)


def _hybrid(
    service: Array, partition: NDArray[np.int64], num_workers: int, arrival: Array
) -> Array:
    start = [0.0] * len(service)
    free = [(0.0, worker) for worker in range(num_workers)]
    ends_s = [0.0] * (int(np.max(partition)) + 1)
    last_worker = [-1] * len(ends_s)  # of each partition
    partition_of = [0] * num_workers
    taken_s = 0.0
    rows = zip(service.tolist(), np.asarray(partition).tolist(), arrival.tolist(), strict=True)
    for index, (time, number, arrived_s) in enumerate(rows):
        free_s, worker = free[0]
        # A worker to whom more tuples have been left since then is not free yet.
        while last_worker[partition_of[worker]] == worker and ends_s[partition_of[worker]] > free_s:
            heapreplace(free, (ends_s[partition_of[worker]], worker))
            free_s, worker = free[0]
        taken_s = max(taken_s, arrived_s, free_s)
        if ends_s[number] > taken_s:
            start[index] = ends_s[number]
            ends_s[number] += time
        else:
            start[index] = taken_s
            ends_s[number] = taken_s + time
            last_worker[number], partition_of[worker] = worker, number
            heapreplace(free, (taken_s + time, worker))
    return np.array(start)
