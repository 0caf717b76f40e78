"""The work of batches, and its parts while they run: of executors or of a driver, on which cores.

Theory.md (S7): the cores are shared evenly by all work on them.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headway.domain import EventTimeLag, ScheduledQuery

# Parts of a batch: its driver before the executors, the executors, and the driver after them.
BEFORE, EXECUTORS, AFTER = range(3)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryWork:
    """A query and the costs of its batches.

    The driver works for ``before_s`` before the executors and for ``after_s`` after them. They need
    ``fixed_core_s`` of core time, above 0, for a batch without rows; ``noise_ratio`` is the
    coefficient of variation of their work, and ``most_cores`` limits the cores of a batch.
    ``closing_delay_s`` is the usual time from the end of a window plus the watermark delay to the
    row that closes it, ``closing_lags`` how far the newest rows of batches are behind their starts,
    by their shares, if that is known; a closed window emits ``output_rows``. While it works, the
    driver takes ``driver_cores`` from the executors: 0 on a cluster, where it has its own.
    """

    query: ScheduledQuery
    rate_per_s: float
    before_s: float
    after_s: float
    fixed_core_s: float
    per_row_core_s: float
    most_cores: float = math.inf
    noise_ratio: float = 0.0
    closing_delay_s: float = 0.0
    closing_lags: tuple[EventTimeLag, ...] = ()
    output_rows: float = 0.0
    driver_cores: float = 0.0

    def newest_row_lag_s(self, generator: np.random.Generator) -> float:
        """How far the newest row of a batch is behind its start: one of the lags at random [s]."""
        if len(self.closing_lags) < 2:
            return self.closing_delay_s
        shares = np.array([lag.batch_share for lag in self.closing_lags])
        drawn = generator.choice(len(shares), p=shares / shares.sum())
        return max(self.closing_lags[drawn].lag_s, 0.0)

    def duration_s(self, rows: float, cores: float) -> float:
        """Mean duration of a batch with the given number of cores. [s]"""
        work_s = self.fixed_core_s + self.per_row_core_s * rows
        return self.before_s + work_s / min(cores, self.most_cores) + self.after_s


class Parts:
    """Parts of running batches: on the evenly shared cores, or in the driver only."""

    def __init__(self, works: Sequence[QueryWork], cores: float) -> None:
        self._works, self._cores = works, cores
        # Times at which the driver finishes a part.
        self._timers: list[tuple[float, int]] = []
        # Of parts on cores: the core time that is left, and the cores that it can use at most.
        self._left_core_s: dict[int, float] = {}
        self._most_cores: dict[int, float] = {}
        self._share_cores = cores
        self._part: dict[int, int] = {}

    def begin(self, index: int, part: int, now_s: float, executors_core_s: float = 0.0) -> None:
        """Start a part of a query's batch."""
        work, self._part[index] = self._works[index], part
        if part == EXECUTORS:
            self._begin_on_cores(index, executors_core_s, work.most_cores)
            return
        driver_s = work.before_s if part == BEFORE else work.after_s
        if work.driver_cores > 0.0:
            self._begin_on_cores(index, driver_s * work.driver_cores, work.driver_cores)
        else:
            heapq.heappush(self._timers, (now_s + driver_s, index))

    def next_end(self, now_s: float) -> tuple[float, int]:
        """When the first part ends, and of which query; never if there is none."""
        earliest = self._timers[0] if self._timers else (math.inf, -1)
        share_cores, most_cores = self._share_cores, self._most_cores
        for index, core_s in self._left_core_s.items():
            end_s = now_s + core_s / min(share_cores, most_cores[index])
            if end_s <= earliest[0]:
                earliest = end_s, index
        return earliest

    def pass_s(self, elapsed_s: float) -> float:
        """Let time pass, and return the core time used. [core-s]"""
        used_core_s, share_cores, most_cores = 0.0, self._share_cores, self._most_cores
        for index in self._left_core_s:
            done_core_s = elapsed_s * min(share_cores, most_cores[index])
            self._left_core_s[index] -= done_core_s
            used_core_s += done_core_s
        return used_core_s

    def end(self, index: int) -> int:
        """End the current part of a query's batch, and return it."""
        if self._left_core_s.pop(index, None) is None:
            heapq.heappop(self._timers)
        else:
            self._share_cores = self._cores / max(len(self._left_core_s), 1)
        return self._part.pop(index)

    def _begin_on_cores(self, index: int, core_s: float, most_cores: float) -> None:
        self._left_core_s[index], self._most_cores[index] = core_s, most_cores
        self._share_cores = self._cores / len(self._left_core_s)
