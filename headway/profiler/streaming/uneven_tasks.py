"""Tasks of a stage that take different times: by chance, and because a key is hot.

The two differ in the rows of the tasks: a hot key gives one task more of them in every
batch, and its tasks are modelled by that share; all other differences are noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from headway.assumptions.fits import LEAST_HOT_RATIO, MOST_HOT_RATIO
from headway.limits import MOST_SPREAD_RATIO
from headway.models.arrays import Array
from headway.models.estimation.task_times import task_spread_ratio
from headway.profiler.streaming.samples import StageSample


def task_noise_ratio(samples: Sequence[StageSample], weights: Array, *, has_hot_key: bool) -> float:
    """Coefficient of variation of tasks of one batch, over the batches that have several.

    Where one task has more rows than the others, what their rows explain is left out.
    """
    even_samples = [spread_beside_rows(sample) for sample in samples] if has_hot_key else samples
    spreads = [
        (sample.task_sd_s / sample.task_mean_s, sample.num_seen, weight)
        for sample, weight in zip(even_samples, weights, strict=True)
        if sample.task_sd_s is not None and sample.task_mean_s > 0 and sample.num_seen > 1
    ]
    if not spreads:
        return 0.0
    return min(task_spread_ratio(*np.array(spreads).T), MOST_SPREAD_RATIO)


def hot_share_ratio(samples: Sequence[StageSample]) -> float:
    """Share of the rows that one task has beyond an even share; 0 below a tenth.

    A hot key keeps its share for any number of tasks, but random unevenness does not. So of several
    numbers of tasks, the one with the smallest share counts.
    """
    of_count: dict[int, list[float]] = {}
    for sample in samples:
        if sample.num_tasks > 1 and sample.rows_read > 0:
            even = 1.0 / sample.num_tasks
            beyond = (sample.rows_largest / sample.rows_read - even) / (1.0 - even)
            of_count.setdefault(sample.num_tasks, []).append(
                min(max(beyond, 0.0), MOST_HOT_RATIO.value)
            )
    smallest_share = min((float(np.median(shares)) for shares in of_count.values()), default=0.0)
    return smallest_share if smallest_share >= LEAST_HOT_RATIO.value else 0.0


def spread_beside_rows(sample: StageSample) -> StageSample:
    """The stage with the spread of task times that their rows do not explain."""
    if sample.task_sd_s is None or sample.rows_variance <= 0:
        return sample
    explained_s2 = sample.rows_time_covariance_s**2 / sample.rows_variance
    return replace(sample, task_sd_s=max(sample.task_sd_s**2 - explained_s2, 0.0) ** 0.5)
