"""A stage whose keys are known: its makespan is that of the partitions they are hashed to."""

from __future__ import annotations

import heapq

import numpy as np
import pytest

from headway.domain import RowsLaw, StageProfile
from headway.models.job.duration import coefficient_gains, level_spans
from headway.models.ordered.placement import KeyedStage, dealt_makespan_s
from headway.models.stages.makespan import makespan_moments
from headway.models.stages.spark_hash import spark_hash

KEYS = [f"user-{at}" for at in range(60)]
ROWS = np.array([1000.0 / (at + 1) ** 1.1 for at in range(60)])
HASHES = spark_hash(KEYS, "string")


def a_stage() -> StageProfile:
    return StageProfile(
        name="stage 1", level=1, tasks_rule="shuffle",
        rows=RowsLaw(scale=1.0, exponent=1.0), task_fixed_s=0.0, task_per_row_s=1e-5,
        task_noise_ratio=0.0, hot_share_ratio=0.2,
        separation="batches",
    )  # fmt: skip


def by_hand(partitions: int, slots: int, other_share: float = 0.0) -> float:
    tasks = [other_share / partitions] * partitions
    for one, rows in zip(HASHES.tolist(), (ROWS / ROWS.sum()).tolist(), strict=True):
        tasks[one % partitions] += (1.0 - other_share) * rows
    free = [0.0] * slots
    for task in tasks:
        heapq.heappush(free, heapq.heappop(free) + task)
    return max(free)


@pytest.mark.parametrize("slots", [1, 2, 5, 40])
@pytest.mark.parametrize("partitions", [1, 2, 7, 30, 200])
def test_rows_take_the_makespan_of_their_partitions(partitions: int, slots: int) -> None:
    for other_share in (0.0, 0.4):
        keyed = KeyedStage.of(a_stage(), HASHES, ROWS, other_share)
        found = keyed.row_makespan_ratio(partitions, slots)
        assert found is not None
        assert found == pytest.approx(by_hand(partitions, slots, other_share))
        assert 1.0 / slots - 1e-12 <= found <= 1.0 + 1e-12


def test_the_duration_of_a_stage_is_by_its_keys_and_of_others_by_their_hot_share() -> None:
    stage = a_stage()
    keyed = KeyedStage.of(stage, HASHES, ROWS)
    for partitions, slots in ((2, 2), (8, 2), (50, 16)):
        (level,) = level_spans([keyed], slots, partitions)
        assert float(level.at(1e5)) == pytest.approx(
            max(
                by_hand(partitions, slots),
                makespan_moments(partitions, slots, 0.0).mean / partitions,
            )
        )
        ((_, per_row, _),) = coefficient_gains([keyed], slots, partitions, 1e5)
        assert per_row * 1e-5 == pytest.approx(float(level.at(1e5)))
        (other,) = level_spans([stage], slots, partitions)
        assert float(other.at(1e5)) != pytest.approx(float(level.at(1e5)), rel=1e-3)


def test_one_row_of_tasks_is_dealt_out_as_many_are() -> None:
    tasks = np.random.default_rng(8).gamma(1.0, 1.0, (5, 90))
    together = dealt_makespan_s(tasks, 7)
    assert [float(dealt_makespan_s(one, 7)) for one in tasks] == together.tolist()


def test_shares_beyond_their_range_are_refused() -> None:
    with pytest.raises(ValueError, match="other_share is 1"):
        KeyedStage.of(a_stage(), HASHES, ROWS, 1.0)
