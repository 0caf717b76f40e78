"""Ways of scheduling against each other: paired differences of runs, with bootstrap intervals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.models.arrays import Array
from real.cells import WAY_OF
from real.records import windows_s

_NUM_RESAMPLES = 4000
_LEVEL = 0.95

Runs = Mapping[int, Array]
"""Window latencies of each run of a way [s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A figure of one way over that of another, less 1, with an interval of 95%.

    ``low`` and ``high`` are None where there is a single run: nothing is known of the next one.
    """

    ratio: float
    low: float | None
    high: float | None
    num_runs: int


def runs_of_ways(lines: Sequence[Mapping[str, Any]], cell: str) -> dict[str, dict[int, Array]]:
    """Window latencies by way and run."""
    found: dict[str, dict[int, Array]] = defaultdict(dict)
    for line in lines:
        if line["cell"] == cell:
            found[line["way"]][line["run"]] = np.array(windows_s(line))
    return dict(found)


def best_of_sparks(runs: Mapping[str, Runs], starving: Collection[str] = ()) -> str | None:
    """The way of Spark's own with the least mean; None if none was measured.

    A way that starves some queries serves the others with their cores. It counts only where all
    of Spark's own ways do so.

    >>> runs = {"fifo": {0: np.array([2.0])}, "fair": {0: np.array([1.0])}}
    >>> best_of_sparks(runs), best_of_sparks(runs, starving={"fair"})
    ('fair', 'fifo')
    """
    own = [way for way, of in runs.items() if WAY_OF[way].policy is None and of]
    serving = [way for way in own if way not in starving]
    return min(serving or own, key=lambda way: mean_s(runs[way]), default=None)


def mean_s(runs: Runs) -> float:
    """Mean over runs of their mean latency [s]."""
    return float(np.mean([one.mean() for one in runs.values()]))


def quantile_s(runs: Runs, quantile: float) -> float:
    """Quantile over all windows of all runs [s]."""
    return float(np.quantile(np.concatenate(list(runs.values())), quantile))


def difference(way: Runs, other: Runs, *, seed: int = 1) -> Difference | None:
    """How far the mean latency of a way is from that of another, over the runs that both have.

    Runs are drawn with replacement, the same ones of both, and then the windows of each.

    Examples
    --------
    >>> runs = {0: np.array([1.0, 1.2, 0.8]), 1: np.array([1.1, 0.9, 1.0])}
    >>> twice = {number: 2.0 * one for number, one in runs.items()}
    >>> found = difference(runs, twice)
    >>> found.ratio, found.low < -0.4, found.high > -0.6
    (-0.5, True, True)
    """
    both = sorted(set(way) & set(other))
    if not both:
        return None
    ratio = float(
        np.mean([way[one].mean() for one in both]) / np.mean([other[one].mean() for one in both])
    )
    if len(both) < 2:
        return Difference(ratio=ratio - 1.0, low=None, high=None, num_runs=len(both))
    generator = np.random.default_rng(seed)
    # A mean of resampled windows for each run and resample; then runs are drawn.
    means = [
        np.array([_resampled_means(of[one], generator) for one in both]) for of in (way, other)
    ]
    drawn = generator.integers(len(both), size=(len(both), _NUM_RESAMPLES))
    at = np.arange(_NUM_RESAMPLES)
    ratios = means[0][drawn, at].mean(axis=0) / means[1][drawn, at].mean(axis=0) - 1.0
    low, high = np.quantile(ratios, [0.5 - 0.5 * _LEVEL, 0.5 + 0.5 * _LEVEL])
    return Difference(ratio=ratio - 1.0, low=float(low), high=float(high), num_runs=len(both))


def _resampled_means(latencies_s: Array, generator: np.random.Generator) -> Array:
    drawn = generator.integers(len(latencies_s), size=(_NUM_RESAMPLES, len(latencies_s)))
    means: Array = latencies_s[drawn].mean(axis=1)
    return means
