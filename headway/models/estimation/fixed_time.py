"""The time of a task without rows, from what Spark reports of it and from its CPU time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from headway.assumptions.fits import (
    MOST_WAITING_RATIO,
    SET_UP_AT_SOURCE_S,
    SET_UP_BEHIND_EXCHANGE_S,
    SET_UP_CPU_S,
    SET_UP_SD_S,
    TIME_PER_CPU_RATIO,
    TIME_PER_CPU_SD_RATIO,
)

_NARROWEST_S = 1e-6
_NODES = 301


#: A time and its standard deviation [s].
Estimate: TypeAlias = tuple[float, float]


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
    set_up_s = SET_UP_BEHIND_EXCHANGE_S.value if is_behind_exchange else SET_UP_AT_SOURCE_S.value
    fixed_s = reported_s + set_up_s
    least_cpu_s = (1.0 - MOST_WAITING_RATIO.value) * (task_s - fixed_s)
    if not is_behind_exchange and cpu_s < least_cpu_s:
        return None
    not_for_rows_s = SET_UP_CPU_S.value
    by_cpu = (
        task_s - TIME_PER_CPU_RATIO.value * max(cpu_s - not_for_rows_s, 0.0),
        not_for_rows_s + TIME_PER_CPU_SD_RATIO.value * cpu_s,
    )
    return combined(((fixed_s, SET_UP_SD_S.value), by_cpu))


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
