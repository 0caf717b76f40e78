"""Operators of a stage in words."""

from __future__ import annotations

from collections.abc import Sequence

from headway.profiler.operators import Operator

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
    "InMemoryTableScan": "read the cache",
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
_STREAM_SCANS = ("MicroBatchScan", "BatchScan", "Scan ExistingRDD")
_SCANS_WITHOUT_FORMAT = {"BatchScan": "a table", "Scan ExistingRDD": "an RDD"}


def operators_in_words(
    operators: Sequence[Operator], scopes: Sequence[str], *, of_stream: bool
) -> str:
    """The operators of a stage in the order in which rows pass them; empty if none has words.

    Without recorded operators, from the scopes of its RDDs; those of a program without SQL are
    named by their methods. ``of_stream``: whether scans without a table read a stream.

    >>> scan = Operator(False, 3, "Scan parquet", "s3://shop/orders")
    >>> operators_in_words([scan, Operator(False, 1, "HashAggregate", None)], (), of_stream=False)
    'read orders, aggregate'
    >>> operators_in_words((), ("map", "textFile"), of_stream=False)
    'map, textFile'
    """
    of_scopes = [Operator(False, 0, scope, None) for scope in scopes]
    named = _in_order(operators, of_stream=of_stream) or _in_order(of_scopes, of_stream=of_stream)
    named += _words_of_state(scopes, named)
    if "read the stream" in named and any(word.startswith("read ") for word in named[1:]):
        named.remove("read the stream")
    if not named and not of_stream:
        # Methods of RDDs; those of Spark's own code are internal.
        methods = dict.fromkeys(scope for scope in scopes if scope[:1].islower())
        named = [method for method in methods if not method.endswith("Internal")]
    return ", ".join(named[:_MOST_WORDS])


def _in_order(operators: Sequence[Operator], *, of_stream: bool) -> list[str]:
    words = dict.fromkeys(_in_words(operator, of_stream=of_stream) for operator in operators)
    return [word for word in words if word is not None]


def _words_of_state(scopes: Sequence[str], named: Sequence[str]) -> list[str]:
    """Operators with state that no row passed: with a watermark, they emit in few batches."""
    words = {
        _in_words(Operator(False, 0, scope, None), of_stream=True)
        for scope in scopes
        if "State" in scope
    }
    return sorted(word for word in words if word is not None and word not in named)


def _in_words(operator: Operator, *, of_stream: bool) -> str | None:
    name, table = operator.name, operator.table
    if name in _STREAM_SCANS and of_stream:
        return "read the stream"
    if name in _SCANS_WITHOUT_FORMAT:
        return f"read {_last_part(table) if table else _SCANS_WITHOUT_FORMAT[name]}"
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
