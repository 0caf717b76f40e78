"""Plans of queries with state in RocksDB: the bound of its memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headway.api.plan import plan
from headway.domain import JobProfile, StateOperatorProfile
from headway.planner.memory import memory_need
from headway.planner.profiled_memory import state_in_rocksdb
from headway.planner.question import SearchSpace
from tests.factories import kept
from tests.planner.jobs import with_memory

MIB = 2**20
PREFIX = "spark.sql.streaming.stateStore.rocksdb"
WROTE = {"rocksdbPutCount": 1000.0, "rocksdbTotalBytesWritten": 96_000.0}


def in_rocksdb(*, conf: dict[str, str] | None = None, **metrics: float) -> JobProfile:
    """A million rows in eight stores on two executors; a batch writes 1,000 with 96 bytes each."""
    profile = with_memory(rocksdb=True, state_bytes=10**9)
    assert profile.state is not None
    operator = StateOperatorProfile(
        name="stateStoreSave",
        rows=10**6,
        memory_bytes=10**9,
        num_stores=8,
        commit_s=0.1,
        store_metrics=WROTE | metrics,
    )
    return replace(
        profile,
        applications=(replace(profile.application, properties=conf or {}),),
        state=replace(profile.state, operators=(operator,), updated_rows=1000.0),
    )


def test_an_executor_has_its_share_of_rows_and_stores() -> None:
    state = state_in_rocksdb(in_rocksdb(), 2)
    assert state is not None
    assert (state.rows, state.row_bytes, state.num_stores) == (500_000, 96.0, 4)
    assert (state.rows_per_batch, state.batches_per_flush) == (500, 1)
    # Eight caches of 8 MiB for 96 MB of rows.
    assert state.data_hit_ratio == pytest.approx(64 * MIB / 96e6)


@pytest.mark.parametrize(
    ("conf", "cache_bytes"),
    [
        ({f"{PREFIX}.blockCacheSizeMB": "4"}, 8 * 4 * MIB),
        # Half of 20 MiB on each of two executors; the size of a cache no longer counts.
        (
            {
                f"{PREFIX}.boundedMemoryUsage": "true",
                f"{PREFIX}.maxMemoryUsageMB": "20",
                f"{PREFIX}.blockCacheSizeMB": "4",
            },
            2 * 10 * MIB,
        ),
        ({f"{PREFIX}.blockCacheSizeMB": "1000"}, 96e6),
    ],
    ids=["cache of a store", "bound", "all of it"],
)
def test_the_cache_of_the_run_stays(conf: dict[str, str], cache_bytes: float) -> None:
    state = state_in_rocksdb(in_rocksdb(conf=conf), 2)
    assert state is not None
    assert state.data_hit_ratio == pytest.approx(cache_bytes / 96e6)


def test_changelogs_fill_the_buffers_between_snapshots() -> None:
    changelog = {f"{PREFIX}.changelogCheckpointing.enabled": "true"}
    state = state_in_rocksdb(in_rocksdb(conf=changelog), 2)
    assert state is not None
    assert state.batches_per_flush == 10


def test_the_plan_sets_the_bound_and_reserves_it() -> None:
    profile = in_rocksdb()
    found = kept(plan(profile, rate="5k/s", target="p99 <= 4s", max_nodes=4))
    assert found.memory is not None
    bound = found.memory.rocksdb
    assert bound is not None
    assert found.memory.native_bytes == bound.native_bytes
    conf = found.spark_conf
    assert conf[f"{PREFIX}.boundedMemoryUsage"] == "true"
    assert int(conf[f"{PREFIX}.maxMemoryUsageMB"]) * MIB == bound.bound_bytes
    shares = [
        float(conf[f"{PREFIX}.{name}"])
        for name in ("writeBufferCacheRatio", "highPriorityPoolRatio")
    ]
    assert sum(shares) < 1.0
    assert found.memory.container_bytes >= found.memory.heap_bytes + bound.native_bytes


@pytest.mark.parametrize("metrics", [{"rocksdbPutCount": 0.0}, {"rocksdbTotalBytesWritten": 0.0}])
def test_without_the_bytes_of_its_rows_it_gets_what_it_held(metrics: dict[str, Any]) -> None:
    space = SearchSpace(max_nodes=1, executors_per_node=1, cores_per_executor=4, node_type=None)
    need = memory_need(in_rocksdb(**metrics), space, 2)
    assert need.rocksdb is None
    assert need.native_bytes == 5 * 10**8
