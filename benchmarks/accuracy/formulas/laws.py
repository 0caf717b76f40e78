"""Quantiles of a uniform wait plus a duration, and the largest of many values."""

from __future__ import annotations

from itertools import product

import numpy as np

from formulas.cells import Cell, Family, Judged, judged
from headway.models.arrays import Array
from headway.models.laws.distributions import uniform_plus_lognormal_quantile
from headway.models.laws.mixtures import with_pauses
from headway.models.laws.moment_quantiles import (
    MomentMatch,
    quantile_from_moments,
    uniform_wait_moments,
)
from headway.models.laws.order_statistics import (
    max_lognormal,
    max_normal,
    max_normal_chen_tyler,
    max_normal_gumbel,
)

_NUM_VALUES = 2_000_000
_NUM_REPLICATIONS = 4
_PAUSE_PROB, _PAUSE_MEAN_RATIO = 0.03, 1.5


def _lognormal(random: np.random.Generator, mean: float, cv: float, size: int) -> Array:
    log_variance = np.log1p(cv * cv)
    normal = random.standard_normal(size)
    values: Array = mean * np.exp(np.sqrt(log_variance) * normal - 0.5 * log_variance)
    return values


def play_sum(mean_ratio: float, cv: float, has_pauses: bool) -> Cell:
    """A wait uniform on a second plus a duration of that mean, now and then with a pause."""
    totals = []
    for seed in range(_NUM_REPLICATIONS):
        random = np.random.default_rng(seed)
        duration = _lognormal(random, mean_ratio, cv, _NUM_VALUES)
        if has_pauses:
            pause = random.exponential(_PAUSE_MEAN_RATIO * mean_ratio, _NUM_VALUES)
            duration = duration + pause * (random.random(_NUM_VALUES) < _PAUSE_PROB)
        totals.append(random.random(_NUM_VALUES) + duration)
    mixture = with_pauses(
        mean_ratio,
        cv * mean_ratio,
        pause_prob=_PAUSE_PROB if has_pauses else 0.0,
        pause_mean_s=_PAUSE_MEAN_RATIO * mean_ratio,
    )
    sd = float(np.sqrt(mixture.variance_s2))
    known = uniform_wait_moments(1.0, float(mixture.mean_s), sd, float(mixture.third_central_s3))
    cell: dict[str, Judged] = {}
    for q, name in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"), (0.999, "p99.9")):
        played = [float(np.quantile(total, q)) for total in totals]
        exact = (
            mixture.after_uniform_wait_quantile_s(q, 1.0)
            if has_pauses
            else uniform_plus_lognormal_quantile(q, 1.0, mean_ratio, cv * mean_ratio)
        )
        cell[f"{name}, convolution"] = judged(float(exact), played)
        if q == 0.99:
            for match in MomentMatch:
                guess = quantile_from_moments(
                    q, known.mean, known.variance, match, known.third_central
                )
                cell[f"p99, {match.value}"] = judged(float(guess), played)
    return cell


def play_largest(num_values: int) -> Cell:
    """The largest of so many standard normals, and of so many lognormals of cv 0.5."""
    normal, lognormal = [], []
    for seed in range(_NUM_REPLICATIONS):
        random = np.random.default_rng(seed)
        shape = (_NUM_VALUES // num_values, num_values)
        normal.append(random.standard_normal(shape).max(axis=1))
        lognormal.append(_lognormal(random, 1.0, 0.5, shape[0] * num_values).reshape(shape).max(1))
    means = [float(values.mean()) for values in normal]
    sds = [float(values.std()) for values in normal]
    exact = max_normal(num_values)
    heavier = max_lognormal(num_values, 0.5)
    tyler, gumbel = max_normal_chen_tyler(num_values), max_normal_gumbel(num_values)
    return {
        "mean, quadrature": judged(float(exact.mean), means),
        "mean, Chen and Tyler": judged(float(tyler[0]), means),
        "mean, the paper's constants": judged(float(gumbel[0]), means),
        "standard deviation, quadrature": judged(float(exact.sd), sds),
        "standard deviation, Chen and Tyler": judged(float(tyler[1]), sds),
        "standard deviation, the paper's constants": judged(float(gumbel[1]), sds),
        "mean, lognormal, quadrature": judged(
            float(heavier.mean), [float(values.mean()) for values in lognormal]
        ),
        "standard deviation, lognormal, quadrature": judged(
            float(heavier.sd), [float(values.std()) for values in lognormal]
        ),
    }


SUMS = Family(
    title="A uniform wait plus a duration",
    equations="theory.md (D4)-(D11)",
    over=(
        "durations of mean 0.1-1 of the interval, lognormal with cv 0.1-1, with and without an "
        f"exponential pause of {_PAUSE_MEAN_RATIO:g} means in {_PAUSE_PROB:.0%} of the batches"
    ),
    judge=f"{_NUM_REPLICATIONS} x {_NUM_VALUES:,} draws",
    cells={
        f"mean {mean:g}, cv {cv:g}{', pauses' if pauses else ''}": (mean, cv, pauses)
        for mean, cv, pauses in product((0.1, 0.3, 0.6, 1.0), (0.1, 0.3, 1.0), (False, True))
    },
    play=play_sum,
)
LARGEST = Family(
    title="The largest of many",
    equations="theory.md (O1)-(O4)",
    over="2 to 1000 values, standard normal and lognormal with cv 0.5",
    judge=f"{_NUM_REPLICATIONS} x {_NUM_VALUES:,} draws",
    cells={f"{number} values": (number,) for number in (2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)},
    play=play_largest,
)
