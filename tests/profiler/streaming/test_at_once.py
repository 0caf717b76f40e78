"""Batches of other queries that ran at the same time, and what the driver's phases are without."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import headway
from headway.assumptions.resources import (
    ALONE_PROCESSOR_RATIO,
    COMPILER_CORE_S,
    DRIVER_CPU_RATIO,
)
from headway.domain import Application, JobProfile
from headway.models.job.driver_load import DriverWork, driver_work, planned_driver
from tests.factories import a_profile, a_stage_observed
from tests.profiler.event_log import AppLog, Query

FIRST = Query(name="first", num_batches=30)
OTHER = replace(FIRST, name="other", query_id="9c1c7e0a-0d51-4a0e-9d1d-1f2e3d4c5b6a")


def profiled(folder: Path, *queries: Query) -> JobProfile:
    log = AppLog(executors=(8,))
    for query in queries:
        log.add(query)
    path = folder / "app-1"
    path.write_text("\n".join(map(json.dumps, log.events)), encoding="utf-8")
    return headway.profile(path, queries=["first"])


def test_a_query_alone_has_no_others(tmp_path: Path) -> None:
    alone = profiled(tmp_path, FIRST)
    assert alone.settings[0].concurrent_batches is None
    assert not any("of other queries" in note for note in alone.notes)
    later = replace(OTHER, started_s=FIRST.started_s + 3600.0)
    assert profiled(tmp_path, FIRST, later).settings[0].concurrent_batches is None


def test_batches_on_the_same_grid_run_at_once(tmp_path: Path) -> None:
    alike = profiled(tmp_path, FIRST, OTHER).settings[0]
    assert alike.concurrent_batches == pytest.approx(2.0, rel=0.05)
    assert any(
        "so did batches of other queries of its application (1 on average)" in note
        for note in profiled(tmp_path, FIRST, OTHER).notes
    )
    # Half as many batches of the other: one of two has company.
    seldom = replace(OTHER, trigger_s=2.0, num_batches=15, rate_per_s=FIRST.rate_per_s / 2)
    assert profiled(tmp_path, FIRST, seldom).settings[0].concurrent_batches == pytest.approx(
        1.5, rel=0.07
    )


def core_s(profile: JobProfile, at_once: float | None, age_s: float, **properties: str) -> float:
    application = replace(profile.application, properties=properties)
    setting = replace(profile.settings[0], concurrent_batches=at_once, jvm_age_s=age_s)
    return driver_work(
        replace(profile, applications=(application,), settings=(setting,)),
        (8, 8),
        batch_rows=0.0,
        interval_s=1.0,
        has_tasks=False,
    ).core_s


def test_phases_that_waited_for_other_batches_are_less_work() -> None:
    profile = a_profile()
    alone_s, launches_s = core_s(profile, None, 1e9), 12 / 4500
    assert alone_s == pytest.approx(DRIVER_CPU_RATIO.value * 0.081 + launches_s)
    # 81 of 310 ms are phases of the driver, so of eight batches 1 + 7 x 0.26 are there at once.
    at_once = 1.0 + 7.0 * 0.081 / 0.31
    waited_s = core_s(profile, 8.0, 1e9)
    assert waited_s - launches_s == pytest.approx(DRIVER_CPU_RATIO.value * 0.081 / at_once)
    enough = {"spark.driver.cores": "4"}
    assert core_s(profile, 8.0, 1e9, **enough) == pytest.approx(alone_s)


def test_in_one_jvm_threads_of_the_driver_wait_as_tasks_do() -> None:
    """Tasks of the stage that waits least were on a processor for half as long as those alone."""
    scan, aggregate = a_profile().stages
    shares = 0.5 * ALONE_PROCESSOR_RATIO.value, 0.2
    local = replace(
        a_profile(),
        applications=(Application(id="local-1", name="a", spark_version="4.3.0"),),
        stages=tuple(
            replace(stage, observed=a_stage_observed(cpu_ratio=share))
            for stage, share in zip((scan, aggregate), shares, strict=True)
        ),
    )
    phases_s, launches_s = DRIVER_CPU_RATIO.value * 0.081, 12 / 4500
    assert core_s(local, 2.0, 1e9) == pytest.approx(0.5 * phases_s + launches_s)
    assert core_s(local, None, 1e9) == pytest.approx(phases_s + launches_s)
    # Fifteen batches of 310 ms at once had eight cores, tasks included.
    rows = 3.5 * 5000.0**0.7
    tasks_s = shares[0] * (4 * (0.01 + 8e-4) + 5000 * 2e-6) + 0.2 * (8 * 0.06 + rows * 1.25e-5)
    crowded_s = core_s(local, 15.0, 1e9) - launches_s
    assert crowded_s == pytest.approx(8 * 0.31 / 15.0 - tasks_s)


def test_the_compiler_of_a_young_jvm_takes_cores() -> None:
    young = replace(a_profile().settings[0], jvm_age_s=100.0)
    work = driver_work(a_profile(settings=(young,)), (8, 8), batch_rows=0.0, interval_s=1.0)
    assert work.compiler_cores == pytest.approx(COMPILER_CORE_S.value / 100.0)
    driver = planned_driver([DriverWork(0.1, 1.0, compiler_cores=0.4)] * 8, cores=2)
    assert driver.knee_queries == pytest.approx(1.6 / 0.1)
    assert driver.utilization_ratio == pytest.approx((0.8 + 0.4) / 2)
    # At the knee all cores are busy.
    at_knee = planned_driver([DriverWork(0.1, 1.0, compiler_cores=0.4)] * 16, cores=2)
    assert at_knee.utilization_ratio == pytest.approx(1.0)
