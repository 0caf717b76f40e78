"""Input batches of a pipeline on their way from the distributors to the mappers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headway.models.arrays import Array, poisson_counts
from headway.models.pipeline.parameters import Pipeline
from headway.models.queues.queueing import lindley_waits_s


class InputBatches(NamedTuple):
    """One element per batch, in the order of packing."""

    packed_s: Array
    """End of the input period whose rows it contains. [s]"""
    num_rows: Array
    """Its rows. [-]"""
    sent_s: Array
    """Start of its transfer. [s]"""
    arrived_s: Array
    """End of its transfer. [s]"""
    mapper: NDArray[np.int64]
    """Its destination."""
    rows_before: Array
    """Rows of the same mapper that arrive before it. [-]"""
    map_work_s: Array
    """Core time that it needs. [s]"""


def input_batches(pipeline: Pipeline, end_s: float, random: np.random.Generator) -> InputBatches:
    """Batches packed before ``end_s`` by distributors, offset by equal parts of a period (S5)."""
    job, setting = pipeline.job, pipeline.setting
    num_distributors = int(setting.num_distributors)
    num_mappers = int(setting.num_nodes) * int(setting.mappers_per_node)
    period_s = float(setting.input_period_s)
    step_s = period_s / num_distributors
    num_batches = max(int(end_s / step_s), num_distributors)
    number = np.arange(num_batches)
    packed = step_s * (number.astype(np.float64) + random.random())
    rows = _poisson_multiples(
        float(pipeline.rate_per_s) * step_s, float(pipeline.dispersion), num_batches, random
    )
    transfer = rows * float(job.input_row_bytes) / float(pipeline.nodes.distributor_bytes_per_s)
    sent = packed.copy()
    for distributor in range(num_distributors):
        of_distributor = slice(distributor, None, num_distributors)
        sent[of_distributor] += lindley_waits_s(
            np.full(len(packed[of_distributor]), period_s), transfer[of_distributor]
        )
    mapper = number % num_mappers
    log_variance = float(np.log1p(float(job.map_cv) * float(job.map_cv)))
    normal = random.standard_normal(num_batches)
    noise = np.exp(np.sqrt(log_variance) * normal - 0.5 * log_variance)
    work = rows * float(job.map_per_row_s) * noise
    before = np.empty(num_batches)
    arrived = sent + transfer
    for index in range(num_mappers):
        mapper_batches = np.flatnonzero(mapper == index)
        mapper_batches = mapper_batches[np.argsort(arrived[mapper_batches], kind="stable")]
        before[mapper_batches] = np.cumsum(rows[mapper_batches]) - rows[mapper_batches]
    return InputBatches(packed, rows, sent, arrived, mapper, before, work)


def rows_of_window(batches: InputBatches, period_s: float, mapper: int, end_s: float) -> float:
    """Position, among the rows of a mapper, of the last one that arrived before ``end_s`` (S5).

    It is 0 if none arrived. The rows of a batch arrive over the input period ``period_s``.

    >>> at_s, rows = np.array([1.0, 2.0]), np.array([10.0, 20.0])
    >>> mapper, before = np.zeros(2, dtype=np.int64), np.array([0.0, 10.0])
    >>> two = InputBatches(at_s, rows, at_s, at_s, mapper, before, rows)
    >>> rows_of_window(two, 1.0, 0, 1.5)
    20.0
    """
    of_mapper = batches.mapper == mapper
    arrived_share = np.clip((end_s - batches.packed_s[of_mapper] + period_s) / period_s, 0.0, 1.0)
    position = batches.rows_before[of_mapper] + arrived_share * batches.num_rows[of_mapper]
    return float(np.max(position, where=arrived_share > 0.0, initial=0.0))


def _poisson_multiples(
    mean: float, dispersion: float, num_values: int, random: np.random.Generator
) -> Array:
    """Counts with variance ``dispersion`` times their mean; constant without dispersion."""
    if dispersion == 0.0:
        return np.full(num_values, mean)
    return dispersion * poisson_counts(random, mean / dispersion, num_values)
