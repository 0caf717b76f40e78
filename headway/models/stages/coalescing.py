"""Tasks of stages, those whose shuffle partitions adaptive execution merges among them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from headway.domain import Coalescing, StageProfile
from headway.models.stages.source_tasks import source_tasks


def coalesced_tasks(
    rule: Coalescing, size_bytes: float, num_slots: int, shuffle_partitions: int
) -> int:
    """Tasks behind an exchange that adaptive execution coalesces.

    Parameters
    ----------
    size_bytes : float, >= 0, bytes that are read from the exchange
    num_slots, shuffle_partitions : int, >= 1

    **(T7)** Adaptive execution merges neighbouring partitions up to `g = max(s, min(A, Z/m))`
    bytes, with `Z` the bytes of the exchange, `A` the advisory and `s` the least size of a task,
    and `m` the parallelism. Of `P` partitions of equal size it puts `k = max(1, ⌊gP/Z⌋)` into a
    task, so `T = ⌈P/k⌉`. If the last task is left with less than `s`, it is merged with the one
    before. `ShufflePartitionsUtil` of Spark 4.3, with which 13 batches of 79 kB to 1.8 MB agree.

    >>> rule = Coalescing(exchange_bytes_per_row=100.0, advisory_bytes=2**26, smallest_bytes=2**20)
    >>> [coalesced_tasks(rule, size_bytes, 8, 64) for size_bytes in (8e4, 4e6, 1e8, 1e10)]
    [1, 3, 8, 64]
    """
    partitions = rule.most_tasks(shuffle_partitions)
    target_bytes = max(
        rule.smallest_bytes, min(rule.advisory_bytes, size_bytes / rule.aimed_tasks(num_slots))
    )
    if size_bytes <= target_bytes:
        return 1
    partition_bytes = size_bytes / partitions
    # A quotient of equal sizes may be a whole number but for its last digit.
    per_task = max(math.floor(target_bytes / partition_bytes * (1.0 + 1e-12)), 1)
    num_tasks = -(-partitions // per_task)
    left_bytes = (partitions - per_task * (num_tasks - 1)) * partition_bytes
    is_merged = num_tasks > 1 and left_bytes < rule.smallest_bytes
    return num_tasks - 1 if is_merged else num_tasks


def num_tasks_at(
    stage: StageProfile, batch_rows: float, num_slots: int, shuffle_partitions: int
) -> int:
    """Tasks of a stage of a batch, by what decides them (T7), (T9).

    Parameters
    ----------
    batch_rows : float, >= 0
    num_slots, shuffle_partitions : int, >= 1

    >>> from headway.formats.profile_file import load_profile
    >>> stage = load_profile("examples/word-count.profile.yaml").stages[1]
    >>> num_tasks_at(stage, 1e3, 2, 8)
    8
    """
    if stage.coalescing is not None:
        size_bytes = stage.coalescing.exchange_bytes_per_row * stage.rows.rows(batch_rows)
        return coalesced_tasks(stage.coalescing, size_bytes, num_slots, shuffle_partitions)
    if stage.source_tasks is not None:
        return source_tasks(stage.source_tasks, batch_rows, num_slots)
    return stage.num_tasks(shuffle_partitions)


def usual_tasks(pool: Sequence[StageProfile], num_slots: int, shuffle_partitions: int) -> list[int]:
    """Tasks of stages, those in the profiled runs where they follow the rows of a batch (T2).

    Parameters
    ----------
    num_slots, shuffle_partitions : int, >= 1

    >>> usual_tasks([], 2, 8)
    []
    """
    return [
        stage.num_tasks(shuffle_partitions)
        if stage.follows_rows
        else num_tasks_at(stage, 0.0, num_slots, shuffle_partitions)
        for stage in pool
    ]
