"""Tasks that adaptive execution makes of shuffle partitions: as Spark did, and by brute force."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.domain import Coalescing, RowsLaw, StageProfile
from headway.models.stages.task_counts import coalesced_tasks, num_tasks_at

RULE = Coalescing(exchange_bytes_per_row=100.0, advisory_bytes=2**26, smallest_bytes=2**20)

# Bytes read by the join of a stream with a table, and its tasks: Spark 4.3 with 32 partitions, a
# default parallelism of 6, and a least size of 100k.
MEASURED = [
    (78_550, 1), (89_936, 1), (113_904, 1), (182_519, 1), (284_700, 2), (522_305, 5), (749_123, 6),
    (953_594, 6), (1_385_136, 6), (1_817_354, 7),
]  # fmt: skip


@pytest.mark.parametrize(("size_bytes", "num_tasks"), MEASURED)
def test_tasks_are_those_that_spark_ran(size_bytes: int, num_tasks: int) -> None:
    rule = replace(RULE, smallest_bytes=100 * 1024, parallelism=6)
    assert coalesced_tasks(rule, size_bytes, 2, 32) == num_tasks


@given(
    st.integers(1, 2**40), st.integers(1, 64), st.integers(1, 400), st.integers(1, 2**27),
    st.integers(1, 2**24),
)  # fmt: skip
def test_neighbours_are_merged_as_long_as_they_fit(
    size_bytes: int, slots: int, partitions: int, advisory_bytes: int, smallest_bytes: int
) -> None:
    rule = replace(RULE, advisory_bytes=advisory_bytes, smallest_bytes=smallest_bytes)
    # In units of which each partition has whole ones.
    target = max(min(size_bytes, slots * advisory_bytes), slots * smallest_bytes) * partitions
    tasks, filled = [], 0
    for _ in range(partitions):
        if filled and (filled + size_bytes) * slots > target:
            tasks.append(filled)
            filled = 0
        filled += size_bytes
    if not tasks or filled >= smallest_bytes * partitions:
        tasks.append(filled)
    assert coalesced_tasks(rule, size_bytes, slots, partitions) == len(tasks)


def test_the_settings_decide() -> None:
    def at(size_bytes: float, **changes: int) -> int:
        return coalesced_tasks(replace(RULE, **changes), size_bytes, 8, 64)

    assert at(8 * 2**20) == 8  # one for each core
    assert at(8 * 2**20, task_cpus=2) == 8  # of 16 cores, but none with less than a mebibyte
    assert at(32 * 2**20, task_cpus=2) == 16
    assert at(32 * 2**20, parallelism=1) == 1  # the advisory size alone
    assert at(640 * 2**20, parallelism=1) == 11
    assert at(2**40, initial_partitions=200) == 200


def test_a_stage_follows_the_rows_of_the_batch() -> None:
    stage = StageProfile(
        name="join", level=1, tasks_rule="coalesced", num_source_tasks=3, coalescing=RULE,
        rows=RowsLaw(scale=2.0, exponent=1.0, static_rows=10_000.0), task_fixed_s=0.05,
        task_per_row_s=1e-5, task_noise_ratio=0.0, separation="batches",
    )  # fmt: skip
    assert num_tasks_at(stage, 0.0, 8, 64) == 1
    assert num_tasks_at(stage, 2e5, 8, 64) == coalesced_tasks(RULE, 41e6, 8, 64) == 8
    assert stage.num_tasks(64) == 3
    with pytest.raises(ValueError, match="coalescing belongs to the rule 'coalesced'"):
        replace(stage, coalescing=None)
