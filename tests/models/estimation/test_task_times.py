"""Spread and handover of tasks, recovered from stages that were simulated."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.models.estimation.task_times import handover_s, task_spread_ratio
from headway.models.stages.makespan import makespan_moments


@pytest.mark.parametrize("num_tasks", [2, 4, 16])
def test_spread_of_few_tasks_is_not_too_small(num_tasks: int) -> None:
    random = np.random.default_rng(5)
    tasks_s = 1.0 + 0.1 * random.standard_normal((4000, num_tasks))
    sd_ratios = tasks_s.std(axis=1, ddof=1) / tasks_s.mean(axis=1)
    found = task_spread_ratio(sd_ratios, np.full(4000, num_tasks), np.ones(4000))
    assert found == pytest.approx(0.1, rel=0.03)


def test_one_odd_batch_counts_as_one_batch() -> None:
    usual = np.full(9, 0.1)
    counts, weights = np.full(10, 1000), np.ones(10)
    assert task_spread_ratio(np.append(usual, 1.0), counts, weights) == pytest.approx(
        0.19, rel=0.01
    )


@given(
    handover=st.floats(0.0, 0.009),
    task_s=st.floats(0.02, 2.0),
    num_tasks=st.integers(4, 64),
    num_slots=st.integers(1, 2),
)
def test_handover_is_recovered(
    handover: float, task_s: float, num_tasks: int, num_slots: int
) -> None:
    waves = makespan_moments(num_tasks, num_slots, 0.1).mean
    span_s = waves * (task_s - handover) + handover
    found_s = handover_s(*(np.array([v]) for v in (span_s, task_s, waves, 0.01, 1.0)))
    assert found_s == pytest.approx(handover, abs=1e-9)


def test_handover_is_a_part_of_the_time_outside_the_run() -> None:
    values = [np.array([value]) for value in (0.05, 0.030, 4.0, 0.006, 1.0)]
    assert handover_s(*values) == 0.006


def test_stages_of_one_wave_tell_nothing() -> None:
    values = [np.array([value]) for value in (0.028, 0.030, 1.1, 0.006, 1.0)]
    assert handover_s(*values) == 0.0


def test_late_tasks_are_no_negative_handover() -> None:
    values = [np.array([value]) for value in (0.2, 0.030, 4.0, 0.006, 1.0)]
    assert handover_s(*values) == 0.0


def test_many_waves_tell_most() -> None:
    waves = np.array([2.0, 16.0])
    task_s, handover = 0.05, np.array([0.005, 0.002])
    span_s = waves * (task_s - handover) + handover
    estimated = handover_s(span_s, np.full(2, task_s), waves, np.full(2, 0.01), np.ones(2))
    assert estimated == pytest.approx(0.002, rel=0.02)
