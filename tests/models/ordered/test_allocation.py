"""What a pipeline carries: golden values of the design, and search by brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from headway.models.ordered.chain import (
    on_spark,
    pipeline_allocation,
    pipelined_allocation,
    source_work_s,
    staged_throughput_per_s,
    water_filled_slots,
)
from tests.models.ordered.cases import most, pipeline

GOLDEN = {
    "A": ((10, 20, 15, 4), 163_265, (1.63, 3.27, 2.45, 0.65), 163_265),
    "B": ((10, 30, 20), 33_333, (0.33, 1.0, 0.67), 29_630),
    "C": ((10, 40, 10, 20), 50_000, (0.5, 2.0, 0.5, 1.0), 36_364),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_values(name: str) -> None:
    work_us, throughput, workers, staged = GOLDEN[name]
    work = source_work_s(pipeline(name))
    assert work * 1e6 == pytest.approx(work_us)
    found = pipelined_allocation(work, most(name), 8)
    assert found.throughput_per_s == pytest.approx(throughput, abs=0.5)
    assert found.workers == pytest.approx(workers, abs=0.005)
    assert staged_throughput_per_s(work, most(name), 8) == pytest.approx(staged, abs=0.5)
    # The same of the nouns, where putting in order costs nothing.
    whole = pipeline_allocation(pipeline(name), reordered=False)
    assert whole.throughput_per_s == pytest.approx(found.throughput_per_s, rel=1e-6)
    assert whole.workers == pytest.approx(found.workers, rel=1e-6)
    assert whole.limiting == found.limiting
    assert on_spark(pipeline(name))[0] == pytest.approx(staged, abs=0.5)


def test_an_allocation_is_the_best_of_all_by_brute_force() -> None:
    random = np.random.default_rng(5)
    for _ in range(30):
        work = random.uniform(1e-6, 5e-5, 3)
        limits = random.choice([1.0, 2.0, np.inf], 3)
        best = 0.0
        for parts in itertools.product(np.linspace(0.02, 6.0, 60), repeat=2):
            workers = np.minimum([*parts, 6.0 - sum(parts)], limits)
            best = max(best, float((workers / work).min()))
        found = pipelined_allocation(work, limits, 6).throughput_per_s
        assert best <= found * (1 + 1e-9)
        assert best >= 0.9 * found


@pytest.mark.parametrize("num_slots", [4, 7, 16, 23])
@pytest.mark.parametrize("tied", [None, [0, 0, 1, 1], [0, 1, 1, 1]])
def test_whole_slots_are_the_best_of_all_by_enumeration(
    num_slots: int, tied: list[int] | None
) -> None:
    work = [1e-5, 2e-5, 1.5e-5, 4e-6]
    best = 0.0
    for tasks in itertools.product(range(1, num_slots), repeat=4):
        groups = tied or range(4)
        alike = len(set(zip(groups, tasks, strict=True))) == len(set(groups))
        if sum(tasks) <= num_slots and alike:
            best = max(best, min(t / d for t, d in zip(tasks, work, strict=True)))
    found = water_filled_slots(work, num_slots, tied=tied)
    assert found.throughput_per_s == pytest.approx(best)
    assert sum(found.num_tasks) <= num_slots
    assert found.throughput_per_s <= found.bound_per_s * (1 + 1e-9)


def test_slots_of_the_design() -> None:
    found = water_filled_slots([1e-5, 2e-5, 1.5e-5, 4e-6], 16)
    assert found.num_tasks == (3, 6, 5, 2)
    assert found.throughput_per_s == pytest.approx(300_000)
    assert found.bound_per_s == pytest.approx(326_531, abs=1)
    alike = water_filled_slots([1e-5, 2e-5, 1.5e-5, 4e-6], 16, tied=[0] * 4)
    assert alike.throughput_per_s == pytest.approx(200_000)
    few = water_filled_slots([1e-5, 1e-5], 16, most_tasks=[3, 99])
    assert few.throughput_per_s == pytest.approx(3e5)


@pytest.mark.parametrize(
    ("work", "limits", "workers"),
    [([], [], 1), ([1.0], [1.0, 2.0], 1), ([0.0], [1.0], 1), ([1.0], [0.0], 1), ([1.0], [1.0], 0)],
)
def test_what_is_no_pipeline_is_refused(
    work: list[float], limits: list[float], workers: float
) -> None:
    with pytest.raises(ValueError, match="must be"):
        pipelined_allocation(work, limits, workers)


def test_slots_for_each_stage_are_needed() -> None:
    with pytest.raises(ValueError, match="2 stages need as many slots"):
        water_filled_slots([1.0, 1.0], 1)
