"""Operators of SQL plans by the metrics that the tasks of a stage report: what a stage computes."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from headway.profiler.event_parts import StageInfo
from headway.profiler.plan_nodes import PlanNode, in_pre_order, is_join, is_scan, tables_read
from headway.profiler.schema import BatchOf

ROWS_METRICS = ("number of output rows", "shuffle records written", "records read")
"""Metrics that tell a stage's operators: other ones are often 0, and Spark reports none that is."""

# Bounds memory regardless of how long a query ran: some thousand batches.
_MOST_METRICS = 150_000
_BATCHES_PER_NAME = 4
_ADAPTIVE = b'"AdaptiveSparkPlan"'
_BROADCAST = b'"BroadcastExchange"'
_SCOPE = re.compile(r'"name"\s*:\s*"((?:[^"\\]|\\.)*)"')
# Of a compiled stage, and the version of a Delta table whose state is read.
_NUMBER = re.compile(r" \(\d+\)$| #\d+\b")


class Operator(NamedTuple):
    """An operator of a plan: its position in pre-order, its name and, of a scan or join, the table.

    ``is_replanned`` is one that only a plan changed by adaptive execution has; its position is that
    in the changed plan.
    """

    is_replanned: bool
    position: int
    name: str
    table: str | None

    @property
    def is_scan(self) -> bool:
        return is_scan(self.name)


class PlanOperators(msgspec.Struct):
    """Operators of the executions of a log by the ids of their metrics, unique in the log."""

    of_metric: dict[int, Operator] = {}

    def note_plan(self, plan: PlanNode, *, is_replanned: bool) -> None:
        """The operators of a plan; those that the first plan has keep their positions in it."""
        for metric_id, operator in _operators(plan, is_replanned=is_replanned):
            self._note(metric_id, operator)

    def _note(self, metric_id: int, operator: Operator) -> None:
        noted = self.of_metric.get(metric_id)
        if noted is None or operator < noted:
            self.of_metric[metric_id] = operator

    def add(self, other: PlanOperators) -> None:
        """Data from another part of the log."""
        for metric_id, operator in other.of_metric.items():
            self._note(metric_id, operator)
        self.leave_out_old()

    def leave_out_old(self) -> None:
        """Keep the latest; ids increase."""
        if len(self.of_metric) > _MOST_METRICS:
            self.of_metric = dict(sorted(self.of_metric.items())[-_MOST_METRICS:])

    def of_stage(self, metric_ids: tuple[int, ...]) -> tuple[Operator, ...]:
        """The operators that a stage ran, the sources first."""
        operators = {
            self.of_metric[metric_id] for metric_id in metric_ids if metric_id in self.of_metric
        }
        # Scans first: in foreachBatch, that of the stream is in another plan.
        return tuple(
            sorted(
                operators, key=lambda operator: (not operator.is_scan, -operator.position, operator)
            )
        )


def reads_operators(batch: BatchOf, plan: msgspec.Raw) -> bool:
    """Whether the operators of a batch are read: of some batches, for the names of its stages.

    Of all batches where RDDs are made in an order that differs between batches, so that only the
    positions of operators tell similar stages apart: by adaptive execution, and for the tables of
    several broadcasts, which are prepared at the same time.
    """
    if names_stages(batch):
        return True
    text = bytes(plan)
    return _ADAPTIVE in text or text.count(_BROADCAST) > 1


def names_stages(batch: BatchOf) -> bool:
    """Whether the plans of a batch are read for the names of its stages, as of some batches."""
    return batch.batch_id % _BATCHES_PER_NAME == 1


def rows_metric_ids(info: StageInfo) -> tuple[int, ...]:
    """Metrics that tell the operators of a stage."""
    return tuple(
        sorted(
            metric.accumulator_id
            for metric in info.accumulables or ()
            if metric is not None
            and metric.name in ROWS_METRICS
            and metric.accumulator_id is not None
        )
    )


def scopes(info: StageInfo) -> tuple[str, ...] | None:
    """Names of the operators that made the RDDs of a stage, sorted; None if not recorded.

    Compiled operators are one scope, whose number differs between batches that adaptive execution
    plans. A merge into a Delta table reads the state of another version of it in every batch.

    >>> from headway.profiler.event_parts import RddInfo
    >>> scopes(StageInfo(rdds=[RddInfo(scope='{"id":"3","name":"Scan Delta Table State #4"}')]))
    ('Scan Delta Table State',)
    >>> scopes(StageInfo(rdds=[RddInfo(scope='{"id":"3","name":"WholeStageCodegen (2)"}')]))
    ('WholeStageCodegen',)
    """
    if info.rdds is None:
        return None
    names = [
        _NUMBER.sub("", name[1]).strip()
        for rdd in info.rdds
        if rdd is not None and (name := _SCOPE.search(rdd.scope or ""))
    ]
    return tuple(sys.intern(name) for name in sorted(names)) or None


def num_scans(info: StageInfo) -> int:
    """Number of scans among the operators that made the RDDs of a stage."""
    return len(
        {
            rdd.scope
            for rdd in info.rdds or ()
            if rdd is not None
            and (name := _SCOPE.search(rdd.scope or ""))
            and is_scan(name[1])
            and name[1] != "InMemoryTableScan"  # of the cache, which is no source
        }
    )


def first_rdd_id(info: StageInfo) -> int | None:
    """The least id of the RDDs of a stage: plans are turned into RDDs in the same order."""
    ids = [rdd.rdd_id for rdd in info.rdds or () if rdd is not None and rdd.rdd_id is not None]
    return min(ids, default=None)


def is_barrier(info: StageInfo) -> bool:
    """Whether all tasks of a stage start together, or none: barrier execution."""
    return any(rdd is not None and rdd.is_barrier for rdd in info.rdds or ())


def _operators(plan: PlanNode, *, is_replanned: bool) -> Iterator[tuple[int, Operator]]:
    nodes = in_pre_order(plan)
    tables = tables_read(nodes)
    for position, node in enumerate(nodes):
        name = (node.node.name or "").strip()
        tables_beside = (
            tables[node.children[-1]] if is_join(name) and node.children else tables[position]
        )
        names_table = len(tables_beside) == 1 and (is_join(name) or is_scan(name))
        table = next(iter(tables_beside)) if names_table else None
        operator = Operator(is_replanned, position, name, table)
        for metric in node.node.metrics or ():
            if metric is not None and metric.name in ROWS_METRICS:
                metric_id = metric.accumulator_id
                if metric_id is not None:
                    yield metric_id, operator
