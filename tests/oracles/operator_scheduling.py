"""Windowed queries of a record-at-a-time engine on one node: the setting of Klink's experiments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from headway.models.arrays import Array

CYCLE_S = 0.12
_ROUNDING = 1e-6


class OperatorPolicy(StrEnum):
    """Which queries' operators get the cores."""

    DEFAULT = "default"
    """All that have rows, evenly, as threads of an operating system do."""
    FCFS = "fcfs"
    ROUND_ROBIN = "rr"
    SBOX = "sbox"
    HIGHEST_RATE = "hr"
    LEAST_SLACK = "klink"
    """Least slack to the next watermark that closes a window."""
    LEAST_SLACK_MEMORY = "klink-memory"
    """The same; where memory is short, the query that frees the most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLoad:
    """A node and its queries; the defaults are those of the paper, where it prints them.

    Parameters
    ----------
    num_queries : int
        Queries, alike. [-]
    rate_per_s : float
        Rows per second and query. [rows/s]
    window_s : float
        Length of the tumbling windows. [s]
    row_core_s : float
        Core time of a row through all operators. [core-s]
    cores, cores_per_query : float
        Cores of the node; what a query can use at most. [-]
    buffer_rows : float
        Rows that a query holds in memory; beyond them its source waits. [rows]
    slowdown : float
        Speed of full buffers over that of buffers up to 60% full: what memory pressure costs. The
        paper prints no such law; 1 leaves it out. [-]
    """

    num_queries: int
    rate_per_s: float = 10_000.0
    window_s: float = 3.0
    row_core_s: float = 57.6e-6
    cores: float = 24.0
    cores_per_query: float = 6.0
    buffer_rows: float = 78_000.0
    slowdown: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorOutcome:
    """What became of the windows, after a quarter of the time.

    Parameters
    ----------
    mean_s, p90_s, p99_s : float
        From a watermark's entering the source operator to its leaving the last one. [s]
    rows_per_s : float
        Rows processed per second, all queries together. [rows/s]
    memory_ratio : float
        Mean share of the buffers that is full. [-]
    starved_ratio : float
        Share of the queries that emitted less than a fifth of an even share of the windows. [-]
    """

    mean_s: float
    p90_s: float
    p99_s: float
    rows_per_s: float
    memory_ratio: float
    starved_ratio: float


def simulate_operators(
    policy: OperatorPolicy, load: NodeLoad, *, length_s: float = 1200.0, seed: int = 1
) -> OperatorOutcome:
    r"""Simulate windowed queries on one node, as fluids, in cycles of 120 ms.

    Parameters
    ----------
    policy : OperatorPolicy
        Who gets the cores.
    load : NodeLoad
        The node and its queries.
    length_s : float
        Time that is simulated. [s]
    seed : int
        Of the start times, which lie within 20 s as in the paper.

    Returns
    -------
    OperatorOutcome
        Latency of windows, throughput, memory.

    Notes
    -----
    **(S9)** Operators of windowed queries on one node, the setting of Klink (SIGMOD 2021): rows
    wait at the source outside of the clock until the query's buffer has room, then in it until
    they are processed; a window's latency is the time of its closing row in the buffer. Each
    cycle of 120 ms the policy gives the cores away, at most six a query.

    Examples
    --------
    >>> alone = simulate_operators(OperatorPolicy.DEFAULT, NodeLoad(num_queries=1), length_s=60.0)
    >>> alone.mean_s < 0.2, round(alone.rows_per_s, -2)
    (True, 10000.0)
    """
    if load.num_queries < 1 or not length_s > 20.0:
        raise ValueError("need a query, and more than the 20 s within which queries start")
    generator = np.random.default_rng(seed)
    num = load.num_queries
    start_s = generator.uniform(0.0, 20.0, num)
    arrived, entered, done = np.zeros(num), np.zeros(num), np.zeros(num)
    window_rows = load.rate_per_s * load.window_s
    # The next closing row that enters, and that leaves; when each that is inside has entered.
    to_enter, to_leave = np.full(num, window_rows), np.full(num, window_rows)
    entries: list[list[float]] = [[] for _ in range(num)]
    latencies: list[float] = []
    emitted = np.zeros(num)
    last_turn = np.zeros(num)
    from_s, rows_then, memory, cycles = length_s / 4.0, 0.0, 0.0, 0
    capacity = load.buffer_rows * num
    for cycle in range(round(length_s / CYCLE_S)):
        now_s = cycle * CYCLE_S
        arrived = np.maximum(now_s - start_s, 0.0) * load.rate_per_s
        before = entered
        entered = np.minimum(arrived, done + load.buffer_rows)
        for at in np.flatnonzero(entered >= to_enter):
            while entered[at] >= to_enter[at]:
                into = (to_enter[at] - before[at]) / (entered[at] - before[at])
                entries[at].append(now_s - CYCLE_S * (1.0 - into))
                to_enter[at] += window_rows
        queued = entered - done
        share = float(queued.sum()) / capacity
        speed = 1.0 - (1.0 - load.slowdown) * min(max(share - 0.6, 0.0) / 0.4, 1.0)
        first_s = np.array([one[0] if one else np.inf for one in entries])
        oldest_s = start_s + done / load.rate_per_s
        waits = _Waits(queued, now_s, first_s, to_leave - done, last_turn, oldest_s, share)
        cores = _given(policy, load, waits)
        # Who got what was left over of a cycle still has its turn to come.
        wanted = np.minimum(queued * load.row_core_s / CYCLE_S, load.cores_per_query)
        last_turn[(cores > _ROUNDING) & (cores >= wanted - _ROUNDING)] = now_s
        before = done
        done = done + np.minimum(queued, cores * CYCLE_S * speed / load.row_core_s)
        for at in np.flatnonzero(done >= to_leave - 1e-6):
            while done[at] >= to_leave[at] - 1e-6:
                part = (to_leave[at] - before[at]) / (done[at] - before[at])
                left_s = now_s + CYCLE_S * part
                came_s = entries[at].pop(0)
                if came_s >= from_s:
                    latencies.append(max(left_s - came_s, 0.0))
                    emitted[at] += 1.0
                to_leave[at] += window_rows
        if now_s >= from_s:
            rows_then = rows_then or float(before.sum())
            memory += share
            cycles += 1
    # Windows that are still inside count with what they have waited.
    latencies += [length_s - came_s for one in entries for came_s in one if came_s >= from_s]
    found = np.array(latencies)
    return OperatorOutcome(
        mean_s=float(found.mean()),
        p90_s=float(np.quantile(found, 0.9)),
        p99_s=float(np.quantile(found, 0.99)),
        rows_per_s=(float(done.sum()) - rows_then) / (cycles * CYCLE_S),
        memory_ratio=memory / cycles,
        starved_ratio=float(np.mean(emitted < 0.2 * emitted.mean())),
    )


class _Waits(NamedTuple):
    """What the queries wait with at the beginning of a cycle."""

    queued: Array
    now_s: float
    first_entry_s: Array
    rows_to_window: Array
    last_turn: Array
    oldest_s: Array
    memory_ratio: float


def _given(policy: OperatorPolicy, load: NodeLoad, waits: _Waits) -> Array:
    """Cores of each query in this cycle."""
    queued, now_s, first_entry_s, rows_to_window, last_turn, oldest_s, memory_ratio = waits
    # More cores than its rows can use in a cycle would idle.
    wanted = np.minimum(queued * load.row_core_s / CYCLE_S, load.cores_per_query)
    if policy is OperatorPolicy.DEFAULT:
        return evenly(wanted, load.cores)
    cost_s = queued * load.row_core_s / load.cores_per_query
    # A window that has not closed yet closes when the rest of its rows has come.
    until_s = np.maximum(rows_to_window - queued, 0.0) / load.rate_per_s
    closes_s = np.where(np.isfinite(first_entry_s), first_entry_s, now_s + until_s)
    key = {
        OperatorPolicy.FCFS: oldest_s,
        OperatorPolicy.ROUND_ROBIN: last_turn,
        OperatorPolicy.SBOX: closes_s,
        # Queries alike have one rate; turns decide.
        OperatorPolicy.HIGHEST_RATE: last_turn,
        OperatorPolicy.LEAST_SLACK: closes_s - now_s - cost_s,
        OperatorPolicy.LEAST_SLACK_MEMORY: closes_s - now_s - cost_s,
    }[policy]
    if policy is OperatorPolicy.LEAST_SLACK_MEMORY and memory_ratio > 0.6:
        # Fullest first, in thousands of rows; the slack decides among those that are as full.
        key = key - 1e6 * np.floor(queued / 1000.0)
    return in_order(key, wanted, load.cores)


def in_order(key: Array, wanted: Array, cores: float) -> Array:
    """What each wants, the least key first, until nothing is left."""
    given = np.zeros(len(wanted))
    left = cores
    for at in np.argsort(key, kind="stable"):
        given[at] = min(wanted[at], left)
        left -= given[at]
        if left <= _ROUNDING:
            break
    return given


def evenly(wanted: Array, cores: float) -> Array:
    """Even shares, nobody more than wanted."""
    if wanted.sum() <= cores:
        return wanted
    level = np.sort(wanted)
    count = len(level)
    below = np.concatenate(([0.0], np.cumsum(level)[:-1]))
    shares = (cores - below) / (count - np.arange(count))
    evenly: Array = np.minimum(wanted, shares[np.argmax(shares <= level)])
    return evenly


def rows_removed(queued_rows: Sequence[float], selectivities: Sequence[float]) -> float:
    r"""Rows that leave memory when all queues up to an operator are worked off through it.

    Parameters
    ----------
    queued_rows : sequence of float, >= 0
        Rows queued at each operator, source first. [rows]
    selectivities : sequence of float, 0..1
        Rows out per row in of each of them. [-]

    Returns
    -------
    float
        Rows removed. [rows]

    Notes
    -----
    **(G7)** Rows that leave memory when all queues up to operator `k` are worked off through it:
    `Σ_j q_j(1-Π_(i = j)^k S_i)`. Exact; printed with the product from the source on.

    Klink (SIGMOD 2021, 3.4), corrected: rows at operator j pass only the operators from j on,
    `Σ_j q_j (1-Π_(i=j..k) S_i)`; printed is the product from the source on.

    Examples
    --------
    >>> round(rows_removed([100.0, 60.0, 40.0], [0.5, 0.5, 0.1]), 1)
    190.5
    """
    left, removed = 1.0, 0.0
    for rows, selectivity in zip(reversed(queued_rows), reversed(selectivities), strict=True):
        left *= selectivity
        removed += rows * (1.0 - left)
    return removed
