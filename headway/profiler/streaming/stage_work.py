"""What a stage computes, in the words of its operators."""

from __future__ import annotations

from collections.abc import Sequence

from headway.profiler.operators import Operator
from headway.profiler.streaming.samples import StageSample

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


def stage_work(samples: Sequence[StageSample], writes: Sequence[int]) -> str | None:
    """The operators of a stage in the order in which rows pass them; None if none is recorded.

    From the batch that recorded most of them, since those that no row passed are not. Without
    recorded operators, from the scopes of its RDDs. If a batch has several actions
    (``foreachBatch``), it says to which one the stage belongs, of the ``writes`` among its SQL
    executions; one that prepares a table for all of them belongs to none.
    """
    operators = max((sample.operators for sample in samples), key=len)
    kind = samples[0].kind
    if not operators and kind is not None:
        operators = tuple(Operator(False, 0, scope, None) for scope in kind.scopes)
    words = dict.fromkeys(_in_words(operator) for operator in operators)
    named = [word for word in words if word is not None]
    if kind is not None:
        named += _words_of_state(kind.scopes, named)
    if "read the stream" in named and any(word.startswith("read ") for word in named[1:]):
        named.remove("read the stream")
    work = ", ".join(named[:_MOST_WORDS])
    if len(writes) > 1 and kind is not None and kind.write in writes:
        action = f"action {writes.index(kind.write) + 1} of {len(writes)}"
        return f"{action}: {work}" if work else action
    return work or None


def _words_of_state(scopes: Sequence[str], named: Sequence[str]) -> list[str]:
    """Operators with state that no row passed: with a watermark, they emit in few batches."""
    words = {_in_words(Operator(False, 0, scope, None)) for scope in scopes if "State" in scope}
    return sorted(word for word in words if word is not None and word not in named)


def _in_words(operator: Operator) -> str | None:
    name, table = operator.name, operator.table
    if name in _STREAM_SCANS:
        return "read the stream"
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
