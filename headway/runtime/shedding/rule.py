"""Which rows are shed, identically on each replay: by their age, or to have most in time.

A row that cannot be judged, since its class is unknown or it has no time of arrival, is never shed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from headway.errors import InputError
from headway.formats.event_lines import tell_event
from headway.models.scheduling.punctual import punctual_subset
from headway.runtime import given
from headway.runtime.given import F
from headway.runtime.sharing.aggregates import PREFIX, quoted
from headway.runtime.sharing.files import SparkFiles
from headway.runtime.shedding.checkpoint import (
    CommittedBatch,
    Decisions,
    KeptFrom,
    committed_batches,
    offset_spans,
)
from headway.units import US_PER_MS, ms_to_s, s_to_ms

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SHED_COLUMN = "shed"
BATCH_COLUMN = "batch"
_KAFKA = ("topic", "partition", "offset")
_WHOLE_NUMBERS = ("tinyint", "smallint", "int", "bigint")
_SPAN = tuple(f"{PREFIX}{name}" for name in ("topic", "partition", "first", "end"))
RowCounts: TypeAlias = Mapping[tuple[int | None, int | None], int]
"""Rows by bucket of deadlines and index of their class; None for an unknown one."""
_DEADLINE, _CLASS = f"{PREFIX}deadline", f"{PREFIX}class"
_BUCKETS_PER_LIMIT = 10
_NO_CONNECT = (
    "gives foreachBatch no access to the checkpoint",
    "split batches in the driver of the query, or mark its rows by headway.shed",
)


@dataclass(frozen=True, slots=True)
class ShedRule:
    """Rows are shed once they are older than the limit [s], which may depend on their cost class.

    The fields are the columns and ``older_than`` of :func:`headway.shed`. The age is that at the
    batch's timestamp, which Spark keeps in its offset log, so that a repeat sheds the same rows.
    """

    arrived: str
    limits_s: Mapping[str, float] | float
    cost: str | None

    def mark(self, rows: DataFrame, counted_as: str) -> DataFrame:
        """The same rows with a column ``shed``; each batch reports counts ``rows`` and ``shed``."""
        given.require_columns(rows, self.arrived, self.cost)
        if taken := given.column_like(rows, SHED_COLUMN):
            raise InputError(f"the rows have a column {taken!r} already; rename it")
        limit = self._limit(rows)
        given.require_timestamp(rows, self.arrived)
        if not rows.isStreaming:
            raise InputError(
                "rows: got the rows of a batch job; expected a stream, as spark.readStream gives "
                "it: the rule goes by the timestamps of its micro-batches"
            )
        if not isinstance(counted_as, str) or not counted_as:
            raise InputError(f"counted_as: got {counted_as!r}; expected a name, e.g. 'shed orders'")
        # Spark replaces this by the batch's timestamp from the offset log.
        is_shed = self._age_s(F.current_timestamp().cast("double")) > limit
        marked = rows.withColumn(SHED_COLUMN, F.coalesce(is_shed, F.lit(False)))
        num_rows, num_shed = F.count(F.lit(1)), F.count_if(F.col(SHED_COLUMN))
        return marked.observe(counted_as, num_rows.alias("rows"), num_shed.alias("shed"))

    def brought_back(self, checkpoint: str | Path, rows: DataFrame) -> DataFrame:
        """The rows that a finished or running query has shed, for a batch job to recover them."""
        folder = given.folder_text(checkpoint)
        given.require_columns(rows, self.arrived, self.cost)
        given.require_no_connect(
            rows,
            "gives no access to the offset log of a checkpoint",
            "bring the rows back in a batch job of its own",
        )
        limit = self._limit(rows)
        if rows.isStreaming:
            raise InputError(
                "rows: got a stream; expected its source read as a batch: spark.read, not "
                "readStream"
            )
        given.require_timestamp(rows, self.arrived)
        batches = committed_batches(SparkFiles(rows.sparkSession), folder)
        if not batches:
            raise InputError(f"{checkpoint}: no committed batch; expected a query that has run")
        batch = given.column_like(rows, BATCH_COLUMN)
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
        return rows.where(self._age_s(began_s[F.col(batch)]) > limit)

    def _age_s(self, at_s: Column) -> Column:
        return at_s - F.col(quoted(self.arrived)).cast("double")

    def _limit(self, rows: DataFrame) -> Column:
        """The age from which a row is shed; null for a class that has no limit. [s]"""
        if not isinstance(self.limits_s, Mapping):
            if self.cost is not None:
                raise InputError(
                    "a cost class needs limits by class, e.g. {'cheap': '2s', 'dear': '500ms'}"
                )
            return F.lit(float(self.limits_s))
        if self.cost is None or not self.limits_s:
            raise InputError("limits by cost class need the column of the class: cost='...'")
        require_classes(rows, self.cost, self.limits_s)
        limit = F.lit(None).cast("double")
        for kind, limit_s in self.limits_s.items():
            limit = F.when(is_of_class(self.cost, kind), F.lit(float(limit_s))).otherwise(limit)
        return limit


def is_of_class(cost: str, kind: object) -> Column:
    """Whether a row is of a cost class; null for a row without a class."""
    return F.col(quoted(cost)) == F.lit(kind)


def require_classes(rows: DataFrame, cost: str, kinds: Iterable[object]) -> None:
    """Require classes that the values of the cost column can be compared with.

    Spark would end the query at the first row if texts are compared with numbers.
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


def require_driver() -> None:
    """Refuse a process whose sessions are of Spark Connect, before any query is started."""
    from pyspark.sql.utils import is_remote

    if is_remote():
        raise given.connect_refusal(*_NO_CONNECT)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSplit:
    """Splits batches of a stateless query into rows to keep and rows to shed, with most in time.

    The fields are the parameters of :func:`headway.shedding_batches`, with times in seconds;
    ``shed_cost_s`` is the time that a shed row adds. Rows of an unknown class, or without an
    arrival, are kept, and counted like the dearest class.
    """

    checkpoint: str | None
    arrived: str
    limit_s: float
    costs_s: Mapping[str, float]
    cost: str
    fixed_s: float
    shed_cost_s: float

    @property
    def _limit_us(self) -> int:
        return s_to_ms(self.limit_s * US_PER_MS)

    @property
    def _step_us(self) -> int:
        return max(self._limit_us // _BUCKETS_PER_LIMIT, 1)

    @property
    def _classes(self) -> list[str]:
        """The classes, dearest last."""
        return sorted(self.costs_s, key=self.costs_s.__getitem__)

    def of(
        self, batch: DataFrame, batch_id: int, *, now_s: float, count: Callable[[int, int], None]
    ) -> tuple[DataFrame, DataFrame]:
        """Rows to keep, and rows to shed, of a batch that began at ``now_s`` since the epoch.

        The decision is stored in the checkpoint before any row is written. If Spark repeats the
        batch, the stored decision is used, regardless of the time and of the limit and costs given
        then. ``count`` is called for a batch that is decided for the first time: with the number of
        its rows, and of those that are shed.
        """
        given.require_no_connect(batch, *_NO_CONNECT)
        given.require_columns(batch, self.arrived, self.cost)
        given.require_timestamp(batch, self.arrived)
        require_classes(batch, self.cost, self.costs_s)
        decisions = Decisions.of_query(batch, self.checkpoint)
        kept_from = decisions.of_batch(batch_id)
        if kept_from is None:
            counted = self._counted(batch)
            first = self._first_kept(counted, now_s)
            kept_from = tuple(
                (kind, None if bucket is None else bucket * self._step_us - self._limit_us)
                for kind, bucket in zip(self._classes, first, strict=True)
            )
            decisions.keep(batch_id, kept_from)
            _tell(batch_id, counted, first, count)
        is_shed = _is_shed(kept_from, self.arrived, self.cost)
        return batch.where(~is_shed), batch.where(is_shed)

    def _counted(self, batch: DataFrame) -> RowCounts:
        deadline_us = F.unix_micros(quoted(self.arrived)) + F.lit(self._limit_us)
        step_us = F.lit(self._step_us)
        # Rounded down, so that no row is later than its bucket.
        bucket = (deadline_us - F.pmod(deadline_us, step_us)) / step_us
        class_index: Any = F.lit(None).cast("int")
        for at, kind in enumerate(self._classes):
            class_index = F.when(is_of_class(self.cost, kind), F.lit(at)).otherwise(class_index)
        columns = bucket.cast("long").alias(_DEADLINE), class_index.alias(_CLASS)
        counts = batch.select(*columns).groupBy(_DEADLINE, _CLASS).count().collect()
        return {(row[_DEADLINE], row[_CLASS]): row["count"] for row in counts}

    def _first_kept(self, counted: RowCounts, now_s: float) -> list[int | None]:
        """For each class, the first bucket from which all rows are kept; None if none is."""
        costs_s, fixed_s = [self.costs_s[kind] for kind in self._classes], self.fixed_s
        buckets = sorted(
            {bucket for bucket, at in counted if bucket is not None and at is not None}
        )
        counts = np.zeros((len(buckets), len(costs_s)), dtype=np.int64)
        for (bucket, at), count in counted.items():
            if bucket is None or at is None:
                # Kept without being judged, so its time is spent in any case.
                fixed_s += count * (costs_s[-1] if at is None else costs_s[at])
            else:
                counts[buckets.index(bucket), at] = count
        kept_rows, _ = punctual_subset(
            now_s,
            np.array([ms_to_s(bucket * self._step_us / US_PER_MS) for bucket in buckets]),
            np.array(costs_s),
            counts,
            fixed_s=fixed_s,
            shed_cost_s=self.shed_cost_s,
        )
        # Rows of a bucket cannot be distinguished on replay, so one that is kept in part is shed.
        is_whole = kept_rows == counts
        num_late = [int(np.max(np.flatnonzero(~column), initial=-1)) + 1 for column in is_whole.T]
        return [buckets[late] if late < len(buckets) else None for late in num_late]


def _tell(
    batch_id: int,
    counted: RowCounts,
    first: Sequence[int | None],
    count: Callable[[int, int], None],
) -> None:
    """Count a decision, and report it if rows are shed."""
    num_rows, num_shed = sum(counted.values()), 0
    for (bucket, at), number in counted.items():
        if bucket is not None and at is not None:
            first_bucket = first[at]
            num_shed += number if first_bucket is None or bucket < first_bucket else 0
    count(num_rows, num_shed)
    if num_shed:
        why = f"{num_shed:,} of {num_rows:,} rows cannot be in time"
        tell_event("shedding", "shed", why, batch=batch_id, rows=num_rows, shed=num_shed)


def _is_shed(kept_from: KeptFrom, arrived: str, cost: str) -> Column:
    """Whether a row arrived before those of its class that are kept."""
    arrived_us = F.unix_micros(quoted(arrived))
    is_shed = F.lit(False)
    for kind, from_us in kept_from:
        is_early = arrived_us.isNotNull() if from_us is None else arrived_us < F.lit(from_us)
        # Null for a row that cannot be judged.
        is_shed = is_shed | F.coalesce(is_of_class(cost, kind) & is_early, F.lit(False))
    return is_shed
