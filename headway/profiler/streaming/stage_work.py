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
    recorded operators, from the scopes of its RDDs. If a batch writes several times
    (``foreachBatch``), it says to which of the ``writes`` the stage belongs; one that prepares a
    table for all of them belongs to none.
    """
    operators = max((sample.operators for sample in samples), key=len)
    kind = samples[0].kind
    if not operators and kind is not None:
        operators = tuple(Operator(False, 0, scope, None) for scope in kind.scopes)
    words = list(dict.fromkeys(_in_words(operator) for operator in operators))
    named = [word for word in words if word is not None]
    if "read the stream" in named and any(word.startswith("read ") for word in named[1:]):
        named.remove("read the stream")
    work = ", ".join(named[:_MOST_WORDS])
    if len(writes) > 1 and kind is not None and kind.write in writes:
        write = f"write {writes.index(kind.write) + 1} of {len(writes)}"
        return f"{write}: {work}" if work else write
    return work or None


def _in_words(operator: Operator) -> str | None:
    name, table = operator.name, operator.table
    if name in _STREAM_SCANS:
        return "read the stream"
    if name.startswith(("Scan ", "FileScan ")):
        return f"read {table or name.split()[1]}"
    words = _WORDS.get(name)
    if words is None:
        words = next((word for part, word in _WORDS_OF_PART.items() if part in name), None)
    return f"{words} with {table}" if words is not None and table is not None else words
