"""A stateless query's batch, split into the rows that can be in time and the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from headway.formats.event_lines import tell_event
from headway.models.scheduling.punctual import punctual_subset
from headway.runtime import given
from headway.runtime.given import F
from headway.runtime.sharing.aggregates import PREFIX, quoted
from headway.runtime.shedding.checkpoint import Decisions, KeptFrom
from headway.runtime.shedding.rule import is_of_class, require_classes
from headway.units import US_PER_MS, ms_to_s, s_to_ms

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

RowCounts: TypeAlias = Mapping[tuple[int | None, int | None], int]
"""Rows by bucket of deadlines and index of their class; None for an unknown one."""
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
        raise given.connect_refusal(*_NO_CONNECT)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSplit:
    """Splits batches of a stateless query into rows to keep and rows to shed, with most in time.

    The fields are the parameters of :func:`headway.shedding_batches`, with times in seconds;
    ``shed_cost_s`` is the time that a shed row adds. Rows of an unknown class, or without an
    arrival, are kept, as by :class:`ShedRule`, and counted like the dearest class.
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
