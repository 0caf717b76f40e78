"""Rows that a query has shed, found again by the timestamps in its offset log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headway.errors import InputError
from headway.runtime.given import (
    F,
    column_like,
    folder_text,
    require_columns,
    require_no_connect,
    require_timestamp,
)
from headway.runtime.sharing.aggregates import PREFIX, quoted
from headway.runtime.sharing.files import SparkFiles
from headway.runtime.shedding.offset_log import CommittedBatch, committed_batches, offset_spans
from headway.runtime.shedding.rule import limit_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BATCH_COLUMN = "batch"
_KAFKA = ("topic", "partition", "offset")
_WHOLE_NUMBERS = ("tinyint", "smallint", "int", "bigint")
_SPAN = tuple(f"{PREFIX}{name}" for name in ("topic", "partition", "first", "end"))


def brought_back(
    checkpoint: str | Path,
    rows: DataFrame,
    *,
    arrived: str,
    limits_s: Mapping[str, float] | float,
    cost: str | None = None,
) -> DataFrame:
    """The rows that a finished or running query has shed, for a batch job that recovers them.

    The parameters are those of :func:`headway.bring_back`, with ages in seconds. The offset log in
    the checkpoint contains each batch's timestamp.
    """
    folder = folder_text(checkpoint)
    require_columns(rows, arrived, cost)
    require_no_connect(
        rows,
        "gives no access to the offset log of a checkpoint",
        "bring the rows back in a batch job of its own",
    )
    limit = limit_of(rows, limits_s, cost)
    if rows.isStreaming:
        raise InputError(
            "rows: got a stream; expected its source read as a batch: spark.read, not readStream"
        )
    require_timestamp(rows, arrived)
    batches = committed_batches(SparkFiles(rows.sparkSession), folder)
    if not batches:
        raise InputError(f"{checkpoint}: no committed batch; expected a query that has run")
    batch = column_like(rows, BATCH_COLUMN)
    if batch is None:
        rows, batch = _with_batch(rows, batches), BATCH_COLUMN
    kind = rows.schema[batch].dataType.simpleString()
    if kind not in _WHOLE_NUMBERS:
        raise InputError(
            f"column {batch!r} is of type {kind}; expected the number of each row's batch"
        )
    began_s = F.create_map(
        *(F.lit(part) for number, timestamp_s, _ in batches for part in (number, timestamp_s))
    )
    age_s = began_s[F.col(batch)] - F.col(quoted(arrived)).cast("double")
    return rows.where(age_s > limit)


def _with_batch(rows: DataFrame, batches: Sequence[CommittedBatch]) -> DataFrame:
    """Kafka rows that the batches have read, each with the number of its batch."""
    if missing := [name for name in _KAFKA if name not in rows.columns]:
        raise InputError(
            f"no column {missing[0]!r}; expected topic, partition and offset, as Spark reads them "
            f"from Kafka, or a column {BATCH_COLUMN!r} with the batch that each row was in"
        )
    spans = offset_spans(batches)
    if not spans:
        raise InputError(
            f"the offset log has no offsets of Kafka; expected a column {BATCH_COLUMN!r} with the "
            "batch that each row was in"
        )
    table = rows.sparkSession.createDataFrame(
        spans, "{} int, {} string, {} int, {} long, {} long".format(BATCH_COLUMN, *_SPAN)
    )
    topic, partition, offset = map(F.col, _KAFKA)
    of_topic, of_partition, first, end = map(F.col, _SPAN)
    is_of_batch = (
        (topic == of_topic) & (partition == of_partition) & (offset >= first) & (offset < end)
    )
    return rows.join(F.broadcast(table), is_of_batch).drop(*_SPAN)
