"""A stateless query's batch, split into the rows that can be in time and the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headway.formats.event_lines import tell_event
from headway.models.scheduling.punctual import punctual_subset
from headway.runtime.given import (
    F,
    connect_refusal,
    require_columns,
    require_no_connect,
    require_timestamp,
)
from headway.runtime.sharing.aggregates import PREFIX, quoted
from headway.runtime.shedding.checkpoint import Decisions, KeptFrom
from headway.runtime.shedding.rule import is_of_class, require_classes
from headway.units import US_PER_MS, ms_to_s, s_to_ms

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_DEADLINE, _CLASS = f"{PREFIX}deadline", f"{PREFIX}class"
_BUCKETS_PER_LIMIT = 10
_NO_CONNECT = (
    "gives foreachBatch no access to the checkpoint",
    "split batches in the driver of the query, or mark its rows by headway.shed",
)


def require_driver() -> None:
    """Refuse a process whose sessions are of Spark Connect, before any query is started."""
    from pyspark.sql.utils import is_remote

    if is_remote():
        raise connect_refusal(*_NO_CONNECT)


def split_batch(
    batch: DataFrame,
    batch_id: int,
    *,
    checkpoint: str | None,
    arrived: str,
    limit_s: float,
    costs_s: Mapping[str, float],
    cost: str,
    fixed_s: float,
    now_s: float,
    shed_cost_s: float = 0.0,
    count: Callable[[int, int], None] = lambda _num_rows, _num_shed: None,
) -> tuple[DataFrame, DataFrame]:
    """Rows of a stateless query's batch to keep and to shed, with the most rows in time.

    The decision is stored in the checkpoint before any row is written. If Spark repeats the batch,
    the stored decision is used, regardless of the time and of the limit and costs given then. Rows
    of an unknown class, or without an arrival, are kept, as by `mark_shed`, and counted like the
    dearest class.

    The parameters are those of :func:`headway.shedding_batches`, with times in seconds;
    ``shed_cost_s`` is the time that a shed row adds, and ``now_s`` the start of the batch since the
    epoch. ``count`` is called for a batch that is decided for the first time: with the number of
    its rows, and of those that are shed.
    """
    require_no_connect(batch, *_NO_CONNECT)
    require_columns(batch, arrived, cost)
    require_timestamp(batch, arrived)
    require_classes(batch, cost, costs_s)
    decisions = Decisions.of_query(batch, checkpoint)
    kept_from = decisions.of_batch(batch_id)
    if kept_from is None:
        limit_us = s_to_ms(limit_s * US_PER_MS)
        step_us = max(limit_us // _BUCKETS_PER_LIMIT, 1)
        classes = sorted(costs_s, key=costs_s.__getitem__)
        counted = _counted(batch, arrived, cost, classes, limit_us, step_us)
        first = _first_kept(
            counted, [costs_s[kind] for kind in classes], step_us, now_s, fixed_s, shed_cost_s
        )
        kept_from = tuple(
            (kind, None if bucket is None else bucket * step_us - limit_us)
            for kind, bucket in zip(classes, first, strict=True)
        )
        decisions.keep(batch_id, kept_from)
        _tell(batch_id, counted, first, count)
    is_shed = _is_shed(kept_from, arrived, cost)
    return batch.where(~is_shed), batch.where(is_shed)


def _tell(
    batch_id: int,
    counted: Mapping[tuple[int | None, int | None], int],
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


def _counted(
    batch: DataFrame, arrived: str, cost: str, classes: list[str], limit_us: int, step_us: int
) -> dict[tuple[int | None, int | None], int]:
    """Rows by bucket of deadlines and place of their class; None for an unknown one."""
    deadline_us = F.unix_micros(quoted(arrived)) + F.lit(limit_us)
    # Rounded down, so that no row is later than its bucket.
    bucket = (deadline_us - F.pmod(deadline_us, F.lit(step_us))) / F.lit(step_us)
    class_index: Any = F.lit(None).cast("int")
    for at, kind in enumerate(classes):
        class_index = F.when(is_of_class(cost, kind), F.lit(at)).otherwise(class_index)
    columns = bucket.cast("long").alias(_DEADLINE), class_index.alias(_CLASS)
    counts = batch.select(*columns).groupBy(_DEADLINE, _CLASS).count().collect()
    return {(row[_DEADLINE], row[_CLASS]): row["count"] for row in counts}


def _first_kept(
    counted: Mapping[tuple[int | None, int | None], int],
    costs_s: list[float],
    step_us: int,
    now_s: float,
    fixed_s: float,
    shed_cost_s: float,
) -> list[int | None]:
    """For each class, the first bucket from which all rows are kept; None if none is."""
    buckets = sorted({bucket for bucket, at in counted if bucket is not None and at is not None})
    counts = np.zeros((len(buckets), len(costs_s)), dtype=np.int64)
    for (bucket, at), count in counted.items():
        if bucket is None or at is None:
            # Kept without being judged, so its time is spent in any case.
            fixed_s += count * (costs_s[-1] if at is None else costs_s[at])
        else:
            counts[buckets.index(bucket), at] = count
    kept_rows, _ = punctual_subset(
        now_s,
        np.array([ms_to_s(bucket * step_us / US_PER_MS) for bucket in buckets]),
        np.array(costs_s),
        counts,
        fixed_s=fixed_s,
        shed_cost_s=shed_cost_s,
    )
    # Rows of a bucket cannot be distinguished on replay, so one that is kept in part is shed.
    is_whole = kept_rows == counts
    num_late = [int(np.max(np.flatnonzero(~column), initial=-1)) + 1 for column in is_whole.T]
    return [buckets[late] if late < len(buckets) else None for late in num_late]
