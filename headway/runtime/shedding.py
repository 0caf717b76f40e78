"""Load shedding: rows are marked before the stateful operator, identically on each replay.

The rule compares the arrival of a row with the batch's timestamp, which Spark stores in the offset
log. A batch that is repeated sheds the same rows.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headway.errors import InputError
from headway.models.scheduling.punctual import punctual_subset
from headway.runtime.given import require_columns, require_folder, require_timestamp
from headway.units import ms_to_s

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SHED_COLUMN, BATCH_COLUMN = "shed", "batch"
SHED_METRIC = "shedding"
"""Name of a batch's rows and shed rows in ``observedMetrics``."""
_KAFKA = ("topic", "partition", "offset")
_WHOLE_NUMBERS = ("tinyint", "smallint", "int", "bigint")
_DECISIONS = "headway-shed"
_CLASSES, _AGE = "_headway_class", "_headway_deadline_ms"


def mark_shed(
    rows: DataFrame, *, arrived: str, limits_s: Mapping[str, float] | float, cost: str | None
) -> DataFrame:
    """The same rows with a column ``shed``; each batch reports the counts ``rows`` and ``shed``.

    Parameters
    ----------
    rows : DataFrame
        A stream, before its stateful operator.
    arrived : str
        Column with the time of arrival.
    limits_s : float, or mapping of str to float
        Age from which a row is shed; by cost class if there are several. [s]
    cost : str or None
        Column with the cost class.

    Raises
    ------
    InputError
        If a column is missing or the limits do not match.
    """
    from pyspark.sql import functions as sf

    require_columns(rows, arrived, cost)
    if SHED_COLUMN in rows.columns:
        raise InputError(f"the rows have a column {SHED_COLUMN!r} already; rename it")
    limit = _limit_of(limits_s, cost)
    require_timestamp(rows, arrived)
    if not rows.isStreaming:
        raise InputError(
            "rows: got the rows of a batch job; expected a stream, as spark.readStream gives it: "
            "the rule goes by the timestamps of its micro-batches"
        )
    # Spark replaces this by the batch's timestamp from the offset log.
    age_s = sf.current_timestamp().cast("double") - sf.col(arrived).cast("double")
    marked = rows.withColumn(SHED_COLUMN, sf.coalesce(age_s > limit, sf.lit(False)))
    return marked.observe(
        SHED_METRIC,
        sf.count(sf.lit(1)).alias("rows"),
        sf.count_if(sf.col(SHED_COLUMN)).alias("shed"),
    )


def _limit_of(limits_s: Mapping[str, float] | float, cost: str | None) -> Column:
    from pyspark.sql import functions as sf

    if isinstance(limits_s, Mapping):
        if cost is None or not limits_s:
            raise InputError("limits by cost class need the column of the class: cost='...'")
        limit: Any = sf.lit(None).cast("double")
        for kind, limit_s in limits_s.items():
            limit = sf.when(sf.col(cost) == kind, sf.lit(float(limit_s))).otherwise(limit)
        by_class: Column = limit
        return by_class
    if cost is not None:
        raise InputError(
            "a cost class needs limits by class, e.g. {'cheap': '2s', 'dear': '500ms'}"
        )
    return sf.lit(float(limits_s))


def brought_back(
    checkpoint: str | Path,
    rows: DataFrame,
    *,
    arrived: str,
    limits_s: Mapping[str, float] | float,
    cost: str | None = None,
) -> DataFrame:
    """The rows that a finished or running query has shed, for a batch job that recovers them.

    Parameters
    ----------
    checkpoint : str or Path
        The query's checkpoint; its offset log contains each batch's timestamp.
    rows : DataFrame
        The same source read as a batch: Kafka's ``topic``, ``partition``, ``offset``, or a column
        ``batch`` with the batch of each row.
    arrived, limits_s, cost
        The rule, as passed to `mark_shed`.

    Raises
    ------
    InputError
        If the checkpoint has no offset log or no committed batch, or the batch of a row is unknown.
    """
    from pyspark.sql import functions as sf

    require_folder(checkpoint)
    batches = committed_batches(checkpoint)
    if not batches:
        raise InputError(f"{checkpoint}: no committed batch; expected a query that has run")
    require_columns(rows, arrived, cost)
    limit = _limit_of(limits_s, cost)
    if rows.isStreaming:
        raise InputError(
            "rows: got a stream; expected its source read as a batch: spark.read, not readStream"
        )
    require_timestamp(rows, arrived)
    if BATCH_COLUMN not in rows.columns:
        rows = _with_batch(rows, batches)
    kind = rows.schema[BATCH_COLUMN].dataType.simpleString()
    if kind not in _WHOLE_NUMBERS:
        raise InputError(
            f"column {BATCH_COLUMN!r} is of type {kind}; expected the number of each row's batch"
        )
    entries = [part for one in batches for part in (sf.lit(one.number), sf.lit(one.timestamp_s))]
    age_s = sf.create_map(*entries)[sf.col(BATCH_COLUMN)] - sf.col(arrived).cast("double")
    return rows.where(age_s > limit)


def _with_batch(rows: DataFrame, batches: Sequence[CommittedBatch]) -> DataFrame:
    """Kafka rows that the batches have read, each with the number of its batch."""
    from pyspark.sql import functions as sf

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
        [tuple(span) for span in spans],
        f"{BATCH_COLUMN} int, _topic string, _partition int, _first long, _end long",
    )
    topic, partition, offset = map(sf.col, _KAFKA)
    is_of_batch = (
        (topic == sf.col("_topic"))
        & (partition == sf.col("_partition"))
        & (offset >= sf.col("_first"))
        & (offset < sf.col("_end"))
    )
    joined = rows.join(sf.broadcast(table), is_of_batch)
    return joined.drop("_topic", "_partition", "_first", "_end")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedBatch:
    """A batch in the offset log: its timestamp, and the first offsets that it left unread."""

    number: int
    timestamp_s: float
    ends: Mapping[tuple[str, int], int]


class OffsetSpan(NamedTuple):
    """Offsets of a partition that a batch has read, from the first to before the end."""

    batch: int
    topic: str
    partition: int
    first: int
    end: int


def offset_spans(batches: Sequence[CommittedBatch]) -> list[OffsetSpan]:
    """Offsets that each batch has read from each Kafka partition.

    The entry before a batch determines where it started, and Spark deletes old entries of the log.
    So nothing is known about the first remaining batch, unless it is batch 0. A new partition
    starts at 0.

    Examples
    --------
    >>> def ending(number, end):
    ...     return CommittedBatch(number=number, timestamp_s=0.0, ends={("orders", 0): end})
    >>> [tuple(span) for span in offset_spans([ending(7, 40), ending(8, 60), ending(9, 60)])]
    [(8, 'orders', 0, 40, 60)]
    >>> [tuple(span) for span in offset_spans([ending(0, 40)])]
    [(0, 'orders', 0, 0, 40)]
    """
    before: Mapping[tuple[str, int], int] = {}
    spans = []
    for place, one in enumerate(batches):
        for (topic, partition), end in one.ends.items():
            first = before.get((topic, partition), 0)
            if end > first and (place > 0 or one.number == 0):
                spans.append(OffsetSpan(one.number, topic, partition, first, end))
        before = {**before, **one.ends}
    return spans


def committed_batches(checkpoint: str | Path) -> list[CommittedBatch]:
    """The committed batches that are still in a checkpoint's offset log, from the first.

    Raises
    ------
    InputError
        If there is no offset log, or it is not Spark's.
    """
    offsets, commits = Path(checkpoint, "offsets"), Path(checkpoint, "commits")
    if not offsets.is_dir():
        raise InputError(f"{checkpoint}: no offset log; expected the checkpoint of a query")
    found = []
    for file in offsets.iterdir():
        if file.name.isdigit() and (commits / file.name).exists():
            timestamp_s, sources = _logged(file)
            ends = dict(end for source in sources for end in _kafka_ends(source))
            found.append(CommittedBatch(number=int(file.name), timestamp_s=timestamp_s, ends=ends))
    return sorted(found, key=lambda one: one.number)


def _logged(file: Path) -> tuple[float, list[str]]:
    """The timestamp of a batch [s], and the offsets of each source."""
    try:
        # A version, the metadata, then the offsets of each source.
        _, metadata, *sources = file.read_text(encoding="utf-8").splitlines()
        return ms_to_s(json.loads(metadata)["batchTimestampMs"]), sources
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(
            f"{file}: not an entry of Spark's offset log; expected the checkpoint of a streaming "
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


def split_batch(
    batch: DataFrame,
    batch_id: int,
    *,
    checkpoint: str | Path,
    arrived: str,
    limit_s: float,
    costs_s: Mapping[str, float],
    cost: str,
    fixed_s: float,
    now_s: float,
    shed_cost_s: float = 0.0,
) -> tuple[DataFrame, DataFrame]:
    """Rows of a stateless query's batch to keep and to shed, with the most rows in time.

    The decision is stored beside the checkpoint before any row is written. If Spark repeats the
    batch, the stored decision is used, regardless of the time.

    Parameters
    ----------
    batch, batch_id
        As passed by `foreachBatch`.
    checkpoint : str or Path
        Folder beside which decisions are stored.
    arrived, cost : str
        Columns with the arrival and the cost class of a row.
    limit_s : float, > 0
        Time after its arrival during which a row is in time. [s]
    costs_s : mapping of str to float, > 0
        Time that a row of each class adds. [s]
    fixed_s, shed_cost_s : float, >= 0
        Time of a batch without rows; time that a shed row adds. [s]
    now_s : float
        Start of the batch. [s since the epoch]
    """
    from pyspark.sql import functions as sf

    classes = sorted(costs_s, key=costs_s.__getitem__)
    step_ms = max(round(limit_s * 100.0), 1)
    # Deadlines in buckets of a tenth of the limit, rounded down, so that none is too late.
    bucket = sf.floor((sf.col(arrived).cast("double") * 1000.0 + limit_s * 1000.0) / float(step_ms))
    rows = batch.withColumn(_AGE, bucket).withColumn(_CLASSES, sf.col(cost).cast("string"))
    file = Path(f"{checkpoint}-{_DECISIONS}", f"{batch_id}.json")
    if file.exists():
        limits = json.loads(file.read_text(encoding="utf-8"))
    else:
        counted = rows.groupBy(_AGE, _CLASSES).count().collect()
        limits = _decided(counted, classes, costs_s, step_ms, now_s, fixed_s, shed_cost_s)
        _keep(file, limits)
    kept = sf.lit(False)
    for kind, least in limits["least_bucket"].items():
        kept = kept | ((sf.col(_CLASSES) == kind) & (sf.col(_AGE) >= least))
    marked = rows.withColumn(SHED_COLUMN, ~sf.coalesce(kept, sf.lit(False)))
    without = marked.drop(_AGE, _CLASSES)
    return (
        without.where(~sf.col(SHED_COLUMN)).drop(SHED_COLUMN),
        without.where(sf.col(SHED_COLUMN)).drop(SHED_COLUMN),
    )


def _decided(
    counted: list[Any], classes: list[str], costs_s: Mapping[str, float], step_ms: int,
    now_s: float, fixed_s: float, shed_cost_s: float,
) -> dict[str, dict[str, int]]:  # fmt: skip
    """For each class, the first bucket of deadlines that is kept completely."""
    buckets = sorted({row[_AGE] for row in counted if row[_AGE] is not None})
    counts = np.zeros((len(buckets), len(classes)), dtype=np.int64)
    for row in counted:
        if row[_AGE] is not None and row[_CLASSES] in costs_s:
            counts[buckets.index(row[_AGE]), classes.index(row[_CLASSES])] += row["count"]
    if not buckets:
        return {"least_bucket": {}}
    subset = punctual_subset(
        now_s,
        np.array([ms_to_s(one * step_ms) for one in buckets]),
        np.array([costs_s[kind] for kind in classes]),
        counts,
        fixed_s=fixed_s,
        shed_cost_s=shed_cost_s,
    )
    least = {}
    for at, kind in enumerate(classes):
        whole = [one for one in range(len(buckets)) if subset.kept[one, at] == counts[one, at]]
        # Rows of a bucket cannot be distinguished on replay, so a bucket that is kept in part is
        # shed.
        first = len(buckets)
        while first - 1 in whole:
            first -= 1
        if first < len(buckets):
            least[kind] = int(buckets[first])
    return {"least_bucket": least}


def _keep(file: Path, decision: object) -> None:
    """Write a decision atomically and durably, also in case of a power failure."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(".tmp")
    with unfinished.open("w", encoding="utf-8") as out:
        json.dump(decision, out)
        out.flush()
        os.fsync(out.fileno())
    unfinished.replace(file)
