"""Quantiles of a uniform wait plus a duration, and the largest of many values."""

from __future__ import annotations

from itertools import product

import numpy as np

from formulas.cells import Cell, Family, judged
from headway.models.arrays import Array
from headway.models.laws.distributions import max_lognormal, max_normal
from tests.oracles.closed_forms import uniform_plus_lognormal_quantile

_NUM_VALUES = 2_000_000
_NUM_REPLICATIONS = 4


def _lognormal(random: np.random.Generator, mean: float, cv: float, size: int) -> Array:
    log_variance = np.log1p(cv * cv)
    normal = random.standard_normal(size)
    values: Array = mean * np.exp(np.sqrt(log_variance) * normal - 0.5 * log_variance)
    return values


def simulated_sum(mean_ratio: float, cv: float) -> Cell:
    """A wait, uniform between 0 and 1 s, plus a duration of ``mean_ratio`` s on average."""
    totals = []
    for seed in range(_NUM_REPLICATIONS):
        random = np.random.default_rng(seed)
        duration = _lognormal(random, mean_ratio, cv, _NUM_VALUES)
        totals.append(random.random(_NUM_VALUES) + duration)
    return {
        name: judged(
            float(uniform_plus_lognormal_quantile(q, 1.0, mean_ratio, cv * mean_ratio)),
            [float(np.quantile(total, q)) for total in totals],
        )
        for q, name in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"), (0.999, "p99.9"))
    }


def simulated_largest(num_values: int) -> Cell:
    """The largest of ``num_values`` standard normals, or lognormals with a cv of 0.5."""
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
    return {
        "mean": judged(float(exact.mean), means),
        "standard deviation": judged(float(exact.sd), sds),
        "mean, lognormal": judged(
            float(heavier.mean), [float(values.mean()) for values in lognormal]
        ),
        "standard deviation, lognormal": judged(
            float(heavier.sd), [float(values.std()) for values in lognormal]
        ),
    }


SUMS = Family(
    title="A uniform wait plus a duration",
    equations="theory.md (D4)",
    over="lognormal durations with a mean of 0.1-1 of the interval and cv 0.1-1",
    judge=f"{_NUM_REPLICATIONS} x {_NUM_VALUES:,} draws",
    cells={
        f"mean {mean:g}, cv {cv:g}": (mean, cv)
        for mean, cv in product((0.1, 0.3, 0.6, 1.0), (0.1, 0.3, 1.0))
    },
    simulate=simulated_sum,
)
LARGEST = Family(
    title="The largest of many",
    equations="theory.md (X1), (X2)",
    over="2 to 1000 values, standard normal and lognormal with cv 0.5",
    judge=f"{_NUM_REPLICATIONS} x {_NUM_VALUES:,} draws",
    cells={f"{number} values": (number,) for number in (2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)},
    simulate=simulated_largest,
)
