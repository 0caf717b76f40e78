"""The warm-up: where it ends, and how much longer batches take while a JVM is young."""

from __future__ import annotations

import numpy as np

from headway.assumptions import fits
from headway.domain import WarmUpPoint
from headway.few_numbers import distinct
from headway.models.arrays import Array
from headway.models.estimation.trend import trend_of


def warm_up_length(series: Array) -> int:
    """How many leading values belong to the warm-up: the marginal standard error rule.

    Parameters
    ----------
    series : (n,) array, in order of time

    **(E1)** Warm-up (White 1997, doi:10.1177/003754979706900601, MSER): among the cuts
    `0 ≤ k ≤ N/2`, the one with the smallest `Var(x_(k+1..N))/(N-k)`. Nothing is cut from fewer than
    ten values. The values are the durations of the batches if these have about the same rows (E2);
    otherwise the logarithms of the durations over those that the fit to the rest expects of their
    rows. Of a query's log, the batches before the cut are a warm-up only if their mean exceeds that
    of the rest, for logarithms by more than 1.645 times what (P2) adds for rows outside the range
    of the rest. If batches grow by (E45), or the batches before the cut are the faster ones, the
    line of (E45) is subtracted first, and the cut is chosen and judged by what remains.

    >>> warm_up_length(np.array([9.0, 5.0, 1.0, 1.1, 0.9, 1.0, 1.1, 0.9, 1.0, 1.0]))
    2
    """
    num_values = len(series)
    if num_values < fits.LEAST_BATCHES_TO_CUT.value:
        return 0
    scores = [
        float(np.var(series[cut:])) / (num_values - cut)
        for cut in range(int(fits.LATEST_CUT_RATIO.value * num_values) + 1)
    ]
    return int(np.argmin(scores))


def slow_start_length(durations_s: Array) -> int:
    """How many leading batches of about the same rows are a warm-up, slower than the rest (E1).

    Batches that become slower and slower are growth (E45), whose fast half is not cut.

    Parameters
    ----------
    durations_s : (n,) array, > 0, in order of time

    Growth is no warm-up, but it may begin with one:

    >>> growing = np.array([5.0, *np.linspace(1.0, 4.0, 40)])
    >>> warm_up_length(growing), slow_start_length(growing)
    (20, 1)
    """
    return _cut(durations_s, np.zeros(len(durations_s)), durations_s)


def slower_start_length(log_ratio: Array, tolerance: Array) -> int:
    """How many leading batches are a warm-up, by their durations over those of their rows (E1).

    Under a changing load, durations differ because of the rows, which is no warm-up; nor is a start
    that is faster, or slower by no more than the model may be off, nor the fast half of batches
    that grow (E45).

    Parameters
    ----------
    log_ratio : (n,) array, logarithms of measured over expected durations, in order of time
    tolerance : (n,) array, >= 0, how far the model may be off at these rows

    >>> ratios = np.log(np.array([3.0, 1.5] + 10 * [1.0, 1.01]))
    >>> slower_start_length(ratios, np.zeros(22)), slower_start_length(-ratios, np.zeros(22))
    (2, 0)
    >>> slower_start_length(ratios, np.full(22, 2.0))
    0
    """
    return _cut(log_ratio, tolerance, np.exp(log_ratio))


def _cut(series: Array, tolerance: Array, durations: Array) -> int:
    """The cut of a series, which are the durations or their logarithms."""
    trend = trend_of(np.arange(float(len(durations))), durations)
    if not trend.is_growth:
        num_cut = warm_up_length(series)
        if not num_cut or _is_slower(series, tolerance, num_cut):
            return num_cut
    if trend.last <= trend.first:
        return 0
    line = np.linspace(trend.first, trend.last, len(durations))
    num_cut = warm_up_length(durations - line)
    return num_cut if num_cut and _is_slower(durations - line, tolerance, num_cut) else 0


def _is_slower(series: Array, tolerance: Array, num_cut: int) -> bool:
    slower = series[:num_cut] - tolerance[:num_cut]
    return float(slower.mean()) > float(series[num_cut:].mean())


def falling_ratios(jvm_age_s: Array, ratio: Array) -> tuple[WarmUpPoint, ...]:
    r"""Mean ratios by half doublings of the age, youngest first, which never rise with age.

    Parameters
    ----------
    jvm_age_s : (n,) array, > 0
    ratio : (n,) array, > 0, duration of each over what it takes in a warm JVM

    **(E30)** The first batches of a fresh JVM, which (E1) cuts off, for the first query of an
    application, if it began within 30 s. The first batch took `D_1 - qD(n_1)` longer than the fit
    predicts for its rows, with `q` the duration of the run's steady part over the fit, which is no
    warm-up. Each later batch has the ratio `D_k/(qD(n_k))` at its age. The logarithms of the ratios
    are averaged by half doublings of the age and made to fall by isotonic regression (Brunk 1955,
    doi:10.1214/aoms/1177728420), since compilation only makes batches shorter. Between them,
    logarithms are interpolated linearly; from the age at which the steady part began, (E6) applies.

    >>> points = falling_ratios(np.array([4.0, 8.0, 16.0, 32.0]), np.array([3.0, 1.2, 1.3, 1.0]))
    >>> [(round(at.jvm_age_s), round(at.duration_ratio, 2), at.num_batches) for at in points]
    [(4, 3.0, 1), (11, 1.25, 2), (32, 1.0, 1)]
    """
    log_age, log_ratio = np.log(jvm_age_s), np.log(ratio)
    bins = np.floor(np.log2(jvm_age_s) * fits.WARM_UP_BINS_PER_DOUBLING.value)
    pools: list[tuple[float, float, int]] = []
    for number in distinct(bins):
        in_bin = bins == number
        pools.append((float(log_age[in_bin].sum()), float(log_ratio[in_bin].sum()), sum(in_bin)))
        while len(pools) > 1 and pools[-2][1] / pools[-2][2] <= pools[-1][1] / pools[-1][2]:
            last, before = pools.pop(), pools.pop()
            pools.append((before[0] + last[0], before[1] + last[1], before[2] + last[2]))
    return tuple(
        WarmUpPoint(
            jvm_age_s=float(np.exp(ages / count)),
            duration_ratio=float(np.exp(ratios / count)),
            num_batches=int(count),
        )
        for ages, ratios, count in pools
    )
