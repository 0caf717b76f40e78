"""Calibrations of the published cluster runs give back what made-up runs were made of."""

from __future__ import annotations

from pathlib import Path

import clusters
import numpy as np
import pytest
from scale import host_counts, stream_clusters, task_counts

from headway.errors import HeadwayError

LAW = stream_clusters.Law(
    core_per_row_s=6e-5,
    own_cores=0.25,
    growth_per_core=0.05,
    wait_s=2.0,
    turn_s=0.5,
    p99_ratio=1.4,
)


def made_up_run(workers: int, cores_per_worker: int, rate_per_s: float) -> stream_clusters.Run:
    """A run that follows `LAW`, and loses its output beyond what the law carries."""
    run = stream_clusters.Run(
        workers=workers,
        cores_per_worker=cores_per_worker,
        rate_per_s=rate_per_s,
        delay_s=3.0,
        p50_s=1.0,
        p99_s=1.0,
    )
    if not LAW.carries(run):
        return stream_clusters.Run(
            workers=workers,
            cores_per_worker=cores_per_worker,
            rate_per_s=rate_per_s,
            delay_s=300.0,
            p50_s=None,
            p99_s=None,
        )
    return stream_clusters.Run(
        workers=workers,
        cores_per_worker=cores_per_worker,
        rate_per_s=rate_per_s,
        delay_s=3.0,
        p50_s=LAW.p50_s(run),
        p99_s=LAW.p99_s(run),
    )


def test_a_calibration_gives_back_the_law_that_made_the_runs() -> None:
    fitted = [
        made_up_run(workers, cores, load * workers * (cores - 0.25) / 6e-5)
        for workers, cores in ((1, 6), (6, 1), (2, 6), (4, 6))
        for load in (0.01, 0.5, 0.8, 0.87, 0.93)
    ]
    law = stream_clusters.fit(fitted, grows=True)
    larger = made_up_run(6, 6, 0.7 * 6 * 5.75 / 6e-5)
    assert larger.p50_s is not None
    assert law.capacity_per_s(larger) == pytest.approx(LAW.capacity_per_s(larger), rel=0.03)
    assert law.p50_s(larger) == pytest.approx(larger.p50_s, rel=0.03)
    assert law.p99_s(larger) == pytest.approx(LAW.p99_s(larger), rel=0.03)


def test_a_run_without_latencies_whose_output_kept_up_is_neither_carried_nor_lost() -> None:
    run = stream_clusters.Run(
        workers=2, cores_per_worker=6, rate_per_s=152380, delay_s=2.8, p50_s=None, p99_s=None
    )
    assert run.is_unclear


def test_tasks_at_a_common_resource_are_predicted_as_the_exact_network_has_them() -> None:
    count = np.arange(1.0, 71.0)
    curve = task_counts.Curve(count, 650.0 / np.minimum(count, 29.0), np.zeros(70))
    exact = task_counts.queued_memory_s(curve)
    assert task_counts.shared_memory_s(curve) == pytest.approx(exact, rel=0.035)
    # Never faster than the work allows, nor than a core for each task.
    assert np.all(exact >= task_counts.shared_cores_s(curve) * (1.0 - 1e-9))
    assert task_counts.shared_cores_s(curve)[:29] == pytest.approx(task_counts.ideal_s(curve)[:29])


def test_times_in_stages_scale_with_hosts_and_data_as_they_were_made() -> None:
    def run(hosts: int, data_size: float) -> host_counts.Run:
        waves = np.ceil(1200 / (hosts * 16))
        return host_counts.Run(
            job="j",
            hosts=hosts,
            data_size=data_size,
            num_stages=20,
            num_tasks=1200,
            stages_s=30.0 + waves * (2.0 + 0.5 * data_size),
        )

    fitted = [run(hosts, size) for hosts in (3, 5) for size in (1.0, 5.0, 20.0)]
    others = [run(hosts, size) for hosts in (7, 10) for size in (2.0, 10.0)]
    predicted = host_counts.predicted_s(others, fitted)
    # Tasks are taken as uneven, which costs them less than whole waves.
    assert predicted == pytest.approx([one.stages_s for one in others], rel=0.08)


def test_a_folder_without_the_runs_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(HeadwayError, match="no published runs there"):
        clusters.page(tmp_path)
