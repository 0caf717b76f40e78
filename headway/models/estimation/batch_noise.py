"""How much batches of one run vary around their expected duration, by how long they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headway.assumptions.fits import (
    SHORT_BATCH_NOISE_S,
    USUAL_BATCH_NOISE_BATCHES,
    USUAL_BATCH_NOISE_RATIO,
)
from headway.domain import DurationNoise
from headway.models.arrays import Array, Numeric


def batch_spread(residuals: Sequence[Array], expected_s: Sequence[Array]) -> tuple[float, float]:
    """Coefficient of variation of long batches, and the part that does not grow with them [s].

    Parameters
    ----------
    residuals : sequence of (n_k,) arrays
        Measured over expected duration of the batches of each run, less one. [-]
    expected_s : sequence of (n_k,) arrays, > 0, expected durations [s]

    **(E48)** A batch that is expected to take `D` has the coefficient of variation
    `c = c_0 (1+(h/D)^2)^(1/2)` with `h = 0.25 s`: what disturbs a batch for a moment weighs more in
    a short one. Over 288 runs of 15 workloads, `h` is 0.23 to 0.27 s whichever workload is left
    out. A run as fast as possible has several times the batches of one on a trigger, so runs weigh
    equally: `c_0^2` is the mean over runs of `mean(e^2/(1+(h/D)^2))` of their residuals `e`, each
    counted as the mean number of batches of a run, and 0.092^2 counted as 40 batches.

    >>> short, long = np.array([0.2, -0.2] * 200), np.array([0.1, -0.1] * 200)
    >>> ratio, added_sd_s = batch_spread([short, long], [np.full(400, 0.15), np.full(400, 5.0)])
    >>> round(ratio, 3), round(added_sd_s, 3)
    (0.101, 0.025)
    """
    of_runs = [
        float(
            np.mean(np.square(values) / (1.0 + np.square(SHORT_BATCH_NOISE_S.value / durations_s)))
        )
        for values, durations_s in zip(residuals, expected_s, strict=True)
    ]
    num_batches = float(np.mean([len(values) for values in residuals]))
    prior = USUAL_BATCH_NOISE_BATCHES.value
    total = num_batches * sum(of_runs) + prior * USUAL_BATCH_NOISE_RATIO.value**2
    ratio = float(np.sqrt(total / (num_batches * len(of_runs) + prior)))
    return ratio, ratio * SHORT_BATCH_NOISE_S.value


def noise_ratio_at(noise: DurationNoise, duration_s: Numeric) -> Array:
    """Coefficient of variation of batches that are expected to take so long (E48).

    Parameters
    ----------
    duration_s : float or (n,) array, > 0, expected durations [s]

    >>> noise = DurationNoise(
    ...     batch_ratio=0.03, autocorrelation=0.0, run_to_run_ratio=0.1, added_sd_s=0.02
    ... )
    >>> noise_ratio_at(noise, np.array([0.5, np.inf]))
    array([0.05, 0.03])
    """
    return np.hypot(noise.batch_ratio, noise.added_sd_s / np.asarray(duration_s))
