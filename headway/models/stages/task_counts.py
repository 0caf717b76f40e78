"""Numbers of tasks of stages: of those that read a source, and behind exchanges."""

from __future__ import annotations

import math

from headway.domain import Coalescing, FileSplits, SourceTasks, StageProfile


def coalesced_tasks(
    rule: Coalescing, size_bytes: float, num_slots: int, shuffle_partitions: int
) -> int:
    """Tasks behind an exchange that adaptive execution coalesces.

    Parameters
    ----------
    size_bytes : float, >= 0, bytes that are read from the exchange
    num_slots, shuffle_partitions : int, >= 1

    **(T7)** Adaptive execution merges neighbouring partitions up to `g = max(s, min(A, Z/m))`
    bytes, with `Z` the bytes of the exchange, `A` the advisory and `s` the least size of a task,
    and `m` the parallelism. Of `P` partitions of equal size it puts `k = max(1, ⌊gP/Z⌋)` into a
    task, so `T = ⌈P/k⌉`. If the last task is left with less than `s`, it is merged with the one
    before. `ShufflePartitionsUtil` of Spark 4.3, with which 13 batches of 79 kB to 1.8 MB agree.

    >>> rule = Coalescing(exchange_bytes_per_row=100.0, advisory_bytes=2**26, smallest_bytes=2**20)
    >>> [coalesced_tasks(rule, size_bytes, 8, 64) for size_bytes in (8e4, 4e6, 1e8, 1e10)]
    [1, 3, 8, 64]
    """
    partitions = rule.most_tasks(shuffle_partitions)
    target_bytes = max(
        rule.smallest_bytes, min(rule.advisory_bytes, size_bytes / rule.aimed_tasks(num_slots))
    )
    if size_bytes <= target_bytes:
        return 1
    partition_bytes = size_bytes / partitions
    # A quotient of equal sizes may be a whole number but for its last digit.
    per_task = max(math.floor(target_bytes / partition_bytes * (1.0 + 1e-12)), 1)
    num_tasks = -(-partitions // per_task)
    left_bytes = (partitions - per_task * (num_tasks - 1)) * partition_bytes
    is_merged = num_tasks > 1 and left_bytes < rule.smallest_bytes
    return num_tasks - 1 if is_merged else num_tasks


def split_tasks(rule: FileSplits, batch_rows: float, parallelism: int) -> int:
    """Tasks that read the files of a batch, at least one, with Spark's default ``parallelism``.

    **(T9)** A batch of `n` rows reads `f = max(1, [n/r])` files of `r` rows, the nearest whole
    number, each of `b` bytes. A task reads up to `g = min(A, max(a, f(b+a)/m))` bytes, with `A` the
    maximum size of a split, `a` the cost of opening a file in bytes, and `m` the default
    parallelism, by default the cores. A file that may be split makes `⌊b/g⌋` tasks of `g` bytes and
    a rest; one that may not is all rest. Of rests of `c` bytes a task reads
    `k = max(1, ⌊(g+a)/(c+a)⌋)`, so `T = f⌊b/g⌋ + ⌈f/k⌉`. `FilePartition` of Spark 4.3, for files of
    equal size. Other sources: `T = m` for the rate source without `numPartitions`; and
    `T = p⌈n/(pq)⌉` for `p` topic partitions of Kafka with `maxRecordsPerPartition` `q`, whose rows
    are distributed evenly. A stage that reads the source `s` times has `sT` tasks.

    >>> rule = FileSplits(file_rows=1e3, file_bytes=2e5, max_split_bytes=2**27,
    ...                   open_cost_bytes=2**22)
    >>> [split_tasks(rule, rows, parallelism=4) for rows in (1e3, 3e3, 8e3, 1e6)]
    [1, 3, 4, 33]
    """
    num_files = max(round(batch_rows / rule.file_rows), 1)
    file_bytes = max(batch_rows * rule.file_bytes / rule.file_rows / num_files, 1.0)
    open_bytes = rule.open_cost_bytes
    even_bytes = num_files * (file_bytes + open_bytes) / parallelism
    split_bytes = min(rule.max_split_bytes, max(open_bytes, even_bytes))
    num_whole = math.floor(file_bytes / split_bytes) if rule.splits_files else 0
    rest_bytes = file_bytes - num_whole * split_bytes
    num_tasks = num_files * num_whole
    if rest_bytes >= 1.0:
        # A quotient of equal sizes may be a whole number but for its last digit.
        ratio = (split_bytes + open_bytes) / (rest_bytes + open_bytes) * (1.0 + 1e-12)
        num_tasks += -(-num_files // max(math.floor(ratio), 1))
    return num_tasks


def source_tasks(rule: SourceTasks, batch_rows: float, num_slots: int) -> int:
    """Tasks that read the source of a batch (T9).

    Parameters
    ----------
    batch_rows : float, >= 0
    num_slots : int, >= 1

    >>> from headway.domain import DefaultParallelism, RecordSplits
    >>> source_tasks(SourceTasks(parallelism=DefaultParallelism()), 1e3, num_slots=6)
    6
    >>> records = RecordSplits(topic_partitions=4, max_records=1000)
    >>> source_tasks(SourceTasks(records=records), 9e3, num_slots=6)
    12
    """
    records, parallelism = rule.records, rule.parallelism
    if records is not None:
        of_partition = math.ceil(batch_rows / records.topic_partitions / records.max_records)
        return rule.num_scans * records.topic_partitions * max(of_partition, 1)
    assert parallelism is not None  # one of them is there
    number = parallelism.number(num_slots)
    if rule.files is None:
        return rule.num_scans * number
    return rule.num_scans * split_tasks(rule.files, batch_rows, number)


def num_tasks_at(
    stage: StageProfile, batch_rows: float, num_slots: int, shuffle_partitions: int
) -> int:
    """Tasks of a stage of a batch, by what decides them (T7), (T9).

    Parameters
    ----------
    batch_rows : float, >= 0
    num_slots, shuffle_partitions : int, >= 1

    >>> from headway.formats.profile_file import load_profile
    >>> num_tasks_at(load_profile("examples/word-count.profile.yaml").stages[1], 1e3, 2, 8)
    8
    """
    if stage.coalescing is not None:
        size_bytes = stage.coalescing.exchange_bytes_per_row * stage.rows.rows(batch_rows)
        return coalesced_tasks(stage.coalescing, size_bytes, num_slots, shuffle_partitions)
    if stage.source_tasks is not None:
        return source_tasks(stage.source_tasks, batch_rows, num_slots)
    return stage.num_tasks(shuffle_partitions)
