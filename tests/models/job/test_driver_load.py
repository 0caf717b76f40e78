"""The work of the driver: how many queries it carries, by a simulation of shared cores."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headway.assumptions.resources import DRIVER_CPU_RATIO
from headway.domain import Application
from headway.domain.plan_parts import PlannedDriver
from headway.models.job.driver_load import (
    DriverWork,
    driver_heap_bytes,
    driver_work,
    live_heap_bytes,
    planned_driver,
)
from tests.factories import a_profile, a_stage_observed


def work_of(profile: object = None, **changes: object) -> DriverWork:
    setting: dict[str, object] = {"size": (8, 8), "batch_rows": 5000.0, "interval_s": 1.0}
    return driver_work(profile or a_profile(), **(setting | changes))  # type: ignore[arg-type]


def test_phases_and_tasks_take_core_time() -> None:
    # Phases of 2 + 21 + 30 + 28 ms; 4 + 8 tasks, of which a core launches 4,500 in a second.
    assert work_of().core_s == pytest.approx(DRIVER_CPU_RATIO.value * 0.081 + 12 / 4500)
    more_tasks = work_of(size=(8, 98))
    assert more_tasks.core_s - work_of().core_s == pytest.approx(90 / 4500)
    assert not work_of().has_tasks


def test_the_driver_waits_for_a_store_that_is_no_disk() -> None:
    shape = replace(a_profile().shape, checkpoint_store="s3")
    # Without 30 and 28 ms for its two logs.
    core_s = DRIVER_CPU_RATIO.value * 0.023 + 12 / 4500
    assert work_of(a_profile(shape=shape)).core_s == pytest.approx(core_s)


def test_tasks_in_the_same_jvm_take_its_cores_too() -> None:
    profile = a_profile()
    scan, aggregate = profile.stages
    observed = a_stage_observed(cpu_ratio=0.5)
    local = replace(
        profile,
        applications=(Application(id="local-1", name="a", spark_version="4.3.0"),),
        stages=(replace(scan, observed=observed), aggregate),
    )
    # Four tasks of 10 ms and 8 x 0.1 ms, half of it on a processor, and 2 us a row; the other
    # stage has no record: eight tasks of 60 ms, and 12.5 us for each of its rows.
    scanned_s = 0.5 * (4 * (0.01 + 8e-4) + 5000 * 2e-6)
    aggregated_s = 8 * 0.06 + 3.5 * 5000**0.7 * 1.25e-5
    work = work_of(local)
    assert work.has_tasks
    assert work.core_s == pytest.approx(work_of().core_s + scanned_s + aggregated_s)
    assert work_of(local, has_tasks=False).core_s == pytest.approx(work_of().core_s)


def simulated_interval_s(num_queries: int, core_ms: int, trigger_ms: int, cores: int) -> float:
    """Mean time between batches of queries that share cores evenly and start on a common grid."""
    until_ms, num_started = 20_000, 0
    due_ms, left_ms = [0] * num_queries, [0.0] * num_queries
    for now_ms in range(until_ms):
        for query in range(num_queries):
            if left_ms[query] <= 1e-9 and now_ms >= due_ms[query]:
                left_ms[query] = core_ms
                due_ms[query] = (now_ms // trigger_ms + 1) * trigger_ms
                num_started += now_ms >= until_ms // 2
        running = [query for query in range(num_queries) if left_ms[query] > 1e-9]
        share = min(1.0, cores / max(len(running), 1))
        for query in running:
            left_ms[query] -= share
    return 0.5e-3 * until_ms * num_queries / num_started


@pytest.mark.parametrize("num_queries", [3, 8, 12, 20])
def test_the_knee_is_where_simulated_batches_leave_their_triggers(num_queries: int) -> None:
    driver = planned_driver([DriverWork(core_s=0.2, interval_s=1.0)] * num_queries, cores=2)
    assert driver.knee_queries == pytest.approx(10.0)
    simulated_s = simulated_interval_s(num_queries, 200, 1000, 2)
    if num_queries < driver.knee_queries:
        assert not driver.is_saturated
        assert simulated_s == pytest.approx(1.0, rel=0.02)
    else:
        assert driver.is_saturated
        assert simulated_s == pytest.approx(num_queries / driver.knee_queries, rel=0.1)


def test_different_queries_add_up() -> None:
    works = [DriverWork(0.3, 1.0), DriverWork(0.3, 10.0), DriverWork(0.1, 0.5)]
    driver = planned_driver(works, cores=1)
    assert driver.busy_cores == pytest.approx(0.3 + 0.03 + 0.2)
    assert driver.knee_queries == pytest.approx(3 / 0.53)
    assert driver.knee_low_queries < driver.knee_queries < driver.knee_high_queries


def test_it_gets_the_fewest_cores_that_leave_room() -> None:
    for num_queries in (1, 5, 20, 40):
        works = [DriverWork(0.1, 1.0)] * num_queries
        driver = planned_driver(works)
        assert driver.cores == driver.needed_cores
        assert driver.utilization_ratio < 0.7
        if driver.cores > 1:
            fewer = planned_driver(works, driver.cores - 1)
            assert fewer.cores < fewer.needed_cores
    assert planned_driver([DriverWork(0.1, 1.0)] * 40).cores >= 6


def test_the_heap_grows_with_queries_and_kept_executions() -> None:
    of_query = live_heap_bytes(2, 0) - live_heap_bytes(1, 0)
    of_execution = live_heap_bytes(1, 1) - live_heap_bytes(1, 0)
    assert live_heap_bytes(30, 800) == pytest.approx(
        live_heap_bytes(0, 0) + 30 * of_query + 800 * of_execution
    )
    assert live_heap_bytes(1, 10**6) == live_heap_bytes(1, 1000)
    assert driver_heap_bytes(1) == 2**30
    assert driver_heap_bytes(1000) >= 2 * live_heap_bytes(1000, 1000)
    assert driver_heap_bytes(1000) % 2**20 == 0


def test_a_driver_without_cores_or_with_a_reversed_interval_is_refused() -> None:
    figures = {
        "num_queries": 1, "busy_cores": 0.5, "cores": 1, "needed_cores": 1, "knee_queries": 2.0,
        "knee_low_queries": 1.5, "knee_high_queries": 2.5, "heap_bytes": 2**30,
    }  # fmt: skip
    with pytest.raises(ValueError, match="at least 1 of each"):
        PlannedDriver(**(figures | {"cores": 0}))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="numbers in order"):
        PlannedDriver(**(figures | {"knee_low_queries": 3.0}))  # type: ignore[arg-type]
