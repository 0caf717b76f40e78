"""A largest subset of tasks that can all meet their deadlines: Algorithm 1 of the VLDB'15 paper."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence

import numpy as np

from headway.models.arrays import Array


class DeadlineTree:
    """Tasks by deadline, with the latest start at which all of them meet their deadlines.

    A balanced tree over the deadlines. Each node knows of its tasks the total cost ``C``, the
    largest cost ``M``, and the latest start ``phi`` that keeps all of them in time.

    Parameters
    ----------
    deadlines_s : sequence of float
        The deadlines that tasks may have; they are sorted and made distinct. [s]

    Notes
    -----
    VLDB'15, section 4.2, with the corrections of theory.md (G1): a leaf of deadline d has
    ``phi = d - C``, an inner node ``phi = min(phi_L, phi_R - C_L)``. Adding and removing a task,
    the first deadline missed and the dearest task before it take O(log deadlines) steps.

    Examples
    --------
    The tasks of Figure 5.

    >>> tree = DeadlineTree([10.0, 15.0, 20.0])
    >>> for deadline, cost in [(10, 2), (10, 2), (15, 3), (15, 1), (15, 2), (20, 4)]:
    ...     tree.add(deadline, cost)
    >>> tree.latest_start_s
    5.0
    >>> tree.drop_excess(8.0)
    [(10.0, 2.0), (15.0, 3.0)]
    >>> len(tree), tree.latest_start_s, tree.pop_next(8.0)
    (4, 8.0, (10.0, 2.0))
    """

    __slots__ = ("_costs", "_deadlines", "_largest", "_latest", "_leaves", "_num_tasks", "_total")

    def __init__(self, deadlines_s: Sequence[float]) -> None:
        self._deadlines = sorted({float(deadline) for deadline in deadlines_s})
        self._leaves = 1 << max(len(self._deadlines) - 1, 0).bit_length()
        self._costs: list[list[float]] = [[] for _ in self._deadlines]
        self._total = [0.0] * (2 * self._leaves)
        self._largest = [-math.inf] * (2 * self._leaves)
        self._latest = [math.inf] * (2 * self._leaves)
        self._num_tasks = 0

    def __len__(self) -> int:
        return self._num_tasks

    @property
    def latest_start_s(self) -> float:
        """Latest start at which every task meets its deadline; ``inf`` without tasks. [s]"""
        return self._latest[1]

    def add(self, deadline_s: float, cost_s: float) -> None:
        """Add a task; its deadline is one of those of the tree."""
        at = bisect.bisect_left(self._deadlines, deadline_s)
        if at == len(self._deadlines) or self._deadlines[at] != deadline_s:
            raise ValueError(f"{deadline_s} is no deadline of this tree")
        bisect.insort(self._costs[at], float(cost_s))
        self._num_tasks += 1
        self._update(at, float(cost_s))

    def drop_excess(self, now_s: float) -> list[tuple[float, float]]:
        """Drop tasks until the others can all meet their deadlines; what was dropped, in order.

        While a deadline cannot be met, the dearest task up to the first such deadline goes.
        """
        dropped = []
        while self._latest[1] < now_s:
            at = self._dearest_up_to(self._first_missed(now_s))
            cost = self._costs[at].pop()
            self._taken(at, cost)
            dropped.append((self._deadlines[at], cost))
        return dropped

    def pop_next(self, now_s: float) -> tuple[float, float] | None:
        """Take the cheapest task of the earliest deadline that it can still meet; None if none.

        Tasks that can no longer meet theirs leave on the way.
        """
        while self._num_tasks:
            at = self._earliest()
            cost = self._costs[at].pop(0)
            self._taken(at, cost)
            if now_s + cost <= self._deadlines[at]:
                return self._deadlines[at], cost
        return None

    def _taken(self, at: int, cost_s: float) -> None:
        self._num_tasks -= 1
        self._update(at, -cost_s)

    def _update(self, at: int, cost_change_s: float) -> None:
        node, costs = at + self._leaves, self._costs[at]
        # Rounding must not leave cost where no task is.
        total = self._total[node] + cost_change_s if costs else 0.0
        self._total[node] = total
        self._largest[node] = costs[-1] if costs else -math.inf
        self._latest[node] = self._deadlines[at] - total if costs else math.inf
        node >>= 1
        while node:
            left, right = 2 * node, 2 * node + 1
            self._total[node] = self._total[left] + self._total[right]
            self._largest[node] = max(self._largest[left], self._largest[right])
            self._latest[node] = min(self._latest[left], self._latest[right] - self._total[left])
            node >>= 1

    def _first_missed(self, start_s: float) -> int:
        node = 1
        while node < self._leaves:
            node *= 2
            if self._latest[node] >= start_s:
                start_s += self._total[node]
                node += 1
        return node - self._leaves

    def _dearest_up_to(self, at: int) -> int:
        node = at + self._leaves
        best = node
        while node > 1:
            # A right child: all of its left sibling lies before it.
            if node & 1 and self._largest[node - 1] > self._largest[best]:
                best = node - 1
            node >>= 1
        while best < self._leaves:
            best = 2 * best + (self._largest[2 * best + 1] >= self._largest[2 * best])
        return best - self._leaves

    def _earliest(self) -> int:
        node = 1
        while node < self._leaves:
            node = 2 * node + (self._largest[2 * node] == -math.inf)
        return node - self._leaves


def largest_subset(
    start_s: float, deadlines_s: Array, costs_s: Array, *, margin: float = 0.0, cost_cv: float = 0.0
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    r"""Which tasks to keep so that as many as possible meet their deadlines, on one server.

    Parameters
    ----------
    start_s : float
        When the server is free. [s]
    deadlines_s : (n,) array
        When each task has to be done. [s]
    costs_s : (n,) array, >= 0
        Mean time of each task. [s]
    margin : float, >= 0
        Standard deviations of the total cost that must fit as well; 1 serves noisy costs. [-]
    cost_cv : float, >= 0
        Coefficient of variation of a task's time. [-]

    Returns
    -------
    (n,) array of bool
        Tasks that are kept; run them by increasing deadline.

    Notes
    -----
    **(G1)** Most tasks in time on one server (Moore 1968, doi:10.1287/mnsc.15.1.102, Hodgson;
    VLDB'15, Algorithm 1): by increasing deadline, while `t + Σ c > d_i` the dearest task up to
    `d_i` goes. As a tree over deadlines: a leaf has `φ = d - C`, an inner node
    `φ = min(φ_L, φ_R-C_L)`, all tasks fit iff `t ≤ φ` of the root; adding, finding the first
    deadline missed and the dearest task before it take `O(log)`. Optimal at an instant; releases
    that are not known yet can make it worse, by any factor. Noisy costs:
    `t + Σ c + z sqrt(Σ Var) ≤ d`, `z = 1`. Equal to brute force on random cases.

    Examples
    --------
    >>> deadlines, costs = np.array([10, 10, 15, 15, 15, 20]), np.array([2, 2, 3, 1, 2, 4])
    >>> [int(largest_subset(t, deadlines, costs).sum()) for t in (5, 6, 8, 10, 16)]
    [6, 5, 4, 3, 1]
    """
    import heapq

    deadlines = np.asarray(deadlines_s, dtype=np.float64)
    costs = np.asarray(costs_s, dtype=np.float64)
    if deadlines.shape != costs.shape or deadlines.ndim != 1 or np.any(costs < 0.0):
        raise ValueError("need a deadline and a non-negative cost of each task")
    kept = np.ones(len(costs), dtype=bool)
    dearest: list[tuple[float, int]] = []
    total, variance = start_s, 0.0
    for at in np.lexsort((costs, deadlines)).tolist():
        cost = float(costs[at])
        heapq.heappush(dearest, (-cost, at))
        total += cost
        variance += (cost * cost_cv) ** 2
        while dearest and total + margin * math.sqrt(max(variance, 0.0)) > deadlines[at]:
            negative, worst = heapq.heappop(dearest)
            kept[worst] = False
            total += negative
            variance -= (negative * cost_cv) ** 2
    return kept


def kept_counts(
    start_s: float, deadlines_s: Array, costs_s: Array, counts: np.ndarray
) -> np.ndarray:
    r"""Algorithm 1 for many tasks of few kinds: how many of each are kept.

    Parameters
    ----------
    start_s : float
        When the server is free. [s]
    deadlines_s : (b,) array, increasing
        Deadlines. [s]
    costs_s : (g,) array, > 0, increasing
        Time of a task of each cost group. [s]
    counts : (b, g) array of int, >= 0
        Tasks of each deadline and group.

    Returns
    -------
    (b, g) array of int
        Tasks that are kept; of equal cost the earlier deadline goes first.

    Notes
    -----
    theory.md (G1); VLDB'15, section 4.2, for buckets of deadlines. O(b g) steps however many tasks.

    Examples
    --------
    >>> kept_counts(8.0, np.array([10.0, 15.0, 20.0]), np.array([1.0, 2.0, 3.0, 4.0]),
    ...             np.array([[0, 2, 0, 0], [1, 1, 1, 0], [0, 0, 0, 1]])).sum(axis=1).tolist()
    [1, 2, 1]
    """
    kept = [[int(count) for count in row] for row in counts]
    costs = [float(cost) for cost in costs_s]
    in_prefix = [0] * len(costs)
    # Where the first task of a group that is still there stands, so that all removals are one walk.
    first = [0] * len(costs)
    total = float(start_s)
    for at, deadline in enumerate(deadlines_s):
        for group, count in enumerate(kept[at]):
            in_prefix[group] += count
            total += count * costs[group]
        for group in reversed(range(len(costs))):
            excess = total - float(deadline)
            if excess <= 1e-12 * max(abs(total), 1.0):
                break
            removed = min(in_prefix[group], math.ceil(excess / costs[group] - 1e-9))
            in_prefix[group] -= removed
            total -= removed * costs[group]
            while removed:
                here = min(removed, kept[first[group]][group])
                kept[first[group]][group] -= here
                removed -= here
                first[group] += removed > 0
    return np.array(kept, dtype=np.int64).reshape(np.shape(counts))
