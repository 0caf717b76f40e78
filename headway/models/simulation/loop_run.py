"""Results of a run with changing executors: late rows over time, node time, changes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from headway.domain.live import ExecutorStep
from headway.models.arrays import Array
from headway.models.simulation.rate_trace import CumulativeRows

_NO_ROW = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRun:
    """Results of one run; arrays have one entry per batch."""

    start_s: Array
    duration_s: Array
    num_rows: Array
    late_rows: Array
    """Rows of the batch, the oldest ones, that were committed after the limit. [rows]"""
    unread_late_rows: float
    """Rows older than the limit that no batch had committed when the trace ended. [rows]"""
    arrived_rows: float
    steps: tuple[ExecutorStep, ...]
    """The first is the start; every other one is a change."""
    executor_s: float
    """Requested executors, integrated over time. [s]"""
    arrivals: CumulativeRows

    @property
    def num_changes(self) -> int:
        """How often the executors or the trigger interval were changed."""
        return len(self.steps) - 1

    @property
    def late_ratio(self) -> float:
        """Share of rows that were late. [-]"""
        return float((self.late_rows.sum() + self.unread_late_rows) / self.arrived_rows)

    def late_by(self, edges_s: Array) -> tuple[Array, Array]:
        """Rows that arrived between edges, and how many of them were late. [rows]"""
        arrived = self.arrivals.of_run_until(edges_s, 0)
        read_rows = np.concatenate([[0.0], np.cumsum(self.num_rows)])
        # The late rows of a batch are its oldest ones: the count rises up to one row, then is
        # constant.
        knots = np.stack([read_rows[:-1], read_rows[:-1] + self.late_rows], axis=1).ravel()
        before = np.concatenate([[0.0], np.cumsum(self.late_rows)])
        counts = np.stack([before[:-1], before[1:]], axis=1).ravel()
        end_knots = [read_rows[-1], read_rows[-1] + self.unread_late_rows]
        knots = np.concatenate([knots, end_knots])
        counts = np.concatenate([counts, [before[-1], before[-1] + self.unread_late_rows]])
        return np.diff(arrived), np.diff(np.interp(arrived, knots, counts))

    def kept_share(self, most_late_ratio: float, window_s: float = 300.0) -> float:
        """Share of windows of the trace that have no more late rows than allowed. [-]"""
        first_s = self.arrivals.first_s
        end_s = first_s + self.arrivals.cell_s * (len(self.arrivals.rows) - 1)
        num_windows = max(round((end_s - first_s) / window_s), 1)
        rows, late = self.late_by(np.linspace(first_s, end_s, num_windows + 1))
        return float(np.mean(late <= most_late_ratio * rows + _NO_ROW * self.arrived_rows))

    def num_reversals(self, within_s: float) -> int:
        """Changes of executors that reverse the previous one within a given time."""
        count, steps = 0, [self.steps[0]]
        steps += [step for last, step in pairwise(self.steps) if step.executors != last.executors]
        for before, middle, after in zip(steps, steps[1:], steps[2:], strict=False):
            turns = (middle.executors - before.executors) * (after.executors - middle.executors) < 0
            count += turns and after.at_s - middle.at_s < within_s
        return count
