"""The stages of a query in Real-Time Mode, and the slots that they need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headway.assumptions.resources import (
    SHUFFLE_BUFFER_BYTES,
    SHUFFLE_FULL_RATIO,
    SHUFFLE_MAX_WAIT_S,
)
from headway.models.arrays import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class RealTimeStage:
    """A stage of a query in Real-Time Mode: tasks that live as long as a batch."""

    num_tasks: int  # Partitions of the source, or shuffle partitions, >= 1. [-]
    row_s: float  # Mean time that a task needs for a row, > 0. [s]
    row_cv: float  # Coefficient of variation of that time, taken as lognormal, 0 to 2. [-]
    rows_ratio: float = 1.0  # Rows that enter the stage per row of the source, > 0. [-]
    largest_share: float | None = None
    """Share of the stage's rows at its busiest task, 1 / num_tasks to 1; the others share the rest
    evenly. Even by default. [-]"""

    def __post_init__(self) -> None:
        if self.num_tasks < 1 or not 0.0 < self.row_s < np.inf or not 0.0 <= self.row_cv <= 2.0:
            raise ValueError(
                f"need a task, row_s > 0 and row_cv in 0..2, got "
                f"{self.num_tasks}, {self.row_s} and {self.row_cv}"
            )
        if not 0.0 < self.rows_ratio < np.inf:
            raise ValueError(f"rows_ratio must be positive, got {self.rows_ratio}")
        even = 1.0 / self.num_tasks
        if self.largest_share is not None and not even * (1 - 1e-9) <= self.largest_share <= 1.0:
            raise ValueError(f"largest_share must lie in {even:.3g}..1, got {self.largest_share}")

    @property
    def busiest_share(self) -> float:
        """Share of the rows at the busiest task. [-]"""
        return 1.0 / self.num_tasks if self.largest_share is None else self.largest_share

    @property
    def shares(self) -> Array:
        """Share of the rows at each task, the busiest first, (num_tasks,). [-]"""
        if self.num_tasks == 1:
            return np.ones(1)
        shares = np.full(self.num_tasks, (1.0 - self.busiest_share) / (self.num_tasks - 1))
        shares[0] = self.busiest_share
        return shares

    def utilization_ratio(self, rate_per_s: float) -> float:
        """Busy share of the busiest task at an input rate of the query [rows/s]. [-]"""
        return rate_per_s * self.rows_ratio * self.busiest_share * self.row_s


def required_slots(stages: Sequence[RealTimeStage]) -> int:
    r"""Slots that must be free when a batch of a query in Real-Time Mode starts.

    Parameters
    ----------
    stages : sequence of RealTimeStage, at least one

    **(N1)** Required slots: the sum of the tasks of all stages, i.e. the partitions of the source
    plus the shuffle partitions of every shuffle. With fewer slots, Spark rejects the query.

    >>> source = RealTimeStage(num_tasks=8, row_s=1e-4, row_cv=1.0)
    >>> required_slots([source, RealTimeStage(num_tasks=20, row_s=1e-4, row_cv=1.0)])
    28
    """
    if not stages:
        raise ValueError("a query has at least one stage")
    return sum(stage.num_tasks for stage in stages)


def sustainable_rate_per_s(
    stages: Sequence[RealTimeStage], *, trigger_s: float, gap_s: float = 0.0
) -> float:
    r"""Input rate at which the busiest task of a query in Real-Time Mode is saturated.

    Parameters
    ----------
    stages : sequence of RealTimeStage, at least one
    trigger_s : float, > 0, duration of a batch, the argument of the real-time trigger [s]
    gap_s : float, >= 0, time between two batches, in which nothing is read [s]

    **(N2)** Between two batches nothing is read for a gap `g`, during commit, planning and launch.
    Reading ends `T` after the plan was made, whenever tasks started. So `g` is the time between
    batch starts in excess of `T`, plus the time from the plan to the first task, plus the time to
    load a state store. Stable if `ρ (1+g/T) < 1` for the busiest task, with `T` the duration of a
    batch.

    >>> source = RealTimeStage(num_tasks=8, row_s=1e-3, row_cv=1.0)
    >>> sustainable_rate_per_s([source], trigger_s=9.0, gap_s=1.0)
    7200.0
    """
    if not stages:
        raise ValueError("a query has at least one stage")
    if not (0.0 < trigger_s < np.inf and 0.0 <= gap_s < np.inf):
        raise ValueError("need trigger_s > 0 and gap_s >= 0")
    per_row_s = max(stage.utilization_ratio(1.0) for stage in stages)
    return trigger_s / (trigger_s + gap_s) / per_row_s


def shuffle_wait_limit_s(pair_rate_per_s: float, row_bytes: float) -> float:
    r"""Maximum wait of a row in a buffer of the streaming shuffle.

    Parameters
    ----------
    pair_rate_per_s : float, >= 0, rows that one task sends to one task of the next stage [rows/s]
    row_bytes : float, > 0, size of a row in the buffer [bytes]

    **(N5)** Rows are not sent one by one: a writer collects them per reader and sends them when the
    buffer is 0.9 full or when its clock of period `F` ticks (`networkBufferSize` 32 KB,
    `networkBufferMaxWaitTimeMs` 50). `F` is the shorter of the clock's period and the time to fill
    the buffer. A row that enters after a share `x` of `F` waits `(1-x) F` and has Poisson(`xb`)
    rows ahead of it in its buffer, with `b = λ F/M` for `M` writers. This is computed in eight
    parts of `x`, each a uniform plus a zero-or-gamma. So every shuffle adds at least `F/2` on
    average: 25 ms by default, more than all the work of a light query.

    >>> shuffle_wait_limit_s(100.0, 200.0), shuffle_wait_limit_s(1e4, 200.0)
    (0.05, 0.0147)
    """
    if not (0.0 <= pair_rate_per_s < np.inf and 0.0 < row_bytes < np.inf):
        raise ValueError("need pair_rate_per_s >= 0 and row_bytes > 0")
    if pair_rate_per_s == 0.0:
        return SHUFFLE_MAX_WAIT_S.value
    full_bytes = SHUFFLE_FULL_RATIO.value * SHUFFLE_BUFFER_BYTES.value
    return min(SHUFFLE_MAX_WAIT_S.value, full_bytes / (pair_rate_per_s * row_bytes))
