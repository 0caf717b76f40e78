"""Operators of SQL plans by the metrics that the tasks of a stage report: what a stage computes.

As operators, and in words.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple, TypeAlias

import msgspec

from headway.profiler.plan_nodes import (
    Outline,
    PlanNode,
    in_pre_order,
    is_join,
    is_scan,
    outline_of,
    tables_read,
)
from headway.profiler.schema import BatchOf, StageInfo

CACHE_SCAN = "InMemoryTableScan"
OUTPUT_ROWS = "number of output rows"
ROWS_METRICS = (OUTPUT_ROWS, "shuffle records written", "records read")
"""Metrics that tell a stage's operators: other ones are often 0, and Spark reports none that is."""

_BATCHES_PER_NAME = 4
_ADAPTIVE = b'"AdaptiveSparkPlan"'
_BROADCAST = b'"BroadcastExchange"'
_SCOPE = re.compile(r'"name"\s*:\s*"((?:[^"\\]|\\.)*)"')
# Of a compiled stage, and the version and place of a Delta table whose state is read.
_NUMBER = re.compile(r" \(\d+\)$| #\d+\b(?: - .*)?")
# What Spark calls a stage: the call of the program, and where it stands.
_CALL = re.compile(
    r"(?P<method>\w{1,60}) at (?:.*[/\\])?(?P<place>(?P<file>[\w.-]{1,80}|<console>):\d{1,9})"
)
_call = lru_cache(maxsize=256)(_CALL.fullmatch)
# Places of calls that come from Python, and of those in threads of Spark.
_OF_REFLECTION = "NativeMethodAccessorImpl.java"
_OF_THREADS = ("CompletableFuture.java", "ThreadPoolExecutor.java")


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


PlanOperators: TypeAlias = dict[int, Operator]
"""Operators of the executions of a log by the ids of their metrics, unique in the log."""


def plan_operators(plan: PlanNode, *, is_replanned: bool) -> Iterator[tuple[int, Operator]]:
    """The operators of a plan, each with the id of a metric."""
    nodes = in_pre_order(plan)
    operators = _operators(outline_of(nodes), is_replanned)
    for (node, _), operator in zip(nodes, operators, strict=True):
        for metric in filter(None, node.metrics or ()):
            if metric.name in ROWS_METRICS and metric.accumulator_id is not None:
                yield metric.accumulator_id, operator


def note_operators(noted: PlanOperators, further: Iterable[tuple[int, Operator]]) -> None:
    """Note further operators; those that the first plan has keep their positions in it."""
    for metric_id, operator in further:
        noted[metric_id] = min(operator, noted.get(metric_id, operator))


def operators_of_stage(noted: PlanOperators, metric_ids: tuple[int, ...]) -> tuple[Operator, ...]:
    """The operators that a stage ran, the sources first."""
    operators = {noted[metric_id] for metric_id in metric_ids if metric_id in noted}
    # Scans first: in foreachBatch, that of the stream is in another plan.
    return tuple(
        sorted(operators, key=lambda operator: (not operator.is_scan, -operator.position, operator))
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
    metrics = [metric for metric in info.accumulables or () if metric is not None]
    ids = [metric.accumulator_id for metric in metrics if metric.name in ROWS_METRICS]
    return tuple(sorted(metric_id for metric_id in ids if metric_id is not None))


def scopes(info: StageInfo) -> tuple[str, ...] | None:
    """Names of the operators that made the RDDs of a stage, sorted; None if not recorded.

    Compiled operators are one scope, whose number differs between batches that adaptive execution
    plans. A merge into a Delta table reads the state of another version of it in every batch, and
    the same query may write to another place in another run.

    >>> from headway.profiler.schema import RddInfo
    >>> scopes(StageInfo(rdds=[RddInfo(scope='{"id":"3","name":"Scan Delta Table State #4"}')]))
    ('Scan Delta Table State',)
    >>> state = "Scan ExistingRDD Delta Table State #20 - file:///shop/latest/_delta_log"
    >>> scopes(StageInfo(rdds=[RddInfo(scope=f'{{"id":"3","name":"{state}"}}')]))
    ('Scan ExistingRDD Delta Table State',)
    >>> scopes(StageInfo(rdds=[RddInfo(scope='{"id":"3","name":"WholeStageCodegen (2)"}')]))
    ('WholeStageCodegen',)
    """
    names = (
        name[1]
        for rdd in info.rdds or ()
        if rdd is not None and (name := _SCOPE.search(rdd.scope or ""))
    )
    return _scopes_of(tuple(names))


@lru_cache(maxsize=1024)  # the same in every batch
def _scopes_of(names: tuple[str, ...]) -> tuple[str, ...] | None:
    return tuple(sorted(map(_without_number, names))) or None


def _without_number(name: str) -> str:
    return sys.intern(_NUMBER.sub("", name).strip())


def call_of_program(info: StageInfo, scopes_of_stage: Sequence[str] | None) -> str | None:
    """The call of a program that a stage is for, and the methods of its RDDs, the sources first.

    It names stages that run no operator with a name: those of a program without SQL, or a search
    for files. Of the place of a call, it has only the file and the line. Versions before 1.4 name
    no methods.

    >>> from headway.profiler.schema import RddInfo
    >>> rdds = [
    ...     RddInfo(rdd_id=rdd_id, scope=f'{{"name":"{name}"}}')
    ...     for rdd_id, name in ((1, "map"), (0, "textFile"))
    ... ]
    >>> of_user = StageInfo(rdds=rdds, name="count at /home/jobs/report.py:7")
    >>> call_of_program(of_user, scopes(of_user))
    'count at report.py:7: textFile, map'
    >>> of_python = StageInfo(rdds=rdds, name="count at NativeMethodAccessorImpl.java:0")
    >>> call_of_program(of_python, scopes(of_python))
    'count: textFile, map'
    >>> call_of_program(StageInfo(rdds=[RddInfo()], name="first at <console>:17"), None)
    'first at <console>:17'
    """
    methods: list[str] = []
    if any(map(_is_method, scopes_of_stage or ())):
        in_order = sorted(filter(None, info.rdds or ()), key=lambda rdd: rdd.rdd_id or 0)
        of_each = (scopes(StageInfo(rdds=[rdd])) or () for rdd in in_order)
        methods = list(filter(_is_method, chain.from_iterable(of_each)))
    words: list[str] = []
    call = _call(info.name or "")
    if call is not None and call["file"] not in _OF_THREADS:
        is_reflected = call["file"] == _OF_REFLECTION
        words.append(call["method"] if is_reflected else f"{call['method']} at {call['place']}")
        methods = [method for method in methods if method != call["method"]]
    if methods:
        words.append(", ".join(dict.fromkeys(methods)))
    return sys.intern(": ".join(words)) or None


def _is_method(scope: str) -> bool:
    """Whether a scope is a method of RDDs; those of Spark's own code are internal."""
    return scope[:1].islower() and not scope.endswith("Internal")


def num_scans(info: StageInfo) -> int:
    """Number of scans among the operators that made the RDDs of a stage."""
    scopes_of_stage = {rdd.scope for rdd in info.rdds or () if rdd is not None and rdd.scope}
    names = (_SCOPE.search(scope) for scope in scopes_of_stage if "Scan" in scope)
    # That of the cache is no source.
    return sum(is_scan(name[1]) and name[1] != CACHE_SCAN for name in names if name)


def first_rdd_id(info: StageInfo) -> int | None:
    """The least id of the RDDs of a stage: plans are turned into RDDs in the same order."""
    ids = [rdd.rdd_id for rdd in info.rdds or () if rdd is not None and rdd.rdd_id is not None]
    return min(ids, default=None)


def is_barrier(info: StageInfo) -> bool:
    """Whether all tasks of a stage start together, or none: barrier execution."""
    return any(rdd is not None and rdd.is_barrier for rdd in info.rdds or ())


@lru_cache(maxsize=256)  # batches of a query have few plans
def _operators(outline: Outline, is_replanned: bool) -> tuple[Operator, ...]:
    tables = tables_read(outline)
    operators = []
    for position, (node_name, _, children) in enumerate(outline):
        name = node_name.strip()
        tables_beside = tables[children[-1]] if is_join(name) and children else tables[position]
        names_table = len(tables_beside) == 1 and (is_join(name) or is_scan(name))
        table = next(iter(tables_beside)) if names_table else None
        operators.append(Operator(is_replanned, position, name, table))
    return tuple(operators)


_MOST_WORDS = 4
_WORDS = {
    "BroadcastHashJoin": "broadcast hash join",
    "BroadcastNestedLoopJoin": "nested loop join",
    "CartesianProduct": "cross join",
    "ShuffledHashJoin": "shuffled hash join",
    "SortMergeJoin": "sort merge join",
    "StreamingSymmetricHashJoin": "stream-stream join",
    "HashAggregate": "aggregate",
    "ObjectHashAggregate": "aggregate",
    "SortAggregate": "aggregate",
    "MergingSessions": "merge sessions",
    "SessionWindowStateStoreSave": "update sessions",
    "StateStoreSave": "update state",
    "StreamingDeduplicate": "deduplicate",
    "StreamingDeduplicateWithinWatermark": "deduplicate",
    "StreamingGlobalLimit": "limit",
    "Expand": "expand rows",
    "Generate": "generate rows",
    "Window": "window functions",
    "TakeOrderedAndProject": "top rows",
    CACHE_SCAN: "read the cache",
    "LocalTableScan": "read local rows",
    "Range": "generate a range",
    "WriteFiles": "write files",
}
# Parts of names, of which Spark has many variants.
_WORDS_OF_PART = {
    "WithState": "state by key",
    "StateInPandas": "state by key",
    "StateInPySpark": "state by key",
    "EvalPython": "Python function",
    "InPandas": "pandas function",
    "InArrow": "Arrow function",
    "MapElements": "map function",
}
#: In the name of a scan of the list of files that a Delta table has.
DELTA_STATE = "Delta Table State"
_STREAM_SCANS = ("MicroBatchScan", "BatchScan", "Scan ExistingRDD")
_SCANS_WITHOUT_FORMAT = {"BatchScan": "a table", "Scan ExistingRDD": "an RDD"}


def operators_in_words(
    operators: Sequence[Operator], scopes: Sequence[str], *, of_stream: bool
) -> str:
    """The operators of a stage in the order in which rows pass them; empty if none has words.

    Without recorded operators, from the scopes of its RDDs. ``of_stream``: whether scans without a
    table read a stream; its actions say what it writes.

    >>> scan = Operator(False, 3, "Scan parquet", "s3://shop/orders")
    >>> operators_in_words([scan, Operator(False, 1, "HashAggregate", None)], (), of_stream=False)
    'read orders, aggregate'
    >>> operators_in_words([scan], ("Scan parquet", "WriteFiles"), of_stream=False)
    'read orders, write files'
    """
    of_scopes = [Operator(False, 0, scope, None) for scope in scopes]
    named = _in_order(operators, of_stream=of_stream) or _in_order(of_scopes, of_stream=of_stream)
    named += _without_rows(scopes, named, of_stream=of_stream)
    if "read the stream" in named and any(word.startswith("read ") for word in named[1:]):
        named.remove("read the stream")
    return ", ".join(named[:_MOST_WORDS])


def _in_order(operators: Sequence[Operator], *, of_stream: bool) -> list[str]:
    words = dict.fromkeys(_in_words(operator, of_stream=of_stream) for operator in operators)
    return [word for word in words if word is not None]


def _without_rows(scopes: Sequence[str], named: Sequence[str], *, of_stream: bool) -> list[str]:
    """Operators that no row is counted of.

    With a watermark, those with state emit in few batches; and no row leaves a write.
    """
    words = {
        _in_words(Operator(False, 0, scope, None), of_stream=True)
        for scope in scopes
        if "State" in scope or (scope == "WriteFiles" and not of_stream)
    }
    return sorted(word for word in words if word is not None and word not in named)


def _in_words(operator: Operator, *, of_stream: bool) -> str | None:
    name, table = operator.name, operator.table
    if name in _STREAM_SCANS and of_stream:
        return "read the stream"
    if name in _SCANS_WITHOUT_FORMAT:
        return f"read {_last_part(table) if table else _SCANS_WITHOUT_FORMAT[name]}"
    if DELTA_STATE in name:
        return "read the state of the Delta table"
    if name.startswith(("Scan ", "FileScan ")):
        return f"read {_last_part(table) if table else name.split()[1]}"
    words = _WORDS.get(name)
    if words is None:
        words = next((word for part, word in _WORDS_OF_PART.items() if part in name), None)
    return f"{words} with {_last_part(table)}" if words is not None and table is not None else words


def _last_part(table: str) -> str:
    """A table by its name, or the folder that it is read from.

    >>> _last_part("stores"), _last_part("s3://shop/orders/_delta_log")
    ('stores', '_delta_log')
    """
    return table.rstrip("/").rpartition("/")[2] or table
