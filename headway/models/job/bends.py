"""Bends of the time of a level, whose number of tasks follows the bytes or rows of the batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from headway.domain import Coalescing, RowsLaw, SourceTasks, StageProfile
from headway.models.arrays import Array, Numeric

# The same number for every setting, so that settings can be stacked.
_NUM_BETWEEN = 24
_BELOW, _BEYOND = (0.25, 0.5), (4.0, 16.0, 64.0)
_FEWEST_ROWS, _MOST_ROWS = 1e-3, 1e15
_MOST_TASKS_RATIO = 1000.0

#: Rows of the batch at each bend, in order; and the line up to the first and beyond each of them:
#: its value at no rows [s], and its slope [s per row]. Along the first axis; settings along others.
Bends: TypeAlias = tuple[Array, Array, Array]


def bends_through(rows: Array, change_s: Array) -> tuple[float, Bends]:
    """A broken line: its value without rows [s], and one bend for each place but the last (T2).

    It bends at ``rows``, which increase from 0, and has the values ``change_s`` there. Beyond the
    last it goes on as before.

    >>> start_s, bends = bends_through(np.array([0.0, 10.0, 20.0]), np.array([1.0, 3.0, 3.0]))
    >>> start_s, bent_s(bends, np.array([5.0, 15.0, 30.0])).tolist()
    (1.0, [1.0, 2.0, 2.0])
    >>> bent_slope_s(bends, np.array([5.0, 15.0])).tolist()
    [0.2, 0.0]
    """
    steps = np.diff(rows)
    slopes_s = np.where(steps > 0, np.diff(change_s) / np.where(steps > 0, steps, 1.0), np.nan)
    for index in np.flatnonzero(np.isnan(slopes_s)):
        slopes_s[index] = slopes_s[index - 1] if index else 0.0
    more_s = np.diff(slopes_s, prepend=0.0)
    at_none_s = np.append(0.0, np.cumsum(-more_s * rows[:-1]))
    return float(change_s[0]), (rows[:-1], at_none_s, np.append(0.0, slopes_s))


def bent_s(bends: Bends, rows: Array) -> Array:
    """Time that bends add to a batch of some rows [s]: (T2)."""
    at_none_s, slopes_s = _chosen(bends[1:], _num_below(bends, rows))
    return np.asarray(at_none_s + slopes_s * rows)


def bent_slope_s(bends: Bends, rows: Array) -> Array:
    """Seconds that bends add for one more row: (T2)."""
    (slopes_s,) = _chosen(bends[2:], _num_below(bends, rows))
    return slopes_s


def slower_bends(bends: Bends, ratio: Numeric) -> Bends:
    """Bends with all times multiplied, by a value for each setting: (T2)."""
    rows, at_none_s, slopes_s = bends
    num_axes = np.ndim(ratio)
    return rows, _beside(at_none_s, num_axes) * ratio, _beside(slopes_s, num_axes) * ratio


def changed_bends(bends: Bends, change: Callable[[Array], Array]) -> Bends:
    """Bends with a change of every array of costs, whose last axis are the settings: (T2)."""
    rows, at_none_s, slopes_s = bends
    return change(rows), change(at_none_s), change(slopes_s)


def bends_side_by_side(bends: Sequence[Bends]) -> Bends | None:
    """Bends at several settings, as many at each; None without any setting: (T2)."""
    if not bends:
        return None
    rows, at_none_s, slopes_s = (np.stack(costs, axis=-1) for costs in zip(*bends, strict=True))
    return rows, at_none_s, slopes_s


def _num_below(bends: Bends, rows: Array) -> NDArray[np.uint8]:
    """How many bends are at no more than the rows: fewer than 256 are fastest to count."""
    is_below = rows >= _beside(bends[0], rows.ndim)
    return np.asarray(np.add.reduce(is_below.view(np.uint8), axis=0, dtype=np.uint8))


def _chosen(lines: Sequence[Array], number: NDArray[np.uint8]) -> list[Array]:
    """Values of the lines of a number of each setting."""
    of_settings = lines[0].shape[1:]
    num_settings = math.prod(of_settings)
    index = number.astype(np.intp)
    if num_settings > 1:
        index = num_settings * index + np.arange(num_settings).reshape(of_settings)
    return [of_each.reshape(-1)[index] for of_each in lines]


def _beside(costs: Array, num_axes: int) -> Array:
    """Costs of bends with at least so many axes after the first, as values of a setting have.

    >>> [_beside(np.ones(shape), 2).shape for shape in ((3, 5), (3,))]
    [(3, 1, 5), (3, 1, 1)]
    """
    num_missing = num_axes + 1 - costs.ndim
    if num_missing <= 0:
        return costs
    return costs.reshape(costs.shape[0], *(1,) * num_missing, *costs.shape[1:])


def mean_slope_s(time_s: Callable[[Array], Array], batch_rows: Array) -> Array:
    """Seconds that one more row adds between half and twice the rows (T2).

    >>> float(mean_slope_s(lambda rows: 3e-3 * np.maximum(rows - 100.0, 0.0), np.array(100.0)))
    0.002
    """
    rows = np.maximum(batch_rows, 1.0)
    return (time_s(2.0 * rows) - time_s(0.5 * rows)) / (1.5 * rows)


def without_falls(values: Array) -> Array:
    """Values that never fall: halfway between the largest one before and the smallest one after.

    Where none before is larger and none after is smaller, they stay as they are (T2).

    >>> without_falls(np.array([1.0, 4.0, 2.0, 3.0, 5.0]))
    array([1. , 3. , 3. , 3.5, 5. ])
    """
    largest = np.maximum.accumulate(values)
    smallest = np.minimum.accumulate(values[::-1])[::-1]
    return np.asarray(0.5 * (largest + smallest))


def rows_of_bends(pool: Sequence[StageProfile], num_slots: int, shuffle_partitions: int) -> Array:
    """Rows of a batch between which numbers of tasks that follow its rows change little (T2).

    They increase from 0; how many they are depends only on what the tasks of the stages follow.
    """
    rows = [
        _rows_of(stage.coalescing, stage.rows, num_slots, shuffle_partitions)
        if stage.coalescing
        else _rows_of_source(stage.source_tasks, num_slots)
        for stage in pool
        if stage.follows_rows
    ]
    return np.sort(np.concatenate([[0.0], *rows]))


def _rows_of(rule: Coalescing, law: RowsLaw, num_slots: int, shuffle_partitions: int) -> Array:
    first, advisory_bytes = rule.smallest_bytes, max(rule.advisory_bytes, rule.smallest_bytes)
    aimed_tasks, most_tasks = rule.aimed_tasks(num_slots), rule.most_tasks(shuffle_partitions)
    last = max(most_tasks, 2) * (first if aimed_tasks >= most_tasks else advisory_bytes)
    waves = [count * size for count in (aimed_tasks, num_slots) for size in (first, advisory_bytes)]
    size_bytes = np.concatenate([np.geomspace(first, last, _NUM_BETWEEN), waves])
    entering = np.maximum(
        size_bytes / max(rule.exchange_bytes_per_row, 1e-9) - law.static_rows, 0.0
    )
    if law.scale == 0.0 or law.exponent == 0.0:
        rows = np.full_like(entering, _MOST_ROWS)
    else:
        in_range = np.clip(entering / law.scale, 0.0, _MOST_ROWS**law.exponent)
        rows = in_range ** (1.0 / law.exponent)
    return _extended(rows)


def _rows_of_source(rule: SourceTasks | None, num_slots: int) -> Array:
    assert rule is not None
    if rule.records is not None:
        first = float(rule.records.topic_partitions * rule.records.max_records)
        last, wave = first * _MOST_TASKS_RATIO, float(rule.records.max_records * num_slots)
    else:
        files, parallelism = rule.files, rule.parallelism
        assert files is not None
        assert parallelism is not None
        number, first = parallelism.number(num_slots), files.file_rows
        of_file_bytes = files.file_bytes + files.open_cost_bytes
        # Beyond, each task reads a split of the maximum size.
        last = max(number * files.max_split_bytes / of_file_bytes, 2.0) * first
        wave = num_slots * first
    return _extended(np.concatenate([np.geomspace(first, last, _NUM_BETWEEN), [wave]]))


def _extended(rows: Array) -> Array:
    """Rows, and some below and beyond them."""
    rows = np.clip(rows, _FEWEST_ROWS, _MOST_ROWS)
    below, beyond = rows.min() * np.array(_BELOW), rows.max() * np.array(_BEYOND)
    return np.concatenate([below, rows, beyond])
