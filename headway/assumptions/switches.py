"""Switches of Spark: what a log from before cannot tell of the time after, and Spark's defaults.

Shares and times are for the file systems and machines on which they were measured.
"""

from __future__ import annotations

from headway.assumptions import Assumption, seconds

_MEASURED = (
    "measured 2026-11-20, before any run of a pair: Spark 4.3, 8 partitions on a local disk, one "
    "run each: "
)
ROCKSDB_ROW_S = seconds(
    name="Time of RocksDB for a row of state that a batch writes: low, expected, high",
    value=(4e-6, 10e-6, 25e-6),
    source="judgement: a get, a put and a lookup through JNI take a few microseconds each",
    influences="the gain of state in RocksDB (Y4)",
)
COPIED_ROW_S = seconds(
    name="Time of the default store to copy a row of state for a batch, where it could not be "
    "fitted: low, expected, high",
    value=(1e-7, 3e-7, 1e-6),
    source="judgement: a node of a hash map is allocated and linked, and collections move it",
    influences="the gain of state in RocksDB (Y4)",
)
ROCKSDB_TASK_S = seconds(
    name="Time of RocksDB with changelog for a task beside its rows: low, expected, high",
    value=(0.0, 0.003, 0.008),
    source=f"{_MEASURED}eight commits took 370 ms instead of 346 ms, a batch 544 ms instead of 515",
    influences="the gain of state in RocksDB (Y4)",
)
LOG_LEFT_RATIO = Assumption(
    name="Share of the offset and commit logs' time that is left with the renaming file manager: "
    "low, expected, high",
    value=(0.2, 0.32, 0.5),
    source=f"{_MEASURED}32 and 41 ms became 10 and 13 ms",
    influences="the gain of the file manager for mounted disks (Y5)",
)
COMMIT_LEFT_RATIO = Assumption(
    name="Share of a state commit's time that is left with the renaming file manager: low, "
    "expected, high",
    value=(0.02, 0.035, 0.1),
    source=f"{_MEASURED}eight commits took 12 ms instead of 346 ms",
    influences="the gain of the file manager for mounted disks (Y5)",
)
CHECKSUM_RATIO = Assumption(
    name="Share of a state commit that checksums of its files take: low, expected, high",
    value=(0.0, 0.1, 0.5),
    source=f"{_MEASURED}eight commits took 311 ms without checksums instead of 346 ms; they are "
    "written at the same time as the files",
    influences="the gain of files without checksums (Y6)",
)
ARRIVED_SPREAD_RATIO = Assumption(
    name="Spread of the rows that have arrived by a trigger, over their mean",
    value=0.005,
    source="judgement: a query looks at its source some milliseconds after a trigger, and rates "
    "are known to some thousandths",
    influences="predictions with minOffsetsPerTrigger where as many rows arrive by a trigger (Y10)",
)
MOST_TRIGGER_DELAY_S = seconds(
    name="Default time that a trigger waits at most for a minimum of rows",
    value=900.0,
    source="Spark: maxTriggerDelay, an option of Kafka's reader",
    influences="predictions with minOffsetsPerTrigger (Y10)",
)
ASYNC_LOG_INTERVAL_S = seconds(
    name="Default interval of files of offsets and commits under asynchronous progress tracking",
    value=1.0,
    source="Spark: asyncProgressTrackingCheckpointIntervalMs, an option of the writer",
    influences="files and write requests of a checkpoint (F2)",
)
