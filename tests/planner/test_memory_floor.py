"""Memory has a floor: what the profiled run had. It is lowered only when asked, and by a proof."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import headway
from headway.domain import (
    ApplicationProfile,
    Deadline,
    JobProfile,
    NodeType,
    StreamAnswer,
)
from headway.emitters.wording import reasons
from headway.errors import InputError
from headway.formats.as_json import json_text, plan_json
from headway.formats.from_json import parse_plan
from headway.planner.profiled_memory import profiled_memory
from headway.report.explanation import explanation_text
from headway.report.sheet_text import sheet_text
from headway.report.stream import stream_sheet
from headway.units import spark_memory_bytes
from headway.words import all_words
from tests.factories import a_profile
from tests.planner.jobs import GIB, with_memory
from tests.planner.test_deadline import a_long_job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MIB = 2**20
SMALL: dict[str, Any] = {"peak_task_bytes": 8 * MIB, "peak_heap_bytes": 200 * MIB}
OVERHEAD = "spark.executor.memoryOverhead"
_OF_OVERHEAD: dict[str, Any] = {OVERHEAD: "1g"}


def small_job(
    memory: str | None = None, *, app_id: str = "app-1", state_bytes: int = 0, **properties: str
) -> JobProfile:
    """A job whose measured peaks are far below any usual heap."""
    profile = with_memory(state_bytes=state_bytes, **SMALL)
    application = replace(
        profile.applications[0],
        id=app_id,
        executor_memory=memory,
        properties={key.replace("_", "."): value for key, value in properties.items()},
    )
    return replace(profile, applications=(application,))


def plan_of(profile: JobProfile, **options: Any) -> StreamAnswer:
    answer: StreamAnswer = headway.plan(
        profile, rate=5000.0, target="p99 <= 3s", max_nodes=4, **options
    )
    return answer


@pytest.mark.parametrize(("memory", "given"), [(None, "1g"), ("4g", "4g"), ("600m", "600m")])
def test_no_plan_gives_less_than_ran(memory: str | None, given: str) -> None:
    answer = plan_of(small_job(memory))
    assert answer.spark_conf["spark.executor.memory"] == given
    assert answer.memory is not None
    assert answer.memory.needed_heap_bytes < spark_memory_bytes(given)
    assert not [one for one in answer.changes if one.setting == "executor memory"]
    assert reasons(answer)["spark.executor.memory"] == "as profiled"


@pytest.mark.parametrize("memory", [None, "4g"])
def test_it_is_lowered_when_asked_and_listed_as_a_change(memory: str | None) -> None:
    answer = plan_of(small_job(memory), lower_memory=True)
    assert answer.memory is not None
    given = answer.spark_conf["spark.executor.memory"]
    assert spark_memory_bytes(given) >= answer.memory.needed_heap_bytes
    assert spark_memory_bytes(given) < GIB
    (change,) = (one for one in answer.changes if one.setting == "executor memory")
    assert (change.before, change.after) == (memory or "1g", given)
    assert reasons(answer)["spark.executor.memory"].startswith(f"was {change.before}; applies when")


def test_a_peak_of_a_local_run_lowers_nothing_and_the_plan_says_so() -> None:
    local = small_job("4g", app_id="local-1700000000000")
    for answer in (plan_of(local), plan_of(local, lower_memory=True)):
        assert answer.spark_conf["spark.executor.memory"] == "4g"
        assert (
            sum(
                "one JVM together with the driver (local[n])" in one
                for one in all_words(answer.findings)
            )
            == 1
        )
    driver = small_job(None, app_id="local-1", spark_driver_memory="6g")
    assert plan_of(driver).spark_conf["spark.executor.memory"] == "6g"
    assert not any("local[n]" in one for one in all_words(plan_of(small_job("4g")).findings))


def test_without_peaks_the_heap_of_a_local_run_is_kept_too() -> None:
    profile = replace(small_job(None, app_id="local-1", spark_driver_memory="6g"), memory=None)
    assert plan_of(profile).spark_conf["spark.executor.memory"] == "6g"
    bare = replace(small_job(None), memory=None)
    assert "spark.executor.memory" not in plan_of(bare).spark_conf


def test_a_node_without_room_for_what_ran_is_refused_unless_less_is_allowed() -> None:
    kind = NodeType(name="small", cores=4, memory_bytes=3 * GIB)
    job = small_job("4g")
    with pytest.raises(InputError, match="needed less: a plan that may lower the memory fits"):
        plan_of(job, node_types=[kind])
    answer = plan_of(job, node_types=[kind], lower_memory=True)
    assert answer.memory is not None
    assert answer.memory.container_bytes <= 3 * GIB


def test_every_key_that_differs_is_a_change_and_only_what_is_equal_is_as_profiled() -> None:
    job = small_job(
        "2048",
        spark_dynamicAllocation_enabled="true",
        spark_memory_offHeap_enabled="true",
        spark_memory_offHeap_size="1g",
        **_OF_OVERHEAD,
    )
    answer = plan_of(job, cores=2, partitions=16)
    had = {one.key: one.profiled for one in answer.settings}
    changed = {one.setting for one in answer.changes}
    why = reasons(answer)
    for one in answer.settings:
        if one.key in answer.spark_conf:
            assert (one.setting in changed) == (had[one.key] != one.value), one
            assert (why.get(one.key) == "as profiled") == (had[one.key] == one.value), one
    assert "dynamic allocation" in changed
    assert why["spark.dynamicAllocation.enabled"].startswith("was true; applies when")
    assert answer.spark_conf["spark.memory.offHeap.size"] == "1g"
    assert answer.spark_conf[OVERHEAD] == "1g"
    assert answer.memory is not None
    assert answer.memory.container_bytes == (2 + 1 + 1) * GIB


def test_state_outside_the_heap_is_beside_it_and_a_change() -> None:
    job = with_memory(rocksdb=True, **SMALL)
    answer = plan_of(job)
    assert answer.memory is not None
    assert answer.memory.overhead_bytes >= answer.memory.native_bytes > 0
    (change,) = (one for one in answer.changes if one.setting == "memory beside the heap")
    assert (change.before, change.after) == ("not set", answer.spark_conf[OVERHEAD])


def test_the_derivation_is_shown_everywhere() -> None:
    answer = plan_of(small_job("4g"))
    assert answer.memory is not None
    data = plan_json(answer)["memory"]
    assert isinstance(data, dict)
    assert data["profiled_heap_bytes"] == data["heap_bytes"] == 4 * GIB
    assert parse_plan(json_text(plan_json(answer)), name="p").memory == answer.memory
    for text in (sheet_text(stream_sheet(answer)), explanation_text(answer)):
        for part in (
            "Spark and the program",
            "headroom",
            "heap needed",
            "heap profiled",
            "as in the profiled run; more than needed, but not lowered",
            "memory overhead",
            "container",
        ):
            assert part in text, part


def test_what_a_spec_gives_is_taken_and_too_little_is_said() -> None:
    heavy = with_memory()
    answer = plan_of(heavy, executor_memory_bytes=2 * GIB)
    assert answer.spark_conf["spark.executor.memory"] == "2g"
    assert answer.memory is not None
    assert answer.memory.heap_bytes == 2 * GIB
    assert any("2g, as requested, is less than the" in one for one in all_words(answer.findings))
    assert ("8g", "2g") in [(one.before, one.after) for one in answer.changes]


def batch(memory: str | None, **properties: str) -> ApplicationProfile:
    """A batch job on executors of two cores."""
    profile = a_long_job()
    application = replace(
        profile.application,
        executor_memory=memory,
        properties={key.replace("_", "."): value for key, value in properties.items()},
    )
    cluster = replace(profile.cluster, cores_per_executor=2, task_cpus=1)
    return replace(profile, application=application, cluster=cluster)


@pytest.mark.parametrize(
    ("cores", "lower", "given"), [(2, False, "8g"), (1, False, "8g"), (1, True, "4g"),
                                  (4, False, "16g")],
)  # fmt: skip
def test_batch_plans_have_the_same_floor(cores: int, *, lower: bool, given: str) -> None:
    answer = headway.plan(
        batch("8g", spark_dynamicAllocation_enabled="true", **{OVERHEAD: "2g"}),
        target=Deadline(limit_s=1e6),
        cores=cores,
        lower_memory=lower,
    )
    assert answer.spark_conf["spark.executor.memory"] == given
    assert answer.spark_conf[OVERHEAD] == "2g"
    changed = {one.setting: (one.before, one.after) for one in answer.changes}
    assert changed.get("executor memory") == (None if given == "8g" else ("8g", given))
    assert changed["dynamic allocation"] == ("true", "false")
    why = reasons(answer)
    assert (why["spark.executor.memory"] == "as profiled") == (given == "8g")
    assert why[OVERHEAD] == "as profiled"


def test_a_batch_job_that_set_nothing_is_left_sparks_default() -> None:
    answer = headway.plan(batch(None), target=Deadline(limit_s=1e6))
    assert "spark.executor.memory" not in answer.spark_conf


def test_a_bare_size_off_the_heap_counts_bytes() -> None:
    application = replace(
        a_profile().applications[0],
        properties={
            "spark.memory.offHeap.enabled": "true",
            "spark.memory.offHeap.size": str(GIB),
            OVERHEAD: "1024",
        },
    )
    had = profiled_memory(application)
    assert (had.off_heap_bytes, had.overhead_bytes) == (GIB, GIB)


@pytest.mark.spark
def test_spark_reads_the_sizes_that_were_planned(spark: SparkSession) -> None:
    """Spark's own reader of sizes, on every size that a plan emits."""
    job = small_job(
        "3g",
        spark_memory_offHeap_enabled="true",
        spark_memory_offHeap_size=str(GIB),
        state_bytes=4 * GIB,
    )
    job = replace(job, state_store="RocksDBStateStoreProvider")
    answer = plan_of(job)
    assert answer.memory is not None
    jvm = spark._jvm
    assert jvm is not None
    read = jvm.org.apache.spark.network.util.JavaUtils.byteStringAsMb
    conf, memory = answer.spark_conf, answer.memory
    assert read(conf["spark.executor.memory"]) * MIB == memory.heap_bytes == 3 * GIB
    assert 0 <= read(conf[OVERHEAD]) * MIB - memory.overhead_bytes < MIB
    assert memory.overhead_bytes > memory.native_bytes > 0
    assert read(conf["spark.memory.offHeap.size"]) * MIB == memory.off_heap_bytes == GIB
    assert jvm.org.apache.spark.SparkConf(False).set(
        "spark.memory.offHeap.size", conf["spark.memory.offHeap.size"]
    ).getSizeAsBytes("spark.memory.offHeap.size") == GIB  # fmt: skip


def recorded_state(
    size_bytes: int, *, rocksdb: bool = False, heap: str | None = None
) -> JobProfile:
    """A query whose log has no peaks, only the size of its state."""
    profile = with_memory(state_bytes=size_bytes, rocksdb=rocksdb)
    application = replace(profile.applications[0], executor_memory=heap)
    return replace(profile, memory=None, applications=(application,))


@pytest.mark.parametrize("rocksdb", [False, True])
def test_without_peaks_a_recorded_state_needs_nodes_that_hold_it(*, rocksdb: bool) -> None:
    """The executors of the fewest nodes hold it, those of one node less do not."""
    kind = NodeType(name="small", cores=4, memory_bytes=16 * GIB)
    state_bytes = 36 * GIB
    answer = plan_of(recorded_state(state_bytes, rocksdb=rocksdb), node_types=[kind])
    assert answer.feasible
    assert answer.memory is not None
    assert answer.nodes > 1
    assert answer.memory.container_bytes * answer.executors <= answer.nodes * 16 * GIB
    held = answer.memory.overhead_bytes if rocksdb else answer.memory.heap_bytes
    assert held * answer.executors >= state_bytes
    assert 16 * GIB * (answer.nodes - 1) < 1.4 * state_bytes  # headroom, overhead, Spark itself
    with pytest.raises(InputError, match="too little memory"):
        plan_of(recorded_state(400 * GIB, rocksdb=rocksdb), node_types=[kind])


def test_without_peaks_and_node_type_the_heap_holds_the_recorded_state() -> None:
    answer = plan_of(recorded_state(20 * GIB, heap="4g"))
    assert answer.memory is not None
    assert answer.memory.heap_bytes * answer.executors > 20 * GIB
    assert answer.memory.reason == "recorded state plus headroom"
    assert "tasks" not in answer.memory.parts
    shown = explanation_text(answer)
    assert "recorded state plus headroom" in shown
    assert "measured peak" not in shown
    as_it_ran = plan_of(recorded_state(GIB // 8, heap="4g"))
    assert as_it_ran.spark_conf["spark.executor.memory"] == "4g"


def test_a_fixed_heap_has_enough_executors_for_the_state_or_is_refused() -> None:
    profile = recorded_state(6 * GIB)
    answer = plan_of(profile, executor_memory_bytes=2 * GIB)
    assert answer.feasible
    assert answer.executors * (2 * GIB - 300 * MIB) >= 6 * GIB
    assert (answer.executors - 1) * (2 * GIB - 300 * MIB) < 6 * GIB
    with pytest.raises(
        InputError, match=r"^a heap of 2g is too small for the recorded state"
    ) as why:
        plan_of(recorded_state(60 * GIB), executor_memory_bytes=2 * GIB)
    assert "15g are in each executor even on 4 nodes" in str(why.value)


def test_no_peaks_lower_nothing_whatever_the_state() -> None:
    answer = plan_of(recorded_state(GIB // 8, heap="4g"), lower_memory=True)
    assert answer.spark_conf["spark.executor.memory"] == "4g"
