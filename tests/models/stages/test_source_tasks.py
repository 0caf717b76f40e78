"""Tasks that read files, by Spark's rule, packed file by file; and those of other sources."""

from __future__ import annotations

import math

import pytest

from headway.domain import DefaultParallelism, FileSplits, RecordSplits, SourceTasks
from headway.models.stages.task_counts import source_tasks, split_tasks

MIB = 2**20


def packed(
    sizes: list[int], *, parallelism: int, most: int, open_cost: int, splits_files: bool
) -> int:
    """``FilePartition`` of Spark 4.3: sizes, largest first, into the current task or the next."""
    even = sum(size + open_cost for size in sizes) // parallelism
    split = min(most, max(open_cost, even))
    parts = [
        min(split, size - start)
        for size in sizes
        for start in (range(0, size, split) if splits_files else (0,))
    ]
    if not splits_files:
        parts = list(sizes)
    tasks, current = 0, 0
    for part in sorted(parts, reverse=True):
        if current and current + part > split:
            tasks, current = tasks + 1, 0
        current += part + open_cost
    return tasks + (current > 0)


@pytest.mark.parametrize("splits_files", [False, True])
@pytest.mark.parametrize("parallelism", [1, 2, 3, 8])
@pytest.mark.parametrize("file_bytes", [20_000, 3 * MIB, 6 * MIB, 20 * MIB, 300 * MIB])
def test_files_of_one_size_make_the_tasks_of_sparks_packing(
    file_bytes: int, parallelism: int, *, splits_files: bool
) -> None:
    rule = FileSplits(
        file_rows=100.0, file_bytes=float(file_bytes), max_split_bytes=128 * MIB,
        open_cost_bytes=4 * MIB, splits_files=splits_files,
    )  # fmt: skip
    for num_files in (1, 2, 3, 7, 8, 40):
        expected = packed(
            [file_bytes] * num_files, parallelism=parallelism, most=128 * MIB,
            open_cost=4 * MIB, splits_files=splits_files,
        )  # fmt: skip
        # Spark rounds a size down to a byte, which may leave a part of a byte for another task.
        got = split_tasks(rule, 100.0 * num_files, parallelism)
        assert abs(got - expected) <= (num_files if splits_files else 1) * (got != expected)
        assert got == pytest.approx(expected, rel=0.13, abs=1)


# Batches of streams of files that Spark 4.3 read in local mode with one or two cores, or with
# spark.default.parallelism=3: files, bytes in all, whether they split (JSON, text and Parquet do,
# gzip and multiLine do not), default parallelism, cost of opening, most bytes of a split, tasks.
READ_BY_SPARK = [
    (6, 1_258_248, True, 1, 4 * MIB, 128 * MIB, 1),
    (5, 31_456_200, True, 1, 4 * MIB, 128 * MIB, 1),
    (6, 1_258_248, True, 2, 4 * MIB, 128 * MIB, 2),
    (5, 31_456_200, True, 2, 4 * MIB, 128 * MIB, 3),
    (1, 20_970_800, True, 2, 4 * MIB, 128 * MIB, 2),
    (3, 15_479_244, False, 2, 4 * MIB, 128 * MIB, 3),
    (1, 20_970_800, False, 2, 4 * MIB, 128 * MIB, 1),
    (1, 7_791_570, True, 2, 4 * MIB, 128 * MIB, 2),
    (6, 1_258_248, True, 3, 4 * MIB, 128 * MIB, 3),
    (5, 31_456_200, True, 3, 4 * MIB, 128 * MIB, 3),
    (1, 20_970_800, True, 3, 4 * MIB, 128 * MIB, 3),
    (1, 7_791_570, True, 3, 4 * MIB, 128 * MIB, 2),
    (6, 1_258_248, True, 2, MIB, 5 * MIB, 2),
    (5, 31_456_200, True, 2, MIB, 5 * MIB, 7),
    (1, 20_970_800, True, 2, MIB, 5 * MIB, 4),
]


@pytest.mark.parametrize("case", READ_BY_SPARK)
def test_the_rule_of_files_agrees_with_spark(
    case: tuple[int, int, bool, int, int, int, int],
) -> None:
    num_files, size_bytes, splits_files, parallelism, open_cost, most, tasks = case
    rule = FileSplits(
        file_rows=1.0, file_bytes=size_bytes / num_files, max_split_bytes=most,
        open_cost_bytes=open_cost, splits_files=splits_files,
    )  # fmt: skip
    assert split_tasks(rule, float(num_files), parallelism) == tasks


def test_a_batch_without_rows_has_a_task() -> None:
    rule = FileSplits(
        file_rows=1e3, file_bytes=1e6, max_split_bytes=128 * MIB, open_cost_bytes=4 * MIB
    )
    assert split_tasks(rule, 0.0, 8) == 1


def test_default_parallelism_is_the_cores_and_two_on_a_cluster() -> None:
    cluster = DefaultParallelism(at_least=2, cores_per_slot_ratio=2.0)
    assert [cluster.number(slots) for slots in (1, 3)] == [2, 6]
    assert DefaultParallelism().number(1) == 1
    assert source_tasks(SourceTasks(parallelism=cluster, num_scans=2), 1e3, 3) == 12


def test_rows_of_a_topic_partition_decide() -> None:
    rule = SourceTasks(records=RecordSplits(topic_partitions=3, max_records=100))
    assert [source_tasks(rule, rows, 4) for rows in (0.0, 300.0, 301.0, 900.0)] == [3, 3, 6, 9]


def test_a_rule_is_of_one_kind() -> None:
    parallelism = DefaultParallelism()
    records = RecordSplits(topic_partitions=1, max_records=1)
    with pytest.raises(ValueError, match="either parallelism or records"):
        SourceTasks()
    with pytest.raises(ValueError, match="either parallelism or records"):
        SourceTasks(parallelism=parallelism, records=records)
    with pytest.raises(ValueError, match="cores_per_slot_ratio"):
        DefaultParallelism(cores_per_slot_ratio=math.nan)
    with pytest.raises(ValueError, match="file_bytes"):
        FileSplits(file_rows=1.0, file_bytes=0.0, max_split_bytes=1, open_cost_bytes=1)
