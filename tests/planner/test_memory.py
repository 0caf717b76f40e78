"""Memory of an executor: from measured peaks to heap, overhead and container."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from headway.domain import Arrivals, NodeType, Target
from headway.planner.memory import (
    fewest_nodes_by_memory,
    memory_need,
    memory_plan,
    needed_container_bytes,
    overhead_bytes,
)
from headway.planner.search import plan
from headway.planner.space import SearchSpace
from headway.units import parse_size_bytes
from tests.factories import a_profile
from tests.planner.jobs import GIB, with_memory


def test_the_profiled_setting_needs_what_it_had_and_some_headroom() -> None:
    need = memory_need(with_memory(), executors=2, cores_per_executor=4)
    assert need is not None
    assert sum(need.parts.values()) == need.heap_bytes
    without = need.heap_bytes - need.parts["headroom"]
    # 5 GiB were seen, of which 1 GiB tasks; what spills no more needs a larger share of the heap.
    assert 5 * GIB <= without < 5.7 * GIB
    assert need.parts["state"] == 2 * GIB


def test_rocksdb_keeps_state_outside_the_heap() -> None:
    heap, native = (
        memory_need(with_memory(rocksdb=rocksdb), executors=2, cores_per_executor=4)
        for rocksdb in (False, True)
    )
    assert heap is not None
    assert native is not None
    assert heap.native_bytes == 0
    assert native.native_bytes == 2 * GIB
    assert native.parts["state"] == 0
    given_memory = memory_plan(with_memory(rocksdb=True), None, 1, 2, 4)
    assert given_memory is not None
    assert given_memory.overhead_bytes == overhead_bytes(given_memory.heap_bytes, 2 * GIB)


@given(executors=st.integers(1, 64), cores=st.integers(1, 32), rocksdb=st.booleans())
def test_more_executors_never_need_more_each_and_more_cores_never_less(
    executors: int, cores: int, rocksdb: bool
) -> None:
    profile = with_memory(rocksdb=rocksdb)
    here = needed_container_bytes(profile, executors, cores)
    assert needed_container_bytes(profile, executors + 1, cores) <= here
    assert needed_container_bytes(profile, executors, cores + 1) >= here


@given(memory=st.integers(GIB, 64 * GIB), per_node=st.integers(1, 3), max_nodes=st.integers(1, 40))
def test_the_fewest_nodes_by_memory_are_those_of_a_scan(
    memory: int, per_node: int, max_nodes: int
) -> None:
    kind = NodeType(name="n", cores=12, memory_bytes=memory)
    profile = with_memory(state_bytes=60 * GIB, peak_heap_bytes=34 * GIB)
    scanned = next(
        (
            nodes
            for nodes in range(1, max_nodes + 1)
            if needed_container_bytes(profile, nodes * per_node, 4) <= memory // per_node
        ),
        None,
    )
    assert fewest_nodes_by_memory(profile, kind, per_node, 4, max_nodes) == scanned


@given(memory=st.integers(3 * GIB, 200 * GIB), per_node=st.integers(1, 4))
def test_a_container_never_exceeds_its_share_of_the_node(memory: int, per_node: int) -> None:
    kind = NodeType(name="n", cores=8, memory_bytes=memory)
    found = memory_plan(a_profile(), kind, per_node, per_node, 2)
    assert found is not None
    if found.heap_bytes >= found.needed_heap_bytes:
        assert found.container_bytes <= memory // per_node
    assert found.heap_bytes <= parse_size_bytes("31g")


def test_without_a_record_memory_is_as_profiled() -> None:
    assert memory_plan(a_profile(), None, 1, 2, 4) is None
    found = plan(
        a_profile(),
        Arrivals(rate_per_s=5000.0),
        Target.parse("p99 <= 2s"),
        SearchSpace(max_nodes=2, cores_per_executor=4),
    )
    assert found.memory is None
    assert found.spark_conf["spark.executor.memory"] == "8g"


def test_a_heap_too_small_for_the_plan_is_raised() -> None:
    profile = with_memory(state_bytes=20 * GIB, peak_heap_bytes=12 * GIB)
    small = replace(profile.applications[0], executor_memory="1g")
    found = memory_plan(replace(profile, applications=(small,)), None, 1, 1, 4)
    assert found is not None
    assert found.heap_bytes >= found.needed_heap_bytes > 20 * GIB
