"""What a query's checkpoint has: batches in Spark's offset log, and decisions about them.

Decisions are stored for batches that Spark repeats.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, TypeAlias

from headway.errors import InputError
from headway.formats.own_files import parse_json
from headway.runtime.sharing.files import SparkFiles
from headway.runtime.sharing.log_state import query_id_of
from headway.units import ms_to_s, s_to_ms

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DECISIONS_FOLDER = "headway-shed"
_FORMAT, _DECIMAL = "headway.shed/v1", "decimal"
_QUERY_PROPERTY = "sql.streaming.queryId"
_RETAINED_KEY, _RETAINED = "spark.sql.streaming.minBatchesToRetain", "100"

KeptFrom: TypeAlias = tuple[tuple[object, int | None], ...]
"""For each class, the arrival from which rows are kept; None if none are. [us since the epoch]"""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """The decisions of a query that is running.

    ``num_retained`` is the number of batches that Spark retains in the checkpoint.
    """

    files: SparkFiles
    checkpoint: str
    query: str
    num_retained: int

    @classmethod
    def of_query(cls, batch: DataFrame, checkpoint: str | None) -> Decisions:
        """Those of the query whose batch is running, and whose checkpoint it must be.

        Without a checkpoint, it is that with which the query was started.
        """
        spark = batch.sparkSession
        files = SparkFiles(spark)
        running = spark.sparkContext.getLocalProperty(_QUERY_PROPERTY)
        checkpoint = checkpoint or _checkpoint_of(spark, running)
        query = query_id(files, checkpoint)
        if running not in (None, query):
            raise InputError(
                f"{checkpoint}: the checkpoint of query {query}, and this batch is of query "
                f"{running}; expected the folder that the query is started with, its option "
                "checkpointLocation"
            )
        num_retained = int(spark.conf.get(_RETAINED_KEY, _RETAINED) or _RETAINED)
        return cls(files=files, checkpoint=checkpoint, query=query, num_retained=num_retained)

    def of_batch(self, batch_id: int) -> KeptFrom | None:
        """The decision about a batch; None if it is decided for the first time."""
        path = self._path(batch_id)
        if not self.files.exists(path):
            return None
        identity = self._identity(batch_id)
        try:
            decision = parse_json(self.files.read(path), name=path, expected="a decision")
            if decision["format"] != _FORMAT:
                raise ValueError
            kept_from = tuple(
                (_class_of(written), from_us) for written, from_us in decision["kept_from_us"]
            )
            is_of_batch = {name: decision[name] for name in identity} == identity
        except (InputError, ValueError, KeyError, TypeError, InvalidOperation):
            raise InputError(
                f"{path}: not a decision of Headway; expected the file as it was written. Start "
                "with a new checkpoint"
            ) from None
        return kept_from if is_of_batch else None

    def keep(self, batch_id: int, kept_from: KeptFrom) -> None:
        """Store a decision, and delete those of batches that Spark no longer retains."""
        written = [(_written(kind), from_us) for kind, from_us in kept_from]
        decision = {"format": _FORMAT, **self._identity(batch_id), "kept_from_us": written}
        self.files.delete(self._path(batch_id))
        self.files.write_new(self._path(batch_id), json.dumps(decision))
        retained = range(batch_id - self.num_retained, batch_id + 1)
        for name in self.files.names(f"{self.checkpoint}/{DECISIONS_FOLDER}"):
            number = name.removesuffix(".json")
            if number.isdigit() and int(number) not in retained:
                self.files.delete(self._path(int(number)))

    def _path(self, batch_id: int) -> str:
        return f"{self.checkpoint}/{DECISIONS_FOLDER}/{batch_id}.json"

    def _identity(self, batch_id: int) -> dict[str, str | int]:
        timestamp_ms = batch_timestamp_ms(self.files, self.checkpoint, batch_id)
        return {"query": self.query, "batch_timestamp_ms": timestamp_ms}


def _written(kind: object) -> object:
    """A class as JSON has it, which has no decimals; their digits stay as they are."""
    return {_DECIMAL: str(kind)} if isinstance(kind, Decimal) else kind


def _class_of(written: Any) -> object:
    """The class that was written.

    >>> _class_of(_written(Decimal("1.50"))), _class_of(_written("dear"))
    (Decimal('1.50'), 'dear')
    """
    return Decimal(written[_DECIMAL]) if isinstance(written, dict) else written


def _checkpoint_of(spark: SparkSession, running: str | None) -> str:
    """The checkpoint of a query that runs, by its id."""
    session: Any = spark
    query = None
    if running is not None:
        query_uuid = session._jvm.java.util.UUID.fromString(running)
        # The session of a batch is a copy, which shares the queries of the one it was made of.
        queries = session._jsparkSession.sharedState().activeStreamingQueries()
        query = queries.get(query_uuid)
    if query is None:
        raise InputError(
            "checkpoint: no query runs here that has one; expected the folder that the query is "
            "started with, its option checkpointLocation"
        )
    return str(query.resolvedCheckpointRoot()).rstrip("/")
