"""Times of the tasks of a stage: their spread, their time without rows, and their handover."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from headway.assumptions.fits import EMPTY_BATCH_SD_RATIO, LEAST_WAVES
from headway.few_numbers import distinct
from headway.models.arrays import Array


def task_spread_ratio(sd_ratios: Array, num_tasks: Array, weights: Array) -> float:
    r"""Coefficient of variation of tasks of one batch, as it affects the makespan of a batch.

    Parameters
    ----------
    sd_ratios : (n,) array, >= 0
        Sample standard deviation over mean of the task times of each batch. [-]
    num_tasks : (n,) array of int, >= 2, number of tasks that each of them is from
    weights : (n,) array, >= 0, not all 0

    **(E27)** Spread of the tasks of one batch: the mean over batches of the sample coefficient of
    variation, divided by `sqrt(2/(T-1)) Γ(T/2)/Γ((T-1)/2)`, the factor by which the sample standard
    deviation of `T` normal values is low. The mean is used, not the root mean square, since a
    makespan grows in proportion to the spread of its own batch; unusual batches dominate the root
    mean square.

    >>> task_spread_ratio(np.array([0.1, 0.3]), np.array([1000, 1000]), np.ones(2))
    0.20005
    >>> task_spread_ratio(np.array([0.0798]), np.array([2]), np.ones(1))
    0.1000
    """
    counts = distinct(num_tasks)
    count_indices = np.searchsorted(counts, num_tasks)
    means = np.array([_mean_of_sample_sd(int(count)) for count in counts.tolist()])
    return float(np.average(sd_ratios / means[count_indices], weights=weights))


@cache
def _mean_of_sample_sd(num_values: int) -> float:
    """Mean of the sample standard deviation of normal values of standard deviation 1."""
    half = 0.5 * (num_values - 1)
    return math.sqrt(1.0 / half) * math.exp(math.lgamma(half + 0.5) - math.lgamma(half))


class AlmostEmpty(NamedTuple):
    """A stage of an almost empty batch, compared with those of the same run: means per task.

    ``readers`` is the number of tasks that a task writes for.
    """

    task_s: float
    rows: float
    usual_task_s: float
    usual_rows: float
    readers: int


def time_without_rows(
    batches: Sequence[AlmostEmpty], per_partition_s: float
) -> tuple[float, float] | None:
    r"""Time of a task that has no rows, from batches that read almost none.

    Its mean and standard deviation [s]; None if none of the batches shows it.

    Parameters
    ----------
    batches : sequence of AlmostEmpty
    per_partition_s : float, >= 0
        Time of a task per reader that it writes for; 0 if that is part of the fixed time. [s]

    **(E32)** The first batch of a query reads nothing, or what arrived in its first moments, but
    runs all its stages: its tasks take little more than `t_0 + t_2 P` of (T2). With `t` and `x` the
    mean time and rows of its tasks, and `T` and `X` those of the run's other batches, the line
    through both gives `(tX-Tx)/(X-x)` without rows, which is `t` for `x = 0`. If `x > X/2`, as
    behind a combine that meets the same keys in any batch, the stage is not used. The prior of (E3)
    for `t_0` is the median of these values, less `t_2 P` but at least a tenth of `t`, give or take
    30%. Later batches without rows are used, too. Batches of a JVM younger than 30 s, which loads
    classes, and the first one of a restart, which loads state, are not; nor is the first batch
    where Spark's own operators run, whose code it compiles, and of which (E46) knows more.

    >>> first = AlmostEmpty(
    ...     task_s=0.06, rows=100.0, usual_task_s=0.55, usual_rows=5_000.0, readers=0
    ... )
    >>> time_without_rows([first], 0.0)
    (0.05, 0.015)
    """
    times_s = []
    for batch in batches:
        if 0.0 < batch.task_s <= batch.usual_task_s and batch.rows <= 0.5 * batch.usual_rows:
            extra_rows = batch.usual_rows - batch.rows
            fixed_s = (
                batch.task_s * batch.usual_rows - batch.usual_task_s * batch.rows
            ) / extra_rows
            times_s.append(max(fixed_s - per_partition_s * batch.readers, 0.1 * batch.task_s))
        elif batch.task_s > batch.usual_task_s and batch.rows <= 0.5 * batch.usual_rows:
            # Slower than with rows: these cost almost nothing.
            times_s.append(max(batch.usual_task_s - per_partition_s * batch.readers, 0.0))
    if not times_s or not (mean_s := float(np.median(times_s))) > 0:
        return None
    return mean_s, EMPTY_BATCH_SD_RATIO.value * mean_s


def handover_s(
    span_s: Array, task_mean_s: Array, waves: Array, most_s: Array, weights: Array
) -> float:
    r"""How long a task still counts as running while the next one already has its slot.

    Parameters
    ----------
    span_s : (n,) array, > 0
        From the first launch to the last finish of the stage in each batch. [s]
    task_mean_s : (n,) array, > 0
        Mean time of its tasks, from launch to finish as the driver saw them. [s]
    waves : (n,) array, >= 1
        Makespan of unit tasks on the slots (M1)-(M5); those of at most 1.5 are not used. [-]
    most_s : (n,) array, >= 0
        Time of a task outside of its run, of which the handover is a part. [s]
    weights : (n,) array, >= 0

    **(E28)** Handover: a slot is free when its executor reports it, but the task counts until the
    driver has read its result, `δ` later. So the span of a stage that is alone on its level is
    `u(t-δ) + δ` with `u` of (T2), and `δ = (ut-span)/(u-1)` over batches of more than 1.5 waves, by
    least squares of the spans, kept between 0 and the time of a task outside its run. It is
    subtracted from the time of a task without rows and added to the driver's, once for each level.
    It is 0 if no stage had more tasks than slots.

    Eight tasks of 30 ms on two slots were finished after 114 ms instead of 120:

    >>> eight = [np.array([value]) for value in (0.114, 0.030, 4.0, 0.010, 1.0)]
    >>> handover_s(*eight)
    0.002
    """
    has_waves = waves > LEAST_WAVES.value
    if not np.any(has_waves):
        return 0.0
    handovers = waves[has_waves] - 1.0
    seen_s = (waves[has_waves] * task_mean_s[has_waves] - span_s[has_waves]) / handovers
    within_s = np.clip(seen_s, 0.0, most_s[has_waves])
    # Least squares of the spans: many waves weigh most, and depend least on how the last one ends.
    return float(np.average(within_s, weights=weights[has_waves] * np.square(handovers)))
