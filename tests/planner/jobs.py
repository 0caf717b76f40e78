"""Jobs for tests of the planner."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headway.domain import (
    EventTimeWindow,
    JobProfile,
    MemoryProfile,
    ObservedArrivals,
    StateProfile,
)
from tests.factories import a_profile

GIB = 2**30
SLIDING = EventTimeWindow(kind="sliding", size_s=60.0, slide_s=5.0)
MINUTE = EventTimeWindow(kind="tumbling", size_s=60.0, slide_s=60.0)
SEEN = ObservedArrivals(
    counted="rows",
    rate_p05_per_s=4900.0,
    rate_p50_per_s=5000.0,
    rate_p95_per_s=5100.0,
    rate_max_per_s=5200.0,
    event_time_lag_s=0.5,
)


def windowed(**shape: Any) -> JobProfile:
    """The counting query by windows of a minute, append mode, a watermark of ten seconds."""
    of_windows: dict[str, Any] = {
        "windows": (MINUTE,),
        "output_mode": "append",
        "watermark_delay_s": 10.0,
    }
    profile = a_profile()
    return replace(
        profile,
        shape=replace(profile.shape, **(of_windows | shape)),
        observed_arrivals=SEEN,
    )


def with_memory(*, rocksdb: bool = False, state_bytes: int = 4 * GIB, **peaks: Any) -> JobProfile:
    """The counting query on two executors of four cores, with peaks on record."""
    measured: dict[str, Any] = {"peak_task_bytes": GIB // 4, "peak_heap_bytes": 5 * GIB}
    return replace(
        a_profile(),
        memory=MemoryProfile(**(measured | peaks)),
        state=StateProfile(
            rows=10**6, memory_bytes=state_bytes, commit_per_partition_s=0.001, growth_per_s=0.0
        ),
        state_partitions=8,
        source_partitions=4,
        state_store="RocksDBStateStoreProvider" if rocksdb else "HDFSBackedStateStoreProvider",
    )
