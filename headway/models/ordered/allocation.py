"""How many workers each operator of a pipeline needs, and the throughput of the pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from headway.domain.ordered import OrderedPipeline
from headway.models.arrays import Array


class Allocation(NamedTuple):
    """Throughput of a pipeline [1/s], its workers by operator [-], and what limits it.

    ``limiting`` is the place of the operator whose maximum parallelism limits the throughput, None
    if the workers do.
    """

    throughput_per_s: float
    workers: Array
    limiting: int | None


class WholeAllocation(NamedTuple):
    """Tasks of each stage [-], their throughput [1/s], and the bound of (O1) [1/s]."""

    num_tasks: tuple[int, ...]
    throughput_per_s: float
    bound_per_s: float


def source_work_s(pipeline: OrderedPipeline) -> Array:
    r"""Worker time per tuple of the source at each operator of a pipeline (O1). [s]

    >>> from headway.domain.ordered import Operator
    >>> first = Operator(name="a", type="stateless", cost_s=1e-5, selectivity_ratio=0.5)
    >>> operators = (first, Operator(name="b", type="stateless", cost_s=3e-5))
    >>> source_work_s(OrderedPipeline(num_workers=4, operators=operators)) * 1e6
    array([10., 15.])
    """
    cost_s = np.array([operator.cost_s for operator in pipeline.operators])
    selectivity_ratio = np.array([operator.selectivity_ratio for operator in pipeline.operators])
    work: Array = cost_s * np.concatenate(([1.0], np.cumprod(selectivity_ratio)[:-1]))
    return work


def pipelined_allocation(
    work_s: Sequence[float] | Array, most_workers: Sequence[float] | Array, num_workers: float
) -> Allocation:
    r"""Throughput of a pipeline whose operators run at the same time, and the workers of each.

    The throughput is in tuples of the source.

    Parameters
    ----------
    work_s : (k,) sequence, > 0, worker time per tuple of the source, as from `source_work_s`
    most_workers : (k,) sequence, > 0, most workers that each operator can use; ``inf`` for no limit
    num_workers : float, > 0

    **(O1)** All operators at the same time: `X = min(n/Σ d_i, min_i M_i/d_i)` tuples of the source
    per second, with `d_i = c_i s_1...s_(i-1)` the worker-seconds per tuple of the source and `M_i`
    the maximum number of workers of an operator, which has `X d_i` workers. This is an exact upper
    bound for every scheduler, and is reached by those that keep a limited operator busy. Prasaad,
    Ramalingam and Rajan (2018), whose equation (3), as printed, also divides by the selectivity of
    the operator itself, without mentioning it.

    >>> limited = pipelined_allocation([1e-5, 3e-5, 2e-5], [np.inf, 1, np.inf], 8)
    >>> round(limited.throughput_per_s), limited.workers.round(2).tolist(), limited.limiting
    (33333, [0.33, 1.0, 0.67], 1)
    """
    work = np.asarray(work_s, dtype=np.float64)
    by_operator = np.asarray(most_workers) / work
    narrowest = int(np.argmin(by_operator))
    by_workers = num_workers / float(work.sum())
    if by_workers <= by_operator[narrowest]:
        return Allocation(by_workers, by_workers * work, None)
    throughput = float(by_operator[narrowest])
    return Allocation(throughput, throughput * work, narrowest)


def staged_throughput_per_s(
    work_s: Sequence[float] | Array, most_workers: Sequence[float] | Array, num_workers: float
) -> float:
    r"""Throughput of a pipeline whose operators run one after another, like the stages of a batch.

    It is in tuples of the source, without fixed times of tasks and batches. Arguments are those of
    :func:`pipelined_allocation`; the workers are slots.

    **(O2)** One stage at a time: `X_b = 1/Σ d_i/min(C, M_i)`. Equal to (O1) if every stage can use
    all `C` slots; otherwise the gain of pipelining is lost. Exact for tasks without fixed time.

    >>> round(staged_throughput_per_s([1e-5, 3e-5, 2e-5], [np.inf, 1, np.inf], 8))
    29630
    """
    return float(1.0 / (np.asarray(work_s) / np.minimum(most_workers, num_workers)).sum())


def water_filled_slots(
    work_s: Sequence[float] | Array,
    num_slots: int,
    *,
    tied: Sequence[int] | None = None,
    most_tasks: Sequence[float] | Array | None = None,
) -> WholeAllocation:
    r"""Tasks of stages that run at the same time in whole slots, so that the busiest is least busy.

    The throughput is in rows of the source.

    Parameters
    ----------
    work_s : (k,) sequence, > 0, slot time of each stage per row of the source
    num_slots : int, at least the number of stages
    tied : (k,) sequence of int, optional, stages of one number have equally many tasks
    most_tasks : (k,) sequence, >= 1, optional, most tasks of each stage, e.g. of the source

    **(O9)** Whole slots: maximise `min_i t_i/d_i` with `Σ t_i ≤ C` by giving the next slots to the
    stage, or the tied stages, with the least `t_i/d_i`, until they no longer fit or the stage has
    its maximum number of tasks. Exact, since any better setting would give that stage more slots.
    Never above (O1).

    >>> allocation = water_filled_slots([1e-5, 2e-5, 1.5e-5, 4e-6], 16)
    >>> allocation.num_tasks, round(allocation.throughput_per_s), round(allocation.bound_per_s)
    ((3, 6, 5, 2), 300000, 326531)
    >>> water_filled_slots([1e-5, 2e-5, 1.5e-5, 4e-6], 16, tied=[0, 0, 0, 0]).num_tasks
    (4, 4, 4, 4)
    """
    work = np.asarray(work_s, dtype=np.float64)
    max_tasks = np.full(len(work), np.inf) if most_tasks is None else np.asarray(most_tasks)
    group = np.arange(len(work)) if tied is None else np.unique(tied, return_inverse=True)[1]
    size, heaviest = np.bincount(group), np.zeros(group.max() + 1)
    np.maximum.at(heaviest, group, work)
    highest = np.full(len(size), np.inf)
    np.minimum.at(highest, group, max_tasks)
    tasks, num_free = np.ones(len(size), dtype=np.int64), num_slots - int(size.sum())
    if num_free < 0:
        raise ValueError(f"{len(work)} stages need as many slots, got {num_slots}")
    while (
        size[busiest := int(np.argmin(tasks / heaviest))] <= num_free
        and tasks[busiest] < highest[busiest]
    ):
        num_free -= int(size[busiest])
        tasks[busiest] += 1
    return WholeAllocation(
        tuple(int(num_tasks) for num_tasks in tasks[group]),
        float((np.minimum(tasks, highest) / heaviest).min()),
        min(num_slots / float(work.sum()), float((max_tasks / work).min())),
    )
