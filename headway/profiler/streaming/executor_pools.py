"""Executors that a query ran on, by the resource profile of the stages that they are for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from headway.errors import EventLogError
from headway.profiler.executors import Executor

USUAL_PROFILE = 0
"""The resource profile of the application's settings."""


class ExecutorPool(NamedTuple):
    """Executors with one resource profile: how many, and the cores of each."""

    executors: int
    cores: int


def first_executor_s(executors: Sequence[Executor], label: str, log_name: str) -> float | None:
    """When the first executor was added [s]; None if not recorded. EventLogError without any."""
    if not executors:
        raise EventLogError(
            f"{log_name}: {label}: no executor is on record (no ExecutorAdded event), so its "
            "cores are unknown; profile a log that starts with the application"
        )
    return min(
        (executor.added_s for executor in executors if executor.added_s is not None), default=None
    )


def executor_pools(
    executors: Sequence[Executor], at_s: float, label: str, log_name: str
) -> dict[int, ExecutorPool]:
    """Executors alive at a given time, by resource profile; of local mode one, the driver."""
    cores: dict[int, list[int]] = defaultdict(list)
    for executor in executors:
        is_added = (executor.added_s or 0.0) <= at_s
        if is_added and (executor.removed_s is None or executor.removed_s > at_s):
            cores[executor.resource_profile_id].append(executor.num_cores)
    if not cores:
        raise EventLogError(
            f"{log_name}: {label}: none of the {len(executors)} executors on record was alive at "
            "its last batch; profile a log that starts with the application"
        )
    return {
        profile_id: ExecutorPool(len(alive), max(int(np.median(alive)), 1))
        for profile_id, alive in sorted(cores.items())
    }


def pool_for(pools: Mapping[int, ExecutorPool], profile_id: int) -> ExecutorPool:
    """The executors of stages with a resource profile.

    A profile that only says what tasks need has none of its own: its stages run on the usual ones.

    >>> pools = {0: ExecutorPool(2, 4), 3: ExecutorPool(1, 8)}
    >>> pool_for(pools, 3), pool_for(pools, 2)
    (ExecutorPool(executors=1, cores=8), ExecutorPool(executors=2, cores=4))
    """
    return pools.get(profile_id) or pools.get(USUAL_PROFILE) or next(iter(pools.values()))
