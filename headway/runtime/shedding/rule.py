"""The rule by which rows are shed: their age, by cost class, identically on each replay.

The rule compares the arrival of a row with the batch's timestamp, which Spark stores in the offset
log. A batch that is repeated sheds the same rows. A row that the rule cannot judge, since its class
is unknown or it has no time of arrival, is never shed. Rows that were shed are found again by the
timestamps in that log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from headway.runtime.shedding.checkpoint import CommittedBatch, committed_batches, offset_spans

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SHED_COLUMN = "shed"
BATCH_COLUMN = "batch"
_KAFKA = ("topic", "partition", "offset")
_WHOLE_NUMBERS = ("tinyint", "smallint", "int", "bigint")
_SPAN = tuple(f"{PREFIX}{name}" for name in ("topic", "partition", "first", "end"))


def mark_shed(
    rows: DataFrame,
    *,
    arrived: str,
    limits_s: Mapping[str, float] | float,
    cost: str | None,
    counted_as: str,
) -> DataFrame:
    """The same rows with a column ``shed``; each batch reports the counts ``rows`` and ``shed``.

    The parameters are those of :func:`headway.shed`, with ages in seconds.
    """
    require_columns(rows, arrived, cost)
    if taken := column_like(rows, SHED_COLUMN):
        raise InputError(f"the rows have a column {taken!r} already; rename it")
    limit = limit_of(rows, limits_s, cost)
    require_timestamp(rows, arrived)
    if not rows.isStreaming:
        raise InputError(
            "rows: got the rows of a batch job; expected a stream, as spark.readStream gives it: "
            "the rule goes by the timestamps of its micro-batches"
        )
    if not isinstance(counted_as, str) or not counted_as:
        raise InputError(f"counted_as: got {counted_as!r}; expected a name, e.g. 'shed orders'")
    # Spark replaces this by the batch's timestamp from the offset log.
    age_s = F.current_timestamp().cast("double") - F.col(quoted(arrived)).cast("double")
    marked = rows.withColumn(SHED_COLUMN, F.coalesce(age_s > limit, F.lit(False)))
    return marked.observe(
        counted_as, F.count(F.lit(1)).alias("rows"), F.count_if(F.col(SHED_COLUMN)).alias("shed")
    )


def limit_of(rows: DataFrame, limits_s: Mapping[str, float] | float, cost: str | None) -> Column:
    """The age from which a row is shed; null for a class that has no limit. [s]"""
    if isinstance(limits_s, Mapping):
        if cost is None or not limits_s:
            raise InputError("limits by cost class need the column of the class: cost='...'")
        require_classes(rows, cost, limits_s)
        limit: Any = F.lit(None).cast("double")
        for kind, limit_s in limits_s.items():
            limit = F.when(is_of_class(cost, kind), F.lit(float(limit_s))).otherwise(limit)
        by_class: Column = limit
        return by_class
    if cost is not None:
        raise InputError(
            "a cost class needs limits by class, e.g. {'cheap': '2s', 'dear': '500ms'}"
        )
    return F.lit(float(limits_s))


def is_of_class(cost: str, kind: object) -> Column:
    """Whether a row is of a cost class; null for a row without a class."""
    return F.col(quoted(cost)) == F.lit(kind)


def require_classes(rows: DataFrame, cost: str, kinds: Iterable[object]) -> None:
    """Require classes that the values of the cost column can be compared with.

    Spark would end the query at the first row if one is a text and the column is of numbers, or the
    other way round.
    """
    from pyspark.sql.types import BooleanType, NumericType, StringType

    column_type = rows.schema[cost].dataType
    values_of = ((StringType, {str}), (BooleanType, {bool}), (NumericType, {int, float, Decimal}))
    for spark_type, python_types in values_of:
        strangers = [kind for kind in kinds if type(kind) not in python_types]
        if isinstance(column_type, spark_type) and strangers:
            raise InputError(
                f"cost: the class {strangers[0]!r} is no value of column {cost!r}, which is of "
                f"type {column_type.simpleString()}; expected classes of that type"
            )


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
    require_no_connect(
        rows,
        "gives no access to the offset log of a checkpoint",
        "bring the rows back in a batch job of its own",
    )
    require_columns(rows, arrived, cost)
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
