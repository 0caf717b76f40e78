"""Executors of a batch job: enough for its deadline, and not one more."""

from __future__ import annotations

import pytest

from headway.fleet.steps import (
    BatchWork,
    declared_work,
    executors_for_deadline,
    run_time_at_most_s,
)


def some_work(spread_ratio: float = 0.1) -> BatchWork:
    return declared_work(
        work_s=36_000.0, driver_s=60.0, num_tasks=400, num_stages=3, spread_ratio=spread_ratio
    )


@pytest.mark.parametrize("deadline_s", [700.0, 1500.0, 4000.0])
def test_enough_and_not_one_more(deadline_s: float) -> None:
    work = some_work()
    found = executors_for_deadline(work, 4, deadline_s, 0.95)
    assert found is not None
    assert run_time_at_most_s(work, 4 * found, 0.95) <= deadline_s
    if found > 1:
        assert run_time_at_most_s(work, 4 * (found - 1), 0.95) > deadline_s


def test_a_wider_range_needs_more() -> None:
    counts = [executors_for_deadline(some_work(spread), 4, 1500.0, 0.95) for spread in (0.0, 0.5)]
    assert counts[0] is not None
    assert counts[1] is not None
    assert counts[0] < counts[1]


def test_what_no_number_keeps() -> None:
    assert executors_for_deadline(some_work(), 4, 61.0, 0.95) is None
