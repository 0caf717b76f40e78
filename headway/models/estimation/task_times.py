"""Times of the tasks of a stage: their spread, their time without rows, and their handover."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple, TypeAlias

import numpy as np

from headway.assumptions import fits
from headway.few_numbers import distinct
from headway.models.arrays import Array

_NARROWEST_S = 1e-6
_NODES = 301


#: A time and its standard deviation [s].
Estimate: TypeAlias = tuple[float, float]


def task_spread_ratio(sd_ratios: Array, num_tasks: Array, weights: Array) -> float:
    r"""Coefficient of variation of tasks of one batch, as it affects the makespan of a batch.

    Parameters
    ----------
    sd_ratios : (n,) array, >= 0, sample deviation over mean of the task times of each batch
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
    per_partition_s : float, >= 0, per reader that a task writes for; 0 if in the fixed time [s]

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
        if batch.rows > 0.5 * batch.usual_rows:
            continue
        written_s = per_partition_s * batch.readers
        if 0.0 < batch.task_s <= batch.usual_task_s:
            line_s = batch.task_s * batch.usual_rows - batch.usual_task_s * batch.rows
            fixed_s = line_s / (batch.usual_rows - batch.rows)
            times_s.append(max(fixed_s - written_s, 0.1 * batch.task_s))
        elif batch.task_s > batch.usual_task_s:
            # Slower than with rows: these cost almost nothing.
            times_s.append(max(batch.usual_task_s - written_s, 0.0))
    if not times_s or not (mean_s := float(np.median(times_s))) > 0:
        return None
    return mean_s, fits.EMPTY_BATCH_SD_RATIO.value * mean_s


def handover_s(
    span_s: Array, task_mean_s: Array, waves: Array, most_s: Array, weights: Array
) -> float:
    r"""How long a task still counts as running while the next one already has its slot.

    Parameters
    ----------
    span_s : (n,) array, > 0, from the stage's first launch to its last finish in a batch [s]
    task_mean_s : (n,) array, > 0, mean time of its tasks, as the driver saw them [s]
    waves : (n,) array, >= 1, makespan of unit tasks (M1)-(M5); those up to 1.5 are not used
    most_s : (n,) array, >= 0, time of a task outside of its run, the handover included [s]
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
    has_waves = waves > fits.LEAST_WAVES.value
    if not np.any(has_waves):
        return 0.0
    handovers = waves[has_waves] - 1.0
    seen_s = (waves[has_waves] * task_mean_s[has_waves] - span_s[has_waves]) / handovers
    within_s = np.clip(seen_s, 0.0, most_s[has_waves])
    # Least squares of the spans: many waves weigh most, and depend least on how the last one ends.
    return float(np.average(within_s, weights=weights[has_waves] * np.square(handovers)))


def usual_fixed_time(
    reported_s: float, task_s: float, cpu_s: float, *, is_behind_exchange: bool
) -> Estimate | None:
    r"""Time of a task without rows, if it runs Spark's own operators.

    It is None if the rows of a source wait for longer than they are computed.

    Parameters
    ----------
    reported_s : float, >= 0, what Spark reports of it: launch, deserialization, state commit [s]
    task_s, cpu_s : float, > 0, time and CPU time of a task [s]
    is_behind_exchange : bool, whether it reads an exchange

    **(E46)** Two measurements of the fixed time `t_0` of a task that takes `t`, of which Spark
    reports the part `r`. Over 14 workloads, whose batches of many sizes show `t_0`, it is `r` plus
    10 ms for stages that read a source and 25 ms behind an exchange, where state is read and
    written, give or take 20 ms. And rows need the CPU: their time is 1.15 times their CPU time,
    1.03 to 1.56 times in those workloads, so `t_0 = t - 1.15 (u - 6 ms)` for the CPU time `u` of a
    task, of which 6 ms are not for rows, give or take `6 ms + 0.2 u`. So a short task is known by
    its CPU time, and that of a long one can only be short. Both are weighted by their precision; if
    they differ by more than their errors explain, the error is multiplied by the Birge ratio (Birge
    1932, doi:10.1103/PhysRev.40.207). Code of the user may wait for anything, so the equation is
    not used for it, nor for a source whose tasks, less the usual fixed time, wait for longer than
    they compute: their rows come from afar.

    >>> short = usual_fixed_time(0.006, 0.030, 0.010, is_behind_exchange=True)
    >>> long = usual_fixed_time(0.006, 2.0, 1.8, is_behind_exchange=False)
    >>> round(short[0], 2), round(long[0], 2)
    (0.03, 0.02)
    >>> usual_fixed_time(0.006, 2.0, 0.5, is_behind_exchange=False) is None
    True
    """
    set_up_s = (
        fits.SET_UP_BEHIND_EXCHANGE_S.value if is_behind_exchange else fits.SET_UP_AT_SOURCE_S.value
    )
    fixed_s = reported_s + set_up_s
    least_cpu_s = (1.0 - fits.MOST_WAITING_RATIO.value) * (task_s - fixed_s)
    if not is_behind_exchange and cpu_s < least_cpu_s:
        return None
    not_for_rows_s = fits.SET_UP_CPU_S.value
    by_cpu = (
        task_s - fits.TIME_PER_CPU_RATIO.value * max(cpu_s - not_for_rows_s, 0.0),
        not_for_rows_s + fits.TIME_PER_CPU_SD_RATIO.value * cpu_s,
    )
    return combined(((fixed_s, fits.SET_UP_SD_S.value), by_cpu))


def combined(estimates: Sequence[Estimate]) -> Estimate:
    """Precision-weighted mean of independent estimates of a time, with the Birge ratio (E46).

    Parameters
    ----------
    estimates : sequence of Estimate, at least one

    >>> combined([(0.01, 0.01), (0.02, 0.01)])
    (0.015, 0.00707)
    >>> combined([(0.0, 0.01), (0.1, 0.01)])
    (0.05, 0.05)
    """
    weighted = [(1.0 / sd_s**2, mean_s) for mean_s, sd_s in estimates]
    precision = sum(weight for weight, _ in weighted)
    mean_s = sum(weight * value_s for weight, value_s in weighted) / precision
    chi_square = sum(weight * (value_s - mean_s) ** 2 for weight, value_s in weighted)
    birge_ratio = math.sqrt(max(chi_square / max(len(estimates) - 1, 1), 1.0))
    return mean_s, birge_ratio / math.sqrt(precision)


def within(estimate: Estimate, low_s: float, high_s: float) -> Estimate:
    """Mean and deviation of the normal distribution of an estimate, cut off at two bounds (E43).

    These are sums over 301 nodes, since an estimate may be far outside its bounds.

    Parameters
    ----------
    low_s, high_s : float, bounds [s]

    >>> within((0.02, 0.02), 0.0, 0.01)
    (0.0053, 0.0029)
    """
    if high_s - low_s < _NARROWEST_S:
        return high_s, 0.0
    estimate_s, sd_s = estimate
    nodes_s = np.linspace(low_s, high_s, _NODES)
    log_density = -0.5 * np.square((nodes_s - estimate_s) / sd_s)
    density = np.exp(log_density - log_density.max())
    mean_s = float(np.average(nodes_s, weights=density))
    variance_s2 = float(np.average(np.square(nodes_s - mean_s), weights=density))
    return mean_s, math.sqrt(variance_s2)
