"""How long rows of a simulated trace wait: in batches, and those that are overdue at its end."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headway.domain import Metric, Target
from headway.models.arrays import Array
from headway.models.laws.distributions import uniform_mixture_quantile
from headway.models.simulation.rate_trace import RateTraceRuns

#: Rows of a batch that arrived at the same time count as if this was between them.
LEAST_WIDTH_S = 1e-12


class Waits(NamedTuple):
    """Rows of batches, or of parts of them, whose latencies are even between two times [s].

    ``batch_s`` are the durations of their batches.
    """

    num_rows: Array
    low_s: Array
    high_s: Array
    batch_s: Array

    def quantiles_s(self, *probabilities: float) -> list[float]:
        """Quantiles of the latency of all rows."""
        levels = np.array(probabilities)
        of_rows = uniform_mixture_quantile(levels, self.low_s, self.high_s, self.num_rows)
        return [float(quantile_s) for quantile_s in of_rows]

    def mean_s(self) -> float:
        """Mean latency of all rows."""
        return float(np.average(0.5 * (self.low_s + self.high_s), weights=self.num_rows))

    def statistic_s(self, target: Target) -> float:
        """The statistic of a target over all rows of all runs, or over all batches."""
        of_batches = target.metric is Metric.BATCH
        if target.quantile is None:
            return float(self.batch_s.mean()) if of_batches else self.mean_s()
        if of_batches:
            return float(np.quantile(self.batch_s, target.quantile))
        return self.quantiles_s(target.quantile)[0]

    def with_others(self, others: Waits) -> Waits:
        """These and further ones, those of them that have rows."""
        has_rows = others.num_rows > 0.0
        pairs = zip(self, others, strict=True)
        return Waits(*(np.concatenate([values, added[has_rows]]) for values, added in pairs))

    def late_rows(self, target: Target) -> Array:
        """Rows that miss the target; for one on batches, all rows of a batch beyond the limit."""
        if target.metric is Metric.WINDOW:
            return np.zeros_like(self.low_s)
        if target.metric is Metric.BATCH:
            return np.where(self.batch_s > target.limit_s, self.num_rows, 0.0)
        width_s = np.maximum(self.high_s - self.low_s, LEAST_WIDTH_S)
        beyond_s = self.high_s - target.limit_s
        return np.asarray(self.num_rows * np.clip(beyond_s / width_s, 0.0, 1.0))

    def met(self, target: Target) -> NDArray[np.bool_]:
        """Whether the rows of each batch, taken by themselves, meet a target on rows or batches."""
        if target.metric is Metric.BATCH:
            return np.asarray(self.batch_s <= target.limit_s)
        if target.quantile is None:
            return np.asarray(0.5 * (self.low_s + self.high_s) <= target.limit_s)
        most_late = (1.0 - target.quantile) * self.num_rows
        return np.asarray(self.late_rows(target) <= most_late)


def overdue_waits(simulated: RateTraceRuns, edges: Array, target: Target) -> Waits:
    """Rows in no batch at the end that have waited for longer than a limit on latencies of rows.

    Those of each stretch between two edges, run by run, with their waits until the end.
    """
    num_runs, end_s = simulated.arrivals.num_runs, edges[-1]
    late_until = np.minimum(edges, end_s - target.limit_s)
    num_rows = simulated.unread_rows(late_until)
    if target.metric in (Metric.BATCH, Metric.WINDOW):
        num_rows = np.zeros_like(num_rows)
    first_s = [
        simulated.arrivals.arrival_s(simulated.num_rows[simulated.run == run].sum(), run)
        for run in range(num_runs)
    ]
    low_s = np.broadcast_to(end_s - late_until[1:, np.newaxis], num_rows.shape)
    high_s = end_s - np.maximum(late_until[:-1, np.newaxis], np.array(first_s))
    return Waits(
        num_rows=num_rows.ravel(),
        low_s=low_s.ravel(),
        high_s=np.maximum(high_s, low_s).ravel(),
        batch_s=np.full(num_rows.size, math.inf),
    )


def longest_late_s(
    simulated: RateTraceRuns, late_rows: Array, overdue: Waits, edges: Array
) -> Iterator[float]:
    """The longest period of arrivals in each run throughout which some rows were late."""
    num_runs = simulated.arrivals.num_runs
    for number in range(num_runs):
        run, of_run = simulated.run == number, slice(number, None, num_runs)
        late = late_rows[run] > 0.0
        first_s, last_s = simulated.first_arrival_s[run], simulated.last_arrival_s[run]
        # Rows that are overdue at the end follow those of the last batch.
        is_overdue = overdue.num_rows[of_run] > 0.0
        if is_overdue.any():
            late = np.append(late, True)
            first_s = np.append(first_s, edges[-1] - overdue.high_s[of_run][is_overdue].max())
            last_s = np.append(last_s, edges[-1] - overdue.low_s[of_run][is_overdue].min())
        turns = np.flatnonzero(np.diff(np.concatenate([[False], late, [False]])))
        first_late, last_late = turns[::2], turns[1::2] - 1
        yield float(np.max(last_s[last_late] - first_s[first_late], initial=0.0))
