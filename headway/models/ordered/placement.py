"""Keys on partitions: buckets for heavy keys, and makespans of stages whose keys are known."""

from __future__ import annotations

from dataclasses import field, fields
from heapq import heapreplace

import numpy as np
from numpy.typing import NDArray

from headway.domain import StageProfile
from headway.lazy_classes import dataclass
from headway.models.arrays import Array, poisson_counts
from headway.models.stages.spark_hash import (
    Int32Array,
    Int64Array,
    known_partition_loads,
    spark_hash,
)

_MOST_TASKS_AT_ONCE = 4_000_000


def first_bucket_ids(shuffle_partitions: int) -> NDArray[np.int64]:
    r"""The first non-negative integer whose hash falls into each partition.

    They are to be used as values of an integer column to partition by.

    Parameters
    ----------
    shuffle_partitions : int, >= 1

    **(K7)** Bucket numbers: for each partition `j`, the first `i ≥ 0` with
    `pmod(Murmur3(int i, 42), P) = j` by (K1). The numbers `0..P-1` themselves would miss a third of
    the partitions. Exact.

    >>> first_bucket_ids(16).tolist()
    [12, 16, 5, 1, 37, 20, 2, 35, 13, 6, 49, 7, 25, 15, 4, 0]
    """
    if shuffle_partitions < 1:
        raise ValueError("need shuffle_partitions >= 1")
    num_tried = 8 * shuffle_partitions + 64
    while True:
        hashes = spark_hash(np.arange(num_tried), "int").astype(np.int64)
        partitions, first_ids = np.unique(np.mod(hashes, shuffle_partitions), return_index=True)
        if len(partitions) == shuffle_partitions:
            return first_ids.astype(np.int64)
        num_tried *= 2


def placed_keys(shares: Array, shuffle_partitions: int) -> tuple[NDArray[np.int64], Array]:
    r"""Partitions for keys of known weight: heaviest first, each to the least loaded partition.

    The partition of each key, and the share of the rows in each partition.

    Parameters
    ----------
    shares : (k,) array, >= 0, of the rows, at most 1 together; the rest is spread evenly
    shuffle_partitions : int, >= 1

    **(K8)** Placed keys: heaviest first, each to the least loaded partition. The fullest partition
    has at most `max(p_1, (4/3-1/(3P)) max_load*)`, with `max_load*` the best possible value (Graham
    1969, doi:10.1137/0117039), and no placement is below `max(p_1, 1/P)`.

    >>> placed_keys(np.array([0.3, 0.2, 0.2, 0.1]), 2)
    (array([0, 1, 1, 0]), array([0.5, 0.5]))
    """
    share = np.asarray(shares, dtype=np.float64)
    if share.ndim != 1 or not np.all(share >= 0.0) or not share.sum() <= 1.0 + 1e-9:
        raise ValueError("shares must be one row of numbers >= 0, at most 1 together")
    if shuffle_partitions < 1:
        raise ValueError("need shuffle_partitions >= 1")
    loads = np.zeros(shuffle_partitions)
    partition = np.empty(len(share), dtype=np.int64)
    for key in np.argsort(-share, kind="stable"):
        least = int(np.argmin(loads))
        partition[key] = least
        loads[least] += share[key]
    remaining_share = max(1.0 - float(share.sum()), 0.0)
    return partition, loads + remaining_share / shuffle_partitions


def dealt_makespan_s(task_s: Array, num_slots: int) -> Array:
    r"""Makespan of tasks that are assigned in order, each to the slot that is free first. [s]

    ``task_s`` has the shape (..., T), with at least one task, in the order in which Spark hands
    tasks out; the result has the shape (...). All slots are free at the start.

    **(K9)** Known task times on `C` slots: task `j` starts on the slot with the least assigned work
    so far, as in Spark's scheduler for tasks of equal locality. Exact.

    >>> dealt_makespan_s(np.array([[1.0, 1.0, 3.0], [3.0, 1.0, 1.0]]), 2)
    array([4., 3.])
    """
    times = np.asarray(task_s, dtype=np.float64)
    if num_slots < 1 or times.ndim < 1 or not times.shape[-1] or not np.all(times >= 0.0):
        raise ValueError("need num_slots >= 1 and at least one task, with no negative time")
    if times.shape[-1] <= num_slots:
        longest: Array = times.max(axis=-1)
        return longest
    rows = times.reshape(-1, times.shape[-1])
    if len(rows) == 1:
        slots = [0.0] * num_slots
        tasks: list[float] = rows[0].tolist()
        for time_s in tasks:
            heapreplace(slots, slots[0] + time_s)
        return np.full(times.shape[:-1], max(slots))
    free = np.zeros((len(rows), num_slots))
    row_indices = np.arange(len(rows))
    for task in rows.T:
        free[row_indices, free.argmin(axis=-1)] += task
    makespans_s: Array = free.max(axis=-1).reshape(times.shape[:-1])
    return makespans_s


def skewed_stage_s(
    stage: StageProfile, loads: Array, num_slots: int, *, batch_rows: float, seed: int
) -> Array:
    r"""Durations of a stage whose partitions have known shares of the rows, for several batches.

    A makespan of each. [s]

    Parameters
    ----------
    loads : (b, P) array, >= 0, share of the rows in each partition, for each batch to be drawn
    num_slots : int, >= 1
    batch_rows : float, >= 0, mean number of rows that enter the stage per batch

    **(K10)** A stage under skew: Poisson rows in each partition, task times lognormal around
    `t_0 + t_1 x`, makespan by (K9). Even without noise, the rows of a key are processed one after
    another, so no number of partitions is faster than `t_0 + t_1 n p_1`.

    >>> from headway.domain import RowsLaw
    >>> stage = StageProfile(
    ...     name="sums", level=1, tasks_rule="shuffle", rows=RowsLaw(scale=1.0, exponent=1.0),
    ...     task_fixed_s=0.1, task_per_row_s=1e-5, task_noise_ratio=0.0, separation="batches",
    ... )
    >>> skewed_stage_s(stage, np.full((1, 4), 0.25), 4, batch_rows=0.0, seed=1)
    array([0.1])
    """
    share = np.asarray(loads, dtype=np.float64)
    if share.ndim != 2 or not np.all(share >= 0.0) or not batch_rows >= 0.0:
        raise ValueError("need a table of loads >= 0, and batch_rows >= 0")
    random = np.random.default_rng(seed)
    sd = float(np.sqrt(np.log1p(stage.task_noise_ratio**2)))

    def makespan_s(share: Array) -> Array:
        rows = poisson_counts(random, share * batch_rows)
        noise = np.exp(sd * random.standard_normal(share.shape) - 0.5 * sd * sd)
        task_s = (stage.task_fixed_s + stage.task_per_row_s * rows) * noise
        return dealt_makespan_s(np.asarray(task_s, dtype=np.float64), num_slots)

    # A table of many partitions is as large as a gigabyte, and so are its parts.
    num_at_once = max(_MOST_TASKS_AT_ONCE // share.shape[1], 1)
    starts = range(0, len(share), num_at_once)
    return np.concatenate([makespan_s(share[start : start + num_at_once]) for start in starts])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeyedStage(StageProfile):
    """A stage for which a file contains the frequency of each key.

    ``hashes`` and ``weights`` are those of the listed keys; the others have ``other_share`` of the
    rows (below 1), taken as evenly spread. Makespans are remembered by partitions and slots.
    """

    hashes: Int32Array | Int64Array
    weights: Array
    other_share: float = 0.0
    makespans: dict[tuple[int, int], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        StageProfile.__post_init__(self)  # slots make a new class, which `super` does not know
        if not 0.0 <= self.other_share < 1.0:
            raise ValueError(f"other_share is {self.other_share}; expected at least 0, below 1")

    @classmethod
    def of(
        cls,
        stage: StageProfile,
        hashes: Int32Array | Int64Array,
        weights: Array,
        other_share: float = 0.0,
    ) -> KeyedStage:
        """The same stage with its keys."""
        values = {member.name: getattr(stage, member.name) for member in fields(StageProfile)}
        return cls(**values, hashes=hashes, weights=weights, other_share=other_share)

    def shares_at(self, shuffle_partitions: int) -> Array:
        """Share of the rows in each partition. [-]"""
        listed_shares = known_partition_loads(self.hashes, self.weights, shuffle_partitions)
        return listed_shares * (1.0 - self.other_share) + self.other_share / shuffle_partitions

    def row_makespan_ratio(self, num_tasks: int, num_slots: int) -> float | None:
        r"""Time until the last task has processed its rows, over the time of all rows one by one.

        It lies between ``1 / num_slots`` and 1. Each partition is a task.

        **(K11)** A stage with known keys: its rows take `m(P, C)` of their time on one slot. This
        is the makespan (K9) of the loads by (K1); keys that are not listed count as evenly spread
        (see K3). If the keys are given, it replaces the share `h` of one heavy key in (T2). Exact
        without noise and fixed times of tasks. The makespan of equal tasks is a lower bound.
        """
        setting = num_tasks, num_slots
        if setting not in self.makespans:
            makespan = dealt_makespan_s(self.shares_at(num_tasks), num_slots)
            self.makespans[setting] = float(makespan)
        return self.makespans[setting]
