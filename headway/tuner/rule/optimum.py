"""The optimum with full knowledge of the trace: fewest node-hours for the allowed late rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headway.assumptions.live import PROVISIONING_S, REMOVAL_PAUSE_S
from headway.models.arrays import Array
from headway.models.simulation.closed_loop import LoopTrace
from headway.tuner.rule.table import CapacityTable

Indices = NDArray[np.intp]

STEP_S = 30.0
_HALVINGS = 14
_MOST_PRICE = 1e7


@dataclass(frozen=True, slots=True, kw_only=True)
class PathCosts:
    """Costs of each size in each time step, and of going to it.

    ``sizes`` are ``n`` numbers of executors, and a step takes ``step_s``. The ``(m, n)`` arrays are
    the seconds of late arrivals in each step at each size, and of a step down to each size [s].
    ``added_s`` is how long added executors are paid before they work.
    """

    sizes: Array
    step_s: float
    late_s: Array
    removal_late_s: Array
    added_s: float

    def going(self, step: int, price: float) -> Array:
        """Cost of going from each size (rows) to each (columns), at a step's start [node-s]."""
        added = self.sizes[np.newaxis, :] - self.sizes[:, np.newaxis]
        late = np.where(added < 0.0, price * self.removal_late_s[step][np.newaxis, :], 0.0)
        return np.asarray(np.maximum(added, 0.0) * self.added_s + late)

    def staying(self, step: int, price: float) -> Array:
        """Cost of staying at each size for a step [node-seconds]."""
        return np.asarray(self.sizes * self.step_s + price * self.late_s[step])


def cheapest_path(costs: PathCosts, price: float) -> Indices:
    """The path with minimum node-seconds plus priced late seconds, by dynamic programming.

    The price is in node-seconds per second of late arrivals.

    Notes
    -----
    **(A12)** Clairvoyant optimum: with `S` executors in steps `t` of 30 s, it minimises the sum of
    `S t + μ g` and the cost of changes, with `g` the late seconds by the law at the expected
    durations. It is computed by `V_k(S) = S t + μ g_k(S) + min(V_(k+1)(S') + c_k(S, S'))` over `S'`
    (Bellman 1957). `μ` is the smallest value for which no more rows are late than the target
    allows. The backlog that a step leaves to the next is ignored; the path is then simulated by
    (A11).
    """
    num_steps, num_sizes = costs.late_s.shape
    best = np.zeros((num_steps, num_sizes), dtype=np.intp)
    value = costs.staying(num_steps - 1, price)
    for step in range(num_steps - 2, -1, -1):
        onward = costs.going(step + 1, price) + value[np.newaxis, :]
        best[step] = np.argmin(onward, axis=1)
        value = costs.staying(step, price) + onward[np.arange(num_sizes), best[step]]
    path = np.zeros(num_steps, dtype=np.intp)
    path[0] = int(np.argmin(value))
    for step in range(1, num_steps):
        path[step] = best[step - 1, path[step - 1]]
    return path


def path_costs(table: CapacityTable, trace: LoopTrace, trigger_s: float) -> PathCosts:
    """The costs of a trace, from the late rows of settings at each step's rate and costs."""
    sizes = [count for count, setting_trigger_s in table.place_of if setting_trigger_s == trigger_s]
    first_s, end_s = float(trace.edges_s[0]), float(trace.edges_s[-1])
    num_steps = max(int(np.ceil((end_s - first_s) / STEP_S)), 1)
    edges = np.minimum(first_s + STEP_S * np.arange(num_steps + 1), end_s)
    rows_until = np.concatenate([[0.0], np.cumsum(trace.rates_per_s * np.diff(trace.edges_s))])
    rates = np.diff(np.interp(edges, trace.edges_s, rows_until)) / np.maximum(np.diff(edges), 1e-9)
    begins_s, ratios = zip(*trace.cost_ratio, strict=True)
    costs = np.asarray(ratios)[
        np.maximum(np.searchsorted(np.asarray(begins_s), edges[:-1], side="right") - 1, 0)
    ]
    mean = float(rates.mean())
    late, removal = np.zeros((num_steps, len(sizes))), np.zeros((num_steps, len(sizes)))
    for size_index, size in enumerate(sizes):
        for step, (rate, cost) in enumerate(zip(rates.tolist(), costs.tolist(), strict=True)):
            # Late seconds are weighted by rows: those of a busy hour count more.
            weight = rate / mean
            late[step, size_index] = STEP_S * weight * table.late_share(size, trigger_s, rate, cost)
            removal[step, size_index] = weight * table.late_of_pause_s(
                REMOVAL_PAUSE_S.value, size, trigger_s, rate, cost
            )
    return PathCosts(
        sizes=np.asarray(sizes, dtype=np.float64),
        step_s=STEP_S,
        late_s=late,
        removal_late_s=removal,
        added_s=PROVISIONING_S.value,
    )


def optimal_steps(
    costs: PathCosts,
    first_s: float,
    late_ratio_of: Callable[[list[tuple[float, int]]], float],
    most_late_ratio: float,
) -> list[tuple[float, int]]:
    """Times and executors of the cheapest path with an allowed simulated share of late rows: (A12).

    ``first_s`` is the start of the trace, and ``late_ratio_of`` simulates a path. If no path meets
    the allowed share, that with the fewest late rows is returned. The lowest price is found by
    bisection on a logarithmic scale.
    """

    def steps_at(price: float) -> list[tuple[float, int]]:
        return _steps(costs, cheapest_path(costs, price), first_s)

    low, high = 0.0, np.log(_MOST_PRICE)
    best_steps = steps_at(_MOST_PRICE)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        steps = steps_at(float(np.exp(middle)))
        if late_ratio_of(steps) <= most_late_ratio:
            best_steps, high = steps, middle
        else:
            low = middle
        if high - low < 0.1:
            break
    return best_steps


def _steps(costs: PathCosts, path: Indices, first_s: float) -> list[tuple[float, int]]:
    """Changes of a path; more executors are requested early enough to be available in time."""
    changes = [(first_s, int(costs.sizes[path[0]]))]
    for step in range(1, len(path)):
        size = int(costs.sizes[path[step]])
        if size != changes[-1][1]:
            early_s = costs.added_s if size > changes[-1][1] else 0.0
            at_s = max(first_s + step * costs.step_s - early_s, changes[-1][0])
            changes.append((at_s, size))
    return changes
