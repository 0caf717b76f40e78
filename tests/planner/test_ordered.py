"""Partition count and placement of a job's keys: exact loads, limits, slots of Real-Time Mode."""

from __future__ import annotations

import heapq
import random
from dataclasses import replace

import numpy as np
import pytest

from headway.domain import Configuration, JobProfile, RowsLaw
from headway.domain.ordered import KeyCounts
from headway.errors import InputError
from headway.models.job.setting import duration_model
from headway.models.stages.makespan import makespan_moments
from headway.models.stages.spark_hash import spark_hash, spark_xxhash64
from headway.planner.kinds.ordered import plan_ordered, plan_skew, with_known_keys
from tests.factories import a_profile


def zipf(num_keys: int, exponent: float) -> KeyCounts:
    rows = 1e6 * np.arange(1.0, num_keys + 1.0) ** -exponent
    keys = tuple(f"user-{at}" for at in range(num_keys))
    return KeyCounts(keys=keys, num_rows=tuple(rows.tolist()))


def job(*, per_row_s: float = 2e-5, fixed_s: float = 0.03) -> JobProfile:
    """A stage that works 20 us a row behind an exchange, on 16 slots."""
    profile = a_profile()
    stages = tuple(
        replace(one, task_per_row_s=per_row_s, task_fixed_s=fixed_s, task_noise_ratio=0.05)
        if one.tasks_rule == "shuffle"
        else one
        for one in profile.stages
    )
    # State by key of one's own: rows are not combined before the exchange.
    shape = replace(profile.shape, stateful_operators=("transformWithStateExec",))
    return replace(profile, stages=stages, shape=shape)


def setting(profile: JobProfile) -> Configuration:
    return replace(
        profile.baseline, executors=4, cores_per_executor=4, shuffle_partitions=16, trigger_s=10.0
    )


def test_placed_keys_beat_every_number_of_partitions() -> None:
    profile = job()
    found = plan_ordered(profile, setting(profile), 20e3, zipf(1000, 0.8))
    assert found.num_slots == 16
    assert found.placed.choice.p99_s < min(one.p99_s for one in found.choices)
    assert found.placed.choice.largest_share < 1.05 / found.placed.choice.shuffle_partitions + 0.03
    assert len(found.placed.keys) == len(found.placed.buckets) == 1000
    assert [one.shuffle_partitions for one in found.choices] == sorted(
        {16, 24, 32, 48, 64, 96, 144, 192, 200}
    )
    # The buckets are where the table says: counted anew with Spark's hash.
    number = found.placed.choice.shuffle_partitions
    partition = np.mod(spark_hash(list(found.placed.buckets), "int").astype(np.int64), number)
    loads = np.bincount(partition, found.placed.key_share, number)
    assert loads.max() == pytest.approx(found.placed.choice.largest_share, rel=1e-6)


def test_loads_of_hashed_keys_are_exact() -> None:
    profile, counts = job(), zipf(1000, 1.0)
    found = plan_ordered(profile, setting(profile), 20e3, counts)
    shares = np.array(counts.num_rows) / sum(counts.num_rows)
    for one in found.choices:
        hashes = spark_hash([str(key) for key in counts.keys], "string").astype(np.int64)
        partition = np.mod(hashes, one.shuffle_partitions)
        loads = np.bincount(partition, shares, one.shuffle_partitions)
        assert one.largest_share == pytest.approx(loads.max())


def test_an_aggregation_combines_the_rows_of_a_key_before_the_exchange() -> None:
    profile, counts = job(), zipf(1000, 1.2)
    aggregating = replace(profile, shape=a_profile().shape)
    raw = plan_ordered(profile, setting(profile), 20e3, counts)
    found = plan_ordered(aggregating, setting(profile), 20e3, counts)
    assert (raw.num_map_tasks, found.num_map_tasks) == (0, 4)
    # Four rows at most of the hottest key and of many others.
    assert found.hottest_share < 0.01 < 0.1 < raw.hottest_share
    assert found.best.p99_s < raw.best.p99_s


def test_a_hot_key_is_a_limit_of_its_own() -> None:
    profile = job()
    counts = KeyCounts(keys=("hot", "cold"), num_rows=(99.0, 1.0))
    found = plan_ordered(profile, setting(profile), 20e3, counts)
    expected = 0.03 + 2e-5 * found.batch_rows * 0.99
    assert found.serial_s == pytest.approx(expected)
    assert found.hottest_key == "hot"
    assert all(one.p99_s >= 0.97 * found.serial_s for one in found.choices)
    assert found.keeps_up == (found.serial_s < 10.0)
    slow = plan_ordered(job(per_row_s=4e-5), setting(profile), 2.3e4, counts)
    assert slow.keeps_up == (slow.serial_s < slow.trigger_s)


def test_rows_of_keys_that_nobody_listed_count_as_even() -> None:
    profile = job()
    counts = replace(zipf(50, 1.0), other_rows=9e6)
    found = plan_ordered(profile, setting(profile), 20e3, counts)
    assert found.known_share < 0.4
    assert found.placed.choice.largest_share < 0.12


def test_more_keys_than_are_placed() -> None:
    profile = job()
    found = plan_ordered(profile, setting(profile), 20e3, zipf(20_000, 0.8))
    assert len(found.placed.keys) == 1000
    assert found.placed.choice.largest_share < 0.08


def test_slots_of_real_time_mode_are_the_best_by_enumeration() -> None:
    profile = job()
    found = plan_ordered(profile, setting(profile), 20e3, zipf(100, 1.0)).real_time
    assert found is not None
    assert sum(found.num_tasks) <= 16
    source = profile.stages[0]
    assert found.num_tasks[0] == source.num_source_tasks
    assert found.rate_per_s <= found.bound_per_s * (1 + 1e-9)
    assert found.one_number_rate_per_s <= found.rate_per_s * (1 + 1e-9)


def test_what_cannot_be_is_said_with_its_place() -> None:
    profile, counts = job(), zipf(10, 1.0)
    with pytest.raises(InputError, match=r"stage 'other': not behind an exchange; expected one"):
        plan_ordered(profile, setting(profile), 20e3, counts, stage_name="other")
    only_source = replace(profile, stages=profile.stages[:1])
    with pytest.raises(InputError, match="no stage behind an exchange"):
        plan_ordered(only_source, setting(profile), 20e3, counts)
    with pytest.raises(InputError, match="batches grow without bound"):
        plan_ordered(profile, setting(profile), 1e9, counts)


def makespan_s(tasks_s: list[float], num_slots: int) -> float:
    """Each task in turn to the slot that is free first."""
    free = [0.0] * num_slots
    for task_s in tasks_s:
        heapq.heappush(free, heapq.heappop(free) + task_s)
    return max(free)


def hot_job(share: float) -> JobProfile:
    profile = job()
    stages = tuple(
        replace(one, hot_share_ratio=share, task_noise_ratio=0.0)
        if one.tasks_rule == "shuffle"
        else one
        for one in profile.stages
    )
    return replace(profile, stages=stages)


def test_skew_on_record_is_one_heavy_key_on_any_partition_by_brute_force() -> None:
    profile, seeded = hot_job(0.3), random.Random(4)
    chosen = replace(setting(profile), shuffle_partitions=40)
    found = plan_skew(profile, chosen, 20e3, None)
    assert found is not None
    assert found.hottest_key is None
    assert found.placed is None
    drawn = []
    for _ in range(4000):
        rows = [0.7 * found.batch_rows / 40] * 40
        rows[seeded.randrange(40)] += 0.3 * found.batch_rows
        drawn.append(makespan_s([0.03 + 2e-5 * one for one in rows], 16))
    assert found.planned.shuffle_partitions == 40
    assert found.planned.mean_s == pytest.approx(np.mean(drawn), rel=0.01)
    assert found.planned.p99_s == pytest.approx(np.quantile(drawn, 0.99), rel=0.01)
    assert found.planned.largest_share == pytest.approx(0.3 + 0.7 / 40)
    assert found.best.p99_s <= 1.05 * found.planned.p99_s
    assert found.serial_s == pytest.approx(0.03 + 2e-5 * 0.3 * found.batch_rows)
    assert found.planned.p99_s > found.serial_s


def test_skew_of_known_keys_is_by_sparks_own_hash_by_brute_force() -> None:
    profile, counts = hot_job(0.0), zipf(500, 1.1)
    chosen = replace(setting(profile), shuffle_partitions=24)
    found = plan_skew(profile, chosen, 20e3, counts)
    assert found is not None
    assert found.hottest_key == "user-0"
    hashes = spark_hash([str(key) for key in counts.keys], "string").tolist()
    loads = [0.0] * 24
    for one, num_rows in zip(hashes, counts.num_rows, strict=True):
        loads[one % 24] += num_rows / sum(counts.num_rows)
    assert found.planned.largest_share == pytest.approx(max(loads))
    random_rows = np.random.default_rng(5).poisson(
        np.array(loads) * found.batch_rows, size=(4000, 24)
    )
    drawn = [makespan_s((0.03 + 2e-5 * rows).tolist(), 16) for rows in random_rows]
    assert found.planned.mean_s == pytest.approx(np.mean(drawn), rel=0.01)
    assert found.planned.p99_s == pytest.approx(np.quantile(drawn, 0.99), rel=0.01)
    assert found.placed is not None
    assert found.placed.p99_s <= found.best.p99_s


def test_the_share_of_the_heaviest_key_enters_the_profile_unless_rows_are_combined() -> None:
    profile, counts = hot_job(0.0), zipf(500, 1.1)
    known = with_known_keys(profile, counts)
    share = counts.num_rows[0] / sum(counts.num_rows)
    assert [one.hot_share_ratio for one in known.stages] == [0.0, pytest.approx(share)]
    assert with_known_keys(hot_job(0.6), counts).stages[1].hot_share_ratio == 0.6
    combining = replace(profile, shape=a_profile().shape)
    assert with_known_keys(combining, counts) == combining
    one_key = KeyCounts(keys=("all",), num_rows=(7.0,))
    assert with_known_keys(profile, one_key).stages[1].hot_share_ratio < 1.0


def test_no_skew_where_nothing_is_known_of_any_or_batches_are_endless() -> None:
    assert plan_skew(hot_job(0.0), setting(job()), 20e3, None) is None
    assert plan_skew(hot_job(0.3), setting(job()), 1e9, None) is None
    assert plan_skew(job(), setting(job()), 1e9, zipf(10, 1.0)) is None


def test_a_plan_with_keys_predicts_the_makespan_of_their_partitions() -> None:
    profile, counts = job(fixed_s=0.0), zipf(500, 1.1)
    known, stage = with_known_keys(profile, counts), profile.stages[1]
    model = duration_model(known, 2, 2)
    hashes = spark_hash([str(key) for key in counts.keys], "string").astype(np.int64)
    loads = np.bincount(np.mod(hashes, 2), counts.num_rows, 2) / sum(counts.num_rows)
    more_s = float(model.mean_s(2e6) - model.mean_s(1e6))
    others = duration_model(profile, 2, 2)
    even_s = float(others.mean_s(2e6) - others.mean_s(1e6))
    rows = stage.rows.rows(2e6) - stage.rows.rows(1e6)
    per_task = float(makespan_moments(2, 2, stage.task_noise_ratio).mean) / 2
    gained = (max(loads.max(), per_task) - per_task) * stage.task_per_row_s * rows
    assert loads.max() > per_task
    assert more_s - even_s == pytest.approx(gained)


def test_rows_dealt_out_by_key_before_an_aggregation_are_not_combined() -> None:
    profile = replace(job(), shape=a_profile().shape)
    dealt = tuple(
        replace(one, rows=RowsLaw(scale=1.0, exponent=1.0)) if one is profile.stages[1] else one
        for one in profile.stages
    )
    few = KeyCounts(keys=("a", "b"), num_rows=(3.0, 1.0))
    found = plan_ordered(replace(profile, stages=dealt), setting(profile), 20e3, few)
    assert found.num_map_tasks == 0
    assert found.hottest_share == pytest.approx(0.75)
    # Where some keys are not listed, they may be as many as the rows.
    others = replace(few, other_rows=1.0)
    assert plan_ordered(
        replace(profile, stages=dealt), setting(profile), 20e3, others
    ).num_map_tasks


def test_keys_of_an_ordered_stream_are_dealt_out_by_its_own_hash() -> None:
    profile, counts = job(), zipf(300, 1.0)
    dealt = replace(profile, shape=replace(profile.shape, deals_out_buckets=True))
    found = plan_ordered(dealt, setting(profile), 20e3, counts)
    hashes = spark_xxhash64([str(key) for key in counts.keys], "string")
    loads = np.bincount(np.mod(hashes, 16), counts.num_rows, 16) / sum(counts.num_rows)
    assert found.today.largest_share == pytest.approx(loads.max())
    other = plan_ordered(profile, setting(profile), 20e3, counts).today.largest_share
    assert other != pytest.approx(loads.max())
    known = with_known_keys(dealt, counts)
    rows_s = float(
        duration_model(known, 16, 16).mean_s(1e9) - duration_model(known, 16, 16).mean_s(0)
    )
    by_hash = with_known_keys(profile, counts)
    others_s = float(
        duration_model(by_hash, 16, 16).mean_s(1e9) - duration_model(by_hash, 16, 16).mean_s(0)
    )
    assert rows_s != pytest.approx(others_s, rel=1e-3)
