"""Tasks of stages that read the source of a stream."""

from __future__ import annotations

import math

from headway.domain import FileSplits, SourceTasks


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
