from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headway.domain import (
    Application,
    ApplicationProfile,
    Cluster,
    Coverage,
    MemoryProfile,
    RecordedStage,
    Share,
)
from headway.domain.application_profile import (
    MOST_STAGES,
    DStreamsProfile,
    OtherStages,
    Spread,
)


def a_recorded_stage(**changes: Any) -> RecordedStage:
    """Ten tasks of two seconds that read rows from outside."""
    return replace(
        RecordedStage(
            id=0,
            job=0,
            num_tasks=10,
            num_finished=10,
            num_failed=0,
            num_attempts=1,
            task_mean_s=2.0,
            task_sd_s=0.5,
            task_max_s=3.5,
            task_fixed_s=0.05,
            submitted_s=4.0,
            completed_s=9.5,
            rows_read=1000,
            rows_written=250,
            largest_task_ratio=1.5,
            input_bytes=80_000,
            shuffle_read_bytes=0,
            shuffle_write_bytes=9_000,
            peak_task_bytes=4_000_000,
            spilled_bytes=0,
            gc_ratio=0.02,
            cpu_ratio=0.9,
            python_ratio=0.25,
        ),
        **changes,
    )


def a_batch_application(**changes: Any) -> ApplicationProfile:
    """A scan and an aggregation behind it on two executors of four cores."""
    everything = Share(seen=20, expected=20)
    return replace(
        ApplicationProfile(
            headway_version="0.1.0",
            kind="batch",
            application=Application(id="app-1", name="nightly", spark_version="4.3.0"),
            cluster=Cluster(executors=2, executors_mean=1.75, cores_per_executor=4),
            started="2026-09-21T14:13:20Z",
            duration_s=30.0,
            driver_only_s=12.5,
            num_jobs=2,
            num_jobs_failed=0,
            stages=(
                a_recorded_stage(),
                a_recorded_stage(
                    id=2,
                    parents=(0,),
                    task_mean_s=0.5,
                    task_sd_s=None,
                    task_max_s=0.5,
                    rows_read=0,
                    rows_written=0,
                    largest_task_ratio=None,
                    gc_ratio=0.0,
                    cpu_ratio=None,
                    python_ratio=None,
                ),
            ),
            other_stages=OtherStages(num_stages=1, num_tasks=3, task_time_s=0.25),
            memory=MemoryProfile(peak_task_bytes=4_000_000),
            coverage=Coverage(
                tasks=everything,
                stages=everything,
                jobs=everything,
                batches=everything,
                executors=everything,
                has_start=True,
                has_end=True,
            ),
        ),
        **changes,
    )


def a_dstreams_application(**changes: Any) -> ApplicationProfile:
    """The same stages every two seconds, with one receiver."""
    half = Spread(mean_s=0.5, sd_s=0.125, p50_s=0.5, p95_s=0.75, p99_s=0.875, max_s=1.0)
    return replace(
        a_batch_application(),
        kind="dstreams",
        dstreams=DStreamsProfile(
            batch_interval_s=2.0,
            num_batches=100,
            num_batches_cut=12,
            num_batches_incomplete=1,
            num_receivers=1,
            processing_time=half,
            scheduling_delay=half,
            rows_per_batch=12_500.0,
            num_typical_batches=90,
        ),
        **changes,
    )


def some_dstreams(**changes: Any) -> DStreamsProfile:
    found = a_dstreams_application().dstreams
    assert found is not None
    return replace(found, **changes)


def test_slots_are_whole_tasks_per_executor() -> None:
    cluster = Cluster(executors=3, executors_mean=3.0, cores_per_executor=5)
    assert cluster.num_slots == 15
    assert replace(cluster, task_cpus=2).num_slots == 6
    assert replace(cluster, cores_per_executor=None).num_slots is None


def test_task_time_counts_what_finished() -> None:
    assert a_recorded_stage(num_finished=7, num_failed=2).task_time_s == pytest.approx(14.0)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"stages": ()}, "at least one stage"),
        ({"stages": (a_recorded_stage(),) * (MOST_STAGES + 1)}, "101 stages; expected at most 100"),
        (
            {"stages": (a_recorded_stage(parents=(0,)),)},
            r"parents are \[0\]; expected places befor",
        ),
        ({"kind": "dstreams"}, "dstreams belongs to the kind 'dstreams' only"),
        ({"dstreams": a_dstreams_application().dstreams}, "belongs to the kind 'dstreams' only"),
        ({"driver_only_s": 31.0}, "expected between 0 and duration_s"),
        ({"duration_s": float("inf")}, "expected between 0 and duration_s"),
        ({"num_jobs_failed": -1}, "num_jobs_failed is -1"),
    ],
)
def test_what_makes_no_application_is_refused(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        a_batch_application(**changes)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: Cluster(executors=0, executors_mean=0.0), "executors is 0"),
        (
            lambda: Cluster(executors=1, executors_mean=1.0, cores_per_executor=0),
            "cores_per_executor is 0",
        ),
        (lambda: Cluster(executors=1, executors_mean=1.0, task_cpus=0), "task_cpus is 0"),
        (
            lambda: a_recorded_stage(submitted_s=2.0, completed_s=1.0),
            "completed_s is 1.0; expected 2.0",
        ),
        (lambda: a_recorded_stage(submitted_s=-1.0), "submitted_s is -1.0"),
        (lambda: a_recorded_stage(task_mean_s=-1.0), "mean_s is -1.0"),
        (lambda: a_recorded_stage(num_finished=0), "num_finished is 0"),
        (
            lambda: some_dstreams(batch_interval_s=0.0),
            "batch_interval_s is 0.0",
        ),
        (
            lambda: some_dstreams(num_typical_batches=101),
            "num_typical_batches is 101 of 100",
        ),
    ],
)
def test_numbers_out_of_range_are_refused(make: Any, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        make()


@pytest.mark.parametrize("name", ["mean_s", "p95_s", "p99_s", "max_s", "min_s"])
def test_durations_are_not_negative(name: str) -> None:
    delays = some_dstreams().scheduling_delay
    with pytest.raises(ValueError, match=name):
        replace(delays, **{name: -0.5})
