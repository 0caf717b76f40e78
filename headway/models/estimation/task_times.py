"""What the tasks of a stage tell of each other: how far they lie apart, and how they hand over."""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from headway.assumptions.fits import EMPTY_BATCH_SD_RATIO, LEAST_WAVES
from headway.models.arrays import Array


def task_spread_ratio(sd_ratios: Array, num_tasks: Array, weights: Array) -> float:
    r"""Coefficient of variation of tasks of one batch, as the makespan of a batch feels it.

    Parameters
    ----------
    sd_ratios : (n,) array, >= 0
        Sample standard deviation over mean of the task times of each batch. [-]
    num_tasks : (n,) array of int, >= 2
        Tasks that each of them was taken from.
    weights : (n,) array, >= 0
        Of the batches, at least one above 0.

    Returns
    -------
    float
        The mean over batches, each freed of what a sample of few tasks is low by. [-]

    Notes
    -----
    **(E27)** Spread of the tasks of one batch: the mean over batches of the sample coefficient of
    variation, over `sqrt(2/(T-1)) Γ(T/2)/Γ((T-1)/2)`, by which the sample standard deviation of `T`
    normal values is low. The mean, not its square, since a makespan grows in proportion to the
    spread of its own batch; the root mean square is that of the odd batches.

    Examples
    --------
    >>> task_spread_ratio(np.array([0.1, 0.3]), np.array([1000, 1000]), np.ones(2))
    0.20005
    >>> task_spread_ratio(np.array([0.0798]), np.array([2]), np.ones(1))
    0.1000
    """
    unbiased = sd_ratios / np.array([_mean_of_sample_sd(int(count)) for count in num_tasks])
    return float(np.average(unbiased, weights=weights))


@cache
def _mean_of_sample_sd(num_values: int) -> float:
    """Mean of the sample standard deviation of so many normal values of standard deviation 1."""
    half = 0.5 * (num_values - 1)
    return math.sqrt(1.0 / half) * math.exp(math.lgamma(half + 0.5) - math.lgamma(half))


class FixedTime(NamedTuple):
    """What is known of the time of a task without rows."""

    mean_s: float
    sd_s: float


def time_without_rows(task_mean_s: Array, partitions: Array, per_partition_s: float) -> FixedTime:
    r"""Time of a task that has no rows, from batches that read none.

    Parameters
    ----------
    task_mean_s : (n,) array, >= 0
        Mean time of the tasks in each such batch, at least one. [s]
    partitions : (n,) array, >= 0
        Readers that its tasks write for. [-]
    per_partition_s : float, >= 0
        What a task takes for one of them; 0 where it is part of the fixed time. [s]

    Returns
    -------
    FixedTime
        Mean and standard deviation. [s]

    Notes
    -----
    **(E32)** A batch that reads no rows, as the first of a query does, runs its stages all the
    same: its tasks take `t_0 + t_2 P` of (T2), and nothing else. The prior of (E3) for `t_0` is the
    middle one of `max(t - t_2 P, t/10)` over such batches, `t` the mean of their tasks, give or
    take 30 %. Batches of a JVM younger than 30 s, which loads classes, and the first of a restart,
    which loads state, do not count. Where there are none, `t_0` is what Spark reports of it:
    launch, deserialization, state commit.

    Examples
    --------
    >>> time_without_rows(np.array([0.04, 0.05, 0.30]), np.zeros(3), 0.0)
    FixedTime(mean_s=0.05, sd_s=0.015)
    """
    alone_s = np.maximum(task_mean_s - per_partition_s * partitions, 0.1 * task_mean_s)
    mean_s = float(np.median(alone_s))
    return FixedTime(mean_s, EMPTY_BATCH_SD_RATIO.value * mean_s)


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
        Makespan of unit tasks on the slots (M1)-(M5); those of at most 1.5 tell nothing. [-]
    most_s : (n,) array, >= 0
        Time of a task outside of its run, of which the handover is a part. [s]
    weights : (n,) array, >= 0
        Of the batches.

    Returns
    -------
    float
        0 where no batch had more tasks than slots. [s]

    Notes
    -----
    **(E28)** Handover: a slot is free when its executor says so, while the task counts until the
    driver has read its result, `δ` later. So the span of a stage alone on its level is `u(t-δ) + δ`
    with `u` of (T2), and `δ = (ut-span)/(u-1)` over batches of more than 1.5 waves, by least
    squares of the spans, kept between 0 and the time of a task outside its run. It is taken off the
    time of a task without rows and added to the driver's, once for each level; 0 where no stage had
    more tasks than slots.

    Examples
    --------
    Eight tasks of 30 ms on two slots were through after 114 ms instead of 120:

    >>> eight = [np.array([value]) for value in (0.114, 0.030, 4.0, 0.010, 1.0)]
    >>> handover_s(*eight)
    0.002
    """
    tells = waves > LEAST_WAVES.value
    if not np.any(tells):
        return 0.0
    handovers = waves[tells] - 1.0
    seen_s = (waves[tells] * task_mean_s[tells] - span_s[tells]) / handovers
    within_s = np.clip(seen_s, 0.0, most_s[tells])
    # Least squares of the spans: many waves tell most, and least of how the last one ends.
    return float(np.average(within_s, weights=weights[tells] * np.square(handovers)))
