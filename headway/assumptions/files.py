"""Files of a query's checkpoint and sink: Spark's defaults, and what was counted.

Defaults hold where the log shows no setting of the query.

How many requests a file takes, and what these and the space cost, depends on the store and is in
the catalogue of nodes and stores.
"""

from __future__ import annotations

from headway.assumptions import Assumption

COMMITS_PER_SNAPSHOT = Assumption(
    name="Default number of commits between two snapshots of a state store",
    value=10,
    unit="commits",
    source="Spark: spark.sql.streaming.stateStore.minDeltasForSnapshot",
    influences="files and write requests of a checkpoint (F1)",
)
MAINTENANCE_INTERVAL_S = Assumption(
    name="Default interval of the maintenance of state stores",
    value=60.0,
    unit="s",
    source="Spark: spark.sql.streaming.stateStore.maintenanceInterval",
    influences="files and write requests of a checkpoint (F1)",
)
RETAINED_BATCHES = Assumption(
    name="Default number of batches that can be gone back",
    value=100,
    unit="batches",
    source="Spark: spark.sql.streaming.minBatchesToRetain",
    influences="bytes that a checkpoint keeps (F5)",
)
SINK_ENTRY_BYTES = Assumption(
    name="Bytes of an entry in the log of a file sink",
    value=250,
    unit="bytes",
    source="counted: JSON with a path of 90 characters, Spark 4.3",
    influences="growth of the log of a file sink (F6)",
)
SINK_LOG_DELAY_S = Assumption(
    name="Default age at which files of the log of a file sink are deleted",
    value=600.0,
    unit="s",
    source="Spark: spark.sql.streaming.fileSink.log.cleanupDelay",
    influences="growth of the log of a file sink (F6)",
)
TABLES_PER_SNAPSHOT = Assumption(
    name="New files of RocksDB with each snapshot of a state store",
    value=1.09,
    unit="files",
    source="counted on Spark 4.3, 2026-11-27, one aggregation: 16.7 files of 8 stores per batch",
    influences="files and write requests of a checkpoint (F1)",
)
COMPACTION_BATCHES = Assumption(
    name="Default number of batches from one compaction of a log to the next",
    value=10,
    unit="batches",
    source="Spark: spark.sql.streaming.fileSink.log.compactInterval, and that of fileSource",
    influences="which batches compact the log of a file source or a file sink (E52)",
)
