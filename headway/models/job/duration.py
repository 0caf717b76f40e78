"""How long a micro-batch takes: the driver's phases, then stage after stage of tasks on slots."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import groupby
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headway.domain import StageProfile
from headway.lazy_classes import Identity
from headway.models.arrays import Array, Numeric
from headway.models.job import bends as bending
from headway.models.job.bends import Bends
from headway.models.stages.makespan import makespan_moments
from headway.models.stages.skew import hot_start_makespan
from headway.models.stages.task_counts import num_tasks_at

_NEAR_SIZES = (0.8, 1.0, 1.25)

StateTime: TypeAlias = tuple[Numeric, Numeric, float, float]
"""Fixed time without the state [s], time of the state at a rate [s], that rate, its exponent."""


class LevelSpan(NamedTuple):
    """Mean time of one level of stages as a function of the rows of the batch: theory.md (T2)."""

    name: str
    fixed_s: Numeric  # like other costs a float, or an array with one value per setting
    stage_terms: tuple[tuple[Numeric, float, float], ...]  # per_row_s, scale, exponent
    bends: Bends | None = None  # where its tasks become more
    state: StateTime | None = None  # the part of the fixed time that follows the rate

    def at(self, batch_rows: Numeric) -> Array:
        """Mean time of the level [s] in a batch of ``batch_rows`` rows."""
        rows = np.asarray(batch_rows, dtype=np.float64)
        span_s = self.fixed_s
        if not self.stage_terms and self.bends is None:
            span_s = span_s + np.zeros(rows.shape)
        for per_row_s, scale, exponent in self.stage_terms:
            # Most stages process a row for each of the batch.
            powers = rows if exponent == 1.0 else rows**exponent
            span_s = span_s + per_row_s * (powers if scale == 1.0 else scale * powers)
        if self.bends is not None:
            span_s = span_s + bending.bent_s(self.bends, rows)
        return np.asarray(span_s)

    def slope_at(self, batch_rows: Numeric) -> Array:
        """Seconds that one more row in the batch adds."""
        rows = np.asarray(batch_rows, dtype=np.float64)
        slope_s: Numeric = 0.0
        if self.is_straight:
            for per_row_s, scale, _ in self.stage_terms:
                slope_s = slope_s + per_row_s * scale
            is_whole = np.shape(slope_s) == rows.shape
            return np.asarray(slope_s if is_whole else slope_s + np.zeros(rows.shape))
        # A power below one is infinitely steep at zero: less than one row counts as one.
        rows = np.maximum(rows, 1.0)
        slope_s = np.zeros(rows.shape)
        for per_row_s, scale, exponent in self.stage_terms:
            slope_s = slope_s + per_row_s * (scale * exponent * rows ** (exponent - 1.0))
        bent_s = self.bends and bending.bent_slope_s(self.bends, rows)
        return slope_s if bent_s is None else np.maximum(slope_s + bent_s, 0.0)

    @property
    def is_straight(self) -> bool:
        """Whether each row adds the same time."""
        return self.bends is None and all(exponent == 1.0 for _, _, exponent in self.stage_terms)

    def times(self, ratio: Numeric) -> LevelSpan:
        """The same with all times multiplied."""
        terms = ((each_s * ratio, scale, power) for each_s, scale, power in self.stage_terms)
        bends = self.bends and bending.slower_bends(self.bends, ratio)
        state = self.state and (self.state[0] * ratio, self.state[1] * ratio, *self.state[2:])
        return LevelSpan(self.name, self.fixed_s * ratio, tuple(terms), bends, state)

    def with_costs(self, change: Callable[[Array], Array]) -> LevelSpan:
        """The same with a change of every array of costs, whose last axis are the settings."""

        def changed(cost: Numeric) -> Array:
            return change(np.asarray(cost))

        terms = ((changed(each_s), scale, power) for each_s, scale, power in self.stage_terms)
        bends = self.bends and bending.changed_bends(self.bends, change)
        state = self.state and (changed(self.state[0]), changed(self.state[1]), *self.state[2:])
        return LevelSpan(self.name, changed(self.fixed_s), tuple(terms), bends, state)

    def at_rate(self, rate_per_s: Numeric) -> LevelSpan:
        """The same with its state at a rate: theory.md (E36)."""
        if self.state is None:
            return self
        without_s, state_s, at_per_s, exponent = self.state
        fixed_s = without_s + state_s * (rate_per_s / at_per_s) ** exponent
        return self._replace(fixed_s=fixed_s)

    def over_interval(self, interval_s: Numeric) -> LevelSpan:
        """The same for batches whose rows arrive in an interval, by which they tell the rate."""
        if self.state is None:
            return self
        without_s, state_s, at_per_s, exponent = self.state
        term = (state_s * (interval_s * at_per_s) ** -exponent, 1.0, exponent)
        terms = (*self.stage_terms, term)
        return self._replace(fixed_s=without_s, stage_terms=terms, state=None)


class DurationModel(NamedTuple):
    """Mean duration of a batch by its rows, at fixed slots and partitions: theory.md (T1)."""

    driver_s: float  # on the driver alone
    levels: tuple[LevelSpan, ...]  # of stages, in order

    def mean_s(self, batch_rows: Numeric) -> Array:
        """Mean batch duration [s]."""
        rows = np.asarray(batch_rows, dtype=np.float64)
        mean_s = self.driver_s if self.levels else self.driver_s + np.zeros(rows.shape)
        for level in self.levels:
            mean_s = mean_s + level.at(rows)
        return np.asarray(mean_s)

    def slope_s(self, batch_rows: Numeric) -> Array:
        """Seconds that one more row in the batch adds; on average where tasks follow it (T2)."""
        rows = np.asarray(batch_rows, dtype=np.float64)
        slope_s: Numeric = 0.0 if self.levels else np.zeros(rows.shape)
        for level in self.levels:
            if level.bends is None:
                slope_s = slope_s + level.slope_at(rows)
            else:
                slope_s = slope_s + bending.mean_slope_s(level.at, rows)
        return np.asarray(slope_s)

    def tangent_s(self, rows: Array) -> Array:
        """Seconds that one more row adds at exactly this size, for Newton's rule (T3)."""
        return np.asarray(sum((level.slope_at(rows) for level in self.levels), np.zeros_like(rows)))

    @property
    def is_bent(self) -> bool:
        """Whether it has bends, so that it need not be concave (T2)."""
        return any(level.bends is not None for level in self.levels)

    @property
    def follows_rate(self) -> bool:
        """Whether its state, and so its duration, depends on the rate: theory.md (E36)."""
        return any(level.state is not None for level in self.levels)

    def at_rate(self, rate_per_s: Numeric) -> DurationModel:
        """The same with the state at a rate, or with that of each setting at its own (E36).

        Itself if no state follows the rate, so that most jobs pay nothing for it.

        >>> join = LevelSpan("join", 0.3, (), state=(0.1, 0.2, 1000.0, 1.0))
        >>> float(DurationModel(0.0, (join,)).at_rate(2000.0).mean_s(0.0))
        0.5
        """
        if not self.follows_rate:
            return self
        return self._replace(levels=tuple(level.at_rate(rate_per_s) for level in self.levels))

    def over_interval(self, interval_s: Numeric) -> DurationModel:
        """The same for batches whose rows arrive in an interval, which tell the rate (E36)."""
        if not self.follows_rate:
            return self
        return self._replace(levels=tuple(level.over_interval(interval_s) for level in self.levels))

    def take(self, selection: NDArray[np.intp] | NDArray[np.bool_]) -> DurationModel:
        """Some of the settings that it is of, or some of them several times."""
        return self._with_costs(lambda costs: costs[..., selection])

    def over_axes(self, num_axes: int) -> DurationModel:
        """The same for rows of several axes, of which the first runs over the settings."""
        further = [1] * (num_axes - 1)
        return self._with_costs(lambda costs: costs.reshape(*costs.shape, *further))

    def _with_costs(self, change: Callable[[Array], Array]) -> DurationModel:
        return self._replace(levels=tuple(level.with_costs(change) for level in self.levels))


def stacked(models: Sequence[DurationModel]) -> DurationModel:
    """Models of one job at several slots and partitions as one, whose costs are arrays (T1).

    Parameters
    ----------
    models : sequence of DurationModel, of the same levels and stages, at least one

    >>> spans = [(LevelSpan("stage 0", fixed_s, ()),) for fixed_s in (0.1, 0.3)]
    >>> stack = stacked([DurationModel(0.2, levels) for levels in spans])
    >>> stack.over_axes(2).mean_s(np.ones((2, 1))).ravel()
    array([0.3, 0.5])
    """
    levels = zip(*(model.levels for model in models), strict=True)
    return DurationModel(models[0].driver_s, tuple(map(_side_by_side, levels)))


def _side_by_side(spans: Sequence[LevelSpan]) -> LevelSpan:
    """One level at several settings."""
    terms = zip(*(span.stage_terms for span in spans), strict=True)
    return LevelSpan(
        spans[0].name,
        np.array([span.fixed_s for span in spans], dtype=np.float64),
        tuple(
            (np.array([per_row_s for per_row_s, _, _ in term], dtype=np.float64), *term[0][1:])
            for term in terms
        ),
        bending.bends_side_by_side([span.bends for span in spans if span.bends is not None]),
        _states_side_by_side([span.state for span in spans if span.state is not None]),
    )


def _states_side_by_side(states: Sequence[StateTime]) -> StateTime | None:
    if not states:
        return None
    without_s, state_s = np.array([state[:2] for state in states], dtype=np.float64).T
    return without_s, state_s, *states[0][2:]


def level_spans(
    stages: Sequence[StageProfile],
    num_slots: int,
    shuffle_partitions: int,
    num_state_rows: float = 0.0,
    batch_rows: float | None = None,
) -> tuple[LevelSpan, ...]:
    r"""Mean makespan of every level of stages on a number of slots.

    Parameters
    ----------
    stages : sequence of StageProfile, ordered by level; stages of one level run side by side
    num_slots, shuffle_partitions : int, >= 1
    num_state_rows : float, >= 0, rows in all state stores of the query
    batch_rows : float, >= 0, optional, of the batch whose tasks stages have that follow the rows

    **(T2)** A stage of `T` tasks processes `x = k n^e` rows with `0 ≤ e ≤ 1`, and each of its tasks
    takes `t = t_0 + t_1 x/T + t_2 P + t_3 S/T` on average, with `P` the shuffle partitions that it
    writes for and `S` the rows of state that the stage holds. Rows of static tables, the same in
    every batch, add to `x`. A stage that is alone on its level takes `M = u(T, C, cv) t`, with `u`
    the mean makespan of unit tasks (M1)-(M5) on `C` slots. Stages `i` of one level form one pool of
    `T = Σ T_i` tasks: `M = u(T, C, cv)Σ_i T_i t_i/T` with `cv^2 = Σ_i T_i cv_i^2/T`. Exact, except
    for `u`, if the tasks of a level cost the same; the order in which Spark launches the stages is
    ignored. If a share `h` of the rows of a stage goes to one task, however many tasks there are (a
    hot key), its rows take at least the makespan (K6) of one task with `h + (1-h)/T` of them and `T
    - 1` tasks with `(1-h)/T`. `h` is the median of `(s-1/T)/(1-1/T)`, with `s` the share of the
    largest task, at the observed number of tasks for which it is smallest, and 0 below a tenth;
    `cv` is then the variation that rows do not explain. If the keys are given, (K11) replaces (K6).
    A stage that asks for resources of its own has its share of the `C` slots, and so have all
    stages of its level. The tasks of a coalesced stage follow the bytes of the batch (T7), those of
    some sources its rows (T9), which steps from one number to the next. Sizes of partitions and
    files differ, so `M` is then a line through some thirty sizes, each with the mean over the tasks
    of batches a quarter larger, a fifth smaller, and of this size; where it would fall, halfway
    between the largest value before and the smallest after, and beyond the last as with the tasks
    there. What one more row adds is the mean between half and twice the rows: at a single step it
    would be a jump.

    >>> from headway.domain import RowsLaw
    >>> reduce = StageProfile(name="1.0", level=1, tasks_rule="shuffle",
    ...     rows=RowsLaw(scale=1.0, exponent=1.0), task_fixed_s=0.05, task_per_row_s=1e-5,
    ...     task_noise_ratio=0.0, separation="batches")
    >>> float(level_spans([reduce], num_slots=2, shuffle_partitions=8)[0].at(1000))
    0.205
    """
    setting = num_slots, shuffle_partitions, num_state_rows
    return _spans_of(Identity(tuple(stages)), setting, batch_rows)


_Setting: TypeAlias = tuple[int, int, float]
"""What times of levels depend on beside stages and batch: slots, partitions, rows of state."""


@lru_cache(maxsize=1024)  # a search asks for the sizes of its settings again and again
def _spans_of(
    stages: Identity, setting: _Setting, batch_rows: float | None
) -> tuple[LevelSpan, ...]:
    pools = _pools(*stages.nouns)
    if batch_rows is not None:
        return tuple(_span_at(pool, batch_rows, setting) for pool in pools)
    return tuple(_span_of_any_rows(pool, setting) for pool in pools)


def _span_of_any_rows(pool: Sequence[StageProfile], setting: _Setting) -> LevelSpan:
    """A level, with bends where its tasks follow the rows."""
    if any(stage.follows_rows for stage in pool):
        return _bent_span(tuple(pool), setting)
    return _span_at(pool, 0.0, setting)


def _span(pool: Sequence[StageProfile], num_tasks: Sequence[int], setting: _Setting) -> LevelSpan:
    """A level whose stages have given numbers of tasks (T2)."""
    num_slots, shuffle_partitions, num_state_rows = setting
    per_task = _per_task(pool, num_tasks, num_slots)
    return LevelSpan(
        name="+".join(stage.name for stage in pool),
        fixed_s=per_task
        * sum(
            n * (stage.task_fixed_s + stage.task_per_partition_s * shuffle_partitions)
            + stage.task_per_state_row_s * num_state_rows
            + stage.task_per_row_s * stage.rows.static_rows
            for n, stage in zip(num_tasks, pool, strict=True)
        ),
        stage_terms=tuple(
            (
                max(per_task, _rows_makespan(stage, n, num_slots)) * stage.task_per_row_s,
                stage.rows.scale,
                stage.rows.exponent,
            )
            for n, stage in zip(num_tasks, pool, strict=True)
        ),
    )


def _span_at(pool: Sequence[StageProfile], batch_rows: float, setting: _Setting) -> LevelSpan:
    """A level with the tasks that it has in a batch of some rows."""
    size = setting[:2]
    return _span(pool, [num_tasks_at(stage, batch_rows, *size) for stage in pool], setting)


@lru_cache(maxsize=4096)
def _bent_span(pool: tuple[StageProfile, ...], setting: _Setting) -> LevelSpan:
    """A level with the tasks of the largest batches, and what fewer tasks change for smaller ones.

    So beyond the last bend its rows count by the laws of its stages (T2).
    """
    rows = bending.rows_of_bends(pool, *setting[:2])
    span = _span_at(pool, float(rows[-1]), setting)
    mean_s = [
        np.mean([_span_at(pool, ratio * size, setting).at(size) for ratio in _NEAR_SIZES])
        for size in rows.tolist()
    ]
    change_s = bending.without_falls(np.array(mean_s)) - span.at(rows)
    more_s, bends = bending.bends_through(rows, change_s)
    return span._replace(fixed_s=span.fixed_s + more_s, bends=bends)


def coefficient_gains(
    stages: Sequence[StageProfile], num_slots: int, shuffle_partitions: int, batch_rows: float
) -> Array:
    r"""Increase of the mean duration of a batch per unit of each cost of a task.

    For each stage, a row of three: the increase per second of a task without rows [-], per second
    per row that enters the stage [rows], and per second per shuffle partition that it writes for
    [partitions]. The duration is linear in these costs (T2).

    >>> from headway.domain import RowsLaw
    >>> reduce = StageProfile(name="1.0", level=1, tasks_rule="shuffle",
    ...     rows=RowsLaw(scale=1.0, exponent=1.0), task_fixed_s=0.05, task_per_row_s=1e-5,
    ...     task_noise_ratio=0.0, separation="batches")
    >>> coefficient_gains([reduce], 2, 8, 1000.0)
    array([[  4., 500.,  32.]])
    """
    gains, size = [], (num_slots, shuffle_partitions)
    for pool in _pools(stages):
        num_tasks = [num_tasks_at(stage, batch_rows, *size) for stage in pool]
        per_task = _per_task(pool, num_tasks, num_slots)
        gains += [
            (
                per_task * n,
                max(per_task, _rows_makespan(stage, n, num_slots)) * stage.rows.rows(batch_rows),
                per_task * (n * shuffle_partitions),
            )
            for n, stage in zip(num_tasks, pool, strict=True)
        ]
    return np.array(gains)


def _pools(stages: Sequence[StageProfile]) -> Iterator[list[StageProfile]]:
    """The stages of each level, which share the slots."""
    for _, pool in groupby(stages, key=lambda stage: stage.level):
        yield list(pool)


def _per_task(pool: Sequence[StageProfile], num_tasks: Sequence[int], num_slots: int) -> float:
    """How much of a task's time each task of a level adds (T2)."""
    total_tasks = sum(num_tasks)
    usable_slots = min(stage.usable_slots(num_slots) for stage in pool)
    pooled = sum(n * stage.task_noise_ratio**2 for n, stage in zip(num_tasks, pool, strict=True))
    moments = makespan_moments(total_tasks, usable_slots, math.sqrt(pooled / total_tasks))
    return moments.mean / total_tasks


def _rows_makespan(stage: StageProfile, num_tasks: int, num_slots: int) -> float:
    """Time until the last task has processed its rows, over that of all rows in sequence."""
    slots = stage.usable_slots(num_slots)
    ratio = stage.row_makespan_ratio(num_tasks, slots)
    return _hot_makespan(num_tasks, slots, stage.hot_share_ratio) if ratio is None else ratio


@cache
def _hot_makespan(num_tasks: int, num_slots: int, hot_share_ratio: float) -> float:
    """Time until the last task ends, over the time that all rows would take in sequence."""
    if hot_share_ratio == 0.0:
        return 0.0
    shares = np.full(num_tasks, (1.0 - hot_share_ratio) / num_tasks)
    shares[0] += hot_share_ratio
    return float(hot_start_makespan(shares, num_slots))
