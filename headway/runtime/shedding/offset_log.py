"""A query's offset log: the batches that are committed, and what identifies a batch that runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from headway.errors import InputError
from headway.runtime.sharing.log_state import query_id_of
from headway.units import ms_to_s, s_to_ms

if TYPE_CHECKING:
    from headway.runtime.sharing.files import SparkFiles


CommittedBatch: TypeAlias = tuple[int, float, Mapping[tuple[str, int], int]]
"""The number of a batch, its timestamp [s], and the first offsets that it left unread."""


def offset_spans(batches: Sequence[CommittedBatch]) -> list[tuple[int, str, int, int, int]]:
    """Offsets that each batch has read from each Kafka partition.

    Each span has the batch, the topic, the partition, the first offset, and the end before which
    the batch has read. The entry before a batch determines where it started, and Spark deletes old
    entries of the log. So nothing is known about the first remaining batch, unless it is batch 0. A
    new partition starts at 0.

    >>> offset_spans([(number, 0.0, {("orders", 0): end}) for number, end in ((7, 40), (8, 60))])
    [(8, 'orders', 0, 40, 60)]
    >>> offset_spans([(0, 0.0, {("orders", 0): 40})])
    [(0, 'orders', 0, 0, 40)]
    """
    before: Mapping[tuple[str, int], int] = {}
    spans = []
    for index, (number, _, ends) in enumerate(batches):
        for (topic, partition), end in ends.items():
            first = before.get((topic, partition), 0)
            if end > first and (index > 0 or number == 0):
                spans.append((number, topic, partition, first, end))
        before = {**before, **ends}
    return spans


def committed_batches(files: SparkFiles, checkpoint: str) -> list[CommittedBatch]:
    """The committed batches that are still in a checkpoint's offset log, from the first."""
    offsets, commits = f"{checkpoint}/offsets", f"{checkpoint}/commits"
    if not files.exists(offsets):
        raise InputError(f"{checkpoint}: no offset log; expected the checkpoint of a query")
    committed = set(files.names(commits))
    batches = []
    for name in files.names(offsets):
        if name.isdigit() and name in committed:
            try:
                timestamp_s, sources = _logged(files, f"{offsets}/{name}")
            except FileNotFoundError:  # a running query deletes its oldest ones
                continue
            ends = dict(end for source in sources for end in _kafka_ends(source))
            batches.append((int(name), timestamp_s, ends))
    return sorted(batches, key=lambda batch: batch[0])


def query_id(files: SparkFiles, checkpoint: str) -> str:
    """The id of the query that a checkpoint belongs to, which a new checkpoint gets anew."""
    recorded_id = query_id_of(files, checkpoint)
    if not recorded_id:
        raise InputError(
            f"{checkpoint}: no query has this checkpoint; expected the folder that the query is "
            "started with, its option checkpointLocation"
        )
    return recorded_id


def batch_timestamp_ms(files: SparkFiles, checkpoint: str, batch_id: int) -> int:
    """The timestamp of a batch that runs, which a repeat of the batch has too. [ms]"""
    path = f"{checkpoint}/offsets/{batch_id}"
    if not files.exists(path):
        raise InputError(
            f"{checkpoint}: batch {batch_id} is not in its offset log; expected the folder that "
            "the query is started with, its option checkpointLocation"
        )
    return s_to_ms(_logged(files, path)[0])


def _logged(files: SparkFiles, path: str) -> tuple[float, list[str]]:
    """The timestamp of a batch [s], and the offsets of each source."""
    try:
        # A version, the metadata, then the offsets of each source.
        version, metadata, *sources = files.read(path).splitlines()
        if version.strip() == "v2":
            # Here each begins with the name of its source.
            sources = [source.partition(":")[2] for source in sources]
        return ms_to_s(json.loads(metadata)["batchTimestampMs"]), sources
    except (ValueError, KeyError, TypeError):
        raise InputError(
            f"{path}: not an entry of Spark's offset log; expected the checkpoint of a streaming "
            "query, undamaged"
        ) from None


def _kafka_ends(source: str) -> Iterator[tuple[tuple[str, int], int]]:
    """Partitions of topics with the offset at which a batch ends; none for other sources."""
    try:
        topics = json.loads(source)
    except json.JSONDecodeError:
        return
    for topic, partitions in topics.items() if isinstance(topics, dict) else ():
        for partition, end in partitions.items() if isinstance(partitions, dict) else ():
            if partition.isdigit() and isinstance(end, int):
                yield (topic, int(partition)), end
