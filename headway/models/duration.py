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
    """Mean time of one level of stages as a function of the rows of the batch.

    The costs are floats, or arrays with one value per setting (:func:`stacked`).
    """

    name: str
    fixed_s: Numeric
    stage_terms: tuple[tuple[Numeric, float, float], ...]  # per_row_s, scale, exponent

    def at(self, batch_rows: Numeric) -> Array:
        """Mean time of the level [s] in a batch of ``batch_rows`` rows."""
        rows = np.asarray(batch_rows, dtype=np.float64)
        span_s = self.fixed_s + np.zeros_like(rows)
        for per_row_s, scale, exponent in self.stage_terms:
            span_s = span_s + per_row_s * (scale * rows**exponent)
        return np.asarray(span_s)

    def slope_at(self, batch_rows: Numeric) -> Array:
        """Seconds that one more row in the batch adds."""
        rows = np.maximum(np.asarray(batch_rows, dtype=np.float64), 1.0)
        slope_s = np.zeros_like(rows)
        for per_row_s, scale, exponent in self.stage_terms:
            slope_s = slope_s + per_row_s * (scale * exponent * rows ** (exponent - 1.0))
        return slope_s


class DurationModel(NamedTuple):
    """Mean duration of a batch as a function of its rows, at fixed slots and partitions.

    ``driver_s`` is the time on the driver alone; ``levels`` are the stage levels in order.
    """

    driver_s: float
    levels: tuple[LevelSpan, ...]

    def mean_s(self, batch_rows: Numeric) -> Array:
        """Mean batch duration [s]."""
        total_s = self.driver_s + np.zeros_like(np.asarray(batch_rows, dtype=np.float64))
        for level in self.levels:
            total_s = total_s + level.at(batch_rows)
        return np.asarray(total_s)

    def slope_s(self, batch_rows: Numeric) -> Array:
        """Seconds that one more row in the batch adds."""
        slope_s = np.zeros_like(np.asarray(batch_rows, dtype=np.float64))
        for level in self.levels:
            slope_s = slope_s + level.slope_at(batch_rows)
        return np.asarray(slope_s)


def stacked(models: Sequence[DurationModel], num_axes: int) -> DurationModel:
    """Models of one job at several slots and partitions as one, along a new first axis.

    ``num_axes`` is the number of axes of the arrays it will be asked about, the first included.

    Examples
    --------
    >>> spans = [(LevelSpan("stage 0", fixed_s, ()),) for fixed_s in (0.1, 0.3)]
    >>> both = stacked([DurationModel(0.2, levels) for levels in spans], num_axes=2)
    >>> both.mean_s(np.ones((2, 1))).ravel()
    array([0.3, 0.5])
    """
    along_first = (len(models), *([1] * (num_axes - 1)))

    def column(values: list[Numeric]) -> Array:
        return np.array(values, dtype=np.float64).reshape(along_first)

    levels = []
    for alike in zip(*(model.levels for model in models), strict=True):
        terms = zip(*(level.stage_terms for level in alike), strict=True)
        levels.append(
            LevelSpan(
                name=alike[0].name,
                fixed_s=column([level.fixed_s for level in alike]),
                stage_terms=tuple(
                    (column([term[0] for term in same]), same[0][1], same[0][2]) for same in terms
                ),
            )
        )
    return DurationModel(models[0].driver_s, tuple(levels))


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
    theory.md (T1), (T2). A level of one stage of T tasks takes ``u(T, C, cv) (t0 + b rows / T
    + k P)`` with u the makespan of unit tasks. Stages of one level share the slots as one pool of tasks
    whose times are averaged; exact when their tasks cost the same.

    Examples
    --------
    >>> from headway.domain import RowsLaw, Separation, TasksRule
    >>> reduce = StageProfile(name="1.0", level=1, tasks_rule=TasksRule.SHUFFLE,
    ...     rows=RowsLaw(scale=1.0, exponent=1.0), task_fixed_s=0.05, task_per_row_s=1e-5,
    ...     task_noise_ratio=0.0, separation=Separation.BATCHES)
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
