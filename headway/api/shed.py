"""Rows beyond capacity are shed by a rule in the plan, counted, and can be recovered."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from headway.domain.argument_values import not_expected
from headway.domain.recorded import ShedCount
from headway.runtime.given import column_name, folder_text
from headway.runtime.shedding.rule import brought_back, mark_shed
from headway.runtime.shedding.split import require_driver, split_batch
from headway.turns.arguments import TIME, limits_by_class_s, times_by_class_s

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def shed(
    rows: DataFrame,
    *,
    arrived: str | Column,
    older_than: Mapping[str, float | str] | float | str,
    cost: str | Column | None = None,
    counted_as: str = "shedding",
) -> DataFrame:
    """Mark the rows of a stream that are too old to be processed, before they cost any work.

    The result has a column ``shed``. Guard expensive work by ``when(~shed, ...)``, and group by
    ``shed`` with a key that is null for shed rows: they are counted once, in the same state as the
    rest, in one row of state per window. A replay sheds the same rows, because the rule uses the
    timestamp that Spark keeps in the offset log.

    Parameters
    ----------
    rows : DataFrame
        A stream, before its stateful operator.
    arrived : str or Column
        The column with the time at which a row arrived, e.g. Kafka's ``timestamp``.
    older_than : float or str, or a mapping of them by cost class
        Age from which a row is shed, e.g. ``{"cheap": "2s", "dear": "500ms"}``: the latency target
        minus the duration of a batch. Fixed while the query runs.
    cost : str or Column, optional
        The column with the cost class. Rows of a class without a limit, or without a time of
        arrival, are not shed.
    counted_as : str
        Name in ``observedMetrics`` of each progress for how many ``rows`` a batch had and how many
        were ``shed``. Streams that are marked separately and then joined or united in one query
        need different names, or Spark refuses the query.

    Raises
    ------
    InputError
        If a column is missing, or a limit is no duration.
    """
    limits_s = limits_by_class_s(older_than)
    return mark_shed(
        rows,
        arrived=column_name("arrived", arrived),
        limits_s=limits_s,
        cost=None if cost is None else column_name("cost", cost),
        counted_as=counted_as,
    )


def bring_back(
    checkpoint: str | Path,
    rows: DataFrame,
    *,
    arrived: str | Column,
    older_than: Mapping[str, float | str] | float | str,
    cost: str | Column | None = None,
) -> DataFrame:
    """The rows that a query has shed, from its source read as a batch.

    Parameters
    ----------
    checkpoint : str or Path
        The query's checkpoint, on any file system of Spark. Its offset log keeps the last 100
        batches (``spark.sql.streaming.minBatchesToRetain``); rows of earlier ones are not found.
    rows : DataFrame
        The rows that the query read: for Kafka with ``topic``, ``partition`` and ``offset`` and the
        columns of the rule; for other sources with a column ``batch``, the number of each row's
        batch.
    arrived, older_than, cost
        The rule, as given to `shed`.

    Returns
    -------
    DataFrame
        The rows that were shed, with their ``batch``.

    Raises
    ------
    InputError
        If the checkpoint has no offset log, the batch of a row is unknown, or a limit is no
        duration.
    """
    limits_s = limits_by_class_s(older_than)
    return brought_back(
        checkpoint,
        rows,
        arrived=column_name("arrived", arrived),
        limits_s=limits_s,
        cost=None if cost is None else column_name("cost", cost),
    )


def shedding_batches(
    keep: Callable[[DataFrame, int], None],
    give_up: Callable[[DataFrame, int], None],
    *,
    checkpoint: str | Path | None = None,
    arrived: str | Column,
    limit: float | str,
    costs: Mapping[str, float | str],
    cost: str | Column,
    fixed: float | str,
    give_up_cost: float | str | None = None,
) -> SheddingBatches:
    """A function for ``foreachBatch`` of a stateless query: keeps the rows that can be in time.

    Parameters
    ----------
    keep, give_up : callable
        Called with the rows and the number of the batch; both must write under that number, so that
        a repeated batch replaces what it wrote.
    checkpoint : str or Path, optional
        The query's checkpoint, on any file system of Spark; by default that of the writer that it
        is started with. Decisions are kept in it, and are valid for its query only.
    arrived, cost : str or Column
        Columns with the arrival and the cost class of a row. Rows of a class without a cost, or
        without a time of arrival, are kept, and counted like the class that takes longest.
    limit : float or str
        How long after its arrival a row is in time.
    costs : mapping of str to float or str
        Time that a row of each class adds.
    fixed : float or str
        Time of a batch without rows.
    give_up_cost : float or str, optional
        Time that a row adds if it is given up, less than that of any class; none by default.

    Returns
    -------
    SheddingBatches
        To be passed to ``foreachBatch``; its ``count`` has the rows that it has shed.

    Raises
    ------
    InputError
        If a time is no duration, giving up takes as long as keeping, or this process uses Spark
        Connect. The function itself raises it if the folder is not the query's checkpoint.
    """
    for parameter, function in (("keep", keep), ("give_up", give_up)):
        if not callable(function):
            raise not_expected(parameter, function, "a function of rows and a number")
    arrived, cost = column_name("arrived", arrived), column_name("cost", cost)
    folder = None if checkpoint is None else folder_text(checkpoint)
    require_driver()
    limit_s, fixed_s = TIME.read(limit, "limit"), TIME.read(fixed, "fixed")
    costs_s = times_by_class_s(costs, "costs")
    shed_cost_s = 0.0 if give_up_cost is None else TIME.read(give_up_cost, "give_up_cost")
    if not costs_s or shed_cost_s >= min(costs_s.values()):
        raise not_expected("costs", costs, "classes that take longer than to give up")

    split = partial(
        split_batch,
        checkpoint=folder,
        arrived=arrived,
        limit_s=limit_s,
        costs_s=costs_s,
        cost=cost,
        fixed_s=fixed_s,
        shed_cost_s=shed_cost_s,
    )
    return SheddingBatches(split, keep, give_up)


class SheddingBatches:
    """A function for ``foreachBatch`` that splits batches; made by :func:`shedding_batches`."""

    def __init__(
        self,
        split: Callable[..., tuple[DataFrame, DataFrame]],
        keep: Callable[[DataFrame, int], None],
        give_up: Callable[[DataFrame, int], None],
    ) -> None:
        self._split, self._keep, self._give_up = split, keep, give_up
        self._num_rows = self._num_shed = 0

    @property
    def count(self) -> ShedCount:
        """Rows of all batches so far, and those that were shed; a repeated batch counts once."""
        return ShedCount(
            query="", rule="foreachBatch", num_rows=self._num_rows, num_shed=self._num_shed
        )

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        batch.persist()
        try:
            kept_rows, given_up_rows = self._split(
                batch, batch_id, now_s=time.time(), count=self._add
            )
            self._keep(kept_rows, batch_id)
            self._give_up(given_up_rows, batch_id)
        finally:
            batch.unpersist()

    def _add(self, num_rows: int, num_shed: int) -> None:
        self._num_rows += num_rows
        self._num_shed += num_shed
