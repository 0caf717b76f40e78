"""Memory of an executor: from measured peaks to heap, overhead and container."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.domain import (
    Arrivals,
    JobProfile,
    NodeType,
    StreamAnswer,
    Target,
)
from headway.errors import InputError
from headway.planner.memory import (
    fewest_nodes_by_memory,
    memory_need,
    memory_plan,
    needed_container_bytes,
    overhead_bytes,
)
from headway.planner.question import SearchSpace
from headway.sparkconf.container import PYTHON_MEMORY_KEY
from headway.units import parse_size_bytes
from headway.words import all_words
from tests.factories import a_profile
from tests.planner.jobs import GIB, with_memory
from tests.planner.plans import plan


def executors_of(cores: int, per_node: int = 1, kind: NodeType | None = None) -> SearchSpace:
    """Executors of so many cores, a number of them on a node."""
    return SearchSpace(
        max_nodes=1, executors_per_node=per_node, cores_per_executor=cores, node_type=kind
    )


def test_the_profiled_setting_needs_what_it_had_and_some_headroom() -> None:
    need = memory_need(with_memory(), executors_of(4), 2)
    assert sum(need.parts.values()) == need.heap_bytes
    without = need.heap_bytes - need.parts["headroom"]
    # 5 GiB were seen, of which 1 GiB tasks; what spills no more needs a larger share of the heap.
    assert 5 * GIB <= without < 5.7 * GIB
    assert need.parts["state"] == 2 * GIB


def test_memory_is_for_tasks_that_run_side_by_side_not_for_cores() -> None:
    """Of two cores a task half as many run: the peaks of half as many tasks are needed."""
    profile = with_memory()
    (seen,) = profile.settings
    paired = replace(
        profile,
        settings=(replace(seen, configuration=replace(seen.configuration, task_cpus=2)),),
    )
    peak = profile.memory.peak_task_bytes if profile.memory is not None else 0
    ones = memory_plan(profile, executors_of(8), 2)
    pairs = memory_plan(paired, replace(executors_of(8), task_cpus=2), 2)
    assert ones is not None
    assert pairs is not None
    assert ones.parts["tasks"] == 8 * peak
    assert pairs.parts["tasks"] == 4 * peak


def test_rocksdb_keeps_state_outside_the_heap() -> None:
    heap, native = (
        memory_need(with_memory(rocksdb=rocksdb), executors_of(4), 2) for rocksdb in (False, True)
    )
    assert heap.native_bytes == 0
    assert native.native_bytes == 2 * GIB
    assert native.parts["state"] == 0
    given_memory = memory_plan(with_memory(rocksdb=True), executors_of(4), 2)
    assert given_memory is not None
    assert given_memory.overhead_bytes == overhead_bytes(given_memory.heap_bytes, 2 * GIB)


@given(executors=st.integers(1, 64), cores=st.integers(1, 32), rocksdb=st.booleans())
def test_more_executors_never_need_more_each_and_more_cores_never_less(
    executors: int, cores: int, rocksdb: bool
) -> None:
    profile = with_memory(rocksdb=rocksdb)
    here = needed_container_bytes(profile, executors_of(cores), executors)
    assert needed_container_bytes(profile, executors_of(cores), executors + 1) <= here
    assert needed_container_bytes(profile, executors_of(cores + 1), executors) >= here


@given(memory=st.integers(GIB, 64 * GIB), per_node=st.integers(1, 3), max_nodes=st.integers(1, 40))
def test_the_fewest_nodes_by_memory_are_those_of_a_scan(
    memory: int, per_node: int, max_nodes: int
) -> None:
    kind = NodeType(name="n", cores=12, memory_bytes=memory)
    profile = with_memory(state_bytes=60 * GIB, peak_heap_bytes=34 * GIB)
    space = replace(executors_of(4, per_node, kind), max_nodes=max_nodes)
    scanned = next(
        (
            nodes
            for nodes in range(1, max_nodes + 1)
            if needed_container_bytes(profile, space, nodes * per_node) <= memory // per_node
        ),
        None,
    )
    assert fewest_nodes_by_memory(profile, space) == scanned


@given(memory=st.integers(3 * GIB, 200 * GIB), per_node=st.integers(1, 4))
def test_a_container_never_exceeds_its_share_of_the_node(memory: int, per_node: int) -> None:
    kind = NodeType(name="n", cores=8, memory_bytes=memory)
    found = memory_plan(a_profile(), executors_of(2, per_node, kind), per_node)
    assert found is not None
    if found.heap_bytes >= found.needed_heap_bytes:
        assert found.container_bytes <= memory // per_node
    assert found.heap_bytes <= parse_size_bytes("31g")


def test_without_a_record_memory_is_as_profiled() -> None:
    assert memory_plan(a_profile(), executors_of(4), 2) is None
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
    found = memory_plan(replace(profile, applications=(small,)), executors_of(4), 1)
    assert found is not None
    assert found.heap_bytes >= found.needed_heap_bytes > 20 * GIB


def with_python(allowed: str | None) -> JobProfile:
    """Executors of four cores whose Python workers were allowed so much."""
    profile = with_memory()
    properties = {} if allowed is None else {PYTHON_MEMORY_KEY: allowed}
    return replace(
        profile,
        applications=(replace(profile.applications[0], properties=properties),),
        shape=replace(profile.shape, python_operators=("MapInPandas",)),
    )


def planned_with_python(allowed: str | None, memory: str = "64g") -> StreamAnswer:
    kind = NodeType(name="n", cores=8, memory_bytes=parse_size_bytes(memory), executors_per_node=1)
    target, space = Target.parse("p99 <= 3s"), SearchSpace(max_nodes=4)
    arrivals = Arrivals(rate_per_s=5000.0)
    return plan(with_python(allowed), arrivals, target, space, node_types=[kind])


@pytest.mark.parametrize("allowed", ["2g", "2048", "2048m"])
def test_python_workers_keep_what_they_were_allowed_by_cores(allowed: str) -> None:
    found = planned_with_python(allowed)
    assert found.memory is not None
    # Twice the cores of the profiled executors, and so twice the workers.
    assert found.memory.python_bytes == 4 * GIB
    assert found.spark_conf[PYTHON_MEMORY_KEY] == "4g"
    assert found.memory.container_bytes <= 64 * GIB
    assert not any("Python" in text for text in all_words(found.findings))


def test_without_a_record_python_gets_sparks_own_rule_and_the_plan_says_so() -> None:
    found = planned_with_python(None)
    assert found.memory is not None
    assert found.memory.python_bytes == 0
    assert found.memory.overhead_bytes >= 0.4 * found.memory.heap_bytes
    assert "spark.executor.memoryOverhead" in found.spark_conf
    assert found.memory.container_bytes <= 64 * GIB
    assert sum(PYTHON_MEMORY_KEY in text for text in all_words(found.findings)) == 1


def test_python_workers_can_be_what_a_node_has_no_room_for() -> None:
    with pytest.raises(InputError, match="too little memory: an executor of 8 cores needs"):
        planned_with_python("24g", memory="40g")
    assert planned_with_python("24g").nodes == 1
