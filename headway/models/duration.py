"""How long a micro-batch takes: the driver's phases, then stage after stage of tasks on slots."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from headway.domain import StageProfile
from headway.models.arrays import Array, Numeric
from headway.models.makespan import makespan_moments


class LevelSpan(NamedTuple):
    """Mean time of one level of stages, affine in the rows that enter each of its stages."""

    name: str
    fixed_s: float
    stage_terms: tuple[tuple[float, float, float], ...]  # per_row_s, scale, exponent

    def at(self, batch_rows: Numeric) -> Array:
        """Mean time of the level [s] in a batch of ``batch_rows`` rows."""
        rows = np.asarray(batch_rows, dtype=np.float64)
        span_s = np.full_like(rows, self.fixed_s)
        for per_row_s, scale, exponent in self.stage_terms:
            span_s = span_s + per_row_s * scale * rows**exponent
        return span_s

    def slope_at(self, batch_rows: Numeric) -> Array:
        """Seconds that one more row in the batch adds."""
        rows = np.maximum(np.asarray(batch_rows, dtype=np.float64), 1.0)
        slope_s = np.zeros_like(rows)
        for per_row_s, scale, exponent in self.stage_terms:
            slope_s = slope_s + per_row_s * scale * exponent * rows ** (exponent - 1.0)
        return slope_s


class DurationModel(NamedTuple):
    """Mean duration of a batch as a function of its rows, at fixed slots and partitions.

    ``driver_s`` is the time on the driver alone; ``levels`` are the stage levels in order.
    """

    driver_s: float
    levels: tuple[LevelSpan, ...]

    def stages_s(self, batch_rows: Numeric) -> Array:
        """Mean time in stages [s]."""
        return np.asarray(sum(level.at(batch_rows) for level in self.levels), dtype=np.float64)

    def mean_s(self, batch_rows: Numeric) -> Array:
        """Mean batch duration [s]."""
        return self.driver_s + self.stages_s(batch_rows)

    def slope_s(self, batch_rows: Numeric) -> Array:
        """Seconds that one more row in the batch adds."""
        return np.asarray(sum(level.slope_at(batch_rows) for level in self.levels))


def level_spans(
    stages: Sequence[StageProfile], num_slots: int, shuffle_partitions: int
) -> tuple[LevelSpan, ...]:
    r"""Mean makespan of every level of stages on a number of slots.

    Parameters
    ----------
    stages : sequence of StageProfile
        Ordered by level; stages of one level run side by side.
    num_slots : int, >= 1
        Tasks that can run at the same time. [-]
    shuffle_partitions : int, >= 1
        Tasks of the stages behind an exchange. [-]

    Returns
    -------
    tuple of LevelSpan
        One per level.

    Notes
    -----
    theory.md (D1), (D2). A level of one stage of T tasks takes ``u(T, C, cv) (t0 + b rows / T
    + k P)`` with u the makespan of unit tasks. Stages of one level share the slots as one pool of tasks
    whose times are averaged; exact when their tasks cost the same.

    Examples
    --------
    >>> from headway.domain import RowsLaw, Separation, TasksRule
    >>> reduce = StageProfile(name="1.0", level=1, tasks_rule=TasksRule.SHUFFLE,
    ...     rows=RowsLaw(scale=1.0, exponent=1.0), task_fixed_s=0.05, task_per_row_s=1e-5,
    ...     task_noise_ratio=0.0, separation=Separation.REGRESSION)
    >>> float(level_spans([reduce], num_slots=2, shuffle_partitions=8)[0].at(1000))
    0.205
    """
    spans = []
    for _, grouped in groupby(stages, key=lambda stage: stage.level):
        pool = list(grouped)
        num_tasks = [stage.num_tasks(shuffle_partitions) for stage in pool]
        total_tasks = sum(num_tasks)
        noise_ratio = float(
            np.sqrt(np.average([stage.task_noise_ratio**2 for stage in pool], weights=num_tasks))
        )
        per_task = makespan_moments(total_tasks, num_slots, noise_ratio).mean / total_tasks
        spans.append(
            LevelSpan(
                name="+".join(stage.name for stage in pool),
                fixed_s=per_task
                * sum(
                    n * (stage.task_fixed_s + stage.task_per_partition_s * shuffle_partitions)
                    for n, stage in zip(num_tasks, pool, strict=True)
                ),
                stage_terms=tuple(
                    (per_task * stage.task_per_row_s, stage.rows.scale, stage.rows.exponent)
                    for stage in pool
                ),
            )
        )
    return tuple(spans)

