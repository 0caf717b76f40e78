"""The columns of the tables as stored in Parquet; imported when tables are written."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pyarrow as pa

_KINDS = {
    "text": pa.string(),
    "long": pa.int64(),
    "int": pa.int32(),
    "float": pa.float64(),
    "flag": pa.bool_(),
    "texts": pa.list_(pa.string()),
    "ints": pa.list_(pa.int32()),
    "properties": pa.map_(pa.string(), pa.string()),
    "times": pa.map_(pa.string(), pa.float64()),
}


def _fields(words: str) -> list[tuple[str, pa.DataType]]:
    """Columns from text: names, and after a colon the type of the names before it."""
    columns, names = [], []
    for word in words.split():
        name, _, kind = word.partition(":")
        names.append(name)
        if kind:
            columns += [(name, _KINDS[kind]) for name in names]
            names = []
    return columns


_GROUPS = {
    "executors": "executor_id:text num_cores:int at_s:float",
    "sources": "description:text num_rows:long",
    "operators": """name:text num_rows memory_bytes:long commit_s:float
        shuffle_partitions num_stores:int num_updated num_removed:long updates_s:float
        store_metrics:times""",
}
_KINDS |= {name: pa.list_(pa.struct(_fields(words))) for name, words in _GROUPS.items()}
_WORDS = {
    "applications": """application_id application_name spark_version java_version:text
        properties:properties executors:executors started_s ended_s:float""",
    "batches": """query_id run_id query_name:text batch_id:long started_s:float phases_s:times
        num_rows:float sources:sources sink:text stateful_operators:operators watermarked:flag
        newest_event_s:float""",
    "queries": """run_id query_id query_name:text started_s:float num_batches first_batch_id
        last_batch_id:long terminated failed:flag""",
    "jobs": """job_id:int submitted_s:float stage_ids:ints query_id:text batch_id:long run_id:text
        execution_id:long dstream_batch_s:float shuffle_partitions:int gated_trigger_s ended_s:float
        succeeded:flag""",
    "stages": """stage_id attempt_id num_tasks:int parent_ids:ints submitted_s completed_s:float
        failed:flag python_s:float""",
    "tasks": """stage_id attempt_id:int task_id:long partition_id:int executor_id:text launched_s
        finished_s:float succeeded measured:flag wall_s run_s cpu_s gc_s deserialize_s
        scheduler_delay_s fetch_wait_s rows_read rows_written input_bytes shuffle_read_bytes
        shuffle_write_bytes spilled_bytes peak_memory_bytes peak_heap_bytes:float""",
    "plans": """execution_id root_execution_id:long started_s:float run_id:text batch_id:long
        operators:texts""",
}

SCHEMAS: Mapping[str, pa.Schema] = MappingProxyType(
    {name: pa.schema(_fields(f"app:int {words}")) for name, words in _WORDS.items()}
)
