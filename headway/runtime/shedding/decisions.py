"""Decisions about the batches of a query, in its checkpoint, for batches that Spark repeats."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from headway.errors import InputError
from headway.formats.own_files import parse_json
from headway.runtime.sharing.files import SparkFiles
from headway.runtime.shedding.offset_log import batch_timestamp_ms, query_id

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DECISIONS_FOLDER = "headway-shed"
_FORMAT = "headway.shed/v1"
_QUERY_PROPERTY = "sql.streaming.queryId"
_RETAINED_KEY, _RETAINED = "spark.sql.streaming.minBatchesToRetain", "100"

KeptFrom: TypeAlias = tuple[tuple[object, int | None], ...]
"""For each class, the arrival from which rows are kept; None if none are. [us since the epoch]"""


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
            kept_from = tuple((kind, from_us) for kind, from_us in decision["kept_from_us"])
            is_of_batch = {name: decision[name] for name in identity} == identity
        except (InputError, ValueError, KeyError, TypeError):
            raise InputError(
                f"{path}: not a decision of Headway; expected the file as it was written. Start "
                "with a new checkpoint"
            ) from None
        return kept_from if is_of_batch else None

    def keep(self, batch_id: int, kept_from: KeptFrom) -> None:
        """Store a decision, and delete those of batches that Spark no longer retains."""
        decision = {"format": _FORMAT, **self._identity(batch_id), "kept_from_us": kept_from}
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
