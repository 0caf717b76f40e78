"""Workers whose outputs leave in order, by a lock or without blocking."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from headway.domain.ordered import Reordering
from headway.models.arrays import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class ReorderRun:
    """What workers with a reordering scheme carried.

    Parameters
    ----------
    throughput_per_s : float
        Tuples that left per second. [1/s]
    mean_s, p99_s : float
        From the start of a tuple to its exit in order. [s]
    exits_s : (n,) array
        When each tuple left, by serial number. [s]
    """

    throughput_per_s: float
    mean_s: float
    p99_s: float
    exits_s: Array


def simulate_reordering(
    service_s: Array, num_workers: int, reordering: Reordering, *, selectivity_ratio: float = 1.0
) -> ReorderRun:
    r"""Simulate workers that always have input and put their outputs in order.

    Parameters
    ----------
    service_s : (n,) array, > 0
        Time of each tuple at a worker, by serial number. [s]
    num_workers : int, >= 1
        Workers. [-]
    reordering : Reordering
        The scheme, its times, the size of the buffer.
    selectivity_ratio : float, > 0
        Outputs per input, sent together. [-]

    Returns
    -------
    ReorderRun
        Throughput and latency, the first and the last tenth of the tuples left out.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    **(S12)** Event by event. *Lock*: workers take it in the order in which they ask; who has it
    sends its output and all that follow and are there, or stores it. *Non-blocking*: a worker
    stores its output as soon as the buffer has a place for its number, and sends from the next
    number on if nobody does and it is there; it goes on while the next is there. Prasaad,
    Ramalingam and Rajan (2018), figures 2 and 4.

    Examples
    --------
    >>> tuples_s = np.full(4000, 1e-5)
    >>> run = simulate_reordering(tuples_s, 4, Reordering(store_s=0.0, send_s=1e-6))
    >>> abs(run.throughput_per_s * 11e-6 / 4 - 1.0) < 0.02, bool(np.all(np.diff(run.exits_s) > 0))
    (True, True)
    """
    service = np.asarray(service_s, dtype=np.float64)
    if service.ndim != 1 or len(service) < 100 or not np.all(service > 0.0):
        raise ValueError("need at least 100 tuples of a positive time")
    if num_workers < 1 or not selectivity_ratio > 0.0:
        raise ValueError("need num_workers >= 1 and selectivity_ratio > 0")
    send_s = reordering.send_s * selectivity_ratio
    run = _locked if reordering.scheme == "lock" else _unblocked
    starts, exits = run(service.tolist(), num_workers, reordering, send_s)
    cut = len(service) // 10
    inner = slice(cut, len(service) - cut)
    took = exits[inner] - starts[inner]
    return ReorderRun(
        throughput_per_s=float((len(took) - 1) / (exits[inner][-1] - exits[inner][0])),
        mean_s=float(took.mean()),
        p99_s=float(np.quantile(took, 0.99)),
        exits_s=exits,
    )


def _locked(
    service: list[float], num_workers: int, reordering: Reordering, send_s: float
) -> tuple[Array, Array]:
    num = len(service)
    starts, exits = [0.0] * num, [0.0] * num
    asking = [(service[at], at) for at in range(min(num_workers, num))]
    asking.sort()
    waiting = bytearray(num)
    upcoming, begun, lock_free_s = 0, len(asking), 0.0
    while asking:
        asked_s, at = heappop(asking)
        now_s = max(asked_s, lock_free_s) + reordering.lock_s
        waiting[at] = 1
        while upcoming < num and waiting[upcoming]:
            now_s += send_s
            exits[upcoming] = now_s
            upcoming += 1
        lock_free_s = now_s
        if begun < num:
            starts[begun] = now_s
            heappush(asking, (now_s + service[begun], begun))
            begun += 1
    return np.array(starts), np.array(exits)


def _unblocked(
    service: list[float], num_workers: int, reordering: Reordering, send_s: float
) -> tuple[Array, Array]:
    num, size, store_s = len(service), reordering.num_buffered, reordering.store_s
    starts, exits = [0.0] * num, [0.0] * num
    # Events: a tuple is in the buffer (its number), or the sender has sent one (-1).
    events = [(service[at] + store_s, at) for at in range(min(num_workers, num))]
    events.sort()
    stored = bytearray(num)
    held: dict[int, float] = {}  # outputs for which the buffer has no place yet
    upcoming, begun, is_sending = 0, len(events), False
    while events:
        now_s, at = heappop(events)
        if at >= upcoming + size:
            held[at] = now_s
            continue
        if at >= 0:
            stored[at] = 1
        else:
            exits[upcoming] = now_s
            upcoming += 1
            is_sending = False
            entering = held.pop(upcoming + size - 1, None)
            if entering is not None:
                heappush(events, (now_s + store_s, upcoming + size - 1))
        if is_sending:
            pass  # another worker sends: this one goes on
        elif upcoming < num and stored[upcoming]:
            is_sending = True
            heappush(events, (now_s + send_s, -1))
            continue
        if begun < num:
            starts[begun] = now_s
            heappush(events, (now_s + service[begun] + store_s, begun))
            begun += 1
    return np.array(starts), np.array(exits)
