"""Pieces of logs read by Spark: on the cores of this machine, or of a cluster."""

from __future__ import annotations

import contextlib
import os
import pickle
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from headway.errors import require_packages
from headway.profiler.pieces import Order, Result, carried_out

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

# So that cores finish at about the same time.
_TASKS_PER_CORE = 3
_CORES_OF_A_STRANGER = 8


def local_session_conf() -> dict[str, str]:
    """Settings for a local session that makes one pass over logs; for ``extra_conf``.

    Python does the work, so JIT compilation in Java never pays off.
    """
    return {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseParallelGC",
        # Python would pass the source position of each expression to Java, with twice the calls.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
    }


def require_spark_packages() -> None:
    """Fail early without PySpark, and the packages that its ``mapInArrow`` requires."""
    require_packages("spark", "reading logs through Spark", "pyspark", "pandas", "pyarrow")


def read_on_spark(spark: SparkSession, orders: Sequence[Order]) -> Iterator[Result]:
    """Results of the pieces; each task combines those of one log.

    The nodes of the session must see the files and have Headway installed.
    """
    require_spark_packages()
    num_tasks = min(len(orders), _TASKS_PER_CORE * _num_cores(spark))
    # Neighbours stay together, since they are mostly of one log.
    per_task = -(-len(orders) // num_tasks)
    rows = [
        (start, pickle.dumps(list(orders[start : start + per_task])))
        for start in range(0, len(orders), per_task)
    ]
    orders_frame = spark.createDataFrame(rows, "place long, orders binary")
    done = (
        orders_frame.repartitionByRange(len(rows), "place")
        .mapInArrow(_read, "place long, result binary")
        .toLocalIterator(prefetchPartitions=True)
    )
    for row in done:
        yield pickle.loads(row["result"])


def _num_cores(spark: SparkSession) -> int:
    # Not available in a session of Spark Connect.
    with contextlib.suppress(Exception):
        return spark.sparkContext.defaultParallelism
    return _CORES_OF_A_STRANGER


def _read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Results of each row's orders, combined into one per log."""
    import pyarrow as pa

    for batch in batches:
        for row in batch.to_pylist():
            for result in _put_together(pickle.loads(row["orders"])):
                yield pa.RecordBatch.from_pydict(
                    {
                        "place": pa.array([row["place"]], pa.int64()),
                        "result": pa.array([pickle.dumps(result)], pa.binary()),
                    }
                )


def _put_together(orders: Sequence[Order]) -> Iterator[Result]:
    combined = Result(-1)
    for order in orders:
        result = carried_out(order, lambda _read_bytes, _num_events: None)
        into, sums = combined.gathered, result.gathered
        if combined.app == result.app and into is not None and sums is not None:
            into.add(sums)
            unpacked_bytes = combined.unpacked_bytes + result.unpacked_bytes
            combined = combined._replace(unpacked_bytes=unpacked_bytes)
        else:
            if combined.app >= 0:
                yield combined
            combined = result
    yield combined
