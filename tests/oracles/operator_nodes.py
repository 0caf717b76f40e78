"""Windowed queries of a record-at-a-time engine over several nodes, as Klink distributes them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headway.models.arrays import Array
from tests.oracles.operator_scheduling import (
    CYCLE_S,
    NodeLoad,
    OperatorPolicy,
    evenly,
    in_order,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesOutcome:
    """What became of the windows, after a quarter of the time.

    Parameters
    ----------
    mean_s, p99_s : float
        From a closing row's entering the first operator to its leaving the last one. [s]
    rows_per_s : float
        Rows that left, all queries together. [rows/s]
    """

    mean_s: float
    p99_s: float
    rows_per_s: float


def simulate_nodes(
    policy: OperatorPolicy,
    load: NodeLoad,
    num_nodes: int,
    *,
    forwards: bool = True,
    length_s: float = 1200.0,
    seed: int = 1,
) -> NodesOutcome:
    r"""Simulate queries whose operators lie on two nodes each, in cycles of 120 ms.

    Parameters
    ----------
    policy : OperatorPolicy
        Who gets the cores of a node: ``default``, ``fcfs`` or ``klink``.
    load : NodeLoad
        A node, and all queries of all nodes.
    num_nodes : int, >= 1
        Nodes. The first half of the operators of query `q` is on node `q mod n`, the second on the
        next one.
    forwards : bool
        Whether nodes tell each other what they know: delays go downstream, so that the second half
        knows when a window closes before its closing row comes, and costs upstream, so that the
        first half counts what waits behind it.
    length_s : float
        Time that is simulated. [s]
    seed : int
        Of the start times, which lie within 20 s.

    Returns
    -------
    NodesOutcome
        Latency of windows and throughput.

    Notes
    -----
    (S9) over several nodes, after Klink (SIGMOD 2021, 4): each node decides by itself. A query
    holds as many rows as on one node, in both halves together; each half can use half its cores.

    Examples
    --------
    >>> light = NodeLoad(num_queries=4)
    >>> found = simulate_nodes(OperatorPolicy.LEAST_SLACK, light, 2, length_s=60.0)
    >>> found.mean_s < 0.4, round(found.rows_per_s, -3)
    (True, 38000.0)
    """
    if num_nodes < 1 or load.num_queries < 1 or not length_s > 20.0:
        raise ValueError("need a node, a query, and more than the 20 s within which queries start")
    num = load.num_queries
    start_s = np.random.default_rng(seed).uniform(0.0, 20.0, num)
    node_of = np.concatenate((np.arange(num), np.arange(num) + 1)) % num_nodes
    places = [np.flatnonzero(node_of == node) for node in range(num_nodes)]
    half_core_s, most_cores = 0.5 * load.row_core_s, 0.5 * load.cores_per_query
    window_rows = load.rate_per_s * load.window_s
    entered, middle, done = np.zeros(num), np.zeros(num), np.zeros(num)
    to_enter, to_leave = np.full(num, window_rows), np.full(num, window_rows)
    entries: list[list[float]] = [[] for _ in range(num)]
    latencies: list[float] = []
    from_s, rows_then, counted_s = length_s / 4.0, -1.0, 0.0
    for cycle in range(round(length_s / CYCLE_S)):
        now_s = cycle * CYCLE_S
        before = entered
        arrived = np.maximum(now_s - start_s, 0.0) * load.rate_per_s
        entered = np.minimum(arrived, done + load.buffer_rows)
        for at in np.flatnonzero(entered >= to_enter):
            while entered[at] >= to_enter[at]:
                into = (to_enter[at] - before[at]) / (entered[at] - before[at])
                entries[at].append(now_s - CYCLE_S * (1.0 - into))
                to_enter[at] += window_rows
        first, second = entered - middle, middle - done
        usable = np.concatenate((first, second))
        wanted = np.minimum(usable * half_core_s / CYCLE_S, most_cores)
        # A window closes when its last row entered, or will have.
        until_s = np.maximum(to_leave - entered, 0.0) / load.rate_per_s
        came_s = np.array([one[0] if one else np.inf for one in entries])
        closes_s = np.where(np.isfinite(came_s), came_s, now_s + until_s)
        costs_s = np.array([first, second]) * half_core_s / most_cores
        if policy is OperatorPolicy.FCFS:
            key = np.concatenate(
                (start_s + middle / load.rate_per_s, start_s + done / load.rate_per_s)
            )
        elif forwards:
            key = np.concatenate((closes_s - costs_s.sum(axis=0), closes_s - costs_s[1]))
        else:
            key = np.concatenate(
                (
                    closes_s - costs_s[0],
                    _seen_s(closes_s, to_leave, middle, load, now_s) - costs_s[1],
                )
            )
        cores = np.zeros(2 * num)
        for place in places:
            share = (
                evenly(wanted[place], load.cores)
                if policy is OperatorPolicy.DEFAULT
                else in_order(key[place], wanted[place], load.cores)
            )
            cores[place] = share
        rows = np.minimum(usable, cores * CYCLE_S / half_core_s)
        before, middle, done = done, middle + rows[:num], done + rows[num:]
        for at in np.flatnonzero(done >= to_leave - 1e-6):
            while done[at] >= to_leave[at] - 1e-6:
                part = (to_leave[at] - before[at]) / (done[at] - before[at])
                entered_s = entries[at].pop(0)
                if entered_s >= from_s:
                    latencies.append(max(now_s + CYCLE_S * part - entered_s, 0.0))
                to_leave[at] += window_rows
        if now_s >= from_s:
            rows_then = float(before.sum()) if rows_then < 0.0 else rows_then
            counted_s += CYCLE_S
    # Windows that are still inside count with what they have waited.
    latencies += [length_s - one for of in entries for one in of if one >= from_s]
    found = np.array(latencies)
    return NodesOutcome(
        mean_s=float(found.mean()),
        p99_s=float(np.quantile(found, 0.99)),
        rows_per_s=(float(done.sum()) - rows_then) / counted_s,
    )


def _seen_s(closes_s: Array, to_leave: Array, middle: Array, load: NodeLoad, now_s: float) -> Array:
    """When windows close as the second half sees it by itself: by the rows that have come to it."""
    missing_s = np.maximum(to_leave - middle, 0.0) / load.rate_per_s
    seen_s: Array = np.where(missing_s > 0.0, now_s + missing_s, closes_s)
    return seen_s
