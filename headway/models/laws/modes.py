"""A second mode of durations: batches that take longer than the others for a reason of their own.

Snapshots of state, maintenance, garbage collection and compaction hit some batches and not others.
A single spread then overstates usual batches and understates slow ones.
"""

from __future__ import annotations

import math

import numpy as np

from headway.assumptions import fits
from headway.models.arrays import Array

_MOST_ROUNDS = 200
_TOLERANCE = 1e-8
ONE_MODE = (0.0, 1.0)


def slow_mode(log_values: Array) -> tuple[float, float]:
    """The share of values that form a slower mode of their own, and how many times slower it is.

    They are 0 and 1 if there is only one mode.

    Parameters
    ----------
    log_values : (n,) array, logarithms of measured over modelled durations

    **(E8)** Slow mode of `ln(D/model)`: two normal distributions, fitted by expectation and
    maximisation, are compared with one. They are accepted if `2 Δ ℓ - 3 ln N ≥ 10` (log-likelihood
    `ℓ`, `N` values), if the means are two standard deviations apart, and if the slower one contains
    at most half of the values.

    Dempster, Laird, Rubin (1977); Schwarz (1978, doi:10.1214/aos/1176344136) for the criterion.

    >>> rng = np.random.default_rng(1)
    >>> slow = rng.random(2000) < 0.1
    >>> scatter = 0.05 * rng.standard_normal(2000)
    >>> share, ratio = slow_mode(scatter + np.where(slow, np.log(1.5), 0.0))
    >>> round(share, 1), round(ratio, 1)
    (0.1, 1.5)
    """
    values = np.sort(np.asarray(log_values, dtype=np.float64))
    if len(values) < fits.LEAST_BATCHES_WITH_SLOW.value or values[0] == values[-1]:
        return ONE_MODE
    weight, means, variances, log_likelihood = _two_normals(values)
    single_log_likelihood = -0.5 * len(values) * (math.log(2 * math.pi * float(values.var())) + 1)
    # Three more parameters: a share, a mean, a variance.
    gain = 2 * (log_likelihood - single_log_likelihood) - 3 * math.log(len(values))
    slow = int(means[1] > means[0])
    share = float(weight if slow == 1 else 1 - weight)
    separation_sd = abs(means[1] - means[0]) / math.sqrt(max(variances))
    if (
        gain < fits.LEAST_GAIN_OF_MODES.value
        or separation_sd < fits.LEAST_SEPARATION_SD.value
        or not fits.LEAST_SLOW_BATCHES.value / len(values) <= share <= 0.5
    ):
        return ONE_MODE
    return share, math.exp(abs(means[1] - means[0]))


def _two_normals(values: Array) -> tuple[float, tuple[float, float], tuple[float, float], float]:
    """Weight of the second, means, variances, log-likelihood; ``values`` sorted."""
    least_variance = float(values.var()) * 1e-4
    second = np.arange(len(values)) >= _best_split(values)
    responsibility = np.where(second, 0.99, 0.01)
    before = -math.inf
    for _ in range(_MOST_ROUNDS):
        weight = float(responsibility.mean())
        means, variances = [], []
        for part in (1 - responsibility, responsibility):
            total = float(part.sum())
            mean = float(part @ values) / total
            means.append(mean)
            variances.append(max(float(part @ np.square(values - mean)) / total, least_variance))
        densities = [
            share
            * np.exp(-0.5 * np.square(values - mean) / variance)
            / math.sqrt(2 * math.pi * variance)
            for share, mean, variance in zip((1 - weight, weight), means, variances, strict=True)
        ]
        total_density = np.maximum(densities[0] + densities[1], 1e-300)
        log_likelihood = float(np.log(total_density).sum())
        responsibility = densities[1] / total_density
        if log_likelihood - before < _TOLERANCE * len(values):
            break
        before = log_likelihood
    return weight, (means[0], means[1]), (variances[0], variances[1]), log_likelihood


def _best_split(values: Array) -> int:
    """Where to split sorted values so that the two parts differ most from each other."""
    size = np.arange(1, len(values))
    below = np.cumsum(values)[:-1] / size
    above = (values.sum() - np.cumsum(values)[:-1]) / (len(values) - size)
    return 1 + int(np.argmax(size * (len(values) - size) * np.square(above - below)))
