"""A hot key is distinguished from chance, and from tasks that are slow for other reasons."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headway.profiler.streaming.samples import StageSample
from headway.profiler.streaming.stage_runs import hot_share_ratio
from headway.profiler.streaming.task_times import unexplained_s2
from tests.factories import a_stage_sample
from tests.profiler.streaming.test_stage_fit import a_run, recorded


def a_sample(num_tasks: int, largest: float, rows: float = 1e4) -> StageSample:
    """A stage whose largest task reads ``largest`` of ``rows``, the others alike, 1 us a row."""
    others = (rows - largest) / (num_tasks - 1) if num_tasks > 1 else 0.0
    of_task = np.array([largest, *[others] * (num_tasks - 1)])
    time_s = 0.01 + 1e-6 * of_task
    return a_stage_sample(
        level=1,
        num_tasks=num_tasks,
        rows=rows,
        rows_largest=largest,
        task_mean_s=float(time_s.mean()),
        task_sd_s=float(time_s.std()),
        rows_variance=float(of_task.var()),
        rows_time_covariance_s=float(np.cov(of_task, time_s, bias=True)[0, 1]),
    )


def test_a_hot_key_has_its_share_at_any_number_of_tasks() -> None:
    samples = [a_sample(n, 1e4 * (0.3 + 0.7 / n)) for n in (2, 8, 16)]
    assert hot_share_ratio(samples) == pytest.approx(0.3)


def test_chance_that_more_tasks_do_not_confirm_is_no_hot_key() -> None:
    assert hot_share_ratio([a_sample(2, 6500.0), a_sample(16, 900.0)]) == 0.0


def test_one_task_tells_nothing() -> None:
    assert hot_share_ratio([a_sample(1, 1e4)]) == 0.0


def test_times_that_follow_their_rows_leave_no_noise() -> None:
    run = a_run(10_000, 8, grows=False)
    batches = tuple(
        replace(batch, stages=(batch.stages[0], a_sample(8, 5000.0))) for batch in run.batches
    )
    stage, times = recorded([replace(run, batches=batches)], 1)
    assert times.task_sd_s.min() > 1e-3
    assert np.sqrt(unexplained_s2(stage, times)) == pytest.approx(0.0, abs=1e-9)
