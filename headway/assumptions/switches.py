"""Switches of Spark: what a log from before cannot tell of the time after."""

from __future__ import annotations

from headway.assumptions import Assumption

ROCKSDB_ROW_S = Assumption(
    name="Time of RocksDB for a row of state that a batch writes: low, expected, high",
    value=(3e-6, 8e-6, 20e-6),
    unit="s",
    source="TODO",
    influences="the gain of state in RocksDB (Y4)",
)
ROCKSDB_TASK_S = Assumption(
    name="Time of RocksDB for a task beside its rows: low, expected, high",
    value=(0.0, 0.002, 0.006),
    unit="s",
    source="TODO",
    influences="the gain of state in RocksDB (Y4)",
)
LOCAL_FILE_LEFT_RATIO = Assumption(
    name="Share of a file's time that is left with the renaming file manager: low, expected, high",
    value=(0.05, 0.15, 0.3),
    source="TODO",
    influences="the gain of the file manager for mounted disks (Y5)",
)
