"""New information in a run: its batches, less the forecast by its level and lasting noise."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from headway.assumptions import live
from headway.domain import DurationNoise
from headway.models.arrays import Array
from headway.models.estimation.batch_noise import noise_ratio_at
from headway.models.laws.gamma import gammaincinv


def innovations_of(
    log_ratio: Array, expected_s: Array, noise: DurationNoise
) -> tuple[Array, Array]:
    r"""New information in each batch of a run, beyond the batches before it.

    Two arrays: the deviation of each batch from its forecast, over its spread, and the logarithm of
    how far the run as a whole is off, as known after the batch. ``log_ratio`` is the logarithm of
    each measured over its modelled duration ``expected_s``, in order of time. There must be noise;
    its ``run_to_run_ratio`` is the spread of this run's level, including the error of the fit.

    **(E23)** A run is `ln(D_k/E[D_k]) + v_k/2 = u + a_k + w_k`. The level `u` of the run is normal
    of variance `s^2` (P2). `a_k` is lasting noise, of variance `ρ l` and correlation `ψ` from a
    batch to the next, with `l = ln(1+c^2)`. `w_k` is fresh noise, of variance `v_k - ρ l`,
    `v_k = ln(1+c^2+(sd/E[D_k])^2)`. Kalman's filter (1960, doi:10.1115/1.3662552) forecasts each
    batch from those before it. The deviation from the forecast, over its standard deviation, is the
    score `z_k`: standard normal and independent, whatever the level of the run and however long its
    noise lasts. It is kept within 3 either way, so that one batch is no drift. If the level is
    known, a permanent shift by `δ` finally leaves the mean score `δ(1-ψ)/(1-ψ(1-k))` divided by the
    standard deviation `sqrt(p+v-ρ l)`. Here `p` is the variance of `a_k` before its batch,
    `p^2+p((1-ψ^2)(v-2ρ l)) = (1-ψ^2) ρ l (v-ρ l)`, and `k = p/(p+v-ρ l)`.

    A run that is a tenth slower from its first batch on: less and less of that is new.

    >>> noise = DurationNoise(batch_ratio=0.1, autocorrelation=0.0, run_to_run_ratio=0.1)
    >>> scores, levels = innovations_of(np.full(4, 0.1), np.ones(4), noise)
    >>> scores.round(2), levels.round(3)
    (array([0.74, 0.43, 0.3 , 0.23]), array([0.053, 0.07 , 0.079, 0.084]))
    """
    fresh, values = _fresh_and_centred(log_ratio, expected_s, noise)
    scores_and_levels = np.array(list(_scores_and_levels(values, fresh, noise))).reshape(-1, 2)
    return scores_and_levels[:, 0], scores_and_levels[:, 1]


def _scores_and_levels(
    values: Array, fresh_variances: Array, noise: DurationNoise
) -> Iterator[tuple[float, float]]:
    """The score of each batch and the estimated level after it, by the filter of (E23)."""
    persistence, lasting_variance = noise.persistence_ratio, _lasting_variance(noise)
    level = lasting_noise = covariance = 0.0
    level_variance, noise_variance = noise.run_to_run_ratio**2, lasting_variance
    limit = live.MOST_SCORE.value
    for value, fresh_variance in zip(values.tolist(), fresh_variances.tolist(), strict=True):
        of_level = level_variance + covariance
        of_noise = noise_variance + covariance
        spread = math.sqrt(of_level + of_noise + fresh_variance)
        of_level, of_noise = of_level / spread, of_noise / spread
        score = min(max((value - level - lasting_noise) / spread, -limit), limit)
        level += of_level * score
        lasting_noise = persistence * (lasting_noise + of_noise * score)
        level_variance -= of_level**2
        covariance = persistence * (covariance - of_level * of_noise)
        remaining_variance = noise_variance - of_noise**2
        noise_variance = (
            persistence**2 * remaining_variance + (1.0 - persistence**2) * lasting_variance
        )
        yield score, level


def noise_at_most(batch_ratio: float, num_free: float, probability: float) -> float:
    r"""Noise of batches that is exceeded with a given probability, estimated from a few of them.

    Parameters
    ----------
    batch_ratio : float, > 0, coefficient of variation as estimated
    num_free : float, > 0, batches that it was estimated from, less the means fitted to them
    probability : float, in (0, 1), probability that the noise is larger

    **(A14)** Upper end of the noise: `c sqrt(ν/χ^2_α(ν))`, with the `α`-quantile of the chi-squared
    distribution with `ν` degrees of freedom: for normal deviations, `ν ĉ^2/c^2` has that
    distribution. If an estimate `ĉ` from ten batches were taken for the noise itself, half of all
    later runs would be noisier, and noise that is larger than assumed looks like drift.

    >>> [round(noise_at_most(0.06, num_free, 0.01), 3) for num_free in (9, 99, 9999)]
    [0.125, 0.072, 0.061]
    """
    if not (batch_ratio > 0.0 and num_free > 0.0 and 0.0 < probability < 1.0):
        raise ValueError("need noise above 0, num_free above 0 and a probability in (0, 1)")
    chi_squared = 2.0 * float(gammaincinv(0.5 * num_free, probability))
    return batch_ratio * math.sqrt(num_free / chi_squared)


def lasting_score(expected_s: float, noise: DurationNoise) -> float:
    r"""Mean score that a permanent shift by one standard deviation leaves; 1 where no noise lasts.

    theory.md (E23). The level of the run is taken as known.

    >>> noise = DurationNoise(batch_ratio=0.1, autocorrelation=0.3, run_to_run_ratio=0.1)
    >>> round(lasting_score(1.0, noise), 3)
    0.284
    """
    fresh_variance = float(_fresh_and_centred(np.zeros(1), np.array([expected_s]), noise)[0][0])
    lasting = _lasting_variance(noise)
    persistence = noise.persistence_ratio
    new = (1.0 - persistence**2) * lasting
    half = 0.5 * ((1.0 - persistence**2) * fresh_variance - new)
    forecast_variance = math.sqrt(half**2 + new * fresh_variance) - half
    gain = forecast_variance / (forecast_variance + fresh_variance)
    remaining_ratio = (1.0 - persistence) / (1.0 - persistence * (1.0 - gain))
    return remaining_ratio * math.sqrt(
        (fresh_variance + lasting) / (forecast_variance + fresh_variance)
    )


def _lasting_variance(noise: DurationNoise) -> float:
    return noise.autocorrelation * math.log1p(noise.batch_ratio**2)


def _fresh_and_centred(
    log_ratio: Array, expected_s: Array, noise: DurationNoise
) -> tuple[Array, Array]:
    """Variance of the fresh noise of each batch, and its deviation about a mean of 0."""
    expected = np.asarray(expected_s, dtype=np.float64)
    if not np.all(expected > 0.0):
        raise ValueError("need positive modelled durations")
    variance = np.log1p(np.square(noise_ratio_at(noise, expected)))
    fresh = variance - _lasting_variance(noise)
    if not np.all(fresh > 0.0):
        raise ValueError("need noise: batch_ratio or added_sd_s above 0, autocorrelation below 1")
    return fresh, np.asarray(log_ratio, dtype=np.float64) + 0.5 * variance
