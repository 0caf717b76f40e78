"""Rows of a micro-batch that can be in time; all kept rows are committed together."""

from __future__ import annotations

import numpy as np

from headway.models.arrays import Array


def punctual_subset(
    now_s: float,
    deadlines_s: Array,
    costs_s: Array,
    counts: np.ndarray,
    *,
    fixed_s: float = 0.0,
    shed_cost_s: float = 0.0,
) -> tuple[np.ndarray, float]:
    r"""The largest set of rows of a batch that are in time if all others are shed.

    The rows kept by deadline and class, which are the cheapest whose deadline is not before the
    end, and the predicted end of the batch. [s]

    Parameters
    ----------
    now_s : float, start of the batch [s]
    deadlines_s : (b,) array, increasing, deadlines of the rows [s]
    costs_s : (g,) array, increasing, time that a row of each cost class adds to the batch [s]
    counts : (b, g) array of int, >= 0, rows by deadline and class
    fixed_s : float, >= 0, time of a batch without rows [s]
    shed_cost_s : float, >= 0, time that a shed row adds, less than a row of any class [s]

    **(G3)** Punctual subset of a micro-batch, whose rows are committed together: for each deadline
    `d`, take the cheapest rows of deadline `≥ d` as long as `a + c_s N + Σ(c_k-c_s) ≤ d - t`; the
    best `d` wins. The result is the same as by brute force. Goodput if a shed row costs `c_s`:
    `(1-a/T-rc_s)/(c-c_s)`. Share of rows in time under steady overload: `m + (1-rmc_m)/(rc_d)` with
    a share `m` of cheap rows, or `1/load` if costs are ignored.

    After VLDB'15, section 4.

    The rows of VLDB'15, Figure 5, as a batch with fixed times of 0, 1 and 6.

    >>> counts = np.array([[0, 2, 0, 0], [1, 1, 1, 0], [0, 0, 0, 1]])
    >>> deadlines, costs = np.array([10.0, 15.0, 20.0]), np.array([1.0, 2.0, 3.0, 4.0])
    >>> kept = [punctual_subset(0.0, deadlines, costs, counts, fixed_s=a)[0] for a in (0, 1, 6)]
    >>> [int(rows.sum()) for rows in kept]
    [5, 4, 3]
    """
    counts = np.asarray(counts, dtype=np.int64)
    costs = np.asarray(costs_s, dtype=np.float64) - shed_cost_s
    if np.any(costs <= 0.0) or np.any(np.diff(costs) < 0.0):
        raise ValueError("costs_s must increase and lie above shed_cost_s")
    always_s = fixed_s + shed_cost_s * float(counts.sum())
    # Rows of each class with this deadline or a later one.
    eligible = counts[::-1].cumsum(axis=0)[::-1]
    best, best_class_rows, best_spent_s = -1, np.zeros(len(costs), dtype=np.int64), 0.0
    for index, deadline in enumerate(deadlines_s):
        available_s = float(deadline) - now_s - always_s
        if available_s < 0.0:
            continue
        class_rows = np.zeros(len(costs), dtype=np.int64)
        spent_s = 0.0
        for group, cost in enumerate(costs):
            room = int(np.floor((available_s - spent_s) / cost + 1e-9))
            class_rows[group] = min(eligible[index, group], room)
            spent_s += class_rows[group] * cost
            if class_rows[group] < eligible[index, group]:
                break
        if class_rows.sum() > best_class_rows.sum():
            best, best_class_rows, best_spent_s = index, class_rows, spent_s
    kept_rows = np.zeros_like(counts)
    if best >= 0:
        for index in reversed(range(best, len(counts))):
            # The latest deadlines first: they have the most room if the batch takes longer.
            kept_rows[index] = np.minimum(counts[index], best_class_rows)
            best_class_rows = best_class_rows - kept_rows[index]
    return kept_rows, now_s + always_s + best_spent_s
