"""The columns of the tables as Parquet keeps them; imported when tables are written."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pyarrow as pa

_TEXT, _LONG, _INT, _FLOAT, _FLAG = pa.string(), pa.int64(), pa.int32(), pa.float64(), pa.bool_()


def _columns(**kinds: pa.DataType) -> pa.Schema:
    return pa.schema([("app", _INT), *kinds.items()])


def _group(**kinds: pa.DataType) -> pa.DataType:
    return pa.list_(pa.struct(list(kinds.items())))


_TASK_QUANTITIES = (
    *("wall_s", "run_s", "cpu_s", "gc_s", "deserialize_s", "scheduler_delay_s", "fetch_wait_s"),
    *("rows_read", "rows_written", "input_bytes", "shuffle_read_bytes", "shuffle_write_bytes"),
    *("spilled_bytes", "peak_memory_bytes", "peak_heap_bytes"),
)

SCHEMAS: Mapping[str, pa.Schema] = MappingProxyType(
    {
        "applications": _columns(
            application_id=_TEXT,
            application_name=_TEXT,
            spark_version=_TEXT,
            java_version=_TEXT,
            properties=pa.map_(_TEXT, _TEXT),
            executors=_group(executor_id=_TEXT, num_cores=_INT, at_s=_FLOAT),
            started_s=_FLOAT,
            ended_s=_FLOAT,
        ),
        "queries": _columns(
            run_id=_TEXT,
            query_id=_TEXT,
            query_name=_TEXT,
            started_s=_FLOAT,
            num_batches=_LONG,
            first_batch_id=_LONG,
            last_batch_id=_LONG,
            terminated=_FLAG,
            failed=_FLAG,
        ),
        "batches": _columns(
            query_id=_TEXT,
            run_id=_TEXT,
            query_name=_TEXT,
            batch_id=_LONG,
            started_s=_FLOAT,
            phases_s=pa.map_(_TEXT, _FLOAT),
            num_rows=_FLOAT,
            sources=_group(description=_TEXT, num_rows=_LONG),
            sink=_TEXT,
            stateful_operators=_group(
                name=_TEXT,
                num_rows=_LONG,
                memory_bytes=_LONG,
                commit_s=_FLOAT,
                num_partitions=_INT,
                num_stores=_INT,
            ),
            watermarked=_FLAG,
            newest_event_s=_FLOAT,
        ),
        "jobs": _columns(
            job_id=_INT,
            submitted_s=_FLOAT,
            stage_ids=pa.list_(_INT),
            query_id=_TEXT,
            batch_id=_LONG,
            run_id=_TEXT,
            execution_id=_LONG,
            dstream_batch_s=_FLOAT,
            shuffle_partitions=_INT,
            ended_s=_FLOAT,
            succeeded=_FLAG,
        ),
        "stages": _columns(
            stage_id=_INT,
            attempt_id=_INT,
            num_tasks=_INT,
            parent_ids=pa.list_(_INT),
            submitted_s=_FLOAT,
            completed_s=_FLOAT,
            failed=_FLAG,
            python_s=_FLOAT,
        ),
        "tasks": _columns(
            stage_id=_INT,
            attempt_id=_INT,
            task_id=_LONG,
            partition_id=_INT,
            executor_id=_TEXT,
            launched_s=_FLOAT,
            finished_s=_FLOAT,
            succeeded=_FLAG,
            measured=_FLAG,
            **dict.fromkeys(_TASK_QUANTITIES, _FLOAT),
        ),
        "plans": _columns(
            execution_id=_LONG,
            root_execution_id=_LONG,
            started_s=_FLOAT,
            run_id=_TEXT,
            batch_id=_LONG,
            operators=pa.list_(_TEXT),
        ),
    }
)
