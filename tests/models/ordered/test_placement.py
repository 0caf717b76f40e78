"""Keys on partitions: Spark's own numbers, the tables of the design, and search by brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from headway.models.arrays import Array
from headway.models.ordered.placement import (
    dealt_makespan_s,
    first_bucket_ids,
    placed_keys,
    skewed_stage_s,
)
from headway.models.stages.skew import hot_start_makespan, random_partition_loads, zipf_key_shares
from headway.models.stages.spark_hash import spark_hash
from tests.factories import a_shuffle_stage


@pytest.mark.parametrize("number", [1, 2, 7, 16, 64, 200, 1000])
def test_bucket_numbers_fall_where_they_are_meant(number: int) -> None:
    ids = first_bucket_ids(number)
    partition = np.mod(spark_hash(ids, "int").astype(np.int64), number)
    assert partition.tolist() == list(range(number))
    # None before the first falls there.
    every = np.mod(spark_hash(range(int(ids.max()) + 1), "int").astype(np.int64), number)
    assert all(int(np.flatnonzero(every == at)[0]) == ids[at] for at in range(number))


def test_bucket_numbers_of_spark() -> None:
    # PySpark 4.3.0: spark.range(64).selectExpr("int(id) i", "pmod(hash(int(id)), 16) p").
    known = [12, 16, 5, 1, 37, 20, 2, 35, 13, 6, 49, 7, 25, 15, 4, 0]
    assert first_bucket_ids(16).tolist() == known


def test_placed_keys_against_all_placements() -> None:
    random = np.random.default_rng(2)
    for _ in range(20):
        shares = np.sort(random.dirichlet(np.full(7, 0.7)))[::-1] * 0.9
        partition, loads = placed_keys(shares, 3)
        best = min(np.bincount(at, shares, 3).max() for at in itertools.product(range(3), repeat=7))
        assert loads.sum() == pytest.approx(1.0)
        rest = 0.1 / 3
        assert loads.max() - rest <= max(shares[0], (4 / 3 - 1 / 9) * best) * (1 + 1e-9)
        assert loads.max() - rest >= best * (1 - 1e-9)
        assert np.bincount(partition, shares, 3) + rest == pytest.approx(loads)


def test_makespan_in_order_against_a_clock() -> None:
    random = np.random.default_rng(6)
    for num_slots in (1, 2, 5, 40):
        times = random.exponential(1.0, (8, 23))
        found = dealt_makespan_s(times, num_slots)
        for row, made in zip(times, found, strict=True):
            free = [0.0] * num_slots
            for task in row:
                free[free.index(min(free))] += task
            assert made == pytest.approx(max(free))


SUMS = a_shuffle_stage(name="sums", task_fixed_s=0.03, task_per_row_s=2e-5)


def stage(loads: Array) -> Array:
    """200k rows at 20 us, 30 ms a task, 16 slots."""
    return skewed_stage_s(SUMS, loads, 16, batch_rows=2e5, seed=1)


@pytest.mark.parametrize(
    ("exponent", "num_keys", "at_16", "at_48", "at_96", "placed"),
    [
        (0.8, 1_000, (0.53, 0.71), (0.53, 0.68), (0.56, 0.61), 0.29),
        (1.0, 100_000, (0.58, 0.81), (0.59, 0.68), (0.61, 0.66), 0.46),
        (1.2, 100_000, (1.00, 1.45), (1.02, 1.15), (1.04, 1.13), 0.85),
    ],
)
def test_the_table_of_the_design(
    exponent: float,
    num_keys: int,
    at_16: tuple[float, float],
    at_48: tuple[float, float],
    at_96: tuple[float, float],
    placed: float,
) -> None:
    keys = zipf_key_shares(num_keys, exponent)
    for number, (mean, p99) in ((16, at_16), (48, at_48), (96, at_96)):
        loads = random_partition_loads(keys, number, num_replications=1000, seed=3)
        times = stage(loads)
        found = float(times.mean()), float(np.quantile(times, 0.99))
        if number == 16:
            assert found == pytest.approx((mean, p99), rel=0.04)
        else:
            # The design does not say in which order it deals the tasks: here in that of partitions,
            # so that a hot one may come last.
            assert found[0] == pytest.approx(mean, rel=0.08)
            assert 0.95 * p99 < found[1] < 1.25 * p99
            late = hot_start_makespan(0.03 + 2e-5 * 2e5 * loads, 16)
            assert found[0] == pytest.approx(float(late.mean()), rel=0.08)
    _, loads = placed_keys(keys.share[:1000], 16)
    assert float(stage(loads[np.newaxis])[0]) == pytest.approx(placed, rel=0.04)


def test_the_hottest_key_is_a_floor_at_any_number_of_partitions() -> None:
    keys = zipf_key_shares(100_000, 1.2)
    floor = 0.03 + 2e-5 * 2e5 * float(keys.share[0])
    for number in (16, 200, 1000):
        times = stage(random_partition_loads(keys, number, num_replications=20, seed=3))
        assert times.min() > 0.97 * floor


@pytest.mark.parametrize("shares", [[0.7, 0.7], [-0.1], [[0.1]]])
def test_shares_that_cannot_be_are_refused(shares: list[float]) -> None:
    with pytest.raises(ValueError, match="at most 1 together"):
        placed_keys(np.array(shares), 2)


def test_a_table_that_is_too_large_is_drawn_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 400 batches of 100,000 partitions the drawn tables took more than a gigabyte."""
    loads = np.full((50, 40), 1 / 40)
    whole_s = stage(loads)
    monkeypatch.setattr("headway.models.ordered.placement._MOST_TASKS_AT_ONCE", 70)
    in_parts_s = stage(loads)
    assert in_parts_s.shape == whole_s.shape
    assert in_parts_s.mean() == pytest.approx(whole_s.mean(), rel=0.02)
